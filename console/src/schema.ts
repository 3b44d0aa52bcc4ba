// Databases, tables and their schemas, as far as the key may see them. Must not know how they are shown.
import type { SchemaField as Field, SchemaRelation as Relation, TableSchema as Schema } from "@selkie/client";
import { signal } from "@preact/signals";
import { KINDS } from "./kinds";
import { api, tableOf } from "./session";

export type { Field, Relation, Schema };

interface TableEntry {
  name: string;
  kind: "table" | "view";
  comment: string;
  methods: string[];
}

export const databases = signal<string[] | null>(null);
export const tables = signal<Record<string, TableEntry[]>>({});

/** Maximum databases whose tables are read at once; the tables of the others are read when their database is opened. */
const READ_AT_ONCE = 12;

/** Reads the databases that the key may see, and the tables of the first ones and of `shown`. */
export async function loadDatabases(shown?: string): Promise<void> {
  const list = await api().request<{ name: string }[]>("GET", "crud");
  databases.value = list.map(({ name }) => name);
  const first = databases.value.filter((name, at) => at < READ_AT_ONCE || name === shown);
  // Ignores errors, since a database may be dropped before its tables are read.
  await Promise.allSettled(first.map(loadTables));
}

export async function loadTables(database: string): Promise<void> {
  const list = await api().request<TableEntry[]>("GET", `crud/${encodeURIComponent(database)}`);
  tables.value = { ...tables.value, [database]: list };
}

const known = new Map<string, Promise<Schema>>();

/** Returns a table's schema; caches it until `forget` is called. */
export function schemaOf(database: string, table: string): Promise<Schema> {
  const name = `${database}.${table}`;
  const schema = known.get(name) ?? tableOf(name).schema();
  known.set(name, schema);
  schema.catch(() => known.delete(name));
  return schema;
}

/** Clears the cached schemas, after a sign-out or a statement that may have changed them. */
export function forget(): void {
  known.clear();
}

/** How often the console has changed a table, so that a page that shows one reads it again. */
export const schemaChanges = signal(0);

export function schemaChanged(): void {
  forget();
  schemaChanges.value += 1;
}

/** Returns the fields whose values address a record: `id`, else the primary key. Empty if there is no key. */
export function keyFields(schema: Schema): string[] {
  if (schema.kind === "view") return [];
  if (schema.schema.some(({ name }) => name === "id")) return ["id"];
  return schema.schema.filter(({ primaryKey }) => primaryKey).map(({ name }) => name);
}

/** How the values of a field are shown and edited: as the kind of its type, or as one of four that only the console knows. */
export type Kind = (typeof KINDS)[keyof typeof KINDS] | "boolean" | "json" | "text" | "long";

export function kindOf(field: Field): Kind {
  if (field.jsonType === "json") return "json";
  const [, type = "", length] = /^(\w+)(?:\((\d+))?/.exec(field.type.toLowerCase()) ?? [];
  if ((type === "tinyint" || type === "bit") && length === "1") return "boolean";
  if (type in KINDS) return KINDS[type as keyof typeof KINDS];
  return type.endsWith("text") || Number(length) > 255 ? "long" : "text";
}

const NUMERIC: Kind[] = ["integer", "bit", "decimal", "float", "double"];

export const isNumeric = (kind: Kind): boolean => NUMERIC.includes(kind);
