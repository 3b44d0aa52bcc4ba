//! The cache of public files: which are cached, under which keys, for how long, and what of them a request gets.
//!
//! A file's key is made of its path, so that one version is cached at a time; a request for another version misses. An entry
//! stays for a year and is served for a while after the origin last confirmed it; then the origin is asked again. The time
//! of the confirmation is a [`Check`]: in the entry itself, and after the first revalidation in a small entry beside it.
//! Knows neither the cache nor a clock.

mod purged;

pub use purged::{FILL_TIMEOUT, Purged};

use super::answer::Answer;
use super::incoming_request::{BodyLength, IncomingRequest};
use shared::conditional::{Conditions, Validators, Verdict};
use shared::ident::ProjectName;
use shared::media::{FilePath, KeptName, Rendition};
use shared::range::{self, Extent};
use shared::request_id::RequestId;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// Most bytes of a file that is cached while it is sent. The slower of the two holds up the other, and what is between them
/// takes memory of the isolate's 128 MiB, for each caller.
pub const WITH_ANSWER_MAX_BYTES: u64 = 1024 * 1024;

/// Most bytes of a cached file: what Cloudflare's Cache API takes.
pub const CACHED_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// How long a revalidation may take. Without an answer in that time the cached file is served unconfirmed.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Seconds until the next revalidation after one that failed.
const RETRY_SECONDS: u64 = 10;

/// The host of cache keys, which are URLs: nobody can request one of this host.
const CACHE_HOST: &str = "https://selkie-files.invalid/";

/// Seconds after a folder became private for which no answer of an origin counts for longer than its request: another
/// origin may take the folder's files for public for two seconds more.
const PRIVATE_GRACE_SECONDS: u64 = 5;

/// The `Cache-Control` of a project's private mark: older checks never count again.
pub const PRIVATE_MARK_LIFETIME: &str = "max-age=31536000";

/// The header of an entry that holds its [`Check`]. Stays here.
pub const CHECK_HEADER: &str = "x-selkie-checked";

/// The origin's headers that are cached. Not the request id, the timing and the CORS headers, which are of one request.
pub const CACHED_HEADERS: [&str; 10] = [
    "content-length",
    "content-type",
    "content-disposition",
    "content-security-policy",
    "x-content-type-options",
    "accept-ranges",
    "cross-origin-resource-policy",
    "etag",
    "last-modified",
    "cache-control",
];

/// Those that a 304 has too.
pub const NOT_MODIFIED_HEADERS: [&str; 3] = ["etag", "last-modified", "cache-control"];

/// A version of a file, requested by a URL that the cache may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedFile {
    name: KeptName,
    cache_key: String,
    private_mark_key: String,
    tag: String,
}

impl CachedFile {
    /// Returns the file that a GET or a HEAD requests; none if its URL has anything besides path, version and thumbnail: a
    /// signature opens private files, and what other options mean, the origin knows.
    #[must_use]
    pub fn requested(path: &FilePath, query: Option<&str>, installation: &str) -> Option<Self> {
        let (mut version, mut rendition) = (None, None);
        for option in query?.split('&') {
            let before = match option.strip_prefix("v=") {
                Some(text) => version.replace(text),
                None if option == "thumbnail=true" => rendition.replace(option),
                None => return None,
            };
            if before.is_some() {
                return None;
            }
        }
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let version = version.filter(|text| text.len() == 32 && text.bytes().all(is_hex))?;
        let name = KeptName::of(path);
        let rendition = rendition.map_or(Rendition::Original, |_| Rendition::Thumbnail);
        Some(Self {
            cache_key: cache_key(&name, rendition, installation),
            private_mark_key: private_mark_key(&path.project, installation),
            name,
            tag: format!("\"{version}\""),
        })
    }

    /// Returns its cache key.
    #[must_use]
    pub fn cache_key(&self) -> &str {
        &self.cache_key
    }

    /// Returns the cache key of its last revalidation.
    #[must_use]
    pub fn check_key(&self) -> String {
        format!("{}/checked", self.cache_key)
    }

