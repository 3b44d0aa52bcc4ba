// The keys of the project: what they may do, when they end; create and revoke.
import { useEffect, useState } from "preact/hooks";
import { api, holder, route } from "../session";
import { texts } from "../texts";
import { Button, Copy, Dialog, Problem, Spinner, useLoad } from "../ui";

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
}

export const at = (time: string): string => time.slice(0, 16).replace("T", " ");
export const roleNames = async (): Promise<string[]> => (await api().request<{ name: string }[]>("GET", "roles")).map(({ name }) => name);

/** Reads a JSON object of claims; undefined for anything else. */
export function claimsOf(text: string): object | undefined {
  try {
    const claims: unknown = JSON.parse(text || "{}");
    return typeof claims === "object" && claims !== null && !Array.isArray(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

export function Keys() {
  const [onlyLive, setOnlyLive] = useState(true);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [error, setError] = useState<unknown>(null);
  const keys = useLoad(() => api().request<Key[]>("GET", "keys"), []);
  useEffect(() => void (document.title = `${words.heading} · ${texts.title}`), []);
  if (holder.value.access !== "full") return <p class="pad">{words.full}</p>;
  const revoke = async ({ id }: Key) => {
    setRevoking(null);
    setError(null);
    await api().request("DELETE", `keys/${id}`).catch(setError);
    keys.again();
  };
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
      {keys.error ? <Problem error={keys.error} again={keys.again} /> : !shown ? <Spinner label={texts.table.loading} /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label={words.heading}>
          <table class="list">
            <thead>
              <tr>{[words.name, words.access, words.state, words.createdAt, words.usedAt, words.expiresAt, words.id, ""].map((name) => (name ? <th scope="col" key={name}>{name}</th> : <td key="" />))}</tr>
            </thead>
            <tbody>
              {shown.map((key) => (
                <tr key={key.id} class={key.state === "live" ? "" : "over"}>
                  <th scope="row">{key.name || <span class="dim">–</span>} {key.own && <span class="tag main">{words.own}</span>}</th>
                  <td>{key.role ? words.role(key.role) : key.access}</td>
                  <td>{words.states[key.state] ?? key.state}</td>
                  <td>{at(key.createdAt)}</td>
                  <td>{key.lastUsedAt ? at(key.lastUsedAt) : words.never}</td>
                  <td>{key.expiresAt ? at(key.expiresAt) : words.never}</td>
                  <td><code title={key.id}>{key.id.slice(0, ID_SHOWN_CHARS)}…</code></td>
                  <td>{key.state === "live" && !key.own && <Button icon="trash" bare look="danger" label={words.revokeLabel(called(key))} onClick={() => setRevoking(key)} />}</td>
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
            <div class="row">
              <Button look="danger" label={words.revoke} onClick={() => void revoke(revoking)} />
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
  const [created, setCreated] = useState<string | null>(null);
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
      const body = { name, ...(role === null ? { access: grant } : { role, claims: own }), ...(expires ? { expires } : {}) };
      setCreated((await api().request<{ key: string }>("POST", "keys", { body, retries: 0 })).key);
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
        <label>{words.name}<input value={name} placeholder={words.nameHint} maxLength={100} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>
          {words.access}
          <select value={grant} onChange={(event) => setGrant(event.currentTarget.value)}>
            {Object.entries(words.accesses).map(([access, text]) => <option key={access} value={access}>{text}</option>)}
            {roles.value?.map((name) => <option key={name} value={`role:${name}`}>{words.role(name)}</option>)}
          </select>
        </label>
        {role !== null && (
          <label>
            {words.claims}
            <input class="mono" value={claims} placeholder='{"sub": 7}' title={words.claimsHint} aria-invalid={isWrong || undefined} onInput={(event) => setClaims(event.currentTarget.value)} />
          </label>
        )}
        <label>
          {words.lifetime}
          <select value={expires} onChange={(event) => setExpires(event.currentTarget.value)}>
            {lifetimes.map(([time, text]) => <option key={time} value={time}>{text}</option>)}
          </select>
        </label>
        <Button type="submit" look="main" icon="plus" label={words.create} />
      </form>
      {ends && <p class="dim">{words.limited(at(new Date(ends * 1000).toISOString()))}</p>}
      {isWrong && <p class="fault" role="alert">{words.notClaims}</p>}
      {error !== null && <Problem error={error} />}
      {created && (
        <div class="notice created" role="status">
          <p>{words.created}</p>
          <pre class="code">{created}</pre>
          <div class="row">
            <Copy text={created} label={words.copy} done={words.copied} />
            <Button label={words.done} onClick={() => setCreated(null)} />
          </div>
        </div>
      )}
    </>
  );
}
