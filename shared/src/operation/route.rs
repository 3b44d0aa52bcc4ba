//! Resolves the path and method of a request to a resource.

use super::management::{Management, WebhookCall};
use super::media::MediaId;
use super::tus::{self, TusId};
use super::{ApiForm, Listing, RecordId, TablePath};
use crate::error::{ErrorCode, Problem};
use crate::ident::{DatabaseName, TableName};
use crate::media::FilePath;
use crate::policy::Action;
use crate::request::{RequestHead, check_url_length};
use std::borrow::Cow;

/// The resource that a request's path names. [`resolve`] has checked the method.
#[derive(Debug)]
pub(crate) enum Resource {
    Listing(Listing),
    Api(ApiForm),
    Table(TablePath),
    Schema(TablePath),
    Query(TablePath),
    Record(TablePath, RecordId),
    Sql,
    ChangeSchema,
    Definition(TablePath),
    Batch,
    Changes(Option<TablePath>),
    Mcp,
    Library,
    Medium(MediaId),
    Signature(MediaId),
    /// `/api/v1/media/tus`, for resumable uploads.
    Uploads,
    Upload(TusId),
    /// `/api/v1/keys[/{id}]`, `/api/v1/roles[/{name}]`, `/api/v1/status`, `/api/v1/requests`
    Managed(Management),
}

impl Resource {
    /// Returns the action regardless of options: `Read` or `ReadOne` for a read with `explain`.
    pub(crate) fn action(&self, head: &RequestHead<'_>) -> Action {
        match (self, head.method) {
            (Self::Table(_), "GET" | "HEAD") => Action::Read,
            (Self::Table(_), "POST") => Action::Insert,
            (Self::Table(_), "PUT" | "PATCH") => Action::Update,
            (Self::Table(_) | Self::Record(..), "DELETE") => Action::Delete,
            (Self::Table(_) | Self::Schema(_), _) => Action::Describe,
            (Self::Listing(Listing::Databases), _) => Action::ListDatabases,
            (Self::Listing(Listing::Tables(_)), _) => Action::ListTables,
            (Self::Api(_), _) => Action::DescribeApi,
            (Self::Query(_), _) => Action::Query,
            (Self::Record(..), "GET" | "HEAD") => Action::ReadOne,
            (Self::Record(..), _) => Action::Update,
            (Self::Sql, _) => Action::Sql,
            (Self::ChangeSchema | Self::Definition(_) | Self::Listing(Listing::Code(_)), _) => Action::Schema,
            (Self::Batch, _) => Action::Batch,
            (Self::Changes(_), _) => Action::Follow,
            (Self::Mcp, _) => Action::Mcp,
            (Self::Library, "GET" | "HEAD") => Action::ListMedia,
            (Self::Library, _) => Action::Upload,
            (Self::Medium(_), "DELETE") => Action::DeleteMedia,
            (Self::Medium(_), _) => Action::DescribeMedia,
            (Self::Signature(_), _) => Action::SignMedia,
            (Self::Uploads, "OPTIONS") => Action::DescribeUploads,
            (Self::Uploads, _) => Action::BeginUpload,
            (Self::Upload(_), _) if tus::method(head) == "OPTIONS" => Action::DescribeUploads,
            (Self::Upload(_), _) => Action::ResumeUpload,
            (Self::Managed(call), _) => call.action(),
        }
    }

    pub(super) fn has_options(&self, method: &str) -> bool {
        match self {
            Self::Table(_) => method != "OPTIONS",
            Self::Library => matches!(method, "GET" | "HEAD"),
            Self::ChangeSchema | Self::Record(..) | Self::Api(_) | Self::Managed(_) | Self::Changes(Some(_)) => true,
            _ => false,
        }
    }
}

pub const MCP: &str = "/mcp";

/// Parses a media file's path. Fails for any method but GET and HEAD, and for a path that no file can have.
pub fn file(method: &str, path: &str) -> Result<FilePath, Problem> {
    allow(method, "GET, HEAD")?;
    FilePath::parse(path)
}

/// Returns the route pattern, for logs, of a page for browsers, which needs no key.
pub fn page(path: &str) -> Option<&'static str> {
    let pages = [("/docs", "/docs/{path}"), ("/console", "/console/{path}")];
    let is_below = |page: &str| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    pages.into_iter().find(|(page, _)| is_below(page)).map(|(_, route)| route)
}

