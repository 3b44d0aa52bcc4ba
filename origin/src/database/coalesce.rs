//! Coalesces reads by key and inserts of one record that have one shape (account, table, columns, time limit) and
//! arrive while statements of that shape are in flight (docs/decisions/0012). A shared statement begins after all of
//! its requests have arrived, so that no request gets data that was read before the request arrived. Knows nothing of
//! HTTP.

mod in_flight;
mod insert_one;
mod queue;
mod select_by_key;

use super::DbError;
use super::connection::Connection;
use super::pool::{Account, Lease, Lessee, Pools, QueueTicket, ReadFrom};
use super::run::related::size;
use super::run::{Found, StatementStats, Written, encode_record, within};
use crate::query::plan::{InsertOne, SelectByKey};
use in_flight::InFlight;
use insert_one::Inserts;
use queue::{Joined, Queue};
use select_by_key::Reads;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use uuid::Uuid;

#[derive(Debug)]
pub struct Coalescer {
    pools: Arc<Pools>,
    reads: RequestQueue<Reads>,
    inserts: RequestQueue<Inserts>,
    /// The number of shared statements, including failed ones.
    shared_statements: AtomicU64,
    shared_requests: AtomicU64,
}

trait CoalescedStatement: Sized + Send + Sync + 'static {
    /// What coalesced requests have in common. [`Key`] adds the account and the time limit.
    type Shape: Eq + Hash + Send + Sync + 'static;
    type Item: Clone + Send + 'static;
    type Output: Send + 'static;

    /// The maximum number of statements in flight for one [`Key`], found by measurement.
    const IN_FLIGHT_MAX: usize;

    fn queue(coalescer: &Coalescer) -> &RequestQueue<Self>;

    /// Returns how many of the `waiting` requests the next statement serves. Both numbers are at least 1.
    fn share(shape: &Self::Shape, waiting: usize) -> usize;

    /// Returns true if the failed statement wrote nothing and a request alone may succeed.
    fn may_run_alone(error: &DbError, spent: Duration) -> bool;

    fn run_one(
        connection: &mut Connection,
        shape: &Self::Shape,
        item: Self::Item,
    ) -> impl Future<Output = Result<Self::Output, DbError>> + Send;

    /// Returns one output per item, in order, or another number if the result can't be assigned to the requests.
    fn run_several(
        connection: &mut Connection,
        shape: &Self::Shape,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<Vec<Self::Output>, DbError>> + Send;

    fn note_position(lease: &mut Lease, outputs: &mut [Self::Output]) -> impl Future<Output = ()> + Send;
}

/// The requests that wait for a shared statement of one kind: reads by key, or inserts of one record.
type RequestQueue<K> = Queue<Key<<K as CoalescedStatement>::Shape>, Waiter<K>>;

struct Key<S> {
    account: Arc<Account>,
    shape: Arc<S>,
    limit: Duration,
}

impl<S> Clone for Key<S> {
    fn clone(&self) -> Self {
        Self { account: Arc::clone(&self.account), shape: Arc::clone(&self.shape), limit: self.limit }
    }
}

impl<S: PartialEq> PartialEq for Key<S> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.account, &other.account) && self.limit == other.limit && self.shape == other.shape
    }
}

impl<S: Eq> Eq for Key<S> {}

impl<S: Hash> Hash for Key<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.account).hash(state);
        self.limit.hash(state);
        self.shape.hash(state);
    }
}

struct Waiter<K: CoalescedStatement> {
    item: K::Item,
    caller: AnswerSender<K>,
    /// Counts the request in the account's queue until dropped.
    _ticket: QueueTicket,
}

/// Sends the result to a waiting request. Closed once the request no longer waits (client disconnected, time over).
type AnswerSender<K> = oneshot::Sender<SharedAnswer<K>>;

type SharedAnswer<K> = Result<SharedResult<<K as CoalescedStatement>::Output>, DbError>;

/// What a waiting request gets from a shared statement.
enum SharedResult<T> {
    /// The output, and the time that the statement took.
    Output(T, Duration),
    /// The statement did not run or had no effect; the request must run alone.
    RunAlone,
}

impl Coalescer {
    pub fn new(pools: Arc<Pools>) -> Self {
        let (shared_statements, shared_requests) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { pools, reads: Queue::default(), inserts: Queue::default(), shared_statements, shared_requests }
    }

    pub fn shared(&self) -> (u64, u64) {
        (self.shared_statements.load(Ordering::Relaxed), self.shared_requests.load(Ordering::Relaxed))
    }

