//! Parses a request in two steps: [`RequestHead`] → [`Pending`] → [`Operation`]. The head determines the action, so
//! that the body is read only for callers who may do it; a body that asks for more (`explain`) is checked after
//! parsing. All identifiers of an `Operation` are valid names; whether they exist is not checked here.

pub mod batch;
pub mod changes;
pub mod field;
pub mod filter;
pub(crate) mod headers;
pub mod management;
pub mod media;
pub mod options;
pub mod read;
pub mod route;
pub mod schema;
pub mod sql;
pub mod tus;
pub mod webhook;
pub mod window;
pub mod write;

use crate::error::Problem;
use crate::format::Format;
use crate::ident::{DatabaseName, TableName};
use crate::key::Grant;
use crate::policy::{Action, permit};
use crate::request::RequestHead;
use batch::Batch;
use changes::{ChangesCall, ChangesHead};
use filter::Condition;
use headers::{check_content, refuse_idle_headers};
use management::Management;
use media::{MediaCall, MediaId, MediaList, SignedFor};
use read::{Include, Join, Read, ReadAnswer, ReadOne};
use route::Resource;
use schema::SchemaRun;
use sql::SqlCall;
use std::borrow::Cow;
use tus::TusCall;
use write::{Delete, Insert, Preference, Update, WriteOptions, WriteTarget};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TablePath {
    pub database: DatabaseName,
    pub table: TableName,
}

/// Maximum number of columns in a key of MariaDB.
const KEY_PARTS_MAX_COUNT: usize = 32;

/// A record's id in the path: the value of the column `id` or else of the primary key, which may have several columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RecordId {
    whole: String,
    parts: Vec<String>,
}

impl RecordId {
    /// Decodes an id. If it contains plain commas, they separate the parts of a composite key, and an encoded comma
    /// (`%2C`) belongs to a part. Without plain commas, encoded commas may separate parts: see [`RecordId::parts`].
    fn decode(segment: &str) -> Result<Self, Problem> {
        let parts = segment
            .split(',')
            // One more than any key has, so that a longer id has another number of parts than the key.
            .take(KEY_PARTS_MAX_COUNT + 1)
            .map(|part| route::decode_segment(part).map(Cow::into_owned))
            .collect::<Result<_, _>>()?;
        Ok(Self { whole: route::decode_segment(segment)?.into_owned(), parts })
    }

    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// Returns the parts of a key of `wanted` columns; `None` if the id has another number of parts. An id without
    /// plain commas is split at its encoded commas.
    pub fn parts(&self, wanted: usize) -> Option<Vec<&str>> {
        let parts: Vec<&str> = match self.parts.as_slice() {
            [whole] => whole.split(',').collect(),
            parts => parts.iter().map(String::as_str).collect(),
        };
        (parts.len() == wanted).then_some(parts)
    }
}

/// A parsed request, without the bodies of uploads, MCP messages, changes of tables and management requests, which the
/// origin parses.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    target_pointer_width = "64",
    expect(
        clippy::large_enum_variant,
        reason = "most requests are about records; a box would be an allocation for each"
    )
)]
pub enum Operation {
    Records(RecordOperation),
    List(Listing),
    DescribeApi(ApiForm, Option<DatabaseName>),
    Describe(TablePath),
    Sql(SqlCall),
    ChangeSchema(SchemaRun),
    Definition(TablePath),
    Batch(Batch),
    Changes(ChangesCall),
    Mcp,
    Media(MediaCall),
    Tus(TusCall),
    Manage(Management),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    Databases,
    Tables(DatabaseName),
    /// Routines, triggers, views and events.
    Code(DatabaseName),
}

/// A form of the API's description, which contains only what the caller may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApiForm {
    OpenApi,
    TypeScript,
    Python,
    Rust,
}

impl ApiForm {
    pub const ALL: [Self; 4] = [Self::OpenApi, Self::TypeScript, Self::Python, Self::Rust];

