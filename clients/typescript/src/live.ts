// Lists that stay what a read at that moment would give. Must not know how changes come.
import { compareValues, covers } from "./compare.js";
import { order as steps, query } from "./conditions.js";
import { SelkieError } from "./errors.js";
import { type RawChange, snapshotOf, type Subscription } from "./feed.js";
import { type Http, pause } from "./http.js";
import { Hub } from "./hub.js";
import type { TablePath } from "./operations.js";

interface Entry {
  key: unknown;
  /** With the fields of the order, even if they are not shown. */
  record: Record<string, unknown>;
}

export interface LiveCall {
  readonly select?: readonly string[];
  readonly omit?: readonly string[];
  readonly where?: object;
  readonly order?: unknown;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

type Step = [field: string, sign: number, type: string];

/** A list that stays what a read at that moment would give. It ends at `close`, at the signal's abort, and at an error
 * that does not pass. */
export interface LiveList<R> extends AsyncIterable<readonly R[]> {
  /** The records, as they were after one transaction. A change makes a new array. */
  readonly records: readonly R[];
  /** Resolves when `records` was read first; rejects if the list ended before. */
  readonly ready: Promise<void>;
  /** The error that ended the list. */
  readonly error: unknown;
  /** Calls `listener` after each change of `records`, and at the end of the list. Returns what stops the calls. */
  subscribe(listener: (records: readonly R[]) => void): () => void;
  /** Yields `records`, now and after each change. A slow reader misses the states in between. */
  [Symbol.asyncIterator](): AsyncGenerator<readonly R[], void, undefined>;
  close(): void;
}

/** The records of a list that was not read yet. */
const UNREAD: readonly unknown[] = [];

/** A read so soon after another one waits for further changes first. */
const READ_EVERY_MS = 200;

export class List implements LiveList<unknown> {
  records = UNREAD;
  readonly ready: Promise<void>;
  error: unknown;
  subscription!: Subscription;
  /** The id of the subscription in the shared stream. */
  id: string | undefined;
  readonly #hub: Hub;
  readonly #table: TablePath;
  readonly #call: LiveCall;
  readonly #control = new AbortController();
  readonly #listeners = new Set<(records: readonly unknown[]) => void>();
  /** The maximum of records in `#entries`. */
  #held: number;
  #settle!: { resolve: () => void; reject: (reason: unknown) => void };
  #steps: Step[] = [];
  #hidden: string[] = [];
  #entries: Entry[] = [];
  /** Whether `#entries` are all records, rather than the first `#held`. */
  #isWhole = true;
  /** The position of the last read, until a change after it comes. */
  #position: string | undefined;
  #readAt = 0;
  #isStale = true;
  #isLoading = false;
  #buffer: RawChange[][] = [];

  constructor(hub: Hub, table: TablePath, call: LiveCall) {
    this.#hub = hub;
    this.#table = table;
    this.#call = call;
    this.#held = this.#wanted;
    this.ready = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.ready.catch(() => {});
    const { signal } = call;
    const stop = () => this.end(undefined, signal!.reason);
    signal?.addEventListener("abort", stop, { once: true });
    this.#control.signal.addEventListener("abort", () => signal?.removeEventListener("abort", stop));
    if (signal?.aborted) stop();
    else hub.add(this);
  }

