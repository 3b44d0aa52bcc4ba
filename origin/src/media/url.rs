//! The URLs of files that are handed out: where the service is reached, the file's path, and the version of its bytes.
//!
//! Knows neither requests nor settings: who makes [`Links`] says where callers reach the service.

use super::sign::Signature;
use crate::config::BaseUrl;
use shared::media::url_path;
use std::fmt::Write as _;

/// Characters of a version: half of a SHA-256, which no accident repeats.
const VERSION_CHARS: usize = 32;

/// The version of bytes, as `v` of a URL names it: the first half of their SHA-256, in hex.
#[must_use]
pub fn version(sha256: &[u8; 32]) -> String {
    let mut version = String::with_capacity(VERSION_CHARS);
    for byte in &sha256[..VERSION_CHARS / 2] {
        // Writing to a string can't fail.
        let _ = write!(version, "{byte:02x}");
    }
    version
}

/// Makes the URLs of one answer.
#[derive(Clone, Debug)]
pub struct Links {
    base: Option<BaseUrl>,
}

impl Links {
    /// URLs below `base`; without one, those that a page of the same host can use: paths.
    #[must_use]
    pub fn new(base: Option<BaseUrl>) -> Self {
        Self { base }
    }

    /// The URL of a file whose bytes have that SHA-256.
    #[must_use]
    pub fn file(&self, place: Place<'_>, sha256: &[u8; 32]) -> String {
        format!("{}?v={}", self.bare(place), version(sha256))
    }

    /// The URL of its thumbnail, whose bytes have that SHA-256.
    #[must_use]
    pub fn thumbnail(&self, place: Place<'_>, sha256: &[u8; 32]) -> String {
        format!("{}?thumbnail=true&v={}", self.bare(place), version(sha256))
    }

    fn bare(&self, place: Place<'_>) -> String {
        let base = self.base.as_ref().map_or("", BaseUrl::as_str);
        let path = url_path(place.project, place.folder, place.name);
        format!("{base}{path}")
    }
}

/// One of the URLs of [`Links`], with a signature.
#[must_use]
pub fn signed(url: &str, signature: &Signature) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{}", signature.query())
}

/// A file's place, by names that are known to be right.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The project.
    pub project: &'a str,
    /// The folder; empty for the root.
    pub folder: &'a str,
    /// The name.
    pub name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { project: "default", folder: "a b", name: "ü.png" };

    #[test]
    fn urls_name_the_version_of_the_bytes_behind_them() {
        let links = Links::new(BaseUrl::parse("https://a.example"));
        let version = "ab".repeat(16);
        assert_eq!(
            links.file(PLACE, &[0xab; 32]),
            format!("https://a.example/media/default/a%20b/%C3%BC.png?v={version}")
        );
        assert_eq!(
            Links::new(None).thumbnail(PLACE, &[0xab; 32]),
            format!("/media/default/a%20b/%C3%BC.png?thumbnail=true&v={version}")
        );
    }
}
