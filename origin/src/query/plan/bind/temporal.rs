//! Parses dates and times in MariaDB's own form or in RFC 3339's, and converts RFC 3339 times to UTC. Checks every
//! part: MariaDB only warns when a column is compared with an invalid date, and finds the wrong records.

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// Maximum digits of a fraction of a second. Further digits are cut off, as MariaDB does.
const FRACTION_MAX_DIGITS: usize = 6;
const TIME_MAX_HOURS: u16 = 838;

const TEXT_BYTES: usize = "YYYY-MM-DD hh:mm:ss".len();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeOfDay {
    /// Values to store lose the time of day: a DATE has none.
    Dropped,
    /// Filters and keys keep a time of day other than midnight: a DATE can be compared with a time.
    Kept,
}

pub(super) fn date(text: &str, time_of_day: TimeOfDay) -> Option<String> {
    let moment = Moment::parse(text)?.at_utc()?;
    match moment.clock {
        Some(clock) if time_of_day == TimeOfDay::Kept && !clock.is_midnight() => Some(moment.text()),
        _ => Some(Moment { clock: None, ..moment }.text()),
    }
}

pub(super) fn datetime(text: &str) -> Option<String> {
    Some(Moment::parse(text)?.at_utc()?.text())
}

/// Reads `[-]HHH:MM[:SS[.f]][Z]`, or the time of day, in UTC, of a date and time.
pub(super) fn time(text: &str) -> Option<String> {
    if let Some(moment) = Moment::parse(text) {
        let mut text = String::with_capacity(TEXT_BYTES);
        moment.at_utc()?.clock?.write(&mut text);
        return Some(text);
    }
    let mut reader = TemporalReader(text.trim());
    let mut text = String::with_capacity(TEXT_BYTES);
    if reader.skip("-") {
        text.push('-');
    }
    let clock = reader.clock(3)?;
    reader.skip_one_of("Zz");
    clock.write(&mut text);
    (reader.0.is_empty() && clock.hour <= TIME_MAX_HOURS && clock.second <= 59).then_some(text)
}

fn write_digits(text: &mut String, number: u16, least: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number);
    for _ in digits.len()..least {
        text.push('0');
    }
    text.push_str(digits);
}

#[derive(Clone, Copy)]
struct Day {
    year: u16,
    month: u16,
    day: u16,
}

#[derive(Clone, Copy)]
struct Clock<'a> {
    hour: u16,
    minute: u16,
    second: u16,
    fraction: &'a str,
}

#[derive(Clone, Copy)]
struct Moment<'a> {
    day: Day,
    clock: Option<Clock<'a>>,
    /// The offset in seconds east of UTC.
    offset: i64,
}

impl Day {
    fn is_valid(self) -> bool {
        // MariaDB's year 0 is not a leap year.
        let leap = self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let days = match self.month {
            2 if leap && self.year != 0 => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        self.month <= 12 && self.day <= days
    }

    fn write(self, text: &mut String) {
        write_digits(text, self.year, 4);
        text.push('-');
        write_digits(text, self.month, 2);
        text.push('-');
        write_digits(text, self.day, 2);
    }
}

impl Clock<'_> {
    fn is_midnight(self) -> bool {
        (self.hour, self.minute, self.second) == (0, 0, 0) && self.fraction.bytes().all(|byte| byte == b'0')
    }

    fn write(self, text: &mut String) {
        write_digits(text, self.hour, 2);
        text.push(':');
        write_digits(text, self.minute, 2);
        text.push(':');
        write_digits(text, self.second, 2);
        if !self.fraction.is_empty() {
            text.push('.');
            text.push_str(self.fraction);
        }
    }
}

