//! Who waits for which statement, and who need not. Pure, but for the clock that a rest ends by.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Statements of one shape that are refused one after the other before none gathers for a while.
const REFUSALS_MAX: u8 = 3;
/// For how long: where all are refused, those in vain cost little then.
const REST: Duration = Duration::from_millis(100);

/// Those who wait, by shape. It holds only shapes of which a statement is under way, or waits for a
/// connection; and those that rest.
#[derive(Debug)]
pub(in crate::db) struct Queue<S, W> {
    shapes: Mutex<Shapes<S, W>>,
}

#[derive(Debug)]
struct Shapes<S, W> {
    gathering: HashMap<S, Gathering<W>>,
    /// Until when. Whose rest is over leaves when another comes.
    resting: HashMap<S, Instant>,
}

#[derive(Debug)]
struct Gathering<W> {
    /// Statements under way.
    flights: usize,
    waiting: VecDeque<W>,
    /// Statements that were refused, one after the other.
    refusals: u8,
}

/// When one is run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn<L> {
    /// Now; it is under way from here on.
    Now,
    /// Now, but nobody waits for its end.
    Apart,
    /// With others.
    Later(L),
}

/// How a statement for several went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::db) enum Served {
    /// Each has what it asked for; or it failed for no reason of theirs.
    Together,
    /// MariaDB refused it, and each is run by itself.
    Apart,
}

impl<S, W> Default for Queue<S, W> {
    fn default() -> Self {
        let shapes = Shapes {
            gathering: HashMap::new(),
            resting: HashMap::new(),
        };
        Self {
            shapes: Mutex::new(shapes),
        }
    }
}

impl<S: Clone + Eq + Hash, W> Queue<S, W> {
    /// Begins a statement of a shape; or, if so many are under way, waits for the next.
    pub(super) fn turn<L, E>(
        &self,
        shape: &S,
        flights_max: usize,
        waiter: impl FnOnce() -> Result<(W, L), E>,
    ) -> Result<Turn<L>, E> {
        let mut shapes = self.shapes();
        if shapes.rests(shape) {
            return Ok(Turn::Apart);
        }
        match shapes.gathering.get_mut(shape) {
            Some(gathering) if gathering.flights >= flights_max => {
                let (waiter, later) = waiter()?;
                gathering.waiting.push_back(waiter);
                return Ok(Turn::Later(later));
            }
            Some(gathering) => gathering.flights += 1,
            None => {
                let gathering = Gathering {
                    flights: 1,
                    waiting: VecDeque::new(),
                    refusals: 0,
                };
                shapes.gathering.insert(shape.clone(), gathering);
            }
        }
        Ok(Turn::Now)
    }

    /// A statement has ended. `true` if nobody waits: then it is no longer under way.
    pub(super) fn land(&self, shape: &S) -> bool {
        let mut shapes = self.shapes();
        let Some(gathering) = shapes.gathering.get_mut(shape) else {
            return true;
        };
        if !gathering.waiting.is_empty() {
            return false;
        }
        gathering.flights = gathering.flights.saturating_sub(1);
        if gathering.flights == 0 {
            shapes.gathering.remove(shape);
        }
        true
    }

    /// A statement will not be followed by another, whoever waits.
    pub(super) fn give_up(&self, shape: &S) {
        self.shapes().gathering.remove(shape);
    }

    /// Takes so many of those who still wait, the longest first; the others of them go.
    pub(super) fn take(
        &self,
        shape: &S,
        waits: impl FnMut(&W) -> bool,
        share: impl FnOnce(usize) -> usize,
    ) -> Vec<W> {
        let mut shapes = self.shapes();
        let Some(gathering) = shapes.gathering.get_mut(shape) else {
            return Vec::new();
        };
        let waiting = &mut gathering.waiting;
        waiting.retain(waits);
        let many = match waiting.len() {
            0 => 0,
            all => share(all).clamp(1, all),
        };
        waiting.drain(..many).collect()
    }

    /// Learns how a statement for several went: a shape of which all are refused rests.
    pub(super) fn heed(&self, shape: &S, served: Served) {
        let mut shapes = self.shapes();
        let Some(gathering) = shapes.gathering.get_mut(shape) else {
            return;
        };
        gathering.refusals = match served {
            Served::Together => 0,
            Served::Apart => gathering.refusals + 1,
        };
        if gathering.refusals == REFUSALS_MAX {
            gathering.refusals = 0;
            shapes.rest(shape);
        }
    }

