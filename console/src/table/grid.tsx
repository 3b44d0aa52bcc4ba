// Shows records as a grid. Only the visible rows are in the DOM. The arrow keys change the active cell, as in a spreadsheet.
import { flushSync } from "preact/compat";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Schema } from "../schema";
import { texts } from "../texts";
import type { Row } from "../values";
import { tsv } from "./copy";
import type { Edits } from "./edits";
import type { Step } from "./grid/cell";
import { ColumnHeader } from "./grid/header";
import { GridLine } from "./grid/line";
import { Lines } from "./grid/lines";
import { useWidths } from "./grid/widths";
import { isInline } from "./input";
import { useClipboard } from "./grid/clipboard";
import type { Labels } from "./labels";
import { paste } from "./paste";
import type { Query } from "./query";
import { PAGE_RECORDS, type Rows } from "./rows";
import type { Selection } from "./selection";
import type { May } from "./view";

const ROW_PX = 32;
/** The width of the column of boxes. */
const PICK_PX = 34;
/** Where the style sheet shows either the grid or the record, and a tap opens the record. */
const PHONE = "(max-width: 820px)";
/** Rows above and below the visible ones that are rendered too. */
const OVERSCAN = 12;

interface Props {
  database: string;
  table: string;
  schema: Schema;
  rows: Rows;
  edits: Edits;
  labels: Labels;
  selection: Selection;
  query: Query;
  may: May;
  setQuery: (query: Query) => void;
  opened: string | undefined;
  onOpen: (id: string, row: Row | undefined, field?: string) => void;
  onDuplicate: (row: Row) => void;
  /** Told why a paste was refused. */
  onFault: (error: unknown) => void;
}

