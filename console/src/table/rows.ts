// The records of the grid, read page by page; pages far from the view are dropped. Must not know any view.
import { signal } from "@preact/signals";
import { tableOf } from "../session";
import type { Row } from "../values";
import type { Options } from "./query";

export const PAGE_RECORDS = 100;
/** Maximum pages in memory; the pages farthest from the view are dropped, and read again when they are shown. */
const PAGES_MAX = 60;

interface Page {
  /** Where the page begins: after a cursor, or after a number of records where there is no cursor. */
  begin: { after?: string; offset?: number };
  rows: Row[] | undefined;
  /** The last record as JSON. If it is the same after the page was read again, the next page still follows. */
  end: string | undefined;
  length: number;
  /** Whether the records are to be read again, and shown until then. */
  isStale?: boolean;
}

export class Rows {
  /** Increases with every change, so that views render again. */
  readonly version = signal(0);
  readonly error = signal<unknown>(null);
  readonly isLoading = signal(true);
  #pages: Page[] = [{ begin: {}, rows: undefined, end: undefined, length: 0 }];
  #size = PAGE_RECORDS;
  #wanted: [number, number] = [0, 0];
  #isBusy = false;
  readonly #abort = new AbortController();

  constructor(
    private readonly table: string,
    private readonly options: Options,
  ) {
    void this.#fill();
  }

  /** The number of records on all pages that were read, including dropped pages. */
  get length(): number {
    return this.#pages.reduce((sum, { length }) => sum + length, 0);
  }

  get hasMore(): boolean {
    const last = this.#pages.at(-1)!;
    return last.rows === undefined && last.length === 0 && this.#pages.length > 1;
  }

  at(index: number): Row | undefined {
    return this.#pages[Math.floor(index / this.#size)]?.rows?.[index % this.#size];
  }

  /** Reads the records from `first` to `last`, unless they are in memory. */
  want(first: number, last: number): void {
    this.#wanted = [first, last];
    void this.#fill();
  }

  reload(): void {
    for (const page of this.#pages) page.rows = undefined;
    this.error.value = null;
    void this.#fill();
  }

  /** Reads the records again, and shows the old ones until then. */
  refresh(): void {
    for (const page of this.#pages) page.isStale = true;
    void this.#fill();
  }

  /** Overwrites fields of a record in memory, until it is read again. */
  replace(matches: (row: Row) => boolean, other: Row): void {
    for (const page of this.#pages) page.rows = page.rows?.map((row) => (matches(row) ? { ...row, ...other } : row));
    this.version.value += 1;
  }

  stop(): void {
    this.#abort.abort();
  }

  async #fill(): Promise<void> {
    if (this.#isBusy || this.error.value) return;
    this.#isBusy = true;
    this.isLoading.value = true;
    try {
      for (let at = this.#missing(); at !== undefined; at = this.#missing()) await this.#read(at);
    } catch (error) {
      if (!this.#abort.signal.aborted) this.error.value = error;
    }
    this.#isBusy = false;
    this.isLoading.value = false;
    this.version.value += 1;
  }

  #missing(): number | undefined {
    const [first, last] = this.#wanted;
    const from = Math.floor(first / this.#size);
    const until = Math.min(Math.floor(last / this.#size), this.#pages.length - 1);
    for (let at = from; at <= until; at += 1) if (!this.#pages[at]!.rows || this.#pages[at]!.isStale) return at;
    return undefined;
  }

  async #read(at: number): Promise<void> {
    const page = this.#pages[at]!;
    page.isStale = false;
    const options = { ...this.options, limit: this.#size, ...page.begin, signal: this.#abort.signal };
    const rows = await tableOf(this.table).list(options);
    // A role may allow fewer records in one answer, which then is the size of a page.
    const hasMore = rows.next !== undefined || rows.more === true;
    if (at === 0 && hasMore) this.#size = rows.length;
    const end = JSON.stringify(rows.at(-1));
    const isFollowed = page.end === end && (this.#pages[at + 1] !== undefined) === hasMore;
    Object.assign(page, { rows, end, length: rows.length });
    if (!isFollowed) {
      this.#pages.length = at + 1;
      const begin = rows.next ? { after: rows.next } : { offset: (page.begin.offset ?? 0) + rows.length };
      if (hasMore) this.#pages.push({ begin, rows: undefined, end: undefined, length: 0 });
    }
    this.#drop(at);
    this.version.value += 1;
  }

  #drop(near: number): void {
    const held = this.#pages.map((page, at) => ({ page, away: Math.abs(at - near) })).filter(({ page }) => page.rows);
    held.sort((one, other) => other.away - one.away);
    for (const { page } of held.slice(0, Math.max(0, held.length - PAGES_MAX))) page.rows = undefined;
  }
}
