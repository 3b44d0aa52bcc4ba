// Types of tables, options and results. Must not contain code, nor know how requests are sent.
import type { AggregateName, Equality, OPERATORS } from "./lists.js";

/** The type of what is unknown without generated types. It is `any`, so that the checker accepts every use. */
// biome-ignore lint/suspicious/noExplicitAny: the one place; all others use this name.
export type Untyped = any;

/** The types of one table, as `selkie types --lang ts` prints them. */
export interface AnyTable {
  row: Untyped;
  insert: Untyped;
  update: Untyped;
  key: Untyped;
  relations: Untyped;
}

/** The database of a client without generated types: every name is allowed, every value is `any`. */
export interface AnyDatabase {
  [database: string]: { [table: string]: AnyTable };
}

type Text<K> = K & string;
type IsAny<T> = 0 extends 1 & T ? true : false;
type Flat<T> = { [K in keyof T]: T[K] } & {};
type Intersection<U> = (U extends unknown ? (of: U) => void : never) extends (of: infer I) => void ? I : never;

/** The names of all tables, as `"shop.orders"`. */
export type TableName<DB> = { [D in Text<keyof DB>]: `${D}.${Text<keyof DB[D]>}` }[Text<keyof DB>];

/** The table of a name: the database is the part before the first dot. */
export type TableOf<DB, Name> = Name extends `${infer D}.${infer T}`
  ? D extends keyof DB
    ? T extends keyof DB[D]
      ? DB[D][T] extends AnyTable
        ? DB[D][T]
        : never
      : never
    : never
  : never;

export type Field<T extends AnyTable> = Text<keyof T["row"]>;
type RelationName<T extends AnyTable> = IsAny<T["relations"]> extends true ? string : Text<keyof T["relations"]>;
type Related<DB, T extends AnyTable, K> =
  IsAny<T["relations"]> extends true
    ? AnyTable
    : K extends keyof T["relations"]
      ? TableOf<DB, T["relations"][K]["table"]>
      : never;

/** A record's key. A composite key may also be given as a list of its values, in the key's order. */
export type Key<T extends AnyTable> = T["key"] | readonly (string | number)[];

// Conditions

type Comparable<V> =
  | V
  | (V extends number ? string | boolean | bigint : never)
  | (string extends V ? number | Date : never);

/** What the kinds of operands in `OPERATORS` are. */
interface Operands<V> {
  any: Comparable<V> | null | readonly Comparable<V>[];
  value: Comparable<V>;
  list: readonly Comparable<V>[];
  pair: readonly [Comparable<V>, Comparable<V>];
  flag: boolean;
  texts: string | readonly string[];
  text: string;
}

/** Short forms of the operators. Several in one object must all hold. */
type Operators<V> = { readonly [O in keyof typeof OPERATORS]?: Operands<V>[(typeof OPERATORS)[O]] } & {
  /** True if these operators do not hold. */
  readonly not?: Operators<V>;
};

/** A condition in the API's own form, for conditions that the short operators can't express. */
interface ApiCondition {
  readonly value?: unknown;
  readonly equality?: Equality | (string & {});
  readonly not?: boolean;
  readonly operator?: "AND" | "OR";
  readonly fieldName?: string;
  readonly tableName?: string;
}

export type Condition<V> =
  | Comparable<NonNullable<V>>
  | null
  | readonly Comparable<NonNullable<V>>[]
  | Operators<NonNullable<V>>
  | ApiCondition;

/** Conditions on related records. */
interface Quantified<DB, T extends AnyTable> {
  readonly some?: Where<DB, T>;
  readonly none?: Where<DB, T>;
  readonly every?: Where<DB, T>;
}

/** Conditions that must all hold. A name with a dot is a field of a joined or link table, or the label of an API condition. */
export type Where<DB, T extends AnyTable> = { readonly [F in Field<T>]?: Condition<T["row"][F]> } & {
  readonly [K in Exclude<RelationName<T>, Field<T>>]?: Quantified<DB, Related<DB, T, K>>;
} & {
  readonly and?: readonly Where<DB, T>[];
  readonly or?: readonly Where<DB, T>[];
} & { readonly [name: `${string}.${string}`]: Condition<Untyped> };

// Reads

type Direction = "asc" | "desc" | "ASC" | "DESC";
type OrderItem<T extends AnyTable, Alias extends string> =
  | Field<T>
  | `-${Field<T>}`
  | Alias
  | `-${Alias}`
  | { readonly [F in Field<T> | Alias]?: Direction }
  | { readonly field: string; readonly strategy?: Direction; readonly tableName?: string };
/** `"id"`, `"-id"` for descending, `{ id: "desc" }`, or a list of these. A list of records may also be ordered by an `Alias`. */
export type Order<T extends AnyTable, Alias extends string = never> =
  | OrderItem<T, Alias>
  | readonly OrderItem<T, Alias>[];