    /// Returns the cache key of its project's private mark.
    #[must_use]
    pub fn private_mark_key(&self) -> &str {
        &self.private_mark_key
    }

    /// Returns the tag of this version, in its quotes.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Returns the name of its path.
    #[must_use]
    pub fn name(&self) -> &KeptName {
        &self.name
    }

    /// Returns how an answer of the origin to a GET fills the cache with this file, if it does.
    #[must_use]
    pub fn fill_mode(&self, head: &FileHead<'_>) -> FillMode {
        let dated = head.last_modified.is_some_and(|date| date.parse::<httpdate::HttpDate>().is_ok());
        let ours = head.etag == Some(self.tag.as_str()) && dated;
        if !ours || !is_everybodys_for_ever(head.cache_control.unwrap_or_default()) {
            return FillMode::None;
        }
        let number = |text: &str| text.parse::<u64>().ok();
        match head.status {
            200 => match head.content_length.and_then(number) {
                Some(0..=WITH_ANSWER_MAX_BYTES) => FillMode::WithAnswer,
                Some(0..=CACHED_MAX_BYTES) => FillMode::Separately,
                _ => FillMode::None,
            },
            206 => {
                let range = head.content_range.and_then(|range| range.rsplit_once('/'));
                match range.and_then(|(_, size)| number(size)) {
                    Some(0..=CACHED_MAX_BYTES) => FillMode::Separately,
                    _ => FillMode::None,
                }
            }
            _ => FillMode::None,
        }
    }
}

/// Returns the cache keys of a file's renditions.
#[must_use]
pub fn cache_keys(name: &KeptName, installation: &str) -> [String; 2] {
    [Rendition::Original, Rendition::Thumbnail].map(|rendition| cache_key(name, rendition, installation))
}

fn cache_key(name: &KeptName, rendition: Rendition, installation: &str) -> String {
    match rendition {
        Rendition::Original => format!("{CACHE_HOST}{installation}/{name}"),
        Rendition::Thumbnail => format!("{CACHE_HOST}{installation}/{name}/thumbnail"),
    }
}

/// Returns the cache key of a project's private mark, which says when a folder of the project became private.
#[must_use]
pub fn private_mark_key(project: &ProjectName, installation: &str) -> String {
    format!("{CACHE_HOST}{installation}/made-private/{project}")
}

/// Whether a `Cache-Control` is that of a public file under its current version.
fn is_everybodys_for_ever(cache_control: &str) -> bool {
    let says = |word: &str| cache_control.split(',').any(|part| part.trim() == word);
    says("public") && says("immutable") && !says("private") && !says("no-store")
}

/// The head of an answer, as far as it decides about caching.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileHead<'a> {
    /// The HTTP status.
    pub status: u16,
    /// `ETag`.
    pub etag: Option<&'a str>,
    /// `Last-Modified`.
    pub last_modified: Option<&'a str>,
    /// `Cache-Control`.
    pub cache_control: Option<&'a str>,
    /// `Content-Length`.
    pub content_length: Option<&'a str>,
    /// `Content-Range`.
    pub content_range: Option<&'a str>,
}

/// How an answer fills the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillMode {
    /// Not at all.
    None,
    /// With the bytes that go to the caller.
    WithAnswer,
    /// By another request in the background: a large file would pile up in memory between a quick side and a slow one, and
    /// a part is not the whole.
    Separately,
}

/// When the origin confirmed a file, and until when that counts; in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    at: u64,
    until: u64,
}

impl Check {
    /// The origin confirmed the file now.
    #[must_use]
    pub fn confirmed(now: u64, seconds: u64) -> Self {
        Self { at: now, until: now.saturating_add(seconds) }
    }

    /// A private mark: a folder of the project became private now. Checks before its end don't count, see
    /// [`counts_after`](Self::counts_after).
    #[must_use]
    pub fn made_private(now: u64) -> Self {
        Self::confirmed(now, PRIVATE_GRACE_SECONDS)
    }

