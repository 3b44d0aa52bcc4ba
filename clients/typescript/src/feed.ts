// Follows the changes of subscriptions: event streams or long polls, reconnects, tokens. Must not know what is done with
// the changes.
import { isSelkieError, noAnswer, SelkieError } from "./errors.js";
import { type Http, pause, type Request } from "./http.js";
import { parsed, parts } from "./stream.js";
import type { CallOptions } from "./types.js";

export interface Subscription {
  readonly id?: string;
  readonly database: string;
  readonly table: string;
  readonly [option: string]: unknown;
}

/** A change as the API writes it. */
export interface RawChange {
  type: "insert" | "update" | "delete";
  key: unknown;
  record?: Record<string, unknown>;
  subscription: string;
  position: string;
  end?: true;
}

/** Where the feed is between transactions. */
export interface Place {
  next: string;
  position: string;
  /** Whether the snapshot before lacks records, because the role or the service allow no more. */
  limited?: true;
}

/** A change with the token after it, if it is known; the place after whole transactions; or that the records must be read
 * again, by a snapshot that follows. */
export type Message =
  | ["change", RawChange, string | undefined]
  | ["transaction", Place, string]
  | ["resync", { reason: string }, undefined];

export interface FollowOptions extends CallOptions {
  readonly signal: AbortSignal;
  readonly since?: string;
  /** Begin with all records, and again whenever the feed can't go on. */
  readonly snapshot?: boolean;
}

/** Without a first event for so long, something on the way holds the stream back. */
const FIRST_EVENT_MS = 10_000;
/** The server sends something every 15 s. */
const SILENCE_MS = 40_000;
const POLL_TIMEOUT_MS = 60_000;

const request = (body: object, accept: string): Request => ({
  method: "POST",
  path: "changes",
  body,
  headers: { accept },
  repeat: "always",
});

/** Reads a snapshot: each record as a change, and the place at which it was read. */
export async function snapshotOf(http: Http, subscriptions: Subscription[], call: CallOptions) {
  const read = request({ subscriptions, snapshot: true }, "application/x-ndjson");
  const all = await http.send(read, call, async (response) => {
    const text = await response.text();
    return text
      .split("\n")
      .filter(Boolean)
      .map((line) => parsed<RawChange & Partial<Place>>(line));
  });
  const place = all.pop();
  if (!place?.next) throw noAnswer("network_error", "The snapshot was cut short.");
  return { records: all as RawChange[], place: place as Place };
}

/** Yields messages without end. Throws errors that don't pass, and `resync_required` unless a snapshot was asked for. */
export async function* follow(
  http: Http,
  subscriptions: Subscription[],
  { since, snapshot, ...call }: FollowOptions,
): AsyncGenerator<Message, void, undefined> {
  const { signal } = call;
  let from = since;
  let isPartial = false;
  for (let attempt = 0; ; attempt += 1) {
    let least = 0;
    try {
      for await (const message of (http.polls ? poll : stream)(http, { subscriptions, since: from, snapshot }, call)) {
        const [, , token] = message;
        if (token && token !== from) attempt = 0;
        from = token ?? from;
        isPartial = !from;
        yield message;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (snapshot && isSelkieError(error, "resync_required")) {
        from = undefined;
        yield ["resync", { reason: error.details.reason! }, undefined];
      } else if (error instanceof SelkieError && error.retryable) least = (error.retryAfter ?? 0) * 1000;
      else throw error;
    }
    if (isPartial) {
      isPartial = false;
      yield ["resync", { reason: "cut_short" }, undefined];
    }
    await pause(attempt, signal, least);
  }
}

interface Body {
  subscriptions: Subscription[];
  since: string | undefined;
  snapshot?: boolean | undefined;
}

const bodyOf = ({ subscriptions, since, snapshot }: Body) =>
  since ? { subscriptions, since } : { subscriptions, snapshot };

async function* stream(http: Http, body: Body, call: FollowOptions): AsyncGenerator<Message, void, undefined> {
  const control = new AbortController();
  const stop = () => control.abort(call.signal.reason);
  call.signal.addEventListener("abort", stop);
  if (call.signal.aborted) stop();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = (ms: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => control.abort(noAnswer("timeout", `No event within ${ms} ms.`)), ms);
  };
  let began = false;
  const onBytes = () => {
    began = true;
    watch(SILENCE_MS);
  };
  try {
    watch(FIRST_EVENT_MS);
    const own = { ...call, signal: control.signal, timeout: 0, retries: 0 };
    const events = await http.send(
      { ...request(bodyOf(body), "text/event-stream"), streams: true },
      own,
      async (response, release) => {
        if (response.body) return parts(response, release, "\n\n", control.signal, onBytes);
        release();
      },
    );
    if (!events) http.polls = true;
    else for await (const event of events) yield* messageOf(event);
  } catch (error) {
    if (!began && isSelkieError(error, "timeout")) http.polls = true;
    throw error;
  } finally {
    clearTimeout(timer);
    call.signal.removeEventListener("abort", stop);
  }
}

function* messageOf(event: string): Generator<Message, void, undefined> {
  const {
    id,
    event: name,
    data,
  } = Object.fromEntries(
    event.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 2)];
    }),
  ) as Record<string, string>;
  if (!data) return;
  const value = parsed<RawChange & Place & { code: string; message: string; reason: string }>(data);
  if (name === "change") yield [name, value, id];
  else if (name === "transaction") yield [name, value, value.next];
  else if (name === "resync") {
    const fault = { code: "resync_required", message: "The records must be read again.", details: value };
    throw new SelkieError(fault, 409);
  } else if (name === "failed") {
    // The next request tells whether the fault passes.
    throw new SelkieError({ ...value, retryable: true }, 200);
  }
}

async function* poll(http: Http, body: Body, call: FollowOptions): AsyncGenerator<Message, void, undefined> {
  const { subscriptions, snapshot } = body;
  let { since } = body;
  if (!since && snapshot) {
    const { records, place } = await snapshotOf(http, subscriptions, call);
    for (const record of records) yield ["change", record, undefined];
    since = place.next;
    yield ["transaction", place, since];
  }
  for (;;) {
    const wait = since ? "20s" : undefined;
    const page = request({ subscriptions, since, wait }, "application/json");
    const answer = await http.envelope<RawChange[]>(page, { ...call, timeout: POLL_TIMEOUT_MS });
    const { payload, next, position } = answer as typeof answer & Place;
    since = next;
    for (const [at, change] of payload.entries())
      yield ["change", change, at === payload.length - 1 ? next : undefined];
    if (payload.at(-1)?.end ?? true) yield ["transaction", { next, position }, next];
  }
}
