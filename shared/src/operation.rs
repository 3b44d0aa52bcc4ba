//! A request, parsed: [`RequestHead`] → [`Pending`] → [`Operation`].
//!
//! Parsing has two steps, because policy is decided between them: the head names the action, and only
//! a caller who may do it has its body read. An `Operation` holds no unchecked identifier; whether its
//! names exist is not known yet.

pub mod batch;
pub mod field;
pub mod filter;
pub mod media;
pub mod options;
pub mod read;
pub mod route;
pub mod sql;
pub mod tus;
pub mod window;
pub mod write;

use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::ident::{DatabaseName, TableName};
use crate::key::Access;
use crate::policy::{Action, permit};
use crate::request::RequestHead;
use crate::upload::Encoding;
use batch::Batch;
use media::{MediaCall, MediaId, MediaList, SignedFor};
use read::{Answer, Join, Read, ReadOne};
use route::Resource;
use sql::SqlCall;
use std::borrow::Cow;
use tus::TusCall;
use write::{Delete, Insert, Update};

/// A table of a database, as named by the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TablePath {
    /// The database.
    pub database: DatabaseName,
    /// The table or view.
    pub table: TableName,
}

/// The `{id}` of a path. Its meaning depends on the table's key, which the catalogue knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordId {
    whole: String,
    parts: Vec<String>,
}

impl RecordId {
    /// Decodes a path segment: the commas that stand for themselves separate the parts of a composite
    /// key; an encoded one (`%2C`) belongs to its part.
    fn decode(segment: &str) -> Result<Self, Problem> {
        let parts = segment
            .split(',')
            .map(|part| route::decode_segment(part).map(Cow::into_owned))
            .collect::<Result<_, _>>()?;
        Ok(Self { whole: route::decode_segment(segment)?.into_owned(), parts })
    }

    /// The id of a key of one field.
    #[must_use]
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// The parts of a key of so many fields; `None` if the id has fewer or more. An id that was encoded
    /// as a whole, commas included, is parted at them where that gives as many parts as are wanted.
    #[must_use]
    pub fn parts(&self, wanted: usize) -> Option<Vec<&str>> {
        let parts: Vec<&str> = match self.parts.as_slice() {
            [whole] => whole.split(',').collect(),
            parts => parts.iter().map(String::as_str).collect(),
        };
        (parts.len() == wanted).then_some(parts)
    }
}

/// Everything a caller can ask of tables and SQL, completely parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Records of a table.
    Read(Read),
    /// One record.
    ReadOne(ReadOne),
    /// New records.
    Insert(Insert),
    /// Changes to records.
    Update(Update),
    /// Records to delete.
    Delete(Delete),
    /// A table's methods and fields.
    Describe(TablePath),
    /// One SQL statement.
    Sql(SqlCall),
    /// Several of the above on records, as one.
    Batch(Batch),
    /// Something of the media library.
    Media(MediaCall),
    /// Something of an upload that can be resumed.
    Tus(TusCall),
}

/// What a request's body is to its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyUse {
    /// Nothing.
    None,
    /// A JSON text, which [`Pending::finish`] reads whole.
    Json,
    /// Files, which are read as they arrive: [`Pending::finish`] does without.
    Upload,
    /// Bytes of one file, which are kept as they arrive: [`Pending::finish`] does without.
    Bytes,
}

impl Operation {
    /// The table it is about; SQL and a batch's operations name their own.
    #[must_use]
    pub fn table(&self) -> Option<&TablePath> {
        match self {
            Self::Read(read) => Some(&read.table),
            Self::ReadOne(read) => Some(&read.table),
            Self::Insert(insert) => Some(&insert.table),
            Self::Update(update) => Some(&update.table),
            Self::Delete(delete) => Some(&delete.table),
            Self::Describe(table) => Some(table),
            Self::Sql(_) | Self::Batch(_) | Self::Media(_) | Self::Tus(_) => None,
        }
    }

    /// The tables that a read joins to it.
    #[must_use]
    pub fn joins(&self) -> &[Join] {
        match self {
            Self::Read(read) => &read.joins,
            Self::ReadOne(read) => &read.joins,
            _ => &[],
        }
    }

    /// What it turned out to want, now that its body is known, beyond what its head said.
    #[must_use]
    pub fn further_action(&self) -> Option<Action> {
        match self {
            Self::Read(Read { answer, .. }) | Self::ReadOne(ReadOne { answer, .. }) => {
                (*answer == Answer::Explanation).then_some(Action::Explain)
            }
            _ => None,
        }
    }

    /// Whether running it twice is as good as once, because it changes nothing.
    #[must_use]
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read(_) | Self::ReadOne(_) | Self::Describe(_))
    }
}

/// A request whose head is parsed and whose body is still to come.
#[derive(Clone, Debug)]
pub struct Pending {
    action: Action,
    step: Step,
    /// Why the body can't be read, if the head says so already: reported after the policy was checked.
    unreadable: Option<Problem>,
    /// What the key of the request may do: everything until [`Pending::permit`] says otherwise.
    access: Access,
}

