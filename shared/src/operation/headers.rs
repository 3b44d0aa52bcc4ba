//! Checks headers against the operation that a request asks for.

use super::{BodyUse, ExpectedBody, tus};
use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::key::Access;
use crate::policy::Action;
use crate::request::RequestHead;
use crate::upload::Encoding;

pub(super) fn check_content(head: &RequestHead<'_>, step: &ExpectedBody) -> Result<(), Problem> {
    match step.body() {
        BodyUse::None => return Ok(()),
        BodyUse::Json => expect_json(head.content_type, step)?,
        BodyUse::Upload => drop(Encoding::of(head.content_type)?),
        BodyUse::Bytes => tus::expect_bytes(head)?,
    }
    expect_plain(head)
}

/// Refuses headers that would have no effect: a client would rely on a protection that it does not have, for example
/// against overwriting another client's changes.
pub(super) fn refuse_idle_headers(head: &RequestHead<'_>, action: Action, step: &ExpectedBody) -> Result<(), Problem> {
    let writes = action.needs() == Access::Full;
    let inserts = action == Action::Insert;
    let changes_one = match step {
        ExpectedBody::Update(_, head) => head.is_of_one(),
        ExpectedBody::Delete(_, head) => head.is_of_one(),
        _ => false,
    };
    let idle = [
        ("Idempotency-Key", head.idempotency_key.filter(|_| !inserts)),
        ("If-Match", head.if_match.filter(|_| writes && !changes_one)),
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

fn expect_json(content_type: Option<&str>, step: &ExpectedBody) -> Result<(), Problem> {
    let Some(essence) = other_than_json(content_type) else {
        return Ok(());
    };
    if let ExpectedBody::Insert(..) = step {
        return match Format::of_body(content_type) {
            Some(_) => Ok(()),
            None => Err(Problem::new(
                ErrorCode::UnsupportedMediaType,
                format!("The Content-Type {} is not read here.", crate::ident::shown(content_type.unwrap_or_default())),
            )
            .with_hint("Send application/json, text/csv with a header row, or application/x-ndjson, in UTF-8.")),
        };
    }
    Err(Problem::new(
        ErrorCode::UnsupportedMediaType,
        format!("The Content-Type {} is not read here.", crate::ident::shown(essence)),
    )
    .with_hint("Send Content-Type: application/json."))
}

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

/// Returns a media type without parameters; `None` if it is missing, empty, `application/json` or `…+json`.
pub(crate) fn other_than_json(content_type: Option<&str>) -> Option<&str> {
    let essence = content_type?.split(';').next().unwrap_or_default().trim();
    let is_json = essence.is_empty()
        || essence.eq_ignore_ascii_case("application/json")
        || (essence.len() > 5 && essence.as_bytes()[essence.len() - 5..].eq_ignore_ascii_case(b"+json"));
    (!is_json).then_some(essence)
}
