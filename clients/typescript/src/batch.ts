// Builds the operations of a batch, which run in one transaction, and reads their answers. Must not know how their
// requests are formed.
import { type Envelope, listOf } from "./http.js";
import { describe, type Description, nameOf, pathOf, Ref } from "./operations.js";
import type {
  AnyTable,
  ChangeOptions,
  Changed,
  ChangedMany,
  GetOptions,
  Insert,
  InsertOptions,
  Inserted,
  InsertedMany,
  Key,
  List,
  ListOptions,
  ManyOptions,
  Result,
  Selection,
  Strict,
  TableName,
  TableOf,
  Update,
} from "./types.js";

type CallOnly = "signal" | "timeout" | "retries" | "headers" | "repeatable" | "idempotencyKey";

/** An operation of a batch that answers `R`. */
export class Operation<R> {
  /** Never set: only carries the type of the operation's answer. */
  declare readonly answer: R;
  index: number | undefined;

  constructor(readonly describe: () => Description) {}

  protected at = (): number => {
    if (this.index === undefined) throw new TypeError("The batch refers to an operation that is not in its list.");
    return this.index;
  };
}

/** A list. Its answer has `more` if further records follow. */
class ListOperation<R> extends Operation<List<R>> {}

/** An insert. Later operations may refer to the new records. */
export class InsertOperation<R, K> extends Operation<R> {
  /** A reference to the new record's key, for use as a value of a field or condition, or as the key of a record. */
  get id(): K {
    return new Ref(this.at) as K;
  }

  /** A reference to the key of the record with this index in the inserted list. */
  row(index: number): K {
    return new Ref(this.at, index) as K;
  }
}

/** A table within a batch: describes operations and runs none. */
export class BatchTable<DB, T extends AnyTable> {
  readonly #path: string;

  constructor(name: string) {
    this.#path = pathOf(nameOf(name));
  }

  /** Reads the record with this key; the batch fails with `record_not_found` if there is none. */
  get<const O extends Omit<GetOptions<DB, T>, CallOnly> = {}>(
    key: Key<T>,
    options?: O & Strict<DB, T, O, GetOptions<DB, T>>,
  ) {
    return new Operation<Result<DB, T, O>>(() => describe.get(this.#path, key, options ?? {}));
  }

  list<const O extends Omit<ListOptions<DB, T>, CallOnly | "count" | "after"> = {}>(
    options?: O & Strict<DB, T, O, ListOptions<DB, T>>,
  ): Operation<List<Result<DB, T, O>>> {
    return new ListOperation<Result<DB, T, O>>(() => describe.list(this.#path, options ?? {}));
  }

  insert<const O extends Omit<InsertOptions<T>, CallOnly> = {}>(
    records: readonly Insert<T>[],
    options?: O,
  ): InsertOperation<InsertedMany<T, O>, T["key"]>;
  insert<const O extends Omit<InsertOptions<T>, CallOnly> = {}>(
    record: Insert<T>,
    options?: O,
  ): InsertOperation<Inserted<T, O>, T["key"]>;
  insert(records: unknown, options: Omit<InsertOptions<T>, CallOnly> = {}): InsertOperation<unknown, T["key"]> {
    return new InsertOperation(() => describe.insert(this.#path, records, options));
  }

  update<const O extends Omit<ManyOptions<T>, CallOnly> = {}>(
    which: Selection<DB, T>,
    data: Update<T>,
    options?: O,
  ): Operation<ChangedMany<T, O>>;
  update<const O extends Omit<ChangeOptions<T>, CallOnly> = {}>(
    key: Key<T>,
    data: Update<T>,
    options?: O,
  ): Operation<Changed<T, O>>;
  update(which: unknown, data: unknown, options: ChangeOptions<T> & ManyOptions<T> = {}): Operation<unknown> {
    return new Operation(() => describe.update(this.#path, which, data, options));
  }

  remove<const O extends Omit<ManyOptions<T>, CallOnly> = {}>(
    which: Selection<DB, T>,
    options?: O,
  ): Operation<ChangedMany<T, O>>;
  remove<const O extends Omit<ChangeOptions<T>, CallOnly> = {}>(key: Key<T>, options?: O): Operation<Changed<T, O>>;
  remove(which: unknown, options: ChangeOptions<T> & ManyOptions<T> = {}): Operation<unknown> {
    return new Operation(() => describe.remove(this.#path, which, options));
  }
}

/** Gives access to the tables of a batch. */
export class Batch<DB> {
  table<N extends TableName<DB>>(name: N): BatchTable<DB, TableOf<DB, N>> {
    return new BatchTable(name);
  }
}

/** The answers of a batch; `more`: a list among them was cut; `limited`: by the key's role. */
export type Answers<O extends readonly Operation<unknown>[]> = { -readonly [K in keyof O]: O[K]["answer"] } & {
  readonly more?: boolean;
  readonly limited?: boolean;
};

/** Returns the operations of a batch request, and numbers them so that references to them can be written. */
export function operations(list: readonly Operation<unknown>[]): object[] {
  list.forEach((operation, index) => {
    if (operation.index !== undefined)
      throw new TypeError("An operation is twice in the list of the batch, or was run before.");
    operation.index = index;
  });
  return list.map((operation) => {
    const { repeat: _, path, ...rest } = operation.describe();
    return { path: path.replace("crud/", ""), ...rest };
  });
}

/** Returns the answers of the operations. Where the service does not say which lists it cut, any of them may be cut. */
export function answersOf<O extends readonly Operation<unknown>[]>(list: O, envelope: Envelope<unknown[]>): Answers<O> {
  const { payload, more, limited, cut } = envelope;
  list.forEach((operation, index) => {
    if (!(operation instanceof ListOperation)) return;
    const isCut = cut ? cut.includes(index) : more;
    payload[index] = listOf({ payload: payload[index] as unknown[], more: isCut || undefined });
  });
  return listOf({ payload, more, limited }) as unknown as Answers<O>;
}
