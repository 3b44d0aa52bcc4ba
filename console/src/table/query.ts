// The query of the grid: filters, order, search and columns, as options of the client and as code for a user to copy.
import type { AnyDatabase, AnyTable, ListOptions } from "@selkie/client";
import { type Kind, isNumeric } from "../schema";

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
  search: { fields: string[]; searchTerm: string; mode: "natural" | "boolean" } | null;
  /** The shown columns; null: all. */
  columns: string[] | null;
}

/** An operator: its name in the client and in the API (`equality`), its label, and how many values it takes. */
export interface Operator {
  name: string;
  equality: string;
  label: string;
  values: "none" | "one" | "two" | "list";
}

const OPERATORS: Operator[] = [
  { name: "eq", equality: "=", label: "=", values: "one" },
  { name: "ne", equality: "!=", label: "≠", values: "one" },
  { name: "gt", equality: ">", label: ">", values: "one" },
  { name: "gte", equality: ">=", label: "≥", values: "one" },
  { name: "lt", equality: "<", label: "<", values: "one" },
  { name: "lte", equality: "<=", label: "≤", values: "one" },
  { name: "contains", equality: "CONTAINS", label: "contains", values: "one" },
  { name: "startsWith", equality: "STARTS WITH", label: "starts with", values: "one" },
  { name: "endsWith", equality: "ENDS WITH", label: "ends with", values: "one" },
  { name: "like", equality: "LIKE", label: "LIKE", values: "one" },
  { name: "notLike", equality: "NOT LIKE", label: "NOT LIKE", values: "one" },
  { name: "regexp", equality: "REGEXP", label: "REGEXP", values: "one" },
  { name: "in", equality: "IN", label: "one of", values: "list" },
  { name: "notIn", equality: "NOT IN", label: "none of", values: "list" },
  { name: "between", equality: "BETWEEN", label: "between", values: "two" },
  { name: "notBetween", equality: "NOT BETWEEN", label: "not between", values: "two" },
  { name: "isNull", equality: "IS NULL", label: "is NULL", values: "none" },
  { name: "isNotNull", equality: "IS NOT NULL", label: "is not NULL", values: "none" },
];
const OF_TEXT = ["contains", "startsWith", "endsWith", "like", "notLike", "regexp"];

/** Returns the operators for a kind of values; for texts, the operators on text come first. */
export function operatorsOf(kind: Kind): Operator[] {
  const others = OPERATORS.filter(({ name }) => !OF_TEXT.includes(name));
  if (isNumeric(kind) || kind === "boolean" || kind === "date" || kind === "datetime" || kind === "time") return others;
  if (kind === "text" || kind === "long") return [...OPERATORS.filter(({ name }) => OF_TEXT.includes(name)), ...others];
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
  return {
    filters: part("filter", []),
    any: part("any", false),
    order: part("order", []),
    search: part("search", null),
    columns: part("columns", null),
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

function operandOf({ operator, value }: Filter): unknown {
  const { values } = operatorOf(operator);
  return values === "none" ? null : values === "one" ? value : listOf(value);
}

function condition(filter: Filter): unknown {
  if (filter.operator === "isNull") return null;
  if (filter.operator === "isNotNull") return { ne: null };
  return filter.operator === "eq" ? operandOf(filter) : { [filter.operator]: operandOf(filter) };
}

/** Options of the client's `list`. */
export type Options = Pick<ListOptions<AnyDatabase, AnyTable>, "select" | "where" | "order" | "fullTextSearch">;

/** Returns the options of the client's `list`. The `keys` are always selected, so that records can be addressed. */
export function listOptions(query: Query, keys: readonly string[]): Options {
  const filters = query.filters.filter(isComplete);
  const conditions = filters.map((filter) => ({ [filter.field]: condition(filter) }));
  const isTwice = new Set(filters.map(({ field }) => field)).size < filters.length;
  const where = !filters.length
    ? undefined
    : query.any && filters.length > 1
      ? { or: conditions }
      : isTwice
        ? { and: conditions }
        : Object.assign({}, ...conditions);
  const options: Options = {
    select: query.columns ? [...new Set([...keys, ...query.columns])] : undefined,
    where,
    order: query.order.length
      ? query.order.map(({ field, strategy }) => (strategy === "DESC" ? { [field]: "desc" } : { [field]: "asc" }))
      : undefined,
    fullTextSearch: query.search ?? undefined,
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** Returns the query as options of the API, for curl. */
function plainOptions(query: Query, keys: readonly string[]): Options {
  const filters = query.filters.filter(isComplete);
  const labels = new Set<string>();
  const entries = filters.map((filter) => {
    const { equality, values } = operatorOf(filter.operator);
    let name = filter.field;
    while (labels.has(name)) name += "_";
    labels.add(name);
    const value = values === "none" ? {} : { value: operandOf(filter) };
    const other = name === filter.field ? {} : { fieldName: filter.field };
    return [name, equality === "=" && name === filter.field ? filter.value : { ...other, ...value, equality }];
  });
  const { select } = listOptions(query, keys);
  return {
    ...(select ? { selectFields: (select as string[]).join(",") } : {}),
    ...(entries.length ? { query: Object.fromEntries(entries) } : {}),
    ...(query.any && entries.length > 1 ? { searchOperator: "OR" } : {}),
    ...(query.order.length ? { order: query.order } : {}),
    ...(query.search ? { fullTextSearch: query.search } : {}),
  };
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Returns the request as a curl command. The API key is a shell variable in it, since copied commands are often
 * shown to others. */
export function asCurl(database: string, table: string, query: Query, keys: readonly string[], limit: number): string {
  const address = `${location.origin}/api/v1/crud/${encodeURIComponent(database)}/${encodeURIComponent(table)}`;
  const options = Object.entries({ ...plainOptions(query, keys), limit }).map(([name, value]) => {
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    return /^[\w,]+$/.test(text) ? `-d ${name}=${text}` : `--data-urlencode ${quoted(`${name}=${text}`)}`;
  });
  return [`curl -G ${quoted(address)}`, '-H "Authorization: Bearer $SELKIE_KEY"', ...options].join(" \\\n  ");
}

/** Returns the request as TypeScript code for the client. */
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
