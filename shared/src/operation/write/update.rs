//! Parses updates: of one record by its id, or of all that match conditions.

use super::matching::{FOR_UPDATE, Matching};
use super::options::{WRITE_OPTIONS, WriteOptions};
use super::{WriteTarget, body, fields_and_values};
use crate::error::{Faults, Problem};
use crate::ident::{FieldName, shown};
use crate::json::{self, Value};
use crate::operation::options::{self, Options};
use crate::operation::{RecordId, TablePath};
use crate::request::RequestHead;

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Update {
    pub table: TablePath,
    pub target: WriteTarget,
    /// The fields to write, at least one.
    pub fields: Vec<FieldName>,
    pub values: Vec<Value>,
    pub options: WriteOptions,
}

#[derive(Clone, Debug)]
pub(in crate::operation) struct UpdateHead {
    id: Option<RecordId>,
    options: WriteOptions,
}

impl UpdateHead {
    pub(in crate::operation) fn new(
        id: Option<RecordId>,
        options: Options,
        head: &RequestHead<'_>,
    ) -> Result<Self, Problem> {
        let mut write = WriteOptions::default();
        for (name, value) in options {
            if !write.take(&name, &value)? {
                return Err(options::unknown(&name, &WRITE_OPTIONS));
            }
        }
        write.finish(head)?;
        Ok(Self { id, options: write })
    }

    pub(in crate::operation) fn is_of_one(&self) -> bool {
        self.id.is_some()
    }
}

impl Update {
    pub(in crate::operation) fn from_body(table: TablePath, head: UpdateHead, bytes: &[u8]) -> Result<Self, Problem> {
        let UpdateHead { id, options } = head;
        let (target, (fields, values)) = match id {
            Some(id) => {
                let changes = fields_and_values(json::body_members(bytes)?)?;
                if changes.0.is_empty() {
                    return Err(body("The body names no field to change.".to_owned()));
                }
                (WriteTarget::Record(id), changes)
            }
            None => many(bytes)?,
        };
        Ok(Self { table, target, fields, values, options })
    }
}

type Changes = (Vec<FieldName>, Vec<Value>);

fn many(bytes: &[u8]) -> Result<(WriteTarget, Changes), Problem> {
    let (mut data, mut matching, mut faults) = (None, Matching::default(), Faults::default());
    for (name, value) in json::body_members(bytes)? {
        if name == "data" {
            data = Some(value);
        } else if matching.take(&FOR_UPDATE, &name, value)?.is_some() {
            faults.add(|| {
                body(format!("An update of many records has no part {}.", shown(&name)))
                    .with_hint("Use {\"query\": {…}, \"data\": {…}}, or name one record by its id in the path.")
            });
        }
    }
    faults.end()?;
    let condition = matching.condition(&FOR_UPDATE)?.ok_or_else(|| {
        body("The request does not say which records to change.".to_owned()).with_hint(
            "Name one by its id in the path, or several by {\"query\": {field: condition, …}, \"data\": {…}}.",
        )
    })?;
    Ok((WriteTarget::Matching(condition), data_of(data)?))
}

fn data_of(data: Option<Value>) -> Result<Changes, Problem> {
    let Some(data) = data else {
        return Err(body("The body has no data: no field to change.".to_owned()));
    };
    let Value::Object(text) = &data else {
        return Err(body(format!("data must be an object of fields, not {}.", data.kind())));
    };
    let members = json::members(text).map_err(|fault| body(format!("data can't be read: {fault}.")))?;
    let (fields, values) = fields_and_values(members)?;
    if fields.is_empty() {
        return Err(body("data names no field to change.".to_owned()));
    }
    Ok((fields, values))
}
