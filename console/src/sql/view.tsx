// Runs SQL: the statement at the cursor, the selection, or all statements one after another.
import { useEffect, useRef, useState } from "preact/hooks";
import { databases, forget, loadDatabases, loadTables, schemaOf, tables } from "../schema";
import { holder, keep, kept, remember, remembered } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Spinner, useTitle } from "../ui";
import { type Editor, openEditor } from "./editor";
import { type Outcome, Outcomes } from "./results";
import { run } from "./run";
import { History, type Past, SavedQueries } from "./saved";
import { limited, losesData, type Statement, split, statementAt } from "./split";

const HISTORY_MAX = 50;
/** Maximum tables whose fields are offered for completion; reading more schemas would take too long. */
const COMPLETED_TABLES_MAX = 80;
/** The limit of a SELECT without one, unless it is switched off. */
const LIMIT_ROWS = 1_000;

type What = "statement" | "all" | "plan";

export default function Sql() {
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const running = useRef<AbortController | null>(null);
  const [progress, setProgress] = useState<{ at: number; of: number } | null>(null);
  const [outcomes, setOutcomes] = useState<{ list: readonly Outcome[]; of: number }>({ list: [], of: 0 });
  /** The statements that wait for the user's word, since they lose data. */
  const [asked, setAsked] = useState<readonly string[] | null>(null);
  const [isLimited, setLimited] = useState(() => remembered("sql:limited", true));
  const [past, setPast] = useState<Past[]>(() => kept("sql:history", []));
  const [database, setDatabase] = useState<string>(() => remembered("sql:database", databases.value?.[0] ?? ""));
  const start = useRef<(what: What) => void>(() => {});

  useTitle(texts.sql.heading);
  useEffect(() => {
    if (!box.current) return;
    editor.current = openEditor(box.current, kept("sql:text", ""), {
      onRun: (isAll) => start.current(isAll ? "all" : "statement"),
      onChange: (text) => keep("sql:text", text),
      mark: (text, position) => {
        const statements = split(text);
        const one = statements.length > 1 ? statementAt(statements, position) : undefined;
        return one && { from: one.begin, to: one.begin + one.text.length };
      },
    });
    editor.current.focus();
    return () => {
      editor.current?.destroy();
      running.current?.abort();
    };
  }, []);
  const list = tables.value[database];
  useEffect(() => {
    const [first] = databases.value ?? [];
    // The remembered database may be dropped.
    if (first && !databases.value?.includes(database)) setDatabase(first);
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

  const chosen = (what: What): Statement[] => {
    const { text, from, to } = editor.current!.state();
    if (from < to && what !== "all") return split(text.slice(from, to));
    const statements = split(text);
    const one = statementAt(statements, to);
    return what === "all" ? statements : one ? [one] : [];
  };
  start.current = (what) => {
    editor.current?.closeCompletion();
    const statements = chosen(what).map(({ text }) => text);
    if (statements.length === 0 || running.current) return;
    if (what === "plan") void runAll([`EXPLAIN ${statements[0]}`], "plan");
    else if (statements.some(losesData)) setAsked(statements);
    else void runAll(statements);
  };
  const runAll = async (statements: readonly string[], what?: "plan") => {
    setAsked(null);
    const control = new AbortController();
    running.current = control;
    setProgress({ at: 1, of: statements.length });
    setOutcomes({ list: [], of: 0 });
    const done: Outcome[] = [];
    for (const text of statements) {
      setProgress({ at: done.length + 1, of: statements.length });
      const short = isLimited && !what ? limited(text, LIMIT_ROWS) : undefined;
      const result = await run(short ?? text, database, control.signal);
      done.push({ text, limit: short === undefined ? undefined : LIMIT_ROWS, result });
      setOutcomes({ list: [...done], of: statements.length });
      if (!what) note(text);
      if (result.kind === "error" || result.kind === "canceled") break;
    }
    running.current = null;
    setProgress(null);
    if (statements.some((text) => /^\s*(create|alter|drop|rename|truncate)\b/i.test(text))) {
      forget();
      void loadDatabases(database);
    }
  };
  const note = (query: string) =>
    setPast((past) => {
      const own = { query, database, at: new Date().toISOString() };
      const next = [own, ...past.filter((one) => one.query !== query)].slice(0, HISTORY_MAX);
      keep("sql:history", next);
      return next;
    });
  const choose = (name: string) => {
    setDatabase(name);
    remember("sql:database", name);
  };
  const show = (query: string) => {
    editor.current?.setText(query);
    editor.current?.focus();
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
        <SavedQueries
          present={() => ({ query: editor.current?.state().text ?? "", database })}
          onChoose={(one) => {
            if (databases.value?.includes(one.database)) choose(one.database);
            show(one.query);
          }}
        />
        <History past={past} onChoose={({ query }) => show(query)} />
      </div>
      <div class="editor" ref={box} />
      <div class="toolbar">
        {progress ? (
          <Button icon="stop" label={texts.sql.cancel} onClick={() => running.current?.abort()} />
        ) : (
          <Button icon="play" look="main" label={texts.sql.run} onClick={() => start.current("statement")} />
        )}
        <Button label={texts.sql.runAll} onClick={() => start.current("all")} disabled={progress !== null} />
        <Button label={texts.sql.explain} onClick={() => start.current("plan")} disabled={progress !== null} />
        <label class="check">
          <input
            type="checkbox"
            checked={isLimited}
            onChange={({ currentTarget: { checked } }) => {
              setLimited(checked);
              remember("sql:limited", checked);
            }}
          />
          {texts.sql.limit(LIMIT_ROWS)}
        </label>
        <span class="dim small keys">{texts.sql.hint}</span>
      </div>
      <div class="result">
        {progress && <Spinner label={texts.sql.progress(progress.at, progress.of)} />}
        <Outcomes key={outcomes.of === 0 ? "none" : "some"} {...outcomes} />
      </div>
      {asked && <Ask statements={asked} onYes={() => void runAll(asked)} onClose={() => setAsked(null)} />}
    </div>
  );
}

interface AskProps {
  statements: readonly string[];
  onYes: () => void;
  onClose: () => void;
}

function Ask({ statements, onYes, onClose }: AskProps) {
  const losing = statements.filter(losesData);
  const [only = ""] = losing;
  // Such a statement need not concern all records of one table.
  const isOther = losing.length > 1 || /\b(limit|join|using)\b/i.test(only);
  const [, first = ""] = /^(\w+)/.exec(only) ?? [];
  const [text, yes] = (!isOther && texts.sql.asked[first.toUpperCase()]) || texts.sql.askedOther;
  return (
    <Confirm label={texts.sql.ask} text={text} yes={yes} onYes={onYes} onClose={onClose}>
      <pre class="code wire" tabIndex={0}>
        {losing.join(";\n\n")}
      </pre>
    </Confirm>
  );
}
