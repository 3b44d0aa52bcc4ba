//! Resolves the path and method of a request to a resource.

use super::management::Management;
use super::media::MediaId;
use super::tus::{self, TusId};
use super::{ApiForm, RecordId, TablePath};
use crate::error::{ErrorCode, Problem};
use crate::ident::{DatabaseName, TableName};
use crate::media::FilePath;
use crate::request::{RequestHead, check_url_length};
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The resource that a request's path names. [`resolve`] has checked that the resource allows the request's method.
#[derive(Debug)]
pub(super) enum Resource {
    /// `/api/v1/crud`
    Databases,
    /// `/api/v1/crud/{db}`
    Tables(DatabaseName),
    /// `/api/v1/openapi.json`, `/api/v1/types.ts`, …
    Api(ApiForm),
    /// `/api/v1/crud/{db}/{table}`
    Table(TablePath),
    /// `/api/v1/crud/{db}/{table}/_schema`
    Schema(TablePath),
    /// `POST /api/v1/crud/{db}/{table}/query`
    Query(TablePath),
    /// `/api/v1/crud/{db}/{table}/{id}`
    Record(TablePath, RecordId),
    /// `/api/v1/sql`
    Sql,
    /// `/api/v1/batch`
    Batch,
    Mcp,
    /// `/api/v1/media`
    Library,
    /// `/api/v1/media/{id}`
    Medium(MediaId),
    /// `/api/v1/media/{id}/sign`
    Signature(MediaId),
    /// `/api/v1/media/tus`
    Uploads,
    /// `/api/v1/media/tus/{id}`
    Upload(TusId),
    /// `/api/v1/keys[/{id}]`, `/api/v1/roles[/{name}]`, `/api/v1/status`, `/api/v1/requests`
    Managed(Management),
}

/// The path of the Model Context Protocol.
pub const MCP: &str = "/mcp";

/// Parses a request for a file's bytes, `GET /media/{project}/{folder…}/{name}`.
///
/// # Errors
/// `method_not_allowed` for any method but GET and HEAD; `media_not_found` for a path that no file can have.
pub fn file(method: &str, path: &str) -> Result<FilePath, Problem> {
    allow(method, "GET, HEAD")?;
    FilePath::parse(path)
}

/// Returns the route pattern, for logs, of a browser page or of a file below the page's path; `None` for other paths.
/// Pages need no key.
pub fn page(path: &str) -> Option<&'static str> {
    let pages = [("/docs", "/docs/{path}"), ("/console", "/console/{path}")];
    let is_below = |page: &str| path.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    pages.into_iter().find(|(page, _)| is_below(page)).map(|(_, route)| route)
}

/// Returns whether a browser asks for the page at `/`, which leads to the other pages. Programs get `route_not_found`
/// there.
pub fn is_home(method: &str, path: &str, accept: Option<&str>) -> bool {
    path == "/" && matches!(method, "GET" | "HEAD") && accept.is_some_and(|types| types.contains("text/html"))
}

const TABLE_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const RECORD_METHODS: &str = "GET, HEAD, PUT, PATCH, DELETE";
const QUERY_METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";
const UPLOAD_METHODS: &str = "OPTIONS, HEAD, PATCH, DELETE";

/// Finds the resource of a request and checks that the resource allows the method.
///
/// # Errors
/// `uri_too_long`, `route_not_found`, `method_not_allowed`; `invalid_identifier`, `media_not_found` or
/// `record_not_found` for a name or id in the path that is invalid.
pub(super) fn resolve(head: &RequestHead<'_>) -> Result<Resource, Problem> {
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
        (Some("batch"), None, ..) => allow(head.method, "POST").map(|()| Resource::Batch),
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
        (Some("crud"), None, ..) => allow(head.method, "GET, HEAD").map(|()| Resource::Databases),
        (Some("crud"), Some(database), None, ..) if !database.is_empty() => {
            allow(head.method, "GET, HEAD")?;
            Ok(Resource::Tables(database_name(database)?))
        }
        (Some("crud"), Some(database), Some(table), last, None) if !database.is_empty() && !table.is_empty() => {
            below_table(head, table_path(database, table)?, last)
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
        // The last part `query` means a query only for POST. For other methods it is the id of a record, which may be
        // "query".
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

/// Percent-decodes a path segment; `invalid_identifier` for an invalid `%` or bytes that are not UTF-8.
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
    let bytes = text.as_bytes();
    if memchr::memchr(b'%', bytes).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let broken = bytes.iter().enumerate().any(|(at, byte)| {
        *byte == b'%' && !bytes.get(at + 1..at + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    });
    if broken {
        return Err("has a % that encodes nothing");
    }
    percent_decode_str(text).decode_utf8().map_err(|_| "is not UTF-8")
}

fn allow(method: &str, methods: &'static str) -> Result<(), Problem> {
    // Splits at `,` and trims, since splitting at `", "` would take as long as the rest of the routing.
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
