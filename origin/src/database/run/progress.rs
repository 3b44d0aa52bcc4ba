//! The work that a request has done so far, for its log line, metrics and trace, and the position of its last write.

use crate::database::Position;
use shared::operation::TablePath;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of recorded steps. Further steps prolong the last one.
pub const STEPS_MAX_COUNT: usize = 32;

#[derive(Debug)]
pub struct Step {
    pub kind: StepKind,
    pub started: Instant,
    pub ended: Instant,
}

#[derive(Debug)]
pub enum StepKind {
    Statement(&'static str, Option<TablePath>),
    Media(&'static str),
}

#[derive(Debug, Default)]
pub struct StatementStats {
    rows: AtomicU64,
    db_micros: AtomicU64,
    /// The steps so far; `None` if the request is not recorded for a trace.
    steps: Option<Mutex<Steps>>,
    position: Mutex<Option<Position>>,
}

#[derive(Debug, Default)]
struct Steps {
    list: Vec<Step>,
    /// The next step; `None` if the next statements belong to the last step or, without any step, are a BEGIN.
    next: Option<StepKind>,
}

impl StatementStats {
    pub fn recorded() -> Self {
        Self { steps: Some(Mutex::default()), ..Self::default() }
    }

    pub fn take_steps(&self) -> Option<Vec<Step>> {
        Some(std::mem::take(&mut self.steps()?.list))
    }

    fn steps(&self) -> Option<MutexGuard<'_, Steps>> {
        // The list is valid after every step, so a poisoned lock can be used.
        self.steps.as_ref().map(|steps| steps.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn begin(&self, operation: &'static str, table: Option<&TablePath>) {
        if let Some(mut steps) = self.steps() {
            steps.next = Some(StepKind::Statement(operation, table.cloned()));
        }
    }

    pub async fn media<T>(&self, name: &'static str, work: impl Future<Output = T>) -> T {
        let started = self.steps.is_some().then(Instant::now);
        let done = work.await;
        if let (Some(mut steps), Some(started)) = (self.steps(), started) {
            steps.push(Step { kind: StepKind::Media(name), started, ended: Instant::now() });
        }
        done
    }

    /// Returns the number of rows, without those of an open transaction.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub fn db_micros(&self) -> u64 {
        self.db_micros.load(Ordering::Relaxed)
    }

    pub fn position(&self) -> Option<Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in crate::database) fn set_position(&self, position: Option<Position>) {
        if position.is_some() {
            *self.position.lock().unwrap_or_else(PoisonError::into_inner) = position;
        }
    }

    pub(in crate::database) fn add_rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(in crate::database) fn add_time(&self, since: Instant) {
        self.add(since.elapsed());
    }

    pub(in crate::database) fn add(&self, spent: Duration) {
        let micros = u64::try_from(spent.as_micros()).unwrap_or(u64::MAX);
        self.db_micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(mut steps) = self.steps() {
            let ended = Instant::now();
            let started = ended.checked_sub(spent).unwrap_or(ended);
            match (steps.next.take(), steps.list.is_empty()) {
                (None, false) => steps.extend(ended),
                (kind, _) => {
                    let kind = kind.unwrap_or(StepKind::Statement("BEGIN", None));
                    steps.push(Step { kind, started, ended });
                }
            }
        }
    }
}

impl Steps {
    fn push(&mut self, step: Step) {
        match self.list.len() < STEPS_MAX_COUNT {
            true => self.list.push(step),
            false => self.extend(step.ended),
        }
    }

    fn extend(&mut self, ended: Instant) {
        if let Some(last) = self.list.last_mut() {
            last.ended = ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_not_recorded_has_no_steps() {
        let progress = StatementStats::default();
        progress.begin("SELECT", None);
        progress.add(Duration::from_micros(7));
        assert_eq!(progress.db_micros(), 7);
        assert!(progress.take_steps().is_none());
    }

    #[test]
    fn statements_of_one_operation_are_one_step_and_steps_are_limited() {
        let progress = StatementStats::recorded();
        progress.add(Duration::from_micros(1));
        for _ in 0..2 * STEPS_MAX_COUNT {
            progress.begin("SELECT", None);
            progress.add(Duration::from_micros(1));
            progress.add(Duration::from_micros(1));
        }
        let steps = progress.take_steps().unwrap();
        assert_eq!(steps.len(), STEPS_MAX_COUNT);
        assert!(matches!(steps[0].kind, StepKind::Statement("BEGIN", None)));
        assert!(matches!(steps[1].kind, StepKind::Statement("SELECT", None)));
        assert!(steps.iter().all(|step| step.started <= step.ended));
    }
}
