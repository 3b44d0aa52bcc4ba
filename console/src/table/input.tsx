// The editor of one value, by the type of its field. Must not know where the value is stored.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Field, isNumeric, kindOf } from "../schema";
import { texts } from "../texts";
import { Button } from "../ui";
import { editable, parsed } from "../values";
import type { Labels } from "./labels";
import { ReferenceInput } from "./reference";

export interface InputProps {
  field: Field;
  value: unknown;
  onChange: (value: unknown) => void;
  /** Called after `onChange` when a record was chosen from a list, which ends the edit of a cell. */
  onChosen?: (value: unknown) => void;
  /** The labels of the records to which the field may refer. */
  labels?: Labels;
  label: string;
  focused?: boolean;
  /** What a list of values says of a value that is not set yet. */
  unset?: string;
  /** Whether the editor has one line, for a cell of the grid. */
  compact?: boolean;
  describedBy?: string | undefined;
  invalid?: boolean;
}

/** Returns whether a value can be edited in a line of the grid. */
export function isInline(field: Field, value: unknown): boolean {
  const kind = kindOf(field);
  if (kind === "json" || kind === "geometry" || kind === "bytes" || kind === "set") return false;
  return typeof value !== "string" || (!value.includes("\n") && value.length <= 200);
}

export function FieldInput(props: InputProps) {
  const { field, value, onChange, labels, label, focused, unset, compact, describedBy, invalid } = props;
  const own = useRef<HTMLElement | null>(null);
  const kind = kindOf(field);
  useLayoutEffect(() => {
    if (!focused) return;
    own.current?.focus();
    if (own.current instanceof HTMLInputElement) own.current.select();
  }, []);
  const common = {
    ref: (element: HTMLElement | null) => {
      own.current = element;
    },
    "aria-label": label,
    "aria-describedby": describedBy,
    "aria-invalid": invalid || undefined,
  };
  const nothing =
    value === null
      ? texts.record.null
      : value === undefined
        ? field.default !== null
          ? `${texts.record.default} ${field.default}`
          : field.autoIncrement
            ? texts.record.countsUp
            : ""
        : "";
  const clear = !compact && field.nullable && (
    <Button
      label={texts.record.null}
      look="quiet"
      pressed={value === null}
      onClick={() => onChange(value === null ? (unset ? undefined : "") : null)}
      class="null"
    />
  );
  if (labels?.isReference(field))
    return (
      <div class="with-null">
        <ReferenceInput {...props} labels={labels} />
        {clear}
      </div>
    );
  if (kind === "bytes") return <Bytes {...props} />;
  if (kind === "json" || kind === "geometry") return <Json {...props}>{clear}</Json>;
  if (kind === "boolean" || kind === "enum") {
    const members = kind === "boolean" ? ["0", "1"] : (field.values ?? []);
    const now = value === null || value === undefined ? "" : String(value);
    const list = (
      <select
        {...common}
        value={now}
        onChange={(event) =>
          onChange(
            event.currentTarget.value === ""
              ? field.nullable
                ? null
                : undefined
              : parsed(event.currentTarget.value, kind),
          )
        }
      >
        {(field.nullable || value === undefined || now === "") && (
          <option value="">{unset ?? (field.nullable ? texts.record.null : texts.record.default)}</option>
        )}
        {(now === "" || members.includes(now) ? members : [...members, now]).map((member) => (
          <option key={member}>{member}</option>
        ))}
      </select>
    );
    if (!unset) return list;
    return (
      <div class="with-null">
        {list}
        {clear}
      </div>
    );
  }
  if (kind === "set") {
    const chosen = typeof value === "string" && value !== "" ? value.split(",") : [];
    return (
      <div class="set" role="group" aria-label={label}>
        {(field.values ?? []).map((member) => (
          <label class="check" key={member}>
            <input
              type="checkbox"
              checked={chosen.includes(member)}
              onChange={(event) =>
                onChange(
                  (field.values ?? [])
                    .filter((one) => (one === member ? event.currentTarget.checked : chosen.includes(one)))
                    .join(","),
                )
              }
            />
            {member}
          </label>
        ))}
        {clear}
      </div>
    );
  }
  const text = editable(value, kind);
  const change = (next: string) =>
    onChange(
      next === "" && kind !== "text" && kind !== "long" ? (field.nullable ? null : undefined) : parsed(next, kind),
    );
  if (!compact && (kind === "long" || text.includes("\n"))) {
    return (
      <div class="with-null">
        <textarea
          {...common}
          rows={Math.min(14, Math.max(3, Math.ceil(text.length / 60)))}
          value={text}
          placeholder={nothing}
          onInput={(event) => change(event.currentTarget.value)}
        />
        {clear}
      </div>
    );
  }
  // Date pickers can't hold zeros for unknown parts, nor more than three fractional digits of a second.
  const hasPicker = text === "" || !/^0000|-00|\.\d{4}/.test(text);
  const type = hasPicker && kind === "date" ? "date" : hasPicker && kind === "datetime" ? "datetime-local" : "text";
  return (
    <div class="with-null">
      <input
        {...common}
        type={type as "text"}
        step={type === "datetime-local" ? (/\.\d/.test(text) || /\(\d\)/.test(field.type) ? "0.001" : "1") : undefined}
        inputmode={isNumeric(kind) ? "decimal" : undefined}
        value={type === "datetime-local" ? text.replace(" ", "T") : text}
        placeholder={nothing}
        spellcheck={kind === "text"}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {clear}
    </div>
  );
}

