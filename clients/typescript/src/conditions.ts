// Turns `where`, `order`, `include` and other options of reads into options of the API. Must not know tables or
// requests.

type Any = Record<string, unknown>;

const EQUALITIES: Record<string, string> = {
  eq: "=", ne: "!=", gt: ">", gte: ">=", lt: "<", lte: "<=", in: "IN", notIn: "NOT IN", between: "BETWEEN",
  notBetween: "NOT BETWEEN", like: "LIKE", notLike: "NOT LIKE", contains: "CONTAINS", startsWith: "STARTS WITH",
  endsWith: "ENDS WITH", regexp: "REGEXP", notRegexp: "NOT REGEXP", match: "MATCH", matchBoolean: "MATCH_BOOLEAN",
};
const API_PARTS = ["value", "equality", "fieldName", "tableName"];
const QUANTIFIERS = ["some", "none", "every"];

const isObject = (value: unknown): value is Any =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
const has = (value: Any, keys: string[]) => keys.some((key) => key in value);

/** Fails for an undefined value: a condition that is left out by mistake selects more records than it should. */
function given(value: unknown, what: string): unknown {
  if (value === undefined) throw new TypeError(`${what} is undefined. Give null for NULL, or leave the condition out.`);
  return value;
}

/** Returns the conditions of operators on one field, as a list; the operators of `not` are negated together. */
function operators(field: string, condition: Any): Any[] {
  return Object.entries(condition).map(([name, value]) => {
    given(value, `The operator ${name} of the condition ${field}`);
    if (name === "not" && isObject(value)) return { ...group("AND", operators(field, value)), not: true };
    const equality = EQUALITIES[name];
    if (!equality) {
      const hint = `It has ${Object.keys(EQUALITIES).join(", ")}, not; a JSON document is compared as { value: … }.`;
      throw new TypeError(`The condition ${field} has no operator ${name}. ${hint}`);
    }
    return { fieldName: field, equality, value };
  });
}

const group = (operator: "AND" | "OR", members: unknown[]) => ({ operator, __query: { ...members } });

function condition(field: string, value: unknown): unknown {
  given(value, `The condition ${field}`);
  if (!isObject(value)) return value;
  if (has(value, QUANTIFIERS)) {
    return Object.fromEntries(Object.entries(value).map(([name, where]) => [name, query(where as Any)]));
  }
  if (has(value, API_PARTS)) return value;
  const members = operators(field, value);
  return members.length === 1 ? members[0] : group("AND", members);
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
function order(items: unknown): Any[] {
  if (Array.isArray(items)) return items.flatMap(order);
  if (typeof items === "string") {
    return [items[0] === "-" ? { field: items.slice(1), strategy: "DESC" } : { field: items }];
  }
  const item = items as Any;
  // An item in the API's own form is passed on, unless a column itself is named `field`.
  if ("field" in item && !/^(asc|desc)$/i.test(item.field as string)) return [item];
  return Object.entries(item).map(([field, strategy]) => ({ field, strategy: upper(given(strategy, `The order by ${field}`)) }));
}

/** Returns the API's option `include`, a list. The record's member has the name that the caller writes here, even if
 * it is `comments.post_id`. */
function include(items: unknown): unknown[] {
  if (Array.isArray(items)) return items.flatMap((item) => include(typeof item === "string" ? { [item]: true } : item));
  const relations = Object.entries(items as Any).filter(([, options]) => options);
  return relations.map(([relation, options]) => {
    const as = relation.includes(".") ? { as: relation } : undefined;
    return options === true && !as ? relation : { relation, ...as, ...(options === true ? undefined : read(options as Any)) };
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