type DatePart = "year" | "month" | "day";
interface SelectObject<T extends AnyTable> {
  readonly fieldName?: Field<T> | "*";
  readonly alias?: string;
  readonly aggregate?: AggregateName;
  /** A part of a date in `group`. */
  readonly part?: DatePart;
  /** Over fields and numbers, such as `"price * amount"`, with an aggregate and an alias, instead of `fieldName`. */
  readonly expression?: string;
}
export type Select<T extends AnyTable> = readonly (Field<T> | SelectObject<T>)[];

interface Fields<T extends AnyTable> {
  readonly select?: Select<T>;
  readonly omit?: readonly Field<T>[];
}

interface IncludeOptions<DB, T extends AnyTable> extends Fields<T> {
  /** Another name for the member of the record. */
  readonly as?: string;
  readonly where?: Where<DB, T>;
  readonly order?: Order<T>;
  /** The greatest number of related records of each record. */
  readonly limit?: number;
  readonly include?: Include<DB, T>;
}
type IncludeMap<DB, T extends AnyTable> = {
  readonly [K in RelationName<T>]?: true | IncludeOptions<DB, Related<DB, T, K>>;
};
/** Relations with `true` or options, a list of names, or a list of both (for one relation twice). */
export type Include<DB, T extends AnyTable> = IncludeMap<DB, T> | readonly (RelationName<T> | IncludeMap<DB, T>)[];

/** A join, as the API writes it. */
interface Join {
  readonly tableName: string;
  readonly alias?: string;
  readonly joinType?: "INNER JOIN" | "JOIN" | "LEFT JOIN" | "RIGHT JOIN";
  readonly match: object | readonly object[];
  readonly operator?: "AND" | "OR";
  readonly selectFields?: readonly unknown[];
  readonly omitFields?: readonly string[];
  readonly nest?: boolean;
}

/** Options that every call takes. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds until an attempt fails with the code `timeout`; 0: never. */
  readonly timeout?: number;
  /** How often a failed attempt is repeated. */
  readonly retries?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Allows retries of this call even if its outcome is unknown. */
  readonly repeatable?: boolean;
}

export interface GetOptions<DB, T extends AnyTable> extends Fields<T>, CallOptions {
  readonly include?: Include<DB, T>;
  readonly join?: readonly Join[];
}

export interface ListOptions<DB, T extends AnyTable> extends GetOptions<DB, T> {
  readonly where?: Where<DB, T>;
  /** Fields, or aliases of `select` and `fullTextSearch`. */
  readonly order?: Order<T, string>;
  readonly limit?: number;
  readonly page?: number;
  readonly offset?: number;
  /** The cursor `next` that an earlier answer to the same call had. */
  readonly after?: string;
  readonly count?: boolean;
  readonly group?: Field<T> | readonly (Field<T> | { readonly fieldName: Field<T>; readonly part?: DatePart })[];
  readonly distinct?: boolean;
  readonly fullTextSearch?: {
    readonly fields: readonly Field<T>[];
    readonly searchTerm: string;
    readonly mode?: "natural" | "boolean" | "expansion";
    readonly scoreAlias?: string;
  };
}

/** Records whose changes are followed. */
interface FollowOptions<DB, T extends AnyTable> {
  readonly select?: readonly Field<T>[];
  readonly omit?: readonly Field<T>[];
  /** Conditions on fields of this table. */
  readonly where?: Where<DB, T>;
  readonly signal?: AbortSignal;
}

export interface ChangesOptions<DB, T extends AnyTable> extends FollowOptions<DB, T> {
  /** `next` of an earlier change, to go on after it. */
  readonly since?: string;
  /** Begin with all records, unless `since` is given, and again whenever the feed can't go on. */
  readonly snapshot?: boolean;
  /** Is called with a token for `since` when changes are followed: first, and after each snapshot, which is `limited` if
   * the key's role withholds records. */
  readonly onReady?: (next: string, limited?: true) => void;
}

export interface LiveOptions<DB, T extends AnyTable> extends FollowOptions<DB, T> {
  readonly order?: Order<T>;
  readonly limit?: number;
}

// Results

type AliasOf<I> = I extends { alias: infer A extends string }
  ? A
  : I extends { aggregate: infer G extends string; fieldName: infer F extends string }
    ? `${Lowercase<G>}_${F}`
    : I extends { part: infer P extends string; fieldName: infer F extends string }
      ? `${P}_${F}`
      : I extends { fieldName: infer F extends string }
        ? F
        : never;
