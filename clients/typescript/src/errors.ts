// The error that every call throws, and after which errors a call may be repeated. Must not know how requests are sent.

/** The codes that docs/api.md lists, and three codes of this client: `network_error`, `timeout`, `invalid_answer`. */
export type ErrorCode =
  | "invalid_request"
  | "invalid_json"
  | "invalid_query_option"
  | "invalid_filter"
  | "invalid_body"
  | "unknown_field"
  | "invalid_identifier"
  | "sql_error"
  | "fulltext_index_missing"
  | "ambiguous_relation"
  | "invalid_media"
  | "missing_key"
  | "invalid_key"
  | "expired_key"
  | "revoked_key"
  | "full_access_required"
  | "role_forbids"
  | "permission_denied"
  | "route_not_found"
  | "database_not_found"
  | "table_not_found"
  | "record_not_found"
  | "media_not_found"
  | "method_not_allowed"
  | "duplicate_key"
  | "foreign_key_violation"
  | "rejected_by_database"
  | "too_many_affected"
  | "media_exists"
  | "deadlock"
  | "idempotency_in_progress"
  | "upload_offset_mismatch"
  | "precondition_failed"
  | "body_too_large"
  | "uri_too_long"
  | "unsupported_media_type"
  | "range_not_satisfiable"
  | "invalid_value"
  | "idempotency_mismatch"
  | "upload_locked"
  | "rate_limited"
  | "headers_too_large"
  | "internal"
  | "bad_origin_answer"
  | "origin_unreachable"
  | "origin_unavailable"
  | "database_unavailable"
  | "issuer_unavailable"
  | "overloaded"
  | "lock_timeout"
  | "storage_unavailable"
  | "query_timeout"
  | "origin_timeout"
  | "storage_full"
  | "network_error"
  | "timeout"
  | "invalid_answer"
  | (string & {});

/** The place of the fault in the request. A member is missing if the server does not know it. */
export interface ErrorDetails {
  field?: string;
  row?: number;
  constraint?: string;
  operation?: number;
  errno?: number;
  sqlState?: string;
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
    const { error, errors } = JSON.parse(text);
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
