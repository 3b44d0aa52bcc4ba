// Writes the records of a table to a file while they are read. Must not know how this is shown.
import { refusal } from "@selkie/client/errors";
import { read } from "@selkie/client/conditions";
import { marked, unmarked } from "../exact";
import type { Field } from "../schema";
import { key } from "../session";
import { insertStatement } from "../table/copy";
import type { Options } from "../table/query";
import { type Row, save } from "../values";
import type { words } from "./words";

export type ExportForm = keyof typeof words.exports;

const TYPES: Record<ExportForm, string> = {
  csv: "text/csv",
  ndjson: "application/x-ndjson",
  json: "application/json",
  sql: "application/sql",
};
/** Records of one INSERT. */
const INSERT_ROWS = 200;

export interface Source {
  database: string;
  table: string;
  fields: readonly Field[];
  /** Conditions and order. */
  options: Options;
}

/** Returns the response whose body has the records. */
async function request({ database, table, fields, options }: Source, form: ExportForm, signal: AbortSignal) {
  const path = `crud/${encodeURIComponent(database)}/${encodeURIComponent(table)}/query`;
  const response = await fetch(`${location.origin}/api/v1/${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key.value}`,
      "content-type": "application/json",
      accept: form === "csv" ? TYPES.csv : TYPES.ndjson,
    },
    body: unmarked(JSON.stringify(read({ ...options, select: fields.map(({ name }) => name) }))),
    signal,
  });
  if (!response.ok) throw await refusal(response);
  return response;
}

/** Divides text into lines, and writes them as another form. `end` is what follows the last line. */
function lines(write: (line: string) => string, end: () => string): TransformStream<string, string> {
  let rest = "";
  return new TransformStream({
    transform(piece, control) {
      const whole = (rest + piece).split("\n");
      rest = whole.pop()!;
      const text = whole.map(write).join("");
      if (text) control.enqueue(text);
    },
    flush(control) {
      control.enqueue((rest ? write(rest) : "") + end());
    },
  });
}

function asList(): TransformStream<string, string> {
  let begin = "[\n";
  return lines(
    (line) => {
      const text = begin + line;
      begin = ",\n";
      return text;
    },
    () => (begin === "[\n" ? "[]\n" : "\n]\n"),
  );
}

function asInserts({ table, fields }: Source): TransformStream<string, string> {
  let rows: Row[] = [];
  const statement = () => {
    const text = rows.length > 0 ? insertStatement(table, fields, rows) : "";
    rows = [];
    return text;
  };
  return lines((line) => {
    rows.push(JSON.parse(marked(line)));
    return rows.length === INSERT_ROWS ? statement() : "";
  }, statement);
}

/** A file that is written while it comes; the browsers that have it ask where to store it. */
type Picker = (options: {
  suggestedName: string;
}) => Promise<{ createWritable(): Promise<WritableStream<Uint8Array>> }>;

/** Writes the records to a file of the user. Returns whether these are only a part, and undefined if the user chose no
 * file. `onBytes` is told how much has been written. */
export async function exportTo(
  source: Source,
  form: ExportForm,
  onBytes: (total: number) => void,
  signal: AbortSignal,
): Promise<{ isPart: boolean } | undefined> {
  const name = `${source.table}.${form}`;
  const pick = (globalThis as { showSaveFilePicker?: Picker }).showSaveFilePicker;
  // First of all: the browser asks only just after a click.
  const file = await pick?.({ suggestedName: name }).catch((error: Error) => {
    if (error.name === "AbortError") return null;
    throw error;
  });
  if (file === null) return undefined;
  const response = await request(source, form, signal);
  let total = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, control) {
      total += bytes.byteLength;
      onBytes(total);
      control.enqueue(bytes);
    },
  });
  const text = form === "json" ? asList() : form === "sql" ? asInserts(source) : undefined;
  const body = response.body as ReadableStream<Uint8Array<ArrayBuffer>>;
  const written = text
    ? body.pipeThrough(new TextDecoderStream()).pipeThrough(text).pipeThrough(new TextEncoderStream())
    : body;
  const bytes = written.pipeThrough(counted);
  if (file) await bytes.pipeTo(await file.createWritable(), { signal });
  else save(name, await new Response(bytes as ReadableStream<Uint8Array<ArrayBuffer>>).blob(), TYPES[form]);
  return { isPart: response.headers.get("x-selkie-limited") === "true" };
}
