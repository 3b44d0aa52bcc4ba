//! New records, each given the key that comes back in its place.
//!
//! What a statement of several rows failed by is found out by each row itself: only then does it get an
//! error, and only its own.

use super::queue::Served;
use super::{Caller, Kind, Together, Told};
use crate::db::DbError;
use crate::db::pool::{Account, Lease};
use crate::db::run::{ended, execute, within};
use crate::plan::Param;
use crate::sql::Statement;
use crate::sql::row::RowShape;
use std::time::{Duration, Instant};

/// How long a statement waits for another's change of the table itself, at least, where it waits for one:
/// rows are not waited for.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// Inserts of single records.
#[derive(Debug)]
pub(in crate::db) struct Inserts;

impl Kind for Inserts {
    type Shape = RowShape;
    /// The values.
    type Part = Vec<Param>;
    /// The key, as the answer holds it.
    type Gain = Vec<u8>;

    /// docs/decisions/0012.
    const FLIGHTS_MAX: usize = 1;

    fn of(account: &Account) -> &Together<Self> {
        account.inserts()
    }

    /// A power of two, so that few texts do for any number of rows; the others wait for the next.
    fn share(shape: &RowShape, waiting: usize) -> usize {
        1 << waiting.min(shape.rows_max()).max(1).ilog2()
    }

    /// It may have happened: never again by itself.
    fn untold() -> Result<(), DbError> {
        Err(lost())
    }

    async fn serve(
        mut lease: Lease,
        shape: RowShape,
        parts: Vec<(Vec<Param>, Caller<Self>)>,
        limit: Duration,
    ) -> Served {
        let (rows, mut callers): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let statement = shape.together(rows);
        let started = Instant::now();
        let keys = tokio::select! {
            biased;
            keys = within(limit, keys(&mut lease, &statement, callers.len())) => keys,
            // It still runs: the lease kills it, as it would that of a single caller.
            () = left(&mut callers) => return Served::Together,
        };
        let spent = started.elapsed();
        match keys {
            Ok(keys) => {
                for (caller, key) in callers.into_iter().zip(keys) {
                    // One who has left needs no answer.
                    let _ = caller.send(Ok(Told::Gain(key, spent)));
                }
                Served::Together
            }
            Err(error) if undone(&error, spent) => {
                for caller in callers {
                    let _ = caller.send(Ok(Told::Apart));
                }
                Served::Apart
            }
            Err(error) => {
                for caller in callers {
                    let _ = caller.send(Err(error.clone()));
                }
                Served::Together
            }
        }
    }
}

/// The keys of so many rows, once MariaDB has committed them.
async fn keys(
    lease: &mut Lease,
    statement: &Statement,
    rows: usize,
) -> Result<Vec<Vec<u8>>, DbError> {
    lease.begin();
    let outcome = execute(lease.connection()?, statement).await;
    let written = ended(lease, outcome)?;
    match written.keys.len() == rows {
        true => Ok(written.keys),
        // Never seen.
        false => Err(lost()),
    }
}

/// Whether a statement that failed has left nothing, and a row of it may do better by itself. A time that
/// is over is over for each, and so is the patience of a statement that waited for the table.
fn undone(error: &DbError, spent: Duration) -> bool {
    match error {
        DbError::Refused(..) if error.is_lost() || error.is_cut_short() => false,
        DbError::Refused(..) if error.is_lock_timeout() => spent < LOCK_WAIT,
        DbError::Refused(..)
        | DbError::PacketTooLarge(_)
        | DbError::ParamCount(..)
        | DbError::Misread => true,
        _ => false,
    }
}

/// That MariaDB's word on an insert is not known.
fn lost() -> DbError {
    DbError::Unavailable("what became of an insert is not known".into())
}

/// Until all callers have left.
async fn left(callers: &mut [Caller<Inserts>]) {
    for caller in callers {
        caller.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, state: &str) -> DbError {
        let error = mysql_async::ServerError {
            code,
            message: "no".to_owned(),
            state: state.to_owned(),
        };
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
            assert!(undone(&refused(code, state), Duration::ZERO), "{code}");
        }
        assert!(undone(&DbError::PacketTooLarge(1), Duration::ZERO));
    }

    #[test]
    fn an_insert_that_may_have_happened_is_never_run_again() {
        let lost = [
            (2006, "HY000"),
            (2013, "HY000"),
            (1053, "08S01"),
            (1927, "70100"),
        ];
        for (code, state) in lost {
            assert!(!undone(&refused(code, state), Duration::ZERO), "{code}");
        }
        assert!(!undone(&super::lost(), Duration::ZERO));
        assert!(!undone(&DbError::Timeout, Duration::ZERO));
        assert!(Inserts::untold().is_err());
    }

    #[test]
    fn what_somebody_ended_or_waited_out_is_not_tried_again() {
        assert!(!undone(&refused(1317, "70100"), Duration::ZERO));
        assert!(!undone(&refused(1969, "70100"), Duration::ZERO));
        assert!(!undone(&refused(1205, "HY000"), LOCK_WAIT));
        assert!(undone(&refused(1062, "23000"), LOCK_WAIT));
    }
}
