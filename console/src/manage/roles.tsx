// The roles of the project: as tables and as the JSON of their files, which are one text, and what a key of a role sees.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { type Members, roleOf, textOf } from "../roles/file";
import { Test } from "../roles/look";
import { Limits, Matrix } from "../roles/matrix";
import { api, keep, kept, route, to } from "../session";
import { texts } from "../texts";
import { Button, Confirm, Icon, Problem, useAttempt, useLoad, useTitle, Warnings } from "../ui";
import { jsonText } from "../values";
import { roleNames } from "./keys";
import { Loaded, TextField } from "./parts";

const words = texts.roles;
/** The name in the address for a role that is not saved yet: no role can have it. */
const NEW = "+";
const TEMPLATE = textOf({ tables: {} });

/** What the service warned of when a role was saved. A new role is then shown by another editor. */
const told = signal<{ role: string; warnings: string[] | undefined } | null>(null);

export default function Roles() {
  const [name = ""] = route.value.parts;
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
  const [error, tryTo] = useAttempt();
  const [isDone, setDone] = useState(false);
  const [isRemoving, setRemoving] = useState(false);
  const path = `roles/${encodeURIComponent(wanted.trim())}`;
  // A new role that was saved is shown by a new editor, which says so.
  const isNew = told.value?.role === name && file === text;
  useEffect(
    () => () => {
      if (name) told.value = null;
    },
    [],
  );
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
  let role: Members | null = null;
  let fault: unknown = null;
  try {
    role = roleOf(file);
  } catch (wrong) {
    fault = wrong;
  }
  return (
    <div class="stack">
      {name && <h2>{name}</h2>}
      <form onSubmit={save}>
        {!name && <TextField label={words.name} value={wanted} required maxLength={64} onChange={setWanted} />}
        <Button type="submit" look="main" label={words.save} />
        {name && <Button icon="trash" look="danger" label={words.remove} onClick={() => setRemoving(true)} />}
        {(isDone || isNew) && (
          <span class="note" role="status">
            {words.saved}
          </span>
        )}
      </form>
      {error !== null && <Problem error={error} />}
      {told.value?.role === name && <Warnings of={told.value.warnings} />}
      <div class="role-parts">
        <div class="stack">
          {role ? (
            <>
              <Matrix role={role} onChange={(next) => change(textOf(next))} />
              <Limits role={role} onChange={(next) => change(textOf(next))} />
            </>
          ) : (
            <p class="notice danger" role="alert">
              {words.unreadable} {(fault as Error).message}
            </p>
          )}
        </div>
        <div class="stack">
          {name && <Test name={name} role={role} isSaved={file === saved} />}
          <label>
            {words.file}
            <textarea
              class="mono"
              rows={18}
              spellcheck={false}
              value={file}
              onInput={(event) => change(event.currentTarget.value)}
            />
          </label>
          <p class="dim">{words.fileHint}</p>
        </div>
      </div>
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
