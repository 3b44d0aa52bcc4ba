//! A push parser for `multipart/form-data` (RFC 7578) that returns slices of the input and buffers no file. Bytes at
//! the input's end that may begin a delimiter are only counted; if they are content, they are returned as a range of
//! the delimiter ([`UploadStep::Held`]). A delimiter has a carriage return only as its first byte, so counted bytes need
//! not be searched again.

mod head;

use super::draft::{self, Draft, invalid};
use super::form::{self, ParsedUpload, UploadShape};
use super::{UploadLimits, UploadStep};
use crate::error::{ErrorCode, Problem, nearest};
use crate::ident::shown;
use crate::limits::{UPLOAD_BOUNDARY_MAX_BYTES, UPLOAD_PART_HEAD_MAX_BYTES, UPLOAD_TEXT_MAX_BYTES};
use crate::media::MediaName;
use head::{Parameters, PartHead, nameless};
use memchr::memmem::Finder;
use std::ops::Range;

const LINE_END_BYTES: usize = 2;

/// The form's fields. Each may occur once.
const FIELDS: [&str; 4] = ["folder", "type", "update", "private"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum MultipartPlace {
    Preamble,
    /// Expects optional spaces or tabs, and then a line end or `--`.
    Delimited,
    Dashed,
    Returned,
    Head,
    File,
    /// The user chose no file: the content must be empty.
    NoFile,
    Field(usize),
    Epilogue,
}

enum DelimiterSearch<'i> {
    Slice(&'i [u8]),
    /// Content that looked like the beginning of a delimiter, and equals this range of the delimiter.
    Held(Range<usize>),
    Delimiter,
    Nothing,
}

pub(super) struct MultipartReader {
    finder: Finder<'static>,
    place: MultipartPlace,
    /// Number of bytes at the end of the input so far that equal the delimiter's first bytes. They are held back.
    matched: usize,
    /// Number of matched bytes that belong to the line end before the part's content, and so are never content.
    outside: usize,
    offset: u64,
    text: Vec<u8>,
    fields: [bool; FIELDS.len()],
    file: Option<(MediaName, u64)>,
    files: usize,
    draft: Draft,
}

impl MultipartReader {
    pub(super) fn new(content_type: &str, limits: UploadLimits) -> Result<Self, Problem> {
        let boundary = boundary(content_type)?;
        let mut delimiter = b"\r\n--".to_vec();
        delimiter.extend_from_slice(boundary.as_bytes());
        Ok(Self {
            finder: Finder::new(&delimiter).into_owned(),
            place: MultipartPlace::Preamble,
            // The first delimiter may be at the beginning of the body, without a line end.
            matched: LINE_END_BYTES,
            outside: LINE_END_BYTES,
            offset: 0,
            text: Vec::new(),
            fields: [false; FIELDS.len()],
            file: None,
            files: 0,
            draft: Draft::new(limits),
        })
    }

    pub(super) fn held(&self, range: Range<usize>) -> &[u8] {
        &self.finder.needle()[range]
    }

    pub(super) fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<UploadStep<'i>, Problem> {
        loop {
            match self.place {
                MultipartPlace::Epilogue => {
                    self.advance(input, input.len());
                    return Ok(UploadStep::NeedsInput);
                }
                MultipartPlace::Preamble => match self.find(input) {
                    DelimiterSearch::Nothing => return Ok(UploadStep::NeedsInput),
                    DelimiterSearch::Delimiter => self.place = MultipartPlace::Delimited,
                    DelimiterSearch::Slice(_) | DelimiterSearch::Held(_) => {}
                },
                MultipartPlace::File => match self.find(input) {
                    DelimiterSearch::Nothing => return Ok(UploadStep::NeedsInput),
                    DelimiterSearch::Slice(bytes) => {
                        self.grew(bytes.len());
                        return Ok(UploadStep::Slice(bytes));
                    }
                    DelimiterSearch::Held(range) => {
                        self.grew(range.len());
                        return Ok(UploadStep::Held(range));
                    }
                    DelimiterSearch::Delimiter => {
                        self.end_file()?;
                        self.place = MultipartPlace::Delimited;
                        return Ok(UploadStep::Ends);
                    }
                },
                MultipartPlace::NoFile => match self.find(input) {
                    DelimiterSearch::Nothing => return Ok(UploadStep::NeedsInput),
                    DelimiterSearch::Delimiter => self.place = MultipartPlace::Delimited,
                    DelimiterSearch::Slice(_) | DelimiterSearch::Held(_) => return Err(nameless()),
                },
                MultipartPlace::Field(field) => match self.find(input) {
                    DelimiterSearch::Nothing => return Ok(UploadStep::NeedsInput),
                    DelimiterSearch::Slice(bytes) => self.gather(field, bytes)?,
                    DelimiterSearch::Held(range) => {
                        let held = self.held(range).to_vec();
                        self.gather(field, &held)?;
                    }
                    DelimiterSearch::Delimiter => {
                        self.end_field(field)?;
                        self.place = MultipartPlace::Delimited;
                    }
                },
                MultipartPlace::Delimited
                | MultipartPlace::Dashed
                | MultipartPlace::Returned
                | MultipartPlace::Head => {
                    let Some((&byte, rest)) = input.split_first() else {
                        return Ok(UploadStep::NeedsInput);
                    };
                    *input = rest;
                    self.offset += 1;
                    if self.byte(byte)? {
                        return Ok(UploadStep::Begins(self.files - 1));
                    }
                }
            }
        }
    }

    fn advance(&mut self, input: &mut &[u8], bytes: usize) {
        *input = &input[bytes..];
        self.offset += bytes as u64;
    }

    /// Finds content or a delimiter. Bytes at the input's end that may begin a delimiter are counted in `matched`.
    fn find<'i>(&mut self, input: &mut &'i [u8]) -> DelimiterSearch<'i> {
        if input.is_empty() {
            return DelimiterSearch::Nothing;
        }
        let delimiter = self.finder.needle();
        if self.matched > 0 {
            let missing = &delimiter[self.matched..];
            let length = missing.len().min(input.len());
            if input[..length] == missing[..length] {
                let is_whole = length == missing.len();
                self.matched += length;
                self.advance(input, length);
                if !is_whole {
                    return DelimiterSearch::Nothing;
                }
                (self.matched, self.outside) = (0, 0);
                return DelimiterSearch::Delimiter;
            }
            let held = std::mem::take(&mut self.outside)..std::mem::take(&mut self.matched);
            if !held.is_empty() {
                return DelimiterSearch::Held(held);
            }
        }
        let all: &'i [u8] = input;
        let end = match self.finder.find(all) {
            Some(0) => {
                let length = delimiter.len();
                self.advance(input, length);
                return DelimiterSearch::Delimiter;
            }
            Some(at) => at,
            None => {
                let last = all.len().saturating_sub(delimiter.len() - 1);
                let tail = memchr::memrchr(b'\r', &all[last..]).map(|at| last + at);
                tail.filter(|at| delimiter.starts_with(&all[*at..])).unwrap_or(all.len())
            }
        };
        if end == 0 {
            self.matched = all.len();
            self.advance(input, all.len());
            return DelimiterSearch::Nothing;
        }
        self.advance(input, end);
        DelimiterSearch::Slice(&all[..end])
    }

    /// Parses a byte outside of content. Returns whether a file's bytes begin after the byte.
    fn byte(&mut self, byte: u8) -> Result<bool, Problem> {
        self.place = match (self.place, byte) {
            (MultipartPlace::Delimited, b' ' | b'\t') => MultipartPlace::Delimited,
            (MultipartPlace::Delimited, b'-') => MultipartPlace::Dashed,
            (MultipartPlace::Delimited, b'\r') => MultipartPlace::Returned,
            (MultipartPlace::Dashed, b'-') => MultipartPlace::Epilogue,
            (MultipartPlace::Returned, b'\n') => {
                self.text.clear();
                MultipartPlace::Head
            }
            (MultipartPlace::Head, _) => return self.head(byte),
            _ => {
                return Err(invalid(format!(
                    "The multipart body is malformed: neither a line's end nor -- stands behind the boundary, at byte {}.",
                    self.offset - 1
                )));
            }
        };
        Ok(false)
    }

    fn head(&mut self, byte: u8) -> Result<bool, Problem> {
        self.text.push(byte);
        let lines = match self.text.as_slice() {
            b"\r\n" => "",
            text => match text.strip_suffix(b"\r\n\r\n") {
                Some(lines) => {
                    std::str::from_utf8(lines).map_err(|_| invalid("A part's header lines are not UTF-8."))?
                }
                None if text.len() < UPLOAD_PART_HEAD_MAX_BYTES => return Ok(false),
                None => {
                    return Err(invalid(format!(
                        "A part has more than {UPLOAD_PART_HEAD_MAX_BYTES} bytes of header lines."
                    )));
                }
            },
        };
        match PartHead::parse(lines)? {
            PartHead::File { name, label } => {
                let at = self.draft.next_place()?;
                let name = MediaName::parse(&name).map_err(|problem| draft::at(&format!("File {at}"), &problem))?;
                self.draft.add(draft::Item {
                    name: name.clone(),
                    label,
                    is_always_file: false,
                    private: None,
                    private_folder: None,
                })?;
                self.file = Some((name, 0));
                self.files = at + 1;
                self.place = MultipartPlace::File;
            }
            PartHead::NoFile => self.place = MultipartPlace::NoFile,
            PartHead::Field(name) => {
                let Some(field) = FIELDS.iter().position(|field| *field == name) else {
                    let hint = match nearest(&name, FIELDS) {
                        Some(near) => format!("Did you mean {near}?"),
                        None => format!("Known are {}; a file has a filename.", FIELDS.join(", ")),
                    };
                    let message = format!("{} is no field of an upload.", shown(&name));
                    return Err(invalid(message).with_hint(hint));
                };
                if std::mem::replace(&mut self.fields[field], true) {
                    return Err(invalid(format!("{name} is repeated.")));
                }
                self.place = MultipartPlace::Field(field);
            }
        }
        self.text.clear();
        // If the part is empty, the line end that ended its head also begins the next delimiter.
        self.matched = LINE_END_BYTES;
        self.outside = LINE_END_BYTES;
        Ok(self.place == MultipartPlace::File)
    }
}

