// The lines of the grid: the new records that are not saved yet, then the records that were read. Must not know how they
// are shown.
import type { Row } from "../../values";
import type { Edit, Edits } from "../edits";
import type { Rows } from "../rows";

export interface Line {
  id: string;
  /** The record as it was read; undefined for a new record. */
  row: Row | undefined;
  /** The record with its unsaved changes. */
  record: Row;
  edit: Edit | undefined;
}

export class Lines {
  readonly #added: Edit[];

  constructor(
    private readonly rows: Rows,
    private readonly edits: Edits,
  ) {
    this.#added = edits.list.value.filter(({ kind }) => kind === "insert");
  }

  get count(): number {
    return this.#added.length + this.rows.length + (this.rows.hasMore ? 1 : 0);
  }

  /** Returns undefined if the record is not read yet. */
  at(index: number): Line | undefined {
    const edit = this.#added[index];
    if (edit) return { id: edit.id, row: undefined, record: edit.data, edit };
    const row = this.rows.at(index - this.#added.length);
    if (!row) return undefined;
    const id = this.edits.keys.length ? this.edits.idOf(row) : String(index);
    return { id, row, record: this.edits.shown(row), edit: this.edits.byId.value.get(id) };
  }

  want(first: number, last: number): void {
    this.rows.want(Math.max(0, first - this.#added.length), Math.max(0, last - this.#added.length));
  }
}
