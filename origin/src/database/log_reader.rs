//! Reads MariaDB's binary log from a position on, as a replica does, and returns the rows of followed tables, by
//! transaction. Knows no subscriptions. Skips the events of other tables without decoding them.

mod driver_event;
mod followed;
mod group;
mod long;
mod prepared;
mod rows;
mod source;
mod statement;
mod table_facts;

use super::log_position::LogPosition;
use super::position::Gtid;
use super::single_flight::LoadAborted;
use ::binlog::{Body, Checksum, Decoder, EventType, Header, RowsKind, Table};
use driver_event::{raw_event, table_number};
pub use followed::{Ancestors, CascadingKey, CascadingKeys, FollowedTables};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use group::Group;
use mysql_async::BinlogStream;
use prepared::{Found, Prepared, PreparedBefore, PreparedChanges};
pub use rows::{CellEncoding, LoggedColumn, LoggedTable, RowChange, RowImage};
use shared::operation::TablePath;
pub use source::{LogExtent, LogFacts, LogSettings, LogSource};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
pub use table_facts::{CollationNames, TableFacts};

/// Maximum bytes of one event of any table. The driver holds an event as a whole.
const EVENT_MAX_BYTES: usize = 64 * 1024 * 1024;
/// The same for a reader that only looks which tables a transaction concerns: above an update of a value of 64 MiB, which
/// is the `max_allowed_packet` of the MariaDB server that the origin starts itself.
const LONG_EVENT_MAX_BYTES: usize = 160 * 1024 * 1024;
/// Maximum bytes of one decompressed event.
const DECOMPRESSED_MAX_BYTES: usize = EVENT_MAX_BYTES;
/// A longer event is read while other tasks of the thread go on.
const LONG_EVENT_BYTES: usize = 64 * 1024;
/// Once a transaction's decoded rows have this many bytes, they are passed on before the transaction ends.
const PIECE_BYTES: usize = 1024 * 1024;
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The time without an event or a heartbeat after which the connection counts as lost.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(20);
/// The number of table maps, which precede the rows of a statement, after which the reader needs a new connection: the
/// driver keeps table maps until the log is rotated.
const TABLES_PER_CONNECTION: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResyncReason {
    LogPurged,
    UnknownPosition,
    Failover,
    SchemaChanged,
    Truncated,
    RoleChanged,
    StatementLogged,
    Cascade,
    TooSlow,
}

impl ResyncReason {
    pub const ALL: [Self; 9] = [
        Self::LogPurged,
        Self::UnknownPosition,
        Self::Failover,
        Self::SchemaChanged,
        Self::Truncated,
        Self::RoleChanged,
        Self::StatementLogged,
        Self::Cascade,
        Self::TooSlow,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LogPurged => "log_purged",
            Self::UnknownPosition => "unknown_position",
            Self::Failover => "failover",
            Self::SchemaChanged => "schema_changed",
            Self::Truncated => "truncated",
            Self::RoleChanged => "role_changed",
            Self::StatementLogged => "statement_logged",
            Self::Cascade => "cascade",
            Self::TooSlow => "too_slow",
        }
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// The text says which setting or grant MariaDB lacks.
    #[error("MariaDB's binary log can't serve changes: {0}")]
    Unavailable(Cow<'static, str>),
    #[error("the log no longer has this position, or never had it")]
    Gone(ResyncReason),
    #[error("the log can't be decoded: {0}")]
    Undecodable(String),
    #[error("decoded, the rows of an event would take too much memory")]
    TooLong,
    #[error("the connection to MariaDB is lost: {0}")]
    Lost(String),
}

impl From<::binlog::Error> for LogError {
    fn from(error: ::binlog::Error) -> Self {
        match error.rule {
            ::binlog::BrokenRule::TooLarge { .. } => Self::TooLong,
            _ => Self::Undecodable(error.to_string()),
        }
    }
}

impl From<LoadAborted> for LogError {
    fn from(_: LoadAborted) -> Self {
        Self::Lost("the task that asked MariaDB has ended".to_owned())
    }
}

/// A transaction of the log, or a part of a long one.
#[derive(Debug)]
pub struct LogPiece {
    pub gtid: Gtid,
    /// When the transaction was committed, in seconds since 1970.
    pub committed_at: u32,
    /// Counts the pieces of the transaction, from 0.
    pub number: u32,
    pub is_last: bool,
    pub rows: Vec<TableRows>,
    pub breaks: Vec<Break>,
    pub bytes: usize,
    /// [`FollowedTables::generation`] when the transaction began in the log: tables that were added later may lack rows.
    pub generation: u64,
}

#[derive(Debug)]
pub struct TableRows {
    pub table: Arc<LoggedTable>,
    pub changes: Vec<RowChange>,
}

/// A change that the log does not show as rows. A client with a copy of the table must read the whole table again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// `None` for all tables.
    pub table: Option<TablePath>,
    pub reason: ResyncReason,
}

