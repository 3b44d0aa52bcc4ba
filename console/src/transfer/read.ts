// Reads the rows of a CSV or NDJSON file, piece by piece. Must not know where they go.
import { words } from "./words";

export type Form = keyof typeof words.forms;

export interface Reading {
  form: Form;
  delimiter: string;
  encoding: string;
}

export interface FileRow {
  /** The line on which it begins, counted from 1. */
  line: number;
  /** The line; empty of CSV, whose rows have cells. */
  text: string;
  /** Of CSV; null is an empty cell without quotes. */
  cells: (string | null)[];
  /** Why it can't be read. */
  fault?: string;
}

/** Returns the pieces of the file as text; `onBytes` is told of each. */
async function* pieces(file: File, encoding: string, onBytes: (count: number) => void): AsyncGenerator<string> {
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(piece, control) {
      onBytes(piece.byteLength);
      control.enqueue(piece);
    },
  });
  const bytes = file.stream().pipeThrough(counted);
  const plain = /\.gz$/i.test(file.name) ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes;
  const reader = plain.pipeThrough(new TextDecoderStream(encoding, { fatal: true })).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Returns the error to show for one of reading. */
export const readFault = (error: unknown): unknown =>
  // What the decoder throws.
  error instanceof TypeError ? new Error(words.notText, { cause: error }) : error;

export async function* rowsOf(
  file: File,
  { form, delimiter, encoding }: Reading,
  onBytes: (count: number) => void = () => {},
): AsyncGenerator<FileRow> {
  const reader = form === "csv" ? new CsvReader(delimiter) : new LineReader();
  for await (const piece of pieces(file, encoding, onBytes)) yield* reader.read(piece);
  yield* reader.end();
}

class LineReader {
  #rest = "";
  #line = 0;

  *read(piece: string): Generator<FileRow> {
    const lines = (this.#rest + piece).split("\n");
    this.#rest = lines.pop()!;
    for (const text of lines) {
      this.#line += 1;
      if (text.trim() !== "") yield { line: this.#line, text: text.replace(/\r$/, ""), cells: [] };
    }
  }

  *end(): Generator<FileRow> {
    yield* this.read("\n");
  }
}

/** RFC 4180, with LF or CRLF. The first row is the header. */
class CsvReader {
  #cells: (string | null)[] = [];
  #text = "";
  #state: "begin" | "plain" | "quoted" | "closed" = "begin";
  #fault: string | undefined;
  #line = 1;
  #begun = 1;
  /** Cells of the header; 0 before it. */
  #width = 0;

  constructor(readonly delimiter: string) {}

  *read(piece: string): Generator<FileRow> {
    for (let at = 0; at < piece.length; at += 1) {
      const sign = piece[at]!;
      if (this.#state === "quoted") {
        if (sign === "\n") this.#line += 1;
        if (sign === '"') this.#state = "closed";
        else this.#text += sign;
      } else if (sign === this.delimiter) this.#endCell();
      else if (sign === "\n") {
        yield* this.#endRow();
        this.#line += 1;
        this.#begun = this.#line;
      } else if (sign === '"' && this.#state !== "plain") {
        // Two quotes within quotes are one.
        if (this.#state === "closed") this.#text += sign;
        this.#state = "quoted";
      } else if (this.#state === "closed") {
        if (sign !== "\r") this.#fault = words.afterQuote;
      } else {
        this.#text += sign;
        this.#state = "plain";
      }
    }
  }

  *end(): Generator<FileRow> {
    if (this.#state === "quoted") this.#fault = words.unclosed;
    if (this.#cells.length > 0 || this.#state !== "begin") yield* this.#endRow();
  }

  #endCell(): void {
    this.#cells.push(this.#state === "begin" ? null : this.#text);
    this.#text = "";
    this.#state = "begin";
  }

  *#endRow(): Generator<FileRow> {
    if (this.#state === "plain") this.#text = this.#text.replace(/\r$/, "");
    // A carriage return alone is an empty cell.
    if (this.#state === "plain" && this.#text === "") this.#state = "begin";
    this.#endCell();
    const cells = this.#cells;
    const isEmpty = cells.length === 1 && cells[0] === null && this.#width !== 1;
    let fault = this.#fault;
    if (!isEmpty && this.#width > 0 && cells.length !== this.#width) fault ??= words.cells(cells.length, this.#width);
    if (!isEmpty && this.#width === 0) this.#width = cells.length;
    this.#cells = [];
    this.#fault = undefined;
    if (isEmpty) return;
    yield { line: this.#begun, text: "", cells, ...(fault ? { fault } : {}) };
  }
}

/** Returns a row as the API takes it: NULL is an empty cell, the empty text is in quotes. */
export const csvLine = (cells: readonly (string | null)[]): string =>
  cells
    .map((cell) =>
      cell === null ? "" : cell === "" || /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell,
    )
    .join(",");

/** Returns how a file seems to be written, by its name and its first characters. */
export async function guessReading(file: File): Promise<Reading> {
  const name = file.name.replace(/\.gz$/i, "").toLowerCase();
  let head = "";
  try {
    for await (const piece of pieces(file, "utf-8", () => {})) {
      head += piece;
      if (head.length > 10_000) break;
    }
  } catch {
    // Not UTF-8: the survey tells so.
  }
  const isLines = /\.(ndjson|jsonl)$/.test(name) || (!/\.(csv|tsv)$/.test(name) && head.trimStart().startsWith("{"));
  const [first = ""] = head.split("\n", 1);
  const counts = Object.keys(words.delimiters).map((sign) => [sign, first.split(sign).length] as const);
  const [delimiter] = counts.reduce((best, one) => (one[1] > best[1] ? one : best));
  return { form: isLines ? "ndjson" : "csv", delimiter, encoding: "utf-8" };
}
