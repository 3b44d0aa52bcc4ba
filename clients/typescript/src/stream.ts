// Reads NDJSON from a response. Must not know what the lines contain.
import { noAnswer } from "./errors.js";

/** Yields the value of each line. Ends the request if the caller stops early; fails if the answer was cut short. */
export async function* lines<R>(
  response: Response,
  release: () => void,
  signal?: AbortSignal,
): AsyncGenerator<R, void, undefined> {
  const reader = response.body!.getReader();
  const text = new TextDecoder();
  let rest = "";
  let ended = false;
  const cut = (error: unknown) => noAnswer("network_error", "The stream of records was cut short.", error);
  // An answer that broke off ends with a line that is not JSON.
  const parsed = (line: string): R => {
    try {
      return JSON.parse(line);
    } catch (error) {
      throw cut(error);
    }
  };
  const next = async () => {
    try {
      return await reader.read();
    } catch (error) {
      ended = true;
      if (signal?.aborted) throw signal.reason;
      throw cut(error);
    }
  };
  try {
    while (!ended) {
      const { done, value } = await next();
      ended = done;
      const parts = (rest + text.decode(value, { stream: !done })).split("\n");
      rest = done ? "" : parts.pop()!;
      for (const line of parts) if (line) yield parsed(line);
    }
  } finally {
    release();
    if (!ended) await reader.cancel();
  }
}
