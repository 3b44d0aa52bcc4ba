//! Idempotent inserts: the `Idempotency-Key`, and the fingerprint by which two requests count as equal.

use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::limits::IDEMPOTENCY_KEY_MAX_BYTES;
use crate::operation::TablePath;
use crate::operation::read::Selection;
use crate::operation::write::OnConflict;
use sha2::{Digest, Sha256};
use std::fmt;

pub type Hash = [u8; 32];

/// An `Idempotency-Key`: a quoted string (RFC 8941, section 3.3.3), or visible ASCII characters that do not begin with
/// a quote. `"k"` and `k` are the same key.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::operation) struct IdempotencyKey(String);

impl IdempotencyKey {
    pub(in crate::operation) fn parse(text: &str) -> Result<Self, Problem> {
        // White space around a value is not part of it (RFC 9110, section 5.5).
        let text = text.trim_matches([' ', '\t']);
        let read = match text.strip_prefix('"') {
            Some(rest) => string(rest).ok_or("is no string in double quotes"),
            None if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(text.to_owned()),
            None => Err("holds other characters than visible ones of ASCII"),
        };
        let fault = match read {
            Ok(key) if key.is_empty() => "is empty".to_owned(),
            Ok(key) if key.len() > IDEMPOTENCY_KEY_MAX_BYTES => {
                format!("is longer than {IDEMPOTENCY_KEY_MAX_BYTES} characters")
            }
            Ok(key) => return Ok(Self(key)),
            Err(fault) => fault.to_owned(),
        };
        Err(Problem::new(ErrorCode::InvalidQueryOption, format!("The header Idempotency-Key {fault}.")).with_hint(
            "Send one random value, such as a UUID, for each insert; one with blanks stands in double quotes.",
        ))
    }
}

/// Parses printable ASCII with the escapes `\"` and `\\`. `rest` begins after the opening quote.
fn string(rest: &str) -> Option<String> {
    let mut content = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next()? {
            '"' => return chars.as_str().is_empty().then_some(content),
            '\\' => content.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            c @ ' '..='~' => content.push(c),
            _ => return None,
        }
    }
}

impl fmt::Debug for IdempotencyKey {
    // Omits the key's text, so that debug output does not reveal it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdempotencyKey")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentRequest {
    key: Hash,
    fingerprint: Hash,
}

impl IdempotentRequest {
    pub(super) fn new(
        key: &IdempotencyKey,
        table: &TablePath,
        (on_conflict, returning): (OnConflict, Option<&Selection>),
        format: Format,
        body: &[u8],
    ) -> Self {
        let option = match on_conflict {
            OnConflict::Refuse => "",
            OnConflict::Update => "update",
            OnConflict::Ignore => "ignore",
        };
        let mut fingerprint = Sha256::new();
        // NUL separates the parts, since names have no NUL.
        for part in [table.database.as_str(), table.table.as_str(), option] {
            fingerprint.update(part.as_bytes());
            fingerprint.update([0]);
        }
        if format != Format::Envelope {
            fingerprint.update(format.content_type().as_bytes());
            fingerprint.update([0]);
        }
        // Without `returning`, the fingerprint equals that of earlier versions of the program, so that their stored
        // answers can still be used.
        match returning {
            None => {}
            Some(Selection::Only(fields)) => {
                fingerprint.update(b"returning\0");
                for name in fields.iter().filter_map(|selected| selected.what.field()) {
                    fingerprint.update(name.to_string().as_bytes());
                    fingerprint.update([0]);
                }
            }
            Some(Selection::All | Selection::Except(_)) => fingerprint.update(b"returning\0*\0"),
        }
        fingerprint.update(body);
        Self { key: Sha256::digest(key.0.as_bytes()).into(), fingerprint: fingerprint.finalize().into() }
    }

    /// Returns a copy whose key is specific to `caller`. `shown` identifies the fields in the response, so that a
    /// caller whose readable fields have changed doesn't get the stored response; empty for a response with the ids.
    pub fn for_caller(&self, caller: &[u8], shown: &[u8]) -> Self {
        let with = |hash: &Hash, more: &[u8]| Sha256::new().chain_update(hash).chain_update(more).finalize().into();
        let fingerprint = if shown.is_empty() { self.fingerprint } else { with(&self.fingerprint, shown) };
        let key = with(&self.key, caller);
        Self { key, fingerprint }
    }

    /// The SHA-256 of the `Idempotency-Key`; after [`IdempotentRequest::for_caller`] also of the caller.
    pub fn key(&self) -> &Hash {
        &self.key
    }

    /// The SHA-256 of the insert's table, `onConflict`, `returning`, body format and body, and of the fields given to
    /// [`IdempotentRequest::for_caller`].
    pub fn fingerprint(&self) -> &Hash {
        &self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_another_caller_is_another_key() {
        let table = TablePath {
            database: crate::ident::DatabaseName::parse("shop").unwrap(),
            table: crate::ident::TableName::parse("orders").unwrap(),
        };
        let key = IdempotencyKey::parse("\"k\"").unwrap();
        let request = IdempotentRequest::new(&key, &table, (OnConflict::Refuse, None), Format::Envelope, b"{}");
        let [one, again, other] = ["ann", "ann", "bob"].map(|caller| request.for_caller(caller.as_bytes(), b""));
        assert!(one == again);
        assert!(one.key() != other.key() && one.key() != request.key());
        assert_eq!(one.fingerprint(), request.fingerprint());
        let [all, all_again, few] =
            ["id,name", "id,name", "id"].map(|shown| request.for_caller(b"ann", shown.as_bytes()));
        assert!(all == all_again);
        assert!(all.key() == one.key() && all.fingerprint() != few.fingerprint());
        assert!(few.fingerprint() != request.fingerprint());
    }

    fn key(text: &str) -> Option<String> {
        IdempotencyKey::parse(text).ok().map(|parsed| parsed.0)
    }

    #[test]
    fn a_key_in_quotes_is_its_content() {
        for (text, content) in [
            ("k", "k"),
            (r#""k""#, "k"),
            (r#""a key of words""#, "a key of words"),
            (r#""a \"b\" \\""#, r#"a "b" \"#),
            ("a\"b", "a\"b"),
            ("'k'", "'k'"),
        ] {
            assert_eq!(key(text).as_deref(), Some(content), "{text}");
        }
        let longest = "x".repeat(IDEMPOTENCY_KEY_MAX_BYTES);
        assert_eq!(key(&format!("\"{longest}\"")), Some(longest));
    }

    #[test]
    fn what_is_neither_a_string_nor_visible_ascii_is_refused() {
        let long = "x".repeat(IDEMPOTENCY_KEY_MAX_BYTES + 1);
        let quoted = format!("\"{long}\"");
        for text in [
            "",
            "a key",
            "ü",
            "\"",
            "\"\"",
            "\"k",
            "\"k\"x",
            "\"k\";a=1",
            "\"a\\b\"",
            "\"a\tb\"",
            "\"ü\"",
            "\"a\\\"",
            &long,
            &quoted,
        ] {
            assert_eq!(key(text), None, "{text}");
        }
    }
}
