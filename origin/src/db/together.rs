//! Reads and inserts of single records that gather while others of their shape are on their way to
//! MariaDB; the next statement takes all of them.
//!
//! Nobody waits for others to come: one of whose shape few are on their way goes at once, by itself.
//! What gathers is run by a statement that begins after it has come, so nobody sees data from before
//! its own request. Each account has its own; knows nothing of requests.

mod batch;
mod flight;
mod inserts;
mod queue;
mod reads;

pub(super) use flight::{Boarded, Flight};
pub(super) use inserts::Inserts;
pub(super) use reads::Reads;

use super::DbError;
use super::pool::{Account, Lease, Place};
use queue::{Queue, Served};
use std::hash::Hash;
use std::time::Duration;
use tokio::sync::oneshot;

/// What gathers: reads of single records, or new records.
pub(in crate::db) trait Kind: Sized + Send + 'static {
    /// What those of one statement have in common.
    type Shape: Clone + Eq + Hash + Send + Sync + 'static;
    /// What each of them adds to it.
    type Part: Send;
    /// What each of them gets.
    type Gain: Send;

    /// Statements of one shape under way at once, found by measurement.
    const FLIGHTS_MAX: usize;

    /// Those of an account.
    fn of(account: &Account) -> &Together<Self>;

    /// How many the next statement takes of so many that wait, one at least.
    fn share(shape: &Self::Shape, waiting: usize) -> usize;

    /// What becomes of one who is told nothing: it is run by itself, or fails with this.
    fn untold() -> Result<(), DbError>;

    /// Runs one statement for all of these, and tells each what came of it.
    fn serve(
        lease: Lease,
        shape: Self::Shape,
        parts: Vec<(Self::Part, Caller<Self>)>,
        limit: Duration,
    ) -> impl Future<Output = Served> + Send;
}

/// What has gathered. Waiters have places in the account's queue, so it is bounded as that is.
pub(super) type Together<K> = Queue<<K as Kind>::Shape, Waiter<K>>;

/// One that waits for the next statement.
pub(super) struct Waiter<K: Kind> {
    part: K::Part,
    caller: Caller<K>,
    /// In the account's queue.
    _place: Place,
}

/// What one who has waited is told.
pub(super) type Answer<K> = Result<Told<<K as Kind>::Gain>, DbError>;

/// What one who has waited is told, unless it failed.
#[derive(Debug)]
pub(super) enum Told<T> {
    /// What it gets, and how long MariaDB took.
    Gain(T, Duration),
    /// To run by itself: nothing was done for it.
    Apart,
}

/// Whom an answer goes to.
type Caller<K> = oneshot::Sender<Answer<K>>;
