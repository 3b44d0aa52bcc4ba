// A service of one table in memory, with its feed of changes: what a live list must follow. Counts the requests.
import { createClient } from "../../dist/index.js";

const COLUMNS = { id: "int(11)", views: "bigint(20)", title: "varchar(40)", price: "decimal(6,2)", at: "datetime" };

/** Orders as MariaDB does: texts without regard to case. */
function byOrder(order = []) {
  const comparable = (name, value) =>
    value === null
      ? -Infinity
      : name === "title"
        ? value.toLowerCase()
        : name === "at"
          ? Date.parse(value)
          : Number(value);
  return (a, b) => {
    for (const { field, strategy } of order) {
      const [x, y] = [comparable(field, a[field]), comparable(field, b[field])];
      if (x !== y) return x < y === (strategy !== "DESC") ? -1 : 1;
    }
    return a.id - b.id;
  };
}

const only = (fields) => (record) => (fields ? Object.fromEntries(fields.map((name) => [name, record[name]])) : record);

export class Service {
  rows = new Map();
  log = [];
  requests = [];
  streams = new Set();
  /** Whether bodies stream; otherwise they are held back until their end. */
  streaming = true;
  refuses = new Set();
  /** How many of the next requests fail, as they may later not. */
  failures = 0;
  /** Whether snapshots take a while, and every third one lacks the last transaction: the log has it before the tables. */
  isSlow = false;
  /** The most records that the role allows in a list. */
  maxRows = Infinity;

  get selkie() {
    return createClient({
      url: "http://selkie.test",
      key: "k",
      retries: 0,
      fetch: (url, init) => this.answer(url, init),
    });
  }

  /** Commits one transaction: a row for each id, or null to delete it. */
  write(rows) {
    this.before = new Map(this.rows);
    const changes = Object.entries(rows).map(([id, row]) => {
      const before = this.rows.get(Number(id));
      const after = row && {
        id: Number(id),
        views: 0,
        title: "",
        price: "0.00",
        at: "2026-01-01 00:00:00",
        ...before,
        ...row,
      };
      after ? this.rows.set(Number(id), after) : this.rows.delete(Number(id));
      return { before, after };
    });
    this.log.push(changes);
    for (const stream of this.streams) stream.send();
  }

  /** What a list answers now. */
  list({ query, order, limit = Infinity, selectFields }, of = this.rows) {
    const rows = [...of.values()].filter(this.matches(query));
    return rows.sort(byOrder(order)).slice(0, Math.min(limit, this.maxRows)).map(only(selectFields));
  }

  /** Whether the role cuts a list. */
  cuts({ query, limit = Infinity }) {
    return [...this.rows.values()].filter(this.matches(query)).length > this.maxRows && limit > this.maxRows;
  }

  matches(query = {}) {
    return (row) => row && Object.entries(query).every(([name, value]) => row[name] === value);
  }

  position(at) {
    return `gtid:0-1-${at}`;
  }

  /** The events of the transaction with this number, from 1. */
  changes(number, subscriptions) {
    const all = [];
    for (const { before, after } of this.log[number - 1])
      for (const { id: subscription, query, selectFields } of subscriptions) {
        const [was, is] = [before, after].map(this.matches(query));
        const common = { key: (after ?? before).id, subscription, position: this.position(number), at: "2026" };
        const record = only(selectFields)(after ?? before);
        if (was && is) {
          const changed = Object.keys(record).filter((name) => before[name] !== after[name]);
          if (changed.length) all.push({ type: "update", record, changed, ...common });
        } else if (is) all.push({ type: "insert", record, ...(before && { entered: true }), ...common });
        else if (was) all.push({ type: "delete", ...(after ? { left: true } : { record }), ...common });
      }
    if (all.length) all.at(-1).end = true;
    return all;
  }

