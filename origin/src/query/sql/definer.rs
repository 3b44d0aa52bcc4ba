//! Removes the definer from a CREATE statement, so that MariaDB takes the account that runs the statement: MariaDB
//! refuses other definers from accounts without the privilege SET USER.

use std::ops::Range;

/// The words before which a definer may stand.
const KINDS: [&[u8]; 9] =
    [b"PROCEDURE", b"FUNCTION", b"TRIGGER", b"EVENT", b"VIEW", b"PACKAGE", b"TABLE", b"SEQUENCE", b"DATABASE"];

/// Maximum words and signs that are read to find a definer; MariaDB's grammar needs about ten.
const READ_MAX_COUNT: usize = 30;

/// Overwrites the definer with spaces, also in an executable comment, so that the statement's lines stay as they are.
/// Returns its user.
pub fn blank_definer(statement: &mut [u8]) -> Option<String> {
    let (user, range) = find(statement)?;
    statement[range].fill(b' ');
    Some(user)
}

fn find(text: &[u8]) -> Option<(String, Range<usize>)> {
    let mut reader = SqlReader::new(text);
    if !reader.word()?.eq_ignore_ascii_case(b"CREATE") {
        return None;
    }
    for _ in 0..READ_MAX_COUNT {
        reader.skip_blank();
        let start = reader.at;
        let word = reader.word().unwrap_or_default();
        if word.is_empty() {
            reader.at += 1;
        } else if KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(word)) {
            return None;
        } else if word.eq_ignore_ascii_case(b"DEFINER") && reader.sign(b'=') {
            let user = reader.name()?;
            if reader.sign(b'@') {
                reader.name()?;
            } else if reader.sign(b'(') {
                reader.sign(b')');
            }
            return Some((user, start..reader.at));
        }
    }
    None
}

pub(super) struct SqlReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> SqlReader<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            self.at += match rest {
                [first, ..] if first.is_ascii_whitespace() => 1,
                [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => {
                    let mark = if rest[2] == b'M' { 4 } else { 3 };
                    mark + rest[mark..].iter().take_while(|byte| byte.is_ascii_digit()).count()
                }
                [b'*', b'/', ..] => 2,
                [b'/', b'*', ..] => memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2),
                [b'#', ..] | [b'-', b'-', b' ' | b'\t' | b'\r' | b'\n', ..] => {
                    memchr::memchr(b'\n', rest).unwrap_or(rest.len())
                }
                _ => return,
            };
        }
    }

    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        self.skip_blank();
        let rest = self.rest();
        let is_part =
            |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.') || !byte.is_ascii();
        let length = rest.iter().take_while(is_part).count();
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    fn sign(&mut self, sign: u8) -> bool {
        let before = self.at;
        self.skip_blank();
        let found = self.rest().first() == Some(&sign);
        self.at = if found { self.at + 1 } else { before };
        found
    }

    pub(super) fn name(&mut self) -> Option<String> {
        self.skip_blank();
        let quote = *self.rest().first()?;
        if !matches!(quote, b'`' | b'\'' | b'"') {
            return self.word().map(|word| String::from_utf8_lossy(word).into_owned());
        }
        let mut name = Vec::new();
        self.at += 1;
        loop {
            match self.rest() {
                [one, two, ..] if *one == quote && *two == quote => {
                    name.push(quote);
                    self.at += 2;
                }
                [one, ..] if *one == quote => {
                    self.at += 1;
                    return Some(String::from_utf8_lossy(&name).into_owned());
                }
                [one, ..] => {
                    name.push(*one);
                    self.at += 1;
                }
                [] => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definer_is_blanked_wherever_a_dump_writes_it() {
        for (text, user, rest) in [
            ("CREATE DEFINER=`a`@`b` PROCEDURE p()", "a", "CREATE PROCEDURE p()"),
            ("CREATE DEFINER=\"a\"\"x\"@\"b\" PROCEDURE \"p\"()", "a\"x", "CREATE PROCEDURE \"p\"()"),
            (
                "CREATE ALGORITHM=UNDEFINED DEFINER=`q``z`@`%` SQL SECURITY DEFINER VIEW v AS select 1",
                "q`z",
                "CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW v AS select 1",
            ),
            (
                "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER t",
                "root",
                "/*!50003 CREATE*/ /*!50017 */ /*!50003 TRIGGER t",
            ),
            ("-- x\nCREATE DEFINER = 'a' @ 'b'\nEVENT e", "a", "-- x\nCREATE EVENT e"),
            ("create or replace definer=current_user() view v", "current_user", "create or replace view v"),
            ("CREATE DEFINER=admin FUNCTION f()", "admin", "CREATE FUNCTION f()"),
        ] {
            let mut bytes = text.as_bytes().to_vec();
            assert_eq!(blank_definer(&mut bytes).as_deref(), Some(user), "{text}");
            assert_eq!(bytes.len(), text.len());
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(std::str::from_utf8(&bytes).unwrap()), words(rest));
        }
    }

    #[test]
    fn only_a_definer_before_the_kind_is_one() {
        for text in [
            "CREATE TABLE t (a INT DEFAULT 1) COMMENT 'DEFINER=`a`@`b`'",
            "CREATE PROCEDURE p() SELECT 'DEFINER=`a`@`b`'",
            "INSERT INTO t VALUES ('DEFINER=`a`@`b`')",
            "CREATE DEFINER=`a",
            "CREATE",
            "",
        ] {
            let mut bytes = text.as_bytes().to_vec();
            assert_eq!(blank_definer(&mut bytes), None, "{text}");
            assert_eq!(bytes, text.as_bytes());
        }
    }
}
