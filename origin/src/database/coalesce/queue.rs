//! The queue of requests that wait for a shared statement, by shape. Does no I/O; reads the clock only for back-offs.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const REFUSALS_MAX: u8 = 3;
/// The time for which requests of a shape run alone, after [`REFUSALS_MAX`] consecutive [`RunOutcome::Refused`].
const BACK_OFF: Duration = Duration::from_millis(100);

/// The waiting requests, by shape: of shapes with a statement in flight or awaiting a connection, or with a back-off.
pub(super) struct Queue<S, W> {
    shapes: Mutex<Shapes<S, W>>,
}

struct Shapes<S, W> {
    active: HashMap<S, Active<W>>,
    /// The end of the back-off of each shape. Expired entries are removed on insertion.
    back_off: HashMap<S, Instant>,
}

struct Active<W> {
    in_flight: usize,
    waiting: VecDeque<W>,
    refusals: u8,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined<A> {
    Run,
    RunUncounted,
    Wait(A),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunOutcome {
    /// The statement succeeded, failed for all requests alike, or was killed because no request waited any longer.
    Shared,
    Refused,
}

impl<S, W> std::fmt::Debug for Queue<S, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Queue")
    }
}

impl<S, W> Default for Queue<S, W> {
    fn default() -> Self {
        let shapes = Shapes { active: HashMap::new(), back_off: HashMap::new() };
        Self { shapes: Mutex::new(shapes) }
    }
}

impl<S: Clone + Eq + Hash, W> Queue<S, W> {
    /// Adds the request to the queue or lets it run. After [`Joined::Run`], the caller must call [`Self::finish`].
    pub(super) fn join<A, E>(
        &self,
        shape: &S,
        in_flight_max: usize,
        waiter: impl FnOnce() -> Result<(W, A), E>,
    ) -> Result<Joined<A>, E> {
        let mut shapes = self.shapes();
        if shapes.backs_off(shape) {
            return Ok(Joined::RunUncounted);
        }
        match shapes.active.get_mut(shape) {
            Some(active) if active.in_flight >= in_flight_max => {
                let (waiter, answer) = waiter()?;
                active.waiting.push_back(waiter);
                return Ok(Joined::Wait(answer));
            }
            Some(active) => active.in_flight += 1,
            None => {
                let active = Active { in_flight: 1, waiting: VecDeque::new(), refusals: 0 };
                shapes.active.insert(shape.clone(), active);
            }
        }
        Ok(Joined::Run)
    }

    /// Ends a statement. Returns false if requests of the shape wait: the caller must run the next statement.
    pub(super) fn finish(&self, shape: &S) -> bool {
        let mut shapes = self.shapes();
        let Some(active) = shapes.active.get_mut(shape) else {
            return true;
        };
        if !active.waiting.is_empty() {
            return false;
        }
        active.in_flight = active.in_flight.saturating_sub(1);
        if active.in_flight == 0 {
            shapes.active.remove(shape);
        }
        true
    }

    pub(super) fn abandon(&self, shape: &S) {
        self.shapes().active.remove(shape);
    }

    /// Takes the requests of the next statement from the queue, and drops those for which `waits` is false.
    pub(super) fn take(&self, shape: &S, waits: impl FnMut(&W) -> bool, share: impl FnOnce(usize) -> usize) -> Vec<W> {
        let mut shapes = self.shapes();
        let Some(active) = shapes.active.get_mut(shape) else {
            return Vec::new();
        };
        let waiting = &mut active.waiting;
        waiting.retain(waits);
        let count = match waiting.len() {
            0 => 0,
            all => share(all).clamp(1, all),
        };
        waiting.drain(..count).collect()
    }

    pub(super) fn record(&self, shape: &S, outcome: RunOutcome) {
        let mut shapes = self.shapes();
        let Some(active) = shapes.active.get_mut(shape) else {
            return;
        };
        active.refusals = match outcome {
            RunOutcome::Shared => 0,
            RunOutcome::Refused => active.refusals + 1,
        };
        if active.refusals == REFUSALS_MAX {
            active.refusals = 0;
            shapes.start_back_off(shape);
        }
    }