  subscribe(listener: (records: readonly unknown[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<readonly unknown[], void, undefined> {
    let seen = UNREAD;
    for (;;) {
      if (seen !== this.records) {
        seen = this.records;
        yield seen;
      } else if (this.isClosed) break;
      else await this.#next();
    }
    if (this.error) throw this.error;
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.subscribe(() => {
        stop();
        resolve();
      });
    });
  }

  close(): void {
    this.end();
  }

  get isClosed(): boolean {
    return this.#control.signal.aborted;
  }

  end(error?: unknown, reason: unknown = error ?? new DOMException("The list was closed.", "AbortError")): void {
    if (this.isClosed) return;
    this.error = error;
    this.#control.abort(reason);
    this.#settle.reject(reason);
    this.#hub.remove(this);
    this.#tell();
  }

  #tell() {
    for (const listener of [...this.#listeners]) listener(this.records);
  }

  /** Learns the types of the fields: the order is by the caller's steps, then by the primary key. */
  async prepare(): Promise<void> {
    const { schema } = await this.#hub.schema(this.#table);
    const { select, omit, where, order } = this.#call;
    const given = order
      ? steps(order).map(({ field, strategy }) => [field as string, strategy === "DESC" ? -1 : 1])
      : [];
    const last = given.at(-1)?.[1] ?? 1;
    const keys = schema.filter(({ primaryKey }) => primaryKey).map(({ name }) => [name, last]);
    const all = new Map([...keys, ...given].reverse() as [string, number][]);
    const names = [...new Set([...given, ...keys].map(([name]) => name as string))];
    this.#steps = names.map((name) => [name, all.get(name)!, schema.find((field) => field.name === name)?.type ?? ""]);
    this.#hidden = names.filter((name) => (select ? !select.includes(name) : omit?.includes(name)));
    this.subscription = {
      ...this.#table,
      query: where && query(where as Record<string, unknown>),
      selectFields: select && [...select, ...this.#hidden],
      omitFields: omit?.filter((name) => !names.includes(name)),
    };
  }

  /** Twice the limit, so that a list that loses records is not read again each time. */
  get #wanted(): number {
    return (this.#call.limit ?? Infinity) * 2;
  }

  #compare(a: Entry, b: Entry): number {
    for (const [name, sign, type] of this.#steps) {
      const result = sign * compareValues(a.record[name], b.record[name], type);
      if (result !== 0) return result;
    }
    // Without a limit, records of equal values may come in any order.
    return a.key === b.key || this.#held === Infinity ? 0 : Number.NaN;
  }

  /** Reads the records with the position at which they were so. */
  read() {
    const order = this.#steps.map(([field, sign]) => ({ field, strategy: sign < 0 ? "DESC" : "ASC" }));
    const limit = this.#wanted === Infinity ? undefined : this.#wanted;
    return snapshotOf(this.#hub.http, [{ ...this.subscription, order, limit }], {
      signal: this.#control.signal,
    });
  }

  /** Reads the list again, at most one read at a time. */
  async load(): Promise<void> {
    this.#isStale = true;
    if (this.#isLoading) return;
    this.#isLoading = true;
    for (let attempt = 0; this.#isStale && !this.isClosed; attempt += 1) {
      try {
        if (attempt || Date.now() - this.#readAt < READ_EVERY_MS)
          await pause(Math.max(attempt - 1, 0), this.#control.signal);
        this.#isStale = false;
        this.#buffer = [];
        const least = this.#hub.position;
        const { records, place } = await this.read();
        // The snapshot may miss a transaction that the log has already.
        if (this.#isStale || !covers(place.position, least)) {
          this.#isStale = true;
          continue;
        }
        this.#entries = records.map(({ key, record }) => ({ key, record: record! }));
        // The role or the service allow no more.
        this.#held = place.limited ? records.length : this.#wanted;
        this.#isWhole = records.length < this.#held;
        this.#position = place.position;
        this.#readAt = Date.now();
        attempt = 0;
        this.#publish();
        for (const changes of this.#buffer) this.#apply(changes);
      } catch (error) {
        this.#isStale = true;
        if (!(error instanceof SelkieError && error.retryable)) this.end(error);
      }
    }
    this.#isLoading = false;
  }

  /** Takes the changes of one transaction. */
  change(changes: RawChange[]): void {
    if (this.#isLoading) this.#buffer.push(changes);
    else this.#apply(changes);
    if (this.#isStale && !this.#isLoading) void this.load();
  }

  #apply(changes: RawChange[]) {
    if (this.#isStale) return;
    if (this.#position && covers(this.#position, changes[0]!.position)) return;
    this.#position = undefined;
    this.#isStale = !changes.every((change) => this.#place(change)) || this.#lacks();
    if (!this.#isStale) this.#publish();
  }

  /** Whether records that are not held may have come into the list. */
  #lacks(): boolean {
    return !this.#isWhole && this.#entries.length < Math.min(this.#call.limit ?? Infinity, this.#held);
  }

  /** Applies a change; returns false if only MariaDB knows the record's place. */
  #place({ key, record, type }: RawChange): boolean {
    const entries = this.#entries;
    const at = entries.findIndex((entry) => entry.key === key);
    const entry = type !== "delete" && { key, record: record! };
    if (entry && at >= 0 && this.#compare(entries[at]!, entry) === 0) {
      entries[at] = entry;
      return true;
    }
    if (at >= 0) entries.splice(at, 1);
    if (!entry) return true;
    let [from, to] = [0, entries.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const result = this.#compare(entries[middle]!, entry);
      if (Number.isNaN(result)) return false;
      if (result > 0) to = middle;
      else from = middle + 1;
    }
    if (from < entries.length || this.#isWhole) entries.splice(from, 0, entry);
    if (entries.length > this.#held) {
      entries.pop();
      this.#isWhole = false;
    }
    return true;
  }

  #publish() {
    const shown = this.#entries.slice(0, this.#call.limit).map(({ record }) => {
      if (!this.#hidden.length) return record;
      return Object.fromEntries(Object.entries(record).filter(([name]) => !this.#hidden.includes(name)));
    });
    this.records = shown;
    this.#settle.resolve();
    this.#tell();
  }
}

const hubs = new WeakMap<Http, Hub>();

export function live<R>(http: Http, table: TablePath, call: LiveCall): LiveList<R> {
  const hub = hubs.get(http) ?? new Hub(http);
  hubs.set(http, hub);
  return new List(hub, table, call) as LiveList<R>;
}
