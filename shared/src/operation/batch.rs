//! Several operations on records in one transaction: `{"operations": [{method, path, body?, ifMatch?}, …], "dryRun"?}`. Each
//! operation is parsed like a single request, but some options are refused. An operation may also contain a
//! [`Reference`] to the id that an earlier insert of the batch generates.

mod reference;

pub use reference::{Fill, Position, Reference};

use super::read::{Count, ReadAnswer};
use super::write::{Insert, InsertedRows};
use super::{BodyUse, Operation, RecordOperation, parse_head};
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::json::{self, Value};
use crate::key::Access;
use crate::limits::{BATCH_COMMAS_MAX_COUNT, BATCH_MAX_CELLS, BATCH_OPERATIONS_MAX_COUNT};
use crate::policy::Action;
use crate::request::RequestHead;
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    steps: Vec<BatchStep>,
    is_dry_run: bool,
}

impl Batch {
    /// Returns the operations, at least one.
    pub fn steps(&self) -> &[BatchStep] {
        &self.steps
    }

    pub fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    pub(super) fn from_body(bytes: &[u8]) -> Result<Self, Problem> {
        let mut steps: Vec<BatchStep> = Vec::new();
        let mut cells = 0;
        let (items, is_dry_run) = parts(bytes)?;
        for (at, item) in items.into_iter().enumerate() {
            let step = BatchStep::parse(&item, &steps).map_err(|problem| problem.in_operation(at))?;
            if let Some(insert) = step.insert() {
                cells += insert.fields.len() * insert.rows.as_slice().len();
            }
            if cells > BATCH_MAX_CELLS {
                return Err(too_much());
            }
            steps.push(step);
        }
        Ok(Self { steps, is_dry_run })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct BatchStep {
    operation: RecordOperation,
    /// The unparsed operation, if it has references to ids of earlier inserts.
    template: Option<StepRequest>,
    references: Vec<Reference>,
}

impl BatchStep {
    pub fn operation(&self) -> &RecordOperation {
        &self.operation
    }

    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Returns the operation with ids for its references. `id` returns the JSON of an id. Fails if `id` or parsing
    /// fails.
    pub fn resolve(&self, id: &mut Fill<'_>) -> Result<Cow<'_, RecordOperation>, Problem> {
        match &self.template {
            None => Ok(Cow::Borrowed(&self.operation)),
            Some(request) => request.operation(id).map(Cow::Owned),
        }
    }

    fn parse(item: &Value, earlier: &[Self]) -> Result<Self, Problem> {
        let request = StepRequest::read(item)?;
        let mut references = Vec::new();
        let operation = request.operation(&mut |reference| {
            reference.check(earlier)?;
            references.push(reference);
            Ok(reference::PLACEHOLDER.to_owned())
        })?;
        Ok(Self { operation, template: (!references.is_empty()).then_some(request), references })
    }

    fn insert(&self) -> Option<&Insert> {
        match &self.operation {
            RecordOperation::Insert(insert) => Some(insert),
            _ => None,
        }
    }

    fn batch_rows(&self) -> Option<usize> {
        match &self.insert()?.rows {
            InsertedRows::One(_) => None,
            InsertedRows::Batch(rows) => Some(rows.len()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct StepRequest {
    method: Box<str>,
    path: Box<str>,
    body: Option<Value>,
    if_match: Option<Box<str>>,
}

const RECORDS: &str = "/api/v1/crud/";
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

impl StepRequest {
    fn read(item: &Value) -> Result<Self, Problem> {
        let Value::Object(text) = item else {
            return Err(invalid(format!("It must be an object {{method, path, body}}, not {}.", item.kind())));
        };
        let members = json::members(text).map_err(|fault| invalid(format!("It can't be read: {fault}.")))?;
        let (mut method, mut path, mut body, mut if_match) = (None, None, None, None);
        for (name, value) in members {
            match (&*name, value) {
                ("method", Value::Text(text)) => method = Some(known_method(&text)?),
                ("path", Value::Text(text)) => path = Some(full_path(&text)?),
                ("ifMatch", Value::Text(tags)) => if_match = Some(tags),
                ("body" | "ifMatch", Value::Null) => {}
                ("body", value) => body = Some(value),
                ("method" | "path" | "ifMatch", other) => {
                    return Err(invalid(format!("{name} must be a string, not {}.", other.kind())));
                }
                (other, _) => {
                    return Err(invalid(format!("An operation has no part {}.", shown(other)))
                        .with_hint("Its parts are method, path, body and ifMatch."));
                }
            }
        }
        let missing = |part: &str| invalid(format!("It has no {part}."));
        let method = method.ok_or_else(|| missing("method"))?;
        Ok(Self { method, path: path.ok_or_else(|| missing("path"))?, body, if_match })
    }

    /// Parses the operation. `fill` returns the id for each reference (`$ref:0`). Refuses what a batch can't have.
    fn operation(&self, fill: &mut Fill<'_>) -> Result<RecordOperation, Problem> {
        let (path, query) = match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.path, None),
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let pending = parse_head(&RequestHead {
            method: &self.method,
            path: &reference::in_path(path, fill)?,
            query,
            if_match: self.if_match.as_deref(),
            ..RequestHead::default()
        })?;
        if self.if_match.is_some() && pending.action().needs() == Access::Read {
            return Err(invalid("ifMatch is for updates and deletes of one record.".to_owned()));
        }
        let action = pending.action();
        match action {
            Action::Read | Action::Query | Action::ReadOne | Action::Insert | Action::Update | Action::Delete => {}
            Action::Explain => return Err(not_answered("explain")),
            _ => return Err(not_on_records()),
        }
        let operation = match (&self.body, pending.body()) {
            (Some(_), BodyUse::None | BodyUse::Upload | BodyUse::Bytes) => {
                Err(invalid(format!("A {} takes no body.", self.method))
                    .with_hint("Options of a read stand in its path."))
            }
            (None, _) => pending.finish(b""),
            (Some(body), BodyUse::Json) => {
                let text = reference::in_body(action, path, body, fill)?;
                pending.finish(text.as_bytes())
            }
        }?;
        match operation {
            Operation::Records(operation) => {
                refuse_what_is_not_answered(&operation)?;
                Ok(operation)
            }
            _ => Err(not_on_records()),
        }
    }
}

fn known_method(text: &str) -> Result<Box<str>, Problem> {
    let known = METHODS.iter().find(|known| text.eq_ignore_ascii_case(known));
    known.map(|known| Box::from(*known)).ok_or_else(|| {
        invalid(format!("The method {} has no place in a batch.", shown(text)))
            .with_hint(format!("Use one of {}.", METHODS.join(", ")))
    })
}

/// Returns the absolute path; `text` without a leading `/` is relative to [`RECORDS`].
fn full_path(text: &str) -> Result<Box<str>, Problem> {
    if !text.starts_with('/') {
        return Ok([RECORDS, text].concat().into());
    }
    match text.starts_with(RECORDS) {
        true => Ok(text.into()),
        false => Err(not_on_records()),
    }
}

/// Refuses options whose results have no place in the response of a batch, which is a list of payloads.
fn refuse_what_is_not_answered(operation: &RecordOperation) -> Result<(), Problem> {
    match operation {
        RecordOperation::Read(read) if read.answer == ReadAnswer::Explanation => Err(not_answered("explain")),
        RecordOperation::Read(read) if read.count == Count::Exact => Err(not_answered("count")),
        RecordOperation::Read(read) if read.window.after.is_some() => Err(not_answered("after")),
        _ => Ok(()),
    }
}

fn not_answered(option: &str) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, format!("The option {option} has no place in a batch."))
}

fn not_on_records() -> Problem {
    invalid("Only operations on records have a place in a batch.".to_owned())
        .with_hint("Give a path such as /api/v1/crud/{database}/{table}, or only {database}/{table}.")
}

/// Returns the list `operations` and the flag `dryRun`. Checks the number of commas first. Refuses an empty list.
fn parts(bytes: &[u8]) -> Result<(Vec<Value>, bool), Problem> {
    let (mut list, mut is_dry_run) = (None, false);
    for (name, value) in json::body_members(bytes)? {
        match (&*name, value) {
            ("operations", Value::List(items)) => list = Some(items),
            ("dryRun", Value::Bool(flag)) => is_dry_run = flag,
            ("dryRun", Value::Null) => {}
            ("operations", other) => return Err(invalid(format!("operations must be a list, not {}.", other.kind()))),
            ("dryRun", other) => return Err(invalid(format!("dryRun must be true or false, not {}.", other.kind()))),
            _ => return Err(no_batch()),
        }
    }
    let list = list.ok_or_else(no_batch)?;
    if json::commas(&list) > BATCH_COMMAS_MAX_COUNT {
        return Err(too_much());
    }
    let items = json::items(&list, BATCH_OPERATIONS_MAX_COUNT)
        .map_err(|fault| invalid(format!("operations can't be read: {fault}.")))?;
    if items.is_empty() {
        return Err(invalid("operations is empty.".to_owned()));
    }
    if items.len() > BATCH_OPERATIONS_MAX_COUNT {
        return Err(invalid(format!("The batch has more than {BATCH_OPERATIONS_MAX_COUNT} operations."))
            .with_hint("Insert many records of one table by one operation with batchData."));
    }
    Ok((items, is_dry_run))
}

fn no_batch() -> Problem {
    invalid("The body must hold operations, at most dryRun beside it, and nothing else.".to_owned())
        .with_hint("Send {\"operations\": [{method, path, body}, …]}.")
}

fn too_much() -> Problem {
    invalid("The operations hold too many values together.".to_owned()).with_hint("Spread them over several requests.")
}

fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}

#[cfg(test)]
mod tests;
