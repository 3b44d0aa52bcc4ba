// How values are shown, edited and compared, exactly as the service writes them. It must not know where they are shown.
import { marked, unmarked } from "./exact";
import { type Field, isNumeric, kindOf, type Kind } from "./schema";

export type Row = Record<string, unknown>;

/** Maximum characters of a value in a cell of the grid, which has one line. */
const CELL_MAX_CHARS = 240;

/** The text of a cell, and its look, which distinguishes null, empty texts, numbers and bytes. */
interface Shown {
  text: string;
  look: "null" | "empty" | "number" | "bytes" | "json" | "text" | "boolean";
}

export function show(value: unknown, kind: Kind): Shown {
  if (value === null || value === undefined) return { text: "NULL", look: "null" };
  if (value === "") return { text: "empty", look: "empty" };
  if (kind === "bytes") return { text: bytesOf(String(value)), look: "bytes" };
  if (kind === "boolean") return { text: String(typeof value === "boolean" ? Number(value) : value), look: "boolean" };
  if (typeof value === "object") return { text: cut(jsonText(value)), look: "json" };
  const look = isNumeric(kind) ? "number" : kind === "json" ? "json" : "text";
  return { text: cut(kind === "json" ? jsonText(value) : String(value)), look };
}

const cut = (text: string) =>
  (text.length > CELL_MAX_CHARS ? `${text.slice(0, CELL_MAX_CHARS)}…` : text).replace(/\s*\n\s*/g, " ⏎ ");

/** Returns the number of bytes that a base64 text encodes, and the first twelve in hexadecimal. */
function bytesOf(base64: string): string {
  const padding = /=*$/.exec(base64)![0].length;
  const size = Math.floor((base64.length * 3) / 4) - padding;
  const first = [...atob(base64.slice(0, 16))]
    .map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0"))
    .join(" ");
  return `${sizeOf(size)} · ${first}${size > 12 ? " …" : ""}`;
}

export function sizeOf(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let size = bytes / 1_000;
  let unit = 0;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1_000;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** Returns a value as JSON, with all digits of its numbers. */
export const jsonText = (value: unknown, indent = 0): string => unmarked(JSON.stringify(value, null, indent));

/** Returns the initial text of an editor for a value. */
export function editable(value: unknown, kind: Kind): string {
  if (value === null || value === undefined) return "";
  if (kind === "json" || kind === "geometry") return jsonText(value, 2);
  return String(value);
}

const BOOLEANS: Record<string, number> = { true: 1, yes: 1, false: 0, no: 0 };

/** Returns the value for an editor's text or a pasted one. A text that does not fit is the service's
 * to refuse. Throws a `SyntaxError` if the text of a JSON field is not valid JSON. */
export function parsed(text: string, kind: Kind): unknown {
  if (kind === "json" || kind === "geometry") return JSON.parse(marked(text));
  if (kind === "boolean")
    return BOOLEANS[text.trim().toLowerCase()] ?? (/^\s*-?\d+\s*$/.test(text) ? Number(text) : text);
  if (kind === "datetime") return text.replace("T", " ");
  return text;
}

/** Returns whether two values are equal in the database, where a number may be a JSON number or a string. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (one === null || other === null || one === undefined || other === undefined) return false;
  if (typeof one === "object" || typeof other === "object") return JSON.stringify(one) === JSON.stringify(other);
  return String(one) === String(other);
}

/** Returns a value as a short plain text, for labels. */
export const label = (value: unknown): string =>
  typeof value === "object" && value !== null ? jsonText(value) : String(value);

/** The most characters of an integer. */
const DIGITS: Record<string, number> = { tiny: 4, small: 6, medium: 8, "": 11, big: 20 };

/** Returns the width of a field's column in pixels. */
export function widthOf(field: Field): number {
  const least = field.name.length * 8 + 44;
  const widths: Partial<Record<Kind, number>> = {
    integer: 80,
    decimal: 100,
    float: 110,
    double: 110,
    boolean: 80,
    date: 110,
    datetime: 165,
    time: 100,
    enum: 150,
    long: 300,
    json: 240,
    bytes: 220,
  };
  const [, size, digits = DIGITS[size ?? "none"] ?? 0] =
    /^(?:(tiny|small|medium|big|)int|decimal\((\d+))/i.exec(field.type) ?? [];
  // The first column has a button beside the value, and a reference has a link.
  const beside = field.primaryKey || field.references ? 24 : 0;
  return Math.min(320, Math.max(least, Number(digits) * 8 + 32 + beside, widths[kindOf(field)] ?? 180));
}

/** Returns the rows as CSV (RFC 4180); NULL is an empty cell, the empty text is `""`. */
export function csv(fields: readonly string[], rows: readonly Row[]): string {
  const cell = (value: unknown) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "object" ? jsonText(value) : String(value);
    return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [fields.map(cell), ...rows.map((row) => fields.map((field) => cell(row[field])))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Lets the browser save content as a file. */
export function save(name: string, content: BlobPart, type: string): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
