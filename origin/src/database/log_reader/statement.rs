//! What a logged statement does to its transaction and to followed tables: it may end or roll back the transaction,
//! change or empty tables (DDL), or change rows without logging them. The first words of the statement tell its kind;
//! names are searched in all of it. A statement of unknown kind counts as changing rows of any table.

mod databases;

pub(super) use databases::databases;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementEffect<'a> {
    Nothing,
    Savepoint(&'a [u8]),
    RollbackTo(&'a [u8]),
    Rollback,
    Commit,
    XaCommit,
    XaRollback,
    /// Changes or drops the tables that it names.
    Tables {
        empties: bool,
    },
    DropsDatabase,
    /// May change rows of any table.
    Rows,
}

pub(super) fn effect(mut statement: &[u8]) -> StatementEffect<'_> {
    use StatementEffect as Effect;
    let mut is_within = false;
    while let Some(within) = within(statement) {
        (statement, is_within) = (within, true);
    }
    match effect_of_whole(statement) {
        // Only as whole statements do these end or divide a transaction in the log.
        effect if !is_within => effect,
        effect @ (Effect::Nothing | Effect::Tables { .. } | Effect::DropsDatabase) => effect,
        _ => Effect::Rows,
    }
}

/// Returns the statement that ANALYZE or SET STATEMENT runs.
fn within(statement: &[u8]) -> Option<&[u8]> {
    let mut words = Words(statement);
    let first = upper(words.next()?);
    let after_first = words.0;
    let second = upper(words.next()?);
    match (first.as_slice(), second.as_slice()) {
        (b"ANALYZE", b"TABLE" | b"LOCAL" | b"NO_WRITE_TO_BINLOG") => None,
        (b"ANALYZE", b"FORMAT") => words.next().map(|_| words.0),
        (b"ANALYZE", _) => Some(after_first),
        (b"SET", b"STATEMENT") => words.any(|word| word.eq_ignore_ascii_case(b"FOR")).then_some(words.0),
        _ => None,
    }
}

fn effect_of_whole(statement: &[u8]) -> StatementEffect<'_> {
    use StatementEffect as Effect;
    let mut words = Words(statement);
    let first = words.next().unwrap_or_default();
    let rest = words.0.trim_ascii();
    let mut next = || words.next().unwrap_or_default();
    match upper(first).as_slice() {
        b"BEGIN" | b"START" | b"RELEASE" | b"SET" | b"GRANT" | b"REVOKE" | b"FLUSH" | b"ANALYZE" | b"OPTIMIZE"
        | b"CHECK" | b"INSTALL" | b"UNINSTALL" | b"RESET" | b"PURGE" | b"CHANGE" | b"STOP" => Effect::Nothing,
        b"COMMIT" => Effect::Commit,
        b"SAVEPOINT" => Effect::Savepoint(rest),
        b"ROLLBACK" => match upper(next()).as_slice() {
            b"TO" => Effect::RollbackTo(words.0.trim_ascii()),
            _ => Effect::Rollback,
        },
        b"XA" => match upper(next()).as_slice() {
            b"COMMIT" => Effect::XaCommit,
            b"ROLLBACK" => Effect::XaRollback,
            _ => Effect::Nothing,
        },
        b"TRUNCATE" => Effect::Tables { empties: true },
        b"REPAIR" => Effect::Tables { empties: false },
        b"RENAME" if upper(next()) == b"USER" => Effect::Nothing,
        b"RENAME" => Effect::Tables { empties: false },
        verb @ (b"CREATE" | b"ALTER" | b"DROP") => definition(statement, verb, words),
        _ => Effect::Rows,
    }
}

fn definition<'a>(statement: &[u8], verb: &[u8], words: Words<'a>) -> StatementEffect<'a> {
    let mut drops = verb == b"DROP";
    for word in words {
        match upper(word).as_slice() {
            b"REPLACE" => drops = true,
            b"TEMPORARY" => return StatementEffect::Nothing,
            b"TABLE" | b"TABLES" | b"SEQUENCE" => {
                return StatementEffect::Tables { empties: has_word(statement, b"TRUNCATE") };
            }
            b"DATABASE" | b"SCHEMA" if drops => return StatementEffect::DropsDatabase,
            b"DATABASE" | b"SCHEMA" | b"INDEX" | b"VIEW" | b"TRIGGER" | b"PROCEDURE" | b"FUNCTION" | b"EVENT"
            | b"USER" | b"ROLE" | b"SERVER" | b"PACKAGE" => return StatementEffect::Nothing,
            _ => {}
        }
    }
    StatementEffect::Tables { empties: false }
}

fn has_word(statement: &[u8], word: &[u8]) -> bool {
    Words(statement).any(|found| found.eq_ignore_ascii_case(word))
}

