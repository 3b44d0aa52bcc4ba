//! Which answers from an origin's address are Selkie's own: those are passed on. Anything else (a proxy's error page, a
//! parked domain, silence) becomes a problem in the envelope.

use shared::error::{ErrorCode, Problem, UNAVAILABLE_DATABASE};
use shared::media::FilePath;
use shared::operation::tus;
use shared::request_id::RequestId;

/// The head of an answer from the origin's address.
#[derive(Clone, Copy, Debug)]
pub struct OriginHead<'a> {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: Option<&'a str>,
    /// `X-Request-Id`.
    pub request_id: Option<&'a str>,
}

/// What a successful answer may consist of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON, CSV or NDJSON.
    Interface,
    /// Any type: a caller's file, whole or in part.
    File,
    /// No body: the answers of resumable uploads consist of headers.
    Headers,
}

impl Form {
    /// Returns the form of the answers at a path.
    #[must_use]
    pub fn at(path: &str) -> Self {
        if path.starts_with(FilePath::PREFIX) {
            Self::File
        } else if tus::is_at(path) {
            Self::Headers
        } else {
            Self::Interface
        }
    }
}

/// Why an origin gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// There was no connection, or it broke.
    Unreachable,
    /// The time for it was over.
    Timeout,
}

impl NoAnswer {
    /// Returns the problem that the caller gets.
    #[must_use]
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

/// The media types of successful answers of the interface.
const SUCCESS_TYPES: [&str; 3] = ["application/json", "text/csv", "application/x-ndjson"];

/// Checks that an answer is Selkie's own, where a successful one has this form.
///
/// # Errors
/// `bad_origin_answer`, or what Cloudflare's own statuses (520 to 530) say about the origin.
pub fn judge(head: &OriginHead<'_>, form: Form, sent: &RequestId) -> Result<(), Problem> {
    // Selkie's origin repeats the id in every answer; another server does not.
    let is_ours = head.request_id == Some(sent.as_str());
    let essence = head.content_type.and_then(|value| value.split(';').next()).map_or("", str::trim);
    let is_any = |types: &[&str]| types.iter().any(|known| essence.eq_ignore_ascii_case(known));
    let fits = match head.status {
        204 | 304 => true,
        200 | 206 if form == Form::File => true,
        200 | 201 if form == Form::Headers => essence.is_empty(),
        200..=299 => is_any(&SUCCESS_TYPES),
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

/// The problem of an answer that is not Selkie's. An HTTP parser or a proxy that refuses the form or the size of a request
/// says that the caller is at fault: the same request never succeeds.
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

/// Whether the value of an answer's [`UNAVAILABLE_HEADER`](shared::error::UNAVAILABLE_HEADER) says that the origin can't
/// reach its database.
#[must_use]
pub fn lacks_database(unavailable: Option<&str>) -> bool {
    unavailable == Some(UNAVAILABLE_DATABASE)
}
