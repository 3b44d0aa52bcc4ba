// Tables themselves: their definitions, and changes of them. Must not know how requests are sent.
import type { Http } from "./http.js";
import { nameOf, pathOf, search } from "./operations.js";
import type { CallOptions } from "./types.js";

/** SQL that stands in parentheses. */
export interface SqlExpression {
  readonly expression: string;
}

export interface ColumnDefinition {
  readonly name: string;
  /** As MariaDB writes it: `varchar(200)`, `decimal(10,2) unsigned`, `enum('a','b')`. */
  readonly type: string;
  readonly charset?: string;
  readonly collation?: string;
  /** By default false: NOT NULL. */
  readonly nullable?: boolean;
  readonly default?: string | number | boolean | SqlExpression | null;
  /** `current_timestamp()`, or with digits of seconds. */
  readonly onUpdate?: string;
  readonly autoIncrement?: boolean;
  readonly generated?: SqlExpression & { readonly stored?: boolean };
  readonly check?: SqlExpression;
  readonly invisible?: boolean;
  readonly comment?: string;
}

/** Where the column stands: by default at the end, or where it is. */
export interface ColumnPlace {
  readonly first?: boolean;
  readonly after?: string;
}

export interface IndexDefinition {
  readonly name?: string;
  readonly kind?: "index" | "unique" | "fulltext";
  readonly columns: readonly (
    | string
    | { readonly column: string; readonly length?: number; readonly descending?: boolean }
  )[];
}

type ReferenceAction = "restrict" | "cascade" | "set null" | "no action";

export interface ForeignKeyDefinition {
  readonly name?: string;
  readonly columns: readonly string[];
  readonly references: { readonly database?: string; readonly table: string; readonly columns: readonly string[] };
  readonly onDelete?: ReferenceAction;
  readonly onUpdate?: ReferenceAction;
}

export interface NewTable {
  readonly columns: readonly ColumnDefinition[];
  readonly primaryKey?: readonly string[];
  readonly indexes?: readonly IndexDefinition[];
  readonly foreignKeys?: readonly ForeignKeyDefinition[];
  readonly comment?: string;
}

/** How MariaDB changes a table, by rising cost. */
export type Algorithm = "instant" | "nocopy" | "inplace" | "copy";

export interface Alteration {
  readonly addColumns?: readonly (ColumnDefinition & ColumnPlace)[];
  /** `column` is the present name. The definition replaces the old one as a whole. */
  readonly changeColumns?: readonly (ColumnDefinition & ColumnPlace & { readonly column: string })[];
  readonly dropColumns?: readonly string[];
  readonly addIndexes?: readonly IndexDefinition[];
  readonly dropIndexes?: readonly string[];
  readonly addForeignKeys?: readonly ForeignKeyDefinition[];
  readonly dropForeignKeys?: readonly string[];
  /** `null` drops the primary key. */
  readonly primaryKey?: readonly string[] | null;
  readonly comment?: string;
  /** The new name of the table. */
  readonly rename?: string;
  /** The most costly algorithm that is accepted. */
  readonly algorithm?: Algorithm;
}

export interface SchemaOptions extends CallOptions {
  /** Changes nothing: tells what the change would cost. */
  readonly dryRun?: boolean;
}

export interface SchemaChange {
  sql: string;
  /** Only of `alter`. */
  algorithm: Algorithm | null;
  /** What other statements may not do meanwhile: nothing, write, or read and write. */
  lock: "none" | "shared" | "exclusive" | null;
  /** About how many records the table has. */
  rows: number;
  /** The size of data and indexes. */
  bytes: number;
  done: boolean;
  warnings: { level: string; code: number; message: string }[];
}

export interface TableDefinition {
  kind: "table" | "view";
  /** The statement that creates it. */
  create: string;
  columns: ColumnDefinition[];
  primaryKey: string[];
  indexes: (Omit<IndexDefinition, "kind"> & { name: string; kind: string })[];
  foreignKeys: (ForeignKeyDefinition & { name: string })[];
  triggers: { name: string; timing: string; event: string; statement: string }[];
  comment: string;
  charset: string;
  collation: string;
  rows: number;
  bytes: number;
}

export interface DatabaseObjects {
  routines: { name: string; kind: "function" | "procedure" }[];
  triggers: { name: string; table: string }[];
  views: { name: string }[];
  events: { name: string; enabled: boolean }[];
}

export class Schema {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Returns the definition of a table or view, as `"shop.orders"`. */
  table(name: string, call?: CallOptions): Promise<TableDefinition> {
    return this.#get(pathOf(nameOf(name)).slice(5), call);
  }

  /** Returns what a database has besides tables. */
  database(name: string, call?: CallOptions): Promise<DatabaseObjects> {
    return this.#get(encodeURIComponent(name), call);
  }

  create(name: string, create: NewTable, options?: SchemaOptions): Promise<SchemaChange> {
    return this.#change(name, { create }, options);
  }

  alter(name: string, alter: Alteration, options?: SchemaOptions): Promise<SchemaChange> {
    return this.#change(name, { alter }, options);
  }

  /** Deletes all records. */
  truncate(name: string, options?: SchemaOptions): Promise<SchemaChange> {
    return this.#change(name, { truncate: true }, options);
  }

  drop(name: string, options?: SchemaOptions): Promise<SchemaChange> {
    return this.#change(name, { drop: true }, options);
  }

  async #get<R>(path: string, call: CallOptions = {}): Promise<R> {
    return (await this.#http.envelope<R>({ method: "GET", path: `schema/${path}`, repeat: "always" }, call)).payload;
  }

  async #change(name: string, change: object, { dryRun, ...call }: SchemaOptions = {}): Promise<SchemaChange> {
    const body = { ...nameOf(name), ...change };
    const path = `schema${search({ dryRun })}`;
    return (await this.#http.envelope<SchemaChange>({ method: "POST", path, body, repeat: "refused" }, call)).payload;
  }
}
