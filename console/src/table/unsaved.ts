// The numbers of unsaved edits of all tables, for the frame of the page. Must not know the edits themselves.
import { effect, signal } from "@preact/signals";
import { kept, keptNames, key } from "../session";

/** The prefix of the names under which the tab keeps edits. */
export const KEPT_EDITS = "edits:";

/** By table. */
export const unsaved = signal<ReadonlyMap<string, number>>(new Map());

effect(() => {
  const read = keptNames(KEPT_EDITS).map((table): [string, number] => {
    return [table, kept<{ list: unknown[] }>(KEPT_EDITS + table, { list: [] }).list.length];
  });
  unsaved.value = new Map(key.value ? read : []);
});

export function noteUnsaved(table: string, count: number): void {
  if ((unsaved.peek().get(table) ?? 0) === count) return;
  const next = new Map(unsaved.peek());
  if (count) next.set(table, count);
  else next.delete(table);
  unsaved.value = next;
}
