//! The table of error codes, copied from the interface and compared with the enum. `ledger.rs` checks at the end of a
//! whole run that each code was returned.

use crate::host::Host;
use shared::error::ErrorCode;
use std::collections::BTreeSet;

cases! {
    Own: [the_enum_is_the_interfaces_table, what_is_retryable_is_what_passes_by_itself],
}

const TABLE: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "invalid_request",
            "invalid_json",
            "invalid_query_option",
            "invalid_filter",
            "invalid_body",
            "unknown_field",
            "invalid_identifier",
            "sql_error",
            "fulltext_index_missing",
            "ambiguous_relation",
            "invalid_media",
        ],
    ),
    (401, &["missing_key", "invalid_key", "expired_key", "revoked_key"]),
    (403, &["full_access_required", "role_forbids", "permission_denied"]),
    (404, &["route_not_found", "database_not_found", "table_not_found", "record_not_found", "media_not_found"]),
    (405, &["method_not_allowed"]),
    (
        409,
        &[
            "duplicate_key",
            "foreign_key_violation",
            "rejected_by_database",
            "media_exists",
            "too_many_affected",
            "deadlock",
            "idempotency_in_progress",
            "upload_offset_mismatch",
        ],
    ),
    (412, &["precondition_failed"]),
    (413, &["body_too_large"]),
    (414, &["uri_too_long"]),
    (415, &["unsupported_media_type"]),
    (416, &["range_not_satisfiable"]),
    (422, &["invalid_value", "idempotency_mismatch"]),
    (423, &["upload_locked"]),
    (429, &["rate_limited"]),
    (431, &["headers_too_large"]),
    (500, &["internal"]),
    (502, &["bad_origin_answer", "origin_unreachable"]),
    (
        503,
        &[
            "origin_unavailable",
            "database_unavailable",
            "overloaded",
            "lock_timeout",
            "storage_unavailable",
            "issuer_unavailable",
        ],
    ),
    (504, &["query_timeout", "origin_timeout"]),
    (507, &["storage_full"]),
];

async fn the_enum_is_the_interfaces_table(_: Host) {
    let documented: BTreeSet<(u16, &str)> =
        TABLE.iter().flat_map(|(status, codes)| codes.iter().map(|code| (*status, *code))).collect();
    let known: BTreeSet<(u16, &str)> = ErrorCode::ALL.iter().map(|code| (code.status(), code.as_str())).collect();
    assert_eq!(known, documented);
}

async fn what_is_retryable_is_what_passes_by_itself(_: Host) {
    for code in ErrorCode::ALL {
        let passes = match code {
            // The client's statement is too slow, and would be again.
            ErrorCode::QueryTimeout => false,
            // Waiting does not create free space.
            ErrorCode::StorageFull => false,
            ErrorCode::Deadlock
            | ErrorCode::IdempotencyInProgress
            | ErrorCode::UploadLocked
            | ErrorCode::RateLimited => true,
            _ => code.status() > 500,
        };
        assert_eq!(code.retryable(), passes, "{}", code.as_str());
    }
}
