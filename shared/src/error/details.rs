//! The members `details` and `errors` of an error response.

use super::{ErrorCode, Problem};
use serde::Serialize;

/// The member `details` of an error response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    /// MariaDB's error; `None` if the error is not MariaDB's, or is only logged.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
    /// The field at fault; `None` if no single field is known to be at fault, or the caller's role may hide it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// The index of the record at fault in `batchData` or in a body of CSV or NDJSON, from 0; `None` for a single
    /// record, or if the record is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    /// The violated key or constraint, as MariaDB names it; `None` if MariaDB names none, or the caller's role may hide
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Box<str>>,
    #[serde(skip)]
    pub(super) shown: ShownToRoles,
    /// The index of the failed operation of a `/batch`, from 0; `None` if no single operation of a batch is at fault.
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
    /// MariaDB's error number, such as 1062.
    pub errno: u16,
    pub sql_state: String,
}

/// An item of `errors`.
#[derive(Serialize)]
pub(super) struct Fault<'a> {
    code: ErrorCode,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Details>,
}

impl<'a> From<&'a Problem> for Fault<'a> {
    fn from(problem: &'a Problem) -> Self {
        Self { code: problem.code(), message: problem.message(), details: problem.details() }
    }
}

/// Collects several faults of one request's body, so that one response can list them.
#[derive(Debug, Default)]
pub struct Faults(Vec<Problem>);

impl Faults {
    /// The maximum number of faults that are collected. More faults would not help the caller.
    const MAX_COUNT: usize = 20;

    /// Returns the value of `Ok`. For `Err`, collects the problem and its further faults, up to the maximum number, and
    /// returns `None`.
    pub fn keep<T>(&mut self, outcome: Result<T, Problem>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(mut problem) => {
                let others = std::mem::take(&mut problem.inner.others);
                let room = Self::MAX_COUNT - self.0.len();
                self.0.extend([problem].into_iter().chain(others).take(room));
                None
            }
        }
    }

    pub fn is_full(&self) -> bool {
        self.0.len() >= Self::MAX_COUNT
    }

    /// Returns `Ok` if no problem was collected.
    ///
    /// # Errors
    /// The first problem. If there are several, its response lists all of them in `errors`.
    pub fn end(self) -> Result<(), Problem> {
        let mut all = self.0.into_iter();
        match all.next() {
            None => Ok(()),
            Some(first) => Err(first.with_others(all.collect())),
        }
    }
}

impl Problem {
    /// Adds the field at fault to the details.
    pub fn with_field(mut self, name: &str) -> Self {
        self.inner.details.get_or_insert_default().field = Some(name.into());
        self
    }

    /// Adds the index of the record at fault to the details; see [`Details::row`].
    pub fn with_row(mut self, row: usize) -> Self {
        self.inner.details.get_or_insert_default().row = Some(row);
        self
    }

    /// Says what [`Problem::without_database_message`] keeps.
    pub fn shown_to_roles(mut self, shown: ShownToRoles) -> Self {
        self.inner.details.get_or_insert_default().shown = shown;
        self
    }

    /// Adds the violated key or constraint to the details.
    pub fn with_constraint(mut self, name: &str) -> Self {
        self.inner.details.get_or_insert_default().constraint = Some(name.into());
        self
    }

    fn with_others(mut self, others: Vec<Self>) -> Self {
        self.inner.others = others;
        self
    }
}