pub struct LogReader {
    stream: BinlogStream,
    decoder: Decoder,
    has_format: bool,
    buffer: Vec<u8>,
    followed: Arc<FollowedTables>,
    position: LogPosition,
    /// The tables of the current statement that are followed, or are ancestors of followed tables. By the table number
    /// in the log.
    tables: HashMap<u64, MappedTable>,
    mapped: usize,
    logged: HashMap<TablePath, Arc<LoggedTable>>,
    group: Option<Group>,
    prepared: Prepared,
    prepared_before: PreparedBefore,
    extent: LogExtent,
    /// A transaction of which this reader does not know all tables, and the search for its breaks.
    lacking: Option<(LogPiece, BoxFuture<'static, Vec<Break>>)>,
    /// Whether a long event has ended the connection.
    is_cut: bool,
    /// Whether the transaction that ends now is such a commit.
    lacks_tables: bool,
    /// Whether an event since the last transaction began said that changes may be missing in the log.
    incident: bool,
}

struct MappedTable {
    path: TablePath,
    /// `None` for an ancestor that is not followed itself.
    decoded: Option<(Table, Arc<LoggedTable>)>,
}

impl LogReader {
    fn new(
        stream: BinlogStream,
        from: LogPosition,
        followed: Arc<FollowedTables>,
        (prepared_before, extent): (PreparedBefore, LogExtent),
    ) -> Self {
        Self {
            stream,
            decoder: Decoder::new(Checksum::None),
            has_format: false,
            buffer: Vec::new(),
            followed,
            position: from,
            tables: HashMap::new(),
            mapped: 0,
            logged: HashMap::new(),
            group: None,
            prepared: Prepared::default(),
            prepared_before,
            extent,
            lacking: None,
            is_cut: false,
            lacks_tables: false,
            incident: false,
        }
    }

    /// The position after the last whole transaction that [`Self::next`] returned.
    pub fn position(&self) -> &LogPosition {
        &self.position
    }

    /// What a reader that searches for prepared transactions has found.
    fn found(self) -> Found {
        let PreparedBefore::Add(mut found) = self.prepared_before else {
            return Found::default();
        };
        found.pending.extend(self.prepared.into_ids());
        found
    }

    /// Whether a new reader should replace this one. Never true within a transaction.
    pub fn is_worn(&self) -> bool {
        self.mapped > TABLES_PER_CONNECTION && self.group.is_none() && self.prepared.is_empty()
    }

    /// Returns the next transaction, or a part of it, even if the transaction concerns no followed table. Returns
    /// `None` at the end of the log, unless the reader waits there for the next transaction.
    pub async fn next(&mut self) -> Result<Option<LogPiece>, LogError> {
        loop {
            if let Some((_, breaks)) = &mut self.lacking {
                // The caller may give up this call here, and make another.
                let breaks = breaks.await;
                if let Some((mut piece, _)) = self.lacking.take() {
                    piece.breaks.extend(breaks);
                    return Ok(Some(piece));
                }
            }
            if self.is_cut {
                Box::pin(self.connect_again()).await?;
            }
            let event = match tokio::time::timeout(SILENCE_TIMEOUT, self.stream.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(error))) => {
                    self.failed(&error)?;
                    continue;
                }
                Ok(None) => return Ok(None),
                Err(_) => return Err(LogError::Lost("neither an event nor a heartbeat came".to_owned())),
            };
            if event.header().event_size() as usize > EVENT_MAX_BYTES {
                self.pass_over(&event);
                continue;
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let piece = match self.has_to_read(&event) {
                true => {
                    raw_event(&event, &mut buffer);
                    match buffer.len() > LONG_EVENT_BYTES {
                        true => tokio::task::block_in_place(|| self.read(&buffer)),
                        false => self.read(&buffer),
                    }
                }
                false => Ok(None),
            };
            // A long row makes the buffer large: such a buffer is not kept.
            if buffer.capacity() <= PIECE_BYTES {
                self.buffer = buffer;
            }
            match piece? {
                Some(piece) if std::mem::take(&mut self.lacks_tables) => {
                    let breaks = self.prepared_before.breaks(Arc::clone(&self.followed), piece.gtid);
                    self.lacking = Some((piece, breaks));
                }
                Some(piece) => return Ok(Some(piece)),
                None => {}
            }
        }
    }

