// The statements that ran in this tab, and those that the user has saved under a name.
import { useState } from "preact/hooks";
import { holder, remember, remembered } from "../session";
import { texts } from "../texts";
import { Button, Popup } from "../ui";
import { save } from "../values";

export interface Past {
  query: string;
  database: string;
  at: string;
}

interface SavedQuery {
  name: string;
  query: string;
  database: string;
}

const SAVED = "sql:saved";

export const History = ({ past, onChoose }: { past: readonly Past[]; onChoose: (past: Past) => void }) => (
  <Popup icon="table" label={texts.sql.history} wide>
    {(close) =>
      past.length === 0 ? (
        <p class="dim">{texts.sql.noHistory}</p>
      ) : (
        <ul class="history">
          {past.map((one) => (
            <li key={one.at}>
              <button
                type="button"
                class="link"
                onClick={() => {
                  close();
                  onChoose(one);
                }}
              >
                <code>{one.query}</code>
              </button>
            </li>
          ))}
        </ul>
      )
    }
  </Popup>
);

interface SavedProps {
  /** Returns what the editor has now. */
  present: () => { query: string; database: string };
  onChoose: (saved: SavedQuery) => void;
}

export function Saved({ present, onChoose }: SavedProps) {
  const [list, setList] = useState(() => remembered<SavedQuery[]>(SAVED, []));
  const [name, setName] = useState("");
  const keep = (next: SavedQuery[]) => {
    setList(next);
    remember(SAVED, next.length ? next : undefined);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const own = name.trim();
    const others = list.filter((one) => one.name !== own);
    keep([...others, { name: own, ...present() }].sort((one, other) => one.name.localeCompare(other.name)));
    setName("");
  };
  return (
    <Popup icon="file" label={texts.sql.saved} badge={list.length} wide>
      {(close) => (
        <div class="stack">
          <form class="row" onSubmit={submit}>
            <input
              class="grow"
              value={name}
              required
              pattern=".*\S.*"
              maxLength={100}
              aria-label={texts.sql.name}
              placeholder={texts.sql.name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" look="main" label={texts.sql.save} />
          </form>
          {list.length === 0 && <p class="dim">{texts.sql.noSaved}</p>}
          <ul class="history">
            {list.map((one) => (
              <li key={one.name} class="row">
                <button
                  type="button"
                  class="link grow"
                  onClick={() => {
                    close();
                    onChoose(one);
                  }}
                >
                  {one.name} <span class="dim small">{one.database}</span>
                  <code>{one.query}</code>
                </button>
                <Button
                  icon="trash"
                  bare
                  look="quiet"
                  label={texts.sql.removeSaved(one.name)}
                  onClick={() => keep(list.filter((other) => other !== one))}
                />
              </li>
            ))}
          </ul>
          {list.length > 0 && (
            <div>
              <Button
                icon="download"
                label={texts.sql.exportSaved}
                onClick={() =>
                  save(`queries-${holder.value.project}.json`, `${JSON.stringify(list, null, 2)}\n`, "application/json")
                }
              />
            </div>
          )}
        </div>
      )}
    </Popup>
  );
}
