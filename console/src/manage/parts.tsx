// What the pages of management have in common: lists, fields, secrets. Must not know what they are used for.
import type { ComponentChildren, VNode } from "preact";
import { texts } from "../texts";
import { Button, Copy, Problem, Spinner, type useLoad } from "../ui";

type Load<T> = ReturnType<typeof useLoad<T>>;

/** Shows what was loaded; until then that it is being loaded, or why it can't be. */
export function Loaded<T>({ load, children }: { load: Load<T>; children: (value: T) => VNode | false }) {
  if (load.error) return <Problem error={load.error} again={load.again} />;
  return load.value === undefined ? <Spinner label={texts.table.loading} /> : children(load.value);
}

export interface Column<T> {
  head: string;
  of: (row: T) => ComponentChildren;
  class?: string | ((row: T) => string);
  /** Whether the cell names the row. */
  isName?: true;
}

/** Shows rows as a table, which scrolls if it is too wide. */
export function List<T>({
  label,
  rows,
  columns,
  keyOf,
  isOver,
  class: own = "",
}: {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (row: T) => string | number;
  /** Whether the row is shown as past. */
  isOver?: (row: T) => boolean;
  class?: string;
}) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={`list ${own}`}>
        <thead>
          <tr>
            {columns.map(({ head, class: look }) =>
              head ? (
                <th scope="col" class={typeof look === "string" ? look : undefined}>
                  {head}
                </th>
              ) : (
                <td />
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} class={isOver?.(row) ? "over" : ""}>
              {columns.map(({ of, class: look, isName }) => {
                const name = typeof look === "function" ? look(row) : look;
                return isName ? (
                  <th scope="row" class={name}>
                    {of(row)}
                  </th>
                ) : (
                  <td class={name}>{of(row)}</td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface TextFieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  class?: "grow";
  isCode?: true;
  type?: "url";
  required?: true;
  placeholder?: string;
  maxLength?: number;
  title?: string;
  isWrong?: boolean;
  isDisabled?: boolean;
}

/** Narrows a list to what holds the words. */
export const Find = ({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (words: string) => void;
}) => (
  <input
    type="search"
    value={value}
    placeholder={label}
    aria-label={label}
    onInput={(event) => onChange(event.currentTarget.value)}
  />
);

/** An input under its label. */
export const TextField = ({
  label,
  onChange,
  class: own,
  isCode,
  isWrong,
  isDisabled,
  type,
  ...rest
}: TextFieldProps) => (
  <label class={own}>
    {label}
    <input
      {...rest}
      type={type as "text" | undefined}
      class={isCode && "mono"}
      aria-invalid={isWrong || undefined}
      disabled={isDisabled}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  </label>
);

interface SelectFieldProps {
  label: string;
  /** The name for screen readers, where several fields have the same label. */
  name?: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string) => void;
  /** The text of an empty option, instead of which another must be chosen. */
  choose?: string;
}

/** A select under its label. */
export const SelectField = ({ label, name = label, value, options, onChange, choose }: SelectFieldProps) => (
  <label>
    <span>{label}</span>
    <select
      aria-label={name}
      value={value}
      required={choose !== undefined}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {choose !== undefined && <option value="">{choose}</option>}
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  </label>
);

/** Shows a secret that can't be seen again. */
export const ShownOnce = ({
  text,
  hint,
  copy,
  onDone,
  children,
}: {
  text: string;
  hint: string;
  copy: string;
  onDone: () => void;
  children?: ComponentChildren;
}) => (
  <div class="notice created" role="status">
    <p>{hint}</p>
    <pre class="code">{text}</pre>
    {children}
    <div class="row">
      <Copy text={text} label={copy} done={texts.table.copied} />
      <Button label={texts.done} onClick={onDone} />
    </div>
  </div>
);
