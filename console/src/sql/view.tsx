// Runs SQL, one statement at a time: its plan, its result as table, chart or file, and the earlier statements.
import type { SqlChange } from "@selkie/client";
import { useVirtualizer } from "@tanstack/react-virtual";
import type { ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { databases, forget, loadDatabases, loadTables, schemaOf, tables } from "../schema";
import { api, holder, keep, kept } from "../session";
import { texts } from "../texts";
import { Button, Popup, Problem, Spinner, useTitle } from "../ui";
import { csv, type Row, save, show } from "../values";
import { type Editor, openEditor } from "./editor";

const HISTORY_MAX = 50;
/** Maximum tables whose fields are offered for completion; reading more schemas would take too long. */
const COMPLETED_TABLES_MAX = 80;
const ROW_PX = 28;

interface Past {
  query: string;
  database: string;
  at: string;
}

type Result =
  | { kind: "rows"; sets: Row[][]; ms: number }
  | { kind: "change"; change: SqlChange }
  | { kind: "canceled" }
  | { kind: "error"; error: unknown };

export default function Sql() {
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const running = useRef<AbortController | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [result, setResult] = useState<Result | null>(null);
  const [past, setPast] = useState<Past[]>(() => kept("sql:history", []));
  const [database, setDatabase] = useState<string>(() => kept("sql:database", databases.value?.[0] ?? ""));
  const run = useRef<(explain?: true) => void>(() => {});

  useTitle(texts.sql.heading);
  useEffect(() => {
    if (!box.current) return;
    editor.current = openEditor(box.current, kept("sql:text", ""), {
      onRun: () => run.current(),
      onChange: (text) => keep("sql:text", text),
    });
    editor.current.focus();
    return () => {
      editor.current?.destroy();
      running.current?.abort();
    };
  }, []);
  const list = tables.value[database];
  useEffect(() => {
    if (!database && databases.value?.[0]) setDatabase(databases.value[0]);
  }, [databases.value]);
  useEffect(() => {
    if (!list) {
      if (database) void loadTables(database).catch(() => {});
      return;
    }
    let isCurrent = true;
    const some = list.slice(0, COMPLETED_TABLES_MAX);
    void Promise.allSettled(some.map(({ name }) => schemaOf(database, name))).then((found) => {
      const fields = found.map(
        (one, at) =>
          [some[at]!.name, one.status === "fulfilled" ? one.value.schema.map(({ name }) => name) : []] as const,
      );
      if (isCurrent) editor.current?.setSchema(Object.fromEntries(fields));
    });
    return () => {
      isCurrent = false;
    };
  }, [database, list]);

  run.current = async (explain) => {
    const text = editor.current?.text().trim() ?? "";
    if (!text || running.current) return;
    const control = new AbortController();
    running.current = control;
    setRunning(true);
    setResult(null);
    const begun = performance.now();
    try {
      const query = explain ? `EXPLAIN ${text.replace(/;\s*$/, "")}` : text;
      const answer = await api().sql({ database: database || undefined!, signal: control.signal, timeout: 0 })<unknown>(
        template(query),
      );
      const ms = Math.round(performance.now() - begun);
      if (Array.isArray(answer))
        setResult({ kind: "rows", sets: Array.isArray(answer[0]) ? answer : [answer as Row[]], ms });
      else setResult({ kind: "change", change: answer as SqlChange });
      if (/^\s*(create|alter|drop|rename|truncate)\b/i.test(text)) {
        forget();
        void loadDatabases(database);
      }
    } catch (error) {
      setResult(control.signal.aborted ? { kind: "canceled" } : { kind: "error", error });
    } finally {
      running.current = null;
      setRunning(false);
      if (!explain) {
        const next = [
          { query: text, database, at: new Date().toISOString() },
          ...past.filter(({ query }) => query !== text),
        ].slice(0, HISTORY_MAX);
        setPast(next);
        keep("sql:history", next);
      }
    }
  };
  const choose = (name: string) => {
    setDatabase(name);
    keep("sql:database", name);
  };
  if (holder.value.access !== "full") return <p class="pad">{texts.sql.full}</p>;
  return (
    <div class="sql">
      <div class="head">
        <h1>{texts.sql.heading}</h1>
        <label class="inline">
          {texts.sql.database}{" "}
          <select value={database} onChange={(event) => choose(event.currentTarget.value)}>
            {databases.value?.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <span class="grow" />
        <Popup icon="table" label={texts.sql.history} wide>
          {(close) =>
            past.length === 0 ? (
              <p class="dim">{texts.sql.noHistory}</p>
            ) : (
              <ul class="history">
                {past.map(({ query, at }) => (
                  <li key={at}>
                    <button
                      type="button"
                      class="link"
                      onClick={() => {
                        editor.current?.setText(query);
                        close();
                        editor.current?.focus();
                      }}
                    >
                      <code>{query}</code>
                    </button>
                  </li>
                ))}
              </ul>
            )
          }
        </Popup>
      </div>
      <div class="editor" ref={box} />
      <div class="toolbar">
        {isRunning ? (
          <Button icon="stop" label={texts.sql.cancel} onClick={() => running.current?.abort()} />
        ) : (
          <Button icon="play" look="main" label={texts.sql.run} onClick={() => run.current()} />
        )}
        <Button label={texts.sql.explain} onClick={() => run.current(true)} disabled={isRunning} />
        <span class="dim small keys">{texts.sql.hint}</span>
      </div>
      <div class="result">
        {isRunning && <Spinner label={texts.sql.running} />}
        {result?.kind === "error" && <Problem error={result.error} />}
        {result?.kind === "canceled" && (
          <p class="pad" role="status">
            {texts.sql.canceled}
          </p>
        )}
        {result?.kind === "change" && (
          <p class="pad" role="status">
            {texts.sql.done(Number(result.change.affectedRows), result.change.warnings)}
          </p>
        )}
        {result?.kind === "rows" && <Sets sets={result.sets} ms={result.ms} />}
      </div>
    </div>
  );
}

/** Returns a typed statement as the template that the client's `sql` takes, without values. */
const template = (text: string) => Object.assign([text], { raw: [text] });

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
