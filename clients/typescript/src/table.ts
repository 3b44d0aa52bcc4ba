// The calls on one table. Must not know how requests are formed, nor how they are repeated.
import { read } from "./conditions.js";
import { SelkieError } from "./errors.js";
import { follow } from "./feed.js";
import { type Http, listOf, type Request } from "./http.js";
import { live, type LiveCall, type LiveList } from "./live.js";
import { type Description, describe, isSelection, keepTag, nameOf, pathOf, type TablePath } from "./operations.js";
import { lines } from "./stream.js";
import type {
  AnyTable,
  CallOptions,
  Change,
  ChangeOptions,
  Changed,
  ChangedMany,
  ChangesOptions,
  GetOptions,
  Insert,
  InsertOptions,
  Inserted,
  InsertedMany,
  Key,
  List,
  ListOptions,
  LiveOptions,
  ManyOptions,
  Result,
  Selection,
  Strict,
  TableSchema,
  Update,
  Where,
} from "./types.js";

/** Records of a page of `pages` if the caller gives no `limit`. */
const PAGE_RECORDS = 1_000;

/** Returns a random idempotency key for an insert, even in a page over http, which has no `crypto.randomUUID`. */
const randomKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A table or view. */
export class Table<DB, T extends AnyTable> {
  readonly #http: Http;
  readonly #name: TablePath;
  readonly #path: string;
  /** Whether the server refused an Idempotency-Key for this table, whose engine has no transactions. */
  #refusesKeys = false;

  constructor(http: Http, name: string) {
    this.#http = http;
    this.#name = nameOf(name);
    this.#path = pathOf(this.#name);
  }

