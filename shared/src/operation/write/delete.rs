//! Parses deletes: one record by its id, or all that match conditions.

use super::body;
use super::key_values::{FOR_DELETE, KeyValues};
use crate::error::Problem;
use crate::ident::shown;
use crate::json;
use crate::operation::filter::Condition;
use crate::operation::options::{self, Options};
use crate::operation::{RecordId, TablePath};

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Delete {
    pub table: TablePath,
    pub target: Target,
}

/// The records to update or delete: one by its id, or those that match a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Record(RecordId),
    Matching(Condition),
}

/// The parts of a delete in the request's URL.
#[derive(Clone, Debug)]
pub(in crate::operation) struct DeleteHead {
    id: Option<RecordId>,
    key_values: KeyValues,
}

impl DeleteHead {
    pub(in crate::operation) fn from_pairs(id: Option<RecordId>, options: Options) -> Result<Self, Problem> {
        let key_values = KeyValues::collect(&FOR_DELETE, options, |name| {
            options::unknown(name, &[FOR_DELETE.list, FOR_DELETE.joiner])
        })?;
        Ok(Self { id, key_values })
    }
}

impl Delete {
    pub(in crate::operation) fn from_body(table: TablePath, head: DeleteHead, bytes: &[u8]) -> Result<Self, Problem> {
        let in_body = if bytes.trim_ascii().is_empty() {
            KeyValues::default()
        } else {
            let members = json::body_members(bytes)?.into_iter().map(|(name, value)| (name.into_owned(), value));
            KeyValues::collect(&FOR_DELETE, members, |name| {
                body(format!("A delete has no part {}.", shown(name)))
                    .with_hint("Use {\"deleteKeyValues\": [{key, value}, …]}.")
            })?
        };
        if !in_body.is_empty() && !head.key_values.is_empty() {
            return Err(body("deleteKeyValues stands in the body and in the URL.".to_owned()));
        }
        let key_values = if in_body.is_empty() { head.key_values } else { in_body };
        let target = match (head.id, key_values.condition(&FOR_DELETE)?) {
            (Some(id), None) => Target::Record(id),
            (None, Some(condition)) => Target::Matching(condition),
            (Some(_), Some(_)) => {
                return Err(body("The id in the path and deleteKeyValues exclude each other.".to_owned()));
            }
            (None, None) => {
                return Err(body("The request does not say which records to delete.".to_owned()).with_hint(
                    "Name one by its id in the path, or several by {\"deleteKeyValues\": [{key, value}, …]}.",
                ));
            }
        };
        Ok(Self { table, target })
    }
}
