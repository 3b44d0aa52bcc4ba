//! Decodes the JSON string that contains a file: a data URL, or in some items bare base64, both with JSON's escapes.

use crate::error::Problem;
use crate::json::{lexer::Lexer, malformed};
use crate::limits::UPLOAD_LABEL_MAX_BYTES;
use crate::upload::base64::{self, Base64Decoder};
use crate::upload::label::Label;
use std::borrow::Cow;

const SCHEME: &[u8] = b"data:";

/// Maximum characters that are collected for decoding: enough to be fast, but few enough to copy.
const GATHERED_BYTES: usize = 16 * 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Required,
    Optional,
}

pub(super) enum Progress {
    NeedsInput,
    /// The decoded bytes must be taken before the next call.
    Full,
    Ended,
}

pub(super) enum ContentFault {
    Json(Problem),
    /// The end of an error message about the item, and the fault's offset in the body, if known.
    Media(Cow<'static, str>, Option<u64>),
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Begun,
    Unicode { value: u16, digits: u8 },
}

pub(super) struct ContentDecoder {
    decoder: Base64Decoder,
    head: Head,
    prefix: Option<Vec<u8>>,
    label: Option<Label>,
    escape: Escape,
    escape_at: u64,
    gathered: Vec<u8>,
    /// `gathered` contains a fault. Characters are then decoded without being collected: collecting them again for each
    /// piece of input, to find the fault's position, would take quadratic time.
    has_fault: bool,
}

impl ContentDecoder {
    pub(super) fn new() -> Self {
        Self {
            decoder: Base64Decoder::new(),
            head: Head::Required,
            prefix: None,
            label: None,
            escape: Escape::None,
            escape_at: 0,
            gathered: Vec::new(),
            has_fault: false,
        }
    }

    pub(super) fn restart(&mut self, head: Head) {
        self.decoder.restart();
        self.head = head;
        self.prefix = Some(Vec::new());
        self.label = None;
        self.has_fault = false;
    }

    pub(super) fn decoded(&self) -> &[u8] {
        self.decoder.decoded()
    }

    pub(super) fn take_label(&mut self) -> Option<Label> {
        self.label.take()
    }

    /// Decodes input. After [`Progress::Full`], first discards the decoded bytes.
    pub(super) fn read(&mut self, lexer: &mut Lexer, input: &mut &[u8]) -> Result<Progress, ContentFault> {
        if self.decoder.is_full() {
            self.decoder.clear();
        }
        loop {
            if self.decoder.is_full() {
                return Ok(Progress::Full);
            }
            let Some(&first) = input.first() else {
                return Ok(Progress::NeedsInput);
            };
            match (self.escape, first) {
                (Escape::None, b'"') => {
                    self.end(lexer.offset())?;
                    lexer.advance(input, 1);
                    return Ok(Progress::Ended);
                }
                (Escape::None, b'\\') => {
                    self.escape = Escape::Begun;
                    self.escape_at = lexer.offset();
                    lexer.advance(input, 1);
                }
                (Escape::None, _) if self.prefix.is_none() => self.run(lexer, input)?,
                (Escape::None, 0..0x20) => return Err(control(lexer.offset())),
                (Escape::None, byte) => {
                    self.character(byte, lexer.offset())?;
                    lexer.advance(input, 1);
                }
                (Escape::Begun, byte) => {
                    self.begun(byte)?;
                    lexer.advance(input, 1);
                }
                (Escape::Unicode { value, digits }, byte) => {
                    self.unicode(value, digits, byte)?;
                    lexer.advance(input, 1);
                }
            }
        }
    }

    /// Decodes up to a quote or an escape that [`ContentDecoder::run_over`] can't handle, or until the decoder is full.
    fn run(&mut self, lexer: &mut Lexer, input: &mut &[u8]) -> Result<(), ContentFault> {
        let window = &input[..input.len().min(self.decoder.room())];
        let end = memchr::memchr2(b'"', b'\\', window).unwrap_or(window.len());
        if !self.has_fault && is_plain(&window[end..]) && self.run_over(lexer, input) {
            return Ok(());
        }
        if let Err((before, fault)) = self.decoder.push(&window[..end]) {
            let at = lexer.offset() + before as u64;
            return Err(match fault {
                base64::Base64Fault::Character(0..0x20) => control(at),
                fault => not_base64(fault, at),
            });
        }
        lexer.advance(input, end);
        Ok(())
    }

    /// Decodes across escaped slashes and white space, which JSON and MIME encoders write. Collects the characters
    /// first, since the decoder is only fast on long pieces. `false`, with nothing consumed, for a fault, which the
    /// caller then finds.
    fn run_over(&mut self, lexer: &mut Lexer, input: &mut &[u8]) -> bool {
        let room = self.decoder.room().min(GATHERED_BYTES);
        self.gathered.clear();
        self.gathered.reserve_exact(GATHERED_BYTES);
        let mut at = 0;
        while self.gathered.len() < room {
            let rest = &input[at..];
            let window = &rest[..rest.len().min(room - self.gathered.len())];
            let end = memchr::memchr2(b'"', b'\\', window).unwrap_or(window.len());
            self.gathered.extend_from_slice(&window[..end]);
            at += end;
            match &rest[end..] {
                [b'\\', b'/', ..] if self.gathered.len() < room => self.gathered.push(b'/'),
                escape if !is_plain(escape) || escape[1] == b'/' => break,
                _ => {}
            }
            at += 2;
        }
        let before = self.decoder.mark();
        if self.decoder.push(&self.gathered).is_err() {
            self.decoder.reset(before);
            self.has_fault = true;
            return false;
        }
        lexer.advance(input, at);
        true
    }

