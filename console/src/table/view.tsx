// A table: its records with filters and edits, and its structure.
import { effect } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Field, keyFields, schemaChanges, schemaOf, type Schema } from "../schema";
import { holder, route, tableOf, to } from "../session";
import { texts } from "../texts";
import { Button, Icon, Lazy, Popup, Problem, Spinner, useLoad, useTitle } from "../ui";
import { ExportPanel } from "../transfer/export-panel";
import type { Row } from "../values";
import { Bulk, refusalOf } from "./bulk";
import { Edits } from "./edits";
import { EditsBar } from "./edits-bar";
import { follow } from "./follow";
import { GoTo } from "./go-to";
import { Grid } from "./grid";
import { Labels } from "./labels";
import { listOptions, NO_QUERY, type Query, readQuery, writeQuery } from "./query";
import { RecordPanel } from "./record";
import { Rows } from "./rows";
import { Selection } from "./selection";
import { type Count, countOf, Status } from "./status";
import { Structure } from "./structure";
import { ToolBar } from "./toolbar";

type Tab = "data" | "structure" | "edit" | "import";

export function TableView({ database, table, tab: shown }: { database: string; table: string; tab: Tab }) {
  const {
    value: schema,
    error,
    again,
  } = useLoad(() => schemaOf(database, table), [database, table, schemaChanges.value]);
  useTitle(table);
  const tab = (name: Tab, label: string) => (
    <a href={to(name, [database, table])} aria-current={shown === name ? "page" : undefined}>
      {label}
    </a>
  );
  return (
    <div class="table-view">
      <div class="head">
        <h1>
          <span class="dim">{database} / </span>
          {table}
        </h1>
        <nav class="tabs" aria-label={table}>
          {tab("data", texts.table.data)}
          {tab("structure", texts.table.structure)}
          {holder.value.access === "full" && schema?.kind === "table" && tab("edit", texts.table.edit)}
        </nav>
      </div>
      {shown === "import" ? (
        // An import may make a table. It must not end when the schema is then read again.
        <Lazy load={() => import("../transfer/import")} />
      ) : error ? (
        <Problem error={error} again={again} />
      ) : !schema ? (
        <Spinner label={texts.table.loading} />
      ) : shown === "structure" ? (
        <Structure database={database} schema={schema} />
      ) : shown === "edit" ? (
        <Lazy load={async () => ({ default: (await import("../design/editor")).Edit })} />
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
  const [fault, setFault] = useState<unknown>(null);
  const asked = JSON.stringify(listOptions(query, keys));
  const rows = useMemo(() => (may.read ? new Rows(name, JSON.parse(asked)) : null), [name, asked, may]);
  const selection = useMemo(() => new Selection(), [rows]);
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
    // Now, since a page may still arrive while the user signs out.
    const own = tableOf(name);
    // The records are counted after the first page, for which the user waits.
    const stop = effect(() => {
      if (rows.isLoading.value || rows.error.value) return;
      queueMicrotask(() => stop());
      const { select: _, order: __, ...conditions } = JSON.parse(asked);
      void countOf(own, conditions, keys, control.signal).then(setCount, () => {});
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
  const add = () => {
    const first = schema.schema.find(({ writable, autoIncrement }) => writable && !autoIncrement);
    setOpen({ id: edits.insert(), ...(first && { field: first.name }) });
  };
  /** Adds a copy of the record, without what the database gives and what only one record can have as its key. */
  const duplicate = async (row: Row) => {
    // The grid may have read only some of the fields.
    const whole = (await tableOf(name).get(keys.map((key) => row[key]))) as Row | null;
    const isCopied = ({ name, writable, autoIncrement, primaryKey }: Field) =>
      writable && !autoIncrement && !(primaryKey && keys.length === 1) && whole?.[name] !== undefined;
    const fields = schema.schema.filter(isCopied).map(({ name }) => [name, { ...row, ...whole, ...edited(row) }[name]]);
    setOpen({ id: edits.insert(Object.fromEntries(fields)) });
  };
  const edited = (row: Row) => edits.byId.value.get(edits.idOf(row))?.data;
  const selected = selection.rows.value.size;
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
      <ToolBar
        database={database}
        table={table}
        schema={schema}
        query={query}
        keys={keys}
        labels={labels}
        setQuery={setQuery}
      >
        {(may.read || may.insert) && (
          <Popup icon="table" label={selected ? texts.rows.selectedLabel(selected) : texts.rows.label} wide>
            {() => (
              <Bulk
                database={database}
                table={table}
                schema={schema}
                query={query}
                edits={edits}
                labels={labels}
                selection={selection}
                may={may}
                onChanged={reload}
              />
            )}
          </Popup>
        )}
        {may.read && keys.length > 0 && (
          <Popup icon="key" label={texts.rows.go} shortcut="g">
            {(close) => (
              <GoTo
                keys={keys}
                read={(key) => tableOf(name).get(key) as Promise<Row | null>}
                onFound={(row) => {
                  close();
                  setOpen({ id: edits.idOf(row), row });
                }}
              />
            )}
          </Popup>
        )}
        {may.read && (
          <Popup icon="download" label={texts.table.export}>
            {() => <ExportPanel database={database} table={table} schema={schema} query={query} />}
          </Popup>
        )}
        {may.insert && schema.kind === "table" && (
          <a class="button" href={to("import", [database, table])}>
            <Icon name="upload" />
            <span>{texts.table.import}</span>
          </a>
        )}
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
              selection={selection}
              query={query}
              may={may}
              setQuery={setQuery}
              onDuplicate={(row) => void duplicate(row).catch(setFault)}
              onFault={setFault}
              opened={open?.id}
              onOpen={(id, row, field) => setOpen({ id, ...(row ? { row } : {}), ...(field ? { field } : {}) })}
            />
            {fault !== null && (
              <p class="fault pad" role="alert">
                {refusalOf(fault)}
              </p>
            )}
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
            onDuplicate={may.insert ? (row) => void duplicate(row).catch(setFault) : undefined}
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
