//! Finds the databases that a caller's own statement would drop, as far as its text shows.
//!
//! MariaDB has one privilege for dropping tables and databases, so grants can't protect an adopted database (one that
//! existed before it was given to the project) whose tables may be dropped. This module looks for `DROP DATABASE` and
//! `CREATE OR REPLACE DATABASE` (or `SCHEMA`) in the statement, in the body of a routine or event that it creates, and
//! in its strings and parameters, which it may prepare. Stored code that a statement calls can't be seen
//! (`docs/existing-database.md`).

use std::collections::BTreeSet;

use shared::ident::DatabaseName;
use shared::json::Value;

use super::tokens::{Token, Tokens};

/// The maximum depth to which strings within strings are searched. A statement in a deeper string is not found.
const NESTING_MAX: usize = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The names of the databases that the statement drops, in lower case.
    names: BTreeSet<String>,
    /// Whether the statement may drop a database whose name its text does not show.
    unnamed: bool,
}

impl Dropped {
    /// Returns whether the statement may drop this database. Ignores case, since some servers do.
    #[must_use]
    pub fn may_be(&self, database: &DatabaseName) -> bool {
        self.unnamed || self.names(database)
    }

    /// Returns whether the statement's text names this database as one to drop.
    #[must_use]
    pub fn names(&self, database: &DatabaseName) -> bool {
        self.names.contains(&database.as_str().to_lowercase())
    }

    fn is_empty(&self) -> bool {
        !self.unnamed && self.names.is_empty()
    }
}

/// Returns the databases that a statement may drop; `None` if neither its text nor its parameters show that it may drop
/// any.
#[must_use]
pub fn databases(text: &str, params: &[Value]) -> Option<Dropped> {
    let mut dropped = Dropped::default();
    scan(text, NESTING_MAX, &mut dropped);
    for value in params {
        if let Value::Text(text) = value {
            scan(text, NESTING_MAX, &mut dropped);
        }
    }
    (!dropped.is_empty()).then_some(dropped)
}

fn scan(text: &str, depth: usize, dropped: &mut Dropped) {
    let tokens: Vec<Token<'_>> = Tokens::new(text).collect();
    if tokens.contains(&Token::Executable) {
        conditional(&tokens, dropped);
    } else {
        plain(&tokens, dropped);
        dropped.unnamed |= prepares_unseen_text(&tokens);
    }
    if depth == 0 {
        return;
    }
    let strings: Vec<String> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Text(inner) => Some(unescaped(inner)),
            _ => None,
        })
        .collect();
    for string in &strings {
        scan(string, depth - 1, dropped);
    }
    // The statement may join its strings, as in `CONCAT('DROP DATA', 'BASE shop')` or by writing them side by side.
    // Only the join of all strings is searched, not that of some of them.
    if strings.len() > 1 {
        scan(&strings.concat(), depth - 1, dropped);
    }
}

