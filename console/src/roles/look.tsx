// What a key of a role with some claims sees and may do: read with such a key, which lives for the test only.
import { useEffect, useRef, useState } from "preact/hooks";
import type { TableSchema } from "@selkie/client";
import { type Column, List } from "../manage/parts";
import { claimsOf } from "../manage/keys";
import { api, beginTest, clientOf, holder, to } from "../session";
import { marked } from "../exact";
import { texts } from "../texts";
import { Button, Problem, useAttempt } from "../ui";
import { jsonText, label } from "../values";
import { claimsIn, type Members } from "./file";

const words = texts.roles;
const TEST_SECONDS = 15 * 60;
const SHOWN_RECORDS = 5;

interface Seen {
  name: string;
  methods: string[];
}

interface Looked {
  name: string;
  schema: TableSchema;
  rows: Record<string, unknown>[];
  count: number;
}

interface TestKey {
  id: string;
  key: string;
}

/** Returns the value that a claim's input stands for: JSON, or else the text itself. */
function claimValue(text: string): unknown {
  try {
    return JSON.parse(marked(text));
  } catch {
    return text;
  }
}

export function Test({ name, role, isSaved }: { name: string; role: Members | null; isSaved: boolean }) {
  const [claims, setClaims] = useState("");
  const [isWrong, setWrong] = useState(false);
  const [seen, setSeen] = useState<Seen[] | null>(null);
  const [table, setTable] = useState<Looked | null>(null);
  const [error, attempt] = useAttempt();
  const own = useRef<TestKey | null>(null);
  const revoke = () => {
    // Not awaited: if it fails, the key ends soon.
    if (own.current)
      void api()
        .request("DELETE", `keys/${own.current.id}`)
        .catch(() => undefined);
    own.current = null;
  };
  useEffect(() => revoke, []);
  const change = (text: string) => {
    setClaims(text);
    setSeen(null);
    setTable(null);
    revoke();
  };
  const chosen = (claimsOf(claims) ?? {}) as Members;
  const choose = (claim: string, text: string) => {
    const { [claim]: _, ...others } = chosen;
    change(jsonText(text === "" ? others : { ...others, [claim]: claimValue(text) }));
  };
  const create = async (): Promise<TestKey> => {
    // A key lives no longer than what creates it.
    const left = (holder.value.endsAt ?? Infinity) - Math.ceil(Date.now() / 1000) - 1;
    const expires = `${Math.min(TEST_SECONDS, left)}s`;
    const body = { role: name, claims: chosen, name: `test of ${name}`, expires };
    return api().request<TestKey>("POST", "keys", { body, retries: 0 });
  };
  const withClaims = (work: () => Promise<void>) => {
    const areClaims = claimsOf(claims) !== undefined;
    setWrong(!areClaims);
    if (areClaims) void attempt(work);
  };
  const client = async () => {
    own.current ??= await create();
    return clientOf(own.current.key);
  };
  const look = () =>
    withClaims(async () => {
      setTable(null);
      const test = await client();
      const list = await test.request<{ name: string }[]>("GET", "crud");
      const found = await Promise.all(
        list.map(async ({ name: database }) => {
          const entries = await test.request<Seen[]>("GET", `crud/${encodeURIComponent(database)}`);
          return entries.map(({ name, methods }) => ({ name: `${database}.${name}`, methods }));
        }),
      );
      setSeen(found.flat());
    });
  const show = (table: string) =>
    attempt(async () => {
      setTable(null);
      const of = (await client()).table(table as `${string}.${string}`);
      const schema = await of.schema();
      const mayRead = schema.methods.includes("GET");
      const [rows, count] = mayRead ? await Promise.all([of.list({ limit: SHOWN_RECORDS }), of.count()]) : [[], 0];
      setTable({ name: table, schema, rows: rows as Record<string, unknown>[], count });
    });
  return (
    <section class="stack test">
      <h2>{words.test}</h2>
      <p class="dim">{isSaved ? words.testHint : words.testSaved}</p>
      <div class="row claims">
        {role &&
          claimsIn(role).map((claim) => (
            <label key={claim}>
              {words.claimValue(claim)}
              <input
                value={chosen[claim] === undefined ? "" : label(chosen[claim])}
                onInput={(event) => choose(claim, event.currentTarget.value)}
              />
            </label>
          ))}
        <label class="grow">
          {words.claims}
          <input
            class="mono"
            value={claims}
            placeholder='{"sub": 7}'
            aria-invalid={isWrong || undefined}
            onInput={(event) => change(event.currentTarget.value)}
          />
        </label>
      </div>
      <div class="row">
        <Button icon="view" label={words.look} disabled={!isSaved} onClick={look} />
        <Button
          icon="key"
          label={words.console}
          disabled={!isSaved}
          onClick={() =>
            withClaims(async () => {
              const { key } = own.current ?? (await create());
              // It is revoked when the test ends, not with this page.
              own.current = null;
              beginTest(key);
            })
          }
        />
        <a href={to("keys", [], { role: name })}>{words.keys}</a>
      </div>
      {isWrong && (
        <p class="fault" role="alert">
          {texts.keys.notClaims}
        </p>
      )}
      {error !== null && <Problem error={error} />}
      {seen && <SeenTables seen={seen} onShow={(name) => void show(name)} />}
      {table && <OneTable table={table} />}
    </section>
  );
}

function SeenTables({ seen, onShow }: { seen: Seen[]; onShow: (table: string) => void }) {
  if (seen.length === 0) return <p role="status">{words.seesNothing}</p>;
  const METHODS = { read: "GET", insert: "POST", update: "PUT", delete: "DELETE" };
  const columns: Column<Seen>[] = [
    {
      head: words.table,
      isName: true,
      of: ({ name }) => (
        <button type="button" class="link" aria-label={words.show(name)} onClick={() => onShow(name)}>
          {name}
        </button>
      ),
    },
    ...Object.entries(METHODS).map(([action, method]) => ({
      head: words.actions[action]!,
      of: ({ methods }: Seen) =>
        methods.includes(method) ? texts.structure.yes : <span class="dim">{texts.structure.no}</span>,
    })),
  ];
  return <List label={words.sees} class="seen" rows={seen} columns={columns} keyOf={({ name }) => name} />;
}

function OneTable({ table: { name, schema, rows, count } }: { table: Looked }) {
  const read = Object.keys(rows[0] ?? {});
  const fields = schema.schema.map((field) => field.name);
  const columns = (read.length > 0 ? read : fields).map((field) => {
    const isWritable = schema.schema.find((one) => one.name === field)?.writable;
    return {
      head: isWritable ? `${field} (${words.mayWrite})` : field,
      of: (row: Record<string, unknown>) =>
        row[field] === null ? <span class="dim">NULL</span> : label(row[field]).slice(0, 80),
    };
  });
  const mayRead = schema.methods.includes("GET");
  return (
    <section class="stack">
      <h3>{name}</h3>
      <p role="status">{mayRead ? words.first(rows.length, count) : texts.table.noRead}</p>
      <List label={words.records} class="looked" rows={rows} columns={columns} keyOf={(row) => JSON.stringify(row)} />
    </section>
  );
}
