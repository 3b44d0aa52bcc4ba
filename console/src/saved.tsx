// What users save under names in their browser: a list to save to, choose from, and delete from. Must not know what is saved.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { remember, remembered } from "./session";
import { texts } from "./texts";
import { Button, Popup } from "./ui";

type Named<T> = T & { name: string };

interface Props<T> {
  label: string;
  /** The name under which the browser keeps the list. */
  storedAs: string;
  nameLabel: string;
  /** What is said while nothing is saved. */
  hint: string;
  /** Returns what is there to be saved. */
  present: () => T;
  onChoose: (one: Named<T>) => void;
  /** Shows one of the list, beside its name. */
  describe: (one: Named<T>) => ComponentChildren;
  /** What is below a list that is not empty. */
  below?: (list: readonly Named<T>[]) => ComponentChildren;
}

export function Saved<T>({ label, storedAs, nameLabel, hint, present, onChoose, describe, below }: Props<T>) {
  const [list, setList] = useState(() => remembered<Named<T>[]>(storedAs, []));
  const [name, setName] = useState("");
  const keep = (next: Named<T>[]) => {
    setList(next);
    remember(storedAs, next.length ? next : undefined);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const own = name.trim();
    const others = list.filter((one) => one.name !== own);
    keep([...others, { ...present(), name: own }].sort((one, other) => one.name.localeCompare(other.name)));
    setName("");
  };
  return (
    <Popup icon="file" label={label} badge={list.length} wide>
      {(close) => (
        <div class="stack">
          <form class="row" onSubmit={submit}>
            <input
              class="grow"
              value={name}
              required
              pattern=".*\S.*"
              maxLength={100}
              aria-label={nameLabel}
              placeholder={nameLabel}
              onInput={(event) => setName(event.currentTarget.value)}
            />
            <Button type="submit" look="main" label={texts.saved.save} />
          </form>
          {list.length === 0 && <p class="dim">{hint}</p>}
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
                  {one.name} {describe(one)}
                </button>
                <Button
                  icon="trash"
                  bare
                  look="quiet"
                  label={texts.saved.remove(one.name)}
                  onClick={() => keep(list.filter((other) => other !== one))}
                />
              </li>
            ))}
          </ul>
          {list.length > 0 && below?.(list)}
        </div>
      )}
    </Popup>
  );
}
