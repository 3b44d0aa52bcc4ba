// The foreign keys of a table as it is edited: a present one is kept or dropped, a new one is described.
import type { ForeignKeyDefinition, TableDefinition } from "@selkie/client";
import { Fragment } from "preact";
import { useEffect } from "preact/hooks";
import { SelectField, TextField } from "../manage/parts";
import { databases, loadTables, schemaOf, tables } from "../schema";
import { Button, useLoad } from "../ui";
import { type Draft, type DraftForeignKey, NO_COLUMN } from "./draft";
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
  const blank: DraftForeignKey = {
    name: "",
    database,
    table: "",
    pairs: [{ id: NO_COLUMN, column: "" }],
    onDelete: "",
    onUpdate: "",
  };
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
  const to = (table: string) => ({ table, pairs: pairs.map(({ id }) => ({ id, column: "" })) });
  const isOpen = pairs[0]?.column === "";
  useEffect(() => {
    // The table may be read after the column was chosen.
    if (isOpen && first) onChange({ pairs: pairs.with(0, { ...pairs[0]!, column: first }) });
  }, [isOpen, first]);
  return (
    <div class="row new-key" role="group" aria-label={own.add}>
      {pairs.map((pair, at) => (
        <Fragment key={at}>
          <SelectField
            label={words.column.one}
            name={own.column(at)}
            value={pair.id === NO_COLUMN ? "" : String(pair.id)}
            options={columns.map(({ id, name }) => [String(id), name] as const)}
            choose={words.choose}
            onChange={(id) =>
              onChange({
                pairs:
                  id || at === 0
                    ? pairs.with(at, { ...pair, id: id ? Number(id) : NO_COLUMN })
                    : pairs.toSpliced(at, 1),
              })
            }
          />
          <span class="arrow">→</span>
          {at === 0 && (
            <>
              <SelectField
                label={words.database}
                value={database}
                options={databases.value?.map((name) => [name, name] as const) ?? []}
                choose={words.choose}
                onChange={(database) => onChange({ database, ...to("") })}
              />
              <SelectField
                label={own.table}
                value={table}
                options={
                  tables.value[database]?.flatMap(({ kind, name }) =>
                    kind === "view" ? [] : [[name, name] as const],
                  ) ?? []
                }
                choose={words.choose}
                onChange={(table) => onChange(to(table))}
              />
            </>
          )}
          <SelectField
            label={own.targetColumn}
            name={own.target(at)}
            value={pair.column}
            options={targets.map(({ name }) => [name, name] as const)}
            choose={words.choose}
            onChange={(column) => onChange({ pairs: pairs.with(at, { ...pair, column }) })}
          />
        </Fragment>
      ))}
      <Button
        icon="plus"
        label={words.column.another}
        onClick={() => onChange({ pairs: [...pairs, { id: NO_COLUMN, column: "" }] })}
      />
      <SelectField
        label={own.onDelete}
        value={key.onDelete}
        options={own.actions}
        onChange={(onDelete) => onChange({ onDelete })}
      />
      <SelectField
        label={own.onUpdate}
        value={key.onUpdate}
        options={own.actions}
        onChange={(onUpdate) => onChange({ onUpdate })}
      />
      <TextField label={own.name} value={key.name} maxLength={64} onChange={(name) => onChange({ name })} />
      <Button icon="close" bare look="quiet" label={own.remove} onClick={onRemove} />
    </div>
  );
}
