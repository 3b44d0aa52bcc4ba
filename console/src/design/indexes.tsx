// The indexes of a table as it is edited: a present index is kept or dropped, a new one is described.
import type { IndexDefinition, TableDefinition } from "@selkie/client";
import { TextField } from "../manage/parts";
import { Button } from "../ui";
import type { Draft, DraftIndex, DraftPart } from "./draft";
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
      <Button icon="plus" label={own.add} onClick={() => set([...added, { name: "", kind: "index", parts: [] }])} />
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
  const change = (at: number, part: DraftPart | null) =>
    onChange({ parts: part ? parts.with(at, part) : parts.toSpliced(at, 1) });
  const columns = draft.columns.filter(({ isDropped }) => !isDropped);
  const choice = (at: number, value: number | undefined, choose: (id: number | null) => void) => (
    <select
      aria-label={own.column(at)}
      value={value === undefined ? "" : String(value)}
      required={parts.length === 0}
      onChange={({ currentTarget: { value } }) => choose(value === "" ? null : Number(value))}
    >
      <option value="">{own.none}</option>
      {columns.map(({ id, name }) => (
        <option key={id} value={String(id)}>
          {name}
        </option>
      ))}
    </select>
  );
  return (
    <div class="row new-key" role="group" aria-label={words.index.add}>
      <select
        aria-label={own.kind}
        value={index.kind}
        onChange={({ currentTarget: { value } }) => onChange({ kind: value as DraftIndex["kind"] })}
      >
        {Object.entries(own.kinds).map(([kind, text]) => (
          <option key={kind} value={kind}>
            {text}
          </option>
        ))}
      </select>
      {parts.map((part, at) => (
        <span class="row" key={at}>
          {choice(at, part.id, (id) => change(at, id === null ? null : { ...part, id }))}
          {index.kind !== "fulltext" && (
            <>
              <input
                class="length"
                type="number"
                min={1}
                aria-label={own.length(at)}
                placeholder={own.lengthHint}
                value={part.length ?? ""}
                onInput={(event) => {
                  const { length: _, ...rest } = part;
                  const length = Number(event.currentTarget.value);
                  change(at, length ? { ...rest, length } : rest);
                }}
              />
              <select
                aria-label={own.order(at)}
                value={String(part.descending ?? false)}
                onChange={(event) => change(at, { ...part, descending: event.currentTarget.value === "true" })}
              >
                <option value="false">{own.ascending}</option>
                <option value="true">{own.descending}</option>
              </select>
            </>
          )}
        </span>
      ))}
      {choice(parts.length, undefined, (id) => id !== null && onChange({ parts: [...parts, { id }] }))}
      <TextField label={own.name} value={index.name} maxLength={64} onChange={(name) => onChange({ name })} />
      <Button icon="close" bare look="quiet" label={own.remove} onClick={onRemove} />
    </div>
  );
}
