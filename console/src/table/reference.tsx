// The editor of a foreign key: searches the referenced records by label or key. Must not know where the value is stored.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isNumeric, kindOf } from "../schema";
import { texts } from "../texts";
import { label as textOf } from "../values";
import type { InputProps } from "./input";
import type { Candidate, Labels } from "./labels";

/** The time without typing after which a search is sent. */
const PAUSE_MS = 150;

export function ReferenceInput({
  field,
  value,
  onChange,
  onChosen,
  label,
  focused,
  compact,
  describedBy,
  invalid,
  labels,
}: InputProps & { labels: Labels }) {
  void labels.version.value;
  const id = useId();
  const box = useRef<HTMLInputElement>(null);
  const menu = useRef<HTMLUListElement>(null);
  /** What was typed; null: the present value is shown. */
  const [typed, setTyped] = useState<string | null>(null);
  const [isOpen, setOpen] = useState(compact === true);
  const [found, setFound] = useState<Candidate[] | null>(null);
  const [at, setAt] = useState(0);
  /** Whether Enter was pressed before the records were found. */
  const isAwaited = useRef(false);
  const text = typed ?? "";
  const isKey = (next: string) => isNumeric(kindOf(field)) && /^-?\d+$/.test(next);

  useLayoutEffect(() => {
    if (!focused) return;
    box.current?.focus();
    box.current?.select();
  }, []);
  useEffect(() => labels.want([{ [field.name]: value }]), [value]);
  const choose = (one: Candidate) => {
    labels.learn(field, one);
    setTyped(null);
    setOpen(false);
    onChange(one.key);
    onChosen?.(one.key);
  };
  useEffect(() => {
    if (!isOpen) return;
    const control = new AbortController();
    const search = async () => {
      // Whoever may not read the referenced table types the key.
      const list = await labels.search(field, text, control.signal).catch(() => null);
      if (control.signal.aborted) return;
      const [first] = list ?? [];
      const isExact = first !== undefined && textOf(first.key) === text;
      if (text && (list === null || isExact)) onChange(isExact ? first.key : text);
      setFound(list ?? []);
      setAt(0);
      if (isAwaited.current && first) choose(first);
      isAwaited.current = false;
    };
    const timer = setTimeout(() => void search(), text ? PAUSE_MS : 0);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [isOpen, text]);
  useLayoutEffect(() => {
    const list = menu.current!;
    if (!isOpen) return;
    // In the top layer, since the grid would cut the list off.
    list.showPopover();
    const place = () => {
      const { left, top, bottom, width } = box.current!.getBoundingClientRect();
      const isAbove = bottom + list.offsetHeight > innerHeight && top > list.offsetHeight;
      list.style.minWidth = `${width}px`;
      list.style.left = `${Math.max(0, Math.min(left, innerWidth - list.offsetWidth))}px`;
      list.style.top = `${isAbove ? top - list.offsetHeight : bottom}px`;
    };
    place();
    addEventListener("scroll", place, true);
    return () => removeEventListener("scroll", place, true);
  }, [isOpen, found]);
  useLayoutEffect(() => {
    if (!isOpen) menu.current?.hidePopover();
  }, [isOpen]);

  const type = (next: string) => {
    setTyped(next);
    setFound(null);
    setOpen(true);
    if (next === "") onChange(field.nullable ? null : undefined);
    else if (isKey(next)) onChange(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { key } = event;
    if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      event.stopPropagation();
      if (isOpen) setAt(Math.max(0, Math.min((found?.length ?? 1) - 1, at + (key === "ArrowDown" ? 1 : -1))));
      setOpen(true);
    } else if (isOpen && key === "Escape" && !compact) {
      event.stopPropagation();
      setTyped(null);
      setOpen(false);
    } else if (isOpen && (key === "Enter" || (key === "Tab" && text))) {
      const one = found?.[at];
      // An Enter without a search keeps the value.
      if (key === "Enter" && !text && at === 0) return;
      if (key === "Enter" && found === null && !isKey(text)) isAwaited.current = true;
      else if (!one || (found === null && isKey(text))) return;
      else choose(one);
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const present = value === null || value === undefined ? undefined : value;
  return (
    <div class="with-null reference">
      <input
        ref={box}
        role="combobox"
        aria-label={label}
        aria-expanded={isOpen}
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && found?.length ? `${id}-${at}` : undefined}
        aria-describedby={describedBy}
        aria-invalid={invalid || undefined}
        autocomplete="off"
        spellcheck={false}
        value={typed ?? (present === undefined ? "" : (labels.of(field, present) ?? textOf(present)))}
        placeholder={value === null ? texts.record.null : texts.reference.find(field.references!.table)}
        onInput={(event) => type(event.currentTarget.value)}
        onClick={() => setOpen(true)}
        onKeyDown={onKeyDown}
        onBlur={() => {
          setTyped(null);
          setOpen(false);
        }}
      />
      {!compact && present !== undefined && <span class="dim small">{textOf(present)}</span>}
      <ul
        ref={menu}
        id={id}
        class="menu"
        role="listbox"
        popover="manual"
        aria-label={texts.reference.find(field.references!.table)}
        onPointerDown={(event) => event.preventDefault()}
      >
        {found?.map((one, index) => (
          <li
            key={textOf(one.key)}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => choose(one)}
          >
            {one.label} <span class="dim">{textOf(one.key)}</span>
          </li>
        ))}
        {!found?.length && (
          <li role="option" aria-disabled="true" aria-selected="false">
            {found ? texts.reference.none : texts.reference.searching}
          </li>
        )}
      </ul>
    </div>
  );
}
