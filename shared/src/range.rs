//! Parses `Range` headers (RFC 9110, section 14) of requests for files.

use crate::error::{ErrorCode, Problem};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    Whole,
    Part(Range<u64>),
    /// The range contains no byte of the file: the response is a 416.
    Beyond,
}

/// Returns the bytes that `range` selects. A malformed range, another unit than bytes, or several ranges select the
/// whole file, as the RFC allows.
pub fn extent(range: &str, size: u64) -> Extent {
    let Some((unit, spec)) = range.split_once('=') else {
        return Extent::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Extent::Whole;
    }
    let Some((first, last)) = spec.trim_matches([' ', '\t']).split_once('-') else {
        return Extent::Whole;
    };
    match (first, last) {
        ("", suffix) => match number(suffix) {
            Some(0) => Extent::Beyond,
            // An empty file has no last bytes.
            Some(_) if size == 0 => Extent::Whole,
            Some(length) => Extent::Part(size.saturating_sub(length)..size),
            None => Extent::Whole,
        },
        (first, last) => {
            let first = number(first);
            let last = match last {
                "" => Some(u64::MAX),
                last => number(last),
            };
            match (first, last) {
                (Some(first), Some(last)) if last < first => Extent::Whole,
                (Some(first), Some(_)) if first >= size => Extent::Beyond,
                (Some(first), Some(last)) => Extent::Part(first..last.saturating_add(1).min(size)),
                _ => Extent::Whole,
            }
        }
    }
}

pub fn beyond(size: u64) -> Problem {
    Problem::new(ErrorCode::RangeNotSatisfiable, format!("The file has {size} bytes; the range begins behind them."))
}

fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_given_as_far_as_the_file_goes() {
        for (range, part) in [
            ("bytes=0-0", 0..1),
            ("bytes=0-9", 0..10),
            ("bytes=2-4", 2..5),
            ("bytes=2-", 2..10),
            ("bytes=9-", 9..10),
            ("bytes=0-99999", 0..10),
            ("bytes=5-99999999999999999999999", 5..10),
            ("bytes=-1", 9..10),
            ("bytes=-10", 0..10),
            ("bytes=-99999999999999999999999", 0..10),
            ("Bytes= 2-4 ", 2..5),
            ("bytes=18446744073709551615-", 10..10),
        ] {
            let expected = if part.is_empty() { Extent::Beyond } else { Extent::Part(part) };
            assert_eq!(extent(range, 10), expected, "{range}");
        }
    }

    #[test]
    fn what_begins_behind_the_end_is_beyond_it() {
        for (range, size) in
            [("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=0-0", 0)]
        {
            assert_eq!(extent(range, size), Extent::Beyond, "{range}");
        }
        assert_eq!(extent("bytes=-5", 0), Extent::Whole);
    }

    #[test]
    fn everything_else_is_answered_whole() {
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=--1",
            "bytes=1",
            "bytes=4-2",
            "bytes=a-b",
            "bytes=1-b",
            "bytes=+1-2",
            "bytes=1 -2",
            "bytes=0x1-2",
            "bytes=0-1,3-4",
            "bytes=0-1, 3-4",
            "bytes=0-1, bytes=3-4",
            "bytes:0-1",
            "items=0-1",
            "bytes=0-1-2",
            "bytes=\u{663}-\u{664}",
        ] {
            assert_eq!(extent(range, 10), Extent::Whole, "{range}");
        }
    }
}
