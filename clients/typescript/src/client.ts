// The client: tables, batches, SQL, schemas, media. Must not know how their requests are formed.
import { type Answers, answersOf, Batch, type Operation, operations } from "./batch.js";
import { Http, type ClientOptions, type Request } from "./http.js";
import { Media } from "./media.js";
import { search } from "./operations.js";
import { Schema } from "./schema.js";
import { Table } from "./table.js";
import type { AnyDatabase, CallOptions, TableName, TableOf, Untyped } from "./types.js";

export type SqlValue = string | number | bigint | boolean | null | Date;

/** A parameter of an SQL statement; a list stands for several values, as in `IN (${ids})`. */
type SqlParameter = SqlValue | readonly SqlValue[];

/** The answer of a statement that returns no rows. */
export interface SqlChange {
  affectedRows: number;
  insertId: number | string;
  warnings: number;
}

export interface SqlOptions extends CallOptions {
  /** The default schema of the statement. */
  readonly database?: string;
}

/** Runs the statement. `R` is the whole answer: rows, a `SqlChange`, or the lists of a CALL. */
export type SqlTag = <R = Record<string, Untyped>[]>(
  text: TemplateStringsArray,
  ...values: SqlParameter[]
) => Promise<R>;

export interface Sql extends SqlTag {
  (options: SqlOptions): SqlTag;
}

/** Converts a `Date` to MariaDB's text in UTC: no column tells the server that the value is a time. */
const bound = (value: SqlValue) => (value instanceof Date ? value.toISOString().replace("T", " ").slice(0, -1) : value);

export class Selkie<DB = AnyDatabase> {
  readonly #http: Http;
  readonly media: Media;
  /** Definitions of tables, and changes of them. */
  readonly schema: Schema;
  /** `` sql`SELECT …` ``, or `` sql({ database: "shop" })`SELECT …` ``. Values become parameters and never text. */
  readonly sql: Sql;

  constructor(options: ClientOptions) {
    this.#http = new Http(options);
    this.media = new Media(this.#http);
    this.schema = new Schema(this.#http);
    const tag =
      (own: SqlOptions) =>
      <R>(text: TemplateStringsArray, ...values: SqlParameter[]) =>
        this.#run<R>(text, values, own);
    this.sql = ((first: TemplateStringsArray | SqlOptions, ...values: SqlParameter[]) =>
      "raw" in first ? this.#run(first, values, {}) : tag(first)) as Sql;
  }

  async #run<R>(
    text: readonly string[],
    values: readonly SqlParameter[],
    { database, ...call }: SqlOptions,
  ): Promise<R> {
    const lists = values.map((value) => (Array.isArray(value) ? value : [value]) as SqlValue[]);
    const marks = lists.map((list) => list.map(() => "?").join(", "));
    const body = {
      query: text.map((part, at) => part + (marks[at] ?? "")).join(""),
      params: lists.flat().map(bound),
      database: database ?? this.#http.options.database,
    };
    return (await this.#http.envelope<R>({ method: "POST", path: "sql", body, repeat: "refused" }, call)).payload;
  }

  /** Returns the calls on a table or view, as `"shop.orders"`. */
  table<N extends TableName<DB>>(name: N): Table<DB, TableOf<DB, N>> {
    return new Table(this.#http, name);
  }

  /** Runs the operations that `build` lists in one transaction, all or none, and returns their answers in order; a
   * list among them has `more` if further records follow. With `dryRun` they are undone after the last one. */
  async batch<const O extends readonly Operation<unknown>[]>(
    build: (batch: Batch<DB>) => O,
    { dryRun, ...call }: CallOptions & { readonly dryRun?: boolean } = {},
  ): Promise<Answers<O>> {
    const list = build(new Batch<DB>());
    const body = { operations: operations(list), dryRun };
    const request: Request = { method: "POST", path: "batch", body, repeat: dryRun ? "always" : "undone" };
    return answersOf(list, await this.#http.envelope<unknown[]>(request, call));
  }

  /** Sends a request for which this client has no method, and returns the answer's payload. `path` is below
   * `/api/v1/`. */
  async request<R = Untyped>(
    method: string,
    path: string,
    { query = {}, body, ...call }: CallOptions & { query?: Record<string, unknown>; body?: unknown } = {},
  ): Promise<R> {
    const repeat: Request["repeat"] = method === "GET" ? "always" : "refused";
    return (await this.#http.envelope<R>({ method, path: path + search(query), body, repeat }, call)).payload;
  }
}

/** Makes a client. `DB` is the type that `selkie types --lang ts` prints. */
export function createClient<DB = AnyDatabase>(options: ClientOptions): Selkie<DB> {
  return new Selkie<DB>(options);
}
