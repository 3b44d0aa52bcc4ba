// Shows records as a grid. Only the visible rows are in the DOM. The arrow keys change the active cell, as in a spreadsheet.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Field, kindOf, isNumeric, type Schema } from "../schema";
import { keep, kept, to } from "../session";
import { texts } from "../texts";
import { Icon } from "../ui";
import { label, type Row, show, widthOf } from "../values";
import type { Edits } from "./edits";
import { FieldInput, isInline, type InputProps } from "./input";
import { type Query, writeQuery, NO_QUERY } from "./query";
import type { Rows } from "./rows";
import type { May } from "./view";

const ROW_PX = 32;
/** Rows above and below the visible ones that are rendered too. */
const OVERSCAN = 12;
const WIDTH_MIN_PX = 56;

interface Props {
  database: string;
  table: string;
  schema: Schema;
  rows: Rows;
  edits: Edits;
  query: Query;
  may: May;
  setQuery: (query: Query) => void;
  opened: string | undefined;
  onOpen: (id: string, row: Row | undefined, field?: string) => void;
}

export function Grid({ database, table, schema, rows, edits, query, may, setQuery, opened, onOpen }: Props) {
  void rows.version.value;
  const fields = useMemo(() => {
    const shown = query.columns;
    return schema.schema.filter(({ name, invisible }) => (shown ? shown.includes(name) : !invisible));
  }, [schema, query.columns]);
  const [widths, setWidths] = useState<Record<string, number>>(() => kept(`widths:${edits.table}`, {}));
  const own = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState({ row: 0, column: 0 });
  const [editing, setEditing] = useState<{ row: number; column: number } | null>(null);
  const added = edits.list.value.filter(({ kind }) => kind === "insert");
  const count = added.length + rows.length + (rows.hasMore ? 1 : 0);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => own.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    scrollPaddingStart: ROW_PX,
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(
    () => rows.want(Math.max(0, first - added.length), Math.max(0, last - added.length)),
    [rows, first, last, count],
  );
  useLayoutEffect(
    () => setActive(({ column }) => ({ row: 0, column: Math.min(column, fields.length - 1) })),
    [rows, fields],
  );
  useLayoutEffect(() => {
    const columns = fields.map((field) => `${widths[field.name] ?? widthOf(field)}px`).join(" ");
    own.current?.style.setProperty("--columns", columns);
  }, [fields, widths]);

  /** Returns the content of a line: a new record, a record that was read, or undefined if it is not read yet. */
  const lineAt = (index: number) => {
    const edit = added[index];
    if (edit) return { id: edit.id, row: undefined, record: edit.data, edit };
    const row = rows.at(index - added.length);
    if (!row) return undefined;
    const id = edits.keys.length ? edits.idOf(row) : String(index);
    return { id, row, record: edits.shown(row), edit: edits.byId.value.get(id) };
  };

  const move = (row: number, column: number) => {
    const next = {
      row: Math.min(count - 1, Math.max(0, row)),
      column: Math.min(fields.length - 1, Math.max(0, column)),
    };
    setActive(next);
    virtual.scrollToIndex(next.row);
    const left = fields.slice(0, next.column).reduce((sum, field) => sum + (widths[field.name] ?? widthOf(field)), 0);
    const width = widths[fields[next.column]!.name] ?? widthOf(fields[next.column]!);
    const box = own.current!;
    if (left < box.scrollLeft) box.scrollLeft = left;
    else if (left + width > box.scrollLeft + box.clientWidth) box.scrollLeft = left + width - box.clientWidth;
  };

  const edit = (row: number, column: number) => {
    const line = lineAt(row);
    const field = fields[column];
    if (!line || !field || line.edit?.kind === "delete") return;
    const isAllowed = line.row ? may.update : may.insert;
    if (isAllowed && field.writable && isInline(field, line.record[field.name])) setEditing({ row, column });
    else onOpen(line.id, line.row, field.name);
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (editing || event.target !== own.current) return;
    const { row, column } = active;
    const page = Math.max(1, Math.floor((own.current?.clientHeight ?? ROW_PX) / ROW_PX) - 2);
    const steps: Record<string, () => void> = {
      ArrowDown: () => move(row + 1, column),
      ArrowUp: () => move(row - 1, column),
      ArrowRight: () => move(row, column + 1),
      ArrowLeft: () => move(row, column - 1),
      PageDown: () => move(row + page, column),
      PageUp: () => move(row - page, column),
      Home: () => move(event.ctrlKey ? 0 : row, 0),
      End: () => move(event.ctrlKey ? count - 1 : row, fields.length - 1),
      Enter: () => edit(row, column),
      F2: () => edit(row, column),
      " ": () => openAt(row),
      Delete: () => removeAt(row),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };
  const openAt = (row: number) => {
    const line = lineAt(row);
    if (line) onOpen(line.id, line.row);
  };
  const removeAt = (row: number) => {
    const line = lineAt(row);
    if (line?.row && may.remove) edits.remove(line.row);
    else if (line && !line.row) edits.drop(line.id);
  };
  const done = () => {
    setEditing(null);
    own.current?.focus();
  };
  const sort = (name: string, isMore: boolean) => {
    const now = query.order.find(({ field }) => field === name)?.strategy;
    const others = isMore ? query.order.filter(({ field }) => field !== name) : [];
    setQuery({
      ...query,
      order: now === "DESC" ? others : [...others, { field: name, strategy: now ? "DESC" : "ASC" }],
    });
  };
  const resize = (field: Field, width: number) => {
    const next = { ...widths, [field.name]: Math.max(WIDTH_MIN_PX, width) };
    setWidths(next);
    keep(`widths:${edits.table}`, next);
  };

  return (
    <div
      class="grid"
      ref={own}
      role="grid"
      tabIndex={0}
      aria-label={texts.table.grid(table)}
      aria-rowcount={rows.hasMore ? -1 : count + 1}
      aria-colcount={fields.length}
      aria-activedescendant={count ? `cell-${active.row}-${active.column}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div class="line header" role="row" aria-rowindex={1}>
        {fields.map((field, column) => (
          <Header
            key={field.name}
            field={field}
            column={column}
            query={query}
            sort={sort}
            width={widths[field.name] ?? widthOf(field)}
            resize={resize}
          />
        ))}
      </div>
      <div class="body" role="presentation" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map(({ index, start }) => {
          const line = lineAt(index);
          const kind = line?.edit?.kind ?? "";
          return (
            <div
              key={line?.id ?? index}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={line !== undefined && line.id === opened}
              class={`line ${kind} ${line?.edit?.faults?.length || line?.edit?.theirs !== undefined ? "wrong" : ""}`}
              style={{ transform: `translateY(${start}px)` }}
            >
              {fields.map((field, column) => {
                const isActive = active.row === index && active.column === column;
                const isEditing = editing?.row === index && editing.column === column;
                const className = `cell ${isActive ? "active" : ""} ${line?.edit && field.name in line.edit.data ? "changed" : ""} ${isEditing ? "editing" : ""}`;
                return (
                  <div
                    key={field.name}
                    id={`cell-${index}-${column}`}
                    role="gridcell"
                    aria-colindex={column + 1}
                    class={className}
                    onClick={() => {
                      if (isEditing) return;
                      setActive({ row: index, column });
                      own.current?.focus();
                    }}
                    onDblClick={() => edit(index, column)}
                  >
                    {!line ? (
                      <span class="ghost" />
                    ) : isEditing ? (
                      <CellEditor
                        field={field}
                        value={line.record[field.name]}
                        done={done}
                        commit={(value) =>
                          line.row
                            ? edits.change(line.row, field.name, value)
                            : edits.changeNew(line.id, field.name, value)
                        }
                      />
                    ) : (
                      <Value database={database} field={field} record={line.record} isNew={!line.row} />
                    )}
                    {line && column === 0 && !isEditing && (
                      <button
                        class="opener"
                        type="button"
                        tabIndex={-1}
                        aria-label={texts.table.open}
                        title={texts.table.open}
                        onClick={() => onOpen(line.id, line.row)}
                      >
                        <Icon name="arrow" />
                      </button>
                    )}
                  </div>
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Header({
  field,
  column,
  query,
  sort,
  width,
  resize,
}: {
  field: Field;
  column: number;
  query: Query;
  sort: (name: string, isMore: boolean) => void;
  width: number;
  resize: (field: Field, width: number) => void;
}) {
  const order = query.order.find((one) => one.field === field.name)?.strategy;
  const drag = (event: PointerEvent) => {
    event.preventDefault();
    const from = event.clientX;
    const onMove = (moved: PointerEvent) => resize(field, width + moved.clientX - from);
    const stop = () => {
      removeEventListener("pointermove", onMove);
      removeEventListener("pointerup", stop);
    };
    addEventListener("pointermove", onMove);
    addEventListener("pointerup", stop);
  };
  return (
    <div
      class="cell"
      role="columnheader"
      aria-colindex={column + 1}
      aria-sort={order === "ASC" ? "ascending" : order === "DESC" ? "descending" : "none"}
    >
      <button
        type="button"
        class="sort"
        title={`${field.name} ${field.type}${field.comment ? `\n${field.comment}` : ""}`}
        aria-label={texts.table.sort(field.name)}
        onClick={(event) => sort(field.name, event.shiftKey)}
      >
        <span class="cut">{field.name}</span>
        {field.primaryKey && <Icon name="key" />}
        {order && <Icon name={order === "ASC" ? "up" : "down"} />}
      </button>
      <span class="grip" aria-hidden="true" onPointerDown={drag} />
    </div>
  );
}

/** Shows a value, with a link to the record to which its foreign key refers. */
export function Value({
  database,
  field,
  record,
  isNew,
}: {
  database: string;
  field: Field;
  record: Row;
  isNew?: boolean;
}) {
  const value = record[field.name];
  if (value === undefined) {
    const isMissing = isNew && field.required;
    return (
      <span class={isMissing ? "fault small" : "look-null"}>
        {isMissing ? texts.record.required : isNew ? texts.record.default : ""}
      </span>
    );
  }
  const kind = kindOf(field);
  const { text, look } = show(value, kind);
  const reference = field.references;
  return (
    <>
      <span class={`value look-${look} ${isNumeric(kind) ? "right" : ""}`}>{text}</span>
      {reference && value !== null && (
        <a
          class="follow"
          tabIndex={-1}
          aria-label={texts.table.follow(reference.table)}
          title={texts.table.follow(reference.table)}
          href={to(
            "data",
            [database, reference.table],
            writeQuery({ ...NO_QUERY, filters: [{ field: reference.field, operator: "eq", value: label(value) }] }),
          )}
        >
          <Icon name="link" />
        </a>
      )}
    </>
  );
}

function CellEditor({
  field,
  value,
  commit,
  done,
}: Pick<InputProps, "field" | "value"> & { commit: (value: unknown) => void; done: () => void }) {
  const [own, setOwn] = useState(value);
  const isDone = useRef(false);
  const finish = (isKept: boolean) => {
    if (isDone.current) return;
    isDone.current = true;
    if (isKept && own !== value) commit(own);
    done();
  };
  const latest = useRef(finish);
  latest.current = finish;
  useLayoutEffect(() => {
    // A reload keeps what was typed, like an Enter.
    const keep = () => latest.current(true);
    addEventListener("pagehide", keep);
    return () => removeEventListener("pagehide", keep);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      finish(true);
    } else if (event.key === "Escape") {
      finish(false);
    }
  };
  return (
    <div
      class="cell-editor"
      onKeyDown={onKeyDown}
      onBlurCapture={(event) => !event.currentTarget.contains(event.relatedTarget as Node) && finish(true)}
    >
      <FieldInput field={field} value={own} onChange={setOwn} label={field.name} focused compact />
    </div>
  );
}
