//! What the head of an insert already says.

use super::once::IdempotencyKey;
use crate::error::Problem;
use crate::json::Value;
use crate::operation::options::{self, Options};

/// What becomes of a row when a unique key already holds one of its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The insert fails, and nothing is inserted.
    #[default]
    Refuse,
    /// The record that is there takes the row's values.
    Update,
    /// The record that is there stays as it is, and the row is left out.
    Ignore,
}

/// The options of an insert, and its `Idempotency-Key`.
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
