// One entry of a role: which fields each action may use, which records, and what the role sets.
import { useState } from "preact/hooks";
import { texts } from "../texts";
import { Button } from "../ui";
import { Rules, useSchema } from "./builder";
import {
  ACTIONS,
  type Action,
  entryFor,
  fieldsOf,
  hasField,
  levelOf,
  type Members,
  partOf,
  withEntry,
  withField,
  withOthers,
  withPart,
  withRule,
} from "./file";
import { queryOf, rulesOf } from "./rules";
import { Sets, Unchecked } from "./sets";

const words = texts.roles;

interface Props {
  role: Members;
  name: string;
  onChange: (role: Members) => void;
  onClose: () => void;
}

export function TableRule({ role, name, onChange, onClose }: Props) {
  const schema = useSchema(name);
  const found = entryFor(role, name);
  const entry = found?.entry ?? {};
  const isOwn = found?.name === name;
  const allowed = ACTIONS.filter((action) => levelOf(entry[action]) !== "none");
  const set = (action: Action, rule: unknown) => onChange(withRule(role, name, action, rule));
  return (
    <section class="stack">
      <div class="row">
        <Button icon="table" label={words.all} onClick={onClose} />
        <h3>{name}</h3>
        {isOwn && (
          <Button
            icon="trash"
            look="danger"
            label={words.dropEntry}
            onClick={() => onChange(withEntry(role, name, undefined))}
          />
        )}
      </div>
      {!isOwn && <p class="dim">{found ? words.inherits(found.name) : words.nothing}</p>}
      <Fields entry={entry} name={name} fields={schema?.schema.map((field) => field.name) ?? []} onChange={set} />
      {allowed.map((action) => (
        <fieldset key={action} class="stack action">
          <legend>{words.rows[action]}</legend>
          <RowRules entry={entry} action={action} name={name} onChange={set} />
          {(action === "insert" || action === "update") && (
            <>
              <Sets
                action={action}
                rule={entry[action]}
                fields={schema?.schema.filter(({ generated }) => !generated).map((field) => field.name)}
                onChange={(rule) => set(action, rule)}
              />
              <Unchecked
                rule={entry[action]}
                keys={schema?.schema.filter(({ references }) => references).map((field) => field.name) ?? []}
                onChange={(rule) => set(action, rule)}
              />
            </>
          )}
        </fieldset>
      ))}
    </section>
  );
}

interface PartProps {
  entry: Members;
  name: string;
  onChange: (action: Action, rule: unknown) => void;
}

/** The matrix of fields and actions. An action that is denied has no fields; a record is deleted as a whole. */
function Fields({ entry, name, fields, onChange }: PartProps & { fields: readonly string[] }) {
  const [wanted, setWanted] = useState("");
  const writing = ACTIONS.filter((action) => action !== "delete");
  const named = writing.flatMap((action) => fieldsOf(entry[action]).named);
  const sets = writing.flatMap((action) => Object.keys(partOf(entry[action], "set")));
  const all = [...new Set([...fields, ...named, ...sets])];
  const box = (action: Action, field: string, isOn: boolean, isDenied: boolean, to: (isOn: boolean) => unknown) => (
    <input
      type="checkbox"
      aria-label={`${action} ${field}`}
      checked={isOn}
      disabled={isDenied}
      onChange={({ currentTarget: { checked } }) => onChange(action, to(checked))}
    />
  );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={words.fields}>
      <table class="list matrix">
        <thead>
          <tr>
            <th scope="col">{words.field}</th>
            {ACTIONS.map((action) => (
              <th scope="col" key={action}>
                <label class="check">
                  <input
                    type="checkbox"
                    aria-label={words.may(action, name)}
                    checked={levelOf(entry[action]) !== "none"}
                    onChange={({ currentTarget: { checked } }) => onChange(action, checked || undefined)}
                  />
                  {words.actions[action]}
                </label>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {all.map((field) => (
            <tr key={field}>
              <th scope="row">
                {field} {fields.length > 0 && !fields.includes(field) && <span class="tag">{words.noSuchField}</span>}
              </th>
              {writing.map((action) => {
                const rule = entry[action];
                const isDenied = levelOf(rule) === "none";
                const isOn = !isDenied && hasField(fieldsOf(rule), field);
                return (
                  <td key={action}>
                    {Object.hasOwn(partOf(rule, "set"), field) ? (
                      <span class="dim">{words.set}</span>
                    ) : (
                      box(action, field, isOn, isDenied, (to) => withField(rule, field, to))
                    )}
                  </td>
                );
              })}
              <td />
            </tr>
          ))}
          <tr>
            <th scope="row" class="dim">
              {words.others}
            </th>
            {writing.map((action) => {
              const rule = entry[action];
              const isDenied = levelOf(rule) === "none";
              const isOn = !isDenied && fieldsOf(rule).others;
              return (
                <td key={action}>{box(action, words.others, isOn, isDenied, (to) => withOthers(rule, to, all))}</td>
              );
            })}
            <td />
          </tr>
        </tbody>
      </table>
      {fields.length === 0 && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const action = writing.find((one) => levelOf(entry[one]) !== "none");
            const field = wanted.trim();
            if (!action || !field) return;
            onChange(action, withField(entry[action], field, !fieldsOf(entry[action]).others));
            setWanted("");
          }}
        >
          <input
            aria-label={words.newField}
            placeholder={words.newField}
            value={wanted}
            onInput={({ currentTarget: { value } }) => setWanted(value)}
          />
          <Button type="submit" icon="plus" label={words.addField} />
        </form>
      )}
    </div>
  );
}

function RowRules({ entry, action, name, onChange }: PartProps & { action: Action }) {
  const rule = entry[action];
  const rows = partOf(rule, "rows");
  const ofRead = partOf(entry.read, "rows");
  const isUnlimited =
    (action === "update" || action === "delete") && Object.keys(rows).length === 0 && Object.keys(ofRead).length > 0;
  const set = (query: Members) =>
    onChange(action, withPart(rule, "rows", Object.keys(query).length > 0 ? query : undefined));
  return (
    <>
      {Object.keys(rows).length === 0 && <p class="dim">{words.allRows}</p>}
      {action === "update" && Object.keys(rows).length > 0 && <p class="dim">{words.updateHint}</p>}
      {isUnlimited && (
        <div class="notice">
          <p>{words.unlimited(action)}</p>
          <Button label={words.copyRows(action)} onClick={() => set(ofRead)} />
        </div>
      )}
      <Rules table={name} place={`${action} `} rules={rulesOf(rows)} onChange={(rules) => set(queryOf(rules))} />
    </>
  );
}