#[derive(Clone, Debug)]
enum Step {
    Ready(Box<Operation>),
    Query(TablePath, Format),
    Insert(TablePath, write::InsertHead),
    Update(TablePath, RecordId),
    UpdateMany(TablePath),
    Delete(TablePath, write::DeleteHead),
    Sql(Format),
    Batch,
    Sign(MediaId),
}

impl Step {
    fn body(&self) -> BodyUse {
        let Self::Ready(operation) = self else {
            return BodyUse::Json;
        };
        match &**operation {
            Operation::Media(MediaCall::Upload) => BodyUse::Upload,
            Operation::Tus(call) if call.takes_bytes() => BodyUse::Bytes,
            _ => BodyUse::None,
        }
    }
}

impl Pending {
    /// What the caller wants to do, for the policy.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    /// What becomes of the body.
    #[must_use]
    pub fn body(&self) -> BodyUse {
        self.step.body()
    }

    /// Checks that the policy allows the action to a key of this access, then the body's type. What the body asks for
    /// beyond the action is checked by [`Pending::finish`].
    ///
    /// # Errors
    /// `full_access_required`, `unsupported_media_type`.
    pub(crate) fn permit(mut self, access: Access) -> Result<Self, Problem> {
        permit(self.action, access)?;
        self.check_body_type()?;
        self.access = access;
        Ok(self)
    }

    /// Checks that the body, if the operation has one, is of a type that is read.
    ///
    /// # Errors
    /// `unsupported_media_type`.
    pub fn check_body_type(&self) -> Result<(), Problem> {
        self.unreadable.clone().map_or(Ok(()), Err)
    }

    /// Parses the body. An operation without one ignores it.
    ///
    /// # Errors
    /// `invalid_json`, `invalid_body`, `invalid_query_option`, `invalid_filter`,
    /// `invalid_identifier` or `unknown_field`, naming the thing at fault; `full_access_required` if the body asks for
    /// more than the key may do.
    pub fn finish(self, body: &[u8]) -> Result<Operation, Problem> {
        self.check_body_type()?;
        let operation = match self.step {
            Step::Ready(operation) => *operation,
            Step::Query(table, format) => Operation::Read(Read::from_body(table, format, body)?),
            Step::Insert(table, head) => Operation::Insert(Insert::from_body(table, head, body)?),
            Step::Update(table, id) => Operation::Update(Update::from_body(table, id, body)?),
            Step::UpdateMany(table) => Operation::Update(Update::many_from_body(table, body)?),
            Step::Delete(table, head) => Operation::Delete(Delete::from_body(table, head, body)?),
            Step::Sql(format) => Operation::Sql(SqlCall::from_body(format, body)?),
            Step::Batch => Operation::Batch(Batch::from_body(body)?),
            Step::Sign(id) => Operation::Media(MediaCall::Sign(id, SignedFor::from_body(body)?)),
        };
        if let Some(action) = operation.further_action() {
            permit(action, self.access)?;
        }
        Ok(operation)
    }
}

/// Understands a request's head: its route, method, options and content type.
///
/// # Errors
/// `uri_too_long`, `route_not_found`, `method_not_allowed`,
/// `invalid_identifier`, `invalid_query_option`, `invalid_filter`.
pub fn parse_head(head: &RequestHead<'_>) -> Result<Pending, Problem> {
    let resource = route::resolve(head)?;
    let pairs = options::pairs(head.query, texts(&resource))?;
    let format = Format::from_accept(head.accept);
    let (action, step) = match (resource, head.method) {
        (Resource::Table(table), "GET" | "HEAD") => {
            let operation = Operation::Read(Read::from_pairs(table, format, pairs)?);
            (operation.further_action().unwrap_or(Action::Read), ready(operation))
        }
        (Resource::Table(table), "POST") => {
            (Action::Insert, Step::Insert(table, write::InsertHead::new(pairs, head.idempotency_key)?))
        }
        (Resource::Table(table), "PUT" | "PATCH") => {
            options::none(&pairs)?;
            (Action::Update, Step::UpdateMany(table))
        }
        (Resource::Table(table), "DELETE") => {
            (Action::Delete, Step::Delete(table, write::DeleteHead::from_pairs(None, pairs)?))
        }
        (Resource::Table(table) | Resource::Schema(table), _) => {
            options::none(&pairs)?;
            (Action::Describe, ready(Operation::Describe(table)))
        }
        (Resource::Query(table), _) => {
            options::none(&pairs)?;
            (Action::Query, Step::Query(table, format))
        }
        (Resource::Record(table, id), "GET" | "HEAD") => {
            let operation = Operation::ReadOne(ReadOne::from_pairs(table, id, format, pairs)?);
            (operation.further_action().unwrap_or(Action::ReadOne), ready(operation))
        }
        (Resource::Record(table, id), "DELETE") => {
            (Action::Delete, Step::Delete(table, write::DeleteHead::from_pairs(Some(id), pairs)?))
        }
        (Resource::Record(table, id), _) => {
            options::none(&pairs)?;
            (Action::Update, Step::Update(table, id))
        }
        (Resource::Sql, _) => {
            options::none(&pairs)?;
            (Action::Sql, Step::Sql(format))
        }
        (Resource::Batch, _) => {
            options::none(&pairs)?;
            (Action::Batch, Step::Batch)
        }
        (Resource::Uploads, _) => {
            options::none(&pairs)?;
            resumable(TusCall::of_uploads(head)?)
        }
        (Resource::Upload(id), _) => {
            options::none(&pairs)?;
            resumable(TusCall::of_upload(head, id)?)
        }
        (resource, method) => in_library(method, resource, pairs)?,
    };
    refuse_idle_headers(head, action)?;
    let unreadable = check_content(head, step.body()).err();
    Ok(Pending { action, step, unreadable, access: Access::Full })
}

