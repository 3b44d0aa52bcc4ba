//! Reads the log once for all subscriptions of this origin, keeps the recent transactions of followed tables, and wakes
//! the requests that wait for changes. The reader runs only while a table is followed.

mod waiters;

use super::ChangesError;
use super::table_lookups::TableLookups;
use crate::database::log_position::LogPosition;
use crate::database::log_reader::{
    FollowedTables, LogError, LogExtent, LogPiece, LogReader, LogSource, ResyncReason, TableFacts,
};
use crate::database::position::Gtid;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::operation::TablePath;
use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
pub(super) use waiters::WaitedFor;
pub use waiters::Waiter;
use waiters::{Waiters, Wake};

/// Maximum bytes of the recent transactions of followed tables. For a caller whose place is older, [`super::catch_up`]
/// reads the log.
pub const RECENT_MAX_BYTES: usize = 64 * 1024 * 1024;
const RECENT_MAX_COUNT: usize = 65_536;
/// Maximum length of [`State::runs`]. If several servers replicate in a circle, their transactions alternate, and each
/// may begin a run.
const RUNS_MAX_COUNT: usize = 1_024;
/// Maximum number of followed tables. For each table of each logged statement, the reader looks up whether the table is
/// followed.
pub const TABLES_MAX_COUNT: usize = 10_000;
pub const TABLES_PER_PROJECT_MAX_COUNT: usize = TABLES_MAX_COUNT / 2;
/// How long a table stays followed after its last use, so that a caller who asks again finds its changes in memory.
const UNUSED_MAX: Duration = Duration::from_secs(60);
const FACTS_MAX_AGE: Duration = Duration::from_secs(30);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Clones share their state.
#[derive(Clone)]
pub struct Feed(Arc<Inner>);

struct Inner {
    source: LogSource,
    /// A transaction wakes all readers of its tables: those whose facts are too old ask together.
    lookups: TableLookups<TableFacts>,
    followed: Arc<FollowedTables>,
    state: Mutex<State>,
    stop: OnceLock<CancellationToken>,
    next_waiter: AtomicU64,
    transactions: AtomicU64,
    head_moved: Notify,
}

#[derive(Default)]
struct State {
    recent: VecDeque<Arc<LogPiece>>,
    recent_bytes: usize,
    /// The position before the first transaction of `recent`; `None` while the reader has not begun.
    start: Option<LogPosition>,
    /// The highest [`FollowedTable::generation`].
    newest: u64,
    /// The first transaction of each run: consecutive transactions of one server in one domain. They tell whether a
    /// position is of this log, since after a failover another server may give the same numbers to other transactions.
    runs: Vec<Gtid>,
    /// The position after the last whole transaction.
    head: LogPosition,
    committed_at: u32,
    tables: HashMap<TablePath, FollowedTable>,
    is_running: bool,
    failure: Option<LogError>,
}

struct FollowedTable {
    project: ProjectName,
    facts: TableFacts,
    /// When `facts` were read from MariaDB; `None` after a break, which may have changed the facts.
    asked_at: Option<Instant>,
    used_at: Instant,
    generation: u64,
    /// All transactions after this position have the table's rows; earlier ones may lack them.
    since: LogPosition,
    waiters: Waiters,
}

impl FollowedTable {
    fn break_off(&mut self) {
        self.asked_at = None;
        self.waiters.wake_all();
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct FeedGauge {
    pub is_running: bool,
    pub tables: usize,
    pub waiters: usize,
    pub recent_bytes: usize,
    pub transactions: u64,
    /// When the transaction that the reader read last was committed, in seconds since 1970.
    pub committed_at: u32,
}

/// Transactions after a place, from the feed's memory.
pub struct Recent {
    pub pieces: Vec<Arc<LogPiece>>,
    /// The position after the last whole transaction of the log, if `pieces` reaches to it.
    pub head: Option<LogPosition>,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Feed")
    }
}

impl Feed {
    pub fn new(source: LogSource) -> Self {
        Self(Arc::new(Inner {
            source,
            lookups: TableLookups::default(),
            followed: Arc::default(),
            state: Mutex::default(),
            stop: OnceLock::new(),
            next_waiter: AtomicU64::new(0),
            transactions: AtomicU64::new(0),
            head_moved: Notify::new(),
        }))
    }

