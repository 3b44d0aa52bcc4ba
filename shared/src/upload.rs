//! A push parser for the bodies of uploads: takes the bytes in pieces of any size, returns events, and at the end a
//! form.
//!
//! ```text
//! Content-Type → Parser::new
//! bytes        → Parser::feed → Feed::next_event → ItemBegins, Data, Data, …, ItemEnds, ItemBegins, …
//! end          → Parser::finish → UploadForm {kind, folder, items: name, label, …}
//! ```
//!
//! Names, folder and type may follow the files in a body, so the form is complete only at the end. The parser's memory
//! is bounded: some buffers of limited size, and the names and types of at most [`UploadLimits::items`] files. The
//! parser neither stores nor examines the files.

mod base64;
mod draft;
mod form;
mod json;
mod label;
mod multipart;
mod name;

pub(crate) use form::flag;
pub use form::{Existing, Given, Shape, UploadForm, UploadItem, Visibility};
pub use label::Label;

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::limits::{UPLOAD_BODY_MAX_BYTES, UPLOAD_MAX_ITEMS};
use crate::operation::headers::other_than_json;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Maximum bytes of the request body.
    pub body_bytes: u64,
    pub items: usize,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { body_bytes: UPLOAD_BODY_MAX_BYTES, items: UPLOAD_MAX_ITEMS }
    }
}

impl UploadLimits {
    pub fn body_too_large(&self) -> Problem {
        Problem::new(
            ErrorCode::BodyTooLarge,
            format!("The body of an upload is larger than {} bytes.", self.body_bytes),
        )
        .with_hint("Send fewer files at once, or upload large ones in parts.")
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The bytes of a file begin. The number is the file's index in [`UploadForm::items`].
    ItemBegins(usize),
    /// The next decoded bytes of the file, at least one.
    Data(&'a [u8]),
    /// The file is complete and was not empty.
    ItemEnds,
}

/// What the JSON or multipart reader found next in the body. [`Feed::next_event`] converts it to an [`Event`], or to
/// `None` if more input is needed. Bytes in the reader's own memory are only referred to ([`Step::Decoded`],
/// [`Step::Held`]), so that the step does not borrow the reader.
enum Step<'i> {
    NeedsInput,
    Begins(usize),
    Slice(&'i [u8]),
    /// Decoded bytes of a file. They are in the JSON reader's buffer, and [`json::Reader::decoded`] returns them.
    Decoded,
    /// Bytes of a file that looked like the beginning of a multipart delimiter but were not. They equal this range of
    /// the delimiter's bytes, and [`multipart::Reader::held`] returns them.
    Held(Range<usize>),
    Ends,
}

enum Reader {
    Json(Box<json::Reader>),
    Multipart(Box<multipart::Reader>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding<'a> {
    /// JSON, also if `Content-Type` is missing or empty.
    Json,
    /// `multipart/form-data`; the whole header value, with its boundary.
    Multipart(&'a str),
}

impl<'a> Encoding<'a> {
    /// Determines the encoding of an upload's body.
    ///
    /// # Errors
    /// `unsupported_media_type` if the type is neither JSON nor `multipart/form-data`.
    pub(crate) fn of(content_type: Option<&'a str>) -> Result<Self, Problem> {
        match (other_than_json(content_type), content_type) {
            (None, _) | (_, None) => Ok(Self::Json),
            (Some(other), Some(whole)) if other.eq_ignore_ascii_case("multipart/form-data") => {
                Ok(Self::Multipart(whole))
            }
            (Some(other), _) => Err(Problem::new(
                ErrorCode::UnsupportedMediaType,
                format!("The Content-Type {} is not read here.", shown(other)),
            )
            .with_hint("Send Content-Type: application/json or multipart/form-data.")),
        }
    }
}

/// Returns whether the body of an upload with this `Content-Type` is JSON.
pub fn is_json_upload(content_type: Option<&str>) -> bool {
    Encoding::of(content_type) == Ok(Encoding::Json)
}

pub struct Parser {
    reader: Reader,
    limits: UploadLimits,
    taken: u64,
    refused: Option<Problem>,
}

impl Parser {
    /// Creates a parser for a body of this `Content-Type`: JSON (also if missing) or `multipart/form-data`.
    ///
    /// # Errors
    /// `unsupported_media_type` for other types; `invalid_body` for a multipart type whose parameters are malformed or
    /// have no valid boundary.
    pub fn new(content_type: Option<&str>, limits: UploadLimits) -> Result<Self, Problem> {
        let reader = match Encoding::of(content_type)? {
            Encoding::Json => Reader::Json(Box::new(json::Reader::new(limits))),
            Encoding::Multipart(content_type) => {
                Reader::Multipart(Box::new(multipart::Reader::new(content_type, limits)?))
            }
        };
        Ok(Self { reader, limits, taken: 0, refused: None })
    }

    /// Takes the next bytes of the body. [`Feed::next_event`] parses them: call it until it returns `None`.
    pub fn feed<'a>(&'a mut self, input: &'a [u8]) -> Feed<'a> {
        let room = usize::try_from(self.limits.body_bytes - self.taken).unwrap_or(usize::MAX);
        let rest = &input[..input.len().min(room)];
        self.taken += rest.len() as u64;
        Feed { is_cut: rest.len() < input.len(), parser: self, rest }
    }

    /// Returns the form, after the whole body was fed.
    ///
    /// # Errors
    /// `invalid_json` or `invalid_body` if the body is empty or ended early; `invalid_body` if it has no file or no
    /// `type`. If [`Feed::next_event`] failed, the same problem again.
    pub fn finish(self) -> Result<UploadForm, Problem> {
        if let Some(problem) = self.refused {
            return Err(problem);
        }
        match self.reader {
            Reader::Json(reader) => reader.finish(),
            Reader::Multipart(reader) => reader.finish(),
        }
    }
}

/// The events of the bytes that one call of [`Parser::feed`] got.
#[must_use = "bytes are read only as events are pulled"]
pub struct Feed<'a> {
    parser: &'a mut Parser,
    rest: &'a [u8],
    is_cut: bool,
}

impl Feed<'_> {
    /// Returns the next event; `None` once all bytes are consumed.
    ///
    /// # Errors
    /// `invalid_json`, `invalid_body`, `invalid_media` or `body_too_large`; every later call returns the same problem.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Problem> {
        if let Some(problem) = &self.parser.refused {
            return Err(problem.clone());
        }
        let step = match &mut self.parser.reader {
            Reader::Json(reader) => reader.step(&mut self.rest),
            Reader::Multipart(reader) => reader.step(&mut self.rest),
        };
        let step = match step {
            Ok(Step::NeedsInput) if self.is_cut => Err(self.parser.limits.body_too_large()),
            step => step,
        };
        let step = step.inspect_err(|problem| self.parser.refused = Some(problem.clone()))?;
        Ok(Some(match step {
            Step::NeedsInput => return Ok(None),
            Step::Begins(at) => Event::ItemBegins(at),
            Step::Slice(bytes) => Event::Data(bytes),
            Step::Decoded => Event::Data(match &self.parser.reader {
                Reader::Json(reader) => reader.decoded(),
                Reader::Multipart(_) => &[],
            }),
            Step::Held(range) => Event::Data(match &self.parser.reader {
                Reader::Json(_) => &[],
                Reader::Multipart(reader) => reader.held(range),
            }),
            Step::Ends => Event::ItemEnds,
        }))
    }
}

#[cfg(test)]
mod tests;
