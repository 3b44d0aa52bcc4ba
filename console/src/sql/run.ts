// Runs one statement. Must not know where the statement comes from, nor how its result is shown.
import type { SqlChange } from "@selkie/client";
import { api } from "../session";
import type { Row } from "../values";

export type Result =
  | { kind: "rows"; sets: Row[][]; ms: number }
  | { kind: "change"; change: SqlChange }
  | { kind: "canceled" }
  | { kind: "error"; error: unknown };

/** Returns a typed statement as the template that the client's `sql` takes, without values. */
const template = (text: string) => Object.assign([text], { raw: [text] });

export async function run(text: string, database: string, signal: AbortSignal): Promise<Result> {
  const begun = performance.now();
  try {
    const answer = await api().sql({ database: database || undefined!, signal, timeout: 0 })<unknown>(template(text));
    const ms = Math.round(performance.now() - begun);
    if (!Array.isArray(answer)) return { kind: "change", change: answer as SqlChange };
    return { kind: "rows", sets: Array.isArray(answer[0]) ? answer : [answer as Row[]], ms };
  } catch (error) {
    return signal.aborted ? { kind: "canceled" } : { kind: "error", error };
  }
}
