//! Parses deletes: one record by its id, or all that match conditions.

use super::body;
use super::matching::{FOR_DELETE, Matching, QUERY, SEARCH_OPERATOR};
use super::options::{WRITE_OPTIONS, WriteOptions};
use crate::error::{Faults, Problem};
use crate::ident::shown;
use crate::json;
use crate::operation::filter::Condition;
use crate::operation::options::{self, Options};
use crate::operation::{RecordId, TablePath};
use crate::request::RequestHead;

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Delete {
    pub table: TablePath,
    pub target: WriteTarget,
    pub options: WriteOptions,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WriteTarget {
    Record(RecordId),
    Matching(Condition),
}

#[derive(Clone, Debug)]
pub(in crate::operation) struct DeleteHead {
    id: Option<RecordId>,
    matching: Matching,
    options: WriteOptions,
}

impl DeleteHead {
    pub(in crate::operation) fn new(
        id: Option<RecordId>,
        options: Options,
        head: &RequestHead<'_>,
    ) -> Result<Self, Problem> {
        let (mut matching, mut write) = (Matching::default(), WriteOptions::default());
        for (name, value) in options {
            let Some(value) = matching.take(&FOR_DELETE, &name, value)? else {
                continue;
            };
            if !write.take(&name, &value)? {
                let [returning, dry_run, most] = WRITE_OPTIONS;
                let known = [QUERY, SEARCH_OPERATOR, FOR_DELETE.list, FOR_DELETE.joiner, returning, dry_run, most];
                return Err(options::unknown(&name, &known));
            }
        }
        write.finish(head)?;
        Ok(Self { id, matching, options: write })
    }

    pub(in crate::operation) fn is_of_one(&self) -> bool {
        self.id.is_some()
    }
}

impl Delete {
    pub(in crate::operation) fn from_body(table: TablePath, head: DeleteHead, bytes: &[u8]) -> Result<Self, Problem> {
        let (mut in_body, mut faults) = (Matching::default(), Faults::default());
        if !bytes.trim_ascii().is_empty() {
            for (name, value) in json::body_members(bytes)? {
                if in_body.take(&FOR_DELETE, &name, value)?.is_some() {
                    faults.add(|| {
                        body(format!("A delete has no part {}.", shown(&name)))
                            .with_hint("Use {\"query\": {…}} or {\"deleteKeyValues\": [{key, value}, …]}.")
                    });
                }
            }
        }
        faults.end()?;
        if !in_body.is_empty() && !head.matching.is_empty() {
            return Err(body("There are conditions in the body and in the URL.".to_owned()));
        }
        let matching = if in_body.is_empty() { head.matching } else { in_body };
        let target = match (head.id, matching.condition(&FOR_DELETE)?) {
            (Some(id), None) => WriteTarget::Record(id),
            (None, Some(condition)) => WriteTarget::Matching(condition),
            (Some(_), Some(_)) => {
                return Err(body("The id in the path and conditions exclude each other.".to_owned()));
            }
            (None, None) => {
                return Err(body("The request does not say which records to delete.".to_owned())
                    .with_hint("Name one by its id in the path, or several by {\"query\": {field: condition, …}}."));
            }
        };
        Ok(Self { table, target, options: head.options })
    }
}
