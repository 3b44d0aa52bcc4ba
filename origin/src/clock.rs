//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns whole seconds since 1970; 0 if the clock is set to before 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}
