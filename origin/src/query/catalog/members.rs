//! The members of an ENUM or SET, in one text. As a string each, short members would take ten times their bytes.

use serde::{Serialize, Serializer};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    text: Box<str>,
    /// The end of each member in `text`.
    ends: Box<[u32]>,
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

    pub(super) fn memory_bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.ends)
    }
}

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
        Self { text: text.into(), ends: ends.into() }
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
