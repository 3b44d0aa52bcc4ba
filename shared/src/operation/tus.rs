//! Parses the headers of tus 1.0, the protocol of resumable uploads (core, creation with first bytes, termination,
//! expiration). Refuses the headers of other extensions, because a client that sends one relies on its effect.

mod metadata;
#[cfg(test)]
mod tests;

pub use metadata::TusFile;

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::media::FolderPath;
use crate::request::{RequestHead, TusHeaders};
use std::fmt;
use uuid::Uuid;

pub const PATH: &str = "/api/v1/media/tus";
pub const VERSION: &str = "1.0.0";
pub const EXTENSIONS: &str = "creation,creation-with-upload,termination,expiration";
pub const BYTES_TYPE: &str = "application/offset+octet-stream";

pub fn is_at(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the headers that the tus protocol requires on responses.
pub fn answer_headers(path: &str, status: u16) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let here = is_at(path);
    let spoken = here.then_some(("tus-resumable", VERSION));
    let known = (here && status == ErrorCode::PreconditionFailed.status()).then_some(("tus-version", VERSION));
    [spoken, known].into_iter().flatten()
}

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

/// The id of a resumable upload, which can't be guessed and differs from the id of the uploaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TusId(Uuid);

impl TusId {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let is_plain = text.len() == uuid::fmt::Hyphenated::LENGTH;
        match Uuid::try_parse(text) {
            Ok(id) if is_plain => Ok(Self(id)),
            _ => Err(not_found(text)),
        }
    }

    /// Returns the problem if the caller can't use the upload: it doesn't exist, has expired, belongs to another
    /// project or uploader, or its file is not on this origin's disk.
    pub fn unknown(self) -> Problem {
        not_found(&self.to_string())
    }

    pub fn get(self) -> Uuid {
        self.0
    }

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TusCall {
    Describe,
    Create(Box<TusNew>),
    Status(TusId),
    Append {
        id: TusId,
        /// The offset in the file at which the bytes begin.
        offset: u64,
    },
    Terminate(TusId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TusNew {
    /// The size of the whole file in bytes.
    pub length: u64,
    pub file: TusFile,
    /// `Upload-Metadata` for responses to HEAD, with the folder of [`TusNew::set_folder`].
    pub metadata: Box<str>,
    pub first_bytes: FirstBytes,
}

impl TusNew {
    /// Sets the folder, also in the stored metadata. Fails with `invalid_body` if the metadata become too long.
    pub fn set_folder(&mut self, folder: FolderPath) -> Result<(), Problem> {
        if folder != self.file.folder {
            self.metadata = metadata::with_folder(&self.metadata, &folder)?.into();
            self.file.folder = folder;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstBytes {
    Here,
    Later,
}

impl TusCall {
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

    pub(super) fn takes_bytes(&self) -> bool {
        match self {
            Self::Create(new) => new.first_bytes == FirstBytes::Here,
            Self::Append { .. } => true,
            Self::Describe | Self::Status(_) | Self::Terminate(_) => false,
        }
    }
}

/// Refuses a body of another type than bytes: an HTML form must not be stored as a file.
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
