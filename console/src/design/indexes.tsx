// The indexes of a table as it is edited: a present index is kept or dropped, a new one is described.
import type { IndexDefinition, TableDefinition } from "@selkie/client";
import { Fragment } from "preact";
import { SelectField, TextField } from "../manage/parts";
import { Button } from "../ui";
import { type Draft, type DraftIndex, type DraftPart, NO_COLUMN } from "./draft";
import { words } from "./words";

const own = words.index;

/** Returns the indexed columns as MariaDB writes them. */
export const columnsOf = ({ columns }: Pick<IndexDefinition, "columns">): string =>
  columns
    .map((part) => {
      if (typeof part === "string") return part;
      return `${part.column}${part.length ? words.length(part.length) : ""}${part.descending ? " DESC" : ""}`;
    })
    .join(", ");

interface Props {
  draft: Draft;
  made: TableDefinition | null;
  onChange: (part: Partial<Draft>) => void;
}

export function Indexes({ draft, made, onChange }: Props) {
  const { addedIndexes: added, droppedIndexes: dropped } = draft;
  const isDropped = (name: string) => dropped.includes(name);
  const toggle = (name: string) =>
    onChange({ droppedIndexes: isDropped(name) ? dropped.filter((one) => one !== name) : [...dropped, name] });
  const set = (addedIndexes: readonly DraftIndex[]) => onChange({ addedIndexes });
  return (
    <fieldset>
      <legend>{words.indexes}</legend>
      <ul>
        {made?.indexes.map((index) => (
          <li class={isDropped(index.name) ? "row dropped" : "row"} key={index.name}>
            <span>
              <strong>{index.name}</strong> <code>{columnsOf(index)}</code>{" "}
              <span class="tag">{own.kinds[index.kind] ?? index.kind}</span>
            </span>
            {isDropped(index.name) ? (
              <Button icon="undo" label={own.keep(index.name)} onClick={() => toggle(index.name)} />
            ) : (
              <Button icon="trash" bare look="danger" label={own.drop(index.name)} onClick={() => toggle(index.name)} />
            )}
          </li>
        ))}
        {added.map((index, at) => (
          <li key={at}>
            <NewIndex
              index={index}
              draft={draft}
              onChange={(part) => set(added.map((one) => (one === index ? { ...one, ...part } : one)))}
              onRemove={() => set(added.filter((one) => one !== index))}
            />
          </li>
        ))}
      </ul>
      <Button
        icon="plus"
        label={own.add}
        onClick={() => set([...added, { name: "", kind: "index", parts: [{ id: NO_COLUMN }] }])}
      />
    </fieldset>
  );
}

function NewIndex({
  index,
  draft,
  onChange,
  onRemove,
}: {
  index: DraftIndex;
  draft: Draft;
  onChange: (part: Partial<DraftIndex>) => void;
  onRemove: () => void;
}) {
  const { parts } = index;
  const change = (at: number, part: DraftPart) => onChange({ parts: parts.with(at, part) });
  const columns = draft.columns.filter(({ isDropped }) => !isDropped);
  return (
    <div class="row new-key" role="group" aria-label={words.index.add}>
      <SelectField
        label={own.kind}
        value={index.kind}
        options={Object.entries(own.kinds)}
        onChange={(kind) => onChange({ kind: kind as DraftIndex["kind"] })}
      />
      {parts.map((part, at) => (
        <Fragment key={at}>
          <SelectField
            label={words.column.one}
            name={own.column(at)}
            value={part.id === NO_COLUMN ? "" : String(part.id)}
            options={columns.map(({ id, name }) => [String(id), name] as const)}
            choose={words.choose}
            onChange={(id) =>
              onChange({
                parts:
                  id || at === 0
                    ? parts.with(at, { ...part, id: id ? Number(id) : NO_COLUMN })
                    : parts.toSpliced(at, 1),
              })
            }
          />
          {index.kind !== "fulltext" && (
            <>
              <label>
                <span>{own.firstCharacters}</span>
                <input
                  class="length"
                  type="number"
                  min={1}
                  aria-label={own.length(at)}
                  placeholder={own.all}
                  value={part.length ?? ""}
                  onInput={(event) => {
                    const { length: _, ...rest } = part;
                    const length = Number(event.currentTarget.value);
                    change(at, length ? { ...rest, length } : rest);
                  }}
                />
              </label>
              <SelectField
                label={own.direction}
                name={own.order(at)}
                value={String(part.descending ?? false)}
                options={[
                  ["false", own.ascending],
                  ["true", own.descending],
                ]}
                onChange={(descending) => change(at, { ...part, descending: descending === "true" })}
              />
            </>
          )}
        </Fragment>
      ))}
      <Button
        icon="plus"
        label={words.column.another}
        onClick={() => onChange({ parts: [...parts, { id: NO_COLUMN }] })}
      />
      <TextField label={own.name} value={index.name} maxLength={64} onChange={(name) => onChange({ name })} />
      <Button icon="close" bare look="quiet" label={own.remove} onClick={onRemove} />
    </div>
  );
}
