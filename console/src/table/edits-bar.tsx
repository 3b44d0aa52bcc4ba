// The bar of unsaved changes: review, undo, save, and conflicts with changes by others.
import { useLayoutEffect, useState } from "preact/hooks";
import { texts } from "../texts";
import { Button, Problem, Popup } from "../ui";
import { label } from "../values";
import type { Edit, Edits } from "./edits";

const VERBS = { insert: texts.edits.insert, update: texts.edits.update, delete: texts.edits.delete };

export function EditsBar({
  edits,
  onOpen,
  onSaved,
  onPartly,
}: {
  edits: Edits;
  onOpen: (id: string) => void;
  onSaved: () => void;
  onPartly: () => void;
}) {
  const list = edits.list.value;
  const [isSaved, setSaved] = useState(false);
  const [broken, setBroken] = useState<unknown>(null);
  const save = async () => {
    setBroken(null);
    try {
      const isDone = await edits.save();
      setSaved(isDone);
      if (isDone) onSaved();
      else {
        if (edits.savedBefore.value > 0) onPartly();
        const wrong = edits.list.value.find(({ faults, theirs }) => faults?.length || theirs !== undefined);
        if (wrong) onOpen(wrong.id);
      }
    } catch (error) {
      setBroken(error);
    }
  };
  useLayoutEffect(() => {
    if (list.length) setSaved(false);
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey)) return;
      if (event.key === "s" && list.length) {
        event.preventDefault();
        void save();
      } else if (
        event.key === "z" &&
        !/^(input|textarea)$/i.test((event.target as Element).tagName) &&
        edits.canUndo.value
      ) {
        event.preventDefault();
        edits.undo();
      }
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, [list]);
  useLayoutEffect(() => {
    if (!isSaved) return;
    const clear = () => setSaved(false);
    const actions = ["pointerdown", "keydown"];
    for (const action of actions) addEventListener(action, clear);
    return () => {
      for (const action of actions) removeEventListener(action, clear);
    };
  }, [isSaved]);
  const undo = (
    <Button icon="undo" label={texts.edits.undo} onClick={() => edits.undo()} disabled={!edits.canUndo.value} />
  );
  if (list.length === 0)
    return (
      <div class="row saved">
        <span role="status">{isSaved ? texts.edits.saved : edits.canUndo.value ? texts.edits.discarded : ""}</span>
        {edits.canUndo.value && undo}
      </div>
    );
  const isRefused =
    edits.fault.value !== null || list.some(({ faults, theirs }) => faults?.length || theirs !== undefined);
  return (
    <section class="edits" aria-label={texts.edits.label}>
      {edits.fault.value && <Problem error={edits.fault.value} />}
      {broken !== null && <Problem error={broken} />}
      <div class="row">
        <strong>{texts.edits.count(list.length)}</strong>
        {isRefused && <span class="fault">{texts.edits.failed(edits.savedBefore.value)}</span>}
        <span class="grow" />
        <Popup icon="table" label={texts.edits.review} wide>
          {(close) => (
            <ul class="review">
              {list.map((edit) => (
                <li key={edit.id} class={edit.faults?.length || edit.theirs !== undefined ? "wrong" : ""}>
                  <button
                    type="button"
                    class="link"
                    onClick={() => {
                      close();
                      onOpen(edit.id);
                    }}
                  >
                    <span class={`verb ${edit.kind}`}>{VERBS[edit.kind]}</span> {edit.key.map(label).join(", ")}
                  </button>
                  {Object.entries(edit.data).map(([field, value]) => (
                    <span class="difference" key={field}>
                      {field}:{" "}
                      {edit.kind === "update" && (
                        <>
                          <del>{short(edit.before[field])}</del> →{" "}
                        </>
                      )}
                      <ins>{short(value)}</ins>
                    </span>
                  ))}
                  {edit.faults?.map(({ message }) => (
                    <span class="fault" key={message}>
                      {message}
                    </span>
                  ))}
                </li>
              ))}
            </ul>
          )}
        </Popup>
        {undo}
        <Button label={texts.edits.discard} onClick={() => edits.discard()} />
        <Button
          look="main"
          label={edits.isSaving.value ? texts.edits.saving : list.length > 1 ? texts.edits.saveAll : texts.edits.save}
          onClick={() => void save()}
          disabled={edits.isSaving.value}
        />
      </div>
    </section>
  );
}

const SHORT_CHARS = 60;
export const short = (value: unknown) => {
  const text = value === null ? texts.record.null : value === undefined ? "" : label(value);
  return text.length > SHORT_CHARS ? `${text.slice(0, SHORT_CHARS)}…` : text;
};

/** Shows the user's and somebody else's version of a record, and asks which to keep. */
export function Conflict({ edits, edit }: { edits: Edits; edit: Edit }) {
  const { theirs } = edit;
  return (
    <div class="notice conflict" role="alert">
      <strong>{theirs === null ? texts.edits.conflictGone : texts.edits.conflict}</strong>
      {theirs && edit.kind === "update" && (
        <table>
          <thead>
            <tr>
              <th scope="col">{texts.table.field}</th>
              <th scope="col">{texts.edits.before}</th>
              <th scope="col">{texts.edits.theirs}</th>
              <th scope="col">{texts.edits.mine}</th>
            </tr>
          </thead>
          <tbody>
            {Object.keys(edit.data).map((field) => (
              <tr key={field}>
                <th scope="row">{field}</th>
                <td>{short(edit.before[field])}</td>
                <td>{short(theirs[field])}</td>
                <td>{short(edit.data[field])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div class="row">
        {theirs !== null && (
          <Button look="main" label={texts.edits.keepMine} onClick={() => void edits.keepMine(edit.id)} />
        )}
        <Button
          label={theirs === null ? texts.edits.drop : texts.edits.takeTheirs}
          onClick={() => edits.drop(edit.id)}
        />
      </div>
    </div>
  );
}
