// The error that every call throws, and after which errors a call may be repeated. Must not know how requests are sent.
import type { ApiErrorCode } from "./lists.js";

/** The codes of the API, and three codes of this client. */
export type ErrorCode = ApiErrorCode | "network_error" | "timeout" | "invalid_answer" | (string & {});

/** The place of the fault in the request. A member is missing if the server does not know it. */
export interface ErrorDetails {
  field?: string;
  row?: number;
  constraint?: string;
  operation?: number;
  errno?: number;
  sqlState?: string;
  /** Of `resync_required`: why the feed of changes can't go on. */
  reason?: string;
}

interface Fault {
  code: ErrorCode;
  message: string;
  hint?: string;
  details?: ErrorDetails;
  retryable?: boolean;
  requestId?: string;
}

/** The error that a failed call throws. An aborted call throws the reason of its signal instead. */
export class SelkieError extends Error {
  override readonly name = "SelkieError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  readonly details: ErrorDetails;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  readonly requestId: string | undefined;

  constructor(
    fault: Fault,
    /** The HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** All faults of a body, of which this error is the first. */
    readonly errors: readonly Pick<Fault, "code" | "message" | "details">[] = [fault],
    /** Seconds to wait before a retry, from the header `Retry-After`. */
    readonly retryAfter?: number,
    cause?: unknown,
  ) {
    super(fault.message, { cause });
    this.code = fault.code;
    this.hint = fault.hint;
    this.details = fault.details ?? {};
    this.retryable = fault.retryable ?? false;
    this.requestId = fault.requestId;
  }
}

/** Returns whether `error` is a `SelkieError`, and has one of the codes if any are given. */
export function isSelkieError<C extends ErrorCode>(error: unknown, ...codes: C[]): error is SelkieError & { code: C } {
  return error instanceof SelkieError && (!codes.length || codes.includes(error.code as C));
}

/** Returns the error of an attempt that got no answer. */
export function noAnswer(code: "network_error" | "timeout", message: string, cause?: unknown): SelkieError {
  return new SelkieError({ code, message, retryable: true }, 0, undefined, undefined, cause);
}

/** Reads the error from a response that is not a success. */
export async function refusal(response: Response): Promise<SelkieError> {
  const { status, headers } = response;
  const text = await response.text();
  const wait = headers.get("retry-after");
  const retryAfter = wait && /^\d+$/.test(wait) ? Number(wait) : undefined;
  try {
    const { error, errors }: { error: Fault; errors?: Fault[] } = JSON.parse(text);
    if (error.code) return new SelkieError(error, status, errors, retryAfter);
  } catch {
    // The body is not Selkie's: a proxy's page, or an answer to HEAD.
  }
  const fault = {
    code: "invalid_answer",
    message: `The answer with status ${status} is not Selkie's.`,
    retryable: [429, 502, 503, 504].includes(status),
    requestId: headers.get("x-request-id") ?? undefined,
  };
  return new SelkieError(fault, status, undefined, retryAfter);
}

/**
 * After which errors a call may be repeated. `always`: after any temporary error. `undone`: only if the server rolled
 * the call back or refused it before it began. `refused`: only if the server refused it before it began, as for SQL,
 * which may commit in between.
 */
export type Repeat = "always" | "undone" | "refused";

const REFUSED = ["rate_limited", "overloaded", "issuer_unavailable", "idempotency_in_progress"];
const UNDONE = ["deadlock", "lock_timeout"];

/** Returns whether a call of this kind may be sent again after the error. */
export function mayRepeat(error: SelkieError, repeat: Repeat): boolean {
  if (repeat === "always") return error.retryable;
  return REFUSED.includes(error.code) || (repeat === "undone" && UNDONE.includes(error.code));
}
