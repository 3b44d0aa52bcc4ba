//! Finds the databases that a caller's own statement would drop. MariaDB has one privilege for dropping tables and
//! databases, so grants can't protect an adopted database whose tables may be dropped. Text that the statement prepares
//! must be one parameter or literal. Stored code that it calls can't be seen (`docs/existing-database.md`).

use std::cell::LazyCell;
use std::collections::BTreeSet;

use shared::ident::{DatabaseName, folded};
use shared::json::Value;

use super::tokens::{Token, Tokens};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    names: BTreeSet<String>,
    unnamed: bool,
}

impl Dropped {
    pub fn may_be(&self, database: &DatabaseName) -> bool {
        self.unnamed || self.names(database)
    }

    pub fn names(&self, database: &DatabaseName) -> bool {
        self.names.contains(&folded(database.as_str()))
    }

    fn is_empty(&self) -> bool {
        !self.unnamed && self.names.is_empty()
    }
}

pub fn databases(text: &str, params: &[Value]) -> Option<Dropped> {
    let tokens: Vec<Token<'_>> = Tokens::new(text).collect();
    let mut dropped = named(&tokens);
    // Whether MariaDB runs an executable comment depends on its version.
    dropped.unnamed |= tokens.contains(&Token::Executable) && has_words(text);
    let is_dropping = |value: &Value| matches!(value, Value::Text(text) if has_words(text));
    let params_drop = LazyCell::new(|| params.iter().any(is_dropping));
    dropped.unnamed |= (0..tokens.len()).any(|at| match prepared(&tokens, at) {
        None => false,
        // An escape may be in the middle of a word.
        Some(Prepared::Literal(text)) => text.contains('\\') || has_words(text),
        Some(Prepared::Parameter) => *params_drop,
        Some(Prepared::Unseen) => true,
    });
    (!dropped.is_empty()).then_some(dropped)
}

fn named(tokens: &[Token<'_>]) -> Dropped {
    let mut dropped = Dropped::default();
    // No statement that drops a database has other characters between its keywords and the name.
    let words: Vec<Token<'_>> =
        tokens.iter().copied().filter(|token| !matches!(token, Token::Other(_) | Token::Misread(_))).collect();
    for at in 0..words.len() {
        let [verb, noun] = [at, at + 1].map(|at| words.get(at).copied());
        if !is_word(verb, &["DROP", "REPLACE"]) || !is_word(noun, &["DATABASE", "SCHEMA"]) {
            continue;
        }
        let condition =
            words[at + 2..].iter().take_while(|token| is_word(Some(**token), &["IF", "EXISTS", "NOT"])).count();
        match words.get(at + 2 + condition) {
            Some(Token::Word(name)) => dropped.names.insert(folded(name)),
            Some(Token::Quoted(name)) => dropped.names.insert(folded(&name.replace("``", "`"))),
            _ => {
                dropped.unnamed = true;
                continue;
            }
        };
    }
    dropped
}

enum Prepared<'a> {
    Literal(&'a str),
    Parameter,
    /// Other text, for example a variable, which may hold any statement.
    Unseen,
}

fn prepared<'a>(tokens: &[Token<'a>], index: usize) -> Option<Prepared<'a>> {
    let at = |index: usize| tokens.get(index).copied();
    let from = if is_word(at(index), &["EXECUTE"]) && is_word(at(index + 1), &["IMMEDIATE"]) {
        index + 2
    } else if is_word(at(index), &["PREPARE"]) && is_word(at(index + 2), &["FROM"]) {
        index + 3
    } else {
        return None;
    };
    let next = at(from + 1);
    let is_whole = matches!(next, None | Some(Token::Other(';'))) || is_word(next, &["USING"]);
    Some(match at(from) {
        Some(Token::Text(text)) if is_whole => Prepared::Literal(text),
        Some(Token::Other('?')) if is_whole => Prepared::Parameter,
        _ => Prepared::Unseen,
    })
}

/// Whether the text may drop a database. Includes strings and comments, which begin elsewhere in other SQL modes.
fn has_words(text: &str) -> bool {
    let has = |wanted: &[&str]| {
        text.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '_' | '$'))
            // The version of an executable comment may precede its first word without a space.
            .map(|word| word.trim_start_matches(|c: char| c.is_ascii_digit()))
            .any(|word| wanted.iter().any(|one| one.eq_ignore_ascii_case(word)))
    };
    has(&["DROP", "REPLACE"]) && has(&["DATABASE", "SCHEMA"]) || has(&["IMMEDIATE", "PREPARE"])
}

fn is_word(token: Option<Token<'_>>, words: &[&str]) -> bool {
    token.and_then(Token::word).is_some_and(|word| words.iter().any(|one| one.eq_ignore_ascii_case(word)))
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
            "EXECUTE IMMEDIATE +UNHEX('44524F50')",
            "EXECUTE IMMEDIATE 'DROP DATA' 'BASE shop' ''",
            "EXECUTE IMMEDIATE CONCAT('x', @data, 'BASE shop')",
            "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC EXECUTE IMMEDIATE ?; END' USING CONCAT('DROP DATA', 'BASE shop')",
            "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC SELECT \"\"; DROP DATABASE shop; END'",
            "EXECUTE IMMEDIATE ? COLLATE utf8mb4_bin",
            "BEGIN NOT ATOMIC PREPARE s FROM 'SELECT 1'; EXECUTE IMMEDIATE @statement; END",
            "DROP DATABASE \"shop\"",
        ] {
            assert!(drops(text), "{text}");
        }
        let shop = DatabaseName::parse("shop").unwrap();
        let params = [Value::Text("drop database shop".into())];
        let dropped = databases("EXECUTE IMMEDIATE ?", &params).unwrap();
        assert!(dropped.may_be(&shop));
    }

    #[test]
    fn names_are_compared_as_a_server_that_folds_them_compares_them() {
        for (adopted, written) in [("shopi", "shopİ"), ("shopσ", "SHOPΣ"), ("łódź", "ŁÓDŹ"), ("k", "\u{212a}")]
        {
            let dropped = databases(&format!("DROP DATABASE `{written}`"), &[]).unwrap();
            assert!(dropped.names(&DatabaseName::parse(adopted).unwrap()), "{written}");
        }
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
            "EXECUTE IMMEDIATE ?;",
            "EXECUTE IMMEDIATE \"SELECT 'it''s'\"",
            "INSERT INTO t VALUES ('how to DROP DATABASE shop')",
            "BEGIN NOT ATOMIC PREPARE s FROM 'SELECT 1'; EXECUTE s; END",
        ] {
            assert!(!drops(text), "{text}");
        }
        assert_eq!(databases("INSERT INTO t VALUES (?)", &[Value::Text("DROP DATABASE shop".into())]), None);
    }

    #[test]
    fn a_parameter_is_read_once() {
        let params = [Value::Text("x ".repeat(1_000_000).into())];
        let text = format!("BEGIN NOT ATOMIC {} END", "EXECUTE IMMEDIATE ?;".repeat(10_000));
        assert_eq!(databases(&text, &params), None);
    }
}