export function Grid({
  database,
  table,
  schema,
  rows,
  edits,
  labels,
  selection,
  query,
  may,
  setQuery,
  opened,
  onOpen,
  onDuplicate,
  onFault,
}: Props) {
  void rows.version.value;
  const selected = selection.rows.value.size;
  const isAllSelected = selected > 0 && selected === rows.length && !rows.hasMore;
  const fields = useMemo(() => {
    const shown = query.columns;
    return schema.schema.filter(({ name, invisible }) => (shown ? shown.includes(name) : !invisible));
  }, [schema, query.columns]);
  const widths = useWidths(edits.table);
  const own = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState({ row: 0, column: 0 });
  const [editing, setEditing] = useState<{ row: number; column: number } | null>(null);
  const lines = new Lines(rows, edits);
  const { count } = lines;
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => own.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    scrollPaddingStart: ROW_PX,
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => lines.want(first, last), [rows, first, last, count]);
  // Whole pages, so that scrolling reads the labels of a page together.
  const begin = first - (first % PAGE_RECORDS);
  const end = last - (last % PAGE_RECORDS) + PAGE_RECORDS;
  useEffect(() => {
    const shown = Array.from({ length: end - begin }, (_, at) => lines.at(begin + at)?.record);
    labels.want(shown.filter((record) => record !== undefined));
  }, [labels, labels.version.value, rows.version.value, edits.list.value, begin, end]);
  useLayoutEffect(
    () => setActive(({ column }) => ({ row: 0, column: Math.min(column, fields.length - 1) })),
    [rows, fields],
  );
  const columns = [`${PICK_PX}px`, ...fields.map((field) => `${widths.of(field)}px`)].join(" ");
  useLayoutEffect(() => own.current?.style.setProperty("--columns", columns), [columns]);

  const move = (row: number, column: number) => {
    const next = {
      row: Math.min(count - 1, Math.max(0, row)),
      column: Math.min(fields.length - 1, Math.max(0, column)),
    };
    setActive(next);
    virtual.scrollToIndex(next.row);
    const left = fields.slice(0, next.column).reduce((sum, field) => sum + widths.of(field), next.column && PICK_PX);
    const right = left + (next.column ? 0 : PICK_PX) + widths.of(fields[next.column]!);
    const box = own.current!;
    if (left < box.scrollLeft) box.scrollLeft = left;
    else if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth;
  };
  const edit = (row: number, column: number) => {
    const line = lines.at(row);
    const field = fields[column];
    if (!line || !field || line.edit?.kind === "delete") return;
    const isAllowed = line.row ? may.update : may.insert;
    if (isAllowed && field.writable && isInline(field, line.record[field.name])) setEditing({ row, column });
    else onOpen(line.id, line.row, field.name);
  };
  const isInPlace = (row: number, column: number) => {
    const [line, field] = [lines.at(row), fields[column]];
    return line && field?.writable && (line.row ? may.update : may.insert) && isInline(field, line.record[field.name]);
  };
  const edited = (step: Step) => {
    setEditing(null);
    own.current?.focus();
    const { row, column } = active;
    if (step === "down") move(row + 1, column);
    else if (step !== "stay") move(row, column + (step === "next" ? 1 : -1));
  };
  const extend = (row: number) => {
    const next = Math.min(count - 1, Math.max(0, row));
    selection.begin(active.row);
    move(next, active.column);
    selection.extend(next, lines);
  };
  const select = (row: number, isRange = false) => {
    const line = lines.at(row);
    if (isRange) selection.extend(row, lines);
    else if (line) selection.toggle(row, line);
  };
  const open = (row: number) => {
    const line = lines.at(row);
    if (line) onOpen(line.id, line.row);
  };
  const remove = (row: number) => {
    const line = lines.at(row);
    if (line?.row && may.remove) edits.remove(line.row);
    else if (line && !line.row) edits.drop(line.id);
  };
  const shortcuts: Record<string, () => void> = {
    a: () => selection.all(lines),
    d: () => {
      const line = lines.at(active.row);
      if (line?.row && may.insert) onDuplicate(line.row);
    },
  };
  useClipboard(own, {
    copied: () => {
      const line = lines.at(active.row);
      const field = fields[active.column];
      const rows = [...selection.rows.value.values()];
      const names = fields.map(({ name }) => name);
      return rows.length ? tsv(names, rows) : line && field ? tsv([field.name], [line.record]) : undefined;
    },
    onPaste: (text) => {
      if (may.update || may.insert) paste(text, active, fields, lines, edits);
    },
    onFault,
  });
  const onKeyDown = (event: KeyboardEvent) => {
    if (editing || event.target !== own.current) return;
    const { row, column } = active;
    const page = Math.max(1, Math.floor((own.current?.clientHeight ?? ROW_PX) / ROW_PX) - 2);
    const withControl = event.ctrlKey || event.metaKey;
    if (withControl && event.key in shortcuts) {
      event.preventDefault();
      return shortcuts[event.key]!();
    }
    if (event.key.length === 1 && event.key !== " " && !withControl && !event.altKey) {
      // The editor has the keyboard before the browser inserts the character.
      if (isInPlace(row, column)) flushSync(() => edit(row, column));
      return;
    }
    const steps: Record<string, () => void> = {
      ArrowDown: () => (event.shiftKey ? extend(row + 1) : move(row + 1, column)),
      ArrowUp: () => (event.shiftKey ? extend(row - 1) : move(row - 1, column)),
      ArrowRight: () => move(row, column + 1),
      ArrowLeft: () => move(row, column - 1),
      PageDown: () => move(row + page, column),
      PageUp: () => move(row - page, column),
      Home: () => move(event.ctrlKey ? 0 : row, 0),
      End: () => move(event.ctrlKey ? count - 1 : row, fields.length - 1),
      Enter: () => edit(row, column),
      F2: () => edit(row, column),
      " ": () => (event.shiftKey ? select(row) : open(row)),
      Delete: () => remove(row),
      Escape: () => selection.clear(),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  };

  return (
    <div
      class="grid"
      ref={own}
      role="grid"
      tabIndex={0}
      aria-label={texts.table.grid(table)}
      aria-rowcount={rows.hasMore ? -1 : count + 1}
      aria-colcount={fields.length + 1}
      aria-activedescendant={count ? `cell-${active.row}-${active.column}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div class="line header" role="row" aria-rowindex={1}>
        <div class="cell pick" role="columnheader" aria-colindex={1}>
          <input
            type="checkbox"
            checked={isAllSelected}
            indeterminate={selected > 0 && !isAllSelected}
            aria-label={texts.rows.selectAll}
            onClick={() => (selected ? selection.clear() : selection.all(lines))}
          />
        </div>
        {fields.map((field, column) => (
          <ColumnHeader
            key={field.name}
            field={field}
            column={column}
            query={query}
            setQuery={setQuery}
            widths={widths}
          />
        ))}
      </div>
      <div class="body" role="presentation" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map(({ index, start }) => {
          const line = lines.at(index);
          return (
            <GridLine
              key={line?.id ?? index}
              database={database}
              fields={fields}
              edits={edits}
              labels={labels}
              line={line}
              index={index}
              start={start}
              isSelected={line !== undefined && selection.has(line.id)}
              isOpened={line !== undefined && line.id === opened}
              active={active.row === index ? active.column : undefined}
              editing={editing?.row === index ? editing.column : undefined}
              onActivate={(column) => {
                setActive({ row: index, column });
                if (matchMedia(PHONE).matches) open(index);
                else own.current?.focus();
              }}
              onEdit={(column) => edit(index, column)}
              onEdited={edited}
              onSelect={(isRange) => {
                select(index, isRange);
                own.current?.focus();
              }}
              onOpen={onOpen}
            />
          );
        })}
      </div>
    </div>
  );
}
