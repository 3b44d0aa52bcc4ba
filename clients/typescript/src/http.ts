// Sends requests: key, timeout, abort, retries. Must not know what the requests mean.
import { SelkieError, mayRepeat, noAnswer, refusal, type Repeat } from "./errors.js";
import type { CallOptions, List } from "./types.js";

/** The API key, or a function that returns it. The function is called for each attempt; `expired` is true after a
 * 401. */
export type KeySource = string | ((expired: boolean) => string | Promise<string>);

export interface ClientOptions {
  /** The address of the edge or the origin, as `https://api.example`. */
  url: string;
  key: KeySource;
  /** The default schema of `sql`. */
  database?: string;
  /** Used instead of the global `fetch`. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** Milliseconds for an attempt (60,000 by default); 0: no limit. */
  timeout?: number;
  /** The maximum number of retries after the first attempt (3 by default). */
  retries?: number;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
  /** Remember the position of the last write, and send it with each request: reads see that write on every origin and replica. */
  readYourWrites?: boolean;
}

export interface Request {
  method: string;
  /** The path relative to `/api/v1/`, with its query string; or an absolute URL on the same server. */
  path: string;
  /** Sent as JSON, unless it is a form or bytes. */
  body?: unknown;
  headers?: Record<string, string>;
  repeat: Repeat;
  /** The body is read after the call returns: `read` must call `release` at the body's end, and the timeout is for
   * the head only. */
  streams?: true;
}

/** Converts a response to the result of a call. */
type Read<R> = (response: Response, release: () => void) => Promise<R>;

const PAUSE_FIRST_MS = 200;
const PAUSE_MAX_MS = 10_000;
/** The longest `Retry-After` that is waited for. After a longer one the call fails, so that the caller learns of it. */
const RETRY_AFTER_MAX_MS = 30_000;

/** Returns the value as JSON, with bigints as strings of digits. */
export const json = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (typeof member === "bigint" ? String(member) : member));

/** Waits before retry `attempt`, counted from 0: exponentially longer, with jitter, and at least `least` ms. Rejects
 * if the signal aborts. */
export function pause(attempt: number, signal?: AbortSignal, least = 0): Promise<void> {
  const most = Math.min(PAUSE_MAX_MS, PAUSE_FIRST_MS * 2 ** attempt);
  const ms = least + (most * (1 + Math.random())) / 2;
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
  });
}

export class Http {
  readonly url: string;
  /** Whether something on the way holds streams back, so that changes are polled. */
  polls = false;
  /** The position of the last write that was answered. */
  private position?: string;

  constructor(readonly options: ClientOptions) {
    // In a web page, the URL may be relative to the page's.
    this.url = new URL(options.url, globalThis.location?.href).href.replace(/\/+$/, "");
  }

  /** Sends a request and returns what `read` makes of its response. If either fails, retries both, provided that the request may be repeated. */
  async send<R>(request: Request, call: CallOptions, read: Read<R>): Promise<R> {
    const { body } = request;
    const raw = body === undefined || body instanceof FormData || body instanceof Blob;
    // Serialised once, so that a retry has the same body: the server compares the bodies of requests with one Idempotency-Key.
    const content = raw ? body : json(body);
    const type = raw ? undefined : { "content-type": "application/json" };
    const repeat = call.repeatable ? "always" : request.repeat;
    const retries = call.retries ?? this.options.retries ?? 3;
    let renewed = false;
    for (let attempt = 0; ; attempt += 1) {
      call.signal?.throwIfAborted();
      const { key } = this.options;
      const bearer = typeof key === "string" ? key : await key(renewed);
      const after = this.position && { "x-selkie-after": this.position };
      const headers = {
        authorization: `Bearer ${bearer}`,
        ...type,
        ...after,
        ...this.options.headers,
        ...request.headers,
        ...call.headers,
      };
      try {
        return await this.attempt(request, { method: request.method, headers, body: content as BodyInit }, call, read);
      } catch (error) {
        if (!(error instanceof SelkieError)) throw error;
        if (error.status === 401 && typeof key !== "string" && !renewed) {
          renewed = true;
          continue;
        }
        const least = (error.retryAfter ?? 0) * 1000;
        if (attempt >= retries || !mayRepeat(error, repeat) || least > RETRY_AFTER_MAX_MS) throw error;
        await pause(attempt, call.signal, least);
      }
    }
  }

  private async attempt<R>(request: Request, init: RequestInit, call: CallOptions, read: Read<R>) {
    const { signal, timeout = this.options.timeout ?? 60_000 } = call;
    const control = new AbortController();
    const stop = () => control.abort(signal!.reason);
    signal?.addEventListener("abort", stop, { once: true });
    const late = () => control.abort(noAnswer("timeout", `No answer within ${timeout} ms.`));
    const timer = timeout ? setTimeout(late, timeout) : undefined;
    const release = () => signal?.removeEventListener("abort", stop);
    let kept = false;
    const address = new URL(request.path, `${this.url}/api/v1/`);
    try {
      const send = this.options.fetch ?? fetch;
      const response = await send(address.href, { ...init, signal: control.signal });
      if (!response.ok) throw await refusal(response);
      if (this.options.readYourWrites) this.position = response.headers.get("x-selkie-position") ?? this.position;
      const result = await read(response, release);
      kept = request.streams ?? false;
      return result;
    } catch (error) {
      // The reason is an abort by the caller, or the timeout.
      if (control.signal.aborted) throw control.signal.reason;
      if (error instanceof SelkieError) throw error;
      throw noAnswer(
        "network_error",
        `${request.method} ${address.origin}${address.pathname} got no complete answer.`,
        error,
      );
    } finally {
      clearTimeout(timer);
      if (!kept) release();
    }
  }

  envelope<R>(request: Request, call: CallOptions = {}): Promise<Envelope<R>> {
    return this.send(request, call, async (response) => {
      const text = await response.text();
      try {
        const answer: Envelope<R> & { success?: boolean } = JSON.parse(text);
        if (answer.success) return { ...answer, etag: response.headers.get("etag") ?? undefined };
      } catch {
        // The body is not JSON: the error below is thrown.
      }
      const fault = {
        code: "invalid_answer",
        message: `The answer of ${response.url || request.path} is not Selkie's.`,
      };
      throw new SelkieError(fault, response.status);
    });
  }
}

/** Returns the entries of a list, with what the answer says of the entries that it leaves out. */
export function listOf<R>({ payload, next, more, count, limited }: Envelope<R[]>): List<R> {
  // These members are not enumerable, so that the list compares and prints like a plain array.
  for (const [name, value] of Object.entries({ next, more, count, limited }))
    Object.defineProperty(payload, name, { value });
  return payload;
}

/** An answer in JSON, with its ETag. */
export interface Envelope<R> {
  payload: R;
  next?: string;
  count?: number;
  limited?: boolean;
  more?: boolean;
  /** Of a batch: the indices of the operations whose lists were cut. */
  cut?: number[];
  etag?: string;
}
