//! A transaction that is being read from the log: its rows, its savepoints and its breaks ([`Break`]).

use super::{Break, LogPiece, ResyncReason, RowChange, TableRows};
use crate::database::position::Gtid;
use binlog::{GtidEvent, RowsKind};
use shared::operation::TablePath;
use std::collections::{HashMap, HashSet};

pub(super) struct Group {
    gtid: Gtid,
    committed_at: u32,
    generation: u64,
    flags: u8,
    xid: Vec<u8>,
    pieces: u32,
    rows: Vec<TableRows>,
    bytes: usize,
    /// By table; `None` is all tables.
    breaks: HashMap<Option<TablePath>, ResyncReason>,
    /// Tables whose changes were found to reach others by foreign keys, since rows were passed on last.
    cascaded: HashSet<(TablePath, RowsKind)>,
    /// Tables whose rows were forgotten, since all rows of a prepared transaction would take too much memory.
    forgotten: HashSet<TablePath>,
    /// The tables of rows that were passed on.
    passed_on: HashSet<TablePath>,
    /// The names of the savepoints, and the number of [`Self::rows`] before each.
    savepoints: Vec<(Vec<u8>, usize)>,
}

impl Group {
    pub(super) fn new(event: &GtidEvent<'_>, server: u32, committed_at: u32, generation: u64) -> Self {
        let gtid = Gtid { domain: event.domain, server, number: event.sequence };
        let xid = event.xid.map(|xid| {
            let lengths = [xid.format.to_le_bytes(), u32::try_from(xid.global.len()).unwrap_or_default().to_le_bytes()];
            [lengths.as_flattened(), xid.global, xid.branch].concat()
        });
        Self {
            gtid,
            committed_at,
            generation,
            flags: event.flags,
            xid: xid.unwrap_or_default(),
            pieces: 0,
            rows: Vec::new(),
            bytes: 0,
            breaks: HashMap::new(),
            cascaded: HashSet::new(),
            forgotten: HashSet::new(),
            passed_on: HashSet::new(),
            savepoints: Vec::new(),
        }
    }

    pub(super) fn gtid(&self) -> Gtid {
        self.gtid
    }

    pub(super) fn xid(&self) -> &[u8] {
        &self.xid
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Adds the rows of a transaction that was prepared earlier, when fewer tables may have been followed.
    pub(super) fn add_prepared(&mut self, rows: Vec<TableRows>, generation: u64) {
        self.generation = self.generation.min(generation);
        rows.into_iter().for_each(|rows| self.add_rows(rows));
    }

    /// Whether the transaction is a single statement, which no COMMIT event follows.
    pub(super) fn is_standalone(&self) -> bool {
        self.flags & GtidEvent::STANDALONE != 0
    }

    /// Whether the group is a prepared XA transaction, which may be rolled back after its end.
    pub(super) fn is_prepared(&self) -> bool {
        self.flags & GtidEvent::PREPARED_XA != 0
    }

    pub(super) fn add_rows(&mut self, rows: TableRows) {
        self.bytes += rows.changes.iter().map(RowChange::bytes).sum::<usize>();
        self.rows.push(rows);
    }

    pub(super) fn take_rows(&mut self) -> Vec<TableRows> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }

    pub(super) fn add_break(&mut self, table: Option<TablePath>, reason: ResyncReason) {
        self.breaks.entry(table).or_insert(reason);
    }

    /// Whether the changes of the table must be followed to other tables. True once for each kind.
    pub(super) fn cascades_from(&mut self, table: &TablePath, kind: RowsKind) -> bool {
        self.cascaded.insert((table.clone(), kind))
    }

    /// Forgets all rows but for their tables, if they have more than `max_bytes`.
    pub(super) fn keep_at_most(&mut self, max_bytes: usize) {
        if self.bytes > max_bytes {
            let rows = self.take_rows();
            self.forgotten.extend(rows.iter().map(|rows| rows.table.path.clone()));
        }
    }

    /// Whether further rows need not be decoded. Their table counts as changed.
    pub(super) fn forgets(&mut self, table: &TablePath) -> bool {
        let forgets = !self.forgotten.is_empty();
        if forgets && !self.forgotten.contains(table) {
            self.forgotten.insert(table.clone());
        }
        forgets
    }

    pub(super) fn take_forgotten(&mut self) -> HashSet<TablePath> {
        std::mem::take(&mut self.forgotten)
    }

    pub(super) fn break_all(&mut self, reason: ResyncReason) {
        self.add_break(None, reason);
    }

    pub(super) fn set_savepoint(&mut self, name: &[u8]) {
        self.savepoints.retain(|(known, _)| known != name);
        self.savepoints.push((name.to_vec(), self.rows.len()));
    }

    /// Drops the rows after the savepoint. If the savepoint is unknown, because rows after it may have been passed on,
    /// adds a break for all tables.
    pub(super) fn roll_back_to(&mut self, name: &[u8]) {
        match self.savepoints.iter().position(|(known, _)| known == name) {
            Some(at) => {
                let (_, rows) = self.savepoints[at];
                self.savepoints.truncate(at + 1);
                self.rows.truncate(rows);
                self.bytes = self.rows.iter().flat_map(|rows| &rows.changes).map(RowChange::bytes).sum();
            }
            None => self.break_own(),
        }
    }

    /// Breaks the tables whose rows the transaction changed so far: other tables, perhaps of other projects, must not
    /// suffer from it.
    fn break_own(&mut self) {
        let own = self.rows.iter().map(|rows| &rows.table.path).chain(&self.passed_on);
        let own: HashSet<TablePath> = own.cloned().collect();
        own.into_iter().for_each(|table| self.add_break(Some(table), ResyncReason::StatementLogged));
    }

    /// The log keeps a transaction that was rolled back only for its changes in engines without transactions, which are
    /// not told from the others.
    pub(super) fn roll_back(&mut self) {
        self.break_own();
        self.take_rows();
    }

    /// Takes the rows read so far, to pass them on before the transaction ends. Forgets the savepoints: rows that were
    /// passed on can't be rolled back.
    pub(super) fn pass_on(&mut self) -> LogPiece {
        self.savepoints.clear();
        self.cascaded.clear();
        self.passed_on.extend(self.rows.iter().map(|rows| rows.table.path.clone()));
        self.piece(false)
    }

    pub(super) fn finish(&mut self) -> LogPiece {
        for table in self.take_forgotten() {
            self.add_break(Some(table), ResyncReason::TooSlow);
        }
        self.piece(true)
    }

    fn piece(&mut self, is_last: bool) -> LogPiece {
        let number = self.pieces;
        self.pieces += 1;
        let bytes = std::mem::take(&mut self.bytes);
        LogPiece {
            gtid: self.gtid,
            committed_at: self.committed_at,
            number,
            is_last,
            rows: std::mem::take(&mut self.rows),
            breaks: self.breaks.drain().map(|(table, reason)| Break { table, reason }).collect(),
            bytes,
            generation: self.generation,
        }
    }
}
