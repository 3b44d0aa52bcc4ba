//! Builds the URLs of media files from the base URL, the file's path and the version (a hash) of the file's content.

use super::sign::Signature;
use crate::config::BaseUrl;
use shared::fingerprint::hex;
use shared::media::url_path;

/// The length of a version: half of a SHA-256, so that different contents in practice never have the same version.
const VERSION_CHARS: usize = 32;

pub fn version(sha256: &[u8; 32]) -> String {
    hex(&sha256[..VERSION_CHARS / 2])
}

#[derive(Clone, Debug)]
pub struct Links {
    base: Option<BaseUrl>,
}

impl Links {
    pub fn new(base: Option<BaseUrl>) -> Self {
        Self { base }
    }

    pub fn file(&self, place: FilePlace<'_>, sha256: &[u8; 32]) -> String {
        format!("{}?v={}", self.bare(place), version(sha256))
    }

    pub fn thumbnail(&self, place: FilePlace<'_>, sha256: &[u8; 32]) -> String {
        format!("{}?thumbnail=true&v={}", self.bare(place), version(sha256))
    }

    fn bare(&self, place: FilePlace<'_>) -> String {
        let base = self.base.as_ref().map_or("", BaseUrl::as_str);
        let path = url_path(place.project, place.folder, place.name);
        format!("{base}{path}")
    }
}

pub fn signed(url: &str, signature: &Signature) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{}", signature.query())
}

/// The parts of a file's URL, all validated already.
#[derive(Clone, Copy, Debug)]
pub struct FilePlace<'a> {
    pub project: &'a str,
    pub folder: &'a str,
    pub name: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: FilePlace<'_> = FilePlace { project: "default", folder: "a b", name: "ü.png" };

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