impl MultipartReader {
    fn grew(&mut self, bytes: usize) {
        if let Some((_, size)) = &mut self.file {
            *size += bytes as u64;
        }
    }

    fn end_file(&mut self) -> Result<(), Problem> {
        match self.file.take() {
            Some((name, 0)) => Err(Problem::new(
                ErrorCode::InvalidMedia,
                format!("File {} ({}) is empty.", self.files - 1, shown(name.as_str())),
            )),
            _ => Ok(()),
        }
    }

    fn gather(&mut self, field: usize, bytes: &[u8]) -> Result<(), Problem> {
        if self.text.len() + bytes.len() > UPLOAD_TEXT_MAX_BYTES {
            return Err(invalid(format!("{} is longer than {UPLOAD_TEXT_MAX_BYTES} bytes.", FIELDS[field])));
        }
        self.text.extend_from_slice(bytes);
        Ok(())
    }

    fn end_field(&mut self, field: usize) -> Result<(), Problem> {
        let name = FIELDS[field];
        let text = std::str::from_utf8(&self.text).map_err(|_| invalid(format!("{name} is not UTF-8.")))?;
        match name {
            "folder" => self.draft.set_folder(text),
            "type" => self.draft.set_kind(text),
            _ => {
                let flag = form::flag(text).ok_or_else(|| {
                    invalid(format!("{name} must be true or false, not {}.", shown(text)))
                        .with_hint("on, as a checked box is sent, and 1 mean true; off and 0 mean false.")
                })?;
                match name {
                    "update" => self.draft.set_update(flag),
                    _ => self.draft.set_private(flag),
                }
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<ParsedUpload, Problem> {
        if self.place == MultipartPlace::Epilogue {
            return self.draft.finish(Some(UploadShape::Multipart));
        }
        Err(invalid(match self.offset {
            0 => "The body is empty.".to_owned(),
            end => format!("The multipart body ended early, at byte {end}: its last boundary is missing."),
        }))
    }
}

fn boundary(content_type: &str) -> Result<String, Problem> {
    let (_, parameters) = content_type.split_once(';').unwrap_or_default();
    let parameters =
        Parameters::parse(parameters).ok_or_else(|| invalid("The Content-Type's parameters are malformed."))?;
    let Some(boundary) = parameters.get("boundary") else {
        return Err(invalid("The Content-Type names no boundary.")
            .with_hint("Let your HTTP client write the Content-Type of a form: it knows the boundary."));
    };
    let is_sound = (1..=UPLOAD_BOUNDARY_MAX_BYTES).contains(&boundary.len())
        && !boundary.ends_with(' ')
        && boundary.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte));
    if is_sound {
        return Ok(boundary.to_owned());
    }
    Err(invalid(format!("The boundary {} is none that RFC 2046 allows.", shown(boundary))))
}
