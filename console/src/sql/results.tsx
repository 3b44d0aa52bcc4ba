// The results of the statements that were run: tables, charts, files, numbers of changed rows, errors.
import { useVirtualizer } from "@tanstack/react-virtual";
import type { ComponentType } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { texts } from "../texts";
import { Button, Problem } from "../ui";
import { csv, type Row, save, show } from "../values";
import type { Result } from "./run";

const ROW_PX = 28;

export interface Outcome {
  /** The statement as it was sent. */
  text: string;
  /** The limit that the console has added. */
  limit: number | undefined;
  result: Result;
}

/** Shows the result of one of the statements: by default of the last that has more than a number of changed rows. */
export function Outcomes({ list, of }: { list: readonly Outcome[]; of: number }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const last = list.findLastIndex(({ result }) => result.kind !== "change");
  const at = chosen ?? (last < 0 ? list.length - 1 : last);
  const outcome = list[at];
  if (!outcome) return null;
  const { text, limit, result } = outcome;
  return (
    <>
      {list.length > 1 && (
        <div class="toolbar" role="group" aria-label={texts.sql.statements}>
          {list.map((one, index) => (
            <Button
              key={index}
              label={texts.sql.nth(index + 1, summary(one.result))}
              look={one.result.kind === "error" ? "danger" : undefined}
              pressed={index === at}
              onClick={() => setChosen(index)}
            />
          ))}
        </div>
      )}
      <pre class="code ran">{text}</pre>
      {limit !== undefined && <p class="dim small pad">{texts.sql.limitAdded(limit)}</p>}
      {result.kind === "error" && <Problem error={result.error} />}
      {(result.kind === "canceled" || result.kind === "change") && (
        <p class="pad" role="status">
          {summary(result)}
        </p>
      )}
      {(result.kind === "error" || result.kind === "canceled") && list.length < of && (
        <p class="pad">{texts.sql.notRun(list.length + 1, of)}</p>
      )}
      {result.kind === "rows" && <Sets key={at} sets={result.sets} ms={result.ms} />}
    </>
  );
}

function summary(result: Result): string {
  if (result.kind === "change") return texts.sql.done(Number(result.change.affectedRows), result.change.warnings);
  if (result.kind === "rows") return texts.sql.rowCount(result.sets[0]?.length ?? 0);
  return result.kind === "error" ? texts.sql.failed : texts.sql.canceled;
}

function Sets({ sets, ms }: { sets: Row[][]; ms: number }) {
  const [at, setAt] = useState(0);
  const rows = sets[at] ?? [];
  return (
    <>
      {sets.length > 1 && (
        <div class="toolbar">
          {sets.map((_, index) => (
            <Button key={index} label={texts.sql.result(index)} pressed={index === at} onClick={() => setAt(index)} />
          ))}
        </div>
      )}
      <RowsResult key={at} rows={rows} ms={ms} />
    </>
  );
}

function RowsResult({ rows, ms }: { rows: Row[]; ms: number }) {
  const fields = Object.keys(rows[0] ?? {});
  const [Chart, setChart] = useState<ComponentType<{ rows: Row[]; fields: string[] }> | null>(null);
  const [isChart, setIsChart] = useState(false);
  const chart = async () => {
    const { default: view } = await import("./chart");
    setChart(() => view);
    setIsChart(true);
  };
  if (rows.length === 0)
    return (
      <p class="pad" role="status">
        {texts.sql.empty}
      </p>
    );
  return (
    <div class="rows-result">
      <div class="toolbar">
        <Button icon="table" label={texts.sql.table} pressed={!isChart} onClick={() => setIsChart(false)} />
        <Button icon="chart" label={texts.sql.chart} pressed={isChart} onClick={() => void chart()} />
        <Button
          icon="download"
          label={texts.sql.download}
          onClick={() => save("result.csv", csv(fields, rows), "text/csv")}
        />
        <span class="grow" />
        <span class="dim" role="status">
          {texts.sql.rows(rows.length, ms)}
        </span>
      </div>
      {isChart && Chart ? <Chart rows={rows} fields={fields} /> : <ResultGrid rows={rows} fields={fields} />}
    </div>
  );
}

function ResultGrid({ rows, fields }: { rows: Row[]; fields: string[] }) {
  const own = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => own.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  useLayoutEffect(() => {
    const widths = fields.map((field) => {
      const longest = Math.max(field.length, ...rows.slice(0, 50).map((row) => String(row[field] ?? "NULL").length));
      return `${Math.min(420, Math.max(70, longest * 8 + 24))}px`;
    });
    own.current?.style.setProperty("--columns", widths.join(" "));
  }, [rows]);
  return (
    <div
      class="grid small-rows"
      ref={own}
      role="grid"
      tabIndex={0}
      aria-label={texts.sql.table}
      aria-rowcount={rows.length + 1}
      aria-colcount={fields.length}
    >
      <div class="line header" role="row" aria-rowindex={1}>
        {fields.map((field, column) => (
          <div class="cell" role="columnheader" aria-colindex={column + 1} key={field}>
            <span class="cut">{field}</span>
          </div>
        ))}
      </div>
      <div class="body" role="presentation" style={{ height: `${virtual.getTotalSize()}px` }}>
        {virtual.getVirtualItems().map(({ index, start }) => (
          <div
            class="line"
            role="row"
            aria-rowindex={index + 2}
            key={index}
            style={{ transform: `translateY(${start}px)` }}
          >
            {fields.map((field, column) => {
              const value = rows[index]![field];
              const { text, look } = show(value, typeof value === "number" ? "float" : "text");
              return (
                <div class="cell" role="gridcell" aria-colindex={column + 1} key={field} title={text}>
                  <span class={`value look-${look} ${typeof value === "number" ? "right" : ""}`}>{text}</span>
                </div>
              );
            })}
          </div>
        ))}
      </div>
    </div>
  );
}
