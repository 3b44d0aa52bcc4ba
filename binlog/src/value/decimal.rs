//! DECIMAL: groups of nine digits in four bytes, in big-endian order; the groups at both ends may be smaller.

use crate::BrokenRule;
use crate::bytes::big;
use std::fmt::{self, Write as _};

/// Number of bytes of a group, by its number of digits.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
const GROUP_DIGITS: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal<'a> {
    stored: &'a [u8],
    precision: u8,
    scale: u8,
}

impl<'a> Decimal<'a> {
    pub(crate) fn stored_bytes(precision: usize, scale: usize) -> usize {
        let part = |digits: usize| digits / GROUP_DIGITS * 4 + group_bytes(digits % GROUP_DIGITS);
        part(precision.saturating_sub(scale)) + part(scale)
    }

    pub(crate) fn new(stored: &'a [u8], precision: u8, scale: u8) -> Result<Self, BrokenRule> {
        let decimal = Self { stored, precision, scale };
        let fits = |(group, digits): (u64, usize)| group < 10_u64.pow(u32::try_from(digits).unwrap_or_default());
        if decimal.groups().all(fits) {
            Ok(decimal)
        } else {
            Err(BrokenRule::Format("a DECIMAL has a group of too many digits"))
        }
    }

    pub fn is_negative(&self) -> bool {
        // The sign bit is inverted, so that bytes compare as numbers do.
        self.stored.first().is_some_and(|first| first & 0x80 == 0)
    }

    fn integer_digits(&self) -> usize {
        usize::from(self.precision).saturating_sub(usize::from(self.scale))
    }

    /// Returns each group with its number of digits: first of the integer part, then of the fraction.
    fn groups(&self) -> impl Iterator<Item = (u64, usize)> + 'a {
        let (integer, fraction) = (self.integer_digits(), usize::from(self.scale));
        let whole = |digits: usize| std::iter::repeat_n(GROUP_DIGITS, digits / GROUP_DIGITS);
        let sizes = std::iter::once(integer % GROUP_DIGITS)
            .chain(whole(integer))
            .chain(whole(fraction))
            .chain(std::iter::once(fraction % GROUP_DIGITS));
        let (mut rest, inverted) = (self.stored, if self.is_negative() { 0xFF } else { 0 });
        let mut first_mask = 0x80;
        sizes.filter(|digits| *digits > 0).map(move |digits| {
            let (group, after) = rest.split_at_checked(group_bytes(digits)).unwrap_or((rest, &[]));
            rest = after;
            let mut bytes = [0; 4];
            for (byte, stored) in bytes.iter_mut().zip(group) {
                *byte = stored ^ inverted ^ std::mem::take(&mut first_mask);
            }
            (big(bytes.get(..group.len()).unwrap_or_default()), digits)
        })
    }
}

fn group_bytes(digits: usize) -> usize {
    GROUP_BYTES.get(digits).copied().unwrap_or_default()
}

impl fmt::Display for Decimal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_char('-')?;
        }
        let mut integer_digits = self.integer_digits();
        let mut has_digit = false;
        let mut in_fraction = false;
        for (group, digits) in self.groups() {
            if integer_digits > 0 {
                integer_digits = integer_digits.saturating_sub(digits);
                if has_digit {
                    write!(f, "{group:0digits$}")?;
                } else if group > 0 {
                    write!(f, "{group}")?;
                    has_digit = true;
                }
            } else {
                if !in_fraction {
                    f.write_str(if has_digit { "." } else { "0." })?;
                    in_fraction = true;
                }
                write!(f, "{group:0digits$}")?;
            }
        }
        if has_digit || in_fraction { Ok(()) } else { f.write_char('0') }
    }
}
