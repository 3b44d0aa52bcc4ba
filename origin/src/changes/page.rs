//! Makes pages of changes: takes the transactions after a place, reads their rows as the lists of the subscriptions
//! would show them, and stops at a limit. The content of a full page follows from the place, the subscriptions and the
//! limit, so every origin returns the same page.

mod builder;

use super::catch_up::CatchUps;
use super::feed::{Feed, Recent};
use super::message::{Change, SeenChange};
use super::shared_reads::SharedReads;
use super::subscription::{Followed, Subscriptions};
use super::token::Place;
use super::{ChangesError, ResyncReason};
use crate::database::log_reader::{LogPiece, LoggedTable, RowChange, TableFacts};
use crate::database::position::Gtid;
use crate::database::run::images::SeenRows;
use crate::database::{DbError, Lessee, Pools};
use crate::project_quota::{ProjectQuota, QuotaGuard};
use crate::query::sql::ImageColumn;
use builder::Builder;
use futures_util::future::try_join_all;
use shared::error::Problem;
use shared::limits::{SUBSCRIPTIONS_MAX_COUNT, UNCOUNTED_ANSWER_MAX_BYTES};
use shared::operation::TablePath;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of logged rows that one statement reads for a subscription. A statement takes no further row once its
/// rows have [`BATCH_BYTES`].
const BATCH_MAX_ROWS: usize = 1_000;
const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of memory that a read takes for each byte of its logged rows: the document, the answer, its decoded rows, the
/// changes as JSON.
const READ_MEMORY: usize = 4;
/// Bytes of changes at which a page of the API ends.
pub const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The time after which a page ends even if it has few changes, because the log has few rows of the followed tables.
const PAGE_TIME: Duration = Duration::from_secs(5);
/// Numbers for the changes that one logged row makes: [`CHANGES_PER_SUBSCRIPTION`] for each subscription.
const CHANGES_PER_ROW: u64 = 256;
const CHANGES_PER_SUBSCRIPTION: u64 = 2;
const _: () = assert!(SUBSCRIPTIONS_MAX_COUNT as u64 * CHANGES_PER_SUBSCRIPTION <= CHANGES_PER_ROW);

#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    pub rows: usize,
    /// The bytes of changes at which a page ends.
    pub bytes: usize,
    /// The time limit of one statement, and of the wait for its memory.
    pub statement: Duration,
}

#[derive(Debug, Default)]
pub struct Page {
    pub changes: Vec<Change>,
    /// Where the next page begins.
    pub next: Place,
    /// Whether the page reached the end of the log.
    pub up_to_date: bool,
    /// The memory of a long page, as JSON and in an answer.
    pub held: Option<QuotaGuard>,
}

pub struct Pager<'a> {
    pub feed: &'a Feed,
    pub catch_ups: &'a CatchUps,
    pub reads: &'a SharedReads,
    pub pools: &'a Arc<Pools>,
    pub lessee: Lessee<'a>,
    pub subscriptions: &'a Subscriptions,
    /// Shared with the answers that are held as a whole.
    pub memory: &'a ProjectQuota,
    pub limits: PageLimits,
}

/// A logged row of a followed table, or the end of a transaction.
enum Item {
    Row(Row),
    End(Gtid),
}

struct Row {
    piece: Arc<LogPiece>,
    /// The index in [`LogPiece::rows`], and that of the row in the table's `changes`.
    at: (usize, usize),
    /// The index of the row among the rows of its transaction in tables of the subscriptions.
    number: u64,
}

impl Row {
    fn table(&self) -> &Arc<LoggedTable> {
        &self.piece.rows[self.at.0].table
    }

    fn change(&self) -> &RowChange {
        &self.piece.rows[self.at.0].changes[self.at.1]
    }
}

/// The rows of a batch that one subscription shows. `numbers` has, for each row of the batch, the indexes of the row
/// before and after its change in the JSON document that the statement read.
struct Seen {
    rows: Arc<SeenRows>,
    numbers: Vec<(Option<usize>, Option<usize>)>,
}

