//! Dates and times in the formats since MySQL 5.6, and in those of MariaDB 5.3 (`old`). Tables that were created then,
//! or with `mysql56_temporal_format=OFF`, still have the old formats.

use crate::BrokenRule;
use crate::bytes::{big, little};
use std::fmt;

const MICROS: u64 = 1_000_000;
/// Each TIME is shorter than this many seconds: 839 hours.
const TIME_END_SECONDS: u64 = 3_020_400;

/// A year; 0 is `0000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Year(pub u16);

impl Year {
    pub(crate) fn new(stored: &[u8]) -> Self {
        match stored.first().copied().unwrap_or_default() {
            0 => Self(0),
            since_1900 => Self(1900 + u16::from(since_1900)),
        }
    }
}

impl fmt::Display for Year {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}", self.0)
    }
}

/// A date, whose month and day may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

impl Date {
    pub(crate) fn new(stored: &[u8]) -> Result<Self, BrokenRule> {
        let packed = little(stored);
        Self::checked(packed >> 9, packed >> 5 & 15, packed & 31)
    }

    fn checked(year: u64, month: u64, day: u64) -> Result<Self, BrokenRule> {
        if year > 9_999 || month > 12 || day > 31 {
            return Err(BrokenRule::Format("a date is not between 0000-00-00 and 9999-12-31"));
        }
        Ok(Self { year: narrow(year), month: narrow(month), day: narrow(day) })
    }

    fn of_day(days_since_1970: u64) -> Self {
        // Years that begin in March, in eras of 400 years (146,097 days), the first at year 0.
        let days = days_since_1970 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + u64::from(month <= 2);
        Self { year: narrow(year), month: narrow(month), day: narrow(day) }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    pub is_negative: bool,
    pub hours: u16,
    pub minutes: u8,
    pub seconds: u8,
    pub micros: u32,
    /// Fraction digits of the column.
    pub digits: u8,
}

impl Time {
    pub(crate) fn new(stored: &[u8], digits: u8) -> Result<Self, BrokenRule> {
        let (whole, fraction) = stored.split_at_checked(3).ok_or(BrokenRule::EndsWithin("a TIME"))?;
        // Half of the range is added, so that bytes compare as times do; a negative time is the complement of both
        // parts together, with the fraction in its own unit.
        let range = 1_u64 << (8 * stored.len());
        let packed = big(whole) << (8 * fraction.len()) | big(fraction);
        let is_negative = packed < range / 2;
        let size = if is_negative { range / 2 - packed } else { packed - range / 2 };
        let unit = 1_u64 << (8 * fraction.len());
        let (whole, micros) = (size / unit, micros(size % unit, fraction.len()));
        Self::checked(is_negative, whole >> 12, whole >> 6 & 63, whole & 63, micros, digits)
    }

    pub(crate) fn old(stored: &[u8], digits: u8) -> Result<Self, BrokenRule> {
        if digits == 0 {
            // Decimal digits HHMMSS, with a sign.
            let number = (little(stored) << 40).cast_signed() >> 40;
            let size = number.unsigned_abs();
            return Self::checked(number < 0, size / 10_000, size / 100 % 100, size % 100, 0, digits);
        }
        let unit = 10_u64.pow(u32::from(digits));
        let number = big(stored);
        let zero = TIME_END_SECONDS * unit;
        let size = number.abs_diff(zero);
        let (seconds, fraction) = (size / unit, size % unit);
        let micros = fraction * (MICROS / unit);
        Self::checked(number < zero, seconds / 3_600, seconds / 60 % 60, seconds % 60, micros, digits)
    }

    fn checked(
        is_negative: bool,
        hours: u64,
        minutes: u64,
        seconds: u64,
        micros: u64,
        digits: u8,
    ) -> Result<Self, BrokenRule> {
        if hours > 838 || minutes > 59 || seconds > 59 || micros >= MICROS {
            return Err(BrokenRule::Format("a TIME is not between -838:59:59 and 838:59:59"));
        }
        let (minutes, seconds) = (narrow(minutes), narrow(seconds));
        Ok(Self { is_negative, hours: narrow(hours), minutes, seconds, micros: narrow(micros), digits })
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hours, self.minutes, self.seconds)?;
        write_fraction(f, self.micros, self.digits)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTime {
    pub date: Date,
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    pub micros: u32,
    /// Fraction digits of the column.
    pub digits: u8,
}

impl DateTime {
    const ZERO: u64 = 0x80_0000_0000;