    pub const fn file_name(self) -> &'static str {
        match self {
            Self::OpenApi => "openapi.json",
            Self::TypeScript => "types.ts",
            Self::Python => "types.py",
            Self::Rust => "types.rs",
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenApi => "application/json",
            Self::TypeScript => "application/typescript; charset=utf-8",
            Self::Python => "text/x-python; charset=utf-8",
            Self::Rust => "text/x-rust; charset=utf-8",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum RecordOperation {
    Read(Read),
    ReadOne(ReadOne),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyUse {
    None,
    /// A body that is read as a whole: JSON, CSV or NDJSON for [`Pending::finish`], or an MCP message, a change of a
    /// table or a management request, which the origin parses.
    Json,
    /// Files in JSON or multipart, parsed as they arrive, without [`Pending::finish`].
    Upload,
    /// The bytes of a resumable upload, stored as they arrive, without [`Pending::finish`].
    Bytes,
}

impl RecordOperation {
    pub fn table(&self) -> &TablePath {
        match self {
            Self::Read(read) => &read.table,
            Self::ReadOne(read) => &read.table,
            Self::Insert(insert) => &insert.table,
            Self::Update(update) => &update.table,
            Self::Delete(delete) => &delete.table,
        }
    }

    pub fn joins(&self) -> &[Join] {
        match self {
            Self::Read(read) => &read.joins,
            Self::ReadOne(read) => &read.joins,
            _ => &[],
        }
    }

    pub fn includes(&self) -> &[Include] {
        match self {
            Self::Read(read) => &read.includes,
            Self::ReadOne(read) => &read.includes,
            _ => &[],
        }
    }

    pub fn filter(&self) -> Option<&Condition> {
        match self {
            Self::Read(read) => read.filter.as_ref(),
            Self::Update(Update { target: WriteTarget::Matching(condition), .. })
            | Self::Delete(Delete { target: WriteTarget::Matching(condition), .. }) => Some(condition),
            _ => None,
        }
    }

    pub fn after(&self) -> Option<&str> {
        match self {
            Self::Read(read) => read.window.after.as_deref(),
            _ => None,
        }
    }

    pub fn write_options(&self) -> Option<&WriteOptions> {
        match self {
            Self::Read(_) | Self::ReadOne(_) => None,
            Self::Insert(insert) => Some(&insert.options),
            Self::Update(update) => Some(&update.options),
            Self::Delete(delete) => Some(&delete.options),
        }
    }

    /// Returns the write without its preference; `None` unless only `Prefer: return=representation` asks for the
    /// records.
    pub fn without_preference(&self) -> Option<Self> {
        self.write_options().filter(|options| options.preference == Some(Preference::Representation))?;
        let mut plain = self.clone();
        let options = match &mut plain {
            Self::Read(_) | Self::ReadOne(_) => return None,
            Self::Insert(insert) => &mut insert.options,
            Self::Update(update) => &mut update.options,
            Self::Delete(delete) => &mut delete.options,
        };
        (options.preference, options.returning) = (None, None);
        Some(plain)
    }

    /// Returns the action that the body or options additionally ask for: [`Action::Explain`], which needs more access.
    pub fn further_action(&self) -> Option<Action> {
        match self {
            Self::Read(Read { answer, .. }) | Self::ReadOne(ReadOne { answer, .. }) => {
                (*answer == ReadAnswer::Explanation).then_some(Action::Explain)
            }
            _ => None,
        }
    }

    /// Returns whether the operation is a read, which may be run twice.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read(_) | Self::ReadOne(_))
    }
}

#[derive(Clone, Debug)]
pub struct Pending {
    action: Action,
    step: ExpectedBody,
    /// The problem of the body's type or encoding, reported after the access check.
    unreadable: Option<Problem>,
    /// The caller's grant; full access until [`Pending::permit`] sets it.
    grant: Grant,
}

#[derive(Clone, Debug)]
enum ExpectedBody {
    Ready(Box<Operation>),
    Query(TablePath, Format),
    Insert(TablePath, Box<write::InsertHead>),
    Update(TablePath, Box<write::UpdateHead>),
    Delete(TablePath, Box<write::DeleteHead>),
    Sql(Format),
    ChangeSchema(SchemaRun),
    Batch,
    Changes(ChangesHead),
    Mcp,
    Sign(MediaId),
    Manage(Management),
}

impl ExpectedBody {
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

    fn further_action(&self) -> Option<Action> {
        match self {
            Self::Ready(operation) => match &**operation {
                Operation::Records(operation) => operation.further_action(),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Pending {
    /// Parses the head. `resource` must be the result of routing the same head.
    pub(crate) fn parse(head: &RequestHead<'_>, resource: Resource) -> Result<Self, Problem> {
        let action = resource.action(head);
        let pairs = options::pairs(head.query, texts(&resource))?;
        if !resource.has_options(head.method) {
            options::none(&pairs)?;
        }
        let format = Format::from_accept(head.accept);
        let step = match (resource, head.method) {
            (Resource::Table(table), "GET" | "HEAD") => {
                ready(Operation::Records(RecordOperation::Read(Read::from_pairs(table, format, pairs)?)))
            }
            (Resource::Table(table), "POST") => {
                ExpectedBody::Insert(table, Box::new(write::InsertHead::new(pairs, head)?))
            }
            (Resource::Table(table), "PUT" | "PATCH") => {
                ExpectedBody::Update(table, Box::new(write::UpdateHead::new(None, pairs, head)?))
            }
            (Resource::Table(table), "DELETE") => {
                ExpectedBody::Delete(table, Box::new(write::DeleteHead::new(None, pairs, head)?))
            }
            (Resource::Table(table) | Resource::Schema(table), _) => ready(Operation::Describe(table)),
            (Resource::Listing(listing), _) => ready(Operation::List(listing)),
            (Resource::Api(form), _) => ready(Operation::DescribeApi(form, options::only_database(pairs)?)),
            (Resource::Query(table), _) => ExpectedBody::Query(table, format),
            (Resource::Record(table, id), "GET" | "HEAD") => {
                ready(Operation::Records(RecordOperation::ReadOne(ReadOne::from_pairs(table, id, format, pairs)?)))
            }
            (Resource::Record(table, id), "DELETE") => {
                ExpectedBody::Delete(table, Box::new(write::DeleteHead::new(Some(id), pairs, head)?))
            }
            (Resource::Record(table, id), _) => {
                ExpectedBody::Update(table, Box::new(write::UpdateHead::new(Some(id), pairs, head)?))
            }
            (Resource::Sql, _) => ExpectedBody::Sql(format),
            (Resource::ChangeSchema, _) => ExpectedBody::ChangeSchema(SchemaRun::from_pairs(&pairs)?),
            (Resource::Definition(table), _) => ready(Operation::Definition(table)),
            (Resource::Batch, _) => ExpectedBody::Batch,
            (Resource::Changes(Some(table)), _) => {
                ready(Operation::Changes(ChangesCall::from_pairs(table, &ChangesHead::new(head)?, pairs)?))
            }
            (Resource::Changes(None), _) => ExpectedBody::Changes(ChangesHead::new(head)?),
            (Resource::Mcp, _) => ExpectedBody::Mcp,
            (Resource::Uploads, _) => ready(Operation::Tus(TusCall::of_uploads(head)?)),
            (Resource::Upload(id), _) => ready(Operation::Tus(TusCall::of_upload(head, id)?)),
            (Resource::Managed(call), _) => {
                let call = call.with_options(&pairs)?;
                if call.has_body() { ExpectedBody::Manage(call) } else { ready(Operation::Manage(call)) }
            }
            (Resource::Library, "GET" | "HEAD") => media(MediaCall::List(MediaList::from_pairs(pairs)?)),
            (Resource::Library, _) => media(MediaCall::Upload),
            (Resource::Medium(id), "DELETE") => media(MediaCall::Delete(id)),
            (Resource::Medium(id), _) => media(MediaCall::Describe(id)),
            (Resource::Signature(id), _) => ExpectedBody::Sign(id),
        };
        let action = step.further_action().unwrap_or(action);
        refuse_idle_headers(head, action, &step)?;
        let unreadable = check_content(head, &step).err();
        Ok(Self { action, step, unreadable, grant: Grant::Full })
    }

    pub fn action(&self) -> Action {
        self.action
    }

    pub fn body(&self) -> BodyUse {
        self.step.body()
    }

    /// Checks the access and the body's type. Fails with `full_access_required` for a read-only key, `role_forbids` if
    /// no role can allow the action, or `unsupported_media_type`. [`Pending::finish`] checks an action that only the
    /// body asks for.
    pub(crate) fn permit(mut self, grant: &Grant) -> Result<Self, Problem> {
        permit(self.action, grant)?;
        self.check_body_type()?;
        self.grant = grant.clone();
        Ok(self)
    }

    /// Fails with `unsupported_media_type` if the body's `Content-Type` or `Content-Encoding` is not supported.
    pub fn check_body_type(&self) -> Result<(), Problem> {
        self.unreadable.clone().map_or(Ok(()), Err)
    }

    /// Parses the body. Ignores `body` if the operation has none, and for uploads, MCP messages, changes of tables and
    /// management requests. Fails with a 400, with `unsupported_media_type`, or, if the body asks for more than the key may do,
    /// with `full_access_required` or `role_forbids`.
    pub fn finish(self, body: &[u8]) -> Result<Operation, Problem> {
        self.check_body_type()?;
        let operation = match self.step {
            ExpectedBody::Ready(operation) => return Ok(*operation),
            ExpectedBody::Sql(format) => return SqlCall::from_body(format, body).map(Operation::Sql),
            ExpectedBody::ChangeSchema(run) => return Ok(Operation::ChangeSchema(run)),
            ExpectedBody::Batch => return Batch::from_body(body).map(Operation::Batch),
            ExpectedBody::Changes(head) => return ChangesCall::from_body(&head, body).map(Operation::Changes),
            ExpectedBody::Mcp => return Ok(Operation::Mcp),
            ExpectedBody::Manage(call) => return Ok(Operation::Manage(call)),
            ExpectedBody::Sign(id) => return Ok(Operation::Media(MediaCall::Sign(id, SignedFor::from_body(body)?))),
            ExpectedBody::Query(table, format) => RecordOperation::Read(Read::from_body(table, format, body)?),
            ExpectedBody::Insert(table, head) => RecordOperation::Insert(Insert::from_body(table, *head, body)?),
            ExpectedBody::Update(table, head) => RecordOperation::Update(Update::from_body(table, *head, body)?),
            ExpectedBody::Delete(table, head) => RecordOperation::Delete(Delete::from_body(table, *head, body)?),
        };
        if let Some(action) = operation.further_action() {
            permit(action, &self.grant)?;
        }
        Ok(Operation::Records(operation))
    }
}

/// Parses route, method, options and content type. Headers of resumable uploads can also fail with
/// `precondition_failed`, `invalid_media` or `invalid_body`.
pub fn parse_head(head: &RequestHead<'_>) -> Result<Pending, Problem> {
    Pending::parse(head, route::resolve(head)?)
}

fn texts(resource: &Resource) -> &'static [&'static str] {
    match resource {
        Resource::Library => MediaList::TEXTS,
        Resource::Api(_) => &[options::DATABASE],
        _ => &[],
    }
}

fn media(call: MediaCall) -> ExpectedBody {
    ready(Operation::Media(call))
}

fn ready(operation: Operation) -> ExpectedBody {
    ExpectedBody::Ready(Box::new(operation))
}

#[cfg(test)]
mod tests;