/// Returns whether a browser opens `/`. Other programs get `route_not_found` there.
pub fn is_home(method: &str, path: &str, accept: Option<&str>) -> bool {
    path == "/" && matches!(method, "GET" | "HEAD") && accept.is_some_and(|types| types.contains("text/html"))
}

const TABLE_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const RECORD_METHODS: &str = "GET, HEAD, PUT, PATCH, DELETE";
const QUERY_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const UPLOAD_METHODS: &str = "OPTIONS, HEAD, PATCH, DELETE";

pub(crate) fn resolve(head: &RequestHead<'_>) -> Result<Resource, Problem> {
    check_url_length(head.path, head.query)?;
    if head.path == MCP {
        return allow(head.method, "POST").map(|()| Resource::Mcp);
    }
    let path = head.path.strip_prefix("/api/v1/").ok_or_else(|| not_found(head.path))?;
    // Some clients end every path with a slash.
    let path = path.strip_suffix('/').unwrap_or(path);
    if let Some(form) = ApiForm::ALL.into_iter().find(|form| form.file_name() == path) {
        return allow(head.method, "GET, HEAD").map(|()| Resource::Api(form));
    }
    let mut segments = path.split('/');
    match (segments.next(), segments.next(), segments.next(), segments.next(), segments.next()) {
        (Some("sql"), None, ..) => allow(head.method, "POST").map(|()| Resource::Sql),
        (Some("schema"), None, ..) => allow(head.method, "POST").map(|()| Resource::ChangeSchema),
        (Some("batch"), None, ..) => allow(head.method, "POST").map(|()| Resource::Batch),
        (Some("changes"), None, ..) => allow(head.method, "POST").map(|()| Resource::Changes(None)),
        (Some(kind @ ("changes" | "schema")), Some(database), Some(table), None, _)
            if !database.is_empty() && !table.is_empty() =>
        {
            let is_schema = kind == "schema";
            allow(head.method, if is_schema { "GET, HEAD" } else { "GET" })?;
            let table = table_path(database, table)?;
            Ok(if is_schema { Resource::Definition(table) } else { Resource::Changes(Some(table)) })
        }
        (Some("media"), None, ..) => allow(head.method, "GET, HEAD, POST").map(|()| Resource::Library),
        (Some("media"), Some("tus"), None, ..) => allow(head.method, "OPTIONS, POST").map(|()| Resource::Uploads),
        (Some("media"), Some("tus"), Some(id), None, _) if !id.is_empty() => {
            allow(tus::method(head), UPLOAD_METHODS)?;
            Ok(Resource::Upload(TusId::parse(id)?))
        }
        (Some("media"), Some(id), None, ..) if !id.is_empty() => {
            allow(head.method, "GET, HEAD, DELETE")?;
            Ok(Resource::Medium(MediaId::parse(id)?))
        }
        (Some("media"), Some(id), Some("sign"), None, _) if !id.is_empty() => {
            allow(head.method, "POST")?;
            Ok(Resource::Signature(MediaId::parse(id)?))
        }
        (Some("crud"), None, ..) => allow(head.method, "GET, HEAD").map(|()| Resource::Listing(Listing::Databases)),
        (Some(kind @ ("crud" | "schema")), Some(database), None, ..) if !database.is_empty() => {
            allow(head.method, "GET, HEAD")?;
            let name = database_name(database)?;
            Ok(Resource::Listing(if kind == "crud" { Listing::Tables(name) } else { Listing::Code(name) }))
        }
        (Some("crud"), Some(database), Some(table), last, None) if !database.is_empty() && !table.is_empty() => {
            below_table(head, table_path(database, table)?, last)
        }
        (Some("webhooks"), Some(name), part, id, None) => {
            let Some((call, methods)) = WebhookCall::resolve(head.method, name, part, id)? else {
                return Err(not_found(head.path));
            };
            allow(head.method, methods).map(|()| Resource::Managed(Management::Webhook(call)))
        }
        (Some(kind), name, None, ..) => match Management::resolve(head.method, kind, name)? {
            Some((call, methods)) => allow(head.method, methods).map(|()| Resource::Managed(call)),
            None => Err(not_found(head.path)),
        },
        _ => Err(not_found(head.path)),
    }
}

