// Small components that all views share. Must not know what they are used for.
import { isSelkieError } from "@selkie/client";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { texts } from "./texts";

const PATHS = {
  table: "M3 5h18v14H3zM3 10h18M9 5v14",
  view: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12zM12 9.500a2.500 2.500 0 100 5 2.500 2.500 0 000-5",
  sql: "M8 8l-4 4 4 4M16 8l4 4-4 4M13.500 6l-3 12",
  media: "M3 5h18v14H3zM3 16l5-5 4 4 3-3 6 5M15.500 9.500h.01",
  diagram: "M3 4h7v5H3zM14 15h7v5h-7zM6.500 9v4a4 4 0 004 4H14",
  filter: "M3 5h18l-7 8v5l-4 2v-7z",
  columns: "M4 5h16v14H4zM9.500 5v14M15 5v14",
  search: "M10.500 4a6.500 6.500 0 100 13 6.500 6.500 0 000-13zM15.500 15.500L20 20",
  code: "M8 8l-4 4 4 4M16 8l4 4-4 4",
  plus: "M12 5v14M5 12h14",
  reload: "M20 11a8 8 0 10-2 6M20 5v6h-6",
  close: "M6 6l12 12M18 6L6 18",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
  arrow: "M5 12h14M13 6l6 6-6 6",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12",
  undo: "M9 7L4 12l5 5M4 12h10a5 5 0 015 5v1",
  play: "M7 5l12 7-12 7z",
  stop: "M6 6h12v12H6z",
  out: "M14 4h5v16h-5M10 8l-4 4 4 4M6 12h9",
  menu: "M4 7h16M4 12h16M4 17h16",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  upload: "M12 20V9M7 13l5-5 5 5M5 4h14",
  copy: "M9 9h11v11H9zM15 9V4H4v11h5",
  lock: "M6 11h12v9H6zM8.500 11V8a3.500 3.500 0 017 0v3",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  key: "M14.500 9.500a4 4 0 10-3.500 4L13 15.500h2v2h2v2h3v-3l-5.500-5.500",
  link: "M10 14a4 4 0 005.500 0l3-3a4 4 0 00-5.500-5.500l-1 1M14 10a4 4 0 00-5.500 0l-3 3a4 4 0 005.500 5.500l1-1",
  hook: "M12 3v11M12 14a4 4 0 11-8 0M12 14h3a3 3 0 003-3V8M15 10l3-3 3 3",
  folder: "M3 6h6l2 2h10v11H3z",
  chart: "M4 4v16h16M8 16v-5M12.500 16V8M17 16v-7",
};

export type IconName = keyof typeof PATHS;

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
);

/** Shows the name of a view as the title of the tab. */
export function useTitle(view?: string): void {
  useEffect(() => {
    document.title = view ? `${view} · ${texts.title}` : `${texts.title} console`;
  }, [view]);
}

interface ButtonProps {
  icon?: IconName;
  label: string;
  onClick?: (event: MouseEvent) => void;
  /** Shows only the icon; the label is its tooltip and its text for screen readers. */
  bare?: true;
  look?: "main" | "danger" | "quiet" | undefined;
  disabled?: boolean;
  pressed?: boolean;
  expanded?: boolean;
  type?: "button" | "submit";
  class?: string;
  children?: ComponentChildren;
}

export const Button = ({
  icon,
  label,
  onClick,
  bare,
  look,
  disabled,
  pressed,
  expanded,
  type = "button",
  class: own,
  children,
}: ButtonProps) => (
  <button
    type={type}
    class={["button", look, bare && "bare", own].filter(Boolean).join(" ")}
    onClick={onClick}
    disabled={disabled}
    aria-pressed={pressed}
    aria-expanded={expanded}
    aria-label={bare ? label : undefined}
    title={bare ? label : undefined}
  >
    {icon && <Icon name={icon} />}
    {!bare && <span>{label}</span>}
    {children}
  </button>
);

export function Problem({ error, again }: { error: unknown; again?: () => void }) {
  const known = isSelkieError(error);
  const isLost = known && error.code === "network_error";
  return (
    <div class="problem" role="alert">
      <strong>{isLost ? texts.error.network : known ? error.message : texts.error.unknown}</strong>
      {known && error.hint && <p>{error.hint}</p>}
      {!known && <p>{String((error as Error)?.message ?? error)}</p>}
      {known && (
        <p class="dim">
          <code>{error.code}</code>
          {error.requestId && ` · ${texts.error.requestId} ${error.requestId}`}
        </p>
      )}
      {again && <Button label={texts.error.again} icon="reload" onClick={again} />}
    </div>
  );
}

