// Small components that all views share. Must not know what they are used for.
import { isSelkieError } from "@selkie/client";
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import { texts } from "./texts";
export { Icon, type IconName };

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
  bare,
}: {
  icon: IconName;
  label: string;
  badge?: number | undefined;
  /** The key that opens the panel, together with Ctrl. */
  shortcut?: string;
  children: (close: () => void) => ComponentChildren;
  wide?: true;
  bare?: true;
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
      <Button icon={icon} label={label} expanded={isOpen} onClick={() => setOpen(!isOpen)} {...(bare && { bare })}>
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
  isReady = true,
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
  isReady?: boolean;
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
          <Button look={look} label={yes} disabled={!isReady} onClick={onYes} />
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

/** Returns the error of the last attempt, and a function that makes one. */
export function useAttempt(): [unknown, (work: () => Promise<unknown>) => Promise<void>] {
  const [error, setError] = useState<unknown>(null);
  const attempt = async (work: () => Promise<unknown>) => {
    setError(null);
    // `work` may throw before it returns a promise.
    await (async () => work())().catch(setError);
  };
  return [error, attempt];
}

/** Shows a view whose code is loaded when the view is opened. */
export function Lazy({ load }: { load: () => Promise<{ default: ComponentType }> }) {
  const [found, setFound] = useState<{ view?: ComponentType; error?: unknown }>({});
  const get = () =>
    void load().then(
      ({ default: view }) => setFound({ view }),
      (error) => setFound({ error }),
    );
  useEffect(get, []);
  if (found.error) return <Problem error={found.error} again={get} />;
  return found.view ? <found.view /> : <Spinner label={texts.table.loading} />;
}