/// A name in a statement. Keywords count as names.
pub(super) struct Name<'a> {
    /// What stands before the dot before the name.
    pub(super) qualifier: Option<Cow<'a, [u8]>>,
    pub(super) name: Cow<'a, [u8]>,
    /// The number of open parentheses. In parentheses, definitions name columns.
    pub(super) depth: i32,
}

/// The names in a statement, in their order. Strings have none, if `sql_mode` is the session's.
pub(super) fn names(statement: &[u8], sql_mode: u64) -> Names<'_> {
    Names { tokens: Tokens { rest: statement, sql_mode }, before: None, dotted: false, depth: 0 }
}

pub(super) struct Names<'a> {
    tokens: Tokens<'a>,
    before: Option<Cow<'a, [u8]>>,
    dotted: bool,
    /// The number of open parentheses; 0 after a statement whose parentheses are balanced.
    pub(super) depth: i32,
}

impl<'a> Iterator for Names<'a> {
    type Item = Name<'a>;

    fn next(&mut self) -> Option<Name<'a>> {
        loop {
            let name = match self.tokens.next()? {
                Token::Word(word) => Some(Cow::Borrowed(word)),
                Token::Name(name) => Some(name),
                Token::Other(b'.') if self.before.is_some() => {
                    self.dotted = true;
                    continue;
                }
                Token::Other(byte) if byte.is_ascii_whitespace() => continue,
                Token::Other(byte @ (b'(' | b')')) => {
                    self.depth += if byte == b'(' { 1 } else { -1 };
                    None
                }
                Token::Other(_) => None,
            };
            let Some(name) = name else {
                (self.before, self.dotted) = (None, false);
                continue;
            };
            let qualifier = self.before.take().filter(|_| std::mem::take(&mut self.dotted));
            self.before = Some(name.clone());
            return Some(Name { qualifier, name, depth: self.depth });
        }
    }
}

fn upper(word: &[u8]) -> Vec<u8> {
    word.to_ascii_uppercase()
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// The unquoted words of a statement: keywords and simple names.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut tokens = Tokens { rest: self.0, sql_mode: 0 };
        let word = tokens.find_map(|token| match token {
            Token::Word(word) => Some(word),
            Token::Name(_) | Token::Other(_) => None,
        });
        self.0 = tokens.rest;
        word
    }
}

enum Token<'a> {
    /// A keyword, or a name without quotes.
    Word(&'a [u8]),
    /// A name in quotes, without them.
    Name(Cow<'a, [u8]>),
    Other(u8),
}

/// Skips strings and comments, but not the statements in `/*! … */`.
struct Tokens<'a> {
    rest: &'a [u8],
    sql_mode: u64,
}

const ANSI_QUOTES: u64 = 4;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let (first, rest) = self.rest.split_first()?;
            let after = |end: &[u8], rest: &'a [u8]| {
                memchr::memmem::find(rest, end).map_or(&[][..], |at| &rest[at + end.len()..])
            };
            self.rest = match (first, rest) {
                (b'/', [b'*', b'!', rest @ ..] | [b'*', b'M', b'!', rest @ ..]) => {
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    &rest[digits..]
                }
                (b'/', [b'*', rest @ ..]) => after(b"*/", rest),
                (b'#', rest) => after(b"\n", rest),
                (b'-', [b'-', space, ..]) if space.is_ascii_control() || *space == b' ' => after(b"\n", rest),
                (b'"', rest) if self.sql_mode & ANSI_QUOTES == 0 => self.after_string(b'"', rest),
                (b'\'', rest) => self.after_string(b'\'', rest),
                (quote @ (b'`' | b'"'), rest) => {
                    let (name, rest) = quoted(*quote, rest);
                    self.rest = rest;
                    return Some(Token::Name(name));
                }
                (first, _) if is_word(*first) => {
                    let length = self.rest.iter().take_while(|byte| is_word(**byte)).count();
                    let (word, rest) = self.rest.split_at(length);
                    self.rest = rest;
                    return Some(Token::Word(word));
                }
                (first, rest) => {
                    self.rest = rest;
                    return Some(Token::Other(*first));
                }
            };
        }
    }
}

impl Tokens<'_> {
    /// A doubled quote begins a new string, which has the same effect.
    fn after_string<'a>(&self, quote: u8, text: &'a [u8]) -> &'a [u8] {
        let escape = if self.sql_mode & NO_BACKSLASH_ESCAPES == 0 { b'\\' } else { quote };
        let mut rest = text;
        while let Some(at) = memchr::memchr2(quote, escape, rest) {
            if rest[at] == quote {
                return &rest[at + 1..];
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        &[]
    }
}

