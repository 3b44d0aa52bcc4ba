//! The wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns whole seconds since 1970; 0 if the clock is set to before 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}

/// Formats `seconds` since 1970 as UTC, such as `2026-11-20T12:00:00Z`. Returns the digits of `seconds` if the system's
/// time type can't represent that time.
#[must_use]
pub fn utc(seconds: u64) -> String {
    match UNIX_EPOCH.checked_add(Duration::from_secs(seconds)) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => seconds.to_string(),
    }
}
