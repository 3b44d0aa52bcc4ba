// Turns `where`, `order`, `include` and other options of reads into options of the API. Must not know tables or
// requests.

type Any = Record<string, unknown>;

const QUANTIFIERS = ["some", "none", "every"];

const isObject = (value: unknown): value is Any =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** Fails for an undefined value: a condition that is left out by mistake selects more records than it should. */
function given(value: unknown, what: string): unknown {
  if (value === undefined) throw new TypeError(`${what} is undefined. Give null for NULL, or leave the condition out.`);
  return value;
}

const group = (operator: "AND" | "OR", members: unknown[]) => ({ operator, __query: { ...members } });

function condition(field: string, value: unknown): unknown {
  given(value, `The condition ${field}`);
  if (!isObject(value)) return value;
  if (QUANTIFIERS.some((name) => name in value)) {
    return Object.fromEntries(Object.entries(value).map(([name, where]) => [name, query(where as Any)]));
  }
  for (const [name, operand] of Object.entries(value)) given(operand, `The operator ${name} of the condition ${field}`);
  const { not, ...rest } = value;
  if (!isObject(not)) return value;
  const negated = { __query: { [field]: condition(field, not) }, not: true };
  return Object.keys(rest).length ? group("AND", [{ __query: { [field]: rest } }, negated]) : negated;
}

/** Returns the API's option `query`. */
export function query(where: Any): Any {
  const entries = Object.entries(where).map(([name, value]) => {
    const grouped = (name === "and" || name === "or") && Array.isArray(value) && value.every(isObject);
    if (!grouped) return [name, condition(name, value)];
    const members = (value as Any[]).map((member) => ({ operator: "AND", __query: query(member) }));
    return [name, group(name === "or" ? "OR" : "AND", members)];
  });
  return Object.fromEntries(entries);
}

const upper = (strategy: unknown) => String(strategy).toUpperCase();

/** Returns the API's option `order`, a list. */
export function order(items: unknown): Any[] {
  if (Array.isArray(items)) return items.flatMap(order);
  if (typeof items === "string") {
    return [items[0] === "-" ? { field: items.slice(1), strategy: "DESC" } : { field: items }];
  }
  const item = items as Any;
  // An item in the API's own form is passed on, unless a column itself is named `field`.
  if ("field" in item && !/^(asc|desc)$/i.test(item.field as string)) return [item];
  return Object.entries(item).map(([field, strategy]) => ({
    field,
    strategy: upper(given(strategy, `The order by ${field}`)),
  }));
}

/** Returns the API's option `include`, a list. The record's member has the name that the caller writes here, even if
 * it is `comments.post_id`. */
function include(items: unknown): unknown[] {
  if (Array.isArray(items)) return items.flatMap((item) => include(typeof item === "string" ? { [item]: true } : item));
  const relations = Object.entries(items as Any).filter(([, options]) => options);
  return relations.map(([relation, options]) => {
    const as = relation.includes(".") ? { as: relation } : undefined;
    return options === true && !as
      ? relation
      : { relation, ...as, ...(options === true ? undefined : read(options as Any)) };
  });
}

const NAMES: Record<string, string> = { select: "selectFields", omit: "omitFields", where: "query" };
const CALL_OPTIONS = ["signal", "timeout", "retries", "headers", "repeatable"];

/** Returns the API's options of a read, without those that concern the call, such as `timeout`. */
export function read(options: object): Any {
  const entries = Object.entries(options)
    .filter(([name, value]) => value !== undefined && !CALL_OPTIONS.includes(name))
    .map(([name, value]) => {
      if (name === "where") return ["query", query(value)];
      if (name === "order") return [name, order(value)];
      if (name === "include") return [name, include(value)];
      return [NAMES[name] ?? name, value];
    });
  return Object.fromEntries(entries);
}
