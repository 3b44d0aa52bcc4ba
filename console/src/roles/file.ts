// A role as the file that the API takes, and changes of it, which keep the parts that the console does not know. Must not know how
// it is shown.
import { marked } from "../exact";
import { jsonText } from "../values";

export type Members = Record<string, unknown>;

export const ACTIONS = ["read", "insert", "update", "delete"] as const;
export type Action = (typeof ACTIONS)[number];

export const isObject = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Parses a role's file. Throws an error that tells why the text can't be shown as tables. */
export function roleOf(text: string): Members {
  const role: unknown = JSON.parse(marked(text));
  if (!isObject(role)) throw new Error("A role is a JSON object.");
  if (role.tables !== undefined && !isObject(role.tables)) throw new Error("tables must be an object.");
  const wrong = Object.entries(tablesOf(role)).find(([, entry]) => !isObject(entry));
  if (wrong) throw new Error(`tables.${JSON.stringify(wrong[0])} must be an object.`);
  return role;
}

export const textOf = (role: Members): string => `${jsonText(role, 2)}\n`;

export const tablesOf = ({ tables }: Members): Record<string, Members> => (tables ?? {}) as Record<string, Members>;

/** Returns the entry that counts for the table or pattern: the most specific one. */
export function entryFor(role: Members, name: string): { name: string; entry: Members } | undefined {
  const tables = tablesOf(role);
  const found = [name, `${name.split(".", 1)[0]}.*`, "*", "*.*"].find((one) => Object.hasOwn(tables, one));
  return found === undefined ? undefined : { name: found, entry: tables[found]! };
}

export function withEntry(role: Members, name: string, entry: Members | undefined): Members {
  const tables = { ...tablesOf(role) };
  if (entry) tables[name] = entry;
  else delete tables[name];
  return { ...role, tables };
}

/** Sets what an action may do; undefined denies it. A table without an entry gets one, like the entry that counted for it. */
export const withRule = (role: Members, name: string, action: Action, rule: unknown): Members =>
  withEntry(role, name, withMember(entryFor(role, name)?.entry ?? {}, action, rule));

/** Returns the object with the member; undefined removes it. */
export function withMember(object: Members, name: string, value: unknown): Members {
  const next = { ...object };
  if (value === undefined) delete next[name];
  else next[name] = value;
  return next;
}

export type Level = "all" | "limited" | "none";

export function levelOf(rule: unknown): Level {
  if (!isObject(rule)) return rule === true ? "all" : "none";
  return Object.keys(rule).length === 0 ? "all" : "limited";
}

/** Returns the rule with a part, such as `rows`; undefined removes the part. */
export function withPart(rule: unknown, part: string, value: unknown): unknown {
  const next = withMember(isObject(rule) ? rule : {}, part, value);
  return Object.keys(next).length === 0 ? true : next;
}

export const partOf = (rule: unknown, part: string): Members => {
  const value = isObject(rule) ? rule[part] : undefined;
  return isObject(value) ? value : {};
};

export const listOf = (rule: unknown, part: string): string[] => {
  const value = isObject(rule) ? rule[part] : undefined;
  return Array.isArray(value) ? value.map(String) : [];
};

/** Fields of a rule: those that are named, or with `others` all but these. */
interface FieldSet {
  others: boolean;
  named: string[];
}

export function fieldsOf(rule: unknown): FieldSet {
  const fields = isObject(rule) ? rule.fields : undefined;
  if (Array.isArray(fields)) return { others: false, named: fields.map(String) };
  const omit = isObject(fields) ? fields.omit : undefined;
  return { others: true, named: Array.isArray(omit) ? omit.map(String) : [] };
}

/** The service compares the names in `omit` without regard to case. */
const isNamed = ({ others, named }: FieldSet, field: string) =>
  named.some((name) => name === field || (others && name.toLowerCase() === field.toLowerCase()));

export const hasField = (set: FieldSet, field: string): boolean => set.others !== isNamed(set, field);

const withFields = (rule: unknown, { others, named }: FieldSet): unknown =>
  withPart(rule, "fields", !others ? named : named.length > 0 ? { omit: named } : undefined);

export function withField(rule: unknown, field: string, isOn: boolean): unknown {
  const set = fieldsOf(rule);
  if (hasField(set, field) === isOn) return rule;
  const named = isNamed(set, field)
    ? set.named.filter((name) => name !== field && !(set.others && name.toLowerCase() === field.toLowerCase()))
    : [...set.named, field];
  return withFields(rule, { ...set, named });
}

/** Says whether fields that are not named, also later ones, are among the rule's. The known fields stay as they are. */
export function withOthers(rule: unknown, others: boolean, known: readonly string[]): unknown {
  const set = fieldsOf(rule);
  if (set.others === others) return rule;
  return withFields(rule, { others, named: known.filter((field) => hasField(set, field) !== others) });
}

/** Returns the names of the claims that the role uses: as `{"claim": "sub"}`, and in the folders of media as `{sub}`. */
export function claimsIn(role: Members): string[] {
  const found = new Set<string>();
  const visit = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    const { claim, ...others } = part as Members;
    if (typeof claim === "string" && claim && Object.keys(others).length === 0) found.add(claim);
    else Object.values(part).forEach(visit);
  };
  visit(role.tables);
  for (const [, name] of JSON.stringify(role.media ?? null).matchAll(/\{([^{}":]+)\}/g)) found.add(name!);
  return [...found];
}
