//! Splits a file of SQL, such as a dump by `mariadb-dump`, `mysqldump` or phpMyAdmin, into statements as MariaDB would,
//! and finds what the statements do with databases. Knows `DELIMITER`, but no other command of a client.

use super::definer::SqlReader;

/// Enough to decide what follows: a delimiter or the word DELIMITER.
const LOOKED_AT_BYTES: usize = 32;

const DELIMITER_MAX_BYTES: usize = 16;

#[derive(Debug, PartialEq, Eq)]
pub struct ScriptStatement {
    pub line: usize,
    pub text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quoting {
    pub ansi: bool,
    pub no_escapes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    Code,
    Quote(u8),
    LineComment,
    Comment,
}

#[derive(Debug)]
pub struct Script {
    buffer: Vec<u8>,
    at: usize,
    code_at: Option<usize>,
    line: usize,
    state: ScanState,
    delimiter: Vec<u8>,
    pub quoting: Quoting,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            at: 0,
            code_at: None,
            line: 1,
            state: ScanState::Code,
            delimiter: b";".to_vec(),
            quoting: Quoting::default(),
        }
    }
}

impl Script {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    pub fn waiting_line(&self) -> usize {
        self.line + newlines(&self.buffer[..self.code_at.unwrap_or(0)])
    }

    /// Returns the next complete statement. If `ended`, the last statement needs no delimiter.
    pub fn next_statement(&mut self, ended: bool) -> Option<ScriptStatement> {
        loop {
            let rest = &self.buffer[self.at..];
            if rest.is_empty() || (!ended && rest.len() < LOOKED_AT_BYTES) {
                if rest.is_empty() && ended && self.code_at.is_some() {
                    return Some(self.take(0));
                }
                return None;
            }
            match self.state {
                ScanState::Code if self.code_at.is_none() && is_delimiter_command(rest) => {
                    let end = memchr::memchr(b'\n', rest);
                    if end.is_none() && !ended {
                        return None;
                    }
                    let line = &rest[..end.unwrap_or(rest.len())];
                    let length = line.len();
                    let delimiter = line["delimiter".len()..].trim_ascii();
                    let delimiter = &delimiter[..delimiter.len().min(DELIMITER_MAX_BYTES)];
                    if !delimiter.is_empty() {
                        self.delimiter = delimiter.to_vec();
                    }
                    self.at += length;
                }
                ScanState::Code if rest.starts_with(&self.delimiter) => {
                    let length = self.delimiter.len();
                    if self.code_at.is_some() {
                        return Some(self.take(length));
                    }
                    self.at += length;
                }
                ScanState::Code => self.read_code(),
                ScanState::Quote(quote) => self.read_quoted(quote),
                ScanState::LineComment => match memchr::memchr(b'\n', rest) {
                    Some(end) => self.skip_to(end, ScanState::Code),
                    None => self.at = self.buffer.len(),
                },
                ScanState::Comment => match memchr::memmem::find(rest, b"*/") {
                    Some(end) => self.skip_to(end + 2, ScanState::Code),
                    // The comment's end may be cut in the middle.
                    None => self.at = self.buffer.len() - usize::from(!ended),
                },
            }
        }
    }

    fn skip_to(&mut self, length: usize, state: ScanState) {
        self.at += length;
        self.state = state;
    }

    fn read_code(&mut self) {
        let (state, length) = match &self.buffer[self.at..] {
            [quote @ (b'\'' | b'"' | b'`'), ..] => (ScanState::Quote(*quote), 1),
            [b'#', ..] => (ScanState::LineComment, 1),
            // MariaDB's rule; its client wants whitespace after the sign.
            [b'-', b'-', next, ..] if *next == b' ' || next.is_ascii_control() => (ScanState::LineComment, 2),
            [b'-', b'-'] => (ScanState::LineComment, 2),
            // The content of an executable comment is code.
            [b'/', b'*', b'!', ..] | [b'/', b'*', b'M', b'!', ..] => (ScanState::Code, 3),
            [b'/', b'*', ..] => (ScanState::Comment, 2),
            [first, ..] if first.is_ascii_whitespace() => {
                self.at += 1;
                return;
            }
            _ => (ScanState::Code, 1),
        };
        if !matches!(state, ScanState::LineComment | ScanState::Comment) && self.code_at.is_none() {
            self.code_at = Some(self.at);
        }
        self.skip_to(length, state);
    }

