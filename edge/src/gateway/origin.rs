//! What is believed of the origin's side: an answer of Selkie's own passes, anything else (a proxy's
//! error page, a parked domain, silence) becomes a problem in the envelope.

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

/// What forms a success may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Those of the interface.
    Interface,
    /// Any: a caller's file, whole or in part.
    File,
    /// None: what is told of a resumable upload stands in headers alone.
    Headers,
}

impl Form {
    /// The form of answers at a path.
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

/// Why there is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No connection, or it broke.
    Unreachable,
    /// Not within the time given.
    Timeout,
}

impl Fault {
    /// What the caller is told.
    #[must_use]
    pub fn problem(self) -> Problem {
        match self {
            Self::Unreachable => Problem::new(
                ErrorCode::OriginUnreachable,
                "The origin could not be reached, or broke the connection off.",
            ),
            Self::Timeout => Problem::new(
                ErrorCode::OriginTimeout,
                "The origin did not answer in time.",
            ),
        }
    }
}

/// The forms that a success of the interface may have. An HTML page is none of ours.
const SUCCESS_TYPES: [&str; 3] = ["application/json", "text/csv", "application/x-ndjson"];

/// Decides whether an answer is Selkie's own, where a success may have such a form.
///
/// # Errors
/// `bad_origin_answer`, or what Cloudflare's own statuses (520 to 530) say about the origin.
pub fn judge(head: &OriginHead<'_>, form: Form, sent: &RequestId) -> Result<(), Problem> {
    // Selkie's origin repeats the id on whatever it says; a stranger in its place does not.
    let is_ours = head.request_id == Some(sent.as_str());
    let essence = head
        .content_type
        .and_then(|value| value.split(';').next())
        .map_or("", str::trim);
    let is_any = |types: &[&str]| {
        types
            .iter()
            .any(|known| essence.eq_ignore_ascii_case(known))
    };
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
        521..=523 | 525 | 526 | 530 => Err(Fault::Unreachable.problem()),
        524 => Err(Fault::Timeout.problem()),
        status => Err(foreign(status)),
    }
}

/// An answer of something else than Selkie. An HTTP parser or a proxy that refuses the form or the size of a request says
/// that its caller is at fault: the same request never succeeds.
fn foreign(status: u16) -> Problem {
    let code = match status {
        400 => ErrorCode::InvalidRequest,
        413 => ErrorCode::BodyTooLarge,
        414 => ErrorCode::UriTooLong,
        431 => ErrorCode::HeadersTooLarge,
        status => {
            let message = format!(
                "The origin's address gave an answer (status {status}) that is not Selkie's."
            );
            return Problem::new(ErrorCode::BadOriginAnswer, message);
        }
    };
    Problem::new(
        code,
        format!("The HTTP server before the origin refused the request (status {status})."),
    )
}

/// Whether the value of an answer's [`UNAVAILABLE_HEADER`](shared::error::UNAVAILABLE_HEADER) says that the origin can't
/// reach its database.
#[must_use]
pub fn lacks_database(unavailable: Option<&str>) -> bool {
    unavailable == Some(UNAVAILABLE_DATABASE)
}
