// The views, triggers, routines and events of a database, shown and edited as text.
import type { DatabaseObjects } from "@selkie/client";
import { useEffect, useRef, useState } from "preact/hooks";
import { Loaded } from "../manage/parts";
import { api, holder, keep, kept, route, to } from "../session";
import { loadTables, schemaChanged, schemaChanges } from "../schema";
import { openEditor } from "../sql/editor";
import { run } from "../sql/run";
import { Button, Confirm, Icon, Problem, Spinner, useAttempt, useLoad, useTitle } from "../ui";
import { words } from "./words";

const own = words.code;

type CodeKind = keyof typeof own.kinds;
const KINDS = Object.keys(own.kinds) as CodeKind[];

/** What a new one begins as. */
const TEMPLATES: Record<CodeKind, string> = {
  view: "CREATE VIEW `new_view` AS\nSELECT * FROM `a_table`",
  trigger: "CREATE TRIGGER `new_trigger` BEFORE INSERT ON `a_table`\nFOR EACH ROW\nSET NEW.`a_column` = 1",
  function: "CREATE FUNCTION `new_function`(n INT) RETURNS INT DETERMINISTIC\nRETURN n + 1",
  procedure: "CREATE PROCEDURE `new_procedure`(IN n INT)\nBEGIN\n  SELECT n + 1;\nEND",
  event: "CREATE EVENT `new_event` ON SCHEDULE EVERY 1 DAY\nDO DELETE FROM `a_table` WHERE `a_column` < NOW()",
};

interface Named {
  name: string;
  note?: string;
}

function listed({ views, triggers, routines, events }: DatabaseObjects): Record<CodeKind, Named[]> {
  return {
    view: views,
    trigger: triggers.map(({ name, table }) => ({ name, note: own.on(table) })),
    function: routines.filter(({ kind }) => kind === "function"),
    procedure: routines.filter(({ kind }) => kind === "procedure"),
    event: events.map(({ name, enabled }) => (enabled ? { name } : { name, note: own.disabled })),
  };
}

const names = async (database: string, kind: CodeKind): Promise<Named[]> =>
  listed(await api().schema.database(database))[kind];

const quoted = (name: string) => `\`${name.replaceAll("`", "``")}\``;

/** Runs a statement, and returns the rows of its result. Throws what the service refuses. */
async function execute(statement: string, database: string): Promise<Record<string, unknown>[]> {
  const result = await run(statement, database, new AbortController().signal);
  if (result.kind === "error") throw result.error;
  return result.kind === "rows" ? (result.sets[0] ?? []) : [];
}

/** Returns the statement that makes it anew; null if MariaDB doesn't show it. */
async function definition(database: string, kind: CodeKind, name: string): Promise<string | null> {
  const [row = {}] = await execute(`SHOW CREATE ${kind.toUpperCase()} ${quoted(database)}.${quoted(name)}`, database);
  const [, text] = Object.entries(row).find(([column]) => /^(create |sql original)/i.test(column)) ?? [];
  return typeof text === "string" ? text.replace(/^CREATE (?!OR REPLACE )/, "CREATE OR REPLACE ") : null;
}

export default function Code() {
  const [database = "", kind = "", name] = route.value.parts;
  const objects = useLoad(() => api().schema.database(database), [database, schemaChanges.value]);
  const created = useRef<string | undefined>(undefined);
  useTitle(own.heading(database));
  if (holder.value.access !== "full") return <p class="pad">{words.full}</p>;
  const chosen = KINDS.find((one) => one === kind);
  return (
    <div class="manage">
      <h1>{own.heading(database)}</h1>
      <div class="role">
        <nav aria-label={own.heading(database)}>
          <Loaded load={objects}>
            {(found) => (
              <>
                {KINDS.map((one) => (
                  <section key={one} class="code-kind">
                    <h2>{own.kinds[one]}</h2>
                    <ul>
                      {listed(found)[one].map(({ name: called, note }) => (
                        <li key={called}>
                          <a
                            class="side-link"
                            href={to("code", [database, one, called])}
                            aria-current={one === kind && called === name ? "page" : undefined}
                          >
                            <Icon name={one === "view" ? "view" : "code"} />
                            <span class="cut">{called}</span>
                            {note && <span class="dim small">{note}</span>}
                          </a>
                        </li>
                      ))}
                      <li>
                        <a
                          class="side-link"
                          href={to("code", [database, one])}
                          aria-current={one === kind && name === undefined ? "page" : undefined}
                        >
                          <Icon name="plus" /> {own.add(own.one[one])}
                        </a>
                      </li>
                    </ul>
                  </section>
                ))}
              </>
            )}
          </Loaded>
        </nav>
        {chosen && <One key={`${chosen} ${name}`} database={database} kind={chosen} name={name} created={created} />}
      </div>
    </div>
  );
}