  #send<R>({ ifMatch, ...request }: Description, call: CallOptions) {
    return this.#http.envelope<R>(ifMatch ? { ...request, headers: { "if-match": ifMatch } } : request, call);
  }

  /** Returns the record, or null if there is none with this key. */
  async get<const O extends GetOptions<DB, T> = {}>(
    key: Key<T>,
    options?: O & Strict<DB, T, O, GetOptions<DB, T>>,
  ): Promise<Result<DB, T, O> | null> {
    const call: GetOptions<DB, T> = options ?? {};
    const request = describe.get(this.#path, key, call);
    try {
      const { payload, etag } = await this.#send<Result<DB, T, O>>(request, call);
      if (!request.path.includes("?")) keepTag(payload, etag);
      return payload;
    } catch (error) {
      if (error instanceof SelkieError && error.code === "record_not_found") return null;
      throw error;
    }
  }

  /** Returns the records; the list has `next` or `more` if further records follow, and `count` if requested. */
  list<const O extends ListOptions<DB, T> = {}>(
    options?: O & Strict<DB, T, O, ListOptions<DB, T>>,
  ): Promise<List<Result<DB, T, O>>> {
    return this.#list(options ?? {});
  }

  async #list<R>(call: ListOptions<DB, T>): Promise<List<R>> {
    return listOf(await this.#send<R[]>(describe.list(this.#path, call), call));
  }

  /** Returns the number of records that meet the conditions, or of all records. */
  async count({ where, ...call }: { readonly where?: Where<DB, T> } & CallOptions = {}): Promise<number> {
    const request = describe.list(this.#path, { where, limit: 0, count: true });
    return (await this.#send(request, call)).count!;
  }

  /** Reads page by page, each with at most `limit` (by default 1,000) records. */
  async *pages<const O extends ListOptions<DB, T> = {}>(
    options?: O & Strict<DB, T, O, ListOptions<DB, T>>,
  ): AsyncGenerator<List<Result<DB, T, O>>, void, undefined> {
    yield* this.#pages(options ?? {});
  }

  async *#pages<R>({ limit = PAGE_RECORDS, ...options }: ListOptions<DB, T>): AsyncGenerator<List<R>, void, undefined> {
    let read: ListOptions<DB, T> = options;
    for (;;) {
      const records = await this.#list<R>({ ...read, limit });
      yield records;
      // The options `page` and `offset` exclude each other, and a cursor excludes both.
      const { page = 1, offset = (page - 1) * limit, ...rest } = read;
      if (records.next) read = { ...rest, after: records.next };
      else if (records.more) read = { ...rest, offset: offset + records.length };
      else return;
    }
  }

  /** Reads records one by one from one streamed answer, in constant memory. */
  async *stream<const O extends ListOptions<DB, T> = {}>(
    options?: O & Strict<DB, T, O, ListOptions<DB, T>>,
  ): AsyncGenerator<Result<DB, T, O>, void, undefined> {
    const call: ListOptions<DB, T> = options ?? {};
    const request: Request = {
      ...describe.list(this.#path, call),
      headers: { accept: "application/x-ndjson" },
      streams: true,
    };
    const records = await this.#http.send(request, call, async (response, release) => {
      const whole = !response.headers.get("x-selkie-limited");
      if (whole) return lines<Result<DB, T, O>>(response, release, call.signal);
      release();
      await response.body?.cancel();
      return undefined;
    });
    if (records) {
      yield* records;
      return;
    }
    // The key's role limits the records of one answer, so they are read in several answers.
    let left = call.limit ?? Infinity;
    for await (const page of this.#pages<Result<DB, T, O>>(call)) {
      for (const record of page) {
        if (left-- <= 0) return;
        yield record;
      }
      if (left <= 0) return;
    }
  }

  /** Yields what changes from now on, or after `since`, whoever changes it. Connects again when the connection breaks;
   * throws `resync_required` if changes can't be told without a gap, unless `snapshot` is set. */
  async *changes<const O extends ChangesOptions<DB, T> = {}>(
    options?: O & Strict<DB, T, O, ChangesOptions<DB, T>>,
  ): AsyncGenerator<Change<DB, T, O>, void, undefined> {
    const {
      since,
      snapshot,
      signal = new AbortController().signal,
      onReady,
      ...selected
    } = (options ?? {}) as ChangesOptions<DB, T>;
    const messages = follow(this.#http, [{ ...this.#name, ...read(selected) }], { since, snapshot, signal });
    let isReady = false;
    for await (const [name, value, next] of messages) {
      if (name === "transaction") {
        if (!isReady) onReady?.(next, value.limited);
        isReady = true;
      } else if (name === "resync") {
        isReady = false;
        yield { type: name, ...value } as Change<DB, T, O>;
      } else {
        const { subscription: _, ...change } = value;
        yield (next ? { ...change, next } : change) as Change<DB, T, O>;
      }
    }
  }

  /** Returns a list that stays what a read at that moment would give. All live lists of a client share one connection. */
  live<const O extends LiveOptions<DB, T> = {}>(
    options?: O & Strict<DB, T, O, LiveOptions<DB, T>>,
  ): LiveList<Result<DB, T, O>> {
    return live(this.#http, this.#name, (options ?? {}) as LiveCall);
  }

  /** Inserts one record, or all of a list or none, and returns the keys. */
  insert<const O extends InsertOptions<T> = {}>(
    records: readonly Insert<T>[],
    options?: O,
  ): Promise<InsertedMany<T, O>>;
  insert<const O extends InsertOptions<T> = {}>(record: Insert<T>, options?: O): Promise<Inserted<T, O>>;
  async insert(records: unknown, options: InsertOptions<T> = {}): Promise<unknown> {
    const request = describe.insert(this.#path, records, options);
    const { idempotencyKey, dryRun } = options;
    const repeats = (options.retries ?? this.#http.options.retries) !== 0;
    const own = idempotencyKey === undefined && !dryRun && repeats && !this.#refusesKeys ? randomKey() : undefined;
    const key = idempotencyKey || own;
    const safely: Request = key ? { ...request, repeat: "always", headers: { "idempotency-key": key } } : request;
    const answer = this.#http.envelope(safely, options).catch((error: unknown) => {
      // Views and tables without transactions refuse the key before anything is inserted.
      if (!own || !(error instanceof SelkieError) || error.status >= 409 || !error.message.includes("Idempotency-Key"))
        throw error;
      this.#refusesKeys = true;
      return this.#http.envelope(request, options);
    });
    return this.#record(answer);
  }

  /** Changes the record with this key, or all records that meet the conditions, and returns their number. */
  update<const O extends ManyOptions<T> = {}>(
    which: Selection<DB, T>,
    data: Update<T>,
    options?: O,
  ): Promise<ChangedMany<T, O>>;
  update<const O extends ChangeOptions<T> = {}>(key: Key<T>, data: Update<T>, options?: O): Promise<Changed<T, O>>;
  update(which: unknown, data: unknown, options: ChangeOptions<T> & ManyOptions<T> = {}): Promise<unknown> {
    return this.#change(() => describe.update(this.#path, which, data, options), which, options);
  }

  /** Deletes the record with this key, or all records that meet the conditions, and returns their number. */
  remove<const O extends ManyOptions<T> = {}>(which: Selection<DB, T>, options?: O): Promise<ChangedMany<T, O>>;
  remove<const O extends ChangeOptions<T> = {}>(key: Key<T>, options?: O): Promise<Changed<T, O>>;
  remove(which: unknown, options: ChangeOptions<T> & ManyOptions<T> = {}): Promise<unknown> {
    return this.#change(() => describe.remove(this.#path, which, options), which, options);
  }

  async #change(request: () => Description, which: unknown, call: CallOptions) {
    const answer = this.#send(request(), call);
    return isSelection(which) ? (await answer).payload : this.#record(answer);
  }

  async #record(answer: Promise<{ payload: unknown; etag?: string }>) {
    const { payload, etag } = await answer;
    keepTag(payload, etag);
    return payload;
  }

  /** Returns the table's fields, relations, and the methods that the key may use. */
  async schema(call: CallOptions = {}): Promise<TableSchema> {
    return (await this.#send<TableSchema>({ method: "GET", path: `${this.#path}/_schema`, repeat: "always" }, call))
      .payload;
  }
}
