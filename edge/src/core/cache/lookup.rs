//! Decides which requests the cache may answer: public files by their versioned URLs, and reads of records with
//! `Cache-Control: max-age=N`.

use super::accepted_age::AcceptedAge;
use super::{Cache, CacheName, url};
use crate::core::incoming_request::{BodyLength, IncomingRequest};
use shared::error::Problem;
use shared::fingerprint::Fingerprint;
use shared::key::{Grant, Principal};
use shared::limits::EDGE_CHECKED_BODY_MAX_BYTES;
use shared::media::{FilePath, FilePathHash, Rendition};
use shared::operation::read::{Read, ReadAnswer, ReadOne};
use shared::operation::{BodyUse, Operation, Pending, RecordOperation};
use shared::policy::Action;
use shared::request::AFTER_HEADER;
use std::sync::Arc;
use uuid::Uuid;

/// The cache entry that a request looks up, and the age that the request accepts.
#[derive(Clone, Debug)]
pub struct Lookup {
    pub(super) key: Fingerprint,
    /// For a file, the fingerprint of the cache key and of the file's version; for a read, the cache key itself. All
    /// versions of a file have the same cache key.
    pub(super) version: Fingerprint,
    pub(super) accepted_age: AcceptedAge,
    pub(super) subject: Subject,
}

#[derive(Clone, Debug)]
pub(super) enum Subject {
    File(PublicFile),
    /// A read of records with the API key `key_id`; the entry is stored for `max_seconds`.
    Read {
        key_id: Uuid,
        max_seconds: u32,
    },
}

#[derive(Clone, Debug)]
pub struct PublicFile {
    pub(super) name: FilePathHash,
    /// The `ETag` of the version that the request's URL names, with its quotes.
    pub tag: String,
    /// The cache key of the entry that records that a folder became private; see [`Cache::private_mark`].
    pub private_mark_url: String,
}

impl Lookup {
    /// Returns the cache key as a URL for the Cache API.
    pub fn url(&self) -> String {
        url(self.key)
    }

    pub fn file(&self) -> Option<&PublicFile> {
        match &self.subject {
            Subject::File(file) => Some(file),
            Subject::Read { .. } => None,
        }
    }

    /// Returns the id of the caller's API key; `None` for a file.
    pub fn key_id(&self) -> Option<Uuid> {
        match self.subject {
            Subject::Read { key_id, .. } => Some(key_id),
            Subject::File(_) => None,
        }
    }
}

#[derive(Debug)]
pub enum Cacheable {
    File(Lookup),
    /// A read of records whose body, if any, is not parsed yet.
    Read(Arc<Principal>, Pending, AcceptedAge),
}

impl Cacheable {
    /// Returns whether the options of a read are in the request's body.
    pub fn has_body(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Read(_, pending, _) => pending.body() == BodyUse::Json,
        }
    }

    /// Parses a read's body and returns the lookup; `None` if the read asks for something other than records, such as
    /// `explain`.
    pub fn finish(self, cache: &Cache, body: &[u8]) -> Result<Option<Lookup>, Problem> {
        let (principal, pending, accepted_age) = match self {
            Self::File(lookup) => return Ok(Some(lookup)),
            Self::Read(principal, pending, accepted_age) => (principal, pending, accepted_age),
        };
        let operation = pending.finish(body)?;
        let records = match &operation {
            Operation::Records(RecordOperation::Read(read)) if read.answer == ReadAnswer::Records => {
                Records::Many(read)
            }
            Operation::Records(RecordOperation::ReadOne(read)) if read.answer == ReadAnswer::Records => {
                Records::One(read)
            }
            _ => return Ok(None),
        };
        // The version is part of the key, since the fingerprint depends on the layout of the types.
        let read = (env!("CARGO_PKG_VERSION"), principal.project(), records);
        let key = cache.key(&CacheName::Read(read));
        let subject = Subject::Read { key_id: principal.key_id(), max_seconds: cache.read_max_seconds };
        Ok(Some(Lookup { key, version: key, accepted_age, subject }))
    }
}

/// The parsed read, including its response format, as a part of its cache key.
#[derive(Hash)]
enum Records<'a> {
    Many(&'a Read),
    One(&'a ReadOne),
}

impl Cache {
    /// Returns the lookup for a GET or HEAD of a file whose query has a version and perhaps `thumbnail=true`. `None`
    /// for any other query: signed URLs are for private files, and only the origin knows other options.
    pub fn file(&self, path: &FilePath, query: Option<&str>) -> Option<Lookup> {
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
        let name = FilePathHash::of(path);
        let key = self.file_key(&name, rendition.map_or(Rendition::Original, |_| Rendition::Thumbnail));
        let private_mark_url = self.private_mark_url(&path.project);
        let subject = Subject::File(PublicFile { name, tag: format!("\"{version}\""), private_mark_url });
        let version = Fingerprint::of(&(key, version));
        Some(Lookup { key, version, accepted_age: self.file_age, subject })
    }

    /// Returns the maximum age of a cached response that a request accepts; `None` if the cache may not answer. The
    /// cache may answer a GET of records, or a query with a short body of known length. The request must have a
    /// read-only key and `max-age`, but no `X-Selkie-After`, and the configuration must enable the cache of reads.
    pub(in crate::core) fn accepted_age(
        &self,
        call: &IncomingRequest,
        principal: &Principal,
        pending: &Pending,
    ) -> Option<AcceptedAge> {
        let reads = match (pending.action(), call.body) {
            // For a HEAD of a list, the origin reads fewer rows than would have to be stored.
            (Action::Read | Action::ReadOne, _) => call.method() == "GET",
            (Action::Query, BodyLength::Known(bytes)) => bytes <= EDGE_CHECKED_BODY_MAX_BYTES as u64,
            _ => false,
        };
        // A read with `X-Selkie-After` must not be answered from the cache.
        let header = call.header("cache-control").filter(|_| call.header(AFTER_HEADER).is_none())?;
        let may = reads && *principal.grant() == Grant::Read;
        may.then(|| AcceptedAge::parse(header, self.read_max_seconds)).flatten()
    }
}
