// The foreign keys of a table as it is edited: a present one is kept or dropped, a new one is described.
import type { ForeignKeyDefinition, TableDefinition } from "@selkie/client";
import { useEffect } from "preact/hooks";
import { TextField } from "../manage/parts";
import { databases, loadTables, schemaOf, tables } from "../schema";
import { Button, useLoad } from "../ui";
import type { Draft, DraftForeignKey } from "./draft";
import { words } from "./words";

const own = words.foreignKey;

/** Returns what a foreign key says, as text. */
export const foreignKeyText = ({ columns, references, onDelete, onUpdate }: ForeignKeyDefinition): string => {
  const { database, table, columns: targets } = references;
  const rules = [
    onDelete && onDelete !== "restrict" ? ` ON DELETE ${onDelete.toUpperCase()}` : "",
    onUpdate && onUpdate !== "restrict" ? ` ON UPDATE ${onUpdate.toUpperCase()}` : "",
  ];
  return `${columns.join(", ")} → ${database ? `${database}.` : ""}${table} (${targets.join(", ")})${rules.join("")}`;
};

interface Props {
  database: string;
  draft: Draft;
  made: TableDefinition | null;
  onChange: (part: Partial<Draft>) => void;
}

export function ForeignKeys({ database, draft, made, onChange }: Props) {
  const { addedForeignKeys: added, droppedForeignKeys: dropped } = draft;
  const isDropped = (name: string) => dropped.includes(name);
  const toggle = (name: string) =>
    onChange({ droppedForeignKeys: isDropped(name) ? dropped.filter((one) => one !== name) : [...dropped, name] });
  const set = (addedForeignKeys: readonly DraftForeignKey[]) => onChange({ addedForeignKeys });
  const blank: DraftForeignKey = { name: "", database, table: "", pairs: [], onDelete: "", onUpdate: "" };
  return (
    <fieldset>
      <legend>{words.foreignKeys}</legend>
      <ul>
        {made?.foreignKeys.map((key) => (
          <li class={isDropped(key.name) ? "row dropped" : "row"} key={key.name}>
            <span>
              <strong>{key.name}</strong> <code>{foreignKeyText(key)}</code>
            </span>
            {isDropped(key.name) ? (
              <Button icon="undo" label={own.keep(key.name)} onClick={() => toggle(key.name)} />
            ) : (
              <Button icon="trash" bare look="danger" label={own.drop(key.name)} onClick={() => toggle(key.name)} />
            )}
          </li>
        ))}
        {added.map((key, at) => (
          <li key={at}>
            <NewForeignKey
              own={key}
              draft={draft}
              onChange={(part) => set(added.map((one) => (one === key ? { ...one, ...part } : one)))}
              onRemove={() => set(added.filter((one) => one !== key))}
            />
          </li>
        ))}
      </ul>
      <Button icon="plus" label={own.add} onClick={() => set([...added, blank])} />
    </fieldset>
  );
}

function NewForeignKey({
  own: key,
  draft,
  onChange,
  onRemove,
}: {
  own: DraftForeignKey;
  draft: Draft;
  onChange: (part: Partial<DraftForeignKey>) => void;
  onRemove: () => void;
}) {
  const { database, table, pairs } = key;
  const isKnown = database in tables.value;
  useEffect(() => {
    // A table can't be chosen until they are read; the side bar tells of errors.
    if (!isKnown) void loadTables(database).catch(() => undefined);
  }, [database]);
  const target = useLoad(async () => (table ? (await schemaOf(database, table)).schema : []), [database, table]);
  const targets = target.value ?? [];
  const columns = draft.columns.filter(({ isDropped }) => !isDropped);
  const first = targets.find(({ primaryKey }) => primaryKey)?.name ?? "";
  const isOpen = pairs[0]?.column === "";
  useEffect(() => {
    // The table may be read after the column was chosen.
    if (isOpen && first) onChange({ pairs: pairs.with(0, { ...pairs[0]!, column: first }) });
  }, [isOpen, first]);
  /** The pairs, and one that is to be chosen. */
  const shown = [...pairs, undefined];
  const select = (
    label: string,
    value: string,
    options: readonly (readonly [string, string])[],
    choose: (value: string) => void,
    required = false,
  ) => (
    <select
      aria-label={label}
      value={value}
      required={required}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      <option value="">{own.choose}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
  const action = (label: string, value: string, choose: (value: string) => void) => (
    <label>
      {label}
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">{own.usual}</option>
        {own.actions.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
  return (
    <div class="row new-key" role="group" aria-label={own.add}>
      {select(
        words.database,
        database,
        databases.value?.map((name) => [name, name] as const) ?? [],
        (database) => onChange({ database, table: "", pairs: [] }),
        true,
      )}
      {select(
        own.table,
        table,
        tables.value[database]?.filter(({ kind }) => kind !== "view").map(({ name }) => [name, name] as const) ?? [],
        (table) => onChange({ table, pairs: pairs.map(({ id }) => ({ id, column: "" })) }),
        true,
      )}
      {table !== "" &&
        shown.map((pair, at) => (
          <span class="row" key={at}>
            {select(
              own.column(at),
              pair ? String(pair.id) : "",
              columns.map(({ id, name }) => [String(id), name] as const),
              (value) =>
                onChange({
                  pairs:
                    value === ""
                      ? pairs.toSpliced(at, 1)
                      : pairs.toSpliced(at, 1, { id: Number(value), column: pair?.column ?? "" }),
                }),
              at === 0,
            )}
            {pair && (
              <>
                →
                {select(
                  own.target(at),
                  pair.column,
                  targets.map(({ name }) => [name, name] as const),
                  (column) => onChange({ pairs: pairs.with(at, { ...pair, column }) }),
                  true,
                )}
              </>
            )}
          </span>
        ))}
      {action(own.onDelete, key.onDelete, (onDelete) => onChange({ onDelete }))}
      {action(own.onUpdate, key.onUpdate, (onUpdate) => onChange({ onUpdate }))}
      <TextField label={own.name} value={key.name} maxLength={64} onChange={(name) => onChange({ name })} />
      <Button icon="close" bare look="quiet" label={own.remove} onClick={onRemove} />
    </div>
  );
}