/// Checks that the headers announce a body of the form that an operation takes.
fn check_content(head: &RequestHead<'_>, body: BodyUse) -> Result<(), Problem> {
    match body {
        BodyUse::None => return Ok(()),
        BodyUse::Json => expect_json(head.content_type)?,
        BodyUse::Upload => drop(Encoding::of(head.content_type)?),
        BodyUse::Bytes => tus::expect_bytes(head)?,
    }
    expect_plain(head)
}

/// Options of a resource whose values are texts, however they begin.
fn texts(resource: &Resource) -> &'static [&'static str] {
    match resource {
        Resource::Library => MediaList::TEXTS,
        _ => &[],
    }
}

/// What is asked of the media library.
fn in_library(method: &str, resource: Resource, pairs: options::Options) -> Result<(Action, Step), Problem> {
    let media = |call| ready(Operation::Media(call));
    if let (Resource::Library, "GET" | "HEAD") = (&resource, method) {
        let list = MediaList::from_pairs(pairs)?;
        return Ok((Action::ListMedia, media(MediaCall::List(list))));
    }
    options::none(&pairs)?;
    Ok(match (resource, method) {
        (Resource::Medium(id), "DELETE") => (Action::DeleteMedia, media(MediaCall::Delete(id))),
        (Resource::Medium(id), _) => (Action::DescribeMedia, media(MediaCall::Describe(id))),
        (Resource::Signature(id), _) => (Action::SignMedia, Step::Sign(id)),
        _ => (Action::Upload, media(MediaCall::Upload)),
    })
}

/// What is asked of uploads that can be resumed.
fn resumable(call: TusCall) -> (Action, Step) {
    let action = match &call {
        TusCall::Describe => Action::DescribeUploads,
        TusCall::Create(_) => Action::BeginUpload,
        TusCall::Status(_) | TusCall::Append { .. } | TusCall::Terminate(_) => Action::ResumeUpload,
    };
    (action, ready(Operation::Tus(call)))
}

fn ready(operation: Operation) -> Step {
    Step::Ready(Box::new(operation))
}

/// Only an insert happens once by its key, and no write is made under a condition: accepted in silence,
/// either would promise what is not kept. Nobody relies on a condition of a read, but a write under one
/// that nobody checks may undo somebody's work.
fn refuse_idle_headers(head: &RequestHead<'_>, action: Action) -> Result<(), Problem> {
    let writes = action.needs() == Access::Full;
    let inserts = action == Action::Insert;
    let idle = [
        ("Idempotency-Key", head.idempotency_key.filter(|_| !inserts)),
        ("If-Match", head.if_match.filter(|_| writes)),
        ("If-None-Match", head.if_none_match.filter(|_| writes)),
    ];
    match idle.into_iter().find(|(_, value)| value.is_some()) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Problem::new(ErrorCode::InvalidQueryOption, format!("The header {name} is not available here."))
                .with_hint("Leave it out; nothing was done."))
        }
    }
}

/// A missing type is taken for JSON; another one is refused.
fn expect_json(content_type: Option<&str>) -> Result<(), Problem> {
    let Some(essence) = other_than_json(content_type) else {
        return Ok(());
    };
    Err(Problem::new(
        ErrorCode::UnsupportedMediaType,
        format!("The Content-Type {} is not read here.", crate::ident::shown(essence)),
    )
    .with_hint("Send Content-Type: application/json."))
}

/// Bodies are read as they are: one that is compressed is no broken JSON, and its sender is told so.
fn expect_plain(head: &RequestHead<'_>) -> Result<(), Problem> {
    match head.content_encoding {
        None | Some("" | "identity") => Ok(()),
        Some(encoding) => Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            format!("The Content-Encoding {} is not read here.", crate::ident::shown(encoding)),
        )
        .with_hint("Send the body as it is, without Content-Encoding.")),
    }
}

/// The type without its parameters, if one is named and it is not JSON.
pub(crate) fn other_than_json(content_type: Option<&str>) -> Option<&str> {
    let essence = content_type?.split(';').next().unwrap_or_default().trim();
    let is_json = essence.is_empty()
        || essence.eq_ignore_ascii_case("application/json")
        || (essence.len() > 5 && essence.as_bytes()[essence.len() - 5..].eq_ignore_ascii_case(b"+json"));
    (!is_json).then_some(essence)
}

#[cfg(test)]
mod tests;
