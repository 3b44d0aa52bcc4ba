//! Prepared XA transactions: their changes until they are committed. A reader has not seen the tables of those that were
//! prepared before it began. For these, the databases of all prepared transactions in the log are known, so that their
//! commits concern no other databases.

use super::{Break, FollowedTables, LogError, LogReader, LogSource, ResyncReason, RowChange, TableRows};
use crate::database::log_position::LogPosition;
use crate::database::position::Gtid;
use crate::database::single_flight::SingleFlight;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use shared::operation::TablePath;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum bytes of the decoded rows of prepared transactions.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of prepared transactions that are known at the same time. InnoDB can't have more.
const MAX_COUNT: usize = 131_072;
/// Maximum time for reading the log for prepared transactions. A log of 1 GiB takes a few seconds.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Prepared {
    /// By the XA id.
    changes: HashMap<Vec<u8>, PreparedChanges>,
    bytes: usize,
}

pub(super) enum PreparedChanges {
    /// The rows, and the generation of the followed tables that they are of.
    Rows(Vec<TableRows>, u64),
    /// Only the tables: with its rows, all prepared transactions would exceed [`MAX_BYTES`].
    Tables(Vec<TablePath>),
    /// With its tables, they would exceed it too.
    Unknown,
}

impl PreparedChanges {
    /// Returns as much of the changes as has `max_bytes` at most.
    fn of(rows: Vec<TableRows>, forgotten: HashSet<TablePath>, generation: u64, max_bytes: usize) -> Self {
        let is_whole = forgotten.is_empty();
        let tables = rows.iter().map(|rows| rows.table.path.clone()).chain(forgotten);
        let tables = Self::Tables(tables.collect::<HashSet<_>>().into_iter().collect());
        let all = [is_whole.then_some(Self::Rows(rows, generation)), Some(tables)];
        all.into_iter().flatten().find(|changes| changes.bytes() <= max_bytes).unwrap_or(Self::Unknown)
    }

    fn bytes(&self) -> usize {
        let bytes =
            |table: &TablePath| size_of::<TablePath>() + table.database.as_str().len() + table.table.as_str().len();
        match self {
            Self::Rows(rows, _) => rows.iter().flat_map(|rows| &rows.changes).map(RowChange::bytes).sum(),
            Self::Tables(tables) => tables.iter().map(bytes).sum(),
            Self::Unknown => 0,
        }
    }
}

impl Prepared {
    /// The bytes of rows that may still be kept.
    pub(super) fn room(&self) -> usize {
        MAX_BYTES.saturating_sub(self.bytes)
    }

    /// Keeps a transaction. Of `forgotten` tables, it may have further rows.
    pub(super) fn insert(&mut self, xid: &[u8], rows: Vec<TableRows>, forgotten: HashSet<TablePath>, generation: u64) {
        self.remove(xid);
        if self.changes.len() < MAX_COUNT {
            let changes = PreparedChanges::of(rows, forgotten, generation, self.room());
            self.bytes += changes.bytes();
            self.changes.insert(xid.to_vec(), changes);
        }
    }

