// The row rules of a role as a tree for the builder, and back as the JSON of a query. A condition that the builder can't show stays
// the JSON that it is. Must not know how rules are shown.
import { OPERATORS } from "@selkie/client/lists";
import { isMarked, marked } from "../exact";
import { jsonText } from "../values";
import { isObject, type Members } from "./file";

export const QUANTIFIERS = ["some", "none", "every"] as const;
export type Quantifier = (typeof QUANTIFIERS)[number];
export type Operand = { claim: string } | { value: unknown } | { list: unknown[] };

/** A condition. The `source` is the member of the query that it came from, which is written back unless the rule has changed. */
export type Rule = { source?: Source } & (
  | { kind: "field"; field: string; operator: string; operand: Operand | null }
  | { kind: "group"; label: string; any: boolean; rules: Rule[] }
  | { kind: "related"; relation: string; quantifier: Quantifier; rules: Rule[] }
  | { kind: "other"; source: Source }
);
type Source = readonly [key: string, value: unknown];

const SHORT: Record<string, string> = {
  "=": "eq",
  "==": "eq",
  EQUAL: "eq",
  "!=": "ne",
  "<>": "ne",
  "NOT EQUAL": "ne",
  ">": "gt",
  "GREATER THAN": "gt",
  ">=": "gte",
  "GREATER THAN OR EQUAL": "gte",
  "<": "lt",
  "LESS THAN": "lt",
  "<=": "lte",
  "LESS THAN OR EQUAL": "lte",
  IN: "in",
  "NOT IN": "notIn",
  BETWEEN: "between",
  "NOT BETWEEN": "notBetween",
  "IS NULL": "isNull",
  "IS NOT NULL": "isNotNull",
  LIKE: "like",
  LIKE_RAW: "like",
  "NOT LIKE": "notLike",
  "NOT LIKE_RAW": "notLike",
  REGEXP: "regexp",
  "NOT REGEXP": "notRegexp",
  CONTAINS: "contains",
  "STARTS WITH": "startsWith",
  "ENDS WITH": "endsWith",
  MATCH: "match",
  FULLTEXT: "match",
  MATCH_BOOLEAN: "matchBoolean",
};

const isShort = (name: string): name is keyof typeof OPERATORS => Object.hasOwn(OPERATORS, name);
const isScalar = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);
export const claimOf = (value: unknown): string | undefined =>
  isObject(value) && Object.keys(value).length === 1 && typeof value.claim === "string" ? value.claim : undefined;
const hasOnly = (object: Members, known: readonly string[]) => Object.keys(object).every((key) => known.includes(key));

/** Returns the rules of a query whose conditions must all hold, or with `any` only one. */
export const rulesOf = (query: Members, any = false): Rule[] =>
  Object.entries(query).flatMap((source) => ruleOf(source, any));

function ruleOf(source: Source, any: boolean): Rule[] {
  const [key, value] = source;
  if (!isObject(value) || claimOf(value) !== undefined) return [onField(source, key, "eq", value)];
  if (isObject(value.__query)) return [group(source, value, value.__query)];
  const [[first, inner] = ["", undefined], ...more] = Object.entries(value);
  if (QUANTIFIERS.includes(first as Quantifier) && isObject(inner) && more.length === 0)
    return [{ kind: "related", relation: key, quantifier: first as Quantifier, rules: rulesOf(inner), source }];
  if (hasOnly(value, Object.keys(OPERATORS))) {
    const conditions = Object.entries(value);
    if (conditions.length === 1) return [onField(source, key, first, inner)];
    // Several operators must all hold, so that they are conditions of their own where all hold.
    const rules = conditions.map(([operator, operand]) =>
      onField([key, { [operator]: operand }], key, operator, operand),
    );
    return any || rules.length === 0 || rules.some(({ kind }) => kind === "other")
      ? [{ kind: "other", source }]
      : rules;
  }
  const { value: operand = null, equality = "=", fieldName = key } = value;
  const operator = SHORT[String(equality).toUpperCase()];
  const isKnown =
    hasOnly(value, ["value", "equality", "fieldName"]) && (value.value !== undefined || /null/i.test(`${equality}`));
  return operator && isKnown ? [onField(source, String(fieldName), operator, operand)] : [{ kind: "other", source }];
}

