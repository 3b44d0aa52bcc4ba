// The unsaved changes of a table: stored for the tab, undone one by one, saved together. Must not know any view.
import { etagOf, isSelkieError, type SelkieError } from "@selkie/client";
import { batch, computed, signal, type ReadonlySignal } from "@preact/signals";
import { keyFields, type Schema } from "../schema";
import { api, keep, kept, tableOf } from "../session";
import { type Row, same } from "../values";
import { KEPT_EDITS, noteUnsaved } from "./unsaved";

/** An error of the API about an edit, with the field at fault if the API named one. */
export interface Fault {
  code: string;
  message: string;
  hint?: string | undefined;
  field?: string | undefined;
}

export interface Edit {
  /** The record's key as text, or `new:1`. */
  id: string;
  kind: "insert" | "update" | "delete";
  key: unknown[];
  /** The ETag of the record that the user saw. */
  tag?: string | undefined;
  /** The values before the edit, of the fields in `data`; of all fields for a delete. */
  before: Row;
  data: Row;
  faults?: Fault[];
  /** The record as somebody else changed it meanwhile; null: deleted. */
  theirs?: Row | null;
}

export class Edits {
  readonly #name: string;
  readonly #history = signal<Edit[][]>([]);
  readonly list = signal<Edit[]>([]);
  readonly isSaving = signal(false);
  /** The error of a save that belongs to no single edit. */
  readonly fault = signal<SelkieError | null>(null);
  readonly byId: ReadonlySignal<Map<string, Edit>> = computed(
    () => new Map(this.list.value.map((edit) => [edit.id, edit])),
  );
  readonly canUndo: ReadonlySignal<boolean> = computed(() => this.#history.value.length > 0);
  /** The number of edits that the last save saved before one was refused: only a table without transactions has any. */
  readonly savedBefore = signal(0);
  /** The edits of the request that was sent last. */
  #sent: readonly Edit[] = [];
  /** The reads of tags that a save waits for. */
  #reads: Promise<void>[] = [];
  #count: number;
  /** Whether the changes are part of one step. */
  #isTogether = false;

  constructor(
    readonly table: string,
    readonly schema: Schema,
  ) {
    this.#name = KEPT_EDITS + table;
    const { list, history } = kept<{ list: Edit[]; history: Edit[][] }>(this.#name, { list: [], history: [] });
    this.list.value = list;
    this.#history.value = history;
    this.#count = list.length;
    for (const edit of list)
      if (edit.kind === "insert") this.#count = Math.max(this.#count, Number(edit.id.split(":")[1]));
  }

  get keys(): string[] {
    return keyFields(this.schema);
  }

  idOf(row: Row): string {
    return JSON.stringify(this.keys.map((field) => row[field]));
  }

  /** Returns the record with its unsaved changes. */
  shown(row: Row): Row {
    const edit = this.byId.value.get(this.idOf(row));
    return edit?.kind === "update" ? { ...row, ...edit.data } : row;
  }

  #set(list: Edit[], step = true): void {
    if (step && !this.#isTogether) this.#history.value = [...this.#history.value.slice(-99), this.list.value];
    this.list.value = list;
    if (list.length === 0) this.#history.value = [];
    this.#keep();
  }

  /** Makes the changes of `work` one step of undo. */
  together(work: () => void): void {
    this.#history.value = [...this.#history.value.slice(-99), this.list.value];
    this.#isTogether = true;
    try {
      batch(work);
    } finally {
      this.#isTogether = false;
      this.#keep();
    }
  }

  #keep(): void {
    if (this.#isTogether) return;
    const isEmpty = this.list.value.length === 0;
    noteUnsaved(this.table, this.list.value.length);
    keep(this.#name, isEmpty ? undefined : { list: this.list.value, history: this.#history.value.slice(-20) });
  }

  #patch(id: string, change: Partial<Edit>): void {
    this.list.value = this.list.value.map((edit) => (edit.id === id ? { ...edit, ...change } : edit));
    this.#keep();
  }

  change(row: Row, field: string, value: unknown): void {
    const id = this.idOf(row);
    const edit = this.byId.value.get(id);
    const before = { ...edit?.before, [field]: row[field] };
    const data = { ...edit?.data, [field]: value };
    if (same(row[field], value)) delete data[field];
    const others = this.list.value.filter((other) => other.id !== id);
    if (Object.keys(data).length === 0) {
      if (edit) this.#set(others);
      return;
    }
    if (edit && field in edit.data && same(edit.data[field], value)) return;
    const faults = edit?.faults?.filter((fault) => fault.field && fault.field !== field);
    const next: Edit = {
      id,
      kind: "update",
      key: this.keys.map((name) => row[name]),
      tag: edit?.tag,
      before,
      data,
      ...(faults?.length ? { faults } : {}),
    };
    this.#set(edit ? this.list.value.map((other) => (other.id === id ? next : other)) : [...others, next]);
    if (!edit) this.#reads.push(this.#see(next, row));
  }

  /** Reads the record's ETag, so that the save can tell whether somebody else changed the record meanwhile. */
  async #see(edit: Edit, row: Row): Promise<void> {
    try {
      const record = await tableOf(this.table).get(edit.key);
      const isChanged = record === null || Object.keys(edit.before).some((field) => !same(record[field], row[field]));
      if (isChanged) this.#patch(edit.id, { theirs: record });
      else this.#patch(edit.id, { tag: etagOf(record) });
    } catch {
      // `save` reads the ETag again if there is none.
    }
  }

  changeNew(id: string, field: string, value: unknown): void {
    const edit = this.byId.value.get(id);
    if (!edit) return;
    const data = { ...edit.data, [field]: value };
    if (value === undefined) delete data[field];
    const faults = edit.faults?.filter((fault) => fault.field && fault.field !== field);
    this.#set(this.list.value.map((other) => (other.id === id ? { ...edit, data, faults: faults ?? [] } : other)));
  }

  insert(data: Row = {}): string {
    this.#count += 1;
    const id = `new:${this.#count}`;
    this.#set([...this.list.value, { id, kind: "insert", key: [], before: {}, data }]);
    return id;
  }

  remove(row: Row): void {
    const id = this.idOf(row);
    const edit: Edit = { id, kind: "delete", key: this.keys.map((name) => row[name]), before: row, data: {} };
    this.#set([...this.list.value.filter((other) => other.id !== id), edit]);
    this.#reads.push(this.#see(edit, row));
  }

  drop(id: string): void {
    this.#set(this.list.value.filter((edit) => edit.id !== id));
  }

  /** Drops all changes; `undo` brings them back. */
  discard(): void {
    this.fault.value = null;
    this.#history.value = [...this.#history.value.slice(-99), this.list.value];
    this.list.value = [];
    this.#keep();
  }

  undo(): void {
    const before = this.#history.value.at(-1);
    if (!before) return;
    this.#history.value = this.#history.value.slice(0, -1);
    this.list.value = before;
    this.#keep();
  }

  /** Keeps the user's values although somebody else changed the record: the save expects the ETag of the other's
   * version. */
  async keepMine(id: string): Promise<void> {
    const edit = this.byId.value.get(id);
    if (!edit) return;
    const record = await tableOf(this.table).get(edit.key);
    if (record === null) return this.#patch(id, { theirs: null });
    const before = Object.fromEntries(Object.keys(edit.before).map((field) => [field, record[field]]));
    this.#patch(id, { tag: etagOf(record), before, theirs: undefined, faults: [] } as Partial<Edit>);
  }

  /** Saves all changes: all or none, or one by one if the table has no transactions. Returns whether all were saved. */
  async save(): Promise<boolean> {
    if (this.isSaving.value) return false;
    this.fault.value = null;
    this.savedBefore.value = 0;
    this.isSaving.value = true;
    try {
      await Promise.all(this.#reads);
      const untagged = this.list.value.filter(({ kind, tag }) => kind !== "insert" && !tag);
      await Promise.all(untagged.map((edit) => this.#see(edit, edit.before)));
      if (this.list.value.some(({ theirs }) => theirs !== undefined)) return false;
      await this.#send(this.list.value);
      this.#reads = [];
      this.#history.value = [];
      this.list.value = [];
      this.#keep();
      return true;
    } catch (error) {
      await this.#refused(this.#sent, error);
      return false;
    } finally {
      this.isSaving.value = false;
    }
  }

  async #send(list: readonly Edit[]): Promise<void> {
    const [only] = list;
    this.#sent = list;
    try {
      if (list.length === 1 && only) await this.#one(only);
      else await this.#all(list);
    } catch (error) {
      if (!needsTransactions(error)) throw error;
      // The table allows neither batches nor If-Match, so edits are sent one by one. Each saved edit leaves the list,
      // so that after an error only the rest remains.
      for (const edit of list) {
        this.#sent = [edit];
        await this.#one({ ...edit, tag: undefined });
        this.savedBefore.value += 1;
        // Undo would restore edits that are already saved.
        this.#history.value = [];
        this.list.value = this.list.value.filter(({ id }) => id !== edit.id);
        this.#keep();
      }
    }
  }

  async #one(edit: Edit): Promise<unknown> {
    const table = tableOf(this.table);
    if (edit.kind === "insert") return table.insert(edit.data);
    const match = edit.tag ? { ifMatch: edit.tag } : {};
    return edit.kind === "update" ? table.update(edit.key, edit.data, match) : table.remove(edit.key, match);
  }

  async #all(list: readonly Edit[]): Promise<void> {
    await api().batch((batch) => {
      const table = batch.table(this.table as `${string}.${string}`);
      return list.map((edit) => {
        if (edit.kind === "insert") return table.insert(edit.data);
        const match = edit.tag ? { ifMatch: edit.tag } : {};
        return edit.kind === "update" ? table.update(edit.key, edit.data, match) : table.remove(edit.key, match);
      });
    });
  }

  /** Shows errors at the edit and field that they name, or above the list. */
  async #refused(list: readonly Edit[], error: unknown): Promise<void> {
    if (!isSelkieError(error)) throw error;
    const own = error.errors.map(({ code, message, details }) => ({
      code,
      message,
      field: details?.field,
      at: details?.operation,
    }));
    const at = error.details.operation ?? (list.length === 1 ? 0 : undefined);
    const edit = at === undefined ? undefined : list[at];
    if (!edit) {
      error.message = withoutIndex(error.message);
      this.fault.value = error;
      return;
    }
    const faults: Fault[] = own
      .filter((fault) => fault.at === undefined || fault.at === at)
      .map(({ code, message, field }) => ({ code, message: withoutIndex(message), field }));
    if (faults[0]) faults[0].hint = error.hint;
    this.#patch(edit.id, { faults });
    if (error.code === "precondition_failed" || error.code === "record_not_found") {
      const record = await tableOf(this.table)
        .get(edit.key)
        .catch(() => undefined);
      if (record !== undefined) this.#patch(edit.id, { theirs: record, faults: [] });
    }
  }
}

/** Removes the index of an operation of the request, which the user does not see. */
const withoutIndex = (message: string) => message.replace(/^Operation \d+: /, "");

/** Returns whether the server refused a write because the table's engine has no transactions. Nothing was written
 * then. */
export const needsTransactions = (error: unknown) =>
  isSelkieError(error) && error.status === 400 && /transaction/i.test(error.message + (error.hint ?? ""));
