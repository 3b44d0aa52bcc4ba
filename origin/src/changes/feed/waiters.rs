//! The requests that wait for changes of a table. Must not know where changes come from.

use super::Feed;
use crate::database::log_position::LogPosition;
use crate::database::log_reader::TableRows;
use shared::operation::TablePath;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A table and, for a waiter that waits only for rows with one value, the name of a column and the JSON of that value.
/// `None` waits for every change of the table.
pub(in crate::changes) type WaitedFor = (TablePath, Option<(Box<str>, Box<str>)>);

/// A waiting request. It is in the [`Waiters`] of each of its tables, and is removed on drop.
pub struct Waiter {
    pub(super) feed: Feed,
    pub(super) id: u64,
    pub(super) wake: Arc<Wake>,
    pub(super) tables: Vec<WaitedFor>,
}

type WakesById = HashMap<u64, Arc<Wake>>;

/// The requests that wait for changes of one table: of all rows, or only of rows with a value.
#[derive(Default)]
pub(super) struct Waiters {
    all: WakesById,
    /// By the name of the column, then by the JSON of its value.
    by_value: HashMap<Box<str>, HashMap<Box<str>, WakesById>>,
}

#[derive(Default)]
pub(super) struct Wake {
    pub(super) is_due: AtomicBool,
    pub(super) notify: Notify,
}

impl Wake {
    pub(super) fn wake(&self) {
        self.is_due.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}

impl Waiters {
    pub(super) fn add(&mut self, id: u64, only: Option<&(Box<str>, Box<str>)>, wake: &Arc<Wake>) {
        let waiters = match only {
            None => &mut self.all,
            Some((column, value)) => {
                let by_value = self.by_value.entry(column.clone()).or_default();
                by_value.entry(value.clone()).or_default()
            }
        };
        waiters.insert(id, Arc::clone(wake));
    }

    pub(super) fn remove(&mut self, id: u64, only: Option<&(Box<str>, Box<str>)>) {
        let Some((column, value)) = only else {
            self.all.remove(&id);
            return;
        };
        if let Some(by_value) = self.by_value.get_mut(column) {
            if let Some(waiters) = by_value.get_mut(value) {
                waiters.remove(&id);
                if waiters.is_empty() {
                    by_value.remove(value);
                }
            }
            if by_value.is_empty() {
                self.by_value.remove(column);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.by_value.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        let by_value = self.by_value.values().flat_map(HashMap::values);
        self.all.len() + by_value.map(HashMap::len).sum::<usize>()
    }

    pub(super) fn wake_all(&self) {
        let by_value = self.by_value.values().flat_map(HashMap::values);
        for wake in [&self.all].into_iter().chain(by_value).flat_map(HashMap::values) {
            wake.wake();
        }
    }

    pub(super) fn wake(&self, rows: &TableRows) {
        self.all.values().for_each(|wake| wake.wake());
        for (column, by_value) in &self.by_value {
            let Some(at) = rows.table.columns.iter().position(|known| known.name == *column) else {
                continue;
            };
            for change in &rows.changes {
                for image in change.images() {
                    if image.lacks(at) {
                        by_value.values().flat_map(HashMap::values).for_each(|wake| wake.wake());
                        continue;
                    }
                    let waiting = by_value.get(image.cell(at));
                    waiting.into_iter().flat_map(HashMap::values).for_each(|wake| wake.wake());
                }
            }
        }
    }
}

impl Waiter {
    /// Waits until a change may have come, and returns `None`. If none has come within `time`, returns the position of
    /// the feed: up to it, there is no change.
    pub async fn wait(&self, time: Duration) -> Option<LogPosition> {
        let _ = tokio::time::timeout(time, self.wake.notify.notified()).await;
        let state = self.feed.state();
        match self.wake.is_due.swap(false, Ordering::AcqRel) {
            true => None,
            false => Some(state.head.clone()),
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut state = self.feed.state();
        for (path, only) in &self.tables {
            if let Some(table) = state.tables.get_mut(path) {
                table.waiters.remove(self.id, only.as_ref());
                table.used_at = Instant::now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::log_reader::{CellEncoding, LoggedColumn, LoggedTable, RowChange, RowImage};
    use shared::ident::{DatabaseName, TableName};

    #[test]
    fn a_row_without_the_value_wakes_all_who_wait_for_one() {
        let path = TablePath { database: DatabaseName::parse("d").unwrap(), table: TableName::parse("t").unwrap() };
        let column = LoggedColumn { name: "v".into(), collation: None, encoding: CellEncoding::Text };
        let table = Arc::new(LoggedTable { path, columns: vec![column] });
        let woken = |cell: Option<&str>| {
            let (mut waiters, wakes) = (Waiters::default(), [Arc::<Wake>::default(), Arc::default()]);
            for (id, (value, wake)) in (1..).zip(["5", "6"].into_iter().zip(&wakes)) {
                waiters.add(id, Some(&("v".into(), value.into())), wake);
            }
            let change = RowChange { before: None, after: Some(RowImage::of_one_cell(cell)) };
            waiters.wake(&TableRows { table: Arc::clone(&table), changes: vec![change] });
            wakes.map(|wake| wake.is_due.load(Ordering::Acquire))
        };
        assert_eq!(woken(Some("5")), [true, false]);
        assert_eq!(woken(None), [true, true]);
    }
}
