// The records that are selected in the grid. Must not know what is done with them.
import { signal } from "@preact/signals";
import type { Row } from "../values";
import type { Line } from "./grid/lines";

export class Selection {
  /** The selected records by their ids, as they were when they were selected. */
  readonly rows = signal<ReadonlyMap<string, Row>>(new Map());
  /** The line from which a range extends. */
  #anchor = 0;

  has(id: string): boolean {
    return this.rows.value.has(id);
  }

  toggle(index: number, { id, row, record }: Line): void {
    this.#anchor = index;
    // A new record is not in the table yet.
    if (!row) return;
    const next = new Map(this.rows.value);
    if (!next.delete(id)) next.set(id, record);
    this.rows.value = next;
  }

  /** Selects the records from the last toggled line to this one, as far as they are in memory. */
  extend(index: number, lines: { at(index: number): Line | undefined }): void {
    this.#add(Math.min(this.#anchor, index), Math.max(this.#anchor, index), lines);
  }

  /** Begins a range at a line, if no record is selected. */
  begin(index: number): void {
    if (this.rows.value.size === 0) this.#anchor = index;
  }

  all(lines: { count: number; at(index: number): Line | undefined }): void {
    this.#add(0, lines.count - 1, lines);
  }

  /** Overwrites fields of the selected records. */
  overwrite(data: Row): void {
    this.rows.value = new Map([...this.rows.value].map(([id, row]) => [id, { ...row, ...data }]));
  }

  clear(): void {
    if (this.rows.value.size) this.rows.value = new Map();
  }

  #add(first: number, last: number, lines: { at(index: number): Line | undefined }): void {
    const next = new Map(this.rows.value);
    for (let at = first; at <= last; at += 1) {
      const line = lines.at(at);
      if (line?.row) next.set(line.id, line.record);
    }
    this.rows.value = next;
  }
}
