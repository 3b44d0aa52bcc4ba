//! Readers of the log for callers whose place is older than the transactions in the feed's memory. Only a few can be
//! open. A reader is kept for a few seconds, for the next page of the same feed, since MariaDB finds a position only by
//! reading a log file from its beginning.

use super::ChangesError;
use super::token::Place;
use crate::database::log_position::LogPosition;
use crate::database::log_reader::{FollowedTables, LogExtent, LogPiece, LogReader, LogSource, TableFacts};
use crate::project_quota::{ProjectQuota, QuotaGuard};
use shared::ident::ProjectName;
use shared::operation::TablePath;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Maximum number of readers, which have a connection each. One project may use half of them.
const READERS_MAX_COUNT: u64 = 8;
const READERS_PER_PROJECT_MAX_COUNT: u64 = READERS_MAX_COUNT / 2;
const KEPT_MAX: Duration = Duration::from_secs(5);
/// Maximum time for which a request waits until it may open a reader.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct CatchUps(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: LogSource,
    slots: ProjectQuota,
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    project: ProjectName,
    tables: Vec<TablePath>,
    place: Place,
    until: Instant,
    reader: CatchUp,
}

impl std::fmt::Debug for CatchUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CatchUp")
    }
}

/// Reads the log to its end, from a place on.
pub struct CatchUp {
    reader: LogReader,
    /// Pieces that were read from the log, and that no page has used.
    next: VecDeque<Arc<LogPiece>>,
    /// The number of rows in the followed tables that were read of the transaction before the next piece, if that piece
    /// continues it.
    rows_read: u64,
    /// Whether the log's end was read: MariaDB then closes the connection.
    has_ended: bool,
    _slot: QuotaGuard,
}

/// The shares of connections that read the log for callers who are behind.
pub fn catch_up_readers() -> ProjectQuota {
    ProjectQuota::with_callers(READERS_MAX_COUNT, READERS_PER_PROJECT_MAX_COUNT)
}

impl CatchUps {
    pub fn new(source: LogSource) -> Self {
        Self(Arc::new(Inner { source, slots: catch_up_readers(), kept: Mutex::default() }))
    }

    pub fn slots(&self) -> &ProjectQuota {
        &self.0.slots
    }

    pub async fn open(
        &self,
        (project, caller): (&ProjectName, Uuid),
        tables: &[(TablePath, TableFacts)],
        place: &Place,
    ) -> Result<CatchUp, ChangesError> {
        let paths: Vec<TablePath> = tables.iter().map(|(path, _)| path.clone()).collect();
        if let Some(kept) = self.take(project, &paths, place) {
            return Ok(kept);
        }
        let slot = tokio::time::timeout(WAIT_TIMEOUT, self.0.slots.take_as(project, caller, 1)).await;
        let slot = slot.map_err(|_| ChangesError::Database(crate::database::DbError::Overloaded))?;
        let followed = Arc::<FollowedTables>::default();
        for (path, facts) in tables {
            followed.insert(path.clone(), facts.ancestors.clone());
        }
        let reader = self.0.source.open(place.position.clone(), LogExtent::ToEnd, followed).await?;
        Ok(CatchUp { reader, next: VecDeque::new(), rows_read: 0, has_ended: false, _slot: slot })
    }

    fn take(&self, project: &ProjectName, tables: &[TablePath], place: &Place) -> Option<CatchUp> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.until > Instant::now());
        let is_it = |kept: &Kept| kept.project == *project && kept.tables == tables && kept.place == *place;
        let at = kept.iter().position(is_it)?;
        Some(kept.swap_remove(at).reader)
    }

    /// Keeps a reader for the page that begins at `place`.
    pub fn keep(&self, project: &ProjectName, tables: Vec<TablePath>, place: Place, reader: CatchUp) {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|kept| kept.until > now);
        kept.push(Kept { project: project.clone(), tables, place, until: now + KEPT_MAX, reader });
        drop(kept);
        // Closes the connection if no request takes the reader.
        let catch_ups = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_MAX).await;
            let mut kept = catch_ups.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|kept| kept.until > Instant::now());
        });
    }
}

impl CatchUp {
    /// Reads pieces of the log until they have about `max_bytes`, or until `time` is over. Also returns whether the log is
    /// at its end.
    pub async fn gather(
        &mut self,
        max_bytes: usize,
        time: Duration,
    ) -> Result<(Vec<Arc<LogPiece>>, bool), ChangesError> {
        const PIECES_MAX_COUNT: usize = 4_096;
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        let began = Instant::now();
        while bytes < max_bytes && pieces.len() < PIECES_MAX_COUNT && began.elapsed() < time {
            match self.next().await? {
                None => return Ok((pieces, true)),
                Some(piece) => {
                    bytes += piece.bytes;
                    pieces.push(piece);
                }
            }
        }
        Ok((pieces, false))
    }

    /// Returns the next piece; `None` at the end of the log.
    pub async fn next(&mut self) -> Result<Option<Arc<LogPiece>>, ChangesError> {
        if let Some(piece) = self.next.pop_front() {
            return Ok(Some(piece));
        }
        if self.has_ended {
            return Ok(None);
        }
        let piece = self.reader.next().await?;
        self.has_ended = piece.is_none();
        Ok(piece.map(Arc::new))
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    pub fn after_rows(self, rows_read: u64) -> Self {
        Self { rows_read, ..self }
    }

    /// The position after the last whole transaction that was read.
    pub fn position(&self) -> &LogPosition {
        self.reader.position()
    }

    /// Puts pieces back that the page did not use. Their order is kept.
    pub fn give_back(&mut self, pieces: impl DoubleEndedIterator<Item = Arc<LogPiece>>) {
        pieces.rev().for_each(|piece| self.next.push_front(piece));
    }
}