/// Returns a quoted name, and what comes after it.
fn quoted(quote: u8, text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut name = Cow::Borrowed(&[][..]);
    let mut rest = text;
    while let Some(at) = memchr::memchr(quote, rest) {
        let is_doubled = rest.get(at + 1) == Some(&quote);
        let part = &rest[..at + usize::from(is_doubled)];
        match name.is_empty() {
            true => name = part.into(),
            false => name.to_mut().extend_from_slice(part),
        }
        rest = rest.get(at + 1 + usize::from(is_doubled)..).unwrap_or_default();
        if !is_doubled {
            return (name, rest);
        }
    }
    (name, &[])
}

#[cfg(test)]
mod tests {
    use super::StatementEffect as Effect;
    use super::*;

    #[test]
    fn the_first_words_tell_the_effect() {
        let tables = |empties| Effect::Tables { empties };
        for (statement, expected) in [
            ("COMMIT", Effect::Commit),
            ("SAVEPOINT `a`", Effect::Savepoint(b"`a`")),
            ("ROLLBACK TO `a b`", Effect::RollbackTo(b"`a b`")),
            ("ROLLBACK", Effect::Rollback),
            ("XA COMMIT X'78',X'',1", Effect::XaCommit),
            ("XA END X'78',X'',1", Effect::Nothing),
            ("truncate t", tables(true)),
            ("alter table t truncate partition p", tables(true)),
            ("ALTER TABLE t ADD x int COMMENT 'truncate'", tables(false)),
            ("/* drop */ ALTER /*!50100 ONLINE */ TABLE t ADD x int", tables(false)),
            ("CREATE OR REPLACE TABLE `s` (a int)", tables(false)),
            ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS t", Effect::Nothing),
            ("DROP TABLE `s` /* generated by server */", tables(false)),
            ("CREATE UNIQUE INDEX i ON t (v)", Effect::Nothing),
            (
                "CREATE DEFINER=`root`@`localhost` TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @table = 1",
                Effect::Nothing,
            ),
            ("rename table a to b", tables(false)),
            ("RENAME TABLES a TO b", tables(false)),
            ("rename user a to b", Effect::Nothing),
            ("drop database d", Effect::DropsDatabase),
            ("create schema d", Effect::Nothing),
            ("create or replace schema d", Effect::DropsDatabase),
            ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD x int", tables(false)),
            ("set statement max_statement_time=1 for truncate t", tables(true)),
            ("SET STATEMENT max_statement_time=1 FOR DROP DATABASE d", Effect::DropsDatabase),
            ("SET STATEMENT max_statement_time=1 FOR UPDATE t SET v = 1", Effect::Rows),
            ("SET STATEMENT max_statement_time=1 FOR COMMIT", Effect::Rows),
            ("SET PASSWORD FOR u = 'a'", Effect::Nothing),
            ("ANALYZE NO_WRITE_TO_BINLOG TABLE t", Effect::Nothing),
            ("ANALYZE TABLE t PERSISTENT FOR ALL", Effect::Nothing),
            ("ANALYZE UPDATE t SET v = 1", Effect::Rows),
            ("ANALYZE FORMAT=JSON DELETE FROM t", Effect::Rows),
            ("insert into t values (1)", Effect::Rows),
            ("-- x\ncall p()", Effect::Rows),
            ("", Effect::Rows),
        ] {
            assert_eq!(effect(statement.as_bytes()), expected, "{statement}");
        }
    }

    #[test]
    fn names_are_found_outside_of_strings_and_comments() {
        let shown = |statement: &str, mode| -> Vec<String> {
            let text = |name: Cow<'_, [u8]>| String::from_utf8_lossy(&name).into_owned();
            let found = names(statement.as_bytes(), mode);
            found
                .map(|Name { qualifier, name, depth }| {
                    let qualifier = qualifier.map(text).map_or_else(String::new, |it| it + ".");
                    "(".repeat(usize::try_from(depth).unwrap()) + &qualifier + &text(name)
                })
                .collect()
        };
        for (statement, mode, expected) in [
            ("DROP TABLE `it's`,`a#b`.`x``y` /* z */", 0, "DROP TABLE it's a#b a#b.x`y"),
            ("rename s . /* s.u */ t to v", 0, "rename s s.t to v"),
            ("ALTER t COMMENT 'it''s s.u \\' s.w' -- s.x\n, b", 0, "ALTER t COMMENT b"),
            ("ALTER t COMMENT '\\', b \"s.u\"", NO_BACKSLASH_ESCAPES, "ALTER t COMMENT b"),
            ("ALTER t \"s.u\" \"it\\\" s.w\", b", 0, "ALTER t b"),
            ("ALTER \"s\".\"t\" ADD s int, ADD u int", ANSI_QUOTES, "ALTER s s.t ADD s int ADD u int"),
            ("/*!50701 ALTER*/ .t /*M! x */ `", 0, "ALTER t x "),
            ("a(b.c, (d)) e", 0, "a (b (b.c ((d e"),
            ("", 0, ""),
        ] {
            assert_eq!(shown(statement, mode).join(" "), expected, "{statement}");
        }
    }
}
