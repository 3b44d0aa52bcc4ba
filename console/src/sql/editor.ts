// The SQL editor: CodeMirror in a shadow root. Its styles are adopted style sheets, which a strict CSP allows.
import {
  autocompletion,
  closeBrackets,
  closeCompletion,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { MariaSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { texts } from "../texts";

export interface Editor {
  /** Returns the text, and where the selection begins and ends. */
  state(): { text: string; from: number; to: number };
  setText(text: string): void;
  /** Sets the tables and fields that are offered for completion. */
  setSchema(schema: Record<string, string[]>): void;
  closeCompletion(): void;
  focus(): void;
  destroy(): void;
}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "light-dark(#8a4b08, #e0ad72)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--number)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--dim)", fontStyle: "italic" },
  { tag: [tags.typeName], color: "light-dark(#6b3fa0, #c3a2f0)" },
]);

const look = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--ink)", backgroundColor: "var(--bg)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--bg-side)", color: "var(--dim)", border: "0" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    backgroundColor: "var(--bg-active)",
  },
  ".cm-placeholder": { color: "var(--dim)" },
  ".cm-tooltip": {
    backgroundColor: "var(--bg-raised)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    color: "var(--ink)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-marked": { backgroundColor: "color-mix(in srgb, var(--accent) 10%, transparent)" },
  ".cm-matchingBracket": { backgroundColor: "var(--bg-active)" },
});

/** Replaces a selection by typed text. The browser would insert elements with style attributes, which the CSP
 * refuses and reports. */
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data } = event as InputEvent;
    if (inputType !== "insertText" || !data || view.composing || view.state.selection.main.empty) return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

/** In longer texts, the statement at the cursor is not marked: finding it takes too long at each move. */
const MARKED_MAX_CHARS = 50_000;

/** Marks the part of the text that `find` returns for a position of the cursor. */
function marked(find: (text: string, position: number) => { from: number; to: number } | undefined) {
  const marks = ({ doc, selection: { main } }: EditorState) => {
    const part = main.empty && doc.length <= MARKED_MAX_CHARS ? find(doc.toString(), main.head) : undefined;
    return part ? Decoration.set(Decoration.mark({ class: "cm-marked" }).range(part.from, part.to)) : Decoration.none;
  };
  return StateField.define<DecorationSet>({
    create: marks,
    update: (present, { docChanged, selection, state }) => (docChanged || selection ? marks(state) : present),
    provide: (field) => EditorView.decorations.from(field),
  });
}

interface Options {
  onRun: (isAll: boolean) => void;
  onChange: (text: string) => void;
  /** Returns what is marked when the cursor is at a position. */
  mark?: Parameters<typeof marked>[0];
}

export function openEditor(parent: HTMLElement, text: string, { onRun, onChange, mark }: Options): Editor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open", delegatesFocus: true });
  const language = new Compartment();
  const dialect = (schema: Record<string, string[]>) => sql({ dialect: MariaSQL, schema, upperCaseKeywords: true });
  const view = new EditorView({
    root,
    parent: root as unknown as Element,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(
          keymap.of(
            ["Mod-Enter", "Mod-Shift-Enter"].map((key) => ({
              key,
              run: () => {
                onRun(key.includes("Shift"));
                return true;
              },
            })),
          ),
        ),
        lineNumbers(),
        history(),
        bracketMatching(),
        closeBrackets(),
        autocompletion(),
        EditorView.lineWrapping,
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap]),
        typeOver,
        language.of(dialect({})),
        syntaxHighlighting(colours),
        look,
        mark ? marked(mark) : [],
        placeholder("SELECT …"),
        EditorView.contentAttributes.of({ "aria-label": texts.sql.statement }),
        EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
      ],
    }),
  });
  return {
    state: () => {
      const { from, to } = view.state.selection.main;
      return { text: view.state.doc.toString(), from, to };
    },
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    setSchema: (schema) => view.dispatch({ effects: language.reconfigure(dialect(schema)) }),
    closeCompletion: () => void closeCompletion(view),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
