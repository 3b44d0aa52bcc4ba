//! The members `details` and `errors` of an error response.

use super::{ErrorCode, Problem};
use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    /// MariaDB's error numbers; `None` if the error is not MariaDB's, or is only logged.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// The field at fault; `None` if it is not known, or if the caller's role may hide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// The index of the row in `batchData` or in a body of CSV or NDJSON, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    /// The key or constraint, as MariaDB names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Box<str>>,
    /// Why a feed of changes can't go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    #[serde(skip)]
    pub(super) shown: ShownToRoles,
    /// The index of the operation in a `/batch`, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<usize>,
}

/// What callers with a role see of MariaDB's error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownToRoles {
    #[default]
    Code,
    Field,
    Everything,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    pub errno: u16,
    pub sql_state: String,
}

#[derive(Serialize)]
pub(super) struct ErrorItem<'a> {
    code: ErrorCode,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
}

impl<'a> From<&'a Problem> for ErrorItem<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self { code: problem.code(), message: problem.message(), details: problem.details() }
    }
}

#[derive(Debug, Default)]
pub struct Faults(Vec<Problem>);

impl Faults {
    /// Maximum number of kept faults. More would not help the caller.
    const MAX_COUNT: usize = 20;

    /// Runs `check` and keeps its fault. Returns `None` for a fault, or without running `check` if the list is full.
    pub fn check<T>(&mut self, check: impl FnOnce() -> Result<T, Problem>) -> Option<T> {
        if self.is_full() {
            return None;
        }
        match check() {
            Ok(value) => Some(value),
            Err(problem) => {
                self.keep(problem);
                None
            }
        }
    }

    /// Keeps a problem. Calls `problem` only if there is room, since finding hints for many unknown names takes long.
    pub fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if !self.is_full() {
            self.keep(problem());
        }
    }

    fn keep(&mut self, mut problem: Problem) {
        let others = std::mem::take(&mut problem.inner.others);
        let room = Self::MAX_COUNT - self.0.len();
        self.0.extend([problem].into_iter().chain(others).take(room));
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= Self::MAX_COUNT
    }

    /// Fails with the first problem, whose response lists all of them in `errors`.
    pub fn end(self) -> Result<(), Problem> {
        let mut all = self.0.into_iter();
        match all.next() {
            None => Ok(()),
            Some(first) => Err(first.with_others(all.collect())),
        }
    }
}

impl Problem {
    pub fn with_field(mut self, name: &str) -> Self {
        self.inner.details.get_or_insert_default().field = Some(name.into());
        self
    }

    pub fn with_row(mut self, row: usize) -> Self {
        self.inner.details.get_or_insert_default().row = Some(row);
        self
    }

    pub fn with_reason(mut self, reason: &'static str) -> Self {
        self.inner.details.get_or_insert_default().reason = Some(reason);
        self
    }

    /// Sets what [`Problem::without_database_message`] keeps.
    pub fn shown_to_roles(mut self, shown: ShownToRoles) -> Self {
        self.inner.details.get_or_insert_default().shown = shown;
        self
    }

    pub fn with_constraint(mut self, name: &str) -> Self {
        self.inner.details.get_or_insert_default().constraint = Some(name.into());
        self
    }

    fn with_others(mut self, others: Vec<Self>) -> Self {
        self.inner.others = others;
        self
    }
}
