//! Positions in the binary log: for each replication domain, the GTID of the last transaction before the position.

use super::position::{Gtid, gtids, list};
use std::fmt;

/// At most one GTID for each domain, ordered by domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPosition(Vec<Gtid>);

impl LogPosition {
    /// Parses MariaDB's form, such as `0-1-234,1-2-5`. An empty text is the beginning of the log.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let mut gtids = gtids(text)?;
        gtids.sort_unstable_by_key(|gtid| gtid.domain);
        Some(Self(gtids))
    }

    pub fn of(gtid: Gtid) -> Self {
        Self(vec![gtid])
    }

    /// The GTID of a position of one domain.
    pub fn only(&self) -> Option<Gtid> {
        match self.0.as_slice() {
            [gtid] => Some(*gtid),
            _ => None,
        }
    }

    pub fn advance(&mut self, gtid: Gtid) {
        match self.0.binary_search_by_key(&gtid.domain, |known| known.domain) {
            Ok(at) => self.0[at] = gtid,
            Err(at) => self.0.insert(at, gtid),
        }
    }

    /// Whether the transaction is before the position.
    pub fn includes(&self, gtid: Gtid) -> bool {
        self.0.iter().any(|known| known.domain == gtid.domain && known.number >= gtid.number)
    }

    /// Whether every transaction before `other` is before this position too.
    pub fn is_at_or_after(&self, other: &Self) -> bool {
        other.0.iter().all(|gtid| self.includes(*gtid))
    }

    pub fn gtids(&self) -> &[Gtid] {
        &self.0
    }

    pub(super) fn domains(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|gtid| gtid.domain)
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_advances_by_domain() {
        let mut position = LogPosition::parse("1-2-5,0-1-7").unwrap();
        assert_eq!(position.to_string(), "0-1-7,1-2-5");
        let before = position.clone();
        for gtid in [Gtid { domain: 0, server: 9, number: 8 }, Gtid { domain: 3, server: 1, number: 1 }] {
            assert!(!position.includes(gtid));
            position.advance(gtid);
            assert!(position.includes(gtid));
        }
        assert_eq!(position.to_string(), "0-9-8,1-2-5,3-1-1");
        assert!(position.is_at_or_after(&before) && !before.is_at_or_after(&position));
        assert!(before.is_at_or_after(&LogPosition::parse("").unwrap()));
        assert_eq!(LogPosition::parse("0-1"), None);
    }
}
