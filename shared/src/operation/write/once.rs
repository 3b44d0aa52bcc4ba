//! Inserts that happen once, however often they are sent: the `Idempotency-Key`, and what makes two
//! requests the same.

use crate::error::{ErrorCode, Problem};
use crate::limits::IDEMPOTENCY_KEY_MAX_BYTES;
use crate::operation::TablePath;
use crate::operation::write::OnConflict;
use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256.
pub type Hash = [u8; 32];

/// The value of an `Idempotency-Key`: visible ASCII characters.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::operation) struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    pub(in crate::operation) fn parse(text: &str) -> Result<Self, Problem> {
        let fault = if text.is_empty() {
            "is empty".to_owned()
        } else if text.len() > IDEMPOTENCY_KEY_MAX_BYTES {
            format!("is longer than {IDEMPOTENCY_KEY_MAX_BYTES} characters")
        } else if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            "holds other characters than visible ones of ASCII".to_owned()
        } else {
            return Ok(Self(text.into()));
        };
        Err(Problem::new(
            ErrorCode::InvalidQueryOption,
            format!("The header Idempotency-Key {fault}."),
        )
        .with_hint("Send one random value, such as a UUID, for each insert."))
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey")
    }
}

/// Says that an insert happens once, and which one it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Once {
    key: Hash,
    fingerprint: Hash,
}

impl Once {
    pub(super) fn new(
        key: &IdempotencyKey,
        table: &TablePath,
        on_conflict: OnConflict,
        body: &[u8],
    ) -> Self {
        let option = match on_conflict {
            OnConflict::Refuse => "",
            OnConflict::Update => "update",
            OnConflict::Ignore => "ignore",
        };
        let mut fingerprint = Sha256::new();
        // Names hold no NUL.
        for part in [table.database.as_str(), table.table.as_str(), option] {
            fingerprint.update(part.as_bytes());
            fingerprint.update([0]);
        }
        fingerprint.update(body);
        Self {
            key: Sha256::digest(key.0.as_bytes()).into(),
            fingerprint: fingerprint.finalize().into(),
        }
    }

    /// What the key is known by.
    #[must_use]
    pub fn key(&self) -> &Hash {
        &self.key
    }

    /// What the request is known by: table, options and body, byte by byte.
    #[must_use]
    pub fn fingerprint(&self) -> &Hash {
        &self.fingerprint
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Once")
    }
}
