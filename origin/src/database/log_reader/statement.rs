//! What a logged statement does to followed tables: DDL changes or empties tables, and other statements change rows
//! that the log does not show. Reads only the first words of a statement, and searches it for names. In doubt, a
//! statement counts as changing a table.

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

pub(super) fn effect(statement: &[u8]) -> StatementEffect<'_> {
    use StatementEffect as Effect;
    let mut words = Words(statement);
    let first = words.next().unwrap_or_default();
    let rest = words.0.trim_ascii();
    let mut next = || words.next().unwrap_or_default();
    match upper(first).as_slice() {
        b"BEGIN" | b"START" | b"RELEASE" | b"GRANT" | b"REVOKE" | b"FLUSH" | b"ANALYZE" | b"OPTIMIZE" | b"CHECK"
        | b"INSTALL" | b"UNINSTALL" | b"RESET" | b"PURGE" | b"CHANGE" | b"STOP" => Effect::Nothing,
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
        b"SET" => match upper(next()).as_slice() {
            b"STATEMENT" => Effect::Tables { empties: has_word(statement, b"TRUNCATE") },
            _ => Effect::Nothing,
        },
        b"TRUNCATE" => Effect::Tables { empties: true },
        b"REPAIR" => Effect::Tables { empties: false },
        b"RENAME" if upper(next()) == b"TABLE" => Effect::Tables { empties: false },
        b"RENAME" => Effect::Nothing,
        verb @ (b"CREATE" | b"ALTER" | b"DROP") => definition(statement, verb, words),
        _ => Effect::Rows,
    }
}

fn definition<'a>(statement: &[u8], verb: &[u8], words: Words<'a>) -> StatementEffect<'a> {
    for word in words {
        match upper(word).as_slice() {
            b"TEMPORARY" => return StatementEffect::Nothing,
            b"TABLE" | b"TABLES" | b"SEQUENCE" => {
                return StatementEffect::Tables { empties: has_word(statement, b"TRUNCATE") };
            }
            b"DATABASE" | b"SCHEMA" if verb == b"DROP" => return StatementEffect::DropsDatabase,
            b"DATABASE" | b"SCHEMA" | b"INDEX" | b"VIEW" | b"TRIGGER" | b"PROCEDURE" | b"FUNCTION" | b"EVENT"
            | b"USER" | b"ROLE" | b"SERVER" | b"PACKAGE" => return StatementEffect::Nothing,
            _ => {}
        }
    }
    StatementEffect::Tables { empties: false }
}

/// Whether the word, a name or a keyword, is in the statement outside of strings and comments. Ignores the case.
pub(super) fn has_word(statement: &[u8], word: &[u8]) -> bool {
    Words(statement).any(|found| found.eq_ignore_ascii_case(word))
        // `Words` splits names with special characters, and only the case of ASCII letters is ignored. Such names are
        // searched as bytes, also in strings and comments.
        || (!word.iter().all(|byte| is_word(*byte) && byte.is_ascii()) && memchr::memmem::find(statement, word).is_some())
}

fn upper(word: &[u8]) -> Vec<u8> {
    word.to_ascii_uppercase()
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// The words of a statement. Skips strings in single quotes, and comments, except the statements in `/*! … */`. The
/// words in other quotes count, since they may be names.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let (first, rest) = self.0.split_first()?;
            let after = |end: &[u8], rest: &'a [u8]| {
                memchr::memmem::find(rest, end).map_or(&[][..], |at| &rest[at + end.len()..])
            };
            self.0 = match (first, rest) {
                (b'/', [b'*', b'!', rest @ ..] | [b'*', b'M', b'!', rest @ ..]) => {
                    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    &rest[digits..]
                }
                (b'/', [b'*', rest @ ..]) => after(b"*/", rest),
                (b'#', rest) => after(b"\n", rest),
                (b'-', [b'-', space, ..]) if space.is_ascii_control() || *space == b' ' => after(b"\n", rest),
                (b'\'', rest) => after_string(rest),
                (first, _) if is_word(*first) => {
                    let length = self.0.iter().take_while(|byte| is_word(**byte)).count();
                    let (word, rest) = self.0.split_at(length);
                    self.0 = rest;
                    return Some(word);
                }
                _ => rest,
            };
        }
    }
}

/// Returns the text after a string. At a doubled quote, one string ends and another one begins, which skips the same
/// text.
fn after_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\'', b'\\', rest) {
        if rest[at] == b'\'' {
            return &rest[at + 1..];
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
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
            ("rename user a to b", Effect::Nothing),
            ("drop database d", Effect::DropsDatabase),
            ("create schema d", Effect::Nothing),
            ("SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD x int", tables(false)),
            ("insert into t values (1)", Effect::Rows),
            ("-- x\ncall p()", Effect::Rows),
            ("", Effect::Rows),
        ] {
            assert_eq!(effect(statement.as_bytes()), expected, "{statement}");
        }
    }

    #[test]
    fn names_are_found_outside_of_strings_and_comments() {
        let statement =
            b"ALTER TABLE `shop`.`ord``ers` /* t1 */ ADD x int COMMENT 'it''s t2 \\' t3' -- t4\n, ADD \"t5\" int";
        for (word, found) in [
            ("shop", true),
            ("SHOP", true),
            ("ord``ers", true),
            ("t1", false),
            ("t2", false),
            ("t3", false),
            ("t4", false),
            ("t5", true),
            ("ord", true),
            ("sho", false),
        ] {
            assert_eq!(has_word(statement, word.as_bytes()), found, "{word}");
        }
    }
}