type ValueOf<T extends AnyTable, I> = I extends { aggregate: infer G }
  ? G extends "COUNT" | "COUNT_DISTINCT"
    ? number
    : I extends { fieldName: infer F extends Field<T> }
      ? G extends "MIN" | "MAX"
        ? T["row"][F] | null
        : T["row"][F] extends number | null
          ? string | number | null
          : string | null
      : I extends { expression: string }
        ? string | number | null
        : unknown
  : I extends { part: string }
    ? number | null
    : I extends { fieldName: infer F extends Field<T> }
      ? T["row"][F]
      : unknown;

type Selected<T extends AnyTable, O> = O extends { select: infer S extends readonly unknown[] }
  ? { [F in Extract<S[number], string>]: F extends keyof T["row"] ? T["row"][F] : unknown } & {
      [I in Extract<S[number], object> as AliasOf<I>]: ValueOf<T, I>;
    }
  : O extends { omit: infer M extends readonly string[] }
    ? Omit<T["row"], M[number]>
    : T["row"];

type Member<DB, T extends AnyTable, K, O> =
  IsAny<T["relations"]> extends true
    ? Untyped
    : K extends keyof T["relations"]
      ? T["relations"][K]["kind"] extends "one"
        ? Result<DB, Related<DB, T, K>, O> | null
        : Result<DB, Related<DB, T, K>, O>[]
      : never;
type IncludedItem<DB, T extends AnyTable, E> = E extends string
  ? { [K in E]: Member<DB, T, K, true> }
  : { -readonly [K in keyof E as E[K] extends { as: infer A extends string } ? A : K]: Member<DB, T, K, E[K]> };
type Included<DB, T extends AnyTable, O> = O extends { include: infer I }
  ? I extends readonly (infer E)[]
    ? Intersection<E extends unknown ? IncludedItem<DB, T, E> : never>
    : IncludedItem<DB, T, I>
  : unknown;
type Scored<O> = O extends { fullTextSearch: { scoreAlias: infer A extends string } } ? { [K in A]: number } : unknown;
type Joined<O> = O extends { join: readonly unknown[] } ? { [field: string]: Untyped } : unknown;

/** The record that a read with the options `O` gives. */
export type Result<DB, T extends AnyTable, O> =
  IsAny<T["row"]> extends true ? Untyped : Flat<Selected<T, O> & Included<DB, T, O> & Scored<O> & Joined<O>>;

type StrictMap<DB, T extends AnyTable, M> = {
  [K in keyof M]: K extends RelationName<T>
    ? M[K] extends object
      ? Strict<DB, Related<DB, T, K>, M[K], IncludeOptions<DB, Related<DB, T, K>>>
      : M[K]
    : never;
};
/** Refuses options that `Shape` lacks: TypeScript would accept them in an argument of a generic type. */
export type Strict<DB, T extends AnyTable, O, Shape> = {
  [K in keyof O]: K extends keyof Shape
    ? K extends "include"
      ? O[K] extends readonly unknown[]
        ? O[K]
        : StrictMap<DB, T, O[K]>
      : K extends "where"
        ? StrictWhere<DB, T, O[K]>
        : K extends "order"
          ? Order<T, Alias<O>>
          : O[K]
    : never;
};
type Alias<O> =
  | (O extends { select: readonly (infer I)[] } ? AliasOf<I> : never)
  | Text<keyof (unknown extends Scored<O> ? {} : Scored<O>)>;
type StrictWhere<DB, T extends AnyTable, W> =
  IsAny<T["row"]> extends true
    ? W
    : {
        [K in keyof W]: K extends keyof Where<DB, T>
          ? K extends "and" | "or"
            ? StrictList<DB, T, W[K]>
            : K extends Exclude<RelationName<T>, Field<T>>
              ? StrictQuantified<DB, Related<DB, T, K>, W[K]>
              : W[K]
          : never;
      };
type StrictList<DB, T extends AnyTable, L> = { [I in keyof L]: StrictWhere<DB, T, L[I]> };
type StrictQuantified<DB, T extends AnyTable, Q> = { [N in keyof Q]: StrictWhere<DB, T, Q[N]> };

/** The records of a list; `next`, `more`, `count` and `limited` are not among them. */
export interface List<R> extends Array<R> {
  /** The cursor of the next page, for `after`; absent on the last one, and where there is no cursor. */
  readonly next?: string;
  /** Whether further records follow without a cursor, so that `offset` goes on. */
  readonly more?: boolean;
  /** The number of all records that match, if `count` was asked for. */
  readonly count?: number;
  /** Whether the key's role withholds further records from this answer. */
  readonly limited?: boolean;
}

// Changes

