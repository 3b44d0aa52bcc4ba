// Edits a table, or describes a new one, and leads to the change that makes it so.
import type { TableDefinition } from "@selkie/client";
import { useState } from "preact/hooks";
import { Loaded, TextField } from "../manage/parts";
import { api, holder, keep, kept, route, to } from "../session";
import { Button, Icon, useLoad, useTitle } from "../ui";
import { type Change, ChangeDialog } from "./change";
import { Columns } from "./columns";
import { alterationOf, type Draft, draftOf, newDraft, newTableOf } from "./draft";
import { ForeignKeys } from "./foreign-keys";
import { Indexes } from "./indexes";
import { Mentions } from "./mentions";
import { words } from "./words";

const own = words.change;

/** What the tab keeps of the edits. `create` is the table's definition when they began. */
interface Kept {
  create: string;
  draft: Draft;
}

/** The page for a new table, `#/create/<database>`. */
export default function Create() {
  const [database = ""] = route.value.parts;
  useTitle(words.create);
  if (holder.value.access !== "full") return <p class="pad">{words.full}</p>;
  return (
    <div class="table-view">
      <div class="head">
        <h1>
          <span class="dim">{database} / </span>
          {words.create}
        </h1>
        <a href={to("import", [database])}>
          <Icon name="upload" /> {words.fromFile}
        </a>
      </div>
      <Editor key={database} database={database} table="" made={null} />
    </div>
  );
}

/** The tab of a table, `#/edit/<database>/<table>`. */
export function Edit() {
  const [database = "", table = ""] = route.value.parts;
  const load = useLoad(() => api().schema.table(`${database}.${table}`), [database, table]);
  if (holder.value.access !== "full") return <p class="pad">{words.full}</p>;
  return (
    <Loaded load={load}>
      {(made) =>
        made.kind === "view" ? (
          <p class="pad">
            <a href={to("code", [database, "view", table])}>{words.asText}</a>
          </p>
        ) : (
          <Editor database={database} table={table} made={made} />
        )
      }
    </Loaded>
  );
}

function Editor({ database, table, made }: { database: string; table: string; made: TableDefinition | null }) {
  const keptAs = `design:${database}.${table}`;
  const present = made ? draftOf(table, made) : newDraft();
  // A new record changes the next number too.
  const create = made?.create.replace(/ AUTO_INCREMENT=\d+/, "") ?? "";
  const [begun] = useState(() => kept<Kept | null>(keptAs, null));
  const [draft, setDraft] = useState(begun?.draft ?? present);
  const [isStale, setStale] = useState(begun !== null && begun.create !== create);
  const [change, setChange] = useState<Change | null>(null);
  const edit = (part: Partial<Draft>) => {
    const next = { ...draft, ...part };
    setDraft(next);
    keep(keptAs, { create, draft: next });
  };
  const reset = () => {
    setDraft(present);
    setStale(false);
    keep(keptAs, undefined);
  };
  const alteration = made && alterationOf(draft, table, made);
  const isChanged = alteration === null || Object.keys(alteration).length > 0;
  const name = draft.name.trim();
  const review = (event: Event) => {
    event.preventDefault();
    setChange(alteration ? { alter: alteration } : { create: newTableOf(draft) });
  };
  const done = () => {
    setChange(null);
    keep(keptAs, undefined);
    location.hash = to("structure", [database, name]);
  };
  const converted = (alteration?.changeColumns ?? []).filter(
    ({ column, type }) => made?.columns.find(({ name }) => name === column)?.type !== type,
  );
  const renamed = (alteration?.changeColumns ?? []).flatMap(({ column, name }) => (name === column ? [] : [column]));
  const dropped = alteration?.dropColumns ?? [];
  return (
    <>
      <form class="design" onSubmit={review}>
        <div class="structure">
          {isStale && (
            <p class="notice danger" role="alert">
              {own.unread}
            </p>
          )}
          <div class="row">
            <TextField
              label={words.name}
              value={draft.name}
              required
              maxLength={64}
              isCode
              onChange={(name) => edit({ name })}
            />
            <TextField
              label={words.comment}
              value={draft.comment}
              class="grow"
              onChange={(comment) => edit({ comment })}
            />
          </div>
          <Columns draft={draft} onChange={edit} />
          <Indexes draft={draft} made={made} onChange={edit} />
          <ForeignKeys database={database} draft={draft} made={made} onChange={edit} />
        </div>
        <div class="row save">
          <Button type="submit" look="main" label={own.review} disabled={!isChanged || isStale} />
          <Button label={own.reset} onClick={reset} disabled={!isChanged && !isStale} />
          <span class="dim" role="status">
            {isChanged ? "" : own.nothing}
          </span>
        </div>
      </form>
      {change && (
        <ChangeDialog
          heading={made ? own.heading : own.createHeading}
          database={database}
          table={made ? table : name}
          change={change}
          losses={() => (dropped.length > 0 ? [own.losesColumns(dropped.join(", "))] : [])}
          notes={converted.length > 0 ? [own.converts(converted.map(({ column }) => column).join(", "))] : []}
          onDone={done}
          onClose={() => setChange(null)}
        >
          <Mentions database={database} table={table} columns={[...renamed, ...dropped]} />
        </ChangeDialog>
      )}
    </>
  );
}
