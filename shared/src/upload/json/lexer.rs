//! Bytes to tokens, whatever pieces they come in. It knows JSON, and nothing of uploads.

use crate::error::{ErrorCode, Problem};
use crate::limits::UPLOAD_TEXT_MAX_BYTES;

/// Written by some programs before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    OpenObject,
    CloseObject,
    OpenList,
    CloseList,
    Colon,
    Comma,
    /// A text begins: what follows is read by [`Lexer::text`], or by whom it concerns.
    Quote,
    True,
    False,
    Null,
    /// The first byte of a number. None is ever wanted, so that the rest is not read.
    Number,
}

impl Token {
    /// Whether a value may begin with it.
    pub(super) fn begins_value(self) -> bool {
        !matches!(
            self,
            Self::CloseObject | Self::CloseList | Self::Colon | Self::Comma
        )
    }

    /// The kind of value that begins with it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::OpenObject | Self::CloseObject => "an object",
            Self::OpenList | Self::CloseList => "a list",
            Self::Quote => "a text",
            Self::True | Self::False => "a boolean",
            Self::Null => "null",
            Self::Number => "a number",
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
            Self::Number => "a number",
        }
    }
}

/// A short text, so far.
pub(super) enum Text {
    Partial,
    Whole(String),
    TooLong,
}

#[derive(Default)]
pub(super) struct Lexer {
    /// Bytes of the body that are read.
    offset: u64,
    /// Where the last token begins.
    from: u64,
    marked: usize,
    has_begun: bool,
    /// `true`, `false` or `null`, and how much of it was there.
    word: Option<(Token, usize)>,
    /// A text from its quote on, escapes as written.
    text: Vec<u8>,
    is_escaped: bool,
}

impl Lexer {
    /// Whether there was anything but white space.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Bytes of the body that are read.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes bytes off the input.
    pub(super) fn advance(&mut self, input: &mut &[u8], bytes: usize) {
        *input = &input[bytes..];
        self.offset += bytes as u64;
    }

    /// The next token; `None` if the input ends before it is whole.
    pub(super) fn token(&mut self, input: &mut &[u8]) -> Result<Option<Token>, Problem> {
        if self.word.is_some() {
            return self.word(input);
        }
        self.mark(input);
        let blanks = input.iter().take_while(|byte| b" \t\n\r".contains(byte));
        let blanks = blanks.count();
        self.advance(input, blanks);
        let Some(&first) = input.first() else {
            return Ok(None);
        };
        self.has_begun = true;
        self.from = self.offset;
        let token = match first {
            b'{' => Token::OpenObject,
            b'}' => Token::CloseObject,
            b'[' => Token::OpenList,
            b']' => Token::CloseList,
            b':' => Token::Colon,
            b',' => Token::Comma,
            b'-' | b'0'..=b'9' => Token::Number,
            b'"' => {
                self.text.clear();
                self.text.push(b'"');
                Token::Quote
            }
            b't' | b'f' | b'n' => {
                self.word = Some(match first {
                    b't' => (Token::True, 0),
                    b'f' => (Token::False, 0),
                    _ => (Token::Null, 0),
                });
                return self.word(input);
            }
            other => {
                let shown = match other {
                    b' '..=b'~' => char::from(other).to_string(),
                    _ => format!("0x{other:02x}"),
                };
                return Err(self.malformed(&format!("{shown} stands at byte {}", self.from)));
            }
        };
        self.advance(input, 1);
        Ok(Some(token))
    }

    /// Passes over a byte-order mark, or as much of one as there is.
    fn mark(&mut self, input: &mut &[u8]) {
        while self.offset == self.marked as u64
            && self.marked < BYTE_ORDER_MARK.len()
            && input.first() == Some(&BYTE_ORDER_MARK[self.marked])
        {
            self.marked += 1;
            self.advance(input, 1);
        }
    }

    fn word(&mut self, input: &mut &[u8]) -> Result<Option<Token>, Problem> {
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
                    let place = format!("an unknown word stands at byte {}", self.from);
                    return Err(self.malformed(&place));
                }
            }
        }
        Ok(None)
    }

    /// Reads on in the text that the last [`Token::Quote`] began.
    pub(super) fn text(&mut self, input: &mut &[u8]) -> Result<Text, Problem> {
        while let Some(&byte) = input.first() {
            if self.text.len() > UPLOAD_TEXT_MAX_BYTES {
                return Ok(Text::TooLong);
            }
            self.advance(input, 1);
            self.text.push(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    return match serde_json::from_slice(&self.text) {
                        Ok(text) => Ok(Text::Whole(text)),
                        Err(fault) => {
                            let said = fault.to_string();
                            let said = match said.split(" at line ").next() {
                                // The quote is there, but an escape took it for one of its digits.
                                None | Some("EOF while parsing a string") => "invalid escape",
                                Some(said) => said,
                            };
                            let place = format!("{said} in the text at byte {}", self.from);
                            Err(self.malformed(&place))
                        }
                    };
                }
                _ => {}
            }
        }
        Ok(Text::Partial)
    }

    pub(super) fn malformed(&self, said: &str) -> Problem {
        Problem::new(
            ErrorCode::InvalidJson,
            format!("The body is not valid JSON: {said}."),
        )
        .with_hint_if(
            said.contains("control character")
                .then_some("Within a text, write a line break as \\n and a tab as \\t."),
        )
    }

    pub(super) fn unexpected(&self, token: Token, wanted: &str) -> Problem {
        self.malformed(&format!(
            "{} stands at byte {}, where {wanted} is expected",
            token.written(),
            self.from
        ))
    }

    pub(super) fn ended_early(&self) -> Problem {
        self.malformed(&format!("it ended early, at byte {}", self.offset))
    }
}