fn below_table(head: &RequestHead<'_>, table: TablePath, last: Option<&str>) -> Result<Resource, Problem> {
    let method = head.method;
    match (last, method) {
        (None, _) => allow(method, TABLE_METHODS).map(|()| Resource::Table(table)),
        (Some("_schema"), _) => allow(method, "GET, HEAD").map(|()| Resource::Schema(table)),
        // For methods other than POST, `query` is the id of a record.
        (Some("query"), "POST") => Ok(Resource::Query(table)),
        (Some(""), _) => Err(not_found(head.path)),
        (Some(id), _) => {
            allow(method, if id == "query" { QUERY_METHODS } else { RECORD_METHODS })?;
            Ok(Resource::Record(table, RecordId::decode(id)?))
        }
    }
}

fn table_path(database: &str, table: &str) -> Result<TablePath, Problem> {
    Ok(TablePath { database: database_name(database)?, table: TableName::parse(&decode_segment(table)?)? })
}

fn database_name(segment: &str) -> Result<DatabaseName, Problem> {
    DatabaseName::parse(&decode_segment(segment)?)
}

pub(super) fn decode_segment(segment: &str) -> Result<Cow<'_, str>, Problem> {
    decode(segment).map_err(|fault| {
        Problem::new(
            ErrorCode::InvalidIdentifier,
            format!("The path segment {} {fault}.", crate::ident::shown(segment)),
        )
        .with_hint("Percent-encode names as UTF-8.")
    })
}

pub(super) fn decode(text: &str) -> Result<Cow<'_, str>, &'static str> {
    if memchr::memchr(b'%', text.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut parts = text.as_bytes().split(|byte| *byte == b'%');
    let mut decoded = Vec::with_capacity(text.len());
    decoded.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        let [high, low, rest @ ..] = part else {
            return Err(ENCODES_NOTHING);
        };
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            return Err(ENCODES_NOTHING);
        };
        decoded.push(high << 4 | low);
        decoded.extend_from_slice(rest);
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| "is not UTF-8")
}

const ENCODES_NOTHING: &str = "has a % that encodes nothing";

fn allow(method: &str, methods: &'static str) -> Result<(), Problem> {
    // Splitting at `", "` would take as long as the rest of the routing.
    let mut allowed = methods.split(',').map(str::trim_ascii_start);
    if allowed.any(|allowed| allowed == method) {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::MethodNotAllowed,
        format!("The method {} is not allowed here.", crate::ident::shown(method)),
    )
    .with_hint(format!("Allowed: {methods}."))
    .with_allow(methods))
}

pub fn not_found(path: &str) -> Problem {
    Problem::new(ErrorCode::RouteNotFound, format!("There is nothing at {}.", crate::ident::shown(path))).with_hint(
        match path {
            "/" => "The API is at /api/v1, its documentation at /docs, the console at /console.",
            _ => "Records are at /api/v1/crud/{database}/{table}, SQL is at /api/v1/sql.",
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_of_an_id_that_is_query_are_those_of_both() {
        for (id, methods) in [("query", "GET, HEAD, POST, PUT, PATCH, DELETE"), ("5", RECORD_METHODS)] {
            let path = format!("/api/v1/crud/demo/posts/{id}");
            let head = RequestHead { method: "OPTIONS", path: &path, ..RequestHead::default() };
            let problem = resolve(&head).unwrap_err();
            let header = problem.headers().find(|(name, _)| *name == "allow");
            assert_eq!(header.unwrap().1, methods, "{path}");
        }
    }

    #[test]
    fn a_file_is_only_read_and_every_fault_of_its_path_is_one_answer() {
        let ask = |method, path| file(method, path).map_err(|problem| problem.code());
        let found = ask("GET", "/media/p/a/b.png").unwrap();
        assert_eq!(found.name.as_str(), "b.png");
        assert!(ask("HEAD", "/media/p/b.png").is_ok());
        for (method, path, code) in [
            ("POST", "/media/p/b.png", ErrorCode::MethodNotAllowed),
            ("DELETE", "/media/p//", ErrorCode::MethodNotAllowed),
            ("GET", "/media/p//", ErrorCode::MediaNotFound),
            ("GET", "/media/", ErrorCode::MediaNotFound),
        ] {
            assert_eq!(ask(method, path), Err(code), "{method} {path}");
        }
    }
}
