//! Gathers the changes of a page, and keeps the place after them.

use super::{CHANGES_PER_ROW, CHANGES_PER_SUBSCRIPTION, Page, PageLimits, Row};
use crate::changes::message::{Change, SeenChange, finish};
use crate::changes::subscription::Followed;
use crate::changes::token::Place;
use crate::database::Lessee;
use crate::database::log_position::LogPosition;
use crate::database::position::Gtid;
use crate::database::run::images::SeenRows;
use crate::project_quota::{ProjectQuota, QuotaGuard};
use shared::limits::UNCOUNTED_ANSWER_MAX_BYTES;

#[derive(Default)]
pub(super) struct Builder {
    pub(super) began_at: Place,
    pub(super) place: Place,
    pub(super) changes: Vec<Change>,
    /// The last change. It is not in `changes` yet, since the page does not know whether the change is the last one of
    /// its transaction.
    pub(super) pending: Option<Pending>,
    pub(super) bytes: usize,
    /// The memory of `bytes`.
    pub(super) held: Option<QuotaGuard>,
    pub(super) row_number: u64,
    /// The transaction within which the page begins, until the end of that transaction was read.
    pub(super) resumed_in: Option<Gtid>,
    /// The last piece that was read, unless its transaction ends with it.
    pub(super) after_piece: Option<(Gtid, u32)>,
    pub(super) is_full: bool,
    /// Whether the page ends before a break: the request for the next page then fails with the reason of the break.
    pub(super) is_broken: bool,
}

pub(super) struct Pending {
    gtid: Gtid,
    /// The number of the row in its transaction × [`CHANGES_PER_ROW`], plus the index of the subscription ×
    /// [`CHANGES_PER_SUBSCRIPTION`], plus the index of the change.
    number: u64,
    json: Vec<u8>,
}

impl Builder {
    pub(super) fn is_at_limit(&self, limits: PageLimits) -> bool {
        self.changes.len() + usize::from(self.pending.is_some()) >= limits.rows || self.bytes >= limits.bytes
    }

    /// Counts the memory of the changes, which exist already.
    pub(super) fn hold(&mut self, memory: &ProjectQuota, lessee: Lessee<'_>) {
        let bytes = (2 * self.bytes as u64).min(memory.share());
        if bytes > UNCOUNTED_ANSWER_MAX_BYTES {
            self.held = Some(memory.take_beyond(lessee.project, lessee.caller, bytes));
        }
    }

    /// Whether earlier pages returned all changes of the row. If they returned only some, the row is read again.
    pub(super) fn skips(&self, gtid: Gtid, row: u64) -> bool {
        self.place.within.is_some_and(|(within, from)| within == gtid && (row + 1) * CHANGES_PER_ROW <= from)
    }

    /// Whether earlier pages returned all changes of the row that the subscription with this index sees.
    pub(super) fn has_all_of(&self, row: &Row, subscription: usize) -> bool {
        let after = row.number * CHANGES_PER_ROW + (subscription as u64 + 1) * CHANGES_PER_SUBSCRIPTION;
        self.place.within.is_some_and(|(within, from)| within == row.piece.gtid && after <= from)
    }

    pub(super) fn add(
        &mut self,
        row: &Row,
        (subscription, followed): (usize, &Followed),
        (rows, changes): (&SeenRows, [Option<SeenChange>; 2]),
        limits: PageLimits,
    ) {
        if self.is_full {
            return;
        }
        let gtid = row.piece.gtid;
        let mut position = self.place.position.clone();
        position.advance(gtid);
        let first = row.number * CHANGES_PER_ROW + subscription as u64 * CHANGES_PER_SUBSCRIPTION;
        for (number, change) in (first..).zip(changes.into_iter().flatten()) {
            let is_told = self.place.within.is_some_and(|(within, from)| within == gtid && number < from);
            if is_told || !followed.types.contains(&change.change_type()) {
                continue;
            }
            let is_at_limit = self.is_at_limit(limits);
            self.flush(false);
            if is_at_limit {
                self.is_full = true;
                return;
            }
            let mut json = Vec::with_capacity(256);
            change.write(rows, followed.id.as_deref(), &position, row.piece.committed_at, &mut json);
            self.bytes += json.len();
            self.pending = Some(Pending { gtid, number, json });
        }
    }

    /// Moves the pending change to the page.
    pub(super) fn flush(&mut self, ends_transaction: bool) {
        let Some(Pending { gtid, number, mut json }) = self.pending.take() else {
            return;
        };
        finish(&mut json, ends_transaction);
        let mut after = self.place.clone();
        match ends_transaction {
            true => {
                after.position.advance(gtid);
                after.within = None;
            }
            false => after.within = Some((gtid, number + 1)),
        }
        self.place.within = after.within;
        self.changes.push(Change { json, after, ends_transaction });
    }

    pub(super) fn end(&mut self, gtid: Gtid) {
        self.flush(true);
        self.place.position.advance(gtid);
        self.place.within = None;
    }

    /// Returns where the next page begins, if this one ends now.
    pub(super) fn next(&self) -> Place {
        let Place { position, within } = &self.place;
        let within = match (&self.pending, self.after_piece) {
            // The next page returns this change, when it is known whether the change is the last one of its transaction.
            (Some(Pending { gtid, number, .. }), _) => Some((*gtid, *number)),
            // The caller saw none of the transaction's further rows that were read.
            (None, Some((gtid, _))) if !self.is_full => {
                let known = within.filter(|(within, _)| *within == gtid).map_or(0, |(_, from)| from);
                Some((gtid, known.max(self.row_number * CHANGES_PER_ROW)))
            }
            (None, _) => *within,
        };
        Place { position: position.clone(), within }
    }

    /// Whether the next page begins after this one. A page that ends without that would be asked for again and again.
    pub(super) fn has_moved(&self) -> bool {
        self.next() != self.began_at
    }

    /// Prepares to read from [`Self::place`] on, from the feed or the log.
    pub(super) fn restart(&mut self) {
        if let Some(Pending { gtid, number, .. }) = self.pending.take() {
            self.place.within = Some((gtid, number));
        }
        self.row_number = 0;
        self.after_piece = None;
        self.resumed_in = self.place.within.map(|(gtid, _)| gtid);
    }

    /// Returns the page. `head` is the position of the log's end, if the page reached it.
    pub(super) fn finish(mut self, head: Option<LogPosition>) -> Page {
        let up_to_date = head.is_some();
        self.place = self.next();
        if let Some(head) = head.filter(|head| self.place.within.is_none() && head.is_at_or_after(&self.place.position))
        {
            self.place.position = head;
        }
        Page { changes: self.changes, next: self.place, up_to_date, held: self.held }
    }
}