function group(source: Source, { operator, ...rest }: Members, query: Members): Rule {
  const any = String(operator).toUpperCase() === "OR";
  if (!hasOnly(rest, ["__query"])) return { kind: "other", source };
  const rules = rulesOf(query, any);
  // Such a group only gives its condition another label: two conditions on one field need two.
  if (operator === undefined && rules.length === 1) return rules[0]!;
  return { kind: "group", label: source[0], any, rules, source };
}

function onField(source: Source, field: string, operator: string, value: unknown): Rule {
  const rule = (operator: string, operand: Operand | null): Rule => ({
    kind: "field",
    field,
    operator,
    operand,
    source,
  });
  const claim = claimOf(value);
  if (operator === "isNotNull" || (operator === "ne" && value === null) || (operator === "isNull" && value === false))
    return rule("isNotNull", null);
  if (operator === "isNull" || (operator === "eq" && value === null)) return rule("isNull", null);
  if (claim !== undefined) return rule(operator, { claim });
  const known = isShort(operator) ? OPERATORS[operator] : "value";
  if (Array.isArray(value) && value.every(isScalar)) {
    if (operator === "eq" || operator === "ne") return rule(operator === "eq" ? "in" : "notIn", { list: value });
    if (known === "list" || known === "pair") return rule(operator, { list: value });
  }
  return isScalar(value) && known !== "list" && known !== "pair"
    ? rule(operator, { value })
    : { kind: "other", source };
}

/** Returns the query of the rules. */
export function queryOf(rules: readonly Rule[], any = false): Members {
  const query: Members = {};
  for (const rule of rules) {
    const [key, value] = rule.source ?? memberOf(rule);
    const present = query[key];
    if (!Object.hasOwn(query, key)) query[key] = value;
    else if (!any && isOperators(present) && isOperators(value) && !Object.keys(value).some((name) => name in present))
      query[key] = { ...present, ...value };
    else query[free(query, key)] = rule.kind === "group" ? value : { __query: { [key]: value } };
  }
  return query;
}

const isOperators = (value: unknown): value is Members =>
  isObject(value) && Object.keys(value).length > 0 && hasOnly(value, Object.keys(OPERATORS));

function free(query: Members, name: string): string {
  for (let at = 2; ; at += 1) if (!Object.hasOwn(query, `${name} ${at}`)) return `${name} ${at}`;
}

function memberOf(rule: Rule): Source {
  if (rule.kind === "other") return rule.source;
  if (rule.kind === "group")
    return [rule.label, { __query: queryOf(rule.rules, rule.any), operator: rule.any ? "OR" : "AND" }];
  if (rule.kind === "related") return [rule.relation, { [rule.quantifier]: queryOf(rule.rules) }];
  const { field, operator, operand } = rule;
  if (operator === "isNull") return [field, null];
  if (operator === "isNotNull") return [field, { ne: null }];
  const value = operand === null ? "" : "value" in operand ? operand.value : "list" in operand ? operand.list : operand;
  return [field, operator === "eq" ? value : { [operator]: value }];
}

/** Returns a rule that has changed, or the rule itself. */
export const changed = <R extends Rule>({ source: _, ...rule }: R, to: Partial<R>): Rule =>
  ({ ...rule, ...to }) as Rule;

/** Returns a value of a rule as a text for an input. */
export const literalText = (value: unknown): string =>
  typeof value === "string" && !isMarked(value) ? value : jsonText(value);

/** Returns the value of an input's text: a number where one is wanted, if JSON can write it as it was typed. */
export function literalOf(text: string, before: unknown, isNumber: boolean): unknown {
  if (typeof before === "boolean" && /^(true|false)$/.test(text)) return text === "true";
  const wantsNumber = isNumber || typeof before === "number" || isMarked(before);
  if (!wantsNumber || !/^-?(0|[1-9]\d*)(\.\d+)?$/.test(text)) return text;
  const value: unknown = JSON.parse(marked(text));
  return literalText(value) === text ? value : text;
}

export const listText = (list: readonly unknown[]): string => list.map(literalText).join(", ");
