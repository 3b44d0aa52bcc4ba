// The keys of the project: what they may do, when they end; create and revoke.
import { useState } from "preact/hooks";
import { api, holder, route, to } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Problem, useAttempt, useLoad, useTitle, Warnings } from "../ui";
import { type Column, List, Loaded, ShownOnce, TextField } from "./parts";

const words = texts.keys;
/** Characters of an id that tell keys apart; UUIDv7 begin with the time. */
const ID_SHOWN_CHARS = 18;

interface Key {
  id: string;
  name: string;
  access: "full" | "read" | null;
  role: string | null;
  state: string;
  own: boolean;
  createdAt: string;
  lastUsedAt: string | null;
  expiresAt: string | null;
  createdBy: string | null;
}

export const at = (time: string): string => time.slice(0, 16).replace("T", " ");
/** Entries of one page of a list: the most that the service gives. */
const PAGE_COUNT = 1000;

/** Reads all pages of a list. The cursor of a page is that of the last entry before it. */
export async function everyPage<T>(path: string, cursorOf: (entry: T) => string): Promise<T[]> {
  const entries: T[] = [];
  for (;;) {
    const last = entries.at(-1);
    const after = last === undefined ? "" : `&after=${encodeURIComponent(cursorOf(last))}`;
    const page = await api().request<T[]>("GET", `${path}?limit=${PAGE_COUNT}${after}`);
    entries.push(...page);
    if (page.length < PAGE_COUNT) return entries;
  }
}

export const roleNames = async (): Promise<string[]> =>
  (await everyPage<{ name: string }>("roles", ({ name }) => name)).map(({ name }) => name);

