// The live lists of a client, and the stream that they share. Must not know how lists take changes.
import { isSelkieError, SelkieError } from "./errors.js";
import { follow, type RawChange } from "./feed.js";
import { type Http, pause } from "./http.js";
import type { List } from "./live.js";
import { pathOf, type TablePath } from "./operations.js";
import type { TableSchema } from "./types.js";

const SUBSCRIPTIONS_MAX_COUNT = 100;

const mayPass = (error: unknown) => error instanceof SelkieError && error.retryable;

export class Hub {
  /** The position after the last transaction that the stream has told. */
  position = "";
  readonly #lists = new Set<List>();
  readonly #prepared = new Map<List, Promise<void>>();
  readonly #schemas = new Map<string, Promise<TableSchema>>();
  #control: AbortController | undefined;
  /** The ids of the stream's subscriptions, by what they are. */
  #ids = new Map<string, string>();

  constructor(readonly http: Http) {}

  schema(table: TablePath): Promise<TableSchema> {
    const path = `${pathOf(table)}/_schema`;
    const known = this.#schemas.get(path);
    if (known) return known;
    const asked = this.http
      .envelope<TableSchema>({ method: "GET", path, repeat: "always" })
      .then((answer) => answer.payload);
    this.#schemas.set(path, asked);
    asked.catch(() => this.#schemas.delete(path));
    return asked;
  }

  async add(list: List): Promise<void> {
    if (this.#lists.size >= SUBSCRIPTIONS_MAX_COUNT)
      return list.end(new TypeError(`A client has at most ${SUBSCRIPTIONS_MAX_COUNT} live lists.`));
    this.#lists.add(list);
    await this.#prepare(list);
    if (!this.#lists.has(list)) return;
    list.id = this.#ids.get(JSON.stringify(list.subscription));
    if (!list.id) void this.#restart();
    // Otherwise the first event of the stream has all lists read.
    else if (this.position) void list.load();
  }

  remove(list: List): void {
    this.#lists.delete(list);
    this.#prepared.delete(list);
    if (this.#lists.size) return;
    this.#control?.abort();
    this.#ids.clear();
  }

  #prepare(list: List): Promise<void> {
    const prepared = this.#tryToPrepare(list);
    this.#prepared.set(list, prepared);
    return prepared;
  }

  async #tryToPrepare(list: List): Promise<void> {
    for (let attempt = 0; !list.isClosed; attempt += 1) {
      try {
        return await list.prepare();
      } catch (error) {
        if (mayPass(error)) await pause(attempt);
        else list.end(error);
      }
    }
  }

  /** Begins a stream of all lists, which are then read again: a token is of one set of subscriptions. */
  async #restart(): Promise<void> {
    this.#control?.abort();
    const control = new AbortController();
    this.#control = control;
    const { signal } = control;
    // Lists that are made together begin together.
    await Promise.all(this.#prepared.values());
    while (!signal.aborted && this.#lists.size) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!isSelkieError(error, "resync_required")) await this.#endThoseAtFault(error);
        this.#schemas.clear();
        await Promise.all([...this.#lists].map((list) => this.#prepare(list)));
        await pause(0, signal).catch(() => {});
      }
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const all = new Map([...this.#lists].map((list) => [JSON.stringify(list.subscription), list.subscription]));
    const subscriptions = [...all.values()].map((one, at) => ({ ...one, id: String(at) }));
    this.#ids = new Map([...all.keys()].map((text, at) => [text, String(at)]));
    for (const list of this.#lists) list.id = this.#ids.get(JSON.stringify(list.subscription));
    this.position = "";
    let transaction: RawChange[] = [];
    for await (const [name, value] of follow(this.http, subscriptions, { signal })) {
      // A new stream, whose subscriptions have other ids, may have begun.
      if (signal.aborted) return;
      if (name === "change") {
        transaction.push(value);
        if (!value.end) continue;
        this.position = value.position;
        const changes = transaction;
        transaction = [];
        for (const list of [...this.#lists]) {
          const own = changes.filter(({ subscription }) => subscription === list.id);
          if (own.length) list.change(own);
        }
      } else if (name === "transaction") {
        const isFirst = !this.position;
        this.position = value.position;
        if (isFirst) for (const list of this.#lists) if (list.id) void list.load();
      }
    }
  }

  /** The stream is refused as a whole: ends the lists that are refused alone too, or all if each alone is not. */
  async #endThoseAtFault(error: unknown): Promise<void> {
    const lists = [...this.#lists];
    const accepted = () => undefined;
    const faults = await Promise.all(lists.map((list) => list.read().then(accepted, (fault: unknown) => fault)));
    const isAnyAtFault = faults.some((fault) => fault);
    for (const [at, list] of lists.entries()) {
      const fault = isAnyAtFault ? faults[at] : error;
      if (fault && !mayPass(fault)) list.end(fault);
    }
  }
}
