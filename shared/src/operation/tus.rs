//! Uploads that can be resumed: what the headers of tus 1.0 ask for.
//!
//! Core, creation (with the first bytes, if a caller likes), termination and expiration; the other extensions
//! are refused by name, because a caller who uses one believes that it holds. Knows no byte of a file and no
//! upload that exists.

mod metadata;
#[cfg(test)]
mod tests;

pub use metadata::TusFile;

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::request::{RequestHead, TusHeaders};
use std::fmt;
use uuid::Uuid;

/// Where uploads are made.
pub const PATH: &str = "/api/v1/media/tus";
/// The version of the protocol.
pub const VERSION: &str = "1.0.0";
/// What of it is here beside its core.
pub const EXTENSIONS: &str = "creation,creation-with-upload,termination,expiration";
/// The type of a body that holds bytes of a file.
pub const BYTES_TYPE: &str = "application/offset+octet-stream";

/// Whether a path is an upload's, or the one where they are made.
#[must_use]
pub fn is_at(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The headers that the protocol wants on every answer from its paths, whatever the answer is.
pub fn answer_headers(path: &str, status: u16) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let here = is_at(path);
    let spoken = here.then_some(("tus-resumable", VERSION));
    let known = (here && status == ErrorCode::PreconditionFailed.status()).then_some(("tus-version", VERSION));
    [spoken, known].into_iter().flatten()
}

/// Returns the request's method: a POST may stand for another one, where proxies know only the old ones.
pub(super) fn method<'a>(head: &RequestHead<'a>) -> &'a str {
    match (head.method, head.tus.method) {
        ("POST", Some(method)) => method,
        (method, _) => method,
    }
}

impl TusHeaders<'_> {
    fn check_version(&self) -> Result<(), Problem> {
        let found = match self.resumable.map(str::trim) {
            Some(VERSION) => return Ok(()),
            Some(other) => format!("Version {} of tus is not spoken here.", shown(other)),
            None => "The header Tus-Resumable is missing.".to_owned(),
        };
        Err(Problem::new(ErrorCode::PreconditionFailed, found).with_hint("Send Tus-Resumable: 1.0.0."))
    }

    fn refuse_extensions(&self) -> Result<(), Problem> {
        match self.unsupported {
            None => Ok(()),
            Some(name) => Err(refused(format!("The header {name} is not available here."))
                .with_hint("An upload has a length from its beginning, and is sent as one file.")),
        }
    }
}

/// The id of an upload: not to be guessed, and no file's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TusId(Uuid);

impl TusId {
    /// Reads a path segment.
    ///
    /// # Errors
    /// `media_not_found`: what is no UUID is no upload's id.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let is_plain = text.len() == uuid::fmt::Hyphenated::LENGTH;
        match Uuid::try_parse(text) {
            Ok(id) if is_plain => Ok(Self(id)),
            _ => Err(not_found(text)),
        }
    }

    /// The answer for an upload that is not there: it never was, has expired, or is another project's.
    #[must_use]
    pub fn unknown(self) -> Problem {
        not_found(&self.to_string())
    }

    /// The UUID.
    #[must_use]
    pub fn get(self) -> Uuid {
        self.0
    }

    /// The path of its URL.
    #[must_use]
    pub fn to_url_path(self) -> String {
        format!("{PATH}/{self}")
    }
}

impl From<Uuid> for TusId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for TusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// What is asked of uploads that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TusCall {
    /// What of the protocol is here.
    Describe,
    /// A new upload.
    Create(Box<TusNew>),
    /// How far an upload is.
    Status(TusId),
    /// Bytes of an upload.
    Append {
        /// The upload.
        id: TusId,
        /// Where the bytes belong.
        offset: u64,
    },
    /// An upload that is given up.
    Terminate(TusId),
}

/// An upload to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TusNew {
    /// Bytes that it will have.
    pub length: u64,
    /// What it will be.
    pub file: TusFile,
    /// The `Upload-Metadata` as sent: every answer to HEAD repeats it.
    pub metadata: Box<str>,
    /// Whether the request's body holds its first bytes.
    pub first_bytes: FirstBytes,
}

/// Whether the bytes of an upload begin with the request that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstBytes {
    /// In its body.
    Here,
    /// In requests to come.
    Later,
}

impl TusCall {
    /// What the head asks of the path where uploads are made.
    pub(super) fn of_uploads(head: &RequestHead<'_>) -> Result<Self, Problem> {
        if head.method == "OPTIONS" {
            return Ok(Self::Describe);
        }
        let headers = headers(head)?;
        let length = whole("Upload-Length", headers.length)?;
        if length == 0 {
            return Err(Problem::new(ErrorCode::InvalidMedia, "An upload of no bytes is no file."));
        }
        let metadata = headers.metadata.unwrap_or_default();
        Ok(Self::Create(Box::new(TusNew {
            length,
            file: TusFile::from_metadata(metadata)?,
            metadata: metadata.into(),
            first_bytes: if holds_bytes(head) { FirstBytes::Here } else { FirstBytes::Later },
        })))
    }

    /// What the head asks of one upload.
    pub(super) fn of_upload(head: &RequestHead<'_>, id: TusId) -> Result<Self, Problem> {
        let method = method(head);
        if method == "OPTIONS" {
            return Ok(Self::Describe);
        }
        let headers = headers(head)?;
        Ok(match method {
            "DELETE" => Self::Terminate(id),
            "PATCH" => Self::Append { id, offset: whole("Upload-Offset", headers.offset)? },
            _ => Self::Status(id),
        })
    }

    /// Whether the request's body is bytes of a file.
    pub(super) fn takes_bytes(&self) -> bool {
        match self {
            Self::Create(new) => new.first_bytes == FirstBytes::Here,
            Self::Append { .. } => true,
            Self::Describe | Self::Status(_) | Self::Terminate(_) => false,
        }
    }
}

/// Bytes come under one type alone, so that nobody takes a form for a part of a file.
pub(super) fn expect_bytes(head: &RequestHead<'_>) -> Result<(), Problem> {
    if holds_bytes(head) {
        return Ok(());
    }
    let found = head.content_type.unwrap_or_default();
    Err(Problem::new(ErrorCode::UnsupportedMediaType, format!("The Content-Type {} is not read here.", shown(found)))
        .with_hint(format!("Send Content-Type: {BYTES_TYPE}.")))
}

fn holds_bytes(head: &RequestHead<'_>) -> bool {
    let essence = head.content_type.unwrap_or_default().split(';').next();
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(BYTES_TYPE))
}

/// Returns the protocol's headers, once the version and the extensions that they ask for are checked.
fn headers<'a>(head: &RequestHead<'a>) -> Result<TusHeaders<'a>, Problem> {
    head.tus.check_version()?;
    head.tus.refuse_extensions()?;
    Ok(head.tus)
}

fn whole(name: &str, text: Option<&str>) -> Result<u64, Problem> {
    let Some(text) = text else {
        return Err(refused(format!("The header {name} is missing.")));
    };
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if plain => Ok(number),
        _ => Err(refused(format!("The header {name} must be a whole number of bytes, not {}.", shown(text)))),
    }
}

fn refused(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, message)
}

fn not_found(text: &str) -> Problem {
    Problem::new(ErrorCode::MediaNotFound, format!("There is no upload with the id {}.", shown(text)))
        .with_hint("It may have expired, or been given up. Begin a new one.")
}
