//! A push parser for the bodies of uploads: takes the bytes in pieces of any size, returns events, and at the end a
//! form. Names, folder and type may follow the files in a body. Memory is bounded: buffers of limited size, and the
//! names and types of at most [`UploadLimits::items`] files. The parser neither stores nor examines the files.

mod base64;
mod draft;
mod form;
mod json;
mod label;
mod multipart;
mod name;

pub(crate) use form::flag;
pub use form::{Existing, Given, ParsedUpload, UploadItem, UploadShape, Visibility};
pub use label::Label;

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::limits::{UPLOAD_BODY_MAX_BYTES, UPLOAD_MAX_ITEMS};
use crate::operation::headers::other_than_json;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
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
    /// A file begins. The value is its index in [`ParsedUpload::items`].
    ItemBegins(usize),
    /// Decoded bytes of the file, at least one.
    Data(&'a [u8]),
    ItemEnds,
}

/// A reader's next event. Bytes in the reader's own memory are not contained ([`UploadStep::Decoded`],
/// [`UploadStep::Held`]), so that the step does not borrow the reader.
enum UploadStep<'i> {
    NeedsInput,
    Begins(usize),
    Slice(&'i [u8]),
    /// The bytes are in the JSON reader's buffer: see [`json::JsonReader::decoded`].
    Decoded,
    /// File content that looked like the beginning of the multipart delimiter, as a range of the delimiter: see
    /// [`multipart::MultipartReader::held`].
    Held(Range<usize>),
    Ends,
}

enum BodyReader {
    Json(Box<json::JsonReader>),
    Multipart(Box<multipart::MultipartReader>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding<'a> {
    /// A missing or empty `Content-Type` means JSON.
    Json,
    /// The whole header value, with its boundary.
    Multipart(&'a str),
}

impl<'a> Encoding<'a> {
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

pub fn is_json_upload(content_type: Option<&str>) -> bool {
    Encoding::of(content_type) == Ok(Encoding::Json)
}

pub struct Parser {
    reader: BodyReader,
    limits: UploadLimits,
    taken: u64,
    refused: Option<Problem>,
}

impl Parser {
    /// Fails with `unsupported_media_type` if the type is neither JSON nor `multipart/form-data`, and with
    /// `invalid_body` if a multipart type has no valid boundary.
    pub fn new(content_type: Option<&str>, limits: UploadLimits) -> Result<Self, Problem> {
        let reader = match Encoding::of(content_type)? {
            Encoding::Json => BodyReader::Json(Box::new(json::JsonReader::new(limits))),
            Encoding::Multipart(content_type) => {
                BodyReader::Multipart(Box::new(multipart::MultipartReader::new(content_type, limits)?))
            }
        };
        Ok(Self { reader, limits, taken: 0, refused: None })
    }

    /// Takes the next piece of the body. Call [`Feed::next_event`] until it returns `None`.
    pub fn feed<'a>(&'a mut self, input: &'a [u8]) -> Feed<'a> {
        let room = usize::try_from(self.limits.body_bytes - self.taken).unwrap_or(usize::MAX);
        let rest = &input[..input.len().min(room)];
        self.taken += rest.len() as u64;
        Feed { is_cut: rest.len() < input.len(), parser: self, rest }
    }

    /// Returns the form once the whole body has been fed. Fails with `invalid_json` or `invalid_body` if the body ended
    /// early, or has no file or no `type`.
    pub fn finish(self) -> Result<ParsedUpload, Problem> {
        if let Some(problem) = self.refused {
            return Err(problem);
        }
        match self.reader {
            BodyReader::Json(reader) => reader.finish(),
            BodyReader::Multipart(reader) => reader.finish(),
        }
    }
}

#[must_use = "bytes are read only as events are pulled"]
pub struct Feed<'a> {
    parser: &'a mut Parser,
    rest: &'a [u8],
    is_cut: bool,
}

impl Feed<'_> {
    /// Returns the next event; `None` once all bytes are consumed. After an error, every call returns the same problem.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Problem> {
        if let Some(problem) = &self.parser.refused {
            return Err(problem.clone());
        }
        let step = match &mut self.parser.reader {
            BodyReader::Json(reader) => reader.step(&mut self.rest),
            BodyReader::Multipart(reader) => reader.step(&mut self.rest),
        };
        let step = match step {
            Ok(UploadStep::NeedsInput) if self.is_cut => Err(self.parser.limits.body_too_large()),
            step => step,
        };
        let step = step.inspect_err(|problem| self.parser.refused = Some(problem.clone()))?;
        Ok(Some(match step {
            UploadStep::NeedsInput => return Ok(None),
            UploadStep::Begins(at) => Event::ItemBegins(at),
            UploadStep::Slice(bytes) => Event::Data(bytes),
            UploadStep::Decoded => Event::Data(match &self.parser.reader {
                BodyReader::Json(reader) => reader.decoded(),
                BodyReader::Multipart(_) => &[],
            }),
            UploadStep::Held(range) => Event::Data(match &self.parser.reader {
                BodyReader::Json(_) => &[],
                BodyReader::Multipart(reader) => reader.held(range),
            }),
            UploadStep::Ends => Event::ItemEnds,
        }))
    }
}

#[cfg(test)]
mod tests;