    pub fn source(&self) -> &LogSource {
        &self.0.source
    }

    /// Sets the token that is cancelled when the service stops: it ends the reader and all waits.
    pub fn stop_by(&self, stop: CancellationToken) {
        let _ = self.0.stop.set(stop);
    }

    pub async fn stopped(&self) {
        match self.0.stop.get() {
            Some(stop) => stop.cancelled().await,
            None => std::future::pending().await,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn gauge(&self) -> FeedGauge {
        let state = self.state();
        FeedGauge {
            is_running: state.is_running,
            tables: state.tables.len(),
            waiters: state.tables.values().map(|table| table.waiters.count()).sum(),
            recent_bytes: state.recent_bytes,
            transactions: self.0.transactions.load(Ordering::Relaxed),
            committed_at: state.committed_at,
        }
    }

    /// Follows a table from now on, and starts the reader if it does not run. If the reader has ended because the log
    /// can't serve changes, returns that error once.
    pub async fn follow(&self, project: &ProjectName, table: &TablePath) -> Result<TableFacts, ChangesError> {
        let known = {
            let mut state = self.state();
            if let Some(error @ LogError::Unavailable(_)) = state.failure.take() {
                return Err(error.into());
            }
            state
                .tables
                .get_mut(table)
                .filter(|known| known.asked_at.is_some_and(|at| at.elapsed() < FACTS_MAX_AGE))
                .map(|known| {
                    known.used_at = Instant::now();
                    known.facts.clone()
                })
        };
        let facts = match known {
            Some(facts) => facts,
            None => {
                let source = self.0.source.clone();
                let look_up = |database, tables| async move { source.table_facts(&database, tables).await };
                let facts = self.0.lookups.find(project, table, look_up).await?;
                if let Some(gap) = facts.gap {
                    return Err(super::unlogged(table, gap).into());
                }
                self.insert(project, table, &facts)?;
                facts
            }
        };
        self.start();
        Ok(facts)
    }

    fn insert(&self, project: &ProjectName, table: &TablePath, facts: &TableFacts) -> Result<(), ChangesError> {
        let mut state = self.state();
        let now = Instant::now();
        let head = state.head.clone();
        if let Some(known) = state.tables.get_mut(table) {
            if known.facts.ancestors != facts.ancestors {
                known.generation = self.0.followed.insert(table.clone(), facts.ancestors.clone());
                let generation = known.generation;
                known.since = head;
                state.newest = generation;
            }
            let Some(known) = state.tables.get_mut(table) else {
                return Ok(());
            };
            known.facts = facts.clone();
            (known.asked_at, known.used_at) = (Some(now), now);
            return Ok(());
        }
        let of_project = state.tables.values().filter(|known| known.project == *project).count();
        if state.tables.len() >= TABLES_MAX_COUNT || of_project >= TABLES_PER_PROJECT_MAX_COUNT {
            let why = format!("This project follows {of_project} tables already, of {TABLES_PER_PROJECT_MAX_COUNT}.");
            return Err(Problem::new(ErrorCode::Overloaded, why).into());
        }
        let generation = self.0.followed.insert(table.clone(), facts.ancestors.clone());
        state.newest = generation;
        let followed = FollowedTable {
            project: project.clone(),
            facts: facts.clone(),
            asked_at: Some(now),
            used_at: now,
            generation,
            since: head,
            waiters: Waiters::default(),
        };
        state.tables.insert(table.clone(), followed);
        Ok(())
    }

    fn start(&self) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_running, true) {
            return;
        }
        drop(state);
        let feed = self.clone();
        tokio::spawn(async move {
            let outcome = tokio::select! {
                outcome = feed.run() => outcome,
                () = feed.stopped() => Ok(()),
            };
            feed.end(outcome.err());
        });
    }

    fn end(&self, failure: Option<LogError>) {
        let mut state = self.state();
        if let Some(error) = &failure {
            tracing::warn!(%error, "the feed of changes ended");
        }
        let State { tables, .. } = std::mem::take(&mut *state);
        for (path, table) in &tables {
            self.0.followed.remove(path);
            table.waiters.wake_all();
        }
        state.failure = failure;
    }

