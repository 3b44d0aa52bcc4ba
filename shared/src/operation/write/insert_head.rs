//! The parts of an insert in the request's head: `onConflict` and `Idempotency-Key`.

use super::idempotent_request::IdempotencyKey;
use crate::error::Problem;
use crate::json::Value;
use crate::operation::options::{self, Options};

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
}

const ON_CONFLICT: &str = "onConflict";

impl InsertHead {
    pub(in crate::operation) fn new(options: Options, idempotency_key: Option<&str>) -> Result<Self, Problem> {
        let mut head = Self::default();
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
