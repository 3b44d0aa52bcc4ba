// The query of the grid: filters, order, search and columns, as options of the client and as code for a user to copy.
import type { AnyDatabase, AnyTable, ListOptions } from "@selkie/client";
import { read } from "@selkie/client/conditions";
import { OPERATORS as OPERANDS } from "@selkie/client/lists";
import { type Kind, isNumeric } from "../schema";
import { to } from "../session";
import { texts } from "../texts";
import { label } from "../values";

export interface Filter {
  field: string;
  operator: string;
  value: string;
}

export interface Query {
  filters: Filter[];
  /** Whether records need to meet only one of the filters, rather than all. */
  any: boolean;
  order: { field: string; strategy: "ASC" | "DESC" }[];
  /** "contains" needs no full-text index. */
  search: { fields: string[]; searchTerm: string; mode: "natural" | "boolean" | "contains" } | null;
  /** The shown columns; null: all. */
  columns: string[] | null;
}

/** A condition that the user can choose: an operator of the client, or `isNotNull`. */
type OperatorName = keyof typeof OPERANDS | "isNotNull";

interface Operator {
  name: OperatorName;
  label: string;
  values: "none" | "one" | "two" | "list";
  isOnText: boolean;
}

const VALUES = {
  any: "one",
  value: "one",
  text: "one",
  texts: "one",
  list: "list",
  pair: "two",
  flag: "none",
} as const;
const LABELS: Record<OperatorName, string> = texts.operators;
const OPERATORS = (Object.keys(LABELS) as OperatorName[]).map((name): Operator => {
  const operand = name === "isNotNull" ? "flag" : OPERANDS[name];
  return { name, label: LABELS[name], values: VALUES[operand], isOnText: operand === "text" || operand === "texts" };
});

/** Returns the operators for a kind of values; for texts, the operators on text come first. */
export function operatorsOf(kind: Kind): Operator[] {
  const others = OPERATORS.filter(({ isOnText }) => !isOnText);
  if (isNumeric(kind) || kind === "boolean" || kind === "date" || kind === "datetime" || kind === "time") return others;
  if (kind === "text" || kind === "long") return [...OPERATORS.filter(({ isOnText }) => isOnText), ...others];
  return OPERATORS;
}

export const operatorOf = (name: string): Operator => OPERATORS.find((one) => one.name === name) ?? OPERATORS[0]!;

export const NO_QUERY: Query = { filters: [], any: false, order: [], search: null, columns: null };

export function readQuery(options: URLSearchParams): Query {
  const part = <T>(name: string, otherwise: T): T => {
    try {
      return JSON.parse(options.get(name) ?? "") as T;
    } catch {
      return otherwise;
    }
  };
  // An address may be written by hand, or by somebody else.
  const list = <T>(name: string, isWanted: (one: unknown) => boolean): T[] | null => {
    const found = part<unknown>(name, null);
    return Array.isArray(found) && found.every(isWanted) ? (found as T[]) : null;
  };
  const hasField = (one: unknown) => typeof (one as { field?: unknown } | null)?.field === "string";
  const search = part<Query["search"]>("search", null);
  return {
    filters: list("filter", hasField) ?? [],
    any: part<unknown>("any", false) === true,
    order: list("order", hasField) ?? [],
    search: Array.isArray(search?.fields) && typeof search.searchTerm === "string" ? search : null,
    columns: list("columns", (one) => typeof one === "string"),
  };
}

/** Returns the query as options of the console's address, without options that are not set. */
export const writeQuery = ({ filters, any, order, search, columns }: Query): Record<string, unknown> => ({
  filter: filters.length ? filters : undefined,
  any: any || undefined,
  order: order.length ? order : undefined,
  search: search ?? undefined,
  columns: columns ?? undefined,
});

/** Returns a link to the records whose fields have these values. */
export function linkTo(database: string, table: string, values: [string, unknown][]): string {
  const filters = values.map(([field, value]) => ({ field, operator: "eq", value: label(value) }));
  return to("data", [database, table], writeQuery({ ...NO_QUERY, filters }));
}

