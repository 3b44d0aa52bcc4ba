// The operator and the value of a condition on a field: a claim of the caller, or a value of its own.
import { useState } from "preact/hooks";
import { isNumeric, kindOf, type Schema } from "../schema";
import { operatorOf, operatorsOf } from "../table/query";
import { texts } from "../texts";
import { changed, listText, literalOf, literalText, type Operand, type Rule } from "./rules";

const words = texts.roles;

type FieldRule = Extract<Rule, { kind: "field" }>;

export function FieldCondition({
  rule,
  place,
  schema,
  onChange,
}: {
  rule: FieldRule;
  place: string;
  schema: Schema | null;
  onChange: (rule: Rule) => void;
}) {
  const field = schema?.schema.find(({ name }) => name === rule.field);
  const kind = field ? kindOf(field) : "text";
  const isNumber = isNumeric(kind) || kind === "boolean";
  const { values } = operatorOf(rule.operator);
  const { operand } = rule;
  const choose = (operator: string) => {
    const next = operatorOf(operator).values;
    const isList = next === "two" || next === "list";
    onChange(changed(rule, { operator, operand: next === "none" ? null : fitting(operand, isList) }));
  };
  const isClaim = operand !== null && "claim" in operand;
  const retype = (text: string) => onChange(changed(rule, { operand: operandOf(text, operand, isNumber) }));
  const operators = operatorsOf(kind);
  return (
    <>
      <select
        aria-label={words.operator(place)}
        value={rule.operator}
        onChange={({ currentTarget: { value } }) => choose(value)}
      >
        {!operators.some(({ name }) => name === rule.operator) && (
          <option value={rule.operator}>{operatorOf(rule.operator).label}</option>
        )}
        {operators.map(({ name, label }) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      {operand && values !== "none" && (
        <>
          <select
            aria-label={words.operand(place)}
            value={isClaim ? "claim" : "value"}
            onChange={({ currentTarget: { value } }) => {
              const isList = values === "two" || values === "list";
              onChange(changed(rule, { operand: value === "claim" ? { claim: "sub" } : fitting(null, isList) }));
            }}
          >
            {Object.entries(words.operands).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
          {"list" in operand ? (
            <ListInput
              label={words.value(place)}
              hint={values === "two" ? texts.table.twoHint : texts.table.listHint}
              list={operand.list}
              onChange={(list) => onChange(changed(rule, { operand: { list } }))}
              itemOf={(text, before) => literalOf(text, before, isNumber)}
            />
          ) : (
            <input
              aria-label={isClaim ? words.claim(place) : words.value(place)}
              class={isClaim ? "mono" : ""}
              value={"claim" in operand ? operand.claim : literalText(operand.value)}
              onInput={({ currentTarget: { value } }) => retype(value)}
            />
          )}
        </>
      )}
    </>
  );
}

const operandOf = (text: string, before: Operand | null, isNumber: boolean): Operand =>
  before && "claim" in before
    ? { claim: text }
    : { value: literalOf(text, before && "value" in before ? before.value : "", isNumber) };

/** Returns an operand for an operator that takes a list, or one value. */
function fitting(operand: Operand | null, isList: boolean): Operand {
  if (operand && "claim" in operand) return operand;
  if (isList) return { list: operand && "list" in operand ? operand.list : operand ? [operand.value] : [] };
  return { value: operand && "value" in operand ? operand.value : operand ? (operand.list[0] ?? "") : "" };
}

/** An input of values between commas. Keeps its own text, since a comma at the end is no value yet. */
function ListInput({
  label,
  hint,
  list,
  onChange,
  itemOf,
}: {
  label: string;
  hint: string;
  list: readonly unknown[];
  onChange: (list: unknown[]) => void;
  itemOf: (text: string, before: unknown) => unknown;
}) {
  const [typed, setTyped] = useState(() => listText(list));
  const items = (text: string) =>
    text
      .split(",")
      .map((item) => item.trim())
      .filter(Boolean)
      .map((item, at) => itemOf(item, list[at]));
  // What was changed elsewhere, such as in the JSON, counts.
  const shown = listText(items(typed)) === listText(list) ? typed : listText(list);
  return (
    <input
      aria-label={label}
      placeholder={hint}
      value={shown}
      onInput={({ currentTarget: { value } }) => {
        setTyped(value);
        onChange(items(value));
      }}
    />
  );
}
