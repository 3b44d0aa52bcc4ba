//! Inserts of one record that share a statement. If MariaDB refuses the statement, InnoDB rolls back all rows, and each
//! row is then inserted alone, so that only requests with a row at fault fail. If the rows may have been inserted, or
//! the statement was killed, timed out or waited for a table lock, all requests get its error.

use super::{CoalescedStatement, Coalescer, RequestQueue};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::pool::Lease;
use crate::database::run::{Written, execute};
use crate::query::plan::{Param, RowShape};
use crate::query::sql;
use std::time::Duration;

/// The time from which a lock timeout means a lock on the whole table: the INSERT waits for no row locks
/// (`innodb_lock_wait_timeout = 0`).
const LOCK_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Inserts;

impl CoalescedStatement for Inserts {
    type Shape = RowShape;
    type Item = Vec<Param>;
    type Output = Written;

    const IN_FLIGHT_MAX: usize = 1;

    fn queue(coalescer: &Coalescer) -> &RequestQueue<Self> {
        &coalescer.inserts
    }

    /// Returns a power of two, so that few distinct SQL texts are prepared.
    fn share(shape: &RowShape, waiting: usize) -> usize {
        1 << waiting.min(shape.insert_max_rows()).max(1).ilog2()
    }

    fn may_run_alone(error: &DbError, spent: Duration) -> bool {
        match error {
            DbError::Refused(..) if error.is_lost() || error.is_cut_short() => false,
            // The statement waited for a lock on the table, for which each row alone would wait too.
            DbError::Refused(..) if error.is_lock_timeout() => spent < LOCK_WAIT,
            DbError::Refused(..) | DbError::PacketTooLarge(_) | DbError::ParamCount(..) | DbError::Misread => true,
            // The rows may have been inserted.
            _ => false,
        }
    }

    async fn run_one(connection: &mut Connection, shape: &RowShape, row: Vec<Param>) -> Result<Written, DbError> {
        execute(connection, sql::insert_one(shape, row)).await
    }

    async fn run_several(
        connection: &mut Connection,
        shape: &RowShape,
        rows: Vec<Vec<Param>>,
    ) -> Result<Vec<Written>, DbError> {
        let written = execute(connection, sql::insert_several(shape, rows)).await?;
        let keys = written.keys.into_iter();
        Ok(keys.map(|key| Written { affected: 1, keys: vec![key], ..Written::default() }).collect())
    }

    async fn note_position(lease: &mut Lease, written: &mut [Written]) {
        let position = lease.position().await;
        written.iter_mut().for_each(|written| written.position.clone_from(&position));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, state: &str) -> DbError {
        let error = mysql_async::ServerError { code, message: "no".to_owned(), state: state.to_owned() };
        mysql_async::Error::Server(error).into()
    }

    #[test]
    fn what_a_row_was_refused_for_leaves_nothing_behind() {
        let refusals = [
            (1062, "23000"),
            (1452, "23000"),
            (4025, "23000"),
            (1406, "22001"),
            (1264, "22003"),
            (1054, "42S22"),
            (1142, "42000"),
            (1205, "HY000"),
            (1213, "40001"),
        ];
        for (code, state) in refusals {
            assert!(Inserts::may_run_alone(&refused(code, state), Duration::ZERO), "{code}");
        }
        assert!(Inserts::may_run_alone(&DbError::PacketTooLarge(1), Duration::ZERO));
    }

    #[test]
    fn an_insert_that_may_have_happened_is_never_run_again() {
        let lost = [(2006, "HY000"), (2013, "HY000"), (1053, "08S01"), (1927, "70100")];
        for (code, state) in lost {
            assert!(!Inserts::may_run_alone(&refused(code, state), Duration::ZERO), "{code}");
        }
        assert!(!Inserts::may_run_alone(&crate::database::coalesce::unknown(), Duration::ZERO));
        assert!(!Inserts::may_run_alone(&DbError::Timeout, Duration::ZERO));
    }

    #[test]
    fn what_somebody_ended_or_waited_out_is_not_tried_again() {
        assert!(!Inserts::may_run_alone(&refused(1317, "70100"), Duration::ZERO));
        assert!(!Inserts::may_run_alone(&refused(1969, "70100"), Duration::ZERO));
        assert!(!Inserts::may_run_alone(&refused(1205, "HY000"), LOCK_WAIT));
        assert!(Inserts::may_run_alone(&refused(1062, "23000"), LOCK_WAIT));
    }
}
