//! The parts of an insert in the request's head: `onConflict`, `Idempotency-Key` and the format of the body.

use super::idempotent_request::IdempotencyKey;
use crate::error::Problem;
use crate::format::Format;
use crate::json::Value;
use crate::operation::options::{self, Options};
use crate::request::RequestHead;

/// What happens to a row that violates a unique key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The whole insert fails.
    #[default]
    Refuse,
    /// The existing record is updated with the row's values.
    Update,
    /// The existing record is kept, and the row is skipped.
    Ignore,
}

#[derive(Clone, Debug, Default)]
pub(in crate::operation) struct InsertHead {
    pub(super) on_conflict: OnConflict,
    pub(super) key: Option<IdempotencyKey>,
    /// The format of the body: [`Format::Envelope`] is JSON of one record or `batchData`.
    pub(super) format: Format,
}

const ON_CONFLICT: &str = "onConflict";

impl InsertHead {
    /// Parses the options and headers of an insert. The body is taken for JSON if its type is not supported.
    pub(in crate::operation) fn new(options: Options, head: &RequestHead<'_>) -> Result<Self, Problem> {
        let (idempotency_key, content_type) = (head.idempotency_key, head.content_type);
        let mut head = Self { format: Format::of_body(content_type).unwrap_or_default(), ..Self::default() };
        for (name, value) in options {
            match name.as_str() {
                ON_CONFLICT => head.on_conflict = on_conflict(&value)?,
                other => return Err(options::unknown(other, &[ON_CONFLICT])),
            }
        }
        head.key = idempotency_key.map(IdempotencyKey::parse).transpose()?;
        Ok(head)
    }
}

fn on_conflict(value: &Value) -> Result<OnConflict, Problem> {
    match value {
        Value::Text(word) if &**word == "update" => Ok(OnConflict::Update),
        Value::Text(word) if &**word == "ignore" => Ok(OnConflict::Ignore),
        other => Err(options::wrong(ON_CONFLICT, "update or ignore", other)),
    }
}
