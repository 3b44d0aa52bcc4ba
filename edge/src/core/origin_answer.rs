//! Decides whether a response from an origin's address comes from Selkie, so that it may be passed on. For any other
//! response (a proxy's error page, a parked domain) or a missing one, returns a problem.

use shared::error::{ErrorCode, Problem, UNAVAILABLE_DATABASE};
use shared::media::FilePath;
use shared::operation::{ApiForm, route, tus};
use shared::request_id::RequestId;

/// The head of a response from an origin's address.
#[derive(Clone, Copy, Debug)]
pub struct OriginHead<'a> {
    pub status: u16,
    pub content_type: Option<&'a str>,
    pub request_id: Option<&'a str>,
}

/// The kind of body that a successful response must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A response of the API: JSON, CSV, NDJSON, or the API's types in a programming language.
    Interface,
    /// Any type: a media file, whole or in part, or a file of a page.
    File,
    /// No body, in responses of resumable uploads.
    Headers,
}

impl Form {
    /// Returns the kind of body of successful responses at a path.
    pub fn at(path: &str) -> Self {
        if path.starts_with(FilePath::PREFIX) || path == "/" || route::page(path).is_some() {
            Self::File
        } else if tus::is_at(path) {
            Self::Headers
        } else {
            Self::Interface
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The connection failed or broke.
    Unreachable,
    Timeout,
}

impl NoAnswer {
    pub fn problem(self) -> Problem {
        match self {
            Self::Unreachable => Problem::new(
                ErrorCode::OriginUnreachable,
                "The origin could not be reached, or broke the connection off.",
            ),
            Self::Timeout => Problem::new(ErrorCode::OriginTimeout, "The origin did not answer in time."),
        }
    }
}

const SUCCESS_TYPES: [&str; 4] = ["application/json", "text/csv", "application/x-ndjson", "text/event-stream"];

/// Checks that a response comes from Selkie: it repeats the request id `sent`, and its status and media type match
/// `form`.
pub fn judge(head: &OriginHead<'_>, form: Form, sent: &RequestId) -> Result<(), Problem> {
    // Selkie's origin repeats the request id in every response; other servers don't.
    let is_ours = head.request_id == Some(sent.as_str());
    let essence = head.content_type.and_then(|value| value.split(';').next()).map_or("", str::trim);
    let is_any = |types: &[&str]| types.iter().any(|known| essence.eq_ignore_ascii_case(known));
    let fits = match head.status {
        // 202 is the response to an MCP notification.
        202 | 204 | 304 => true,
        200 | 206 if form == Form::File => true,
        200 | 201 if form == Form::Headers => essence.is_empty(),
        200..=299 => {
            let is_types = |form: &ApiForm| form.content_type().split(';').next() == Some(essence);
            is_any(&SUCCESS_TYPES) || ApiForm::ALL.iter().any(is_types)
        }
        400..=599 => is_any(&["application/json"]),
        // Selkie never redirects.
        _ => false,
    };
    match head.status {
        _ if is_ours && fits => Ok(()),
        521..=523 | 525 | 526 | 530 => Err(NoAnswer::Unreachable.problem()),
        524 => Err(NoAnswer::Timeout.problem()),
        status => Err(foreign(status)),
    }
}

/// Returns the problem for a response that does not come from Selkie. If a parser or proxy refused the form or size of
/// the request, the problem is a client error, since the same request would never succeed.
fn foreign(status: u16) -> Problem {
    let code = match status {
        400 => ErrorCode::InvalidRequest,
        413 => ErrorCode::BodyTooLarge,
        414 => ErrorCode::UriTooLong,
        431 => ErrorCode::HeadersTooLarge,
        status => {
            let message = format!("The origin's address gave an answer (status {status}) that is not Selkie's.");
            return Problem::new(ErrorCode::BadOriginAnswer, message);
        }
    };
    Problem::new(code, format!("The HTTP server before the origin refused the request (status {status})."))
}

/// Returns whether the value of `x-selkie-unavailable` says that the origin can't reach its database.
pub fn lacks_database(unavailable: Option<&str>) -> bool {
    unavailable == Some(UNAVAILABLE_DATABASE)
}

/// Returns whether a response of Selkie to a health check has a status of an origin that can serve requests. Callers
/// must also test [`lacks_database`]. 403 is a refusal of the check; 503 means that only the storage of files is lost.
pub fn passes_check(status: u16) -> bool {
    matches!(status, 200 | 503)
}
