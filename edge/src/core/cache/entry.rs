//! Entries: which answers of an origin are stored, with which headers, and what of an entry a request gets.

use super::{ASKED_AT, Lookup, Subject};
use crate::core::answer::Answer;
use crate::core::headers::{Change, Head, Headers};
use crate::core::incoming_request::IncomingRequest;
use httpdate::HttpDate;
use shared::conditional::{self, Conditions, Validators, Verdict};
use shared::error::Problem;
use shared::range::{self, Extent};
use std::borrow::Cow;
use std::ops::Range;
use std::time::SystemTime;

/// Most bytes of an answer that is in memory as a whole on its way into the cache: an isolate has 128 MiB for all its
/// requests.
pub(super) const HELD_MAX_BYTES: u64 = 1024 * 1024;

/// Most bytes of a cached file: what Cloudflare's Cache API takes.
pub(super) const STREAMED_MAX_BYTES: u64 = 512 * 1024 * 1024;

/// The origin's headers that an entry has.
struct HeaderNames {
    stored: &'static [&'static str],
    /// Those that a 304 has too.
    not_modified: &'static [&'static str],
}

/// Not the request id, the timing and the CORS headers, which are of one request.
const FILE_HEADERS: HeaderNames = HeaderNames {
    stored: &[
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
    ],
    not_modified: &["etag", "last-modified", "cache-control"],
};

const READ_HEADERS: HeaderNames =
    HeaderNames { stored: &["content-length", "content-type", "etag"], not_modified: &["etag"] };

/// The headers that make a request for a file one that has an answer of its own.
pub(super) const FILE_REQUEST_HEADERS: [&str; 6] =
    ["authorization", "range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

/// What follows from an origin's answer for the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The answer is stored from memory, where it is held whole.
    Held,
    /// The answer is stored by a request of its own: a long one would pile up in memory between a quick side and a slow one,
    /// and a part is not the whole.
    Streamed,
    /// The entry is still current.
    Confirmed,
    /// The answer is not stored, and an entry is not current any more: the file is another one, private or deleted.
    NotStored,
    /// The origin could not tell: an expired file is better than none.
    Unanswered,
}

/// What a request gets of an entry.
#[derive(Debug)]
pub struct Served {
    /// Status and headers.
    pub head: Answer,
    /// Which bytes of the entry follow.
    pub body: ServedBody,
}

/// Which bytes of an entry a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedBody {
    /// None.
    None,
    /// All.
    Whole,
    /// These, at least one.
    Part(Range<u64>),
}

impl Lookup {
    /// Whether the origin's answer to this request is the one that every other request for the entry needs.
    #[must_use]
    pub fn is_shared(&self, head: &Head) -> bool {
        match self.subject {
            Subject::File(_) => {
                head.method == "GET" && FILE_REQUEST_HEADERS.iter().all(|name| head.headers.get(name).is_none())
            }
            Subject::Read { .. } => true,
        }
    }

    /// Returns the request for the entry alone: without what makes it one caller's, but for where that one is. With a tag it
    /// is a revalidation.
    #[must_use]
    pub fn request(
        &self,
        head: &Head,
        incoming: &IncomingRequest,
        client_address: Option<&str>,
        known_tag: Option<&str>,
    ) -> (Head, IncomingRequest) {
        let (mut head, mut incoming) = (head.clone(), incoming.clone());
        let is_file = self.file().is_some();
        let headers = head.headers.iter().filter(|(name, _)| match is_file {
            true => *name == "traceparent" || Some(*name) == client_address,
            // The cache holds answers without a coding.
            false => !matches!(*name, "if-none-match" | "accept-encoding"),
        });
        head.headers = headers.chain(known_tag.map(|tag| ("if-none-match", tag))).collect();
        if is_file {
            incoming.method = "GET".to_owned();
        }
        (head, incoming)
    }

    /// Returns what follows from an answer of Selkie's own for the entry.
    #[must_use]
    pub fn outcome(&self, status: u16, headers: &Headers) -> FetchOutcome {
        let number = |text: &str| text.parse::<u64>().ok();
        let size = match status {
            200 => headers.get("content-length").and_then(number),
            206 => headers.get("content-range").and_then(|range| number(range.rsplit_once('/')?.1)),
            304 => return FetchOutcome::Confirmed,
            429 | 500.. => return FetchOutcome::Unanswered,
            _ => None,
        };
        let (is_cacheable, max_bytes) = match &self.subject {
            Subject::File(file) => {
                let is_dated = headers.get("last-modified").is_some_and(|date| date.parse::<HttpDate>().is_ok());
                let is_version = headers.get("etag") == Some(&file.tag) && is_dated;
                (is_version && is_public(headers.get("cache-control").unwrap_or_default()), STREAMED_MAX_BYTES)
            }
            Subject::Read { .. } => (status == 200, HELD_MAX_BYTES),
        };
        match size.filter(|bytes| is_cacheable && *bytes <= max_bytes && headers.get("content-encoding").is_none()) {
            Some(0..=HELD_MAX_BYTES) if status == 200 => FetchOutcome::Held,
            Some(_) => FetchOutcome::Streamed,
            None => FetchOutcome::NotStored,
        }
    }