    fn has_to_read(&self, event: &mysql_async::binlog::events::Event) -> bool {
        let number = event.header().event_type_raw();
        if !self.has_format {
            // The events before the format description have an unknown checksum, and only say where the log begins.
            return number == EventType::FORMAT_DESCRIPTION.0;
        }
        match RowsKind::of(EventType(number)).and_then(|_| table_number(event)) {
            Some(table) => self.tables.contains_key(&table),
            None => number != EventType::ANNOTATE_ROWS.0,
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<Option<LogPiece>, LogError> {
        let event = self.decoder.read(bytes)?;
        let header = event.header;
        match event.body {
            Body::FormatDescription(_) => self.has_format = true,
            Body::Gtid(gtid) => {
                self.tables.clear();
                let mut group = Group::new(&gtid, header.server_id, header.timestamp, self.followed.generation());
                if std::mem::take(&mut self.incident) {
                    group.break_all(ResyncReason::UnknownPosition);
                }
                self.group = Some(group);
            }
            Body::TableMap(map) => self.map(&map)?,
            Body::Rows(rows) => {
                let ends_statement = rows.flags & ::binlog::Rows::STATEMENT_END != 0;
                self.add_rows(&rows);
                if ends_statement {
                    self.tables.clear();
                }
                let is_full =
                    self.group.as_ref().is_some_and(|group| group.bytes() >= PIECE_BYTES && !group.is_prepared());
                if let Some(group) = self.group.as_mut().filter(|_| is_full) {
                    return Ok(Some(group.pass_on()));
                }
            }
            Body::Query(query) => {
                let text = query.statement(DECOMPRESSED_MAX_BYTES)?;
                return Ok(self.add_statement(&text, query.sql_mode().unwrap_or_default(), query.database));
            }
            Body::Xid(_) => return Ok(self.end()),
            Body::XaPrepare(prepare) => {
                if prepare.one_phase {
                    return Ok(self.end());
                }
                return Ok(self.prepare());
            }
            Body::Incident(_) => self.incident = true,
            Body::Unknown(_) if header.flags & Header::IGNORABLE == 0 => {
                if let Some(group) = &mut self.group {
                    group.break_all(ResyncReason::StatementLogged);
                }
            }
            Body::GtidList(_)
            | Body::Rotate(_)
            | Body::AnnotateRows(_)
            | Body::Heartbeat(_)
            | Body::BinlogCheckpoint(_)
            | Body::Stop
            | Body::Unknown(_) => {}
        }
        Ok(None)
    }

    fn map(&mut self, map: &::binlog::TableMap<'_>) -> Result<(), LogError> {
        self.mapped += 1;
        if self.group.as_ref().is_some_and(Group::is_prepared) {
            self.prepared_before.add_database(map.database);
        }
        let Some(path) = followed::path(map.database, map.table).filter(|path| self.followed.concerns(path)) else {
            return Ok(());
        };
        let decoded = match self.followed.contains(&path) {
            false => None,
            true => {
                let table = map.table()?;
                if !table.has_names() {
                    return Err(LogError::Unavailable(rows::NO_METADATA.into()));
                }
                let logged = LoggedTable::new(&path, &table)?;
                let logged = match self.logged.get(&path).filter(|known| **known == logged) {
                    Some(known) => Arc::clone(known),
                    None => {
                        self.logged.insert(path.clone(), Arc::clone(&logged));
                        logged
                    }
                };
                Some((table, logged))
            }
        };
        self.tables.insert(map.table_id, MappedTable { path, decoded });
        Ok(())
    }

    fn add_rows(&mut self, rows: &::binlog::Rows<'_>) {
        let (Some(mapped), Some(group)) = (self.tables.get(&rows.table_id), &mut self.group) else {
            return;
        };
        if group.cascades_from(&mapped.path, rows.kind) {
            for table in self.followed.reached_from(&mapped.path, rows.kind) {
                group.add_break(Some(table), ResyncReason::Cascade);
            }
        }
        let Some((table, logged)) = &mapped.decoded else {
            return;
        };
        if group.forgets(&mapped.path) {
            return;
        }
        let changes = rows.data(DECOMPRESSED_MAX_BYTES).map_err(LogError::from);
        match changes.and_then(|data| rows::changes(&data, table, logged)) {
            Ok(changes) => {
                group.add_rows(TableRows { table: Arc::clone(logged), changes });
                if group.is_prepared() {
                    group.keep_at_most(self.prepared.room());
                }
            }
            Err(LogError::TooLong) => group.add_break(Some(mapped.path.clone()), ResyncReason::TooSlow),
            Err(error) => {
                tracing::warn!(%error, table = %mapped.path.table, "rows of a followed table can't be decoded");
                group.add_break(Some(mapped.path.clone()), ResyncReason::SchemaChanged);
            }
        }
    }

    fn add_statement(&mut self, statement: &[u8], sql_mode: u64, database: &[u8]) -> Option<LogPiece> {
        use statement::StatementEffect as Effect;
        let group = self.group.as_mut()?;
        match statement::effect(statement) {
            Effect::Nothing => {}
            Effect::Savepoint(name) => group.set_savepoint(name),
            Effect::RollbackTo(name) => group.roll_back_to(name),
            Effect::Rollback => {
                group.roll_back();
                return self.end();
            }
            Effect::Commit => return self.end(),
            Effect::XaCommit => {
                match self.prepared.remove(group.xid()) {
                    Some(PreparedChanges::Rows(rows, generation)) => group.add_prepared(rows, generation),
                    Some(PreparedChanges::Tables(tables)) => {
                        for table in tables {
                            group.add_break(Some(table), ResyncReason::TooSlow);
                        }
                    }
                    Some(PreparedChanges::Unknown) => self.lacks_tables = true,
                    None => self.lacks_tables = self.prepared_before.end(group.xid(), Some(group.gtid())),
                }
                return self.end();
            }
            Effect::XaRollback => {
                if self.prepared.remove(group.xid()).is_none() {
                    self.prepared_before.end(group.xid(), None);
                }
                return self.end();
            }
            Effect::Tables { empties } => {
                let reason = if empties { ResyncReason::Truncated } else { ResyncReason::SchemaChanged };
                for table in self.followed.named_in(statement, sql_mode, database) {
                    group.add_break(Some(table), reason);
                }
            }
            Effect::DropsDatabase => {
                for table in self.followed.in_databases(statement, sql_mode) {
                    group.add_break(Some(table), ResyncReason::SchemaChanged);
                }
            }
            Effect::Rows => {
                // Its triggers and functions may change any table there.
                for table in self.followed.changed_by(statement, sql_mode, database) {
                    group.add_break(Some(table), ResyncReason::StatementLogged);
                }
            }
        }
        if self.group.as_ref().is_some_and(Group::is_standalone) { self.end() } else { None }
    }

    /// Keeps the changes of a prepared XA transaction until it is committed. Also keeps a transaction without rows of
    /// followed tables: when it is committed, the reader must not take it for one that was prepared before the reader
    /// began.
    fn prepare(&mut self) -> Option<LogPiece> {
        let mut group = self.group.take()?;
        let (rows, forgotten) = (group.take_rows(), group.take_forgotten());
        self.prepared.insert(group.xid(), rows, forgotten, group.generation());
        Some(self.ended(group))
    }

    fn end(&mut self) -> Option<LogPiece> {
        let group = self.group.take()?;
        Some(self.ended(group))
    }

    fn ended(&mut self, mut group: Group) -> LogPiece {
        self.tables.clear();
        let piece = group.finish();
        self.position.advance(piece.gtid);
        piece
    }
}
