//! The members of an ENUM or SET, in one text. As a string each, short members would take ten times their bytes.

use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::sync::OnceLock;

#[derive(Clone, Debug, Default)]
pub struct Members {
    text: Box<str>,
    /// The end of each member in `text`.
    ends: Box<[u32]>,
    /// The indexes of the members in the order of [`Likeness::Exact`], made when first needed: a request may look for
    /// 100,000 values, and comparing each with up to 16,000 members takes minutes.
    sorted: OnceLock<Box<[u32]>>,
}

/// The length above which no text names a member: MariaDB's members have 255 characters at most.
const NAMING_MAX_BYTES: usize = 16 * 255;

/// How a text may differ from a member that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    Exact,
    /// Trailing spaces may differ.
    Padded,
    /// The case of ASCII letters may differ too.
    AsciiCase,
    /// The case of all letters may differ too.
    Case,
}

impl Members {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|at| self.get(at))
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[start..self.ends[at] as usize]
    }

    pub fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }

    /// Finds a member that `text` names.
    pub fn find(&self, text: &str, likeness: Likeness) -> Option<usize> {
        if text.trim_end_matches(' ').len() > NAMING_MAX_BYTES {
            return None;
        }
        let sorted = self.sorted();
        let first = sorted.partition_point(|at| likeness.compare(self.get(*at as usize), text) == Ordering::Less);
        let found = *sorted.get(first)? as usize;
        (likeness.compare(self.get(found), text) == Ordering::Equal).then_some(found)
    }

    fn sorted(&self) -> &[u32] {
        self.sorted.get_or_init(|| {
            let mut indexes: Vec<u32> = (0u32..).take(self.ends.len()).collect();
            indexes.sort_by_cached_key(|at| {
                let member = self.get(*at as usize);
                let padded = member.trim_end_matches(' ');
                (padded.to_lowercase(), padded.to_ascii_lowercase(), member.to_owned())
            });
            indexes.into()
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.text.len() + 2 * size_of_val(&*self.ends)
    }
}

impl Likeness {
    /// Texts that are equal for one likeness are equal for those that follow it. So all can use one order, which
    /// compares without case first.
    fn compare(self, one: &str, other: &str) -> Ordering {
        let (bare, other_bare) = (one.trim_end_matches(' '), other.trim_end_matches(' '));
        let of_ascii = || {
            let [one, other] = [bare, other_bare].map(|text| text.bytes().map(|byte| byte.to_ascii_lowercase()));
            one.cmp(other)
        };
        let of_case = match bare.is_ascii() && other_bare.is_ascii() {
            true => of_ascii(),
            false => bare.to_lowercase().cmp(&other_bare.to_lowercase()),
        };
        match self {
            Self::Case => of_case,
            Self::AsciiCase => of_case.then_with(of_ascii),
            Self::Padded => of_case.then_with(of_ascii).then_with(|| bare.cmp(other_bare)),
            Self::Exact => of_case.then_with(of_ascii).then_with(|| one.cmp(other)),
        }
    }
}

impl PartialEq for Members {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.ends) == (&other.text, &other.ends)
    }
}

impl Eq for Members {}

impl<T: AsRef<str>> FromIterator<T> for Members {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for member in members {
            text.push_str(member.as_ref());
            // MariaDB writes a type in far less than 4 GiB.
            let Ok(end) = u32::try_from(text.len()) else {
                break;
            };
            ends.push(end);
        }
        Self { text: text.into(), ends: ends.into(), sorted: OnceLock::new() }
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_by_each_likeness() {
        let members: Members = ["open", "Été", "OPEN", "b c"].into_iter().collect();
        for (text, exact, padded, ascii_case, case) in [
            ("open", Some("open"), Some("open"), Some("OPEN"), Some("OPEN")),
            ("open ", None, Some("open"), Some("OPEN"), Some("OPEN")),
            ("B C", None, None, Some("b c"), Some("b c")),
            ("ÉTÉ", None, None, None, Some("Été")),
            ("b", None, None, None, None),
            ("zzz", None, None, None, None),
        ] {
            let all = [Likeness::Exact, Likeness::Padded, Likeness::AsciiCase, Likeness::Case];
            let found = all.map(|likeness| members.find(text, likeness).map(|at| members.get(at)));
            assert_eq!(found, [exact, padded, ascii_case, case], "{text}");
        }
    }
}
