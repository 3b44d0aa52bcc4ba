//! The errors of requests for changes that are not the feed's own.

use crate::changes::{ChangesError, TokenFault};
use crate::database::log_reader::ResyncReason;
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
