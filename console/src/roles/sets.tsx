// What a role sets itself in the records that are written, and the foreign keys that it does not check.
import { texts } from "../texts";
import { Button } from "../ui";
import { jsonText } from "../values";
import { type Action, fieldsOf, isObject, listOf, type Members, partOf, withField, withPart } from "./file";
import { claimOf, literalOf, literalText } from "./rules";

const words = texts.roles;

interface RuleProps {
  rule: unknown;
  onChange: (rule: unknown) => void;
}

export function Sets({
  action,
  rule,
  fields,
  onChange,
}: RuleProps & { action: Action; fields: readonly string[] | undefined }) {
  const set = partOf(rule, "set");
  const put = (next: Members) => onChange(withPart(rule, "set", Object.keys(next).length > 0 ? next : undefined));
  const free = fields?.filter((field) => !Object.hasOwn(set, field)) ?? [];
  const add = (field: string) => {
    const { others } = fieldsOf(rule);
    // A field can't be both in a list of fields and set.
    const without = others ? rule : withField(rule, field, false);
    onChange(withPart(without, "set", { ...set, [field]: { claim: "sub" } }));
  };
  return (
    <div class="stack">
      <h4>{words.sets}</h4>
      {Object.entries(set).map(([field, value]) => {
        const place = words.setPlace(action, field);
        const claim = claimOf(value);
        const to = (next: unknown) => put({ ...set, [field]: next });
        return (
          <div class="rule" key={field}>
            <code>{field}</code>
            <select
              aria-label={words.operand(place)}
              value={claim === undefined ? "value" : "claim"}
              onChange={(event) => to(event.currentTarget.value === "claim" ? { claim: "sub" } : "")}
            >
              {Object.entries(words.operands).map(([name, label]) => (
                <option key={name} value={name}>
                  {label}
                </option>
              ))}
            </select>
            {claim === undefined && (isObject(value) || Array.isArray(value) || value === null) ? (
              <code>{jsonText(value)}</code>
            ) : (
              <input
                aria-label={claim === undefined ? words.value(place) : words.claim(place)}
                value={claim ?? literalText(value)}
                onInput={({ currentTarget: { value: text } }) =>
                  to(claim === undefined ? literalOf(text, value, false) : { claim: text })
                }
              />
            )}
            <Button
              icon="close"
              bare
              look="quiet"
              label={words.removeCondition(place)}
              onClick={() => {
                const { [field]: _, ...others } = set;
                put(others);
              }}
            />
          </div>
        );
      })}
      {free.length > 0 && (
        <div>
          <select
            aria-label={`${words.addSet}: ${action}`}
            value=""
            onChange={(event) => event.currentTarget.value && add(event.currentTarget.value)}
          >
            <option value="">{words.addSet} …</option>
            {free.map((field) => (
              <option key={field}>{field}</option>
            ))}
          </select>
        </div>
      )}
    </div>
  );
}

export function Unchecked({ rule, keys, onChange }: RuleProps & { keys: readonly string[] }) {
  const list = listOf(rule, "unchecked");
  const all = [...new Set([...keys, ...list])];
  if (all.length === 0) return null;
  const toggle = (key: string, isOn: boolean) => {
    const next = isOn ? [...list, key] : list.filter((name) => name !== key);
    onChange(withPart(rule, "unchecked", next.length > 0 ? next : undefined));
  };
  return (
    <fieldset>
      <legend>{words.unchecked}</legend>
      {all.map((key) => (
        <label class="check" key={key}>
          <input
            type="checkbox"
            checked={list.includes(key)}
            onChange={({ currentTarget: { checked } }) => toggle(key, checked)}
          />
          {key}
        </label>
      ))}
    </fieldset>
  );
}
