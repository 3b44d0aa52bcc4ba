//! The parts of an insert in the request's head: options, `Idempotency-Key` and the body's format.

use super::idempotent_request::IdempotencyKey;
use super::options::{DRY_RUN, RETURNING, WriteOptions};
use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::json::Value;
use crate::operation::options::{self, Options};
use crate::request::RequestHead;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    #[default]
    Refuse,
    Update,
    Ignore,
}

#[derive(Clone, Debug, Default)]
pub(in crate::operation) struct InsertHead {
    pub(super) on_conflict: OnConflict,
    pub(super) options: WriteOptions,
    pub(super) key: Option<IdempotencyKey>,
    /// The body's format. [`Format::Envelope`] is JSON of one record or `batchData`.
    pub(super) format: Format,
}

const ON_CONFLICT: &str = "onConflict";

impl InsertHead {
    /// Parses the head. Treats an unsupported body type as JSON; `headers::check_content` refuses it.
    pub(in crate::operation) fn new(options: Options, head: &RequestHead<'_>) -> Result<Self, Problem> {
        let format = Format::of_body(head.content_type).unwrap_or_default();
        let mut insert = Self { format, ..Self::default() };
        for (name, value) in options {
            match name.as_str() {
                ON_CONFLICT => insert.on_conflict = on_conflict(&value)?,
                RETURNING | DRY_RUN => _ = insert.options.take(&name, &value)?,
                other => return Err(options::unknown(other, &[ON_CONFLICT, RETURNING, DRY_RUN])),
            }
        }
        insert.options.finish(head)?;
        insert.key = head.idempotency_key.map(IdempotencyKey::parse).transpose()?;
        if insert.options.is_dry_run && insert.key.is_some() {
            return Err(Problem::new(
                ErrorCode::InvalidQueryOption,
                "The header Idempotency-Key is not available with dryRun, which inserts nothing.",
            )
            .with_hint("Leave one of them out; nothing was done."));
        }
        Ok(insert)
    }
}

fn on_conflict(value: &Value) -> Result<OnConflict, Problem> {
    match value {
        Value::Text(word) if &**word == "update" => Ok(OnConflict::Update),
        Value::Text(word) if &**word == "ignore" => Ok(OnConflict::Ignore),
        other => Err(options::wrong(ON_CONFLICT, "update or ignore", other)),
    }
}
