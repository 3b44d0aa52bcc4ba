// The columns of a table as it is edited.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "../ui";
import { type Draft, type DraftColumn, nextId } from "./draft";
import { words } from "./words";

const own = words.column;

/** Types that are offered; others may be typed. */
const TYPES = (
  "int|bigint|bigint unsigned|smallint|tinyint(1)|decimal(10,2)|double|varchar(255)|text|mediumtext|longtext|char(36)|" +
  "date|datetime|datetime(3)|timestamp|time|year|json|uuid|inet6|enum('a','b')|set('a','b')|varbinary(255)|blob|point"
).split("|");
/** Types that mean nothing without their values or their length. */
const INCOMPLETE = /^\s*(enum|set|varchar|varbinary)\s*$/i;

type Source = keyof typeof own.sources;
type Part = Partial<DraftColumn>;

function sourceOf({ autoIncrement, generated, default: value }: DraftColumn): Source {
  if (autoIncrement) return "auto";
  if (generated) return generated.stored ? "stored" : "virtual";
  if (value === undefined || value === null) return "none";
  return typeof value === "object" ? "expression" : "value";
}

function sourceText({ generated, default: value }: DraftColumn): string {
  if (generated) return generated.expression;
  return typeof value === "object" ? (value?.expression ?? "") : String(value ?? "");
}

/** Returns what a column gets when the source of its values, or the text of the source, is set. */
function withSource(source: Source, text: string): Part {
  const expression = { expression: text };
  return {
    autoIncrement: source === "auto",
    generated: source === "virtual" || source === "stored" ? { ...expression, stored: source === "stored" } : undefined,
    default: source === "value" ? text : source === "expression" ? expression : undefined,
  } as Part;
}

export function Columns({ draft, onChange }: { draft: Draft; onChange: (part: Partial<Draft>) => void }) {
  const { columns, primaryKey } = draft;
  const change = (id: number, part: Part) =>
    onChange({ columns: columns.map((column) => (column.id === id ? { ...column, ...part } : column)) });
  /** Puts the column before another one, or last. */
  const move = (column: DraftColumn, before: DraftColumn | undefined) => {
    const others = columns.filter((one) => one !== column);
    const at = before ? others.indexOf(before) : others.length;
    onChange({ columns: others.toSpliced(at, 0, column) });
  };
  const drop = (column: DraftColumn) =>
    column.was !== undefined
      ? change(column.id, { isDropped: !column.isDropped })
      : onChange({
          columns: columns.filter((one) => one !== column),
          primaryKey: primaryKey.filter((id) => id !== column.id),
        });
  return (
    <fieldset class="design-columns">
      <legend>{words.columns}</legend>
      <datalist id="column-types">
        {TYPES.map((type) => (
          <option key={type} value={type} />
        ))}
      </datalist>
      <ul>
        {columns.map((column, at) => (
          <Column
            key={column.id}
            column={column}
            at={at}
            columns={columns}
            isKey={primaryKey.includes(column.id)}
            onKey={(isKey) =>
              onChange({ primaryKey: isKey ? [...primaryKey, column.id] : primaryKey.filter((id) => id !== column.id) })
            }
            onChange={(part) => change(column.id, part)}
            onMove={(before) => move(column, before)}
            onDrop={() => drop(column)}
          />
        ))}
      </ul>
      <Button
        icon="plus"
        label={own.add}
        onClick={() =>
          onChange({ columns: [...columns, { id: nextId(draft), name: "", type: "varchar(255)", nullable: true }] })
        }
      />
    </fieldset>
  );
}

interface Props {
  column: DraftColumn;
  at: number;
  columns: readonly DraftColumn[];
  isKey: boolean;
  onKey: (isKey: boolean) => void;
  onChange: (part: Part) => void;
  onMove: (before: DraftColumn | undefined) => void;
  onDrop: () => void;
}