    pub(super) fn remove(&mut self, xid: &[u8]) -> Option<PreparedChanges> {
        let changes = self.changes.remove(xid)?;
        self.bytes -= changes.bytes();
        Some(changes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn into_ids(self) -> impl Iterator<Item = Vec<u8>> {
        self.changes.into_keys()
    }
}

impl LogReader {
    /// Takes over the prepared transactions of a reader that ended at the position where this one begins.
    pub fn take_prepared(&mut self, ended: Self) {
        self.prepared = ended.prepared;
    }
}

/// Tells a reader the databases of transactions that were prepared before it began.
pub(super) enum PreparedBefore {
    /// The source has it.
    Look(LogSource),
    /// This reader adds to it.
    Add(Found),
}

impl PreparedBefore {
    pub(super) fn add_database(&mut self, database: &str) {
        if let Self::Add(found) = self
            && !found.databases.contains(database)
        {
            found.databases.insert(database.into());
        }
    }

    /// Takes the end of a transaction that this reader has not seen prepared. Returns whether its tables are to be looked up.
    pub(super) fn end(&mut self, xid: &[u8], commit: Option<Gtid>) -> bool {
        let Self::Add(found) = self else {
            return commit.is_some();
        };
        if !found.pending.remove(xid) {
            found.unknown.extend(commit);
        }
        false
    }

    /// The breaks by the commit of a transaction whose tables the reader does not know.
    pub(super) fn breaks(&self, followed: Arc<FollowedTables>, commit: Gtid) -> BoxFuture<'static, Vec<Break>> {
        let source = match self {
            Self::Look(source) => Some(source.clone()),
            Self::Add(_) => None,
        };
        let breaks = async move {
            let found = match &source {
                Some(source) => source.prepared.found_for(source, commit).await,
                None => None,
            };
            let tables = match found {
                Some(found) => followed.reached_from_databases(&found.databases).into_iter().map(Some).collect(),
                None => vec![None],
            };
            tables.into_iter().map(|table| Break { table, reason: ResyncReason::UnknownPosition }).collect()
        };
        breaks.boxed()
    }
}

#[derive(Default)]
pub(super) struct PreparedInLog {
    found: Mutex<Arc<Found>>,
    searching: SingleFlight<(), Arc<Found>, LogError>,
}

/// What the log says of prepared transactions, from its begin to a position.
#[derive(Clone, Default)]
pub(super) struct Found {
    until: Option<LogPosition>,
    pub(super) databases: HashSet<Box<str>>,
    /// The XA ids of those that have not ended at the position.
    pub(super) pending: HashSet<Vec<u8>>,
    /// Commits of transactions that were prepared before the log begins.
    pub(super) unknown: HashSet<Gtid>,
}

impl Found {
    fn is_of(&self, commit: Gtid) -> bool {
        self.until.as_ref().is_some_and(|until| until.includes(commit))
    }
}

impl PreparedInLog {
    /// Returns what the log says up to this commit; `None` if the log does not have the transaction's changes.
    async fn found_for(&self, source: &LogSource, commit: Gtid) -> Option<Arc<Found>> {
        const SEARCHES_MAX_COUNT: usize = 2;
        let mut found = self.found();
        for _ in 0..SEARCHES_MAX_COUNT {
            if found.is_of(commit) {
                break;
            }
            // A search that others have begun may end before this commit.
            let (source, before) = (source.clone(), Arc::clone(&found));
            let searched = self.searching.run((), search(source, before)).await;
            let searched = searched.inspect_err(|error| tracing::warn!(%error, "prepared transactions are unknown"));
            let searched = searched.ok()?;
            *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&searched);
            found = searched;
        }
        (found.is_of(commit) && !found.unknown.contains(&commit)).then_some(found)
    }

    fn found(&self) -> Arc<Found> {
        Arc::clone(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads the log from where the last search ended to its present end.
fn search(source: LogSource, before: Arc<Found>) -> BoxFuture<'static, Result<Arc<Found>, LogError>> {
    let searching = async move {
        let mut before = Found::clone(&before);
        let from = before.until.take();
        match to_end(&source, from, before).await {
            // MariaDB has deleted that part of the log, or the log is another one.
            Err(LogError::Gone(_)) => to_end(&source, None, Found::default()).await,
            searched => searched,
        }
    };
    let searching = tokio::time::timeout(SEARCH_TIMEOUT, searching);
    searching.map(|outcome| outcome.map_err(|_| LogError::Lost("the log took too long to be read".to_owned()))?).boxed()
}

async fn to_end(source: &LogSource, mut from: Option<LogPosition>, mut found: Found) -> Result<Arc<Found>, LogError> {
    loop {
        let mut reader = source.open_to_search(from.clone(), found).await?;
        let ended = loop {
            match reader.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let until = Some(reader.position().clone());
        found = reader.found();
        match ended {
            Ok(()) => return Ok(Arc::new(Found { until, ..found })),
            // An event was longer than a reader takes, or the connection was lost: the next reader goes on after it.
            Err(LogError::Lost(_)) if until != from && until != Some(LogPosition::default()) => from = until,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_without_its_transaction_is_unknown() {
        let commit = |number| Gtid { domain: 0, server: 1, number };
        let pending = HashSet::from([b"a".to_vec(), b"b".to_vec()]);
        let mut before = PreparedBefore::Add(Found { pending, ..Found::default() });
        for (xid, gtid) in [(b"a", Some(commit(1))), (b"a", Some(commit(2))), (b"b", None), (b"c", Some(commit(3)))] {
            assert!(!before.end(xid, gtid));
        }
        let PreparedBefore::Add(found) = before else { unreachable!() };
        assert_eq!((found.unknown, found.pending.len()), (HashSet::from([commit(2), commit(3)]), 0));
    }

    #[test]
    fn transactions_beyond_the_memory_are_kept_by_their_xids() {
        let mut prepared = Prepared { bytes: MAX_BYTES, ..Prepared::default() };
        prepared.insert(b"a", Vec::new(), HashSet::new(), 1);
        assert!(matches!(prepared.remove(b"a"), Some(PreparedChanges::Rows(rows, 1)) if rows.is_empty()));
        assert!(prepared.remove(b"a").is_none());
        assert_eq!(prepared.bytes, MAX_BYTES);
    }
}
