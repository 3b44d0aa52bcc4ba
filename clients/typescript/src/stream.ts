// Reads the parts of a streamed answer: lines of NDJSON, or events. Must not know what they contain.
import { noAnswer } from "./errors.js";

const cut = (error: unknown) => noAnswer("network_error", "The stream was cut short.", error);

/** Parses a part. An answer that broke off ends with a part that is not JSON. */
export function parsed<R>(text: string): R {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw cut(error);
  }
}

/** Yields the texts between separators. Ends the request if the caller stops early; fails if the answer was cut short.
 * `onBytes` is called whenever bytes come. */
export async function* parts(
  response: Response,
  release: () => void,
  separator: string,
  signal?: AbortSignal,
  onBytes?: () => void,
): AsyncGenerator<string, void, undefined> {
  const reader = response.body!.getReader();
  const text = new TextDecoder();
  let rest = "";
  let ended = false;
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
      onBytes?.();
      const whole = (rest + text.decode(value, { stream: !done })).split(separator);
      rest = done ? "" : whole.pop()!;
      for (const part of whole) if (part) yield part;
    }
  } finally {
    release();
    if (!ended) await reader.cancel();
  }
}

/** Yields the value of each line. */
export async function* lines<R>(
  response: Response,
  release: () => void,
  signal?: AbortSignal,
): AsyncGenerator<R, void, undefined> {
  for await (const line of parts(response, release, "\n", signal)) yield parsed<R>(line);
}
