// How records are called where foreign keys refer to them: by one field of theirs. Must not know how labels are shown.
import { signal } from "@preact/signals";
import { type Field, isNumeric, kindOf, type Schema, schemaOf } from "../schema";
import { remember, remembered, tableOf } from "../session";
import { label, type Row } from "../values";

const PREFERRED = ["name", "title", "label", "email"];
/** Maximum records that a search offers. */
const OFFERED_MAX = 20;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

const chosenAs = (database: string, table: string) => `label:${database}.${table}`;

/** Returns the name of the field that the user chose; "" for none, undefined for the guess. */
export const chosenLabel = (database: string, table: string): string | undefined =>
  remembered<string | undefined>(chosenAs(database, table), undefined);

export const chooseLabel = (database: string, table: string, field: string | undefined): void =>
  remember(chosenAs(database, table), field);

export function guessedLabel({ schema }: Schema): string | undefined {
  const texts = schema.filter((field) => ["text", "long"].includes(kindOf(field)));
  const preferred = PREFERRED.flatMap((word) => texts.filter(({ name }) => name.toLowerCase() === word));
  return (preferred[0] ?? texts.find(({ primaryKey }) => !primaryKey))?.name;
}

/** The table to which a foreign key refers, and the fields that are read of it. */
interface Target {
  table: string;
  key: Field;
  label: string | undefined;
}

export interface Candidate {
  key: unknown;
  label: string | undefined;
}

/** The labels of the records to which the foreign keys of one table refer. */
export class Labels {
  readonly version = signal(0);
  /** By field and key. A key is there, without a label, from when it is first read. */
  readonly #known = new Map<string, Map<string, string | undefined>>();

  constructor(
    private readonly database: string,
    private readonly schema: Schema,
  ) {}

  /** Returns whether the field alone is a foreign key. Of a foreign key of several fields, none refers by itself. */
  isReference({ name, references }: Field): boolean {
    const isAlone = ({ kind, fields }: Schema["relations"][number]) =>
      kind === "one" && fields.length === 1 && fields[0] === name;
    return references !== null && this.schema.relations.some(isAlone);
  }

  of({ name }: Field, value: unknown): string | undefined {
    return this.#known.get(name)?.get(label(value));
  }

  learn({ name }: Field, { key, label: text }: Candidate): void {
    this.#labels(name).set(label(key), text);
    this.version.value += 1;
  }

  forget(): void {
    this.#known.clear();
    this.version.value += 1;
  }

  /** Reads the labels of all records to which these refer: one request for each foreign key. */
  want(records: readonly Row[]): void {
    for (const field of this.schema.schema) {
      if (!this.isReference(field)) continue;
      const known = this.#labels(field.name);
      const values = new Map(records.map((record) => [label(record[field.name]), record[field.name]]));
      const keys = [...values].filter(([text, value]) => value !== null && value !== undefined && !known.has(text));
      if (keys.length === 0) continue;
      for (const [text] of keys) known.set(text, undefined);
      // Without a right to read the table, its keys are shown.
      void this.#read(
        field,
        keys.map(([, value]) => value),
      ).catch(() => {});
    }
  }

  /** Returns records whose label contains the text, or whose key it is. */
  async search(field: Field, text: string, signal: AbortSignal): Promise<Candidate[]> {
    const target = await this.#target(field);
    const kind = kindOf(target.key);
    const isKey = isNumeric(kind) ? /^-?\d+$/.test(text) : kind === "uuid" ? UUID.test(text) : kind === "text";
    const byKey = isKey ? [{ [target.key.name]: text }] : [];
    const byLabel = target.label ? [{ [target.label]: { contains: text } }] : [];
    const or = [...byKey, ...byLabel];
    if (text && or.length === 0) return [];
    // By the key's index, so that a large table is not sorted.
    const options = { ...selection(target), order: target.key.name, limit: OFFERED_MAX, signal };
    const table = tableOf(`${this.database}.${target.table}`);
    const rows = await (text ? table.list({ ...options, where: { or } }) : table.list(options));
    const found = rows.map((row) => candidate(row, target));
    for (const one of found) this.learn(field, one);
    const isExact = ({ key }: Candidate) => label(key) === text;
    return [...found.filter(isExact), ...found.filter((one) => !isExact(one))];
  }

  #labels(field: string): Map<string, string | undefined> {
    const known = this.#known.get(field) ?? new Map<string, string | undefined>();
    this.#known.set(field, known);
    return known;
  }

  async #target({ references }: Field): Promise<Target> {
    const { table, field } = references!;
    const schema = await schemaOf(this.database, table);
    const key = schema.schema.find(({ name }) => name === field)!;
    const chosen = chosenLabel(this.database, table);
    const isKnown = chosen === "" || schema.schema.some(({ name }) => name === chosen);
    return { table, key, label: (isKnown ? chosen : guessedLabel(schema)) || undefined };
  }

  async #read(field: Field, keys: unknown[]): Promise<void> {
    const target = await this.#target(field);
    if (!target.label) return;
    const where = { [target.key.name]: { in: keys } };
    const rows = await tableOf(`${this.database}.${target.table}`).list({ ...selection(target), where });
    for (const row of rows) this.learn(field, candidate(row, target));
  }
}

const selection = ({ key, label: name }: Target) => ({ select: name ? [...new Set([key.name, name])] : [key.name] });

function candidate(row: Row, { key, label: name }: Target): Candidate {
  const value = name ? row[name] : undefined;
  return { key: row[key.name], label: value === null || value === undefined ? undefined : label(value) };
}