interface OneProps {
  database: string;
  kind: CodeKind;
  /** Undefined for a new one. */
  name: string | undefined;
  /** The name of the one that was created last, until it is shown. */
  created: { current: string | undefined };
}

function One(props: OneProps) {
  const { database, kind, name } = props;
  const load = useLoad(
    async () => (name === undefined ? TEMPLATES[kind] : await definition(database, kind, name)),
    [database, kind, name],
  );
  return <Loaded load={load}>{(text) => <Text {...props} text={text} />}</Loaded>;
}

function Text({ database, kind, name, created, text }: OneProps & { text: string | null }) {
  const keptAs = `code:${database}.${kind}.${name ?? ""}`;
  const box = useRef<HTMLDivElement>(null);
  const [wanted, setWanted] = useState(() => kept(keptAs, text ?? ""));
  const [error, attempt] = useAttempt();
  const [isBusy, setBusy] = useState(false);
  const [isDropping, setDropping] = useState(false);
  const [done, setDone] = useState(name !== undefined && created.current === name ? own.created : "");
  created.current = undefined;
  const save = useRef(() => {});
  useEffect(() => {
    if (!box.current) return;
    const editor = openEditor(box.current, wanted, {
      onRun: () => save.current(),
      onChange: (next) => {
        setWanted(next);
        setDone("");
        keep(keptAs, next === text ? undefined : next);
      },
    });
    return () => editor.destroy();
  }, []);
  const change = async (statement: string) => {
    setBusy(true);
    setDone("");
    try {
      await execute(statement, database);
    } finally {
      setBusy(false);
    }
    keep(keptAs, undefined);
    await loadTables(database).catch(() => undefined);
    schemaChanged();
  };
  save.current = () =>
    void attempt(async () => {
      const before = new Set((await names(database, kind)).map(({ name }) => name));
      await change(wanted);
      setDone(own.saved);
      const added = name === undefined && (await names(database, kind)).find(({ name }) => !before.has(name));
      if (!added) return;
      created.current = added.name;
      location.hash = to("code", [database, kind, added.name]);
    });
  const drop = `DROP ${kind.toUpperCase()} ${quoted(database)}.${quoted(name ?? "")}`;
  return (
    <div class="stack code-text">
      <h2>{name === undefined ? own.add(own.one[kind]) : own.called(own.one[kind], name)}</h2>
      {text === null && <p class="notice">{own.hidden}</p>}
      <div class="editor" ref={box} />
      {/\bDEFINER\s*=/i.test(wanted) && <p class="dim">{own.definer}</p>}
      {error !== null && <Problem error={error} />}
      <div class="row">
        <Button look="main" label={own.save} disabled={isBusy} onClick={() => save.current()} />
        {name !== undefined && (
          <Button icon="trash" look="danger" label={own.drop(own.one[kind])} onClick={() => setDropping(true)} />
        )}
        {kind === "view" && name !== undefined && (
          <a class="button" href={to("data", [database, name])}>
            <Icon name="table" />
            {words.records}
          </a>
        )}
        <span class="note" role="status">
          {done}
        </span>
      </div>
      {isBusy && <Spinner label={words.change.busy} />}
      {isDropping && (
        <Confirm
          label={own.drop(own.one[kind])}
          text={own.confirm(own.one[kind], name ?? "")}
          onYes={() => {
            setDropping(false);
            void attempt(async () => {
              await change(drop);
              location.hash = to("code", [database]);
            });
          }}
          onClose={() => setDropping(false)}
        >
          <pre class="code wire" tabIndex={0}>
            {drop}
          </pre>
        </Confirm>
      )}
    </div>
  );
}
