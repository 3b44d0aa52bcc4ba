// Tells when somebody changes the records of the grid. Must not know how they are shown: unsaved edits lie over the
// records, so they stay.
import { isSelkieError } from "@selkie/client";
import { tableOf } from "../session";
import type { Options } from "./query";

/** The time for which further changes are awaited before the records are read again. */
const PAUSE_MS = 400;

/** Calls `onChange` after changes. Returns what ends this. */
export function follow(table: string, { where, select }: Options, onChange: () => void): () => void {
  const control = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const tell = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      onChange();
    }, PAUSE_MS);
  };
  // The grid selects fields by their names.
  const fields = select as readonly string[] | undefined;
  // Something may have changed between the first read and the beginning of the feed.
  const own = { signal: control.signal, onReady: tell };
  const options = { ...(where && { where }), ...(fields && { select: fields }), ...own };
  const run = async () => {
    for (;;) {
      try {
        for await (const _ of tableOf(table).changes(options)) tell();
      } catch (error) {
        // The feed may be switched off, and views have none: the grid then shows what it has read.
        if (!isSelkieError(error, "resync_required")) return;
        tell();
      }
    }
  };
  void run();
  return () => {
    control.abort();
    clearTimeout(timer);
  };
}