    /// Whether the origin confirmed the file after a folder of its project became private.
    #[must_use]
    pub fn counts_after(self, made_private: Option<Self>) -> bool {
        made_private.is_none_or(|made_private| self.at >= made_private.until)
    }

    /// Extends a check for a while, because the origin could not be asked now.
    #[must_use]
    pub fn prolonged(self, now: u64) -> Self {
        Self { at: self.at, until: now.saturating_add(RETRY_SECONDS) }
    }

    /// Reads a header.
    #[must_use]
    pub fn read(header: &str) -> Option<Self> {
        let (at, until) = header.split_once('-')?;
        Some(Self { at: at.parse().ok()?, until: until.parse().ok()? })
    }

    /// Returns the check that lasts longer.
    #[must_use]
    pub fn or(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.until > self.until => other,
            _ => self,
        }
    }

    /// Whether the check still counts.
    #[must_use]
    pub fn lasts(self, now: u64) -> bool {
        now < self.until
    }

    /// Returns the `Age`: seconds since the origin confirmed the file.
    #[must_use]
    pub fn age(self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }

    /// Returns the `Cache-Control` of an entry that holds the check alone.
    #[must_use]
    pub fn lifetime(self, now: u64) -> String {
        format!("max-age={}", self.until.saturating_sub(now).max(1))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.until)
    }
}

/// The outcome of a revalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revalidated {
    /// The version is still the current one.
    Unchanged,
    /// The file is another one, private or deleted: the entry is removed.
    Changed,
    /// The origin could not say: a stale file is better than none.
    Unknown,
}

impl Revalidated {
    /// Reads the status of an answer of Selkie's own to a conditional request.
    #[must_use]
    pub fn of(status: u16) -> Self {
        match status {
            304 => Self::Unchanged,
            429 | 500.. => Self::Unknown,
            _ => Self::Changed,
        }
    }
}

/// The head of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// `ETag`.
    pub tag: &'a str,
    /// `Last-Modified`.
    pub last_modified: &'a str,
    /// `Content-Length`.
    pub size: u64,
}

/// What a request gets of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// The whole file; for a HEAD, all headers.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// 304: the caller has it.
    NotModified,
    /// 412: the request's condition does not hold.
    Failed,
    /// 416: there are no such bytes.
    Beyond,
}

impl Entry<'_> {
    /// Returns what a request with these headers gets; none if the entry's own headers are malformed.
    #[must_use]
    pub fn serve(&self, is_head: bool, conditions: &Conditions<'_>, range: Option<&str>) -> Option<Serving> {
        let validators = Validators { tag: self.tag, modified: self.last_modified.parse().ok()? };
        Some(match (conditions.judge(&validators), range) {
            (Verdict::NotModified, _) => Serving::NotModified,
            (Verdict::Failed, _) => Serving::Failed,
            (Verdict::Send, Some(range)) if !is_head && conditions.range_holds(&validators) => {
                match range::extent(range, self.size) {
                    Extent::Whole => Serving::Whole,
                    Extent::Part(part) => Serving::Part(part),
                    Extent::Beyond => Serving::Beyond,
                }
            }
            (Verdict::Send, _) => Serving::Whole,
        })
    }
}

/// The `Range` for a part of an entry.
#[must_use]
pub fn range_header(part: &Range<u64>) -> String {
    format!("bytes={}-{}", part.start, part.end.saturating_sub(1))
}

/// The `Content-Range` of a part of an entry.
#[must_use]
pub fn content_range(part: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1))
}

impl Answer {
    /// 416 for a file of that size.
    #[must_use]
    pub fn beyond(size: u64, request_id: &RequestId) -> Self {
        let problem = range::beyond(size);
        Self::problem(&problem, request_id).with("content-range", format!("bytes */{size}"))
    }
}

impl IncomingRequest {
    /// The same file, asked for without a key and without conditions: as everybody gets it.
    #[must_use]
    pub fn for_everybody(&self) -> Self {
        Self {
            method: "GET".to_owned(),
            authorization: None,
            if_match: None,
            if_none_match: None,
            body: BodyLength::Known(0),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests;
