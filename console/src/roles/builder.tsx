// Builds the row rules of one action: conditions on fields, claims and related records, in groups. Shows the rules that it is given,
// and passes on those that the user makes of them.
import { useEffect, useState } from "preact/hooks";
import { type Schema, schemaOf } from "../schema";
import { texts } from "../texts";
import { Button } from "../ui";
import { jsonText } from "../values";
import { FieldCondition } from "./condition";
import { changed, QUANTIFIERS, type Quantifier, type Rule } from "./rules";

const words = texts.roles;
/** Marks a relation among the choices of fields. */
const RELATION = "related ";

/** Returns the schema of a table such as `shop.orders`: undefined while it is read, null for patterns of names and for what is no table. */
export function useSchema(table: string | undefined): Schema | null | undefined {
  const [found, setFound] = useState<{ table: string; schema: Schema | null } | null>(null);
  const [database = "", ...rest] = table?.split(".") ?? [];
  const name = rest.join(".");
  const isTable = name !== "" && name !== "*";
  useEffect(() => {
    if (table === undefined || !isTable) return;
    let isCurrent = true;
    schemaOf(database, name).then(
      (schema) => isCurrent && setFound({ table, schema }),
      () => isCurrent && setFound({ table, schema: null }),
    );
    return () => {
      isCurrent = false;
    };
  }, [table]);
  if (!isTable) return null;
  return found?.table === table ? found?.schema : undefined;
}

interface Scope {
  /** The table whose records are judged. */
  table: string | undefined;
  /** What the labels of controls begin with, such as "read 1.". */
  place: string;
}

interface ListProps extends Scope {
  rules: readonly Rule[];
  onChange: (rules: Rule[]) => void;
}

export function Rules({ table, place, rules, onChange }: ListProps) {
  const schema = useSchema(table);
  // Else the choices would first be shown as texts.
  if (schema === undefined) return null;
  const first = schema?.schema[0]?.name ?? "";
  const set = (at: number, rule?: Rule) => onChange(rules.flatMap((own, index) => (index === at ? (rule ?? []) : own)));
  const add = (rule: Rule) => onChange([...rules, rule]);
  return (
    <div class="rules">
      {rules.map((rule, at) => (
        <OneRule
          key={at}
          schema={schema}
          table={table}
          place={`${place}${at + 1}`}
          rule={rule}
          onChange={(to) => set(at, to)}
          onRemove={() => set(at)}
        />
      ))}
      <div class="row">
        <Button
          icon="plus"
          label={words.addCondition}
          onClick={() => add({ kind: "field", field: first, operator: "eq", operand: { claim: "sub" } })}
        />
        <Button
          icon="plus"
          label={words.addGroup}
          onClick={() => add({ kind: "group", label: "any", any: true, rules: [] })}
        />
      </div>
    </div>
  );
}

interface RuleProps extends Scope {
  schema: Schema | null;
  rule: Rule;
  onChange: (rule: Rule) => void;
  onRemove: () => void;
}

function OneRule(props: RuleProps) {
  const { rule, place, table, schema, onChange, onRemove } = props;
  const remove = <Button icon="close" bare look="quiet" label={words.removeCondition(place)} onClick={onRemove} />;
  if (rule.kind === "other")
    return (
      <div class="row">
        <code>{jsonText({ [rule.source[0]]: rule.source[1] }).slice(1, -1)}</code>
        <span class="tag">{words.onlyJson}</span>
        {remove}
      </div>
    );
  if (rule.kind === "group")
    return (
      <fieldset>
        <div class="row">
          <select
            aria-label={words.joins(place)}
            value={String(rule.any)}
            onChange={({ currentTarget: { value } }) => onChange(changed(rule, { any: value === "true" }))}
          >
            <option value="true">{words.any}</option>
            <option value="false">{words.every}</option>
          </select>
          {remove}
        </div>
        <Rules
          table={table}
          place={`${place}.`}
          rules={rule.rules}
          onChange={(rules) => onChange(changed(rule, { rules }))}
        />
      </fieldset>
    );
  if (rule.kind === "field")
    return (
      <div class="rule">
        <Subject {...props} />
        <FieldCondition rule={rule} place={place} schema={schema} onChange={onChange} />
        {remove}
      </div>
    );
  const relation = schema?.relations.find(({ name }) => name === rule.relation);
  const database = table?.split(".", 1)[0];
  return (
    <fieldset>
      <div class="row">
        <Subject {...props} />
        <select
          aria-label={words.quantifier(place)}
          value={rule.quantifier}
          onChange={({ currentTarget: { value } }) => onChange(changed(rule, { quantifier: value as Quantifier }))}
        >
          {QUANTIFIERS.map((name) => (
            <option key={name} value={name}>
              {words.quantifiers[name]}
            </option>
          ))}
        </select>
        {remove}
      </div>
      <Rules
        table={relation && `${database}.${relation.table}`}
        place={`${place}.`}
        rules={rule.rules}
        onChange={(rules) => onChange(changed(rule, { rules }))}
      />
    </fieldset>
  );
}

/** Chooses the field or the relation that a condition is about. */
function Subject({ rule, place, schema, onChange }: RuleProps) {
  const name = rule.kind === "field" ? rule.field : rule.kind === "related" ? rule.relation : "";
  const label = words.fieldOf(place);
  const choose = (value: string) => {
    if (value.startsWith(RELATION))
      onChange({ kind: "related", relation: value.slice(RELATION.length), quantifier: "some", rules: [] });
    else if (rule.kind === "field") onChange(changed(rule, { field: value }));
    else onChange({ kind: "field", field: value, operator: "eq", operand: { claim: "sub" } });
  };
  const fields = schema?.schema.map((field) => field.name) ?? [];
  const relations = schema?.relations.map((relation) => relation.name) ?? [];
  if (!schema)
    return rule.kind === "related" ? (
      <code>{name}</code>
    ) : (
      <input aria-label={label} value={name} onInput={({ currentTarget: { value } }) => choose(value)} />
    );
  const isKnown = (rule.kind === "field" ? fields : relations).includes(name);
  const prefix = rule.kind === "field" ? "" : RELATION;
  return (
    <select aria-label={label} value={prefix + name} onChange={({ currentTarget: { value } }) => choose(value)}>
      {!isKnown && <option value={prefix + name}>{name}</option>}
      {fields.map((field) => (
        <option key={field} value={field}>
          {field}
        </option>
      ))}
      {relations.length > 0 && (
        <optgroup label={words.related}>
          {relations.map((relation) => (
            <option key={relation} value={RELATION + relation}>
              {relation}
            </option>
          ))}
        </optgroup>
      )}
    </select>
  );
}
