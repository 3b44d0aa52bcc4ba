//! Which files are kept where the edge runs, under which names, for how long, and what of them a request gets.
//!
//! A file lies under the name of its path, one version at a time: what its `v` does not name is not found. It lies there
//! for a year, and is given for a while after the origin last spoke for it; then the origin is asked whether it still
//! does. That is told by a [`Check`], at the file itself and, after the first time, in a small entry beside it.
//! Knows no cache and no clock.

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

/// Bytes of a file that goes to its caller and to the cache at once. The slower of the two holds up the other, and what is
/// between them lies in the isolate's 128 MiB, as often as there are callers.
pub const ALONG_MAX_BYTES: u64 = 1024 * 1024;

/// Bytes of a file that is kept at all: what Cloudflare's Cache API takes.
pub const KEPT_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// How long the origin may take to speak for a file that is there. What it can't say in that time is given unconfirmed.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Seconds until an origin that could not speak for a file is asked again.
const RETRY_SECONDS: u64 = 10;

/// Where entries lie, by installation: a host that no caller can ask, so that a path of theirs never leads to one.
const PLACE: &str = "https://selkie-files.invalid/";

/// Seconds after a folder became private for which no answer of an origin counts for longer than its request: another
/// origin may take the folder's files for public for two seconds more.
const PRIVATE_GRACE_SECONDS: u64 = 5;

/// The `Cache-Control` of the entry that says when a folder of a project became private: older checks never count again.
pub const MADE_PRIVATE_LIFETIME: &str = "max-age=31536000";

/// The header of an entry that holds its [`Check`]. Stays here.
pub const CHECK_HEADER: &str = "x-selkie-checked";

/// What of the origin's headers is kept. Not its id, its timing, or for which page it was: those are of one request.
pub const KEPT_HEADERS: [&str; 10] = [
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

/// What of them a 304 has too.
pub const NOT_MODIFIED_HEADERS: [&str; 3] = ["etag", "last-modified", "cache-control"];

/// A version of a file, asked for by a URL that may be answered from what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    name: KeptName,
    place: String,
    made_private_place: String,
    tag: String,
}

impl KeptFile {
    /// The file that a GET or a HEAD means; none if its URL says anything besides path, version and thumbnail: a signature
    /// opens what is private, and whatever else there may be, the origin knows what it means.
    #[must_use]
    pub fn asked(path: &FilePath, query: Option<&str>, installation: &str) -> Option<Self> {
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
            place: place(&name, rendition, installation),
            made_private_place: made_private_place(&path.project, installation),
            name,
            tag: format!("\"{version}\""),
        })
    }

    /// Where it is kept.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Where is kept that the origin spoke for it again.
    #[must_use]
    pub fn check_place(&self) -> String {
        format!("{}/checked", self.place)
    }

    /// Where is kept that a folder of its project became private.
    #[must_use]
    pub fn made_private_place(&self) -> &str {
        &self.made_private_place
    }

    /// The tag of this version, in its quotes.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The name of its path.
    #[must_use]
    pub fn name(&self) -> &KeptName {
        &self.name
    }

    /// Whether an answer of the origin to a GET brings this file, and how it comes into the cache.
    #[must_use]
    pub fn filling(&self, head: &FileHead<'_>) -> Filling {
        let dated = head
            .last_modified
            .is_some_and(|date| date.parse::<httpdate::HttpDate>().is_ok());
        let ours = head.etag == Some(self.tag.as_str()) && dated;
        if !ours || !is_everybodys_for_ever(head.cache_control.unwrap_or_default()) {
            return Filling::None;
        }
        let number = |text: &str| text.parse::<u64>().ok();
        match head.status {
            200 => match head.content_length.and_then(number) {
                Some(0..=ALONG_MAX_BYTES) => Filling::Along,
                Some(0..=KEPT_MAX_BYTES) => Filling::Behind,
                _ => Filling::None,
            },
            206 => {
                let range = head.content_range.and_then(|range| range.rsplit_once('/'));
                match range.and_then(|(_, size)| number(size)) {
                    Some(0..=KEPT_MAX_BYTES) => Filling::Behind,
                    _ => Filling::None,
                }
            }
            _ => Filling::None,
        }
    }
}