/** Shows what the service warns of in an answer that is no refusal. */
export const Warnings = ({ of }: { of: readonly string[] | undefined }) => (
  <>
    {of?.map((warning) => (
      <p class="notice danger" role="alert" key={warning}>
        {warning}
      </p>
    ))}
  </>
);

/** A button that opens a panel below it; Escape and a click elsewhere close the panel. */
export function Popup({
  icon,
  label,
  badge,
  children,
  shortcut,
  wide,
}: {
  icon: IconName;
  label: string;
  badge?: number | undefined;
  /** The key that opens the panel, together with Ctrl. */
  shortcut?: string;
  children: (close: () => void) => ComponentChildren;
  wide?: true;
}) {
  const [isOpen, setOpen] = useState(false);
  const own = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => !own.current?.contains(event.target as Node) && setOpen(false);
    // A button that is gone, or disabled, has left the keyboard to the page.
    const onKeyDown = (event: KeyboardEvent) =>
      event.key === "Escape" && document.activeElement === document.body && close();
    document.addEventListener("pointerdown", outside);
    document.addEventListener("keydown", onKeyDown);
    own.current?.querySelector<HTMLElement>(".panel :is(input, select, textarea, button)")?.focus();
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("keydown", onKeyDown);
    };
  }, [isOpen]);
  useEffect(() => {
    if (!shortcut) return;
    const onShortcut = (event: KeyboardEvent) => {
      if (event.key !== shortcut || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", onShortcut);
    return () => removeEventListener("keydown", onShortcut);
  }, [shortcut]);
  const close = () => {
    setOpen(false);
    own.current?.querySelector<HTMLElement>(":scope > button")?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.stopPropagation();
    close();
  };
  return (
    <div class="popup" ref={own} onKeyDown={onKeyDown}>
      <Button icon={icon} label={label} expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {badge ? <span class="badge">{badge}</span> : null}
      </Button>
      {isOpen && (
        <div class={wide ? "panel wide" : "panel"} role="group" aria-label={label}>
          {children(close)}
        </div>
      )}
    </div>
  );
}

/** A modal question; Escape answers no. */
export function Dialog({
  label,
  onClose,
  children,
}: {
  label: string;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const own = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => own.current?.showModal(), []);
  return (
    <dialog ref={own} class="dialog" aria-label={label} onClose={onClose}>
      {children}
    </dialog>
  );
}

/** Asks before something is done that can't be undone. */
export function Confirm({
  label,
  text,
  yes = label,
  look = "danger",
  onYes,
  onClose,
  answers,
  children,
}: {
  label: string;
  text: string;
  /** The label of the button that does it. */
  yes?: string;
  look?: "main" | "danger";
  onYes: () => void;
  onClose: () => void;
  /** Further answers, beside yes. */
  answers?: ComponentChildren;
  children?: ComponentChildren;
}) {
  return (
    <Dialog label={label} onClose={onClose}>
      <div class="stack">
        <p>{text}</p>
        {children}
        <div class="row">
          <Button look={look} label={yes} onClick={onYes} />
          {answers}
          <Button label={texts.cancel} onClick={onClose} />
        </div>
      </div>
    </Dialog>
  );
}

/** Copies a text, and says so for a moment. */
export function Copy({ text, label, done }: { text: string | (() => string); label: string; done: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await copyText(typeof text === "string" ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return <Button label={isDone ? done : label} onClick={() => void copy()} />;
}

/** Writes to the clipboard, also where a page on http has no `navigator.clipboard`. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export const Spinner = ({ label }: { label: string }) => (
  <p class="wait" role="status">
    <span class="spinner" aria-hidden="true" />
    {label}
  </p>
);

/** Runs `load` when `on` changes; returns the result or the error, and a function that runs it again. */
export function useLoad<T>(
  load: () => Promise<T>,
  on: readonly unknown[],
): { value?: T; error?: unknown; again: () => void } {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    setState({});
    load().then(
      (value) => isCurrent && setState({ value }),
      (error: unknown) => isCurrent && setState({ error }),
    );
    return () => {
      isCurrent = false;
    };
  }, [...on, round]);
  return { ...state, again: () => setRound((last) => last + 1) };
}
