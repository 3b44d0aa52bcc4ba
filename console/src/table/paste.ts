// Takes the cells of a spreadsheet as edits of records and as new ones. Must not know the clipboard.
import { type Field, kindOf } from "../schema";
import { parsed, type Row } from "../values";
import { cellsOf } from "./copy";
import type { Edits } from "./edits";
import type { Line } from "./grid/lines";

/** Maximum records of one paste: a save sends at most 1,000 changes. */
export const PASTED_MAX_ROWS = 500;

interface Place {
  /** The line on which the first cell falls; undefined: all lines become new records. */
  row: number | undefined;
  column: number;
}

type Reason = "rows" | "unread" | "value";

/** A paste that changes nothing, and why. */
export class PasteError extends Error {
  constructor(
    readonly reason: Reason,
    readonly field = "",
  ) {
    super(reason);
  }
}

/** Returns the value of a cell: an empty one is NULL, or an empty text where there is no NULL. */
function valueIn(cell: string, field: Field): unknown {
  const kind = kindOf(field);
  if (cell === "" && field.nullable) return null;
  if (cell === "" && kind !== "text" && kind !== "long") return undefined;
  try {
    return parsed(cell, kind);
  } catch {
    throw new PasteError("value", field.name);
  }
}

/** Pastes the text, all of it or nothing. A first line of field names says which fields the cells are for. */
export function paste(
  text: string,
  { row, column }: Place,
  fields: readonly Field[],
  lines: { count: number; at(index: number): Line | undefined },
  edits: Edits,
): void {
  const cells = cellsOf(text);
  const named = cells.length > 1 ? cells[0]!.map((name) => fields.find((field) => field.name === name)) : [];
  const isNamed = named.length > 0 && named.every((field) => field !== undefined);
  const targets = isNamed ? named : fields.slice(column);
  const records = (isNamed ? cells.slice(1) : cells).map((line): Row => {
    const values = line.flatMap((cell, at) => {
      const field = targets[at];
      const value = field?.writable ? valueIn(cell, field) : undefined;
      return field && value !== undefined ? [[field.name, value] as const] : [];
    });
    return Object.fromEntries(values);
  });
  if (records.length > PASTED_MAX_ROWS) throw new PasteError("rows");
  const found = records.map((_, at) => (row === undefined ? undefined : lines.at(row + at)));
  if (row !== undefined && found.some((line, at) => !line && row + at < lines.count)) throw new PasteError("unread");
  edits.together(() => {
    records.forEach((record, at) => {
      const line = found[at];
      if (!line) edits.insert(record);
      else if (line.row) for (const [field, value] of Object.entries(record)) edits.change(line.row, field, value);
      else for (const [field, value] of Object.entries(record)) edits.changeNew(line.id, field, value);
    });
  });
}
