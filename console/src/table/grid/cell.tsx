// A cell of the grid: shows a value, or edits it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Field, isNumeric, kindOf } from "../../schema";
import { texts } from "../../texts";
import { Icon } from "../../ui";
import { type Row, show } from "../../values";
import { FieldInput, type InputProps } from "../input";
import type { Labels } from "../labels";
import { linkTo } from "../query";

/** Shows a value, with a link to the record to which its foreign key refers. */
export function CellValue({
  database,
  field,
  record,
  labels,
  isNew,
}: {
  database: string;
  field: Field;
  record: Row;
  labels: Labels;
  isNew?: boolean;
}) {
  const value = record[field.name];
  if (value === undefined) {
    const isMissing = isNew && field.required;
    return (
      <span class={isMissing ? "fault small" : "look-null"}>
        {isMissing ? texts.record.required : isNew ? texts.record.default : ""}
      </span>
    );
  }
  const kind = kindOf(field);
  const { text, look } = show(value, kind);
  const reference = field.references;
  const called = labels.of(field, value);
  return (
    <>
      {called === undefined ? (
        <span class={`value look-${look} ${isNumeric(kind) ? "right" : ""}`}>{text}</span>
      ) : (
        <span class="value">
          {called} <span class="dim small">{text}</span>
        </span>
      )}
      {reference && value !== null && (
        <a
          class="follow"
          tabIndex={-1}
          aria-label={texts.table.follow(reference.table)}
          title={texts.table.follow(reference.table)}
          href={linkTo(database, reference.table, [[reference.field, value]])}
        >
          <Icon name="link" />
        </a>
      )}
    </>
  );
}

/** Where the active cell moves after an edit. */
export type Step = "stay" | "down" | "next" | "previous";

export function CellEditor({
  field,
  value,
  labels,
  commit,
  done,
}: Pick<InputProps, "field" | "value" | "labels"> & { commit: (value: unknown) => void; done: (step: Step) => void }) {
  const [own, setOwn] = useState(value);
  const isDone = useRef(false);
  const finish = (isKept: boolean, step: Step = "stay", last = own) => {
    if (isDone.current) return;
    isDone.current = true;
    if (isKept && last !== value) commit(last);
    done(step);
  };
  const latest = useRef(finish);
  latest.current = finish;
  useLayoutEffect(() => {
    // A reload keeps what was typed, like an Enter.
    const keep = () => latest.current(true);
    addEventListener("pagehide", keep);
    return () => removeEventListener("pagehide", keep);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      finish(true, event.key === "Enter" ? "down" : event.shiftKey ? "previous" : "next");
    } else if (event.key === "Escape") {
      finish(false);
    }
  };
  return (
    <div
      class="cell-editor"
      onKeyDown={onKeyDown}
      onBlurCapture={(event) => !event.currentTarget.contains(event.relatedTarget as Node) && finish(true)}
    >
      <FieldInput
        field={field}
        value={own}
        onChange={setOwn}
        onChosen={(chosen) => finish(true, "down", chosen)}
        labels={labels}
        label={field.name}
        focused
        compact
      />
    </div>
  );
}