    fn begun(&mut self, byte: u8) -> Result<(), ContentFault> {
        self.escape = Escape::None;
        match byte {
            b'u' => {
                self.escape = Escape::Unicode { value: 0, digits: 0 };
                Ok(())
            }
            b'n' => self.character(b'\n', self.escape_at),
            b'r' => self.character(b'\r', self.escape_at),
            b't' => self.character(b'\t', self.escape_at),
            b'b' => self.character(0x08, self.escape_at),
            b'f' => self.character(0x0c, self.escape_at),
            b'/' | b'\\' | b'"' => self.character(byte, self.escape_at),
            _ => Err(self.bad_escape()),
        }
    }

    fn unicode(&mut self, value: u16, digits: u8, byte: u8) -> Result<(), ContentFault> {
        let Some(digit) = char::from(byte).to_digit(16) else {
            return Err(self.bad_escape());
        };
        let value = value << 4 | digit as u16;
        if digits < 3 {
            self.escape = Escape::Unicode { value, digits: digits + 1 };
            return Ok(());
        }
        self.escape = Escape::None;
        match u8::try_from(value) {
            Ok(character) if character.is_ascii() => self.character(character, self.escape_at),
            _ => Err(ContentFault::Media("holds a character that base64 does not have".into(), Some(self.escape_at))),
        }
    }

    fn bad_escape(&self) -> ContentFault {
        let said = format!("an unknown escape stands at byte {}", self.escape_at);
        ContentFault::Json(malformed(&said))
    }

    /// Decodes one character. The decoder must not be full.
    fn character(&mut self, character: u8, at: u64) -> Result<(), ContentFault> {
        let Some(prefix) = &mut self.prefix else {
            return match character {
                b'\n' | b'\r' | b'\t' => Ok(()),
                _ => self.decoder.push(&[character]).map_err(|(_, fault)| not_base64(fault, at)),
            };
        };
        if let Some(expected) = SCHEME.get(prefix.len()) {
            if character.to_ascii_lowercase() != *expected {
                self.take_as_base64(at)?;
                return self.character(character, at);
            }
        } else if character == b',' {
            let head = std::str::from_utf8(&prefix[SCHEME.len()..]).unwrap_or_default();
            let label = Label::data_url(head);
            self.label = Some(label.map_err(|said| ContentFault::Media(said.into(), Some(at)))?);
            self.prefix = None;
            return Ok(());
        }
        if !matches!(character, b' '..=b'~') {
            let said = "has a data URL with a character that no URL has".into();
            return Err(ContentFault::Media(said, Some(at)));
        }
        if prefix.len() == UPLOAD_LABEL_MAX_BYTES {
            let said = format!("has a data URL without a comma in its first {UPLOAD_LABEL_MAX_BYTES} bytes");
            return Err(ContentFault::Media(said.into(), Some(at)));
        }
        prefix.push(character);
        Ok(())
    }

    fn take_as_base64(&mut self, at: u64) -> Result<(), ContentFault> {
        if self.head == Head::Required {
            return Err(ContentFault::Media("does not begin data:<type>;base64,".into(), Some(at)));
        }
        let prefix = self.prefix.take().unwrap_or_default();
        self.decoder.push(&prefix).map_err(|(_, fault)| not_base64(fault, at))
    }

    /// Ends the file. `at` is the offset of the closing quote in the body. Fails if the file contains no byte.
    fn end(&mut self, at: u64) -> Result<(), ContentFault> {
        if let Some(prefix) = &self.prefix {
            if prefix.len() >= SCHEME.len() {
                return Err(ContentFault::Media("has a data URL without a comma".into(), Some(at)));
            }
            self.take_as_base64(at)?;
        }
        self.decoder.finish().map_err(|fault| not_base64(fault, at))?;
        if self.decoder.total() == 0 {
            return Err(ContentFault::Media("is empty".into(), None));
        }
        Ok(())
    }
}

fn is_plain(text: &[u8]) -> bool {
    matches!(text, [b'\\', b'/' | b'n' | b'r' | b't', ..])
}

fn control(at: u64) -> ContentFault {
    ContentFault::Json(malformed(&format!("a control character stands at byte {at}")))
}

fn not_base64(fault: base64::Base64Fault, at: u64) -> ContentFault {
    let said = match fault {
        base64::Base64Fault::Character(byte @ b'!'..=b'~') => {
            format!("is not base64: it holds {}", char::from(byte)).into()
        }
        base64::Base64Fault::Character(byte) => format!("is not base64: it holds 0x{byte:02x}").into(),
        base64::Base64Fault::Padding => "is not base64: a padding = stands where none can be".into(),
        base64::Base64Fault::Cut => "is not whole base64: its last group is cut".into(),
        base64::Base64Fault::TrailingBits => "is not base64: its last character has unused bits that are set".into(),
    };
    ContentFault::Media(said, Some(at))
}