    fn count(&self, requests: usize) {
        if requests > 1 {
            self.shared_statements.fetch_add(1, Ordering::Relaxed);
            self.shared_requests.fetch_add(requests as u64, Ordering::Relaxed);
        }
    }

    pub async fn select_by_key(
        self: &Arc<Self>,
        lessee: Lessee<'_>,
        from: ReadFrom,
        read: &SelectByKey,
        limit: Duration,
        progress: &StatementStats,
    ) -> Result<Found, DbError> {
        let (shape, key) = (read.shape(), read.key());
        let account = self.pools.account_for_read(lessee.project, lessee.access, from)?;
        let row = self.run::<Reads>((account, lessee.caller), shape, key, limit, progress).await?;
        Ok(match row {
            Some(row) => {
                let _admitted = self.pools.long_rows.admit(lessee.project, lessee.caller, size(&row)).await?;
                encode_record(&row, read.layout(), read.format(), progress)
            }
            None => Found::Nothing,
        })
    }

    pub async fn insert_one(
        self: &Arc<Self>,
        lessee: Lessee<'_>,
        insert: InsertOne,
        limit: Duration,
        progress: &StatementStats,
    ) -> Result<Written, DbError> {
        let (shape, row) = insert.into_parts();
        let account = self.pools.account(lessee.project, lessee.access)?;
        let written = self.run::<Inserts>((account, lessee.caller), &shape, row, limit, progress).await;
        let written = written?;
        progress.add_rows(written.affected);
        progress.set_position(written.position.clone());
        Ok(written)
    }

    async fn run<K: CoalescedStatement>(
        self: &Arc<Self>,
        (account, caller_id): (Arc<Account>, Uuid),
        shape: &Arc<K::Shape>,
        item: K::Item,
        limit: Duration,
        progress: &StatementStats,
    ) -> Result<K::Output, DbError> {
        let key = Key { account, shape: Arc::clone(shape), limit };
        let waiter = || {
            let (caller, answer) = oneshot::channel();
            let waiter = Waiter { item: item.clone(), caller, _ticket: self.pools.ticket(&key.account, caller_id)? };
            Ok::<_, DbError>((waiter, answer))
        };
        let in_flight = match K::queue(self).join(&key, K::IN_FLIGHT_MAX, waiter)? {
            Joined::Run => Some(InFlight::<K>::new(self, &key)),
            Joined::RunUncounted => None,
            Joined::Wait(answer) => {
                match tokio::time::timeout(self.pools.answer_timeout(limit), answer).await {
                    Ok(Ok(Ok(SharedResult::Output(output, spent)))) => {
                        progress.add(spent);
                        return Ok(output);
                    }
                    Ok(Ok(Ok(SharedResult::RunAlone))) => {}
                    Ok(Ok(Err(error))) => return Err(error),
                    Ok(Err(_)) if K::may_run_alone(&unknown(), Duration::ZERO) => {}
                    Ok(Err(_)) => return Err(unknown()),
                    Err(_) => return Err(DbError::Timeout),
                }
                None
            }
        };
        let _ticket = self.pools.ticket(&key.account, caller_id)?;
        let mut lease = match &in_flight {
            Some(in_flight) => in_flight.connection(caller_id).await?,
            None => self.pools.connection(&key.account, caller_id).await?,
        };
        let (started, limit) = (Instant::now(), lease.limit(limit));
        let statement = run_alone::<K>(&mut lease, shape, item);
        let mut output = match in_flight {
            Some(in_flight) => in_flight.during(limit, statement).await,
            None => within(limit, statement).await,
        };
        if let Ok(output) = &mut output {
            K::note_position(&mut lease, std::slice::from_mut(output)).await;
        }
        progress.add_time(started);
        output
    }
}

async fn run_alone<K: CoalescedStatement>(
    lease: &mut Lease,
    shape: &K::Shape,
    item: K::Item,
) -> Result<K::Output, DbError> {
    lease.step(async |connection| K::run_one(connection, shape, item).await).await
}

async fn run_several<K: CoalescedStatement>(
    lease: &mut Lease,
    shape: &K::Shape,
    items: Vec<K::Item>,
) -> Result<Vec<K::Output>, DbError> {
    let count = items.len();
    let outputs = lease.step(async |connection| K::run_several(connection, shape, items).await).await?;
    match outputs.len() == count {
        true => Ok(outputs),
        false => Err(unknown()),
    }
}

fn unknown() -> DbError {
    DbError::Unavailable("whether a shared statement ran is not known".into())
}
