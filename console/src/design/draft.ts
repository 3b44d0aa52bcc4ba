// A table as it is edited, and the change of the API that makes a table so. Must not know how it is shown.
import type {
  Alteration,
  ColumnDefinition,
  ColumnPlace,
  ForeignKeyDefinition,
  IndexDefinition,
  NewTable,
  TableDefinition,
} from "@selkie/client";

export interface DraftColumn extends ColumnDefinition {
  /** Indexes and keys name columns by it, so that they follow a renamed column. */
  readonly id: number;
  /** The column's present name; undefined for a new column. */
  readonly was?: string;
  readonly isDropped?: boolean;
}

/** Stands for a column that is still to be chosen. */
export const NO_COLUMN = -1;

/** A column of an index that is to be added. */
export interface DraftPart {
  readonly id: number;
  readonly length?: number;
  readonly descending?: boolean;
}

export interface DraftIndex {
  readonly name: string;
  readonly kind: NonNullable<IndexDefinition["kind"]>;
  readonly parts: readonly DraftPart[];
}

export interface DraftForeignKey {
  readonly name: string;
  readonly database: string;
  readonly table: string;
  /** The column, and the column that it references. */
  readonly pairs: readonly { readonly id: number; readonly column: string }[];
  readonly onDelete: string;
  readonly onUpdate: string;
}

export interface Draft {
  readonly name: string;
  readonly comment: string;
  readonly columns: readonly DraftColumn[];
  readonly primaryKey: readonly number[];
  readonly addedIndexes: readonly DraftIndex[];
  readonly droppedIndexes: readonly string[];
  readonly addedForeignKeys: readonly DraftForeignKey[];
  readonly droppedForeignKeys: readonly string[];
}

const NO_KEYS = { addedIndexes: [], droppedIndexes: [], addedForeignKeys: [], droppedForeignKeys: [] };

export const newDraft = (): Draft => ({
  name: "",
  comment: "",
  columns: [{ id: 0, name: "id", type: "bigint unsigned", autoIncrement: true }],
  primaryKey: [0],
  ...NO_KEYS,
});

export function draftOf(name: string, made: TableDefinition): Draft {
  const columns = made.columns.map((column, id) => ({ ...column, id, was: column.name }));
  const primaryKey = made.primaryKey.map((key) => columns.findIndex((column) => column.name === key));
  return { name, comment: made.comment, columns, primaryKey, ...NO_KEYS };
}

export const nextId = ({ columns }: Draft): number => Math.max(-1, ...columns.map(({ id }) => id)) + 1;

const hasCharset = (type: string) => /^\s*(char|varchar|tinytext|text|mediumtext|longtext|enum|set)\b/i.test(type);

/** Returns the column as the API takes it, without what is empty or not for its type. */
export function definitionOf(column: ColumnDefinition): ColumnDefinition {
  const { name, type, charset, collation, nullable, onUpdate, autoIncrement, generated, check, invisible, comment } =
    column;
  const isText = hasCharset(type);
  const given = {
    name: name.trim(),
    type: type.trim(),
    charset: isText && charset?.trim(),
    collation: isText && collation?.trim(),
    nullable,
    onUpdate: onUpdate?.trim(),
    autoIncrement,
    generated,
    check: check?.expression.trim() ? check : undefined,
    invisible,
    comment,
  };
  const kept = Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value || name === "name" || name === "type"),
  );
  const isGiven = column.default !== undefined && column.default !== null && !autoIncrement && !generated;
  return { ...(kept as unknown as ColumnDefinition), ...(isGiven ? { default: column.default } : {}) };
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Returns the indices of the longest series of ascending numbers: of what need not move. */
function ascending(numbers: readonly number[]): Set<number> {
  const best = numbers.map((): { length: number; before: number } => ({ length: 1, before: -1 }));
  let last = -1;
  for (const [at, number] of numbers.entries()) {
    for (let before = 0; before < at; before += 1)
      if (numbers[before]! < number && best[before]!.length >= best[at]!.length)
        best[at] = { length: best[before]!.length + 1, before };
    if (last < 0 || best[at]!.length > best[last]!.length) last = at;
  }
  const found = new Set<number>();
  for (; last >= 0; last = best[last]!.before) found.add(last);
  return found;
}