function Column(props: Props) {
  const { column, at, columns, isKey, onKey, onChange, onMove, onDrop } = props;
  const [isOpen, setOpen] = useState(false);
  const { name, type, nullable, isDropped } = column;
  const source = sourceOf(column);
  const nameInput = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => void (name === "" && nameInput.current?.focus()), []);
  const called = name || column.was || own.unnamed;
  const label = (text: string) => own.of(text, at);
  if (isDropped)
    return (
      <li class="row dropped">
        <span>
          <del>{column.was}</del> {own.dropped}
        </span>
        <Button icon="undo" label={own.keep(called)} onClick={onDrop} />
      </li>
    );
  return (
    <li>
      <div class="design-column">
        <label>
          <span>{own.name}</span>
          <input
            ref={nameInput}
            class="mono"
            aria-label={label(own.name)}
            value={name}
            required
            maxLength={64}
            onInput={(event) => onChange({ name: event.currentTarget.value })}
          />
        </label>
        <label>
          <span>{own.type}</span>
          <input
            ref={(input) => input?.setCustomValidity(INCOMPLETE.test(type) ? own.incomplete : "")}
            class="mono"
            aria-label={label(own.type)}
            value={type}
            required
            list="column-types"
            onInput={(event) => onChange({ type: event.currentTarget.value })}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            aria-label={label(own.nullable)}
            checked={nullable ?? false}
            onChange={(event) => onChange({ nullable: event.currentTarget.checked })}
          />
          {own.nullable}
        </label>
        <label class="check">
          <input
            type="checkbox"
            aria-label={label(own.key)}
            checked={isKey}
            onChange={(event) => onKey(event.currentTarget.checked)}
          />
          {own.key}
        </label>
        <label>
          <span>{own.source}</span>
          <select
            aria-label={label(own.source)}
            value={source}
            onChange={(event) => onChange(withSource(event.currentTarget.value as Source, sourceText(column)))}
          >
            {Object.entries(own.sources).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {source === "none" || source === "auto" ? (
          <span class="source-value" />
        ) : (
          <label class="source-value">
            <span>{own.value}</span>
            <input
              class="mono"
              aria-label={label(own.value)}
              value={sourceText(column)}
              onInput={(event) => onChange(withSource(source, event.currentTarget.value))}
            />
          </label>
        )}
        <span class="row buttons">
          <Button
            icon="up"
            bare
            look="quiet"
            label={own.up(called)}
            disabled={at === 0}
            onClick={() => onMove(columns[at - 1])}
          />
          <Button
            icon="down"
            bare
            look="quiet"
            label={own.down(called)}
            disabled={at === columns.length - 1}
            onClick={() => onMove(columns[at + 2])}
          />
          <Button
            icon="menu"
            bare
            look="quiet"
            label={own.moreOf(called)}
            expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          />
          <Button icon="trash" bare look="danger" label={own.drop(called)} onClick={onDrop} />
        </span>
      </div>
      {isOpen && <More {...props} />}
    </li>
  );
}

function More({ column, at, columns, onChange, onMove }: Props) {
  const others = columns.filter((one) => one !== column);
  const text = (label: string, value: string | undefined, set: (value: string) => Part, isCode?: true) => (
    <label>
      <span>{label}</span>
      <input
        class={isCode && "mono"}
        aria-label={own.of(label, at)}
        value={value ?? ""}
        onInput={(event) => onChange(set(event.currentTarget.value))}
      />
    </label>
  );
  return (
    <div class="row design-more">
      {text(own.comment, column.comment, (comment) => ({ comment }))}
      {text(own.check, column.check?.expression, (expression) => ({ check: { expression } }), true)}
      {text(own.onUpdate, column.onUpdate, (onUpdate) => ({ onUpdate }), true)}
      {/* A collation is one of its character set. */}
      {text(own.charset, column.charset, (charset) => ({ charset, collation: "" }), true)}
      {text(own.collation, column.collation, (collation) => ({ collation }), true)}
      <label>
        <span>{own.place}</span>
        <select
          aria-label={own.of(own.place, at)}
          value={String(at)}
          onChange={({ currentTarget: { value } }) => onMove(others[Number(value)])}
        >
          {columns.map((_, to) => (
            <option key={to} value={String(to)}>
              {to === 0 ? own.first : own.after(others[to - 1]!.name)}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={column.invisible ?? false}
          onChange={(event) => onChange({ invisible: event.currentTarget.checked })}
        />
        {own.invisible}
      </label>
    </div>
  );
}
