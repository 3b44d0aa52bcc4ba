//! The ids that a batch's inserts have given, kept for the operations that refer to them.

use crate::database::run::Written;
use crate::query::catalog::Table;
use crate::query::plan;
use shared::error::{ErrorCode, Problem};
use shared::operation::batch::{Batch, Place, Reference};
use std::collections::HashMap;

/// What each insert that is referred to has given so far.
pub(super) struct Ids(HashMap<usize, Given>);

/// The JSON texts of an insert's ids.
enum Given {
    Nothing,
    One(Vec<u8>),
    Rows(Vec<Vec<u8>>),
}

impl Ids {
    /// Of a batch that has not begun.
    pub(super) fn of(batch: &Batch) -> Self {
        let references = batch.steps().iter().flat_map(|step| step.references());
        Self(references.map(|reference| (reference.operation, Given::Nothing)).collect())
    }

    /// Keeps what an insert gave, if it is referred to.
    pub(super) fn keep(&mut self, at: usize, batch: plan::Batch, payload: &[u8], written: Written) {
        if let Some(given) = self.0.get_mut(&at) {
            *given = match batch {
                plan::Batch::No => Given::One(payload.to_vec()),
                plan::Batch::Yes => Given::Rows(written.keys),
            };
        }
    }

    /// The JSON text of an id.
    pub(super) fn get(&self, reference: Reference) -> Result<String, Problem> {
        let id = match (self.0.get(&reference.operation), reference.row) {
            (Some(Given::One(id)), None) => Some(id),
            (Some(Given::Rows(ids)), Some(row)) => ids.get(row),
            _ => None,
        };
        id.filter(|id| *id != b"null").and_then(|id| String::from_utf8(id.clone()).ok()).ok_or_else(|| no_id(reference))
    }
}

/// Refuses a reference to an id that can't be, or that can't stand where it is to stand.
pub(super) fn check(reference: Reference, target: &Table) -> Result<(), Problem> {
    let counts = target.columns().iter().any(|column| column.auto_increment);
    match (target.key().len(), reference.place) {
        (0, _) if !counts && !target.traits().view => Err(no_id(reference)),
        (2.., Place::Value | Place::Part) => Err(invalid(format!(
            "It refers to operation {}, whose id has {} parts and is no value of one field.",
            reference.operation,
            target.key().len()
        ))
        .with_hint("Such an id can only stand alone in a path: $ref:0.")),
        _ => Ok(()),
    }
}

fn no_id(reference: Reference) -> Problem {
    invalid(format!("It refers to operation {}, which gives no id.", reference.operation))
}

fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}
