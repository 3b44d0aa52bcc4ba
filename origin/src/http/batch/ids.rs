//! The ids of the records that a batch inserts, for later operations of the batch that refer to them.

use crate::database::run::Written;
use crate::query::catalog::Table;
use crate::query::plan::InsertAnswer;
use shared::error::{ErrorCode, Problem};
use shared::limits::BATCH_REFERENCED_MAX_BYTES;
use shared::operation::batch::{Batch, Position, Reference};
use std::collections::HashMap;

pub(super) struct Ids {
    /// The ids, by the insert's index in the batch, of the inserts that another operation refers to.
    given: HashMap<usize, Given>,
    /// The number of bytes of [`BATCH_REFERENCED_MAX_BYTES`] that are not used yet.
    left: usize,
}

enum Given {
    Nothing,
    One(Vec<u8>),
    Rows(Vec<Vec<u8>>),
}

impl Ids {
    pub(super) fn of(batch: &Batch) -> Self {
        let references = batch.steps().iter().flat_map(|step| step.references());
        let given = references.map(|reference| (reference.operation, Given::Nothing)).collect();
        Self { given, left: BATCH_REFERENCED_MAX_BYTES }
    }

    pub(super) fn keep(&mut self, at: usize, answer: InsertAnswer, payload: &[u8], written: Written) {
        if let Some(given) = self.given.get_mut(&at) {
            *given = match answer {
                InsertAnswer::Id => Given::One(payload.to_vec()),
                InsertAnswer::Ids => Given::Rows(written.keys),
                InsertAnswer::Record => written.keys.into_iter().next().map_or(Given::Nothing, Given::One),
                InsertAnswer::Records => Given::Rows(written.keys),
                InsertAnswer::Hidden | InsertAnswer::HiddenList(_) | InsertAnswer::Count => Given::Nothing,
            };
        }
    }

    pub(super) fn get(&mut self, reference: Reference) -> Result<String, Problem> {
        let id = match (self.given.get(&reference.operation), reference.row) {
            (Some(Given::One(id)), None) => Some(id),
            (Some(Given::Rows(ids)), Some(row)) => ids.get(row),
            _ => None,
        };
        let id = id.filter(|id| *id != b"null").ok_or_else(|| no_id(reference))?;
        self.left = self.left.checked_sub(id.len()).ok_or_else(|| {
            invalid(format!(
                "The ids that the batch refers to have more than {BATCH_REFERENCED_MAX_BYTES} bytes together, each counted as \
                 often as it is referred to."
            ))
            .with_hint("Give the values themselves, or spread the operations over several batches.")
        })?;
        String::from_utf8(id.clone()).map_err(|_| no_id(reference))
    }
}

pub(super) fn check(reference: Reference, target: &Table) -> Result<(), Problem> {
    let counts = target.columns().iter().any(|column| column.auto_increment);
    match (target.key().len(), reference.position) {
        (0, _) if !counts && !target.traits().view => Err(no_id(reference)),
        (2.., Position::Value | Position::Part) => Err(invalid(format!(
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
