//! The errors of requests for changes that are not the feed's own, and the event of an error.

use super::events::write_event;
use crate::changes::{ChangesError, TokenFault};
use crate::database::log_reader::ResyncReason;
use bytes::Bytes;
use shared::envelope::write_string;
use shared::error::{ErrorCode, Problem};

pub(super) fn token_error(fault: TokenFault) -> ChangesError {
    let (message, hint) = match fault {
        TokenFault::SchemaChanged => return ChangesError::Resync(ResyncReason::SchemaChanged),
        TokenFault::RoleChanged => return ChangesError::Resync(ResyncReason::RoleChanged),
        TokenFault::Foreign => (
            "The option since is no token of this feed.",
            "Send the next of an earlier answer as it was, or leave since out to begin now.",
        ),
        TokenFault::OtherSubscriptions => (
            "The token in the option since is of other subscriptions.",
            "Send query, selectFields and ids as in the request that returned the token.",
        ),
    };
    Problem::new(ErrorCode::InvalidQueryOption, message).with_hint(hint).into()
}

pub(super) fn revoked() -> Problem {
    Problem::new(ErrorCode::RevokedKey, "The key or role was revoked or changed while the request waited.")
}

/// The event with which a stream ends that can't go on.
pub(super) fn error_event(error: ChangesError) -> Bytes {
    let mut out = Vec::new();
    match error.resync_reason() {
        Some(reason) => {
            let json = format!(r#"{{"reason":"{}"}}"#, reason.as_str());
            write_event("resync", None, json.as_bytes(), &mut out);
        }
        None => {
            let problem = error.into_problem();
            let mut json = br#"{"code":"#.to_vec();
            write_string(&mut json, problem.code().as_str());
            json.extend_from_slice(br#","message":"#);
            write_string(&mut json, problem.message());
            json.push(b'}');
            write_event("failed", None, &json, &mut out);
        }
    }
    Bytes::from(out)
}
