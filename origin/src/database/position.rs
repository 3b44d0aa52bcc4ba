//! Positions in the sequence of a database's writes: on a Galera cluster the sequence number of a write set, otherwise
//! a list of GTIDs, one for each replication domain. A request with the `X-Selkie-Position` of a write in
//! `X-Selkie-After` sees the write, on whichever host it runs.

use super::connection::Connection;
use super::error::DbError;
use super::typed_rows;
use mysql_async::prelude::Queryable as _;
use shared::error::{ErrorCode, Problem};
use std::fmt;
use std::time::Duration;

/// Maximum wait for the primary or cluster node to reach the position of `X-Selkie-After`; the request then fails.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum wait for a replica to reach the position; the read then runs on the primary.
pub(super) const REPLICA_WAIT: Duration = Duration::from_millis(500);

/// The first and the longest pause between two queries for a host's position.
pub(super) const POLL_MIN: Duration = Duration::from_millis(5);
pub(super) const POLL_MAX: Duration = Duration::from_millis(80);

/// The maximum number of writes by which a position may be ahead: more than MariaDB makes within [`WAIT_TIMEOUT`].
const AHEAD_MAX: u64 = 1_000_000;

const GTIDS_MAX_COUNT: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    Gtids(Vec<Gtid>),
    WriteSet(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gtid {
    pub domain: u32,
    pub server: u32,
    pub number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Positions {
    /// The host has no replicas, so every read sees all committed writes, or has no binary log, so no positions.
    None,
    Primary,
    Replica,
    Galera,
}

impl Position {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let write_set = || text.strip_prefix("galera:").and_then(number).map(Self::WriteSet);
        let gtids = || gtids(text.strip_prefix("gtid:")?).map(Self::Gtids);
        write_set().or_else(gtids).ok_or_else(|| {
            Problem::new(ErrorCode::InvalidQueryOption, "The value of X-Selkie-After is not a position.")
                .with_hint("Send the value of X-Selkie-Position from the answer to a write.")
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WriteSet(number) => write!(f, "galera:{number}"),
            Self::Gtids(gtids) => write!(f, "gtid:{}", list(gtids)),
        }
    }
}

pub(super) fn list(gtids: &[Gtid]) -> String {
    let texts = gtids.iter().map(|gtid| format!("{}-{}-{}", gtid.domain, gtid.server, gtid.number));
    texts.collect::<Vec<_>>().join(",")
}

/// Parses a list of GTIDs. Returns `None` also if the list is too long or has two GTIDs of one domain.
pub(super) fn gtids(text: &str) -> Option<Vec<Gtid>> {
    let gtids: Vec<Gtid> = text.split(',').take(GTIDS_MAX_COUNT + 1).map(gtid).collect::<Option<_>>()?;
    let is_repeated = |at: usize| gtids[..at].iter().any(|before| before.domain == gtids[at].domain);
    (gtids.len() <= GTIDS_MAX_COUNT && !(0..gtids.len()).any(is_repeated)).then_some(gtids)
}

pub(super) fn gtid(text: &str) -> Option<Gtid> {
    let mut parts = text.split('-');
    let mut next = || parts.next().and_then(number);
    let (domain, server, number) = (next()?, next()?, next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(Gtid { domain: domain.try_into().ok()?, server: server.try_into().ok()?, number })
}

/// Parses decimal digits. Accepts no sign, unlike `parse`.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns whether the position `found` includes all of `wanted`, regardless of server ids.
fn include(found: &[Gtid], wanted: &[Gtid]) -> bool {
    are_near(found, wanted, 0)
}

/// Returns whether `found` has every wanted domain, with a sequence number that is smaller by at most `ahead`.
fn are_near(found: &[Gtid], wanted: &[Gtid], ahead: u64) -> bool {
    let is_near =
        |it: &Gtid, wanted: &Gtid| it.domain == wanted.domain && it.number.saturating_add(ahead) >= wanted.number;
    wanted.iter().all(|wanted| found.iter().any(|it| is_near(it, wanted)))
}

impl Connection {
    pub(super) fn has_positions(&self) -> bool {
        matches!(self.positions, Positions::Galera | Positions::Primary)
    }

    /// Returns the position of any client's last committed write; `None` if the host has none, or the query fails.
    pub(super) async fn position(&mut self) -> Option<Position> {
        let found = match self.positions {
            Positions::None | Positions::Replica => return None,
            Positions::Galera => self.write_set().await.map(|found| found.map(Position::WriteSet)),
            Positions::Primary => {
                let gtids = self.gtids("SELECT @@GLOBAL.gtid_binlog_pos").await;
                gtids.map(|gtids| (!gtids.is_empty()).then_some(Position::Gtids(gtids)))
            }
        };
        found.inspect_err(|error| tracing::debug!(%error, "the position of a write is not known")).ok().flatten()
    }

    /// Returns whether the host has reached `position`; true if the host has no positions ([`Positions::None`]).
    pub(super) async fn has_reached(&mut self, position: &Position) -> Result<bool, DbError> {
        let (is_reached, is_near) = match (self.positions, position) {
            (Positions::None, _) => (true, true),
            (Positions::Galera, Position::WriteSet(wanted)) => {
                let found = self.write_set().await?.unwrap_or_default();
                (found >= *wanted, found.saturating_add(AHEAD_MAX) >= *wanted)
            }
            (Positions::Replica, Position::Gtids(wanted)) => {
                (include(&self.gtids("SELECT @@GLOBAL.gtid_slave_pos").await?, wanted), true)
            }
            (Positions::Primary, Position::Gtids(wanted)) => {
                let found = self.gtids(
                    "SELECT CONCAT_WS(',', NULLIF(@@GLOBAL.gtid_binlog_pos, ''), NULLIF(@@GLOBAL.gtid_slave_pos, ''))",
                );
                let found = found.await?;
                (include(&found, wanted), are_near(&found, wanted, AHEAD_MAX))
            }
            _ => return Err(DbError::OtherPosition),
        };
        if is_near { Ok(is_reached) } else { Err(DbError::NoPosition) }
    }

    async fn write_set(&mut self) -> mysql_async::Result<Option<u64>> {
        let query = "SHOW GLOBAL STATUS LIKE 'wsrep_last_committed'";
        let found: Option<(String, String)> = typed_rows::first(self.conn.query_iter(query)).await?;
        Ok(found.and_then(|(_, text)| number(&text)))
    }

    async fn gtids(&mut self, query: &'static str) -> mysql_async::Result<Vec<Gtid>> {
        let found: Option<Option<String>> = typed_rows::first(self.conn.query_iter(query)).await?;
        let text = found.flatten().unwrap_or_default();
        Ok(text.split(',').filter_map(gtid).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_parsed_as_it_is_written() {
        for text in ["galera:17", "gtid:0-1-234", "gtid:0-1-234,1-2-5"] {
            assert_eq!(Position::parse(text).unwrap().to_string(), text);
        }
        let many = (0..17).map(|domain| format!("{domain}-1-1")).collect::<Vec<_>>().join(",");
        let many = format!("gtid:{many}");
        let wrong = [
            "",
            "17",
            "galera:",
            "galera:-1",
            "galera:+1",
            "gtid:",
            "gtid:0-1",
            "gtid:0-1-2-3",
            "gtid:0-1-2,0-1-3",
            "gtid:0-1-2,",
            "gtid:0-1-'",
            "gtid:4294967296-1-2",
            "galera:99999999999999999999",
            &many,
        ];
        for text in wrong {
            assert!(Position::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_server_has_reached_a_position_when_each_domain_has() {
        let of = |text| gtids(text).unwrap();
        assert!(include(&of("0-1-5,1-2-9"), &of("0-9-5")));
        assert!(include(&[of("0-1-5"), of("0-2-7")].concat(), &of("0-1-7")));
        assert!(!include(&of("0-1-5,1-2-9"), &of("0-1-5,1-2-10")));
        assert!(!include(&of("0-1-5"), &of("1-1-1")));
        let near = |wanted| are_near(&of("0-1-5,1-2-9"), &of(wanted), AHEAD_MAX);
        assert!(near("0-1-6,1-2-1000009") && !near("1-2-1000010") && !near("0-1-5,2-1-1"));
    }
}
