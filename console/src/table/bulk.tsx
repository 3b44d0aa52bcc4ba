// What is done with many records at once: copy, set a field, delete, add from a spreadsheet. A write is counted first.
import { useState } from "preact/hooks";
import type { Schema } from "../schema";
import { tableOf } from "../session";
import { texts } from "../texts";
import { Button, Copy, Problem, Spinner } from "../ui";
import type { Row } from "../values";
import { FORMS, textOf } from "./copy";
import { short } from "./edits-bar";
import { type Edits, needsTransactions } from "./edits";
import { FieldInput } from "./input";
import type { Labels } from "./labels";
import { PASTED_MAX_ROWS, PasteError, paste } from "./paste";
import { conditionsOf, type Query } from "./query";
import type { Selection } from "./selection";
import type { May } from "./view";

const words = texts.rows;

type Where = Record<string, unknown>;

/** Returns the condition that only these records fulfil. */
function whereOf(keys: readonly string[], rows: readonly Row[]): Where {
  const [only] = keys;
  if (keys.length === 1 && only) return { [only]: { in: rows.map((row) => row[only]) } };
  return { or: rows.map((row) => Object.fromEntries(keys.map((key) => [key, row[key]]))) };
}

/** A write of many records that waits for the user's word. */
interface Asked {
  /** Undefined: the records are deleted. */
  data: Row | undefined;
  where: Where;
  count: number;
  /** Whether the service counts again, and refuses to write more records. */
  isBounded: boolean;
}

interface Props {
  database: string;
  table: string;
  schema: Schema;
  query: Query;
  edits: Edits;
  labels: Labels;
  selection: Selection;
  may: May;
  onChanged: () => void;
}

export function Bulk({ database, table, schema, query, edits, labels, selection, may, onChanged }: Props) {
  const rows = [...selection.rows.value.values()];
  const filtered = conditionsOf(query, edits.keys);
  const [scope, setScope] = useState<"selected" | "filter">("selected");
  const fields = schema.schema.filter(({ writable }) => writable);
  const [name, setName] = useState("");
  const [value, setValue] = useState<unknown>(undefined);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [done, setDone] = useState("");
  const [error, setError] = useState<unknown>(null);
  const target = tableOf(`${database}.${table}`);
  const field = fields.find((one) => one.name === name);
  const where = scope === "filter" ? filtered : rows.length ? whereOf(edits.keys, rows) : undefined;

  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    setDone("");
    setBusy(true);
    await work().catch(setError);
    setBusy(false);
  };
  const write = ({ data, where }: Asked, options: { dryRun?: true; maxAffected?: number }) =>
    data ? target.update({ where }, data, options) : target.remove({ where }, options);
  const ask = (data: Row | undefined) =>
    attempt(async () => {
      const draft = { data, where: where!, count: 0, isBounded: true };
      try {
        setAsked({ ...draft, count: Number(await write(draft, { dryRun: true })) });
      } catch (refused) {
        if (!needsTransactions(refused)) throw refused;
        setAsked({ ...draft, count: await target.count({ where: draft.where }), isBounded: false });
      }
    });
  const confirm = (one: Asked) =>
    attempt(async () => {
      const count = Number(await write(one, one.isBounded ? { maxAffected: one.count } : {}));
      setAsked(null);
      setDone(one.data ? words.changed(count) : words.deleted(count));
      // The user may want to set the records to something else. A record with another key is another record.
      if (one.data && !edits.keys.includes(name)) selection.overwrite(one.data);
      else selection.clear();
      onChanged();
    });
  const shown = schema.schema.filter(({ name, invisible }) =>
    query.columns ? query.columns.includes(name) : !invisible,
  );
  const hasWrites = (may.update && fields.length > 0) || may.remove;
  return (
    <div class="stack bulk">
      {rows.length > 0 ? (
        <div class="row">
          <span>{words.copy(rows.length)}</span>
          {FORMS.map((form) => (
            <Copy key={form} label={form} done={texts.table.copied} text={() => textOf(form, table, shown, rows)} />
          ))}
          <Button look="quiet" label={words.clear} onClick={() => selection.clear()} />
        </div>
      ) : (
        <p class="dim small">{words.hint}</p>
      )}
      {hasWrites && (
        <fieldset disabled={asked !== null || isBusy} class="stack">
          <label class="inline">
            {words.scope}{" "}
            <select value={scope} onChange={(event) => setScope(event.currentTarget.value as typeof scope)}>
              <option value="selected">{words.selected(rows.length)}</option>
              {filtered && (
                <option value="filter">{query.filters.length || query.search ? words.filtered : words.all}</option>
              )}
            </select>
          </label>
          {may.update && fields.length > 0 && (
            <div class="row set-field">
              <label class="inline">
                {words.set}{" "}
                <select
                  value={name}
                  onChange={(event) => {
                    setName(event.currentTarget.value);
                    setValue(undefined);
                  }}
                >
                  <option value="">{words.choose}</option>
                  {fields.map(({ name }) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              </label>
              {field && (
                <FieldInput
                  key={name}
                  field={field}
                  value={value}
                  onChange={setValue}
                  labels={labels}
                  label={texts.table.value}
                  unset={words.choose}
                />
              )}
              <Button
                label={words.change}
                disabled={!where || !field || value === undefined}
                onClick={() => void ask({ [name]: value })}
              />
            </div>
          )}
          {may.remove && (
            <div>
              <Button
                icon="trash"
                look="danger"
                label={words.remove}
                disabled={!where}
                onClick={() => void ask(undefined)}
              />
            </div>
          )}
        </fieldset>
      )}
      {isBusy && <Spinner label={words.busy} />}
      {error !== null && <Problem error={error} />}
      {asked && !isBusy && (
        <div class="notice danger asked" role="alert">
          <p>{asked.data ? words.wouldChange(asked.count, name, short(value)) : words.wouldDelete(asked.count)}</p>
          <div class="row">
            <Button
              look="danger"
              label={asked.data ? words.confirmChange(asked.count) : words.confirmDelete(asked.count)}
              disabled={asked.count === 0}
              onClick={() => void confirm(asked)}
            />
            <Button label={texts.cancel} onClick={() => setAsked(null)} />
          </div>
        </div>
      )}
      <p role="status">{done}</p>
      {may.insert && <Pasted schema={schema} edits={edits} />}
    </div>
  );
}

/** Says why a paste was refused. */
export const refusalOf = (error: unknown): string =>
  !(error instanceof PasteError)
    ? String(error)
    : error.reason === "rows"
      ? words.tooMany(PASTED_MAX_ROWS)
      : error.reason === "unread"
        ? words.unread
        : words.wrongValue(error.field);

/** Takes new records from a text, also on a phone, which can't paste into the grid. */
function Pasted({ schema, edits }: { schema: Schema; edits: Edits }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const add = () => {
    const fields = schema.schema.filter(({ writable, autoIncrement }) => writable && !autoIncrement);
    try {
      paste(text, { row: undefined, column: 0 }, fields, { count: 0, at: () => undefined }, edits);
      setText("");
      setFault("");
    } catch (error) {
      setFault(refusalOf(error));
    }
  };
  return (
    <div class="stack">
      <label class="stack">
        {words.paste}
        <textarea
          class="mono"
          rows={2}
          spellcheck={false}
          value={text}
          placeholder={words.pasteHint}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <div>
        <Button icon="plus" label={words.add} disabled={text.trim() === ""} onClick={add} />
      </div>
    </div>
  );
}
