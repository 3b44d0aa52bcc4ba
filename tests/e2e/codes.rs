//! Which error codes are retryable. `ledger.rs` checks at the end of a whole run that each code was returned.

use crate::host::Host;
use shared::error::ErrorCode;

cases! {
    Own: [what_is_retryable_is_what_passes_by_itself],
}

async fn what_is_retryable_is_what_passes_by_itself(_: Host) {
    for code in ErrorCode::ALL {
        let passes = match code {
            // The client's statement is too slow, and would be again.
            ErrorCode::QueryTimeout => false,
            // A setting of MariaDB or of the origin must change first.
            ErrorCode::ChangesUnavailable => false,
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