    fn read_quoted(&mut self, quote: u8) {
        let rest = &self.buffer[self.at..];
        let escapes = quote != b'`' && !self.quoting.no_escapes && !(quote == b'"' && self.quoting.ansi);
        let found = if escapes { memchr::memchr2(quote, b'\\', rest) } else { memchr::memchr(quote, rest) };
        match found {
            None => self.at = self.buffer.len(),
            // A quote or `\` at the end of the buffer waits for the byte after it.
            Some(at) if at + 1 == rest.len() && at > 0 => self.at += at,
            Some(at) if rest[at] == b'\\' || rest.get(at + 1) == Some(&quote) => {
                self.at = (self.at + at + 2).min(self.buffer.len());
            }
            Some(at) => self.skip_to(at + 1, ScanState::Code),
        }
    }

    fn take(&mut self, delimiter: usize) -> ScriptStatement {
        let start = self.code_at.take().unwrap_or(0);
        let line = self.waiting_line() + newlines(&self.buffer[..start]);
        let text = self.buffer[start..self.at].to_vec();
        self.at += delimiter;
        self.line += newlines(&self.buffer[..self.at]);
        self.buffer.drain(..self.at);
        self.at = 0;
        self.state = ScanState::Code;
        ScriptStatement { line, text }
    }
}

fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