    pub(crate) fn new(stored: &[u8], digits: u8) -> Result<Self, BrokenRule> {
        let (whole, fraction) = stored.split_at_checked(5).ok_or(BrokenRule::EndsWithin("a DATETIME"))?;
        let packed = big(whole).checked_sub(Self::ZERO).ok_or(BrokenRule::Format("a DATETIME is negative"))?;
        let (months, time) = (packed >> 22, packed & 0x1_FFFF);
        let date = Date::checked(months / 13, months % 13, packed >> 17 & 31)?;
        Self::checked(date, [time >> 12, time >> 6 & 63, time & 63], micros(big(fraction), fraction.len()), digits)
    }

    pub(crate) fn old(stored: &[u8], digits: u8) -> Result<Self, BrokenRule> {
        if digits == 0 {
            // Decimal digits YYYYMMDDHHMMSS.
            let number = little(stored);
            let pair = |place: u32| number / 10_u64.pow(place) % 100;
            let date = Date::checked(number / 10_u64.pow(10), pair(8), pair(6))?;
            return Self::checked(date, [pair(4), pair(2), pair(0)], 0, digits);
        }
        let unit = 10_u64.pow(u32::from(digits));
        let (seconds, fraction) = (big(stored) / unit, big(stored) % unit);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let date = Date::checked(days / 32 / 13, days / 32 % 13, days % 32)?;
        let time = [second / 3_600, second / 60 % 60, second % 60];
        Self::checked(date, time, fraction * (MICROS / unit), digits)
    }

    fn checked(date: Date, [hour, minute, second]: [u64; 3], micros: u64, digits: u8) -> Result<Self, BrokenRule> {
        if hour > 23 || minute > 59 || second > 59 || micros >= MICROS {
            return Err(BrokenRule::Format("a DATETIME has no time of a day"));
        }
        let (hour, minute, second) = (narrow(hour), narrow(minute), narrow(second));
        Ok(Self { date, hour, minute, second, micros: narrow(micros), digits })
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        write_fraction(f, self.micros, self.digits)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds since 1970, UTC; 0 is `0000-00-00 00:00:00`.
    pub seconds: u32,
    pub micros: u32,
    /// Fraction digits of the column.
    pub digits: u8,
}

impl Timestamp {
    pub(crate) fn new(stored: &[u8], digits: u8) -> Result<Self, BrokenRule> {
        let (seconds, fraction) = stored.split_at_checked(4).ok_or(BrokenRule::EndsWithin("a TIMESTAMP"))?;
        Self::checked(big(seconds), micros(big(fraction), fraction.len()), digits)
    }

    pub(crate) fn old(stored: &[u8], digits: u8) -> Result<Self, BrokenRule> {
        if digits == 0 {
            return Self::checked(little(stored), 0, digits);
        }
        let (seconds, fraction) = stored.split_at_checked(4).ok_or(BrokenRule::EndsWithin("a TIMESTAMP"))?;
        Self::checked(big(seconds), big(fraction) * (MICROS / 10_u64.pow(u32::from(digits))), digits)
    }

    fn checked(seconds: u64, micros: u64, digits: u8) -> Result<Self, BrokenRule> {
        if micros >= MICROS {
            return Err(BrokenRule::Format("a TIMESTAMP has a fraction of a second or more"));
        }
        Ok(Self { seconds: narrow(seconds), micros: narrow(micros), digits })
    }

    pub fn to_datetime(&self) -> DateTime {
        let (days, second) = (u64::from(self.seconds) / 86_400, u64::from(self.seconds) % 86_400);
        let date =
            if self.seconds == 0 && self.micros == 0 { Date { year: 0, month: 0, day: 0 } } else { Date::of_day(days) };
        DateTime {
            date,
            hour: narrow(second / 3_600),
            minute: narrow(second / 60 % 60),
            second: narrow(second % 60),
            micros: self.micros,
            digits: self.digits,
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_datetime().fmt(f)
    }
}

/// Returns microseconds. The unit of `fraction` depends on its bytes: a hundredth, a ten-thousandth or a millionth.
fn micros(fraction: u64, bytes: usize) -> u64 {
    match bytes {
        1 => fraction * 10_000,
        2 => fraction * 100,
        _ => fraction,
    }
}

fn write_fraction(f: &mut fmt::Formatter<'_>, micros: u32, digits: u8) -> fmt::Result {
    if digits == 0 {
        return Ok(());
    }
    let shown = micros / 10_u32.pow(6_u32.saturating_sub(u32::from(digits)));
    write!(f, ".{shown:0width$}", width = usize::from(digits))
}

/// Converts a number that is known to fit.
fn narrow<T: TryFrom<u64> + Default>(number: u64) -> T {
    T::try_from(number).unwrap_or_default()
}