impl Seen {
    fn changes_of(&self, row: usize) -> (&SeenRows, [Option<SeenChange>; 2]) {
        let (before, after) = self.numbers.get(row).copied().unwrap_or_default();
        (&self.rows, SeenChange::of(&self.rows, before, after))
    }
}

impl Pager<'_> {
    /// Follows the tables of the subscriptions, and returns the facts about them that the log does not contain.
    pub async fn follow(&self) -> Result<Vec<(TablePath, TableFacts)>, ChangesError> {
        let tables = self.subscriptions.tables().into_iter().map(|path| async {
            let facts = self.feed.follow(self.lessee.project, &path).await?;
            Ok((path, facts))
        });
        try_join_all(tables).await
    }

    /// Returns the page after `place`. [`Self::follow`] must have returned `tables`.
    pub async fn page(&self, place: Place, tables: &[(TablePath, TableFacts)]) -> Result<Page, ChangesError> {
        let paths: Vec<TablePath> = tables.iter().map(|(path, _)| path.clone()).collect();
        let mut builder = Builder { began_at: place.clone(), place, ..Builder::default() };
        builder.restart();
        let began = Instant::now();
        loop {
            let after = (&builder.place.position, builder.after_piece);
            let Some(Recent { pieces, head }) = self.feed.recent(&paths, after, BATCH_BYTES) else {
                return Box::pin(self.page_of_log(builder, tables, began)).await;
            };
            self.add(&mut builder, &pieces).await?;
            if builder.is_full || builder.is_broken || (began.elapsed() > PAGE_TIME && builder.has_moved()) {
                return Ok(builder.finish(None));
            }
            if let Some(head) = head {
                return Ok(builder.finish(Some(head)));
            }
        }
    }

    async fn page_of_log(
        &self,
        mut builder: Builder,
        tables: &[(TablePath, TableFacts)],
        began: Instant,
    ) -> Result<Page, ChangesError> {
        let paths: Vec<TablePath> = tables.iter().map(|(path, _)| path.clone()).collect();
        builder.restart();
        let (project, caller) = (self.lessee.project, self.lessee.caller);
        let mut log = self.catch_ups.open((project, caller), tables, &builder.place).await?;
        builder.row_number = log.rows_read();
        // The log may have gone on since an earlier page read its end.
        let is_stale = log.has_ended();
        loop {
            let (pieces, is_end) = log.gather(BATCH_BYTES, PAGE_TIME).await?;
            self.add(&mut builder, &pieces).await?;
            if is_end && !builder.is_full && !builder.is_broken {
                return Ok(builder.finish(Some(log.position().clone()).filter(|_| !is_stale)));
            }
            let is_whole = !builder.is_full && !builder.is_broken;
            if !is_whole || (began.elapsed() > PAGE_TIME && builder.has_moved()) {
                let has_used_all = is_whole && builder.pending.is_none();
                let rows = builder.after_piece.map_or(0, |_| builder.row_number);
                let page = builder.finish(None);
                if has_used_all {
                    self.catch_ups.keep(project, paths, page.next.clone(), log.after_rows(rows));
                } else if page.next.within.is_none() {
                    let unused = pieces.into_iter().filter(|piece| !page.next.position.includes(piece.gtid));
                    log.give_back(unused.collect::<Vec<_>>().into_iter());
                    self.catch_ups.keep(project, paths, page.next.clone(), log.after_rows(0));
                }
                // Else the next page reads its transaction again from its first piece, which this reader has passed.
                return Ok(page);
            }
        }
    }

    /// Adds the changes of the pieces to the page, until the page is full or a break follows.
    async fn add(&self, builder: &mut Builder, pieces: &[Arc<LogPiece>]) -> Result<(), ChangesError> {
        let mut items = Vec::new();
        let (mut rows, mut bytes) = (0, 0);
        // All subscriptions' rows are in memory at the same time.
        let max_bytes = BATCH_BYTES / self.subscriptions.all.len().max(1);
        for piece in pieces {
            if builder.place.position.includes(piece.gtid) {
                continue;
            }
            let break_here = self.break_in(piece);
            if builder.resumed_in.is_some_and(|gtid| gtid != piece.gtid) {
                // The feed's memory has no transactions without changes, so a place from it may be before such ones.
                if break_here.is_none() && !self.concerns(piece) {
                    continue;
                }
                return Err(ChangesError::Resync(ResyncReason::UnknownPosition));
            }
            if let Some(reason) = break_here {
                self.add_items(builder, &items).await?;
                // A pending change is of the broken transaction: the next page would have the same again.
                if builder.is_full || !builder.changes.is_empty() {
                    builder.is_broken = true;
                    return Ok(());
                }
                return Err(ChangesError::Resync(reason));
            }
            if piece.number == 0 {
                builder.row_number = 0;
            }
            for (table, of_table) in piece.rows.iter().enumerate() {
                if !self.subscriptions.all.iter().any(|followed| of_table.table.path == *followed.path()) {
                    continue;
                }
                for (at, change) in of_table.changes.iter().enumerate() {
                    let number = builder.row_number;
                    builder.row_number += 1;
                    if builder.skips(piece.gtid, number) {
                        continue;
                    }
                    // A long row stands alone.
                    if rows >= BATCH_MAX_ROWS || (rows > 0 && bytes + change.bytes() > max_bytes) {
                        self.add_items(builder, &items).await?;
                        items.clear();
                        (rows, bytes) = (0, 0);
                        if builder.is_full {
                            return Ok(());
                        }
                    }
                    items.push(Item::Row(Row { piece: Arc::clone(piece), at: (table, at), number }));
                    (rows, bytes) = (rows + 1, bytes + change.bytes());
                }
            }
            builder.after_piece = Some((piece.gtid, piece.number)).filter(|_| !piece.is_last);
            if piece.is_last {
                items.push(Item::End(piece.gtid));
                builder.resumed_in = None;
            }
        }
        self.add_items(builder, &items).await
    }

    /// Whether a subscription's table has rows in the piece.
    fn concerns(&self, piece: &LogPiece) -> bool {
        piece.rows.iter().any(|rows| self.subscriptions.all.iter().any(|followed| rows.table.path == *followed.path()))
    }

    fn break_in(&self, piece: &LogPiece) -> Option<ResyncReason> {
        let concerns = |table: &Option<TablePath>| {
            table.as_ref().is_none_or(|table| self.subscriptions.all.iter().any(|followed| followed.path() == table))
        };
        piece.breaks.iter().find(|found| concerns(&found.table)).map(|found| found.reason)
    }

    async fn add_items(&self, builder: &mut Builder, items: &[Item]) -> Result<(), ChangesError> {
        let rows: Vec<&Row> = items
            .iter()
            .filter_map(|item| match item {
                Item::Row(row) => Some(row),
                Item::End(_) => None,
            })
            .collect();
        let held = match self.memory_of(&rows) {
            None => None,
            Some(bytes) => match self.take(builder, bytes).await? {
                Some(held) => Some(held),
                None => {
                    builder.is_full = true;
                    return Ok(());
                }
            },
        };
        let added = self.add_rows(builder, items, &rows).await;
        builder.hold(self.memory, self.lessee);
        drop(held);
        added
    }

    /// Returns the memory that a read of the rows takes, if it counts.
    fn memory_of(&self, rows: &[&Row]) -> Option<u64> {
        let seen_by = |row: &&&Row| {
            let path = &row.table().path;
            self.subscriptions.all.iter().filter(|followed| followed.path() == path).count()
        };
        let seen: usize = rows.iter().map(|row| row.change().bytes() * seen_by(&row)).sum();
        let bytes = match rows {
            // Of a row alone, only what one subscription sees is read at a time, and then the page may be full.
            [row] => seen.min(row.change().bytes() + PAGE_BYTES),
            _ => seen,
        };
        let bytes = (bytes * READ_MEMORY) as u64;
        (bytes > UNCOUNTED_ANSWER_MAX_BYTES).then(|| bytes.min(self.memory.share()))
    }

    /// Takes memory for a read. If there is none now, returns `None` for a page with changes, which ends instead: pages
    /// that wait for memory must hold none.
    async fn take(&self, builder: &Builder, bytes: u64) -> Result<Option<QuotaGuard>, Problem> {
        let Lessee { project, caller, .. } = self.lessee;
        match self.memory.try_take_as(project, caller, bytes) {
            Ok(held) => Ok(Some(held)),
            Err(_) if !builder.changes.is_empty() => Ok(None),
            Err(refused) => {
                let taken =
                    tokio::time::timeout(self.limits.statement, self.memory.take_as(project, caller, bytes)).await;
                taken.map(Some).map_err(|_| refused.into_problem("bytes of long answers"))
            }
        }
    }

    async fn add_rows(&self, builder: &mut Builder, items: &[Item], rows: &[&Row]) -> Result<(), ChangesError> {
        let mut seen = Vec::new();
        if rows.len() > 1 {
            for followed in &self.subscriptions.all {
                seen.push(self.read(followed, rows).await?);
            }
        }
        let mut next = 0;
        for item in items {
            match item {
                Item::End(gtid) => builder.end(*gtid),
                Item::Row(row) if rows.len() == 1 => self.add_alone(builder, row).await?,
                Item::Row(row) => {
                    for (at, (followed, seen)) in self.subscriptions.all.iter().zip(&seen).enumerate() {
                        if let Some(seen) = seen {
                            builder.add(row, (at, followed), seen.changes_of(next), self.limits);
                        }
                    }
                    next += 1;
                }
            }
            if builder.is_full {
                return Ok(());
            }
            if builder.is_at_limit(self.limits) && matches!(item, Item::End(_)) {
                builder.is_full = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Adds a row, which may be long: only what one subscription sees of it is in memory at a time.
    async fn add_alone(&self, builder: &mut Builder, row: &Row) -> Result<(), ChangesError> {
        for (at, followed) in self.subscriptions.all.iter().enumerate() {
            if builder.is_full {
                return Ok(());
            }
            if builder.has_all_of(row, at) {
                continue;
            }
            if let Some(seen) = self.read(followed, &[row]).await? {
                builder.add(row, (at, followed), seen.changes_of(0), self.limits);
            }
        }
        Ok(())
    }

    /// Returns which of the rows a subscription shows; `None` if its table has none of the rows.
    async fn read(&self, followed: &Followed, rows: &[&Row]) -> Result<Option<Seen>, ChangesError> {
        let mut columns: Option<(Arc<LoggedTable>, Vec<ImageColumn>)> = None;
        let mut document = String::from("[");
        let mut numbers = Vec::with_capacity(rows.len());
        let (mut count, mut lacking) = (0, false);
        for row in rows {
            let logged = row.table();
            if logged.path != *followed.path() {
                numbers.push((None, None));
                continue;
            }
            match &columns {
                Some((known, _)) if Arc::ptr_eq(known, logged) || known == logged => {}
                Some(_) => return Err(ChangesError::Resync(ResyncReason::SchemaChanged)),
                None => {
                    let found = followed.columns(logged, self.feed.source());
                    let found = found.ok_or(ChangesError::Resync(ResyncReason::SchemaChanged))?;
                    columns = Some((Arc::clone(logged), found));
                }
            }
            let change = row.change();
            let mut add = |image: &Option<_>| {
                let image = image.as_ref().filter(|image| !followed.is_history(logged, image))?;
                if count > 0 {
                    document.push(',');
                }
                document.push_str(image.json());
                lacking |= image.is_incomplete();
                count += 1;
                Some(count - 1)
            };
            numbers.push((add(&change.before), add(&change.after)));
        }
        document.push(']');
        let Some((_, mut columns)) = columns.filter(|_| count > 0) else {
            return Ok(None);
        };
        if lacking {
            followed.add_expressions(&mut columns);
        }
        let statement = followed.read_images(&columns, document);
        let layout = followed.plan().select.layout();
        let sizes = (count, self.limits.statement);
        let read = self.reads.read(self.pools, self.lessee, statement, layout, sizes).await;
        let rows = read.map_err(|error| match error {
            // The rows are too long for one statement.
            DbError::PacketTooLarge(_) => ChangesError::Resync(ResyncReason::TooSlow),
            error => error.into(),
        })?;
        Ok(Some(Seen { rows, numbers }))
    }
}