const after = (column: ColumnDefinition | undefined): ColumnPlace =>
  column ? { after: column.name.trim() } : { first: true };

type Change = NonNullable<Alteration["changeColumns"]>[number];
type Addition = NonNullable<Alteration["addColumns"]>[number];

/** Returns the columns that differ from the present ones. MariaDB places them in their order, and new ones after them. */
function changedColumns(columns: readonly DraftColumn[], made: TableDefinition): Change[] {
  const kept = columns.filter(({ was }) => was !== undefined);
  const present = kept.map(({ was }) => made.columns.findIndex(({ name }) => name === was));
  const inPlace = ascending(present);
  return kept.flatMap((column, at) => {
    const own = definitionOf(column);
    if (inPlace.has(at) && same(own, definitionOf(made.columns[present[at]!]!))) return [];
    return [{ column: column.was!, ...own, ...(inPlace.has(at) ? {} : after(kept[at - 1])) }];
  });
}

function addedColumns(columns: readonly DraftColumn[]): Addition[] {
  const lastPresent = columns.findLastIndex(({ was }) => was !== undefined);
  return columns.flatMap((column, at) =>
    column.was !== undefined ? [] : [{ ...definitionOf(column), ...(at > lastPresent ? {} : after(columns[at - 1])) }],
  );
}

/** Leaves out lists that are empty. */
const filled = <T extends object>(change: T): T =>
  Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined && (!Array.isArray(value) || value.length > 0)),
  ) as T;

function keysOf(draft: Draft, columns: readonly DraftColumn[]) {
  const nameOf = (id: number) => columns.find((column) => column.id === id)?.name.trim() ?? "";
  const named = ({ name }: { name: string }) => (name.trim() ? { name: name.trim() } : {});
  const indexes = draft.addedIndexes.map((index): IndexDefinition => {
    const parts = index.parts.map(({ id, length, descending }) =>
      length || descending
        ? { column: nameOf(id), ...(length ? { length } : {}), ...(descending ? { descending } : {}) }
        : nameOf(id),
    );
    return { ...named(index), kind: index.kind, columns: parts };
  });
  const foreignKeys = draft.addedForeignKeys.map(
    (key) =>
      ({
        ...named(key),
        columns: key.pairs.map(({ id }) => nameOf(id)),
        references: { database: key.database, table: key.table, columns: key.pairs.map(({ column }) => column) },
        ...(key.onDelete ? { onDelete: key.onDelete } : {}),
        ...(key.onUpdate ? { onUpdate: key.onUpdate } : {}),
      }) as ForeignKeyDefinition,
  );
  return { indexes, foreignKeys };
}

export function newTableOf(draft: Draft): NewTable {
  const columns = draft.columns.filter(({ isDropped }) => !isDropped);
  const primaryKey = draft.primaryKey.flatMap((id) => columns.filter((column) => column.id === id));
  return filled({
    columns: columns.map(definitionOf),
    primaryKey: primaryKey.map(({ name }) => name.trim()),
    ...keysOf(draft, columns),
    comment: draft.comment || undefined,
  }) as NewTable;
}

/** Returns the change that makes the table as the draft says; an empty object if nothing changes. */
export function alterationOf(draft: Draft, name: string, made: TableDefinition): Alteration {
  const columns = draft.columns.filter(({ isDropped }) => !isDropped);
  const { indexes, foreignKeys } = keysOf(draft, columns);
  const key = draft.primaryKey.flatMap((id) => columns.filter((column) => column.id === id));
  const isKeyKept = same(
    key.map(({ was }) => was),
    made.primaryKey,
  );
  return filled({
    changeColumns: changedColumns(columns, made),
    addColumns: addedColumns(columns),
    dropColumns: draft.columns.flatMap(({ was, isDropped }) => (was !== undefined && isDropped ? [was] : [])),
    addIndexes: indexes,
    dropIndexes: draft.droppedIndexes,
    addForeignKeys: foreignKeys,
    dropForeignKeys: draft.droppedForeignKeys,
    // Never empty: `filled` leaves an empty list out.
    primaryKey: isKeyKept ? undefined : key.length > 0 ? key.map(({ name }) => name.trim()) : null,
    comment: draft.comment === made.comment ? undefined : draft.comment,
    rename: draft.name.trim() === name ? undefined : draft.name.trim(),
  }) as Alteration;
}