    /// The maps are valid after every step, so a poisoned lock can be used.
    fn shapes(&self) -> MutexGuard<'_, Shapes<S, W>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Clone + Eq + Hash, W> Shapes<S, W> {
    fn backs_off(&self, shape: &S) -> bool {
        // Back-offs are rare: the clock is read only if this shape has one.
        let end = match self.back_off.is_empty() {
            true => None,
            false => self.back_off.get(shape),
        };
        end.is_some_and(|end| *end > Instant::now())
    }

    fn start_back_off(&mut self, shape: &S) {
        let now = Instant::now();
        self.back_off.retain(|_, end| *end > now);
        self.back_off.insert(shape.clone(), now + BACK_OFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Letters = Queue<&'static str, char>;

    /// Adds a request, which waits if a statement is in flight.
    fn join(queue: &Letters, letter: char) -> Joined<()> {
        let joined = queue.join(&"shape", 1, || Ok::<_, ()>((letter, ())));
        joined.unwrap()
    }

    fn take(queue: &Letters, many: usize) -> String {
        let taken = queue.take(&"shape", |letter| letter.is_lowercase(), |_| many);
        taken.into_iter().collect()
    }

    #[test]
    fn the_first_runs_at_once_and_the_others_in_the_order_in_which_they_came() {
        let queue = Letters::default();
        assert_eq!(join(&queue, 'a'), Joined::Run);
        for letter in ['b', 'c', 'd', 'e'] {
            assert_eq!(join(&queue, letter), Joined::Wait(()));
        }
        assert_eq!(take(&queue, 3), "bcd");
        assert_eq!(join(&queue, 'f'), Joined::Wait(()));
        assert_eq!(take(&queue, 3), "ef");
        assert_eq!(take(&queue, 3), "");
    }

    #[test]
    fn one_at_least_is_taken_and_no_more_than_wait() {
        let queue = Letters::default();
        join(&queue, 'a');
        for letter in ['b', 'c', 'd'] {
            join(&queue, letter);
        }
        assert_eq!(take(&queue, 0), "b");
        assert_eq!(take(&queue, 100), "cd");
    }

    #[test]
    fn requests_whose_clients_have_left_are_removed() {
        let queue = Letters::default();
        join(&queue, 'a');
        for letter in ['B', 'c', 'D', 'e', 'F'] {
            join(&queue, letter);
        }
        assert_eq!(take(&queue, 2), "ce");
        assert!(queue.finish(&"shape"));
    }

    #[test]
    fn a_statement_is_finished_once_no_request_waits() {
        let queue = Letters::default();
        join(&queue, 'a');
        join(&queue, 'b');
        assert!(!queue.finish(&"shape"), "one waits");
        assert_eq!(take(&queue, 8), "b");
        assert!(queue.finish(&"shape"));
        assert!(queue.shapes().active.is_empty());
        assert_eq!(join(&queue, 'c'), Joined::Run);
    }

    #[test]
    fn shapes_do_not_wait_for_each_other() {
        let queue = Letters::default();
        join(&queue, 'a');
        let other = queue.join(&"other", 1, || Ok::<_, ()>(('b', ())));
        assert_eq!(other, Ok(Joined::Run));
        assert_eq!(join(&queue, 'c'), Joined::Wait(()));
    }

    #[test]
    fn a_request_without_a_queue_place_neither_waits_nor_counts() {
        let queue = Letters::default();
        join(&queue, 'a');
        let refused = queue.join(&"shape", 1, || Err::<(char, ()), _>("full"));
        assert_eq!(refused, Err("full"));
        assert!(queue.finish(&"shape"));
    }

    #[test]
    fn a_shape_backs_off_when_it_was_refused_again_and_again() {
        let queue = Letters::default();
        join(&queue, 'a');
        for outcome in [RunOutcome::Refused, RunOutcome::Refused, RunOutcome::Shared] {
            queue.record(&"shape", outcome);
        }
        for _ in 1..REFUSALS_MAX {
            queue.record(&"shape", RunOutcome::Refused);
            assert_eq!(join(&queue, 'b'), Joined::Wait(()));
        }
        queue.record(&"shape", RunOutcome::Refused);
        assert_eq!(join(&queue, 'c'), Joined::RunUncounted);
        let past = Instant::now();
        for end in queue.shapes().back_off.values_mut() {
            *end = past;
        }
        assert_eq!(join(&queue, 'd'), Joined::Wait(()));
        queue.shapes().start_back_off(&"other");
        assert_eq!(queue.shapes().back_off.len(), 1, "expired entries are removed");
    }
}
