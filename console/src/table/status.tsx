// The line below the grid: how many records there are, or why none is shown.
import type { tableOf } from "../session";
import { texts } from "../texts";
import { Button, Problem } from "../ui";
import type { Options } from "./query";
import type { Rows } from "./rows";

/** More records are not counted exactly. */
const COUNTED_MAX = 10_000;

export type Count = { exact: number } | { more: number };

/** Counts the records, unless there are very many: MariaDB counts by reading all of them. */
export async function countOf(
  table: ReturnType<typeof tableOf>,
  conditions: Options,
  keys: string[],
  signal: AbortSignal,
): Promise<Count> {
  const beyond = await table.list({
    ...conditions,
    ...(keys.length ? { select: keys } : {}),
    limit: 1,
    offset: COUNTED_MAX,
    signal,
  });
  if (beyond.length > 0) return { more: COUNTED_MAX };
  const { count } = await table.list({ ...conditions, limit: 0, count: true, signal });
  return { exact: count ?? 0 };
}

export function Status({
  rows,
  count,
  isFiltered,
  clear,
}: {
  rows: Rows;
  count: Count | undefined;
  isFiltered: boolean;
  clear: () => void;
}) {
  void rows.version.value;
  if (rows.error.value) return <Problem error={rows.error.value} again={() => rows.reload()} />;
  const isEmpty = rows.length === 0 && !rows.isLoading.value;
  return (
    <div class="status">
      {isEmpty ? (
        <p class="empty" role="status">
          {isFiltered ? texts.table.emptyFiltered : texts.table.empty}{" "}
          {isFiltered && <Button label={texts.table.clearAll} onClick={clear} />}
        </p>
      ) : (
        <p role="status">
          {count === undefined
            ? rows.isLoading.value
              ? texts.table.loading
              : texts.table.counting
            : "more" in count
              ? texts.table.countMore(count.more)
              : texts.table.count(count.exact)}
        </p>
      )}
      <p class="dim keys">{texts.table.keys}</p>
    </div>
  );
}
