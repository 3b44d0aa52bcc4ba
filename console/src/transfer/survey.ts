// Reads a file for what it has: its columns, their types, its first rows. Must not know where they go.
import { marked } from "../exact";
import type { Draft, DraftColumn } from "../design/draft";
import { newDraft } from "../design/draft";
import { jsonText } from "../values";
import { Values } from "./guess";
import { type Reading, rowsOf } from "./read";

/** The part of a file from which types are inferred. */
const READ_MAX_BYTES = 64_000_000;
const PREVIEW_ROWS = 20;
const NAME_MAX_CHARS = 64;
/** The type of ids, as new tables of the table editor have it: a foreign key needs the same type on both sides. */
const ID_TYPE = "bigint unsigned";

const isIdName = (name: string) => /(?:^|[_\s-])id$/i.test(name) || /[a-z]Id$/.test(name);

export interface Survey {
  reading: Reading;
  /** The names in the file. */
  columns: string[];
  values: Values[];
  /** The first rows, as texts. */
  preview: (string | null)[][];
  rows: number;
  /** Whether all rows were read. */
  isWhole: boolean;
}

/** Returns the values of a line of NDJSON; undefined if the line is no object. */
export function objectOf(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(marked(line));
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

export async function surveyOf(file: File, reading: Reading): Promise<Survey> {
  let bytes = 0;
  const found: Survey = { reading, columns: [], values: [], preview: [], rows: 0, isWhole: true };
  const { columns, values, preview } = found;
  const column = (name: string) => {
    if (!columns.includes(name)) {
      columns.push(name);
      values.push(new Values());
    }
    return columns.indexOf(name);
  };
  let isHeader = reading.form === "csv";
  for await (const row of rowsOf(file, reading, (count) => (bytes += count))) {
    if (isHeader) {
      columns.push(...row.cells.map((cell) => cell ?? ""));
      values.push(...columns.map(() => new Values()));
      isHeader = false;
      continue;
    }
    if (bytes > READ_MAX_BYTES) {
      found.isWhole = false;
      break;
    }
    found.rows += 1;
    const texts: (string | null)[] = [];
    if (reading.form === "csv") {
      for (const [at, cell] of row.cells.entries()) {
        texts.push(cell);
        if (row.fault) continue;
        if (cell === null) values[at]?.addNull();
        else values[at]?.add(cell);
      }
    } else {
      for (const [name, value] of Object.entries(objectOf(row.text) ?? {})) {
        const at = column(name);
        const text = jsonText(value);
        const isString = text.startsWith('"');
        if (value === null) values[at]!.addNull();
        else if (isString) values[at]!.addString(value as string);
        else values[at]!.add(text);
        texts[at] = value === null ? null : isString ? (value as string) : text;
      }
    }
    if (preview.length < PREVIEW_ROWS) preview.push(Array.from(texts, (text) => text ?? null));
  }
  return found;
}

/** Returns a name that a column can have, for one in the file. */
function columnName(name: string, at: number, taken: Set<string>): string {
  const base =
    name
      .trim()
      .slice(0, NAME_MAX_CHARS - 4)
      .trim() || `column_${at + 1}`;
  let own = base;
  for (let nth = 2; taken.has(own.toLowerCase()); nth += 1) own = `${base}_${nth}`;
  taken.add(own.toLowerCase());
  return own;
}

/** Returns a table that takes the file. The id of a column is its place in the file. */
export function draftFor({ columns, values, isWhole }: Survey, file: string): Draft {
  const taken = new Set<string>();
  const own = columns.map((name, id): DraftColumn => {
    const type = isIdName(name.trim()) && values[id]!.isId ? ID_TYPE : values[id]!.type(isWhole);
    return { id, name: columnName(name, id, taken), type, nullable: true };
  });
  const name = file
    .replace(/\.gz$/i, "")
    .replace(/\.[^.]*$/, "")
    .replace(/[^\p{L}\p{N}_]+/gu, "_")
    .slice(0, 64);
  const id = own.findIndex(({ name }) => name.toLowerCase() === "id");
  if (id >= 0 && values[id]!.isKey) {
    const { nullable: _, ...key } = own[id]!;
    return { ...newDraft(), name, columns: own.with(id, { ...key, autoIncrement: true }), primaryKey: [id] };
  }
  // A column `id` that is no key leaves the table without one.
  if (id >= 0) return { ...newDraft(), name, columns: own, primaryKey: [] };
  const key = { ...newDraft().columns[0]!, id: own.length };
  return { ...newDraft(), name, columns: [key, ...own], primaryKey: [key.id] };
}

const plain = (name: string) => name.toLowerCase().replace(/[\s_-]/g, "");

/** Returns the field of each column: case, blanks, hyphens and underscores may differ. */
export function mapped(columns: readonly string[], fields: readonly string[]): (string | null)[] {
  return columns.map(
    (column) => fields.find((name) => name === column) ?? fields.find((name) => plain(name) === plain(column)) ?? null,
  );
}
