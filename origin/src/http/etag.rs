//! Tags of answers, of single records and of files (RFC 9110, section 8.8.3).

use axum::http::HeaderValue;
use twox_hash::XxHash3_128;
use uuid::Uuid;

/// The tag of an answer's bytes: strong, since it is made of all of them, and the same wherever and
/// whenever the same bytes are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ETag(String);

impl ETag {
    /// Computes the tag of a whole body.
    pub(super) fn of(body: &[u8]) -> Self {
        // Only the digits of the number: as of a UUID they are written in a tenth of the time.
        let digits = Uuid::from_u128(XxHash3_128::oneshot(body)).simple();
        let mut text = Uuid::encode_buffer();
        Self(["\"", digits.encode_lower(&mut text), "\""].concat())
    }

    /// The tag of bytes whose SHA-256 is known.
    pub(super) fn of_sha256(hash: &[u8; 32]) -> Self {
        Self(format!("\"{}\"", crate::media::url::version(hash)))
    }

    /// As a header's value.
    pub(super) fn into_header(self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.0).ok()
    }

    /// The tag in its quotes.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_the_same_bytes_is_the_same_everywhere() {
        // As xxh3_128 of the reference implementation gives it.
        assert_eq!(ETag::of(b"").0, "\"99aa06d3014798d86001c324468d497f\"");
        assert_ne!(ETag::of(b"a"), ETag::of(b"b"));
        assert!(ETag::of(b"a").into_header().is_some());
    }

    #[test]
    fn the_tag_of_a_file_is_its_version() {
        let tag = ETag::of_sha256(&[0xab; 32]);
        assert_eq!(tag.as_str(), format!("\"{}\"", "ab".repeat(16)));
    }
}
