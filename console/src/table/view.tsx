// A table: its records with filters and edits, and its structure.
import { effect } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { keyFields, schemaOf, type Schema } from "../schema";
import { route, tableOf, to } from "../session";
import { texts } from "../texts";
import { Button, Icon, Problem, Spinner, useLoad, useTitle } from "../ui";
import { csv, type Row, save } from "../values";
import { Edits } from "./edits";
import { EditsBar } from "./edits-bar";
import { follow } from "./follow";
import { Grid } from "./grid";
import { Labels } from "./labels";
import { type Options, listOptions, NO_QUERY, type Query, readQuery, writeQuery } from "./query";
import { RecordPanel } from "./record";
import { Rows } from "./rows";
import { Structure } from "./structure";
import { ToolBar } from "./toolbar";

export function TableView({ database, table, tab }: { database: string; table: string; tab: "data" | "structure" }) {
  const { value: schema, error, again } = useLoad(() => schemaOf(database, table), [database, table]);
  useTitle(table);
  return (
    <div class="table-view">
      <div class="head">
        <h1>
          <span class="dim">{database} / </span>
          {table}
        </h1>
        <nav class="tabs" aria-label={table}>
          <a href={to("data", [database, table])} aria-current={tab === "data" ? "page" : undefined}>
            {texts.table.data}
          </a>
          <a href={to("structure", [database, table])} aria-current={tab === "structure" ? "page" : undefined}>
            {texts.table.structure}
          </a>
        </nav>
      </div>
      {error ? (
        <Problem error={error} again={again} />
      ) : !schema ? (
        <Spinner label={texts.table.loading} />
      ) : tab === "structure" ? (
        <Structure database={database} table={table} schema={schema} />
      ) : (
        <Records database={database} table={table} schema={schema} />
      )}
    </div>
  );
}

export interface May {
  read: boolean;
  insert: boolean;
  update: boolean;
  remove: boolean;
}

function mayOf({ methods, schema, kind }: Schema): May {
  const may = (...names: string[]) => names.some((name) => methods.includes(name));
  const hasKey = keyFields({ schema, kind, methods, relations: [] }).length > 0;
  return {
    read: may("GET"),
    insert: may("POST"),
    update: hasKey && may("PUT", "PATCH"),
    remove: hasKey && may("DELETE"),
  };
}

function Records({ database, table, schema }: { database: string; table: string; schema: Schema }) {
  const name = `${database}.${table}`;
  const options = route.value.options.toString();
  const query = useMemo(() => readQuery(new URLSearchParams(options)), [options]);
  const may = useMemo(() => mayOf(schema), [schema]);
  const edits = useMemo(() => new Edits(name, schema), [name, schema]);
  const labels = useMemo(() => new Labels(database, schema), [name, schema]);
  const keys = edits.keys;
  const asked = JSON.stringify(listOptions(query, keys));
  const rows = useMemo(() => (may.read ? new Rows(name, JSON.parse(asked)) : null), [name, asked, may]);
  const [count, setCount] = useState<Count | undefined>(undefined);
  const [round, setRound] = useState(0);
  /** The record in the panel: the id of an edit, or a record of the grid. */
  const [open, setOpen] = useState<{ id: string; row?: Row; field?: string } | null>(null);
  useEffect(() => () => rows?.stop(), [rows]);
  useEffect(() => {
    if (!rows || schema.kind !== "table") return;
    return follow(name, JSON.parse(asked), () => {
      rows.refresh();
      setRound((last) => last + 1);
    });
  }, [rows, schema]);
  useEffect(() => {
    if (!rows) return;
    const control = new AbortController();
    setCount(undefined);
    // The records are counted after the first page, for which the user waits.
    const stop = effect(() => {
      if (rows.isLoading.value || rows.error.value) return;
      queueMicrotask(() => stop());
      const { select: _, order: __, ...conditions } = JSON.parse(asked);
      void countOf(tableOf(name), conditions, keys, control.signal).then(setCount, () => {});
    });
    return () => {
      stop();
      control.abort();
    };
  }, [rows, round]);
  const setQuery = (next: Query) => {
    location.hash = to("data", [database, table], writeQuery(next));
  };
  const reload = () => {
    labels.forget();
    rows?.reload();
    setRound((last) => last + 1);
  };
  const download = async () => {
    const found: Row[] = [];
    for await (const row of tableOf(name).stream(JSON.parse(asked))) found.push(row);
    const fields = query.columns ?? schema.schema.filter(({ invisible }) => !invisible).map((field) => field.name);
    save(`${table}.csv`, csv(fields, found), "text/csv");
  };
  const add = () => setOpen({ id: edits.insert() });
  const isFiltered = query.filters.length > 0 || query.search !== null;
  const note = !may.read
    ? texts.table.noRead
    : may.update || may.remove || may.insert
      ? null
      : schema.methods.includes("PUT")
        ? texts.table.noKey
        : texts.table.readOnly;
  return (
    <div class="records">
      <ToolBar database={database} table={table} schema={schema} query={query} keys={keys} setQuery={setQuery}>
        <Button icon="download" label={texts.table.export} onClick={() => void download()} disabled={!may.read} />
        <Button icon="reload" bare label={texts.table.reload} onClick={reload} />
        <span class="grow" />
        {note && (
          <span class="note">
            <Icon name="lock" />
            {note}
          </span>
        )}
        {may.insert && <Button icon="plus" look="main" label={texts.table.add} onClick={add} />}
      </ToolBar>
      <div class={open ? "split" : "split alone"}>
        {rows && (
          <div class="grid-side">
            <Grid
              database={database}
              table={table}
              schema={schema}
              rows={rows}
              edits={edits}
              labels={labels}
              query={query}
              may={may}
              setQuery={setQuery}
              opened={open?.id}
              onOpen={(id, row, field) => setOpen({ id, ...(row ? { row } : {}), ...(field ? { field } : {}) })}
            />
            <Status
              rows={rows}
              count={count}
              isFiltered={isFiltered}
              clear={() => setQuery({ ...NO_QUERY, columns: query.columns })}
            />
          </div>
        )}
        {open && (
          <RecordPanel
            key={open.id}
            database={database}
            table={table}
            schema={schema}
            edits={edits}
            labels={labels}
            may={may}
            id={open.id}
            row={open.row}
            focus={open.field}
            query={query}
            setQuery={setQuery}
            onClose={() => setOpen(null)}
          />
        )}
      </div>
      <EditsBar
        edits={edits}
        onOpen={(id) => setOpen(open?.id === id ? open : { id })}
        onSaved={() => {
          setOpen(null);
          reload();
        }}
        onPartly={reload}
      />
    </div>
  );
}

/** More records are not counted exactly. */
const COUNTED_MAX = 10_000;

type Count = { exact: number } | { more: number };

/** Counts the records, unless there are very many: MariaDB counts by reading all of them. */
async function countOf(
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

function Status({
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