  async answer(url, { body, headers, signal }) {
    if (this.failures-- > 0)
      return Response.json({ error: { code: "overloaded", message: "Later.", retryable: true } }, { status: 503 });
    const path = url.replace("http://selkie.test/api/v1/", "");
    if (path.endsWith("_schema")) {
      const schema = Object.entries(COLUMNS).map(([name, type]) => ({ name, type, primaryKey: name === "id" }));
      return Response.json({ success: true, payload: { schema } });
    }
    const call = JSON.parse(body);
    const events = headers.accept === "text/event-stream";
    this.requests.push({ ...call, form: events ? "events" : call.snapshot ? "snapshot" : "page" });
    if (call.subscriptions.some(({ table }) => this.refuses.has(table)))
      return Response.json({ error: { code: "table_not_found", message: "No.", retryable: false } }, { status: 404 });
    if (this.gone && call.since) {
      const details = { reason: "log_purged" };
      return Response.json({ error: { code: "resync_required", message: "Gone.", details } }, { status: 409 });
    }
    this.gone = false;
    const isLate = this.isSlow && this.log.length > 0 && this.requests.length % 3 === 0;
    const now = this.log.length - (isLate ? 1 : 0);
    const place = (at) => ({ next: `t${at}`, upToDate: true, position: this.position(at) });
    const limited = call.snapshot && call.subscriptions.some((one) => this.cuts(one)) ? { limited: true } : {};
    const recordsOf = (one) =>
      this.list(one, isLate ? this.before : this.rows).map((record) => ({
        type: "insert",
        snapshot: true,
        key: record.id,
        record,
        subscription: one.id,
      }));
    const records = call.snapshot ? call.subscriptions.flatMap(recordsOf) : [];
    if (call.snapshot && !events) {
      for (let turn = 0; this.isSlow && turn < 4; turn += 1) await new Promise(setImmediate);
      return new Response(
        [...records, { ...place(now), ...limited }].map((line) => `${JSON.stringify(line)}\n`).join(""),
      );
    }
    let at = call.since ? Number(call.since.slice(1)) : this.log.length;
    if (!events) {
      if (call.since && at === this.log.length) await this.written(signal);
      const changes = this.log.slice(at).flatMap((_, index) => this.changes(at + index + 1, call.subscriptions));
      return Response.json({ success: true, payload: changes, ...place(this.log.length) });
    }
    if (!this.streaming) {
      const start = (controller) => signal.addEventListener("abort", () => controller.error(signal.reason));
      return new Response(new ReadableStream({ start }));
    }
    const stream = new ReadableStream({
      start: (controller) => {
        const event = (name, data, id) => `${id ? `id: ${id}\n` : ""}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
        const put = (...parts) => controller.enqueue(new TextEncoder().encode(event(...parts)));
        // All that there is comes as one piece.
        const send = () => {
          let text = "";
          for (; at < this.log.length; at += 1) {
            const changes = this.changes(at + 1, call.subscriptions);
            for (const change of changes) text += event("change", change, `t${change.end ? at + 1 : at}`);
            if (changes.length) text += event("transaction", place(at + 1), `t${at + 1}`);
          }
          if (text) controller.enqueue(new TextEncoder().encode(text));
        };
        const own = { send, put, end: () => this.streams.delete(own) && controller.close() };
        signal.addEventListener("abort", () => this.streams.delete(own) && controller.error(signal.reason));
        this.streams.add(own);
        for (const record of records) put("change", record);
        put("transaction", { ...place(at), ...limited }, `t${at}`);
        send();
      },
      cancel: () => this.streams.clear(),
    });
    return new Response(stream);
  }

  written(signal) {
    return new Promise((resolve, reject) => {
      const own = { send: () => this.streams.delete(own) && resolve(), end: () => {} };
      signal.addEventListener("abort", () => this.streams.delete(own) && reject(signal.reason));
      this.streams.add(own);
    });
  }

  count(form) {
    return this.requests.filter((request) => request.form === form).length;
  }
}