/// Where the renditions of a file are kept.
#[must_use]
pub fn places(name: &KeptName, installation: &str) -> [String; 2] {
    [Rendition::Original, Rendition::Thumbnail]
        .map(|rendition| place(name, rendition, installation))
}

fn place(name: &KeptName, rendition: Rendition, installation: &str) -> String {
    match rendition {
        Rendition::Original => format!("{PLACE}{installation}/{name}"),
        Rendition::Thumbnail => format!("{PLACE}{installation}/{name}/thumbnail"),
    }
}

/// Where is kept that a folder of a project became private.
#[must_use]
pub fn made_private_place(project: &ProjectName, installation: &str) -> String {
    format!("{PLACE}{installation}/made-private/{project}")
}

/// What the origin says of a public file under the version that it has.
fn is_everybodys_for_ever(cache_control: &str) -> bool {
    let says = |word: &str| cache_control.split(',').any(|part| part.trim() == word);
    says("public") && says("immutable") && !says("private") && !says("no-store")
}

/// The headers of an answer that decide whether it is kept.
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

/// How a file comes into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// It does not.
    None,
    /// With the bytes that go to the caller.
    Along,
    /// By a request of its own, behind the answer: large files would lie in memory between a quick side and a slow one,
    /// and a part is not the whole.
    Behind,
}

/// When the origin spoke for a file, and for how long that is taken for its word; in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    at: u64,
    until: u64,
}

impl Check {
    /// It did now.
    #[must_use]
    pub fn confirmed(now: u64, seconds: u64) -> Self {
        Self {
            at: now,
            until: now.saturating_add(seconds),
        }
    }

    /// A folder of the file's project became private now: checks before its end don't count, see
    /// [`counts_after`](Self::counts_after).
    #[must_use]
    pub fn made_private(now: u64) -> Self {
        Self::confirmed(now, PRIVATE_GRACE_SECONDS)
    }

    /// Whether the origin spoke for the file after a folder of its project became private.
    #[must_use]
    pub fn counts_after(self, made_private: Option<Self>) -> bool {
        made_private.is_none_or(|made_private| self.at >= made_private.until)
    }

    /// It could not be asked now; what it said before has to do for a while.
    #[must_use]
    pub fn prolonged(self, now: u64) -> Self {
        Self {
            at: self.at,
            until: now.saturating_add(RETRY_SECONDS),
        }
    }

    /// Reads a header.
    #[must_use]
    pub fn read(header: &str) -> Option<Self> {
        let (at, until) = header.split_once('-')?;
        Some(Self {
            at: at.parse().ok()?,
            until: until.parse().ok()?,
        })
    }

    /// The one that lasts longer.
    #[must_use]
    pub fn or(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.until > self.until => other,
            _ => self,
        }
    }

    /// Whether it still lasts.
    #[must_use]
    pub fn lasts(self, now: u64) -> bool {
        now < self.until
    }

    /// `Age`: seconds since the origin spoke.
    #[must_use]
    pub fn age(self, now: u64) -> u64 {
        now.saturating_sub(self.at)
    }

    /// The `Cache-Control` of an entry that holds nothing else.
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

/// What follows from the origin's word on a version that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is as it was.
    Holds,
    /// It is another, or nobody's: what is kept goes.
    Gone,
    /// The origin could not say. A file that is there is better than none.
    None,
}

impl Word {
    /// Reads the status of an answer of Selkie's own to the question whether the version has changed.
    #[must_use]
    pub fn of(status: u16) -> Self {
        match status {
            304 => Self::Holds,
            429 | 500.. => Self::None,
            _ => Self::Gone,
        }
    }
}

/// What is known of an entry when it was found.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// `ETag`.
    pub tag: &'a str,
    /// `Last-Modified`.
    pub last_modified: &'a str,
    /// `Content-Length`.
    pub size: u64,
}

/// What of an entry a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Everything; to a HEAD, all headers.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// That it has it already.
    NotModified,
    /// That its condition does not hold.
    Failed,
    /// That there are no such bytes.
    Beyond,
}

impl Entry<'_> {
    /// What a request with these headers gets; none if the entry's own make no sense.
    #[must_use]
    pub fn serve(
        &self,
        is_head: bool,
        conditions: &Conditions<'_>,
        range: Option<&str>,
    ) -> Option<Serving> {
        let validators = Validators {
            tag: self.tag,
            modified: self.last_modified.parse().ok()?,
        };
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