    /// The maps are whole at every step, so a poisoned lock still guards good data.
    fn shapes(&self) -> MutexGuard<'_, Shapes<S, W>> {
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Clone + Eq + Hash, W> Shapes<S, W> {
    fn rests(&self, shape: &S) -> bool {
        // Few ever rest: the clock is asked only then.
        let until = match self.resting.is_empty() {
            true => None,
            false => self.resting.get(shape),
        };
        until.is_some_and(|until| *until > Instant::now())
    }

    fn rest(&mut self, shape: &S) {
        let now = Instant::now();
        self.resting.retain(|_, until| *until > now);
        self.resting.insert(shape.clone(), now + REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Letters = Queue<&'static str, char>;

    /// One that waits, if it has to.
    fn turn(queue: &Letters, letter: char) -> Turn<()> {
        let turn = queue.turn(&"shape", 1, || Ok::<_, ()>((letter, ())));
        turn.unwrap()
    }

    fn take(queue: &Letters, many: usize) -> String {
        let taken = queue.take(&"shape", |letter| letter.is_lowercase(), |_| many);
        taken.into_iter().collect()
    }

    #[test]
    fn the_first_goes_at_once_and_the_others_in_the_order_in_which_they_came() {
        let queue = Letters::default();
        assert_eq!(turn(&queue, 'a'), Turn::Now);
        for letter in ['b', 'c', 'd', 'e'] {
            assert_eq!(turn(&queue, letter), Turn::Later(()));
        }
        assert_eq!(take(&queue, 3), "bcd");
        assert_eq!(turn(&queue, 'f'), Turn::Later(()));
        assert_eq!(take(&queue, 3), "ef");
        assert_eq!(take(&queue, 3), "");
    }

    #[test]
    fn one_at_least_is_taken_and_no_more_than_wait() {
        let queue = Letters::default();
        turn(&queue, 'a');
        for letter in ['b', 'c', 'd'] {
            turn(&queue, letter);
        }
        assert_eq!(take(&queue, 0), "b");
        assert_eq!(take(&queue, 100), "cd");
    }

    #[test]
    fn who_has_left_is_passed_over() {
        let queue = Letters::default();
        turn(&queue, 'a');
        for letter in ['B', 'c', 'D', 'e', 'F'] {
            turn(&queue, letter);
        }
        assert_eq!(take(&queue, 2), "ce");
        assert!(queue.land(&"shape"));
    }

    #[test]
    fn a_statement_lands_once_nobody_waits() {
        let queue = Letters::default();
        turn(&queue, 'a');
        turn(&queue, 'b');
        assert!(!queue.land(&"shape"), "one waits");
        assert_eq!(take(&queue, 8), "b");
        assert!(queue.land(&"shape"));
        assert!(queue.shapes().gathering.is_empty());
        assert_eq!(turn(&queue, 'c'), Turn::Now);
    }

    #[test]
    fn shapes_do_not_wait_for_each_other() {
        let queue = Letters::default();
        turn(&queue, 'a');
        let other = queue.turn(&"other", 1, || Ok::<_, ()>(('b', ())));
        assert_eq!(other, Ok(Turn::Now));
        assert_eq!(turn(&queue, 'c'), Turn::Later(()));
    }

    #[test]
    fn one_without_a_place_neither_waits_nor_counts() {
        let queue = Letters::default();
        turn(&queue, 'a');
        let refused = queue.turn(&"shape", 1, || Err::<(char, ()), _>("full"));
        assert_eq!(refused, Err("full"));
        assert!(queue.land(&"shape"));
    }

    #[test]
    fn a_shape_rests_when_it_was_refused_again_and_again() {
        let queue = Letters::default();
        turn(&queue, 'a');
        for served in [Served::Apart, Served::Apart, Served::Together] {
            queue.heed(&"shape", served);
        }
        for _ in 1..REFUSALS_MAX {
            queue.heed(&"shape", Served::Apart);
            assert_eq!(turn(&queue, 'b'), Turn::Later(()));
        }
        queue.heed(&"shape", Served::Apart);
        assert_eq!(turn(&queue, 'c'), Turn::Apart);
        let past = Instant::now();
        for until in queue.shapes().resting.values_mut() {
            *until = past;
        }
        assert_eq!(turn(&queue, 'd'), Turn::Later(()));
        queue.shapes().rest(&"other");
        assert_eq!(queue.shapes().resting.len(), 1, "what is over is forgotten");
    }
}