/** Reads a JSON object of claims; undefined for anything else. */
export function claimsOf(text: string): object | undefined {
  try {
    const claims: unknown = JSON.parse(text || "{}");
    return typeof claims === "object" && claims !== null && !Array.isArray(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

const may = ({ role, access }: Key) => (role ? words.role(role) : access);

/** The live keys that a key has created, or keys that it has created, and so on. */
function liveKeysOf(id: string, keys: Key[]): Key[] {
  const made = new Set([id]);
  // The oldest come first, so a creator comes before what it has created.
  for (const key of keys) if (key.createdBy !== null && made.has(key.createdBy)) made.add(key.id);
  return keys.filter((key) => key.id !== id && key.state === "live" && made.has(key.id));
}

export function Keys() {
  const [onlyLive, setOnlyLive] = useState(true);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [error, attempt] = useAttempt();
  const keys = useLoad(() => everyPage<Key>("keys", ({ id }) => id), []);
  useTitle(words.heading);
  const revoke = async ({ id }: Key, withCreated: boolean) => {
    setRevoking(null);
    await attempt(() => api().request("DELETE", `keys/${id}?withCreated=${withCreated}`));
    keys.again();
  };
  const created = revoking === null ? [] : liveKeysOf(revoking.id, keys.value ?? []);
  const called = ({ name, id }: Key) => name || id.slice(0, ID_SHOWN_CHARS);
  const columns: Column<Key>[] = [
    {
      head: words.name,
      isName: true,
      of: ({ name, own }) => (
        <>
          {name || <span class="dim">–</span>} {own && <span class="tag main">{words.own}</span>}
        </>
      ),
    },
    { head: words.access, of: may },
    { head: words.state, of: ({ state }) => words.states[state] ?? state },
    { head: words.createdAt, of: ({ createdAt }) => at(createdAt) },
    { head: words.usedAt, of: ({ lastUsedAt }) => (lastUsedAt ? at(lastUsedAt) : words.never) },
    { head: words.expiresAt, of: ({ expiresAt }) => (expiresAt ? at(expiresAt) : words.never) },
    { head: words.id, of: ({ id }) => <code title={id}>{id.slice(0, ID_SHOWN_CHARS)}…</code> },
    {
      head: "",
      of: (key) =>
        key.state === "live" &&
        !key.own && (
          <Button
            icon="trash"
            bare
            look="danger"
            label={words.revokeLabel(called(key))}
            onClick={() => setRevoking(key)}
          />
        ),
    },
  ];
  return (
    <div class="manage">
      <h1>{words.heading}</h1>
      <Create onCreated={keys.again} />
      <label class="check">
        <input type="checkbox" checked={onlyLive} onChange={(event) => setOnlyLive(event.currentTarget.checked)} />
        {words.onlyLive}
      </label>
      {error !== null && <Problem error={error} />}
      <Loaded load={keys}>
        {(all) => {
          const shown = all.filter(({ state }) => !onlyLive || state === "live").reverse();
          return shown.length === 0 ? (
            <p class="dim pad">{words.none}</p>
          ) : (
            <List
              label={words.heading}
              rows={shown}
              columns={columns}
              keyOf={({ id }) => id}
              isOver={({ state }) => state !== "live"}
            />
          );
        }}
      </Loaded>
      {revoking && (
        <Confirm
          label={words.revoke}
          text={words.confirm(called(revoking))}
          onYes={() => void revoke(revoking, false)}
          onClose={() => setRevoking(null)}
          answers={
            created.length > 0 && (
              <Button look="danger" label={words.revokeAll} onClick={() => void revoke(revoking, true)} />
            )
          }
        >
          {created.length > 0 && (
            <>
              <p>{words.hasCreated}</p>
              <ul>
                {created.map((key) => (
                  <li key={key.id}>
                    {called(key)} ({may(key)})
                  </li>
                ))}
              </ul>
            </>
          )}
        </Confirm>
      )}
    </div>
  );
}

function Create({ onCreated }: { onCreated: () => void }) {
  const asked = route.value.options.get("role");
  const ends = holder.value.endsAt;
  const [name, setName] = useState("");
  const [grant, setGrant] = useState(asked ? `role:${asked}` : "read");
  const [claims, setClaims] = useState("");
  const [expires, setExpires] = useState(ends ? "1h" : "90d");
  const [created, setCreated] = useState<{ key: string; warnings?: string[] } | null>(null);
  const [error, attempt] = useAttempt();
  const [isWrong, setWrong] = useState(false);
  const roles = useLoad(roleNames, []);
  const role = grant.startsWith("role:") ? grant.slice("role:".length) : null;
  const submit = async (event: Event) => {
    event.preventDefault();
    const own = claimsOf(claims);
    setWrong(role !== null && !own);
    if (role !== null && !own) return;
    setCreated(null);
    await attempt(async () => {
      const body = {
        name,
        ...(role === null ? { access: grant } : { role, claims: own }),
        ...(expires ? { expires } : {}),
      };
      setCreated(await api().request("POST", "keys", { body, retries: 0 }));
      setName("");
      onCreated();
    });
  };
  const lifetimes = Object.entries(ends ? { "1h": "1 h", ...words.lifetimes } : words.lifetimes);
  return (
    <>
      <form onSubmit={(event) => void submit(event)}>
        <TextField label={words.name} value={name} placeholder={words.nameHint} maxLength={100} onChange={setName} />
        <label>
          {words.access}
          <select value={grant} onChange={(event) => setGrant(event.currentTarget.value)}>
            {Object.entries(words.accesses).map(([access, text]) => (
              <option key={access} value={access}>
                {text}
              </option>
            ))}
            {roles.value?.map((name) => (
              <option key={name} value={`role:${name}`}>
                {words.role(name)}
              </option>
            ))}
          </select>
        </label>
        {role !== null && (
          <TextField
            label={words.claims}
            isCode
            value={claims}
            placeholder='{"sub": 7}'
            title={words.claimsHint}
            isWrong={isWrong}
            onChange={setClaims}
          />
        )}
        <label>
          {words.lifetime}
          <select value={expires} onChange={(event) => setExpires(event.currentTarget.value)}>
            {lifetimes.map(([time, text]) => (
              <option key={time} value={time}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <Button type="submit" look="main" icon="plus" label={words.create} />
      </form>
      <p class="dim">
        {words.onlyTables} <a href={to("roles")}>{words.writeRole}</a>
      </p>
      {ends && <p class="dim">{words.limited(at(new Date(ends * 1000).toISOString()))}</p>}
      {isWrong && (
        <p class="fault" role="alert">
          {words.notClaims}
        </p>
      )}
      {error !== null && <Problem error={error} />}
      {created && (
        <ShownOnce text={created.key} hint={words.created} copy={words.copy} onDone={() => setCreated(null)}>
          <Warnings of={created.warnings} />
        </ShownOnce>
      )}
    </>
  );
}
