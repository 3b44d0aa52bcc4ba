//! The bodies of uploads, read as they arrive: bytes are pushed in, events are pulled out, and in the end
//! there is a form.
//!
//! ```text
//! Content-Type → Parser::new
//! bytes        → Parser::feed → Feed::next → ItemBegins, Data, Data, …, ItemEnds, ItemBegins, …
//! end          → Parser::finish → UploadForm {kind, folder, items: name, label, …}
//! ```
//!
//! Names, folder and type may come behind the files in a body, so the form is known only at its end; until
//! then nothing is proved but that the bytes are well-formed. A parser holds one chunk of decoded bytes, one
//! short text and the names, however large the body. How a body is split into pushes changes nothing. It
//! knows no store, and does not look at what the files hold.

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
use crate::operation::other_than_json;
use std::ops::Range;

/// What one upload may take; everything else is bounded by constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadLimits {
    /// Bytes of the body, as sent.
    pub body_bytes: u64,
    /// Files.
    pub items: usize,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { body_bytes: UPLOAD_BODY_MAX_BYTES, items: UPLOAD_MAX_ITEMS }
    }
}

impl UploadLimits {
    /// The answer to a body that is larger, for those who know it from its `Content-Length`.
    #[must_use]
    pub fn body_too_large(&self) -> Problem {
        Problem::new(
            ErrorCode::BodyTooLarge,
            format!("The body of an upload is larger than {} bytes.", self.body_bytes),
        )
        .with_hint("Send fewer files at once, or upload large ones in parts.")
    }
}

/// What a body turned out to hold at this place.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The bytes of a file begin: its place in the form's items.
    ItemBegins(usize),
    /// The next bytes of the file, decoded; never none.
    Data(&'a [u8]),
    /// The file is complete, and was not empty.
    ItemEnds,
}

/// What a reader found, before its bytes are borrowed from where they lie.
enum Step<'i> {
    /// It wants more input.
    Hungry,
    Begins(usize),
    /// A piece of the input.
    Slice(&'i [u8]),
    /// What lies decoded in the reader.
    Decoded,
    /// Bytes that looked like the beginning of a delimiter, and were none.
    Held(Range<usize>),
    Ends,
}

enum Reader {
    Json(Box<json::Reader>),
    Multipart(Box<multipart::Reader>),
}

/// How a body is written, as its `Content-Type` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding<'a> {
    /// JSON, which a missing type is taken for.
    Json,
    /// `multipart/form-data`: the whole type, with its boundary.
    Multipart(&'a str),
}

impl<'a> Encoding<'a> {
    /// Reads the type.
    ///
    /// # Errors
    /// `unsupported_media_type`.
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

/// Reads one upload's body.
pub struct Parser {
    reader: Reader,
    limits: UploadLimits,
    taken: u64,
    refused: Option<Problem>,
}

impl Parser {
    /// A parser for a body of that `Content-Type`: JSON, which a missing one is taken for, or
    /// `multipart/form-data`.
    ///
    /// # Errors
    /// `unsupported_media_type`, or `invalid_body` for a multipart type without a sound boundary.
    pub fn new(content_type: Option<&str>, limits: UploadLimits) -> Result<Self, Problem> {
        let reader = match Encoding::of(content_type)? {
            Encoding::Json => Reader::Json(Box::new(json::Reader::new(limits))),
            Encoding::Multipart(content_type) => {
                Reader::Multipart(Box::new(multipart::Reader::new(content_type, limits)?))
            }
        };
        Ok(Self { reader, limits, taken: 0, refused: None })
    }

    /// Takes the next bytes of the body. They are read as the events are pulled: pull until there is none.
    pub fn feed<'a>(&'a mut self, input: &'a [u8]) -> Feed<'a> {
        let room = usize::try_from(self.limits.body_bytes - self.taken).unwrap_or(usize::MAX);
        let rest = &input[..input.len().min(room)];
        self.taken += rest.len() as u64;
        Feed { is_cut: rest.len() < input.len(), parser: self, rest }
    }

    /// What the body said, once all of it was fed.
    ///
    /// # Errors
    /// `invalid_json` or `invalid_body` for a body that ended early, lacks something or contradicts itself;
    /// the problem of an earlier event again, if there was one.
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

/// The events of one push.
#[must_use = "bytes are read only as events are pulled"]
pub struct Feed<'a> {
    parser: &'a mut Parser,
    rest: &'a [u8],
    is_cut: bool,
}

impl Feed<'_> {
    /// The next event; `None` if all input is read and more is wanted.
    ///
    /// # Errors
    /// `invalid_json`, `invalid_body`, `invalid_media` or `body_too_large`, naming the place. The parser
    /// reads no further after one.
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Problem> {
        if let Some(problem) = &self.parser.refused {
            return Err(problem.clone());
        }
        let step = match &mut self.parser.reader {
            Reader::Json(reader) => reader.step(&mut self.rest),
            Reader::Multipart(reader) => reader.step(&mut self.rest),
        };
        let step = match step {
            Ok(Step::Hungry) if self.is_cut => Err(self.parser.limits.body_too_large()),
            step => step,
        };
        let step = step.inspect_err(|problem| self.parser.refused = Some(problem.clone()))?;
        Ok(Some(match step {
            Step::Hungry => return Ok(None),
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