fn is_delimiter_command(rest: &[u8]) -> bool {
    let length = "delimiter".len();
    rest.len() > length && rest[..length].eq_ignore_ascii_case(b"delimiter") && matches!(rest[length], b' ' | b'\t')
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUse {
    None,
    Chooses(String),
    Changes,
    Drops,
    /// Changes replication, as dumps for replicas do. Only administrators may run such statements.
    SetsReplication,
}

impl DatabaseUse {
    pub fn of(statement: &[u8]) -> Self {
        let mut reader = SqlReader::new(statement);
        let mut word = || reader.word().map(<[u8]>::to_ascii_uppercase).unwrap_or_default();
        let first = word();
        match first.as_slice() {
            b"USE" => reader.name().map_or(Self::None, Self::Chooses),
            b"CREATE" | b"ALTER" | b"DROP" => {
                let mut second = word();
                if second == b"OR" {
                    word();
                    second = word();
                }
                match (first.as_slice(), matches!(second.as_slice(), b"DATABASE" | b"SCHEMA")) {
                    (_, false) => Self::None,
                    (b"DROP", true) => Self::Drops,
                    (_, true) => Self::Changes,
                }
            }
            b"SET" if mentions(statement, b"GTID_PURGED") || mentions(statement, b"SQL_LOG_BIN") => {
                Self::SetsReplication
            }
            _ => Self::None,
        }
    }
}

pub fn mentions(statement: &[u8], word: &[u8]) -> bool {
    statement.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, size: usize, quoting: Quoting) -> Vec<(usize, String)> {
        let mut script = Script { quoting, ..Script::default() };
        let mut found = Vec::new();
        let mut take = |statement: ScriptStatement| {
            found.push((statement.line, String::from_utf8_lossy(&statement.text).into_owned()));
        };
        for part in text.as_bytes().chunks(size) {
            script.push(part);
            while let Some(statement) = script.next_statement(false) {
                take(statement);
            }
        }
        while let Some(statement) = script.next_statement(true) {
            take(statement);
        }
        found
    }

    #[test]
    fn statements_end_where_mariadb_ends_them() {
        let plain = Quoting::default();
        let ansi = Quoting { ansi: true, no_escapes: false };
        let literal = Quoting { ansi: false, no_escapes: true };
        for (text, quoting, expected) in [
            ("SELECT 1; SELECT 2", plain, vec![(1, "SELECT 1"), (1, "SELECT 2")]),
            ("\n-- a;b\n# c;\nSELECT 1\n;\n/* d; */ SELECT 2;;\n", plain, vec![(4, "SELECT 1\n"), (6, "SELECT 2")]),
            (
                "SELECT ';', \"a;\\\";\", `;`` ;`, 'it''s;';X",
                plain,
                vec![(1, "SELECT ';', \"a;\\\";\", `;`` ;`, 'it''s;'"), (1, "X")],
            ),
            (
                "SELECT 1 --\u{1} ;\n + 1; SELECT 5--;1",
                plain,
                vec![(1, "SELECT 1 --\u{1} ;\n + 1"), (2, "SELECT 5--"), (2, "1")],
            ),
            (
                "DELIMITER ;;\n/*!50003 CREATE*/ /*!50003 PROCEDURE p() BEGIN SELECT 1; END */;;\ndelimiter ;\nSELECT 2;",
                plain,
                vec![(2, "/*!50003 CREATE*/ /*!50003 PROCEDURE p() BEGIN SELECT 1; END */"), (4, "SELECT 2")],
            ),
            ("DELIMITER $$\r\nCREATE x; END$$\r\nDELIMITER ;\r\nY;", plain, vec![(2, "CREATE x; END"), (4, "Y")]),
            (
                "/*M!999999\\- enable the sandbox mode */ \n/*!40101 SET x */;",
                plain,
                vec![(1, "/*M!999999\\- enable the sandbox mode */ \n/*!40101 SET x */")],
            ),
            ("SELECT \"a\\\"; SELECT 2", ansi, vec![(1, "SELECT \"a\\\""), (1, "SELECT 2")]),
            ("SELECT 'a\\'; SELECT 2", literal, vec![(1, "SELECT 'a\\'"), (1, "SELECT 2")]),
            ("SELECT 'never closed; x", plain, vec![(1, "SELECT 'never closed; x")]),
            ("-- only a comment", plain, vec![]),
            ("/* only", plain, vec![]),
            ("", plain, vec![]),
        ] {
            let expected: Vec<(usize, String)> =
                expected.into_iter().map(|(line, text)| (line, text.to_owned())).collect();
            for size in [1, 2, 3, 7, 1_000] {
                assert_eq!(split(text, size, quoting), expected, "{text:?} in parts of {size}");
            }
        }
    }

    #[test]
    fn the_use_of_databases_is_seen() {
        for (text, expected) in [
            ("USE `a``b`", DatabaseUse::Chooses("a`b".to_owned())),
            ("use shop", DatabaseUse::Chooses("shop".to_owned())),
            ("CREATE DATABASE /*!32312 IF NOT EXISTS*/ `x`", DatabaseUse::Changes),
            ("create or replace schema x", DatabaseUse::Changes),
            ("ALTER DATABASE `x` CHARACTER SET utf8mb4", DatabaseUse::Changes),
            ("/*!40000 DROP DATABASE IF EXISTS `x`*/", DatabaseUse::Drops),
            ("SET @@GLOBAL.gtid_purged=/*!80000 '+'*/ ''", DatabaseUse::SetsReplication),
            ("SET @@SESSION.SQL_LOG_BIN= 0", DatabaseUse::SetsReplication),
            ("SET NAMES utf8mb4", DatabaseUse::None),
            ("CREATE TABLE `database` (a INT)", DatabaseUse::None),
            ("INSERT INTO t VALUES ('USE x')", DatabaseUse::None),
        ] {
            assert_eq!(DatabaseUse::of(text.as_bytes()), expected, "{text}");
        }
    }
}
