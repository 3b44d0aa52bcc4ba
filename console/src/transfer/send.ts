// Sends the rows of a file to a table. A row that the service refuses is left out, and the others are written.
import { isSelkieError, type SelkieError } from "@selkie/client";
import { api } from "../session";
import { jsonText, parsed } from "../values";
import { csvLine, type FileRow, type Form } from "./read";
import { objectOf } from "./survey";
import { words } from "./words";

/** The most rows and characters of one request. */
const BATCH_ROWS = 2_000;
const BATCH_CHARS = 1_000_000;

export interface Target {
  database: string;
  table: string;
  /** How the file is written. */
  form: Form;
  /** The columns of the file, and the field of each; null leaves the column out. */
  columns: readonly string[];
  fields: readonly (string | null)[];
  /** Whether each column is for a boolean field: yes and true become 1, no and false become 0. */
  booleans: readonly boolean[];
  onConflict: string;
  /** Whether the import has made the table. */
  isNew?: true;
}

export interface Refusal {
  line: number;
  code: string;
  message: string;
  /** The line, or the cells of CSV. */
  row: string | (string | null)[];
}

export interface Imported {
  imported: number;
  /** Rows whose key exists, which were skipped. */
  unchanged: number;
  refused: number;
}

export interface Hooks {
  onProgress: (imported: Imported) => void;
  onRefused: (refusal: Refusal) => void;
  /** Asks whether to go on after an error that no row is at fault for. */
  onTrouble: (error: unknown) => Promise<boolean>;
  isStopped: () => boolean;
}

interface Encoded {
  row: FileRow;
  text: string;
}

/** Returns whether single rows may be at fault, so that the other rows can be written alone. */
function isOfRows({ code, details }: SelkieError, rows: number, form: Form): boolean {
  const codes = [
    "invalid_body",
    "invalid_json",
    "invalid_value",
    "duplicate_key",
    "foreign_key_violation",
    "body_too_large",
    "rejected_by_database",
    "sql_error",
  ];
  if (codes.includes(code)) return true;
  // In CSV the header names the fields, so the fault concerns all rows.
  if (code === "unknown_field" || code === "invalid_identifier") return form === "ndjson";
  if (code === "role_forbids") return details.row !== undefined || details.field === undefined;
  return code === "query_timeout" && rows > 1;
}

/** Returns the refused rows that the error names, with their reasons. */
function named(error: SelkieError, rows: readonly Encoded[]): Map<Encoded, { code: string; message: string }> {
  if (rows.length === 1) return new Map([[rows[0]!, error]]);
  const found = new Map<Encoded, { code: string; message: string }>();
  for (const fault of [error, ...error.errors]) {
    const row = rows[Number(fault.details?.row ?? -1)];
    if (row && !found.has(row)) found.set(row, fault);
  }
  return found;
}

const randomKey = () =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export class Import {
  readonly #target: Target;
  readonly #hooks: Hooks;
  readonly #done: Imported = { imported: 0, unchanged: 0, refused: 0 };

  constructor(target: Target, hooks: Hooks) {
    this.#target = target;
    this.#hooks = hooks;
  }

  /** Writes the rows; of CSV, without the header. Returns whether all were sent. */
  async run(rows: AsyncIterable<FileRow>): Promise<boolean> {
    let batch: Encoded[] = [];
    let chars = 0;
    for await (const row of rows) {
      if (row.fault) {
        this.#refuse(row, { code: "invalid_body", message: row.fault });
        continue;
      }
      const text = this.#encode(row);
      if (batch.length > 0 && (batch.length === BATCH_ROWS || chars + text.length > BATCH_CHARS)) {
        if (!(await this.#write(batch))) return false;
        batch = [];
        chars = 0;
      }
      batch.push({ row, text });
      chars += text.length;
    }
    return this.#write(batch);
  }

  #encode({ text, cells }: FileRow): string {
    const { form, columns, fields, booleans } = this.#target;
    const sent = (value: unknown, at: number) =>
      booleans[at] && typeof value === "string" ? parsed(value, "boolean") : value;
    if (form === "csv") {
      const values = cells.map((cell, at) => (cell === null ? null : String(sent(cell, at))));
      return csvLine(values.filter((_, at) => fields[at] !== null));
    }
    if (columns.every((column, at) => fields[at] === column && !booleans[at])) return text;
    const object = objectOf(text);
    if (!object) return text;
    const kept = Object.entries(object).flatMap(([name, value]) => {
      const at = columns.indexOf(name);
      // A name that the survey did not meet is the service's to judge.
      const field = at < 0 ? name : fields[at]!;
      return field === null ? [] : [[field, sent(value, at)]];
    });
    return jsonText(Object.fromEntries(kept));
  }

  #refuse(row: FileRow, { code, message }: { code: string; message: string }): void {
    this.#done.refused += 1;
    const { form, columns } = this.#target;
    const own = form === "csv" ? columns.map((_, at) => row.cells[at] ?? null) : row.text;
    // The line in the message is that of the request.
    this.#hooks.onRefused({ line: row.line, code, message: message.replace(/^Line \d+:? /, ""), row: own });
  }

  /** Writes rows, in parts if some are refused. Returns false if it was stopped. */
  async #write(rows: readonly Encoded[]): Promise<boolean> {
    const parts = [rows];
    for (let part = parts.pop(); part; part = parts.pop()) {
      if (part.length === 0) continue;
      const refusal = await this.#send(part);
      if (refusal === "stopped") return false;
      if (refusal) {
        const refused = named(refusal, part);
        for (const [{ row }, reason] of refused) this.#refuse(row, reason);
        const rest = part.filter((one) => !refused.has(one));
        const half = Math.ceil(rest.length / 2);
        parts.push(rest.slice(half), rest.slice(0, half));
      }
      this.#hooks.onProgress({ ...this.#done });
    }
    return true;
  }

  /** Sends rows. Returns the refusal if single rows may be at fault for it. */
  async #send(rows: readonly Encoded[]): Promise<SelkieError | "stopped" | undefined> {
    const { database, table, form, fields, onConflict } = this.#target;
    const lines = rows.map(({ text }) => text);
    if (form === "csv") lines.unshift(csvLine(fields.filter((field) => field !== null)));
    const type = form === "csv" ? "text/csv" : "application/x-ndjson";
    const body = new Blob([`${lines.join("\n")}\n`], { type });
    // The same key whenever these rows are sent: they are written once.
    const headers = { "idempotency-key": randomKey() };
    for (;;) {
      if (this.#hooks.isStopped()) return "stopped";
      try {
        const path = `crud/${encodeURIComponent(database)}/${encodeURIComponent(table)}`;
        const query = onConflict ? { onConflict } : {};
        const ids = await api().request<unknown[]>("POST", path, { query, body, headers, repeatable: true });
        const unchanged = ids.filter((id) => id === null).length;
        this.#done.imported += rows.length - unchanged;
        this.#done.unchanged += unchanged;
        return undefined;
      } catch (error) {
        if (isSelkieError(error)) {
          if (error.message.includes("Idempotency-Key")) throw new Error(words.noTransactions, { cause: error });
          if (isOfRows(error, rows.length, form)) return error;
        }
        if (!(await this.#hooks.onTrouble(error))) return "stopped";
      }
    }
  }
}
