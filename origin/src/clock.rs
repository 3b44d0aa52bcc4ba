//! The wall clock, in the unit of tokens.

use std::time::{SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970; 0 on a machine whose clock stands before that.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}
