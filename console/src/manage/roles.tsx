// The roles of the project: their files, and a look at the console as one of their keys.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { api, beginTest, keep, kept, to } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Icon, Problem, useAttempt, useLoad, useTitle, Warnings } from "../ui";
import { jsonText } from "../values";
import { claimsOf, roleNames } from "./keys";
import { Loaded, TextField } from "./parts";

const words = texts.roles;
const TEST_LIFETIME = "15m";
/** The name in the address for a role that is not saved yet: no role can have it. */
const NEW = "+";
const TEMPLATE = `{
  "tables": {
    "shop.products": {"read": {"fields": {"omit": ["cost"]}}},
    "shop.orders": {"read": {"rows": {"customer_id": {"value": {"claim": "sub"}}}}}
  }
}
`;

/** What the service warned of when a role was saved. A new role is then shown by another editor. */
const told = signal<{ role: string; warnings: string[] | undefined } | null>(null);

export function Roles({ name }: { name: string }) {
  const roles = useLoad(roleNames, []);
  useTitle(words.heading);
  return (
    <div class="manage">
      <h1>{words.heading}</h1>
      <p class="dim">{words.hint}</p>
      <div class="role">
        <nav aria-label={words.heading}>
          <Loaded load={roles}>
            {(list) => (
              <ul>
                {list.length === 0 && <li class="dim">{words.none}</li>}
                {list.map((own) => (
                  <li key={own}>
                    <a class="side-link" href={to("roles", [own])} aria-current={own === name ? "page" : undefined}>
                      <Icon name="lock" /> {own}
                    </a>
                  </li>
                ))}
                <li>
                  <a class="side-link" href={to("roles", [NEW])} aria-current={name === NEW ? "page" : undefined}>
                    <Icon name="plus" /> {words.create}
                  </a>
                </li>
              </ul>
            )}
          </Loaded>
        </nav>
        {name === NEW ? <Editor name="" text={TEMPLATE} /> : name && <Stored name={name} />}
      </div>
    </div>
  );
}

function Stored({ name }: { name: string }) {
  const file = useLoad(() => api().request("GET", `roles/${encodeURIComponent(name)}`), [name]);
  return <Loaded load={file}>{(role) => <Editor name={name} text={`${jsonText(role, 2)}\n`} />}</Loaded>;
}

function Editor({ name, text }: { name: string; text: string }) {
  const [wanted, setWanted] = useState(name);
  const draft = `role:${name}`;
  const [file, setFile] = useState(() => kept(draft, text));
  const [saved, setSaved] = useState(text);
  const [claims, setClaims] = useState("");
  const [error, tryTo] = useAttempt();
  const [isDone, setDone] = useState(false);
  const [isWrong, setWrong] = useState(false);
  const [isRemoving, setRemoving] = useState(false);
  const path = `roles/${encodeURIComponent(wanted.trim())}`;
  const attempt = async (change: () => Promise<void>) => {
    setDone(false);
    told.value = null;
    await tryTo(change);
  };
  const change = (next: string) => {
    setFile(next);
    setDone(false);
    keep(draft, next === saved ? undefined : next);
  };
  const save = (event: Event) => {
    event.preventDefault();
    void attempt(async () => {
      // As text: to parse and write it would round its large numbers.
      const body = new Blob([file], { type: "application/json" });
      const { warnings } = await api().request<{ warnings?: string[] }>("PUT", path, { body });
      setSaved(file);
      keep(draft, undefined);
      setDone(true);
      told.value = { role: wanted.trim(), warnings };
      if (!name) location.hash = to("roles", [wanted.trim()]);
    });
  };
  const remove = () =>
    attempt(async () => {
      setRemoving(false);
      await api().request("DELETE", path);
      location.hash = to("roles");
    });
  const test = () => {
    const own = claimsOf(claims);
    setWrong(!own);
    if (!own) return;
    void attempt(async () => {
      const body = { role: name, claims: own, name: `test of ${name}`, expires: TEST_LIFETIME };
      beginTest((await api().request<{ key: string }>("POST", "keys", { body, retries: 0 })).key);
    });
  };
  return (
    <div class="stack">
      <form onSubmit={save}>
        {!name && <TextField label={words.name} value={wanted} required maxLength={64} onChange={setWanted} />}
        <label class="wide">
          {words.file}
          <textarea
            class="mono"
            rows={18}
            spellcheck={false}
            value={file}
            onInput={(event) => change(event.currentTarget.value)}
          />
        </label>
        <Button type="submit" look="main" label={words.save} />
        {name && <Button icon="trash" look="danger" label={words.remove} onClick={() => setRemoving(true)} />}
        {isDone && (
          <span class="note" role="status">
            {words.saved}
          </span>
        )}
      </form>
      {error !== null && <Problem error={error} />}
      {told.value?.role === name && <Warnings of={told.value.warnings} />}
      {name && (
        <section class="stack">
          <h2>{words.test}</h2>
          <p class="dim">{words.testHint}</p>
          <div class="row">
            <input
              class="mono"
              value={claims}
              placeholder='{"sub": 7}'
              aria-label={words.claims}
              aria-invalid={isWrong || undefined}
              onInput={(event) => setClaims(event.currentTarget.value)}
            />
            <Button icon="view" label={words.test} disabled={file !== saved} onClick={test} />
            <a href={to("keys", [], { role: name })}>{words.keys}</a>
          </div>
          {isWrong && (
            <p class="fault" role="alert">
              {texts.keys.notClaims}
            </p>
          )}
        </section>
      )}
      {isRemoving && (
        <Confirm
          label={words.remove}
          text={words.confirm(name)}
          onYes={() => void remove()}
          onClose={() => setRemoving(false)}
        />
      )}
    </div>
  );
}
