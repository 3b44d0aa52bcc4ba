// A line of the grid: the cells of one record. Must not know which records there are.
import type { Field } from "../../schema";
import { texts } from "../../texts";
import { Icon } from "../../ui";
import type { Edits } from "../edits";
import type { Labels } from "../labels";
import { CellEditor, CellValue, type Step } from "./cell";
import type { Line } from "./lines";

interface Props {
  database: string;
  fields: Field[];
  edits: Edits;
  labels: Labels;
  /** Undefined as long as the record is not read. */
  line: Line | undefined;
  index: number;
  /** The distance from the first line, in pixels. */
  start: number;
  isOpened: boolean;
  isSelected: boolean;
  /** The columns of the active cell and of the edited cell, if they are on this line. */
  active: number | undefined;
  editing: number | undefined;
  onActivate: (column: number) => void;
  onEdit: (column: number) => void;
  onEdited: (step: Step) => void;
  /** Selects the record, or the records from the one that was selected last. */
  onSelect: (isRange: boolean) => void;
  onOpen: (id: string, row: Line["row"]) => void;
}

export function GridLine(props: Props) {
  const {
    database,
    fields,
    edits,
    labels,
    line,
    index,
    start,
    isOpened,
    active,
    editing,
    onActivate,
    onEdit,
    onEdited,
  } = props;
  const edit = line?.edit;
  const isWrong = edit?.faults?.length || edit?.theirs !== undefined;
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isOpened || props.isSelected}
      class={`line ${edit?.kind ?? ""} ${isWrong ? "wrong" : ""}`}
      style={{ transform: `translateY(${start}px)` }}
    >
      <div class="cell pick" role="gridcell" aria-colindex={1}>
        {line?.row && (
          <input
            type="checkbox"
            tabIndex={-1}
            checked={props.isSelected}
            aria-label={texts.rows.select}
            onClick={(event) => props.onSelect(event.shiftKey)}
          />
        )}
      </div>
      {fields.map((field, column) => {
        const isEditing = editing === column;
        const isChanged = edit && field.name in edit.data;
        return (
          <div
            key={field.name}
            id={`cell-${index}-${column}`}
            role="gridcell"
            aria-colindex={column + 2}
            class={`cell ${active === column ? "active" : ""} ${isChanged ? "changed" : ""} ${isEditing ? "editing" : ""}`}
            onClick={({ target }) => {
              if (!isEditing && !(target as Element).closest("a, button")) onActivate(column);
            }}
            onDblClick={() => onEdit(column)}
          >
            {!line ? (
              <span class="ghost" />
            ) : isEditing ? (
              <CellEditor
                field={field}
                value={line.record[field.name]}
                labels={labels}
                done={onEdited}
                commit={(value) =>
                  line.row ? edits.change(line.row, field.name, value) : edits.changeNew(line.id, field.name, value)
                }
              />
            ) : (
              <CellValue database={database} field={field} record={line.record} labels={labels} isNew={!line.row} />
            )}
            {line && column === 0 && !isEditing && (
              <button
                class="opener"
                type="button"
                tabIndex={-1}
                aria-label={texts.table.open}
                title={texts.table.open}
                onClick={() => props.onOpen(line.id, line.row)}
              >
                <Icon name="arrow" />
              </button>
            )}
          </div>
        );
      })}
    </div>
  );
}