impl<'a> Moment<'a> {
    /// Reads `YYYY-MM-DD[( |T)HH:MM[:SS[.f]][Z|±HH[[:]MM]]]`; month, day and parts of the time may have one digit.
    fn parse(text: &'a str) -> Option<Self> {
        let mut reader = TemporalReader(text.trim());
        let day = reader.day()?;
        let mut moment = Self { day, clock: None, offset: 0 };
        if reader.skip_one_of(" Tt") {
            let clock = reader.clock(2)?;
            let zone = reader.zone();
            moment.offset = zone.unwrap_or_default();
            moment.clock = Some(Clock {
                // RFC 3339 has leap seconds, MariaDB has not.
                second: match (clock.second, zone) {
                    (60, Some(_)) => 59,
                    (60, None) => return None,
                    (second, _) => second,
                },
                ..clock
            });
            if clock.second == 60 && !moment.at_utc()?.may_precede_leap_second() {
                return None;
            }
        }
        let hours = moment.clock.map_or(0, |clock| clock.hour);
        (reader.0.is_empty() && day.is_valid() && hours <= 23).then_some(moment)
    }

    /// Whether second 60 may follow: leap seconds occur at 23:59 UTC on June 30 or December 31.
    fn may_precede_leap_second(self) -> bool {
        let clock = self.clock.map(|clock| (clock.hour, clock.minute));
        clock == Some((23, 59)) && matches!((self.day.month, self.day.day), (6, 30) | (12, 31))
    }

    /// Converts to UTC. `None` if the offset is not 0 and the date is not a calendar day, or the result is outside of
    /// the years 0 to 9999.
    fn at_utc(self) -> Option<Self> {
        let Some(clock) = self.clock.filter(|_| self.offset != 0) else {
            return Some(self);
        };
        let small = |number: u16| i8::try_from(number).ok();
        let local = DateTime::new(
            i16::try_from(self.day.year).ok()?,
            small(self.day.month)?,
            small(self.day.day)?,
            small(clock.hour)?,
            small(clock.minute)?,
            small(clock.second)?,
            0,
        );
        let utc = local.ok()?.checked_sub(SignedDuration::from_secs(self.offset)).ok()?;
        Some(Self {
            day: Day {
                year: u16::try_from(utc.year()).ok()?,
                month: utc.month().unsigned_abs().into(),
                day: utc.day().unsigned_abs().into(),
            },
            clock: Some(Clock {
                hour: utc.hour().unsigned_abs().into(),
                minute: utc.minute().unsigned_abs().into(),
                ..clock
            }),
            offset: 0,
        })
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(TEXT_BYTES);
        self.day.write(&mut text);
        if let Some(clock) = self.clock {
            text.push(' ');
            clock.write(&mut text);
        }
        text
    }
}

struct TemporalReader<'a>(&'a str);

impl<'a> TemporalReader<'a> {
    fn skip(&mut self, mark: &str) -> bool {
        let rest = self.0.strip_prefix(mark);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn skip_one_of(&mut self, marks: &str) -> bool {
        let rest = self.0.strip_prefix(|c: char| marks.contains(c));
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn digits(&mut self) -> &'a str {
        let end = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits
    }

    /// Reads `least` to `most` digits; `most` is at most 4, to fit a `u16`.
    fn number(&mut self, least: usize, most: usize) -> Option<u16> {
        let digits = self.digits();
        let number = || digits.bytes().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
        (least..=most).contains(&digits.len()).then(number)
    }

    fn day(&mut self) -> Option<Day> {
        let year = self.number(4, 4)?;
        let month = self.skip("-").then(|| self.number(1, 2))??;
        let day = self.skip("-").then(|| self.number(1, 2))??;
        Some(Day { year, month, day })
    }

    fn clock(&mut self, hour_max_digits: usize) -> Option<Clock<'a>> {
        let hour = self.number(1, hour_max_digits)?;
        let minute = self.skip(":").then(|| self.number(1, 2))??;
        let second = if self.skip(":") { self.number(1, 2)? } else { 0 };
        let fraction = if self.skip(".") { self.digits() } else { "" };
        let fraction = &fraction[..fraction.len().min(FRACTION_MAX_DIGITS)];
        (minute <= 59 && second <= 60).then_some(Clock { hour, minute, second, fraction })
    }