interface AnyChange<K> {
  key: K;
  /** The position after the transaction. A snapshot's records have none. */
  position?: string;
  /** When the transaction was committed. */
  at?: string;
  /** The last change of its transaction. */
  end?: true;
  /** The token to go on after this change, for `since`. A snapshot's records have none. */
  next?: string;
}
interface InsertChange<K, R> extends AnyChange<K> {
  type: "insert";
  record: R;
  /** The record did not meet the conditions before, or the role's rules. */
  entered?: true;
  /** A record of the snapshot. */
  snapshot?: true;
}
interface UpdateChange<K, R> extends AnyChange<K> {
  type: "update";
  record: R;
  changed: string[];
}
interface DeleteChange<K, R> extends AnyChange<K> {
  type: "delete";
  /** The record before; absent if it left. */
  record?: R;
  /** The record does not meet the conditions any more, or the role's rules. */
  left?: true;
}
/** All records follow anew, as a snapshot. */
interface Resync {
  type: "resync";
  reason: string;
}
/** What `changes` yields with the options `O`. */
export type Change<DB, T extends AnyTable, O> =
  | InsertChange<T["key"], Result<DB, T, O>>
  | UpdateChange<T["key"], Result<DB, T, O>>
  | DeleteChange<T["key"], Result<DB, T, O>>
  | (O extends { snapshot: true } ? Resync : never);

// Writes

type Value<V> = V | (string extends V ? Date | number : never) | (number extends V ? bigint | boolean : never);
type Values<R> = { readonly [K in keyof R]: Value<R[K]> };
export type Insert<T extends AnyTable> = IsAny<T["insert"]> extends true ? Untyped : Values<T["insert"]>;
type Add<V> = NonNullable<V> extends number | string ? { readonly $add: number | bigint | string } : never;
export type Update<T extends AnyTable> =
  IsAny<T["update"]> extends true
    ? Untyped
    : { readonly [K in keyof T["update"]]: Values<T["update"]>[K] | Add<T["update"][K]> };

interface WriteOptions<T extends AnyTable> extends CallOptions {
  /** Returns the written records, with these fields or all of them (`"*"`). */
  readonly returning?: "*" | readonly Field<T>[];
  /** Returns how many records the write would affect, and rolls it back. */
  readonly dryRun?: boolean;
}
export interface InsertOptions<T extends AnyTable> extends WriteOptions<T> {
  readonly onConflict?: "update" | "ignore";
  /** Your own key instead of a random one; false: no key, so an insert whose answer was lost is not retried. */
  readonly idempotencyKey?: string | false;
}
export interface ChangeOptions<T extends AnyTable> extends WriteOptions<T> {
  /** The ETag of the record, or the record itself as `get` or `returning: "*"` returned it; `"*"`: any existing
   * record. */
  readonly ifMatch?: string | T["row"];
}
export interface ManyOptions<T extends AnyTable> extends WriteOptions<T> {
  readonly maxAffected?: number;
}
/** Selects the records that an update or removal of several records affects. */
export interface Selection<DB, T extends AnyTable> {
  readonly where: Where<DB, T>;
}

type Returned<T extends AnyTable, O> =
  IsAny<T["row"]> extends true
    ? Untyped
    : O extends { returning: infer R }
      ? R extends readonly (infer F extends Field<T>)[]
        ? Pick<T["row"], F>
        : T["row"]
      : never;
type Answer<O, Plain, Row> = O extends { dryRun: true }
  ? number
  : O extends { returning: string | readonly string[] }
    ? Row
    : Plain;
type OrIgnored<O> = O extends { onConflict: "ignore" } ? null : never;
export type Inserted<T extends AnyTable, O> = Answer<O, T["key"] | OrIgnored<O>, Returned<T, O> | OrIgnored<O>>;
export type InsertedMany<T extends AnyTable, O> = Answer<
  O,
  (T["key"] | OrIgnored<O>)[],
  (Returned<T, O> | OrIgnored<O>)[]
>;
export type Changed<T extends AnyTable, O> = Answer<O, number, Returned<T, O> | null>;
export type ChangedMany<T extends AnyTable, O> = Answer<O, number, Returned<T, O>[]>;

// Schemas

/** A field of a table, as its schema describes it. */
export interface SchemaField {
  name: string;
  type: string;
  required: boolean;
  nullable: boolean;
  default: string | null;
  primaryKey: boolean;
  autoIncrement: boolean;
  generated: boolean;
  writable: boolean;
  unique: boolean;
  jsonType?: "json";
  invisible?: true;
  /** The members of an ENUM or SET. */
  values?: string[];
  references: { table: string; field: string } | null;
  comment: string;
}

export interface SchemaRelation {
  name: string;
  kind: "one" | "many";
  table: string;
  fields: string[];
  references: string[];
  /** The link table of a many-to-many relation. */
  through?: string;
}

export interface TableSchema {
  kind: "table" | "view";
  methods: string[];
  schema: SchemaField[];
  /** The fields of each full-text index: a search must name exactly the fields of one. Absent if there is none. */
  fullText?: string[][];
  relations: SchemaRelation[];
}
