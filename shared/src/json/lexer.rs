//! A push lexer for JSON: turns bytes that arrive in pieces of any size into tokens.

use super::malformed;
use crate::error::Problem;
use crate::limits::UPLOAD_TEXT_MAX_BYTES;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonToken {
    OpenObject,
    CloseObject,
    OpenList,
    CloseList,
    Colon,
    Comma,
    Quote,
    True,
    False,
    Null,
    Number(u8),
}

impl JsonToken {
    pub(crate) fn begins_value(self) -> bool {
        !matches!(self, Self::CloseObject | Self::CloseList | Self::Colon | Self::Comma)
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::OpenObject | Self::CloseObject => "an object",
            Self::OpenList | Self::CloseList => "a list",
            Self::Quote => "a text",
            Self::True | Self::False => "a boolean",
            Self::Null => "null",
            Self::Number(_) => "a number",
            Self::Colon => "a colon",
            Self::Comma => "a comma",
        }
    }

    fn written(self) -> &'static str {
        match self {
            Self::OpenObject => "{",
            Self::CloseObject => "}",
            Self::OpenList => "[",
            Self::CloseList => "]",
            Self::Colon => ":",
            Self::Comma => ",",
            Self::Quote => "a text",
            Self::True => "true",
            Self::False => "false",
            Self::Null => "null",
            Self::Number(_) => "a number",
        }
    }
}

pub(crate) enum LexedText {
    Partial,
    Whole(String),
    TooLong,
}

#[derive(Default)]
pub(crate) struct Lexer {
    offset: u64,
    from: u64,
    marked: usize,
    lines: u64,
    line_from: u64,
    has_begun: bool,
    /// The incomplete token, and the number of its bytes read so far.
    word: Option<(JsonToken, usize)>,
    /// The string from its opening quote on, with escapes as written.
    text: Vec<u8>,
    is_escaped: bool,
}

impl Lexer {
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns whether a literal such as `true`, or the byte-order mark, is incomplete. Callers track strings and
    /// numbers.
    pub(crate) fn is_within_token(&self) -> bool {
        self.word.is_some() || self.is_within_mark()
    }

    fn is_within_mark(&self) -> bool {
        (1..BYTE_ORDER_MARK.len()).contains(&self.marked)
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn advance(&mut self, input: &mut &[u8], bytes: usize) {
        *input = &input[bytes..];
        self.offset += bytes as u64;
    }

    pub(crate) fn here(&self) -> String {
        self.place(self.offset)
    }

    fn place(&self, at: u64) -> String {
        match self.lines {
            0 => format!("byte {at}"),
            lines => format!("byte {at} (line {}, column {})", lines + 1, at.saturating_sub(self.line_from) + 1),
        }
    }

    /// Reads the next token; `None` if `input` ends first. Of a string or number, reads only the first byte. Fails with
    /// `invalid_json` for a byte that begins no token.
    pub(crate) fn token(&mut self, input: &mut &[u8]) -> Result<Option<JsonToken>, Problem> {
        if self.word.is_some() {
            return self.word(input);
        }
        self.mark(input);
        if self.is_within_mark() {
            return match input.is_empty() {
                true => Ok(None),
                false => Err(malformed(&format!("{} stands at byte 0", shown(0xef)))),
            };
        }
        self.skip_blanks(input);
        let Some(&first) = input.first() else {
            return Ok(None);
        };
        self.has_begun = true;
        self.from = self.offset;
        let token = match first {
            b'{' => JsonToken::OpenObject,
            b'}' => JsonToken::CloseObject,
            b'[' => JsonToken::OpenList,
            b']' => JsonToken::CloseList,
            b':' => JsonToken::Colon,
            b',' => JsonToken::Comma,
            b'-' | b'0'..=b'9' => JsonToken::Number(first),
            b'"' => {
                self.text.clear();
                self.text.push(b'"');
                JsonToken::Quote
            }
            b't' | b'f' | b'n' => {
                self.word = Some(match first {
                    b't' => (JsonToken::True, 0),
                    b'f' => (JsonToken::False, 0),
                    _ => (JsonToken::Null, 0),
                });
                return self.word(input);
            }
            other => {
                let said = format!("{} stands at {}", shown(other), self.place(self.from));
                return Err(malformed(&said));
            }
        };
        self.advance(input, 1);
        Ok(Some(token))
    }

    fn skip_blanks(&mut self, input: &mut &[u8]) {
        let mut read = 0;
        for byte in *input {
            match byte {
                b' ' | b'\t' | b'\r' => {}
                b'\n' => {
                    self.lines += 1;
                    self.line_from = self.offset + read as u64 + 1;
                }
                _ => break,
            }
            read += 1;
        }
        self.advance(input, read);
    }

    fn mark(&mut self, input: &mut &[u8]) {
        while self.offset == self.marked as u64
            && self.marked < BYTE_ORDER_MARK.len()
            && input.first() == Some(&BYTE_ORDER_MARK[self.marked])
        {
            self.marked += 1;
            self.advance(input, 1);
        }
    }

    fn word(&mut self, input: &mut &[u8]) -> Result<Option<JsonToken>, Problem> {
        while let Some((token, matched)) = self.word {
            let word = token.written().as_bytes();
            if matched == word.len() {
                self.word = None;
                return Ok(Some(token));
            }
            match input.first() {
                None => return Ok(None),
                Some(byte) if *byte == word[matched] => {
                    self.advance(input, 1);
                    self.word = Some((token, matched + 1));
                }
                Some(_) => {
                    let place = format!("an unknown word stands at {}", self.place(self.from));
                    return Err(malformed(&place));
                }
            }
        }
        Ok(None)
    }

    /// Reads more of the string that the last [`JsonToken::Quote`] began. Returns [`LexedText::TooLong`] if the string has
    /// more than [`UPLOAD_TEXT_MAX_BYTES`] bytes, counted as sent (with escapes and the opening quote). Returns
    /// `invalid_json` if the string has an invalid escape, a control character or invalid UTF-8.
    pub(crate) fn text(&mut self, input: &mut &[u8]) -> Result<LexedText, Problem> {
        while let Some(&byte) = input.first() {
            if self.text.len() > UPLOAD_TEXT_MAX_BYTES {
                return Ok(LexedText::TooLong);
            }
            self.advance(input, 1);
            self.text.push(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    return match serde_json::from_slice(&self.text) {
                        Ok(text) => Ok(LexedText::Whole(text)),
                        Err(fault) => {
                            let said = fault.to_string();
                            let said = match said.split(" at line ").next() {
                                // A `\u` escape took the closing quote for a hex digit, so serde_json found the text's
                                // end first.
                                None | Some("EOF while parsing a string") => "invalid escape",
                                Some(said) => said,
                            };
                            let place = format!("{said} in the text at {}", self.place(self.from));
                            Err(malformed(&place))
                        }
                    };
                }
                _ => {}
            }
        }
        Ok(LexedText::Partial)
    }

    pub(crate) fn unexpected(&self, token: JsonToken, wanted: &str) -> Problem {
        malformed(&format!("{} stands at {}, where {wanted} is expected", token.written(), self.place(self.from)))
    }

    pub(crate) fn ended_early(&self) -> Problem {
        malformed(&format!("it ended early, at {}", self.here()))
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("0x{byte:02x}"),
    }
}
