//! A JSON body, checked as it passes: bytes in, a verdict as soon as there is one, in constant memory.
//!
//! How a body is split into pieces changes nothing, and of several faults the first is told. Every fault of
//! a body's form is worded here, for bodies that are read whole too, so that both doors say the same. It
//! keeps nothing of what it reads: repeated keys are not found.

use super::lexer::{Lexer, Token};
use crate::admission::body_too_large;
use crate::error::{ErrorCode, Problem};
use crate::limits::{JSON_BODY_MAX_BYTES, JSON_NESTING_MAX_LEVELS};

/// The kind that a body must be of.
const OBJECT: &str = "an object";

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Value,
    FirstItem,
    ItemEnds,
    FirstKey,
    Key,
    Colon,
    MemberEnds,
    Text(Role),
    Number(Number),
    Done,
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Key,
    Value,
}

/// How far a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Number {
    fn begun_with(byte: u8) -> Self {
        match byte {
            b'-' => Self::Minus,
            b'0' => Self::Zero,
            _ => Self::Whole,
        }
    }

    /// The number with one byte more; none if that byte is not its own.
    fn with(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus | Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Self::ExponentDigits
            }
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(
            self,
            Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits
        )
    }
}

/// How far an escape is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Begun,
    /// So many digits, with this value.
    Digits(u8, u16),
    /// The first half of a pair is there, and of the second one so many bytes of `\u`.
    SecondHalf(u8),
}

/// Whether the halves of a surrogate pair must come together: in texts that are unescaped here. Those further
/// down go on as they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pairs {
    #[default]
    Whole,
    Any,
}

/// Checks one JSON body that is to be an object: [`check`](Self::check) each piece in its order, then
/// [`finish`](Self::finish).
pub struct Checker {
    lexer: Lexer,
    place: Place,
    /// The kind of the outermost value.
    top: Option<&'static str>,
    depth: usize,
    /// One bit a level, the innermost last: set for an object.
    objects: u64,
    escape: Escape,
    is_second_half: bool,
    pairs: Pairs,
    /// The bytes of a character that is split between two pieces, and where it begins.
    split: Vec<u8>,
    split_at: u64,
}

impl Default for Checker {
    fn default() -> Self {
        Self {
            lexer: Lexer::default(),
            place: Place::Value,
            top: None,
            depth: 0,
            objects: 0,
            escape: Escape::default(),
            is_second_half: false,
            pairs: Pairs::default(),
            split: Vec::new(),
            split_at: 0,
        }
    }
}

impl Checker {
    /// Checks a body that is there as a whole.
    ///
    /// # Errors
    /// As [`check`](Self::check) and [`finish`](Self::finish).
    pub fn whole(body: &[u8]) -> Result<(), Problem> {
        let mut checker = Self::default();
        checker.check(body)?;
        checker.finish()
    }

    /// Looks at the next bytes. Nothing may follow a fault.
    ///
    /// # Errors
    /// `invalid_json` for what no JSON goes on like, naming the place; `body_too_large`.
    pub fn check(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let room = (JSON_BODY_MAX_BYTES as u64).saturating_sub(self.lexer.offset());
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let mut input = &piece[..piece.len().min(room)];
        loop {
            let is_hungry = match self.place {
                Place::Text(role) => self.text(role, &mut input)?,
                Place::Number(number) => self.number(number, &mut input)?,
                _ => match self.lexer.token(&mut input)? {
                    None => true,
                    Some(token) => {
                        self.place = self.token(token)?;
                        false
                    }
                },
            };
            if is_hungry {
                break;
            }
        }
        if piece.len() > room {
            return Err(body_too_large(JSON_BODY_MAX_BYTES));
        }
        Ok(())
    }

    /// Whether it is known already that the body will be refused, though not yet for what: it is no object,
    /// and may turn out to be no JSON either.
    #[must_use]
    pub fn is_refused_in_the_end(&self) -> bool {
        self.top.is_some_and(|kind| kind != OBJECT)
    }

