//! An SQL expression of the caller's, which is put into parentheses. It can't leave them: strings and parentheses are
//! closed, and there is neither a comment nor a `;`. Knows nothing else of SQL.

use super::part::{Part, invalid};
use crate::error::Problem;
use crate::json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression(Box<str>);

impl Expression {
    /// Parses `{"expression": …}`.
    pub(super) fn alone(path: &str, value: Value) -> Result<Self, Problem> {
        let mut part = Part::of(path, value)?;
        let expression = Self::take(&mut part)?;
        part.end(&["expression"])?;
        Ok(expression)
    }

    pub(super) fn take(part: &mut Part) -> Result<Self, Problem> {
        let text = part.text("expression")?.ok_or_else(|| part.missing("expression"))?;
        match fault(&text) {
            None => Ok(Self(text.trim().into())),
            Some(fault) => Err(invalid(format!("{} {fault}.", part.path_of("expression")))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Strings are read as in MariaDB without the SQL mode `NO_BACKSLASH_ESCAPES`, which no session here has.
fn fault(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some("is empty");
    }
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        let next = bytes.get(at + 1);
        at += 1;
        match byte {
            b'\'' | b'"' | b'`' => match quoted_end(bytes, at, *byte) {
                Some(end) => at = end,
                None => return Some("has a quote that is not closed"),
            },
            b'(' => depth += 1,
            b')' if depth == 0 => return Some("has a closing parenthesis too many"),
            b')' => depth -= 1,
            b';' => return Some("has a ;"),
            b'#' => return Some("has a comment (#)"),
            b'-' if next == Some(&b'-') => return Some("has a comment (--); write - - for two signs"),
            b'/' if next == Some(&b'*') => return Some("has a comment (/*)"),
            b'*' if next == Some(&b'/') => return Some("has the end of a comment (*/)"),
            b'\\' => return Some("has a \\ outside of a string"),
            b'?' => return Some("has a ?, but takes no values"),
            b',' if depth == 0 => return Some("has a comma outside of parentheses"),
            _ => {}
        }
    }
    (depth > 0).then_some("has a parenthesis that is not closed")
}

/// Returns the index after the closing quote.
fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> Option<usize> {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'\\' if quote != b'`' => 2,
            byte if *byte == quote && bytes.get(at + 1) == Some(&quote) => 2,
            byte if *byte == quote => return Some(at + 1),
            _ => 1,
        };
    }
    None
}
