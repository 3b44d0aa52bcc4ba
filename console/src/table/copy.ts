// Records as texts that other programs take, and the cells of a text from a spreadsheet. Must not know the clipboard.
import { type Field, isNumeric, kindOf } from "../schema";
import { csv, jsonText, label, type Row } from "../values";

const quotedCell = (text: string) => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Returns the records as spreadsheets paste them: NULL is an empty cell. */
export const tsv = (fields: readonly string[], rows: readonly Row[]): string =>
  rows
    .map((row) => fields.map((name) => (row[name] === null ? "" : quotedCell(label(row[name] ?? "")))).join("\t"))
    .join("\n");

const identifier = (name: string) => `\`${name.replaceAll("`", "``")}\``;
const literal = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;

function sqlValue(value: unknown, field: Field): string {
  if (value === null || value === undefined) return "NULL";
  const kind = kindOf(field);
  if (kind === "bytes") {
    const bytes = [...atob(String(value))].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, "0"));
    return `x'${bytes.join("")}'`;
  }
  if (kind === "geometry") return `ST_GeomFromGeoJSON(${literal(jsonText(value))})`;
  if (kind === "json") return literal(jsonText(value));
  return isNumeric(kind) || kind === "boolean" ? label(value) : literal(label(value));
}

/** Returns one INSERT of the records, without computed fields. */
export function insertStatement(table: string, fields: readonly Field[], rows: readonly Row[]): string {
  const written = fields.filter(({ generated }) => !generated);
  const values = rows.map((row) => `  (${written.map((field) => sqlValue(row[field.name], field)).join(", ")})`);
  const names = written.map(({ name }) => identifier(name)).join(", ");
  return `INSERT INTO ${identifier(table)} (${names}) VALUES\n${values.join(",\n")};\n`;
}

export const FORMS = ["TSV", "CSV", "JSON", "INSERT"] as const;

export function textOf(form: (typeof FORMS)[number], table: string, fields: readonly Field[], rows: readonly Row[]) {
  const names = fields.map(({ name }) => name);
  if (form === "TSV") return tsv(names, rows);
  if (form === "CSV") return csv(names, rows);
  if (form === "INSERT") return insertStatement(table, fields, rows);
  const shown = rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])));
  return `${jsonText(shown, 2)}\n`;
}

/** Returns the cells of a text from a spreadsheet. A cell in quotes may have tabs and line breaks. */
export function cellsOf(text: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^\t\r\n]*))(\t|\r\n|\n|\r|$)/y;
  for (;;) {
    const at = cell.lastIndex;
    let found = cell.exec(text);
    if (!found) {
      // The quote is part of the text.
      const rest = /([^\t\r\n]*)(\t|\r\n|\n|\r|$)/y;
      rest.lastIndex = at;
      const plain = rest.exec(text)!;
      cell.lastIndex = rest.lastIndex;
      found = [plain[0], undefined, plain[1], plain[2]] as unknown as RegExpExecArray;
    }
    line.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? "");
    if (found[3] === "\t") continue;
    lines.push(line);
    line = [];
    if (found[3] === "" || cell.lastIndex >= text.length) return lines;
  }
}
