//! Events above [`EVENT_MAX_BYTES`](super::EVENT_MAX_BYTES), which end a reader's connection. A reader with a higher
//! maximum tells which tables the transaction concerns.

use super::{
    Break, FollowedTables, LogError, LogReader, LogSource, PreparedBefore, ResyncReason, source, table_number,
};
use crate::database::log_position::LogPosition;
use crate::database::position::Gtid;
use binlog::{Checksum, Decoder, EventType, RowsKind};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use mysql_async::binlog::events::Event;
use shared::operation::TablePath;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for finding and reading the transaction, and for waiting until other readers have done so.
const TIMEOUT: Duration = Duration::from_secs(60);

impl LogReader {
    /// The GTID of the transaction came before the event that was too long: the transaction then counts as read, without
    /// its rows.
    pub(super) fn failed(&mut self, error: &mysql_async::Error) -> Result<(), LogError> {
        if !source::is_too_long(error) {
            return Err(source::fault(error));
        }
        let PreparedBefore::Look(source) = &self.prepared_before else {
            // The caller may go on after the transaction with another reader.
            if let Some(group) = self.group.take() {
                self.ended(group);
            }
            return Err(source::fault(error));
        };
        let (source, before) = (source.clone(), self.position.clone());
        let mut group = self.group.take().ok_or_else(|| source::fault(error))?;
        group.take_rows();
        let breaks = breaks(source, Arc::clone(&self.followed), (before, group.gtid()));
        self.lacking = Some((self.ended(group), breaks));
        self.is_cut = true;
        Ok(())
    }

    /// Reads on after the last transaction: the driver can't go on after an event that was too long.
    pub(super) async fn connect_again(&mut self) -> Result<(), LogError> {
        if let PreparedBefore::Look(source) = &self.prepared_before {
            self.stream = source.stream(&self.position, self.extent).await?;
        }
        self.decoder = Decoder::new(Checksum::None);
        (self.has_format, self.is_cut) = (false, false);
        Ok(())
    }

    /// Tells the tables of a long event without decoding it.
    pub(super) fn pass_over(&mut self, event: &Event) {
        let Some(group) = &mut self.group else {
            return;
        };
        let Some(kind) = RowsKind::of(EventType(event.header().event_type_raw())) else {
            group.break_all(ResyncReason::TooSlow);
            return;
        };
        if let Some(mapped) = table_number(event).and_then(|number| self.tables.get(&number)) {
            let own = mapped.decoded.iter().map(|_| mapped.path.clone());
            let reached = self.followed.reached_from(&mapped.path, kind);
            own.chain(reached).for_each(|table| group.add_break(Some(table), ResyncReason::TooSlow));
        }
    }
}

/// The breaks by the first transaction after `before`: of the followed tables that the transaction concerns, or of all if
/// the transaction can't be read.
fn breaks(
    source: LogSource,
    followed: Arc<FollowedTables>,
    (before, gtid): (LogPosition, Gtid),
) -> BoxFuture<'static, Vec<Break>> {
    let found = tokio::time::timeout(TIMEOUT, tables(source, followed, before, gtid));
    let breaks = found.map(|found| {
        let tables = found.unwrap_or_else(|_| Err(LogError::Lost("a transaction took too long to be read".to_owned())));
        let tables = tables.unwrap_or_else(|error| {
            tracing::warn!(%error, "the tables of a transaction with a long row are unknown");
            HashSet::from([None])
        });
        tables.into_iter().map(|table| Break { table, reason: ResyncReason::TooSlow }).collect()
    });
    breaks.boxed()
}

async fn tables(
    source: LogSource,
    followed: Arc<FollowedTables>,
    before: LogPosition,
    gtid: Gtid,
) -> Result<HashSet<Option<TablePath>>, LogError> {
    let permit = source.long.acquire().await;
    let _permit = permit.map_err(|error| LogError::Lost(error.to_string()))?;
    let mut reader = source.open_long(before, followed).await?;
    let mut tables = HashSet::new();
    while let Some(piece) = reader.next().await? {
        if piece.gtid != gtid {
            continue;
        }
        tables.extend(piece.rows.iter().map(|rows| Some(rows.table.path.clone())));
        tables.extend(piece.breaks.into_iter().map(|found| found.table));
        if piece.is_last {
            return Ok(tables);
        }
    }
    Err(LogError::Lost("the log ended within a transaction".to_owned()))
}