    /// Whether there was nothing but white space, which some operations take for no body.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        !self.lexer.has_begun() && !self.lexer.is_within_token()
    }

    /// Looks at the body as a whole.
    ///
    /// # Errors
    /// `invalid_json` for one that is empty or ended early, `invalid_body` for one that is no object.
    pub fn finish(self) -> Result<(), Problem> {
        match (self.place, self.top) {
            _ if self.lexer.is_within_token() => Err(self.lexer.ended_early()),
            (Place::Done, Some(kind)) => expect_object(kind),
            (Place::Number(number), Some(kind)) if number.may_end() && self.depth == 0 => {
                expect_object(kind)
            }
            _ if !self.lexer.has_begun() => {
                Err(Problem::new(ErrorCode::InvalidJson, "The body is empty.")
                    .with_hint("Send a JSON object."))
            }
            _ => Err(self.lexer.ended_early()),
        }
    }

    fn token(&mut self, token: Token) -> Result<Place, Problem> {
        if self.top.is_none() && token.begins_value() {
            self.top = Some(match token {
                Token::OpenObject => OBJECT,
                // As every other message on values says.
                Token::Quote => "a string",
                token => token.kind(),
            });
        }
        Ok(match (self.place, token) {
            (Place::Value | Place::FirstItem, Token::OpenObject) => self.open(1)?,
            (Place::Value | Place::FirstItem, Token::OpenList) => self.open(0)?,
            (Place::Value | Place::FirstItem, Token::Quote) => self.quote(Role::Value),
            (Place::Value | Place::FirstItem, Token::Number(byte)) => {
                Place::Number(Number::begun_with(byte))
            }
            (Place::Value | Place::FirstItem, Token::True | Token::False | Token::Null) => {
                self.behind_value()
            }
            (Place::FirstItem | Place::ItemEnds, Token::CloseList)
            | (Place::FirstKey | Place::MemberEnds, Token::CloseObject) => {
                self.depth -= 1;
                self.objects >>= 1;
                self.behind_value()
            }
            (Place::ItemEnds, Token::Comma) | (Place::Colon, Token::Colon) => Place::Value,
            (Place::MemberEnds, Token::Comma) => Place::Key,
            (Place::FirstKey | Place::Key, Token::Quote) => self.quote(Role::Key),
            (place, token) => return Err(self.lexer.unexpected(token, wanted(place))),
        })
    }

    fn open(&mut self, object: u64) -> Result<Place, Problem> {
        if self.depth == JSON_NESTING_MAX_LEVELS {
            return Err(too_deep());
        }
        self.depth += 1;
        self.objects = self.objects << 1 | object;
        Ok(match object {
            0 => Place::FirstItem,
            _ => Place::FirstKey,
        })
    }

    fn behind_value(&self) -> Place {
        match (self.depth, self.objects & 1) {
            (0, _) => Place::Done,
            (_, 0) => Place::ItemEnds,
            _ => Place::MemberEnds,
        }
    }

    fn quote(&mut self, role: Role) -> Place {
        self.pairs = match self.depth {
            0 | 1 => Pairs::Whole,
            _ => Pairs::Any,
        };
        Place::Text(role)
    }

    /// Reads on in a number; says whether more input is wanted.
    fn number(&mut self, mut number: Number, input: &mut &[u8]) -> Result<bool, Problem> {
        let mut count = 0;
        while let Some(next) = input.get(count).and_then(|byte| number.with(*byte)) {
            number = next;
            count += 1;
        }
        self.lexer.advance(input, count);
        self.place = match input.first() {
            None => Place::Number(number),
            Some(_) if number.may_end() => self.behind_value(),
            Some(_) => {
                let place = self.lexer.here();
                return Err(self
                    .lexer
                    .malformed(&format!("a number lacks a digit at {place}")));
            }
        };
        Ok(input.is_empty())
    }

    /// Reads on in a text; says whether more input is wanted.
    fn text(&mut self, role: Role, input: &mut &[u8]) -> Result<bool, Problem> {
        loop {
            if self.escape == Escape::None {
                let plain = input.iter().take_while(|byte| IS_PLAIN[**byte as usize]);
                let (run, rest) = input.split_at(plain.count());
                if !run.is_empty() {
                    self.characters(run)?;
                    self.lexer.advance(input, run.len());
                }
                if !rest.is_empty() && !self.split.is_empty() {
                    return Err(self.broken_character());
                }
            }
            let Some(&byte) = input.first() else {
                return Ok(true);
            };
            if (self.escape, byte) == (Escape::None, b'"') {
                self.lexer.advance(input, 1);
                self.place = match role {
                    Role::Key => Place::Colon,
                    Role::Value => self.behind_value(),
                };
                return Ok(false);
            }
            self.escape = self.escaped(byte)?;
            self.lexer.advance(input, 1);
        }
    }

    /// One byte of an escape, or the one that begins it.
    fn escaped(&mut self, byte: u8) -> Result<Escape, Problem> {
        Ok(match (self.escape, byte) {
            (Escape::None, b'\\') => Escape::Begun,
            (Escape::None, _) => {
                let said = format!("a control character stands at {}", self.lexer.here());
                return Err(self.lexer.malformed(&said));
            }
            (Escape::Begun, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::None,
            (Escape::Begun, b'u') => {
                self.is_second_half = false;
                Escape::Digits(0, 0)
            }
            (Escape::SecondHalf(0), b'\\') => Escape::SecondHalf(1),
            (Escape::SecondHalf(1), b'u') => {
                self.is_second_half = true;
                Escape::Digits(0, 0)
            }
            (Escape::Digits(count, value), byte) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    return Err(self.unknown_escape());
                };
                let value = value << 4 | digit as u16;
                match count {
                    0..3 => Escape::Digits(count + 1, value),
                    _ => self.unit(value)?,
                }
            }
            (Escape::SecondHalf(_), _) => return Err(self.half_a_pair()),
            (Escape::Begun, _) => return Err(self.unknown_escape()),
        })
    }

    /// A whole `\u` escape.
    fn unit(&self, value: u16) -> Result<Escape, Problem> {
        if self.pairs == Pairs::Any {
            return Ok(Escape::None);
        }
        match (self.is_second_half, value) {
            (false, 0xd800..=0xdbff) => Ok(Escape::SecondHalf(0)),
            (false, 0xdc00..=0xdfff) => Err(self.half_a_pair()),
            (true, 0xdc00..=0xdfff) | (false, _) => Ok(Escape::None),
            (true, _) => Err(self.half_a_pair()),
        }
    }

    /// Characters of a text, the last of which may be split.
    fn characters(&mut self, run: &[u8]) -> Result<(), Problem> {
        let mut read = 0;
        while !self.split.is_empty() && read < run.len() {
            self.split.push(run[read]);
            read += 1;
            match std::str::from_utf8(&self.split) {
                Ok(_) => self.split.clear(),
                Err(fault) if fault.error_len().is_some() => return Err(self.broken_character()),
                Err(_) => {}
            }
        }
        let Err(fault) = std::str::from_utf8(&run[read..]) else {
            return Ok(());
        };
        let begins = read + fault.valid_up_to();
        self.split_at = self.lexer.offset() + begins as u64;
        if fault.error_len().is_some() {
            return Err(self.broken_character());
        }
        self.split.extend_from_slice(&run[begins..]);
        Ok(())
    }

    fn broken_character(&self) -> Problem {
        Problem::new(
            ErrorCode::InvalidJson,
            format!("The body is not UTF-8: byte {} is broken.", self.split_at),
        )
    }

    fn unknown_escape(&self) -> Problem {
        let place = self.lexer.here();
        self.lexer
            .malformed(&format!("an escape that does not exist stands at {place}"))
    }

    fn half_a_pair(&self) -> Problem {
        let place = self.lexer.here();
        self.lexer
            .malformed(&format!("half a surrogate pair stands at {place}"))
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it reads is the caller's.
        f.debug_struct("Checker").finish_non_exhaustive()
    }
}

/// Bytes of a text that stand for themselves.
const IS_PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < b' ' as usize {
        plain[byte] = false;
        byte += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

/// The answer to JSON that nests too deep.
pub(super) fn too_deep() -> Problem {
    Problem::new(
        ErrorCode::InvalidJson,
        format!("The JSON nests deeper than {JSON_NESTING_MAX_LEVELS} levels."),
    )
}

fn expect_object(kind: &str) -> Result<(), Problem> {
    if kind == OBJECT {
        return Ok(());
    }
    Err(Problem::new(
        ErrorCode::InvalidBody,
        format!("The body must be one JSON object, not {kind}."),
    ))
}

/// What a place waits for, for messages.
fn wanted(place: Place) -> &'static str {
    match place {
        Place::Value | Place::Text(_) | Place::Number(_) => "a value",
        Place::FirstItem => "a value or ]",
        Place::ItemEnds => "a comma or ]",
        Place::FirstKey => "a key or }",
        Place::Key => "a key",
        Place::Colon => "a colon",
        Place::MemberEnds => "a comma or }",
        Place::Done => "the end",
    }
}

#[cfg(test)]
mod tests;
