// The keys of the project: what they may do, when they end; create and revoke.
import { useState } from "preact/hooks";
import { api, holder, route } from "../session";
import { texts } from "../texts";
import { Button, Copy, Dialog, Problem, Spinner, useLoad, useTitle, Warnings } from "../ui";

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
  const [error, setError] = useState<unknown>(null);
  const keys = useLoad(() => everyPage<Key>("keys", ({ id }) => id), []);
  useTitle(words.heading);
  if (holder.value.access !== "full") return <p class="pad">{words.full}</p>;
  const revoke = async ({ id }: Key, withCreated: boolean) => {
    setRevoking(null);
    setError(null);
    await api().request("DELETE", `keys/${id}?withCreated=${withCreated}`).catch(setError);
    keys.again();
  };
  const created = revoking === null ? [] : liveKeysOf(revoking.id, keys.value ?? []);
  const called = ({ name, id }: Key) => name || id.slice(0, ID_SHOWN_CHARS);
  const shown = keys.value?.filter(({ state }) => !onlyLive || state === "live").reverse();
  return (
    <div class="manage">
      <h1>{words.heading}</h1>
      <Create onCreated={keys.again} />
      <label class="check">
        <input type="checkbox" checked={onlyLive} onChange={(event) => setOnlyLive(event.currentTarget.checked)} />
        {words.onlyLive}
      </label>
      {error !== null && <Problem error={error} />}
      {keys.error ? (
        <Problem error={keys.error} again={keys.again} />
      ) : !shown ? (
        <Spinner label={texts.table.loading} />
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={words.heading}>
          <table class="list">
            <thead>
              <tr>
                {[
                  words.name,
                  words.access,
                  words.state,
                  words.createdAt,
                  words.usedAt,
                  words.expiresAt,
                  words.id,
                  "",
                ].map((name) =>
                  name ? (
                    <th scope="col" key={name}>
                      {name}
                    </th>
                  ) : (
                    <td key="" />
                  ),
                )}
              </tr>
            </thead>
            <tbody>
              {shown.map((key) => (
                <tr key={key.id} class={key.state === "live" ? "" : "over"}>
                  <th scope="row">
                    {key.name || <span class="dim">–</span>} {key.own && <span class="tag main">{words.own}</span>}
                  </th>
                  <td>{key.role ? words.role(key.role) : key.access}</td>
                  <td>{words.states[key.state] ?? key.state}</td>
                  <td>{at(key.createdAt)}</td>
                  <td>{key.lastUsedAt ? at(key.lastUsedAt) : words.never}</td>
                  <td>{key.expiresAt ? at(key.expiresAt) : words.never}</td>
                  <td>
                    <code title={key.id}>{key.id.slice(0, ID_SHOWN_CHARS)}…</code>
                  </td>
                  <td>
                    {key.state === "live" && !key.own && (
                      <Button
                        icon="trash"
                        bare
                        look="danger"
                        label={words.revokeLabel(called(key))}
                        onClick={() => setRevoking(key)}
                      />
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {shown.length === 0 && <p class="dim pad">{words.none}</p>}
        </div>
      )}
      {revoking && (
        <Dialog label={words.revoke} onClose={() => setRevoking(null)}>
          <div class="stack">
            <p>{words.confirm(called(revoking))}</p>
            {created.length > 0 && (
              <>
                <p>{words.hasCreated}</p>
                <ul>
                  {created.map((key) => (
                    <li key={key.id}>
                      {called(key)} ({key.role ? words.role(key.role) : key.access})
                    </li>
                  ))}
                </ul>
              </>
            )}
            <div class="row">
              <Button look="danger" label={words.revoke} onClick={() => void revoke(revoking, false)} />
              {created.length > 0 && (
                <Button look="danger" label={words.revokeAll} onClick={() => void revoke(revoking, true)} />
              )}
              <Button label={texts.cancel} onClick={() => setRevoking(null)} />
            </div>
          </div>
        </Dialog>
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
  const [error, setError] = useState<unknown>(null);
  const [isWrong, setWrong] = useState(false);
  const roles = useLoad(roleNames, []);
  const role = grant.startsWith("role:") ? grant.slice("role:".length) : null;
  const submit = async (event: Event) => {
    event.preventDefault();
    const own = claimsOf(claims);
    setWrong(role !== null && !own);
    if (role !== null && !own) return;
    setError(null);
    setCreated(null);
    try {
      const body = {
        name,
        ...(role === null ? { access: grant } : { role, claims: own }),
        ...(expires ? { expires } : {}),
      };
      setCreated(await api().request("POST", "keys", { body, retries: 0 }));
      setName("");
      onCreated();
    } catch (refused) {
      setError(refused);
    }
  };
  const lifetimes = Object.entries(ends ? { "1h": "1 h", ...words.lifetimes } : words.lifetimes);
  return (
    <>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          {words.name}
          <input
            value={name}
            placeholder={words.nameHint}
            maxLength={100}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
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
          <label>
            {words.claims}
            <input
              class="mono"
              value={claims}
              placeholder='{"sub": 7}'
              title={words.claimsHint}
              aria-invalid={isWrong || undefined}
              onInput={(event) => setClaims(event.currentTarget.value)}
            />
          </label>
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
      {ends && <p class="dim">{words.limited(at(new Date(ends * 1000).toISOString()))}</p>}
      {isWrong && (
        <p class="fault" role="alert">
          {words.notClaims}
        </p>
      )}
      {error !== null && <Problem error={error} />}
      {created && (
        <div class="notice created" role="status">
          <p>{words.created}</p>
          <pre class="code">{created.key}</pre>
          <Warnings of={created.warnings} />
          <div class="row">
            <Copy text={created.key} label={words.copy} done={words.copied} />
            <Button label={words.done} onClick={() => setCreated(null)} />
          </div>
        </div>
      )}
    </>
  );
}
