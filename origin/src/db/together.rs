//! Reads of single records that gather while others of their shape are on their way to MariaDB; the next
//! statement takes all of them.
//!
//! Nobody waits for others to come: a read of whose shape few are on their way goes at once, by itself.
//! What gathers is read by a statement that begins after it has come, so nobody sees data from before
//! its own request. Each account has its own; knows nothing of requests.

mod batch;
mod flight;

pub(super) use flight::Flight;

use super::DbError;
use super::pool::Place;
use crate::sql::numbered::Shape;
use mysql_async::Row;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Statements of one shape under way at once, found by measurement: docs/decisions/0118.
const FLIGHTS_MAX: usize = 2;

/// What a read that has waited is told: its row, if there is one, and how long MariaDB took. One that is
/// told nothing is to be read by itself: something was wrong with the statement that it shared.
pub(super) type Answer = Result<(Option<Row>, Duration), DbError>;

/// What has gathered, by shape. It holds only shapes of which a statement is under way or waits for a
/// connection, and waiters have places in the account's queue, so it is bounded as that is.
#[derive(Debug, Default)]
pub(super) struct Together {
    shapes: Mutex<HashMap<Shape, Gathering>>,
}

#[derive(Debug, Default)]
struct Gathering {
    /// Statements under way.
    flights: usize,
    waiting: VecDeque<Waiter>,
}

/// A read that waits for the next statement.
#[derive(Debug)]
struct Waiter {
    number: i64,
    answer: oneshot::Sender<Answer>,
    /// In the account's queue.
    _place: Place,
}

/// Where the answer comes.
pub(super) type Later = oneshot::Receiver<Answer>;

/// When a read is run.
pub(super) enum Turn {
    /// Now, by itself.
    Now(Flight),
    /// With others.
    Later(Later),
}

impl Waiter {
    /// Its number and itself, if it still waits; its place in the queue is free then.
    fn called(self) -> Option<(i64, oneshot::Sender<Answer>)> {
        (!self.answer.is_closed()).then_some((self.number, self.answer))
    }
}

impl Together {
    /// Begins a statement of a shape; or, if enough are under way, waits for the next.
    fn turn(
        &self,
        shape: &Shape,
        waiter: impl FnOnce() -> Result<(Waiter, Later), DbError>,
    ) -> Result<Option<Later>, DbError> {
        let mut shapes = self.shapes();
        match shapes.get_mut(shape) {
            Some(gathering) if gathering.flights >= FLIGHTS_MAX => {
                let (waiter, later) = waiter()?;
                gathering.waiting.push_back(waiter);
                return Ok(Some(later));
            }
            Some(gathering) => gathering.flights += 1,
            None => {
                let gathering = Gathering {
                    flights: 1,
                    waiting: VecDeque::new(),
                };
                shapes.insert(shape.clone(), gathering);
            }
        }
        Ok(None)
    }

    /// A statement has ended. `true` if nobody waits: then it is no longer under way.
    fn land(&self, shape: &Shape) -> bool {
        let mut shapes = self.shapes();
        let Some(gathering) = shapes.get_mut(shape) else {
            return true;
        };
        if !gathering.waiting.is_empty() {
            return false;
        }
        gathering.flights = gathering.flights.saturating_sub(1);
        if gathering.flights == 0 {
            shapes.remove(shape);
        }
        true
    }

    /// A statement will not be followed by another, whoever waits.
    fn give_up(&self, shape: &Shape) {
        self.shapes().remove(shape);
    }

    /// Those who wait, the longest first, so many at most.
    fn take(&self, shape: &Shape, most: usize) -> Vec<Waiter> {
        let mut shapes = self.shapes();
        let Some(gathering) = shapes.get_mut(shape) else {
            return Vec::new();
        };
        let many = gathering.waiting.len().min(most);
        gathering.waiting.drain(..many).collect()
    }

    /// The map is whole at every step, so a poisoned lock still guards good data.
    fn shapes(&self) -> MutexGuard<'_, HashMap<Shape, Gathering>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
