// Lists of the API, written by `ACCEPT=1 cargo test -p selkie-shared the_client_has_the_lists` from the tables in shared/src.

/** The operators of a short condition, and the kind of their operands. */
export const OPERATORS = {
  eq: "any",
  ne: "any",
  gt: "value",
  gte: "value",
  lt: "value",
  lte: "value",
  in: "list",
  notIn: "list",
  between: "pair",
  notBetween: "pair",
  isNull: "flag",
  like: "texts",
  notLike: "texts",
  regexp: "text",
  notRegexp: "text",
  contains: "texts",
  startsWith: "texts",
  endsWith: "texts",
  match: "text",
  matchBoolean: "text",
} as const;

/** The values of `equality`. */
export type Equality =
  | "="
  | "=="
  | "EQUAL"
  | "!="
  | "<>"
  | "NOT EQUAL"
  | ">"
  | "GREATER THAN"
  | ">="
  | "GREATER THAN OR EQUAL"
  | "<"
  | "LESS THAN"
  | "<="
  | "LESS THAN OR EQUAL"
  | "<=>"
  | "IN"
  | "NOT IN"
  | "BETWEEN"
  | "NOT BETWEEN"
  | "IS NULL"
  | "IS NOT NULL"
  | "LIKE"
  | "NOT LIKE"
  | "LIKE_RAW"
  | "NOT LIKE_RAW"
  | "REGEXP"
  | "NOT REGEXP"
  | "CONTAINS"
  | "STARTS WITH"
  | "ENDS WITH"
  | "MATCH"
  | "FULLTEXT"
  | "MATCH_BOOLEAN";

/** The values of `aggregate`. */
export type AggregateName = "COUNT" | "COUNT_DISTINCT" | "SUM" | "AVG" | "MIN" | "MAX";

/** The codes of errors that the API returns. */
export type ApiErrorCode =
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
  | "resync_required"
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
  | "changes_unavailable"
  | "lock_timeout"
  | "storage_unavailable"
  | "query_timeout"
  | "origin_timeout"
  | "storage_full";
