//! Splits SQL text into tokens, as far as `sql` needs to distinguish them. Knows nothing of grammar.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Called(&'a str),
    Quoted(&'a str),
    Text(&'a str),
    Open,
    At,
    /// The start of an executable comment, whose content follows as tokens.
    Executable,
    Dot,
    /// A character, by byte offset, that the driver misreads unless a space follows: a `:` before a lower-case ASCII
    /// letter or `_`, or a `-` or `/` before a string, a name in backticks or a comment.
    Misread(usize),
    Other(char),
}

/// MariaDB's whitespace. To MariaDB, every non-ASCII character is part of a name.
const BLANK: [char; 6] = [' ', '\t', '\n', '\u{b}', '\u{c}', '\r'];

pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    /// The end of the last run of `-` and `/`, and whether the driver misreads the characters of the run.
    signs: (usize, bool),
}

impl<'a> Token<'a> {
    pub(super) fn word(self) -> Option<&'a str> {
        match self {
            Self::Word(word) | Self::Called(word) => Some(word),
            _ => None,
        }
    }
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, signs: (0, false) }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blank(&mut self) -> bool {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(BLANK);
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("/*!") || trimmed.starts_with("/*M!") {
                return true;
            }
            let line_comment = trimmed.starts_with('#')
                || (trimmed.starts_with("--")
                    && trimmed[2..].chars().next().is_none_or(|c| c == ' ' || c.is_ascii_control()));
            if line_comment {
                self.at += trimmed.find('\n').map_or(trimmed.len(), |end| end + 1);
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                self.at += comment.find("*/").map_or(trimmed.len(), |end| end + 4);
            } else {
                return false;
            }
        }
    }

    /// Whether the driver misreads this `-` or `/`. Each run of signs is scanned once: a text may consist of signs.
    fn misreads_sign(&mut self) -> bool {
        if self.at >= self.signs.0 {
            let rest = self.rest();
            let after = rest.trim_start_matches(['-', '/']);
            let end = self.at + rest.len() - after.len();
            self.signs = (end, after.starts_with(['\'', '"', '`', '#', '*']));
        }
        self.signs.1
    }

    /// Returns the length in bytes, with quotes. A doubled quote stands for one quote, and `\` escapes in strings.
    fn quoted_length(rest: &str, quote: u8) -> usize {
        let bytes = rest.as_bytes();
        let mut at = 1;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if quote != b'`' => at += 2,
                byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
                byte if byte == quote => return at + 1,
                _ => at += 1,
            }
        }
        bytes.len()
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if self.skip_blank() {
            self.at += 3;
            return Some(Token::Executable);
        }
        let rest = self.rest();
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        let (token, length) = match first {
            '\'' | '"' | '`' => {
                let length = Self::quoted_length(rest, first as u8);
                let inner = &rest[1..length];
                let inner = inner.strip_suffix(first).unwrap_or(inner);
                let token = match first {
                    '`' => Token::Quoted(inner),
                    _ => Token::Text(inner),
                };
                (token, length)
            }
            '(' => (Token::Open, 1),
            '@' => (Token::At, 1),
            ':' if rest[1..].starts_with(|c: char| c.is_ascii_lowercase() || c == '_') => (Token::Misread(self.at), 1),
            '-' | '/' if self.misreads_sign() => (Token::Misread(self.at), 1),
            '.' => (Token::Dot, 1),
            c if is_word(c) => {
                let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                let word = &rest[..end];
                match rest[end..].starts_with('(') {
                    true => (Token::Called(word), end),
                    false => (Token::Word(word), end),
                }
            }
            c => (Token::Other(c), c.len_utf8()),
        };
        self.at = (self.at + length).min(self.text.len());
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_splits_without_panic() {
        for text in
            ["'", "`", "\"\\", "/*", "/*!", "--", "é(", ":a", ":", "@", "#", "\\'", "日本:x", "-", "/", "-'\\é", "--é"]
        {
            let _ = Tokens::new(text).count();
        }
    }

    #[test]
    fn a_text_of_one_character_is_read_once() {
        // A quadratic scan would take very long.
        for sign in ["/", "-", "'", "\"", "`", "\\", "#", "@", ":", "(", "*", "x", "/ ", "- ", "-/", "'x", "/*!"] {
            for end in ["", "'1'", "a", "\n"] {
                let _ = Tokens::new(&(sign.repeat(100_000) + end)).count();
            }
        }
    }
}