    async fn run(&self) -> Result<(), LogError> {
        let mut reader = self.open(None).await?;
        {
            let mut state = self.state();
            state.head = reader.position().clone();
            state.start = Some(state.head.clone());
            state.runs = state.head.gtids().to_vec();
            let head = state.head.clone();
            for table in state.tables.values_mut() {
                table.since = head.clone();
            }
        }
        let mut sweep = tokio::time::interval(UNUSED_MAX / 4);
        loop {
            let piece = tokio::select! {
                biased;
                piece = reader.next() => piece,
                _ = sweep.tick() => {
                    if !self.sweep() {
                        return Ok(());
                    }
                    continue;
                }
            };
            match piece {
                Ok(Some(piece)) => self.publish(piece),
                Ok(None) | Err(LogError::Lost(_)) => reader = self.reopen(reader).await?,
                Err(error) => return Err(error),
            }
            if reader.is_worn() {
                reader = self.reopen(reader).await?;
            }
        }
    }

    async fn open(&self, from: Option<LogPosition>) -> Result<LogReader, LogError> {
        let from = match from {
            Some(from) => from,
            None => self.0.source.facts().await?.position,
        };
        self.0.source.open(from, LogExtent::Always, Arc::clone(&self.0.followed)).await
    }

    /// Opens the log again at the position of the reader that ended. The log then sends transactions after it again, so
    /// their pieces are first dropped from `recent`.
    async fn reopen(&self, ended: LogReader) -> Result<LogReader, LogError> {
        let position = ended.position().clone();
        {
            let mut state = self.state();
            while let Some(last) = state.recent.back().filter(|last| !position.includes(last.gtid)) {
                let bytes = last.bytes;
                state.recent.pop_back();
                state.recent_bytes -= bytes;
            }
        }
        const TRIES_MAX_COUNT: usize = 20;
        let mut tries = 0;
        loop {
            match self.open(Some(position.clone())).await {
                Err(LogError::Lost(cause)) if tries < TRIES_MAX_COUNT => {
                    tracing::debug!(%cause, "the log can't be opened again yet");
                    tries += 1;
                    tokio::time::sleep(RECONNECT_PAUSE).await;
                }
                Err(LogError::Gone(ResyncReason::UnknownPosition)) => {
                    return Err(LogError::Gone(ResyncReason::Failover));
                }
                outcome => {
                    let mut reader = outcome?;
                    reader.take_prepared(ended);
                    return Ok(reader);
                }
            }
        }
    }

    fn publish(&self, piece: LogPiece) {
        let mut state = self.state();
        if piece.is_last {
            self.0.transactions.fetch_add(1, Ordering::Relaxed);
        }
        state.committed_at = piece.committed_at;
        let mut after = state.head.clone();
        after.advance(piece.gtid);
        if state.newest > piece.generation {
            // The transaction began before these tables were followed, so it may lack their rows.
            for table in state.tables.values_mut().filter(|table| table.generation > piece.generation) {
                table.since = after.clone();
            }
        }
        let last_run = state.runs.iter().rev().find(|run| run.domain == piece.gtid.domain);
        if last_run.is_none_or(|run| run.server != piece.gtid.server) {
            state.runs.push(piece.gtid);
            if state.runs.len() > RUNS_MAX_COUNT {
                // For a caller with a position in this run, `catch_up` now reads the log.
                state.runs.remove(0);
            }
        }
        if piece.is_last {
            state.head = after;
            self.0.head_moved.notify_waiters();
        }
        if piece.rows.is_empty() && piece.breaks.is_empty() {
            // An empty last piece is kept if `recent` has earlier pieces of its transaction.
            let continues = piece.number > 0 && state.recent.back().is_some_and(|last| last.gtid == piece.gtid);
            if !continues {
                return;
            }
        }
        let piece = Arc::new(piece);
        for rows in &piece.rows {
            if let Some(table) = state.tables.get(&rows.table.path) {
                table.waiters.wake(rows);
            }
        }
        for found in &piece.breaks {
            match &found.table {
                Some(path) => state.tables.get_mut(path).into_iter().for_each(FollowedTable::break_off),
                None => state.tables.values_mut().for_each(FollowedTable::break_off),
            }
        }
        state.recent_bytes += piece.bytes;
        state.recent.push_back(piece);
        while state.recent_bytes > RECENT_MAX_BYTES || state.recent.len() > RECENT_MAX_COUNT {
            let Some(first) = state.recent.pop_front() else {
                break;
            };
            state.recent_bytes -= first.bytes;
            if let Some(start) = &mut state.start {
                start.advance(first.gtid);
            }
        }
    }