function Json({
  field,
  value,
  onChange,
  label,
  focused,
  describedBy,
  invalid,
  children,
}: InputProps & { children?: ComponentChildren }) {
  const kind = kindOf(field);
  const own = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const [text, setText] = useState(editable(value, kind));
  const [isWrong, setWrong] = useState(false);
  useLayoutEffect(() => void (focused && own.current?.focus()), []);
  // The value was changed outside of this editor, as by an undo.
  useEffect(() => {
    const isOther = (() => {
      try {
        return JSON.stringify(parsed(text, kind)) !== JSON.stringify(value);
      } catch {
        return false;
      }
    })();
    if (isOther || value === null || value === undefined) setText(editable(value, kind));
  }, [value]);
  const change = (next: string) => {
    setText(next);
    try {
      const value = next.trim() === "" ? (field.nullable ? null : undefined) : parsed(next, kind);
      setWrong(false);
      onChange(value);
    } catch {
      setWrong(true);
    }
  };
  return (
    <div class="with-null">
      <textarea
        ref={own}
        class="mono"
        rows={Math.min(16, Math.max(3, text.split("\n").length))}
        value={text}
        aria-label={label}
        spellcheck={false}
        aria-describedby={isWrong ? id : describedBy}
        aria-invalid={isWrong || invalid || undefined}
        placeholder={value === null ? texts.record.null : ""}
        onInput={(event) => change(event.currentTarget.value)}
      />
      {children}
      {isWrong && (
        <p class="fault" id={id}>
          {texts.record.notJson}
        </p>
      )}
    </div>
  );
}

function Bytes({ field, value, onChange, label }: InputProps) {
  const choose = async (file: File | undefined) => {
    if (!file) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    onChange(btoa(text));
  };
  const download = () => {
    const bytes = Uint8Array.from(atob(String(value)), (byte) => byte.charCodeAt(0));
    const address = URL.createObjectURL(new Blob([bytes]));
    Object.assign(document.createElement("a"), { href: address, download: field.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  return (
    <div class="row">
      <label class="button file">
        {texts.record.file}
        <input type="file" aria-label={label} onChange={(event) => void choose(event.currentTarget.files?.[0])} />
      </label>
      {typeof value === "string" && <Button icon="download" label={texts.record.download} onClick={download} />}
      {field.nullable && (
        <Button label={texts.record.null} look="quiet" pressed={value === null} onClick={() => onChange(null)} />
      )}
    </div>
  );
}
