// Shows a change of a table as SQL, with what it costs, and runs it when the user has confirmed it.
import { type Alteration, isSelkieError, type NewTable, type SchemaChange, type SchemaOptions } from "@selkie/client";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { TextField } from "../manage/parts";
import { api, keep } from "../session";
import { forget, loadTables, schemaChanged } from "../schema";
import { KEPT_EDITS, noteUnsaved } from "../table/unsaved";
import { Button, Dialog, Problem, Spinner, useLoad } from "../ui";
import { words } from "./words";

const own = words.change;
/** MariaDB's errors for an algorithm or a lock that it can't use for the change. */
const OTHER_WAY = [1845, 1846];

export type Change = { create: NewTable } | { alter: Alteration } | { truncate: true } | { drop: true };

/** Replaces a path such as `alter.addColumns[0].` in a message by the column's name. */
function withName(message: string, change: Change): string {
  const lists: Record<string, { name?: string }[]> = Object.assign({}, ...Object.values(change));
  return message.replace(/^\w+\.(\w*[cC]olumns)\[(\d+)\]\.?/, (place, list, at) => {
    const name = lists[list]?.[Number(at)]?.name;
    return name ? own.column(name) : place;
  });
}

async function send(name: string, change: Change, options: SchemaOptions): Promise<SchemaChange> {
  const { schema } = api();
  // A change takes as long as the service lets it; a request that failed is not repeated unseen.
  const call = { timeout: 0, retries: 0, ...options };
  try {
    if ("create" in change) return await schema.create(name, change.create, call);
    if ("alter" in change) return await schema.alter(name, change.alter, call);
    return await ("truncate" in change ? schema.truncate(name, call) : schema.drop(name, call));
  } catch (refused) {
    if (isSelkieError(refused)) refused.message = withName(refused.message, change);
    throw refused;
  }
}

/** Drops the edits of a table that is gone, and reads the tables again. */
async function afterwards(database: string, table: string, change: Change): Promise<void> {
  if ("drop" in change || ("alter" in change && change.alter.rename)) {
    keep(`${KEPT_EDITS}${database}.${table}`, undefined);
    noteUnsaved(`${database}.${table}`, 0);
  }
  // The change is made, even if the tables can't be listed now.
  await loadTables(database).catch(() => undefined);
}

export function ChangeDialog({
  heading,
  database,
  table,
  change,
  losses,
  notes = [],
  onDone,
  onClose,
  children,
}: {
  heading: string;
  database: string;
  table: string;
  change: Change;
  /** What is lost, for which the user must type the table's name. */
  losses: (cost: SchemaChange) => string[];
  notes?: string[];
  onDone: () => void;
  onClose: () => void;
  /** What else is to be known of the change. */
  children?: ComponentChildren;
}) {
  const name = `${database}.${table}`;
  const cost = useLoad(() => send(name, change, { dryRun: true }), []);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [made, setMade] = useState<SchemaChange | null>(null);
  const control = useRef<AbortController | null>(null);
  useEffect(() => () => control.current?.abort(), []);
  const finish = () => {
    onDone();
    schemaChanged();
  };
  const run = async (accepted: Partial<Alteration>) => {
    control.current = new AbortController();
    const { signal } = control.current;
    setError(null);
    setBusy(true);
    try {
      const own = "alter" in change ? { alter: { ...change.alter, ...accepted } } : change;
      const answer = await send(name, own, { signal });
      await afterwards(database, table, change);
      if (answer.warnings.length === 0) finish();
      else setMade(answer);
    } catch (refused) {
      forget();
      setError(signal.aborted ? new Error(own.canceled) : refused);
    }
    setBusy(false);
  };
  const lost = cost.value ? losses(cost.value) : [];
  const isConfirmed = lost.length === 0 || typed === table;
  const isOtherWay = isSelkieError(error) && OTHER_WAY.includes(Number(error.details?.errno));
  const submit = (event: Event) => {
    event.preventDefault();
    // The cost that was shown is the most that is accepted.
    if (cost.value && isConfirmed) void run(cost.value.algorithm ? { algorithm: cost.value.algorithm } : {});
  };
  if (made)
    return (
      <Dialog label={heading} onClose={finish}>
        <div class="stack change">
          <p role="status">{own.done}</p>
          {made.warnings.map(({ message }) => (
            <p class="notice" key={message}>
              {message}
            </p>
          ))}
          <div class="row">
            <Button look="main" label={own.close} onClick={finish} />
          </div>
        </div>
      </Dialog>
    );
  return (
    <Dialog label={heading} onClose={onClose}>
      <form class="stack change" onSubmit={submit}>
        <h2>{heading}</h2>
        {cost.error ? (
          <Problem error={cost.error} again={cost.again} />
        ) : cost.value ? (
          <Cost cost={cost.value} />
        ) : (
          <Spinner label={own.reading} />
        )}
        {notes.map((note) => (
          <p class="notice" key={note}>
            {note}
          </p>
        ))}
        {children}
        {lost.map((loss) => (
          <p class="notice danger" key={loss}>
            {loss}
          </p>
        ))}
        {lost.length > 0 && <TextField label={own.type(table)} value={typed} isCode onChange={setTyped} />}
        {error !== null && <Problem error={error} />}
        {isBusy && <Spinner label={own.busy} />}
        <div class="row">
          {cost.value && !isBusy && (
            <Button
              type="submit"
              look={lost.length > 0 ? "danger" : "main"}
              label={lost.length > 0 ? heading : own.yes}
              disabled={!isConfirmed}
            />
          )}
          {isOtherWay && !isBusy && <Button label={own.anyway} onClick={() => void run({})} />}
          <Button label={own.cancel} onClick={() => (isBusy ? control.current?.abort() : onClose())} />
        </div>
      </form>
    </Dialog>
  );
}

const Cost = ({ cost: { sql, algorithm, lock, rows, bytes, warnings } }: { cost: SchemaChange }) => (
  <>
    <pre class="code wire" tabIndex={0}>
      {sql}
    </pre>
    {algorithm && <p>{words.algorithms[algorithm](rows, bytes)}</p>}
    {lock && <p>{words.locks[lock]}</p>}
    {warnings.map(({ message }) => (
      <p class="notice" key={message}>
        {message}
      </p>
    ))}
  </>
);