    /// Returns the transactions after `position` that concern followed tables, up to about `max_bytes`; `None` if the
    /// feed does not have all of them. `after` is a transaction and the number of its last piece that the caller has
    /// read: the pieces up to that number are left out.
    pub fn recent(
        &self,
        tables: &[TablePath],
        (position, after): (&LogPosition, Option<(Gtid, u32)>),
        max_bytes: usize,
    ) -> Option<Recent> {
        let mut state = self.state();
        let is_known = |gtid: &Gtid| {
            let mut runs = state.runs.iter().rev().filter(|run| run.domain == gtid.domain);
            runs.find(|run| run.number <= gtid.number).is_some_and(|run| run.server == gtid.server)
        };
        let is_in_memory = state.start.as_ref().is_some_and(|start| position.is_at_or_after(start));
        if !is_in_memory || !position.gtids().iter().all(is_known) {
            return None;
        }
        for path in tables {
            let table = state.tables.get_mut(path)?;
            if !position.is_at_or_after(&table.since) {
                return None;
            }
            table.used_at = Instant::now();
        }
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        let is_read = |piece: &LogPiece| {
            position.includes(piece.gtid)
                || after.is_some_and(|(gtid, number)| gtid == piece.gtid && piece.number <= number)
        };
        // The pieces are in the log's order, so those before a position of the log come first.
        let unread = state.recent.partition_point(|piece| is_read(piece));
        for piece in state.recent.range(unread..) {
            if bytes >= max_bytes {
                return Some(Recent { pieces, head: None });
            }
            bytes += piece.bytes;
            pieces.push(Arc::clone(piece));
        }
        Some(Recent { pieces, head: Some(state.head.clone()) })
    }

    /// Whether the reader runs, and has reached `position`.
    pub fn has_reached(&self, position: &LogPosition) -> bool {
        let state = self.state();
        state.start.is_some() && state.head.is_at_or_after(position)
    }

    /// Waits until the reader has reached `position`, for `time` at most. Returns at once if the reader has not begun.
    pub async fn wait_for(&self, position: &LogPosition, time: Duration) {
        let reached = async {
            loop {
                let moved = self.0.head_moved.notified();
                let mut moved = pin!(moved);
                moved.as_mut().enable();
                {
                    let state = self.state();
                    if state.start.is_none() || state.head.is_at_or_after(position) {
                        return;
                    }
                }
                moved.await;
            }
        };
        let _ = tokio::time::timeout(time, reached).await;
    }

    /// Returns a waiter for changes from now on, including those that come before the call of [`Waiter::wait`].
    pub fn waiter(&self, tables: Vec<WaitedFor>) -> Waiter {
        let id = self.0.next_waiter.fetch_add(1, Ordering::Relaxed);
        let wake = Arc::<Wake>::default();
        let mut state = self.state();
        for (path, only) in &tables {
            match state.tables.get_mut(path) {
                Some(table) => table.waiters.add(id, only.as_ref(), &wake),
                // The feed has ended, so nothing would wake the caller: the caller must follow the table again.
                None => wake.wake(),
            }
        }
        drop(state);
        Waiter { feed: self.clone(), id, wake, tables }
    }

    /// Stops following the tables that have no waiter and were not used for [`UNUSED_MAX`]. Returns whether any
    /// followed tables are left.
    fn sweep(&self) -> bool {
        let mut state = self.state();
        state.tables.retain(|path, table| {
            let is_used = table.used_at.elapsed() < UNUSED_MAX || !table.waiters.is_empty();
            if !is_used {
                self.0.followed.remove(path);
            }
            is_used
        });
        !state.tables.is_empty()
    }
}
