// The panel that exports the records that the grid shows.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Schema } from "../schema";
import type { Query } from "../table/query";
import { listOptions } from "../table/query";
import { Button, Problem } from "../ui";
import { sizeOf } from "../values";
import { type ExportForm, exportTo } from "./export";
import { words } from "./words";

export function ExportPanel({
  database,
  table,
  schema,
  query,
}: {
  database: string;
  table: string;
  schema: Schema;
  query: Query;
}) {
  const [form, setForm] = useState<ExportForm>("csv");
  const [bytes, setBytes] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const [done, setDone] = useState<{ isPart: boolean } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const control = useRef<AbortController | null>(null);
  useEffect(() => () => control.current?.abort(), []);
  const run = async () => {
    const own = new AbortController();
    control.current = own;
    const visible = query.columns ?? schema.schema.filter(({ invisible }) => !invisible).map(({ name }) => name);
    const fields = schema.schema.filter(({ name }) => visible.includes(name));
    setBusy(true);
    setBytes(0);
    setDone(null);
    setError(null);
    try {
      const options = listOptions({ ...query, columns: null }, []);
      setDone((await exportTo({ database, table, fields, options }, form, setBytes, own.signal)) ?? null);
    } catch (failed) {
      if (!own.signal.aborted) setError(failed);
    }
    setBusy(false);
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
    >
      <fieldset>
        <legend>{words.export}</legend>
        {Object.entries(words.exports).map(([name, label]) => (
          <label class="check" key={name}>
            <input
              type="radio"
              name="export-form"
              checked={form === name}
              onChange={() => setForm(name as ExportForm)}
            />
            {label}
          </label>
        ))}
      </fieldset>
      <p class="dim">{words.scope}</p>
      {error !== null && <Problem error={error} />}
      <p role="status">
        {isBusy ? words.saving(sizeOf(bytes)) : done ? words.saved(sizeOf(bytes)) : ""}
        {done?.isPart && <strong class="block">{words.limited}</strong>}
      </p>
      <div class="row">
        <Button type="submit" look="main" icon="download" label={words.save} disabled={isBusy} />
        {isBusy && <Button label={words.cancel} onClick={() => control.current?.abort()} />}
      </div>
    </form>
  );
}