/** Returns whether a filter has all values that its operator needs. Incomplete filters are ignored. */
export const isComplete = ({ operator, value }: Filter): boolean => {
  const { values } = operatorOf(operator);
  return (
    values === "none" ||
    (values === "two" ? listOf(value).length === 2 : values === "list" ? listOf(value).length > 0 : true)
  );
};

const listOf = (text: string) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

function condition({ operator, value }: Filter): unknown {
  const { values } = operatorOf(operator);
  if (values === "none") return operator === "isNull" ? null : { ne: null };
  const operand = values === "one" ? value : listOf(value);
  return operator === "eq" ? operand : { [operator]: operand };
}

export type Options = Pick<ListOptions<AnyDatabase, AnyTable>, "select" | "where" | "order" | "fullTextSearch">;

/** Returns the condition of the filters and of a search without an index. */
function whereOf({ filters, any, search }: Query): Record<string, unknown> | undefined {
  const complete = filters.filter(isComplete);
  const conditions = complete.map((filter) => ({ [filter.field]: condition(filter) }));
  const isTwice = new Set(complete.map(({ field }) => field)).size < complete.length;
  const own = !complete.length
    ? undefined
    : any && complete.length > 1
      ? { or: conditions }
      : isTwice
        ? { and: conditions }
        : Object.assign({}, ...conditions);
  if (search?.mode !== "contains") return own;
  const found = { or: search.fields.map((field) => ({ [field]: { contains: search.searchTerm } })) };
  return own ? { and: [own, found] } : found;
}

/** Returns the condition of all records that the query shows, for a write of them. Undefined if there is none: writes
 * know no full-text search, and records without a key can't be written. */
export function conditionsOf(query: Query, [key]: readonly string[]): Record<string, unknown> | undefined {
  if ((query.search && query.search.mode !== "contains") || key === undefined) return undefined;
  // A write without conditions is refused.
  return whereOf(query) ?? { [key]: { ne: null } };
}

/** Returns the options of the client's `list`. The `keys` are always selected, so that records can be addressed. */
export function listOptions(query: Query, keys: readonly string[]): Options {
  const options: Options = {
    select: query.columns ? [...new Set([...keys, ...query.columns])] : undefined,
    where: whereOf(query),
    order: query.order.length
      ? query.order.map(({ field, strategy }) => (strategy === "DESC" ? { [field]: "desc" } : { [field]: "asc" }))
      : undefined,
    fullTextSearch:
      query.search && query.search.mode !== "contains" ? { ...query.search, mode: query.search.mode } : undefined,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the request as a curl command. The API key is a shell variable in it, since copied commands are often
 * shown to others. */
export function asCurl(database: string, table: string, query: Query, keys: readonly string[], limit: number): string {
  const address = `${location.origin}/api/v1/crud/${encodeURIComponent(database)}/${encodeURIComponent(table)}`;
  const options = Object.entries(read({ ...listOptions(query, keys), limit })).map(([name, value]) => {
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    return /^\w+$/.test(text) ? `-d ${name}=${text}` : `--data-urlencode ${quoted(`${name}=${text}`)}`;
  });
  return [`curl -G ${quoted(address)}`, '-H "Authorization: Bearer $SELKIE_KEY"', ...options].join(" \\\n  ");
}

export function asClient(
  database: string,
  table: string,
  query: Query,
  keys: readonly string[],
  limit: number,
): string {
  const options = JSON.stringify({ ...listOptions(query, keys), limit }, null, 2).replace(
    /^(\s*)"([A-Za-z_$][\w$]*)":/gm,
    "$1$2:",
  );
  return [
    'import { createClient } from "@selkie/client";',
    "",
    `const selkie = createClient({ url: ${JSON.stringify(location.origin)}, key: process.env.SELKIE_KEY! });`,
    `const records = await selkie.table(${JSON.stringify(`${database}.${table}`)}).list(${options});`,
  ].join("\n");
}
