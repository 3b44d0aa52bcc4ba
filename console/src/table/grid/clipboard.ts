// Copies from the grid and pastes into it. Must not know what is copied.
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Clipboard {
  /** Returns the text to copy. */
  copied: () => string | undefined;
  onPaste: (text: string) => void;
  onFault: (error: unknown) => void;
}

/** Acts while the element itself has the keyboard. Browsers send the events to wherever the last selection was. */
export function useClipboard(element: RefObject<HTMLElement | null>, clipboard: Clipboard): void {
  const latest = useRef(clipboard);
  latest.current = clipboard;
  useEffect(() => {
    const isOwn = () => document.activeElement === element.current;
    const onCopy = (event: ClipboardEvent) => {
      const text = isOwn() && getSelection()?.isCollapsed !== false ? latest.current.copied() : undefined;
      if (text === undefined) return;
      event.preventDefault();
      event.clipboardData?.setData("text/plain", text);
    };
    const onPaste = (event: ClipboardEvent) => {
      const text = isOwn() ? event.clipboardData?.getData("text/plain") : undefined;
      if (!text) return;
      event.preventDefault();
      try {
        latest.current.onPaste(text);
        latest.current.onFault(null);
      } catch (error) {
        latest.current.onFault(error);
      }
    };
    addEventListener("copy", onCopy);
    addEventListener("paste", onPaste);
    return () => {
      removeEventListener("copy", onCopy);
      removeEventListener("paste", onPaste);
    };
  }, []);
}