/// Finds the databases that a text without executable comments drops: their names follow the keywords.
fn plain(tokens: &[Token<'_>], dropped: &mut Dropped) {
    // No statement that drops a database has other characters between its keywords and the name.
    let words: Vec<Token<'_>> =
        tokens.iter().copied().filter(|token| !matches!(token, Token::Other | Token::Misread(_))).collect();
    for at in 0..words.len() {
        let [verb, noun] = [at, at + 1].map(|at| words.get(at).copied());
        if !is_word(verb, &["DROP", "REPLACE"]) || !is_word(noun, &["DATABASE", "SCHEMA"]) {
            continue;
        }
        let condition =
            words[at + 2..].iter().take_while(|token| is_word(Some(**token), &["IF", "EXISTS", "NOT"])).count();
        match words.get(at + 2 + condition) {
            Some(Token::Word(name)) => dropped.names.insert(name.to_lowercase()),
            Some(Token::Quoted(name)) => dropped.names.insert(name.replace("``", "`").to_lowercase()),
            // With the SQL mode ANSI_QUOTES, text in double quotes is a name.
            Some(Token::Text(name)) => dropped.names.insert(unescaped(name).to_lowercase()),
            _ => {
                dropped.unnamed = true;
                continue;
            }
        };
    }
}

/// Returns whether `EXECUTE IMMEDIATE` or `PREPARE … FROM` takes anything but one string literal or parameter: a
/// variable, a hexadecimal literal or an expression may hold any statement.
fn prepares_unseen_text(tokens: &[Token<'_>]) -> bool {
    let at = |index: usize| tokens.get(index).copied();
    (0..tokens.len()).any(|index| {
        let from = if is_word(at(index), &["EXECUTE"]) && is_word(at(index + 1), &["IMMEDIATE"]) {
            index + 2
        } else if is_word(at(index), &["PREPARE"]) && is_word(at(index + 2), &["FROM"]) {
            index + 3
        } else {
            return false;
        };
        let behind = (at(from + 1), at(from + 2));
        match at(from) {
            // A literal or `?` is the whole text, unless `||` follows, which is two tokens (`;` is one). A `?` is not
            // told from other characters that are [`Token::Other`], such as `+`.
            Some(Token::Text(_) | Token::Other) => {
                matches!(behind, (Some(Token::Other), Some(Token::Other)))
            }
            _ => true,
        }
    })
}

/// Sets [`Dropped::unnamed`] if a text with executable comments has the keywords that drop a database or prepare a
/// statement, in any place: whether MariaDB runs such a comment depends on its version.
fn conditional(tokens: &[Token<'_>], dropped: &mut Dropped) {
    let has = |words: &[&str]| {
        tokens.iter().any(|token| match token {
            // A version may precede the first word, perhaps without a space.
            Token::Word(word) => {
                let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
                is_word(Some(Token::Word(word)), words)
            }
            _ => false,
        })
    };
    dropped.unnamed |= has(&["DROP", "REPLACE"]) && has(&["DATABASE", "SCHEMA"]);
    dropped.unnamed |= has(&["IMMEDIATE", "PREPARE"]);
}

fn is_word(token: Option<Token<'_>>, words: &[&str]) -> bool {
    token.and_then(Token::word).is_some_and(|word| words.iter().any(|one| one.eq_ignore_ascii_case(word)))
}

/// Returns the text of a string literal. Every escape for whitespace or a control character becomes a space.
fn unescaped(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('0' | 'b' | 'n' | 'r' | 't' | 'Z') | None => text.push(' '),
                Some(other) => text.push(other),
            },
            '\'' | '"' if characters.peek() == Some(&c) => {
                characters.next();
                text.push(c);
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drops(text: &str) -> bool {
        let shop = DatabaseName::parse("shop").unwrap();
        databases(text, &[]).is_some_and(|dropped| dropped.may_be(&shop))
    }

    #[test]
    fn a_database_that_is_dropped_is_seen_in_every_form() {
        for text in [
            "DROP DATABASE shop",
            "drop schema if exists `SHOP`",
            "DROP/**/DATABASE -- x\n shop",
            "DROP DATABASE # x\n IF EXISTS /* y */ shop",
            "CREATE OR REPLACE DATABASE shop",
            "CREATE OR REPLACE SCHEMA `shop` CHARACTER SET utf8mb4",
            "/*!50000 DROP DATABASE shop */",
            "/*!100000DROP*/ DATABASE shop",
            "DROP /*M! DATABASE */ shop",
            "DROP DATABASE /*!999999 other */ shop",
            "DROP /*!999999 TABLE */ DATABASE shop",
            "EXECUTE IMMEDIATE 'DROP DATABASE shop'",
            "EXECUTE IMMEDIATE 'DROP DATABASE IF\\nEXISTS shop'",
            "EXECUTE IMMEDIATE 'DROP DATA\\BASE shop'",
            "EXECUTE IMMEDIATE 'DROP DATABASE' ' shop'",
            "EXECUTE IMMEDIATE CONCAT('DR', 'OP DATABASE ', 'shop')",
            "EXECUTE IMMEDIATE CONCAT('DROP DATABASE ', ?)",
            "PREPARE s FROM \"DROP DATABASE `shop`\"",
            "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR EXECUTE IMMEDIATE 'DROP DATABASE \"shop\"'",
            "EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''DROP DATABASE shop'''",
            "CREATE PROCEDURE p() DROP DATABASE shop",
            "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DROP DATABASE shop",
            "BEGIN NOT ATOMIC IF 1 THEN DROP DATABASE shop; END IF; END",
            "CREATE PROCEDURE p() EXECUTE IMMEDIATE 'DROP DATABASE shop'",
            "EXECUTE IMMEDIATE 0x44524f502044415441424153452073686f70",
            "EXECUTE IMMEDIATE X'44524f50'",
            "EXECUTE IMMEDIATE _utf8mb4 X'44524f50'",
            "EXECUTE IMMEDIATE @statement",
            "EXECUTE IMMEDIATE(UNHEX('44524F50'))",
            "PREPARE s FROM(@statement)",
            "PREPARE s FROM @statement",
            "EXECUTE IMMEDIATE REVERSE('pohs ESABATAD PORD')",
            "BEGIN NOT ATOMIC DECLARE d VARCHAR(99) DEFAULT 'x'; EXECUTE IMMEDIATE CONCAT('DROP ', d); END",
            "SET STATEMENT sql_mode = 'PIPES_AS_CONCAT' FOR EXECUTE IMMEDIATE 'DROP ' || d",
            "/*!50000 EXECUTE IMMEDIATE */ @statement",
        ] {
            assert!(drops(text), "{text}");
        }
        let shop = DatabaseName::parse("shop").unwrap();
        let params = [Value::Text("drop database shop".into())];
        let dropped = databases("EXECUTE IMMEDIATE ?", &params).unwrap();
        assert!(dropped.may_be(&shop));
    }

    #[test]
    fn another_database_and_other_statements_are_none_of_it() {
        for text in [
            "DROP DATABASE shop_2",
            "DROP DATABASE `sho p`",
            "DROP TABLE shop.t",
            "DROP TABLE t -- DATABASE shop",
            "CREATE OR REPLACE TABLE shop.t (a INT)",
            "BEGIN NOT ATOMIC DROP TABLE t; SELECT DATABASE(), 'shop'; END",
            "CALL drop_database('shop')",
            "ALTER DATABASE shop CHARACTER SET utf8mb4",
            "/*!50000 DROP TABLE shop.t */",
            "EXECUTE IMMEDIATE 'DROP TABLE t'",
            "EXECUTE IMMEDIATE 'SELECT ?' USING 1",
            "EXECUTE IMMEDIATE ? USING 1",
            "BEGIN NOT ATOMIC PREPARE s FROM 'SELECT 1'; EXECUTE s; END",
        ] {
            assert!(!drops(text), "{text}");
        }
    }
}
