// Runs an import, and shows how far it is and what was refused.
import { useEffect, useRef, useState } from "preact/hooks";
import { ChangeDialog } from "../design/change";
import { type Column, List } from "../manage/parts";
import { to } from "../session";
import { Button, Icon, Problem } from "../ui";
import { save } from "../values";
import { csvLine, type Reading, readFault, rowsOf } from "./read";
import { Import, type Imported, type Refusal, type Target } from "./send";
import { words } from "./words";

const SHOWN_REFUSALS = 100;

interface State extends Imported {
  bytes: number;
  /** An error for which the import waits, and what the user says to it. */
  trouble?: { error: unknown; answer: (goesOn: boolean) => void };
  end?: "done" | "stopped" | { error: unknown };
}

const columns: Column<Refusal>[] = [
  { head: words.line, of: ({ line }) => line, class: "right" },
  { head: words.reason, of: ({ message }) => message, class: "reason" },
  { head: words.row, of: ({ row }) => <code>{typeof row === "string" ? row : csvLine(row)}</code>, class: "reason" },
];

interface Props {
  file: File;
  reading: Reading;
  target: Target;
  /** Called when the table that the import had made is gone. */
  onAgain: () => void;
}

export function Run({ file, reading, target, onAgain }: Props) {
  const [isRemoving, setRemoving] = useState(false);
  const [state, setState] = useState<State>({ bytes: 0, imported: 0, unchanged: 0, refused: 0 });
  const refusals = useRef<Refusal[]>([]);
  const stop = useRef(false);
  const patch = (part: Partial<State>) => setState((last) => ({ ...last, ...part }));
  const run = async () => {
    let bytes = 0;
    const rows = rowsOf(file, reading, (count) => (bytes += count));
    // The first row names the columns.
    if (reading.form === "csv") await rows.next();
    const done: Imported = { imported: 0, unchanged: 0, refused: 0 };
    const work = new Import(target, {
      onProgress: (imported) => patch({ ...Object.assign(done, imported), bytes }),
      onRefused: (refusal) => refusals.current.push(refusal),
      onTrouble: (error) =>
        new Promise((resolve) =>
          patch({
            trouble: {
              error,
              answer: (goesOn) => {
                setState(({ trouble: _, ...last }) => last);
                resolve(goesOn);
              },
            },
          }),
        ),
      isStopped: () => stop.current,
    });
    const isDone = await work.run(rows);
    patch({ refused: refusals.current.length, end: isDone ? "done" : "stopped" });
  };
  useEffect(() => {
    run().catch((error: unknown) => patch({ end: { error: readFault(error) }, refused: refusals.current.length }));
    return () => {
      stop.current = true;
    };
  }, []);
  const { imported, unchanged, refused, bytes, trouble, end } = state;
  // Rows that can't be read are refused at once, earlier rows of the same request later.
  const list = refusals.current.sort((one, other) => one.line - other.line);
  const download = () => {
    if (reading.form === "ndjson") {
      const lines = list.map((one) => `${JSON.stringify(one)}\n`);
      return save(`${file.name}.rejected.ndjson`, lines.join(""), "application/x-ndjson");
    }
    const lines = list.map(({ line, message, row }) => [...row, String(line), message]);
    lines.unshift([...target.columns, words.line, words.reason]);
    save(`${file.name}.rejected.csv`, lines.map((cells) => `${csvLine(cells)}\n`).join(""), "text/csv");
  };
  return (
    <section class="stack">
      {!end && (
        <div class="row">
          <progress aria-label={words.label} value={bytes} max={file.size} />
          <span role="status">{words.progress(imported, refused)}</span>
          {!trouble && <Button icon="stop" label={words.stop} onClick={() => (stop.current = true)} />}
        </div>
      )}
      {trouble && (
        <>
          <Problem error={trouble.error} />
          <p>{words.paused}</p>
          <div class="row">
            <Button look="main" label={words.goOn} onClick={() => trouble.answer(true)} />
            <Button label={words.stop} onClick={() => trouble.answer(false)} />
          </div>
        </>
      )}
      {typeof end === "object" && <Problem error={end.error} />}
      {end && (
        <div class="row">
          <p role="status">
            {end === "done"
              ? words.done(imported, unchanged, refused)
              : `${words.stopped} ${words.progress(imported, refused)}`}
          </p>
          <a class="button" href={to("data", [target.database, target.table])}>
            <Icon name="table" />
            {words.records}
          </a>
          {target.isNew && imported === 0 && (
            <Button icon="undo" label={words.removeAndRetry} onClick={() => setRemoving(true)} />
          )}
        </div>
      )}
      {isRemoving && (
        <ChangeDialog
          heading={words.removeNew}
          database={target.database}
          table={target.table}
          change={{ drop: true }}
          losses={() => []}
          onDone={onAgain}
          onClose={() => setRemoving(false)}
        />
      )}
      {list.length > 0 && (
        <>
          <h2>{words.refused}</h2>
          <List
            label={words.refused}
            rows={list.slice(0, SHOWN_REFUSALS)}
            columns={columns}
            keyOf={({ line }) => line}
            class="refused"
          />
          <p class="dim">{words.refusedShown(list.length, SHOWN_REFUSALS)}</p>
          <div class="row">
            <Button icon="download" label={words.download} disabled={!end} onClick={download} />
          </div>
        </>
      )}
    </section>
  );
}