    /// Reads `Z`, `±HH`, `±HHMM` or `±HH:MM` as seconds east of UTC.
    fn zone(&mut self) -> Option<i64> {
        if self.skip_one_of("Zz") {
            return Some(0);
        }
        let east = match self.0.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let mut reader = Self(&self.0[1..]);
        let digits = reader.digits();
        let (hours, minutes) = match digits.len() {
            2 if reader.skip(":") => (digits, reader.digits()),
            2 => (digits, "00"),
            4 => digits.split_at(2),
            _ => return None,
        };
        let part = |text: &str, most| {
            let number = text.parse::<i64>().ok()?;
            (text.len() == 2 && number <= most).then_some(number)
        };
        let offset = (part(hours, 23)? * 60 + part(minutes, 59)?) * 60;
        self.0 = reader.0;
        Some(east * offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc_3339_becomes_utc() {
        for (text, utc) in [
            ("2026-11-20T08:36:16Z", "2026-11-20 08:36:16"),
            ("2026-11-20t08:36:16z", "2026-11-20 08:36:16"),
            ("2026-11-20 08:36:16+00:00", "2026-11-20 08:36:16"),
            ("2026-11-20T08:36:16.25+02:00", "2026-11-20 06:36:16.25"),
            ("2026-11-20T08:36:16-0530", "2026-11-20 14:06:16"),
            ("2026-11-20T08:36+02", "2026-11-20 06:36:00"),
            ("2026-01-01T00:30:00+01:00", "2025-12-31 23:30:00"),
            ("2024-02-28T23:30:00-01:00", "2024-02-29 00:30:00"),
            ("2016-12-31T23:59:60Z", "2016-12-31 23:59:59"),
            ("2016-12-31T15:59:60.75-08:00", "2016-12-31 23:59:59.75"),
            ("2026-11-20T08:36:16.123456789Z", "2026-11-20 08:36:16.123456"),
            ("2026-11-20 08:36:16", "2026-11-20 08:36:16"),
            ("2026-1-5 8:6:1", "2026-01-05 08:06:01"),
            ("2026-11-20", "2026-11-20"),
            ("0000-00-00 00:00:00", "0000-00-00 00:00:00"),
            ("0000-00-00T00:00:00Z", "0000-00-00 00:00:00"),
            ("2026-00-10", "2026-00-10"),
        ] {
            assert_eq!(datetime(text).as_deref(), Some(utc), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "nonsense",
            "2026-02-30",
            "2025-02-29",
            "1900-02-29",
            "0000-02-29",
            "2026-13-01",
            "2026-11-31",
            "26-11-20",
            "20261120",
            "2026-11-20T",
            "2026-11-20T24:00:00Z",
            "2026-11-20T08:60:00Z",
            "2026-11-20 08:36:60",
            "2026-11-20T08:36:60Z",
            "2026-11-20T23:59:60Z",
            "2016-12-31T23:59:60+01:00",
            "2026-11-20T08:36:16+24:00",
            "2026-11-20T08:36:16+99:00",
            "2026-11-20T08:36:16+2",
            "2026-11-20T08:36:16Zulu",
            "2026-00-10T00:00:00+02:00",
            "0000-01-01T00:00:00+02:00",
            "9999-12-31T23:59:59-01:00",
            "２026-11-20",
        ] {
            assert_eq!(datetime(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_has_hours_only_in_a_comparison() {
        let noon = "2026-11-20T14:00:00+02:00";
        assert_eq!(date(noon, TimeOfDay::Dropped).as_deref(), Some("2026-11-20"));
        assert_eq!(date(noon, TimeOfDay::Kept).as_deref(), Some("2026-11-20 12:00:00"));
        assert_eq!(date("2026-11-20T00:00:00.000Z", TimeOfDay::Kept).as_deref(), Some("2026-11-20"));
    }

    #[test]
    fn times_reach_from_minus_838_to_838_hours() {
        for (text, read) in [
            ("-838:59:59.999999", "-838:59:59.999999"),
            ("8:05", "08:05:00"),
            ("10:11:12.5Z", "10:11:12.5"),
            ("2026-11-20T10:00:00+02:00", "08:00:00"),
        ] {
            assert_eq!(time(text).as_deref(), Some(read), "{text}");
        }
        for text in [
            "",
            "-",
            "839:00:00",
            "1000:00:00",
            "10",
            "10:60",
            "10:00:60",
            "2026-11-20",
            "1 02:03:04",
            "10:00:00+02:00",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[0-9TtZz:. +-]{0,30}|\\PC{0,20}") {
            let _ = (datetime(&text), date(&text, TimeOfDay::Kept), time(&text));
        }
    }
}