    /// Returns the head of the entry that holds an origin's answer.
    #[must_use]
    pub fn entry(&self, answer: &Headers, asked_ms: u64) -> Answer {
        let entry = Answer::bare(200).with_those(answer, self.header_names().stored);
        let entry = entry.with(ASKED_AT, asked_ms.to_string());
        match self.subject {
            Subject::File(_) => entry,
            // Another caller may be content with an older one than whose answer it was.
            Subject::Read { max_seconds, .. } => entry.with("cache-control", format!("max-age={max_seconds}")),
        }
    }

    /// Returns what a request gets of an entry of that age, or of one that is being stored; `None` if the entry's headers are
    /// malformed.
    ///
    /// # Errors
    /// `precondition_failed` and `range_not_satisfiable`.
    pub fn serve(
        &self,
        entry: &Headers,
        head: &Head,
        incoming: &IncomingRequest,
        age_ms: Option<u64>,
    ) -> Option<Result<Served, Problem>> {
        let is_file = self.file().is_some();
        let answer = |status, names| {
            let (answer, age_ms, more) = match is_file {
                true => (Answer::bare(status), age_ms, None),
                false => (Answer::new(status), age_ms.or(Some(0)), Some(self.accepted_age.headers())),
            };
            let age = age_ms.map(|age_ms| ("age", (age_ms / 1_000).to_string().into()));
            let more = age.into_iter().chain(more.into_iter().flatten());
            more.fold(answer.with_those(entry, names), |answer, (name, value)| answer.with(name, value))
        };
        let names = self.header_names();
        let size = entry.get("content-length")?.parse().ok()?;
        // A read has no date, and not always a tag.
        let modified =
            entry.get("last-modified").map_or(Some(SystemTime::UNIX_EPOCH.into()), |date| date.parse().ok())?;
        let validators = Validators { tag: entry.get("etag").unwrap_or_default(), modified };
        let asked = |name| head.headers.get(name).filter(|_| is_file).map(Into::into);
        let conditions = Conditions {
            if_match: asked("if-match"),
            if_unmodified_since: asked("if-unmodified-since"),
            if_none_match: head.headers.get("if-none-match").filter(|_| !validators.tag.is_empty()).map(Into::into),
            if_modified_since: asked("if-modified-since"),
            if_range: asked("if-range"),
        };
        let is_head = incoming.method == "HEAD";
        let range = asked("range").filter(|_| !is_head && conditions.range_holds(&validators));
        let extent = match conditions.judge(&validators) {
            Verdict::Failed => return Some(Err(conditional::failed())),
            Verdict::NotModified => {
                return Some(Ok(Served { head: answer(304, names.not_modified), body: ServedBody::None }));
            }
            Verdict::Send => range.map_or(Extent::Whole, |range: Cow<'_, str>| range::extent(&range, size)),
        };
        Some(Ok(match extent {
            Extent::Whole if is_head => Served { head: answer(200, names.stored), body: ServedBody::None },
            Extent::Whole => Served { head: answer(200, names.stored), body: ServedBody::Whole },
            Extent::Part(part) => {
                let length = part.end.saturating_sub(part.start).to_string();
                let mut head = answer(206, names.stored).with("content-range", content_range(&part, size));
                head.apply(vec![Change::Set("content-length", length.into())]);
                Served { head, body: ServedBody::Part(part) }
            }
            Extent::Beyond => {
                let head = Answer::problem(&range::beyond(size), &incoming.request_id);
                Served { head: head.with("content-range", format!("bytes */{size}")), body: ServedBody::None }
            }
        }))
    }

    fn header_names(&self) -> &'static HeaderNames {
        match self.subject {
            Subject::File(_) => &FILE_HEADERS,
            Subject::Read { .. } => &READ_HEADERS,
        }
    }
}

/// Whether a `Cache-Control` is that of a public file under its current version.
fn is_public(cache_control: &str) -> bool {
    let says = |word: &str| cache_control.split(',').any(|part| part.trim() == word);
    says("public") && says("immutable") && !says("private") && !says("no-store")
}

/// Returns the `Range` for a part of an entry.
#[must_use]
pub fn range_header(part: &Range<u64>) -> String {
    format!("bytes={}-{}", part.start, part.end.saturating_sub(1))
}

/// Returns the `Content-Range` of a part of an entry.
#[must_use]
fn content_range(part: &Range<u64>, size: u64) -> String {
    format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1))
}
