// Divides SQL into statements, since a request runs one, and says which statements lose data or read without a limit. It
// knows only as much of the grammar as that takes.

export interface Statement {
  /** The statement without its delimiter. */
  text: string;
  /** Where `text` begins in the whole text. */
  begin: number;
  /** Where the statement ends in the whole text, before its delimiter. */
  end: number;
}

interface Token {
  kind: "comment" | "quoted" | "word" | "sign";
  text: string;
  at: number;
}

/** Comments, but for executable ones; quoted texts and names; words; signs. */
const TOKENS =
  /(--(?=\s|$)[^\n]*|#[^\n]*|\/\*(?!M?!)[\s\S]*?(?:\*\/|$))|('(?:[^'\\]|\\[\s\S])*(?:'|$)|"(?:[^"\\]|\\[\s\S])*(?:"|$)|`[^`]*(?:`|$))|([\w$@\u0080-\uffff]+)|\S/g;

function* tokens(text: string): Generator<Token> {
  for (const { 0: own, 1: comment, 2: quoted, 3: word, index: at } of text.matchAll(TOKENS)) {
    const kind =
      comment !== undefined ? "comment" : quoted !== undefined ? "quoted" : word !== undefined ? "word" : "sign";
    yield { kind, text: kind === "word" ? own.toUpperCase() : own, at };
  }
}

/** What can be created; the first of these words in a CREATE says which it is. */
const OBJECTS =
  "TABLE VIEW INDEX DATABASE SCHEMA USER ROLE SEQUENCE SERVER PROCEDURE FUNCTION TRIGGER EVENT PACKAGE".split(" ");
const PROGRAMS = ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
/** Open a block wherever they stand. */
const BLOCKS = ["BEGIN", "CASE"];
/** Open a block where a statement begins; elsewhere they are functions or options. */
const BLOCKS_AT_START = ["IF", "LOOP", "WHILE", "REPEAT", "FOR"];
/** What is before a statement within a program. */
const BEFORE_STATEMENT = [";", ":", "THEN", "ELSE", "DO", "BEGIN", "LOOP", "REPEAT", "ROW", "ATOMIC"];

/** Follows the blocks of a stored program or a BEGIN NOT ATOMIC, whose statements have semicolons of their own. */
class Blocks {
  #words: string[] = [];
  #last = "";
  #isProgram = false;
  depth = 0;

  see({ kind, text }: Token): void {
    const last = this.#last;
    this.#last = text;
    if (kind !== "word") return;
    this.#words.push(text);
    const [first, second] = this.#words;
    if (
      first === "CREATE" &&
      OBJECTS.includes(text) &&
      !this.#words.slice(0, -1).some((word) => OBJECTS.includes(word))
    )
      this.#isProgram = PROGRAMS.includes(text);
    if (this.#words.length === 2 && first === "BEGIN" && second === "NOT") {
      this.#isProgram = true;
      this.depth = 1;
    } else if (!this.#isProgram || (last === "END" && text !== "END")) return;
    else if (text === "END") this.depth -= 1;
    else if (BLOCKS.includes(text) || (BLOCKS_AT_START.includes(text) && BEFORE_STATEMENT.includes(last)))
      this.depth += 1;
  }
}

/** Returns the statements of the text. Like MariaDB's client, it takes a line `DELIMITER //`. */
export function split(text: string): Statement[] {
  const statements: Statement[] = [];
  let delimiter = ";";
  let begin = 0;
  let isEmpty = true;
  let blocks = new Blocks();
  const finish = (end: number, next: number) => {
    const own = text.slice(begin, end).trimStart();
    if (!isEmpty) statements.push({ text: own.trimEnd(), begin: end - own.length, end });
    begin = next;
    isEmpty = true;
    blocks = new Blocks();
  };
  for (const token of tokens(text)) {
    if (token.at < begin || token.kind === "comment") continue;
    const command =
      isEmpty && token.text === "DELIMITER" ? /^delimiter[ \t]+(\S+)[^\n]*/i.exec(text.slice(token.at)) : null;
    if (command) {
      delimiter = command[1]!;
      begin = token.at + command[0].length;
    } else if (
      token.kind === "sign" &&
      text.startsWith(delimiter, token.at) &&
      (delimiter !== ";" || blocks.depth <= 0)
    ) {
      finish(token.at, token.at + delimiter.length);
    } else {
      isEmpty = false;
      blocks.see(token);
    }
  }
  finish(text.length, text.length);
  return statements;
}

/** Returns the statement at a position: the one that ends there or next, else the last. */
export const statementAt = (statements: readonly Statement[], position: number): Statement | undefined =>
  statements.find(({ end }) => position <= end + 1) ?? statements.at(-1);

/** Returns the words outside of quotes, comments and, if `isFlat`, parentheses. */
function wordsOf(text: string, isFlat: boolean): string[] {
  let depth = 0;
  const words: string[] = [];
  for (const token of tokens(text)) {
    if (token.text === "(") depth += 1;
    else if (token.text === ")") depth -= 1;
    else if (token.kind === "word" && (depth === 0 || !isFlat)) words.push(token.text);
  }
  return words;
}

/** Returns whether the statement drops something, or changes or deletes all records of a table. */
export function losesData(text: string): boolean {
  const words = wordsOf(text, false);
  const has = (...some: string[]) => some.some((word) => words.includes(word));
  const first = words[0] === "ANALYZE" ? words[1] : words[0];
  if (first === "DROP" || first === "TRUNCATE") return true;
  if (first === "ALTER" || first === "BEGIN")
    return has("DROP", "TRUNCATE") || (has("DELETE", "UPDATE") && !has("WHERE"));
  if (first === "CREATE") return words.slice(1, 4).join(" ") === "OR REPLACE TABLE";
  return (first === "DELETE" || first === "UPDATE") && !wordsOf(text, true).includes("WHERE");
}

/** Words after which a limit can't be added, or need not be. */
const NO_LIMIT = "LIMIT FETCH INTO FOR LOCK PROCEDURE INSERT UPDATE DELETE".split(" ");

/** Returns the SELECT with a limit; undefined if it has one, or is no plain SELECT. */
export function limited(text: string, rows: number): string | undefined {
  const words = wordsOf(text, true);
  const isSelect = words[0] === "SELECT" || (words[0] === "WITH" && words.includes("SELECT"));
  return isSelect && !words.some((word) => NO_LIMIT.includes(word)) ? `${text}\nLIMIT ${rows}` : undefined;
}
