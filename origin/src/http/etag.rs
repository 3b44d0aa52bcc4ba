//! Entity tags of records, media, API descriptions and pages (RFC 9110, section 8.8.3).

use axum::http::HeaderValue;
use twox_hash::XxHash3_128;
use uuid::Uuid;

/// A strong tag: equal bytes have equal tags at every origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ETag(String);

impl ETag {
    pub(super) fn of(body: &[u8]) -> Self {
        // `Uuid` writes the 32 hex digits ten times as fast as `format!`.
        let digits = Uuid::from_u128(XxHash3_128::oneshot(body)).simple();
        let mut text = Uuid::encode_buffer();
        Self(["\"", digits.encode_lower(&mut text), "\""].concat())
    }

    pub(super) fn of_sha256(hash: &[u8; 32]) -> Self {
        Self(format!("\"{}\"", crate::media::url::version(hash)))
    }

    pub(super) fn into_header(self) -> Option<HeaderValue> {
        HeaderValue::try_from(self.0).ok()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_the_same_bytes_is_the_same_everywhere() {
        // From the reference implementation of xxh3_128.
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
