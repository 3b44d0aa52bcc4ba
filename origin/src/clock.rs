//! The wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970; 0 if the clock is set to before 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs())
}

/// Returns a text such as `2026-11-20T12:00:00Z`; the digits of `seconds` for a time after the year 9999.
pub fn utc(seconds: u64) -> String {
    const YEAR_10000: u64 = 253_402_300_800;
    match seconds {
        YEAR_10000.. => seconds.to_string(),
        _ => humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn a_time_is_shown_as_utc_and_one_that_has_no_such_form_as_a_number() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (253_402_300_800, "253402300800"),
            (u64::MAX, "18446744073709551615"),
        ] {
            assert_eq!(utc(seconds), shown);
        }
    }
}
