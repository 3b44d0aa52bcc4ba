// Describes the operations on a table: their requests and how their answers are read. Must not know whether they are
// sent alone or in a batch.
import { query, read } from "./conditions.js";
import type { Repeat } from "./errors.js";

/** A request on a table, as both a call and a batch send it. */
export interface Description {
  method: string;
  /** Relative to `/api/v1/`. */
  path: string;
  body?: unknown;
  ifMatch?: string;
  repeat: Repeat;
}

/** A placeholder for the key of a record that an earlier operation of the same batch inserts. */
export class Ref {
  constructor(
    private readonly index: () => number,
    private readonly row?: number,
  ) {}

  toJSON() {
    return { $ref: this.index(), row: this.row };
  }

  toString() {
    return `$ref:${this.index()}${this.row === undefined ? "" : `:${this.row}`}`;
  }
}

const tags = new WeakMap<object, string>();

/** Returns the ETag of a record from `get` without options or from `returning: "*"`. */
export function etagOf(record: object): string | undefined {
  return tags.get(record);
}

/** Remembers the ETag of a record, so that the record itself can be given as `ifMatch`. */
export function keepTag(record: unknown, etag: string | undefined): void {
  if (etag && typeof record === "object" && record) tags.set(record, etag);
}

function tagOf(match: unknown): string | undefined {
  if (match === undefined || typeof match === "string") return match as string | undefined;
  const tag = tags.get(match as object);
  if (tag) return tag;
  throw new TypeError(
    'ifMatch is a record without an ETag. Give one that get() without options or returning: "*" answered.',
  );
}

/** Returns a key as a path segment. Throws for an empty key, `.` and `..`, which would lead to another path. */
function part(key: unknown): string {
  if (key instanceof Ref) return String(key);
  const text = key instanceof Date ? key.toISOString() : String(key ?? "");
  const isValue = typeof key !== "object" || key instanceof Date;
  if (!isValue || /^\.{0,2}$/.test(text))
    throw new TypeError(`A record has no key ${JSON.stringify(key)}. Select it by conditions.`);
  return encodeURIComponent(text);
}

export interface TablePath {
  readonly database: string;
  readonly table: string;
}

/** Splits the name of a table: the database is the part before the first dot. */
export function nameOf(name: string): TablePath {
  const dot = name.indexOf(".");
  if (dot < 1 || dot === name.length - 1) throw new TypeError(`"${name}" is no name of a table, as "shop.orders".`);
  return { database: name.slice(0, dot), table: name.slice(dot + 1) };
}

export const pathOf = ({ database, table }: TablePath) =>
  `crud/${encodeURIComponent(database)}/${encodeURIComponent(table)}`;

/** Returns options as a query string: texts and numbers as they are, lists and objects as JSON. */
export function search(options: Record<string, unknown>): string {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const text = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value));
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, text(value)]))}` : "";
}

/** Returns whether the argument selects records by conditions, rather than one record by its key. */
export const isSelection = (what: unknown): what is { where: Record<string, unknown> } =>
  typeof what === "object" && what !== null && "where" in what;

interface Write {
  returning?: "*" | readonly string[];
  dryRun?: boolean;
  maxAffected?: number;
  onConflict?: string;
  ifMatch?: unknown;
}

const written = ({ returning, dryRun, maxAffected, onConflict }: Write) =>
  search({ returning: typeof returning === "object" ? returning.join() : returning, dryRun, maxAffected, onConflict });

const byKey = (path: string, key: unknown) => `${path}/${Array.isArray(key) ? key.map(part).join() : part(key)}`;

export const describe = {
  get: (path: string, key: unknown, options: object): Description => ({
    method: "GET",
    path: byKey(path, key) + search(read(options)),
    repeat: "always",
  }),

  // Sent by POST: the URL is then the same for all reads of a table, so browsers send a CORS preflight only once a day.
  list: (path: string, options: object): Description => ({
    method: "POST",
    path: `${path}/query`,
    body: read(options),
    repeat: "always",
  }),

  insert: (path: string, record: unknown, options: Write): Description => ({
    method: "POST",
    path: path + written(options),
    body: Array.isArray(record) ? { batchData: record } : record,
    repeat: "undone",
  }),

  update: (path: string, which: unknown, data: unknown, options: Write): Description => ({
    method: "PATCH",
    path: (isSelection(which) ? path : byKey(path, which)) + written(options),
    body: isSelection(which) ? { query: query(which.where), data } : data,
    ifMatch: tagOf(options.ifMatch),
    repeat: "undone",
  }),

  remove: (path: string, which: unknown, options: Write): Description => ({
    method: "DELETE",
    path: (isSelection(which) ? path : byKey(path, which)) + written(options),
    body: isSelection(which) ? { query: query(which.where) } : undefined,
    ifMatch: tagOf(options.ifMatch),
    repeat: "undone",
  }),
};
