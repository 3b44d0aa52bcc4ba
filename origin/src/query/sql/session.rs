//! Classifies users' own SQL by its text. Refuses nothing, but `http/sql.rs` checks only [`Schema::Changed`] for
//! [`drops`](super::drops). Cautious: an unknown function costs a connection reset, but never leaks session state. Does
//! not see what views and triggers call: the caller looks for views by [`names_any`], and statements that run triggers
//! are never stateless.

mod words;

use self::words::{FUNCTIONS, KEYWORDS};
use super::tokens::{Token, Tokens};
use crate::query::plan::Param;
use shared::ident::folded;
use shared::json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    pub session: Session,
    pub schema: Schema,
    pub results: Results,
    /// Whether a result may have more than 65,535 columns.
    pub is_wide: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    Stateless,
    /// Runs in a session without the state of earlier statements; the session is reset afterwards.
    Stateful,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    Unchanged,
    /// May change the schema, so cached descriptions expire. All statements that can drop a database must be `Changed`.
    Changed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    One,
    /// CALL and compound statements return any number of result sets.
    Any,
}

pub fn effects(text: &str) -> Option<Effects> {
    let mut words = Tokens::new(text).filter_map(|token| match token {
        // An executable comment may contain anything.
        Token::Executable => Some(""),
        token => token.word(),
    });
    let first = words.next()?;
    let reads = is_one_of(&READS, first);
    let writes = is_one_of(&WRITES, first);
    // SET STATEMENT … FOR runs any statement.
    let sets = first.eq_ignore_ascii_case("SET")
        && !words.next().is_some_and(|word| word.is_empty() || word.eq_ignore_ascii_case("STATEMENT"));
    Some(Effects {
        session: if reads && is_stateless(text) { Session::Stateless } else { Session::Stateful },
        schema: if reads || writes || sets || is_one_of(&SCHEMA_KEEPING, first) {
            Schema::Unchanged
        } else {
            Schema::Changed
        },
        results: if reads || writes { Results::One } else { Results::Any },
        is_wide: may_exceed_columns(text),
    })
}

/// Whether the statement, by its words, only returns rows, and locks none. False for executable comments, in which words
/// are not looked for. Does not see what the account may not do anyway.
pub fn only_reads(text: &str) -> bool {
    let mut words = Tokens::new(text).filter_map(|token| match token {
        Token::Executable => Some("INTO"),
        token => token.word(),
    });
    words.next().is_some_and(|first| is_one_of(&READS, first))
        && !words.any(|word| is_one_of(&["INTO", "LOCK", "UPDATE"], word))
}

/// Only statements with these first words may be stateless; [`STATEFUL`] finds a WITH that writes.
const READS: [&str; 7] = ["SELECT", "WITH", "VALUES", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"];
const WRITES: [&str; 4] = ["INSERT", "UPDATE", "DELETE", "REPLACE"];
/// These can't change the schema, even by stored code. PREPARE runs nothing, and the reset of the session after the
/// statement discards what it has prepared.
const SCHEMA_KEEPING: [&str; 22] = [
    "ANALYZE",
    "CHECK",
    "CHECKSUM",
    "COMMIT",
    "DEALLOCATE",
    "DO",
    "FLUSH",
    "HANDLER",
    "HELP",
    "KILL",
    "LOAD",
    "LOCK",
    "OPTIMIZE",
    "PREPARE",
    "RELEASE",
    "REPAIR",
    "ROLLBACK",
    "SAVEPOINT",
    "START",
    "TRUNCATE",
    "UNLOCK",
    "USE",
];

/// Whether `is_one` is true for a name or keyword of the text, which is passed in lower case and without quotes.
pub fn names_any(text: &str, is_one: impl Fn(&str) -> bool) -> bool {
    Tokens::new(text).any(|token| match token {
        Token::Word(word) | Token::Called(word) => is_one(&folded(word)),
        Token::Quoted(name) => is_one(&folded(&name.replace("``", "`"))),
        _ => false,
    })
}

pub fn combines_rows(text: &str) -> bool {
    const COMBINING: [&str; 4] = ["OVER", "UNION", "EXCEPT", "INTERSECT"];
    let mut depth = 0;
    Tokens::new(text).any(|token| {
        match token {
            Token::Open => depth += 1,
            Token::Other(')') => depth -= 1,
            _ => {}
        }
        depth == 0 && token.word().is_some_and(|word| is_one_of(&COMBINING, word))
    })
}

/// Whether a result of the statement may have more than 65,535 columns, judged by signs and words alone: true for many
/// statements with fewer columns, false only if there can't be more.
fn may_exceed_columns(text: &str) -> bool {
    const COLUMNS_MAX_COUNT: usize = 65_535;
    /// MariaDB's maximum for a table or view.
    const TABLE_COLUMNS_MAX_COUNT: usize = 4_096;
    let count = |sign: u8| memchr::memchr_iter(sign, text.as_bytes()).count();
    let (commas, stars) = (count(b','), count(b'*'));
    // Each star stands for the columns of some of the tables, which commas and joins separate.
    let joins = || text.as_bytes().windows(4).filter(|word| word.eq_ignore_ascii_case(b"JOIN")).count();
    let tables = if stars == 0 { 0 } else { 1 + commas + joins() };
    1 + commas + stars.saturating_mul(tables).saturating_mul(TABLE_COLUMNS_MAX_COUNT) > COLUMNS_MAX_COUNT
}

const STATEFUL: [&str; 10] = [
    // `INTO @x`
    "INTO",
    "LOCK",
    "SQL_CALC_FOUND_ROWS",
    "WARNINGS",
    "ERRORS",
    // The session remembers the value of a sequence (`NEXT VALUE FOR`).
    "VALUE",
    // Newer versions of MariaDB allow them after WITH.
    "INSERT",
    "UPDATE",
    "DELETE",
    "CALL",
];

fn is_one_of(words: &[&str], word: &str) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}

fn is_stateless(text: &str) -> bool {
    let mut previous = None;
    for token in Tokens::new(text) {
        if token.word().is_some_and(|word| is_one_of(&STATEFUL, word)) {
            return false;
        }
        let harmless = match (token, previous) {
            // User and system variables, `:=`; `/*! … */` is code that looks like a comment.
            (Token::At | Token::Executable, _) => false,
            // `db.abs(1)` is a stored function, whatever its name.
            (Token::Called(_), Some(Token::Dot)) => false,
            (Token::Called(word), _) => is_one_of(FUNCTIONS, word) || is_one_of(KEYWORDS, word),
            // A name and `(` with whitespace or a comment between them.
            (Token::Open, Some(Token::Word(word))) => is_one_of(KEYWORDS, word),
            (Token::Open, Some(Token::Quoted(_))) => false,
            _ => true,
        };
        if !harmless {
            return false;
        }
        previous = Some(token);
    }
    true
}

pub(super) fn param(value: &Value) -> Param {
    match value {
        Value::Null => Param::Null,
        Value::Bool(truth) => Param::Int(i64::from(*truth)),
        Value::Text(text) => Param::Text(text.clone()),
        Value::List(text) | Value::Object(text) => Param::Text(text.clone()),
        Value::Number(text) => number(text),
    }
}

fn number(text: &str) -> Param {
    if let Ok(number) = text.parse::<i64>() {
        return Param::Int(number);
    }
    if let Ok(number) = text.parse::<u64>() {
        return Param::UInt(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number.to_string() == text => Param::Double(number),
        _ => Param::Text(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(text: &str) -> Session {
        effects(text).unwrap().session
    }

    #[test]
    fn a_statement_that_writes_locks_or_hides_words_is_no_read() {
        for text in [
            "SELECT 1",
            "(SELECT 1) UNION (SELECT `update` FROM t)",
            "with x AS (SELECT 'INTO') SELECT * FROM x -- FOR UPDATE",
            "VALUES (1)",
            "SHOW TABLES",
            "EXPLAIN SELECT 1",
            "DESC t",
        ] {
            assert!(only_reads(text), "{text}");
        }
        for text in [
            "",
            "DO 1",
            "SET @a = 1",
            "SELECT 1 INTO @a",
            "SELECT 1 FOR UPDATE",
            "SELECT 1 lock IN SHARE MODE",
            "SELECT 1 /*! FOR UPDATE */",
            "/*! SELECT */ 1",
            "EXPLAIN UPDATE t SET a = 1",
            "ANALYZE SELECT 1",
            "HANDLER t OPEN",
            "KILL 1",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "EXECUTE IMMEDIATE 'SELECT 1'",
            "CALL p()",
            "TABLE t",
        ] {
            assert!(!only_reads(text), "{text}");
        }
    }

    #[test]
    fn plain_reads_leave_nothing_behind() {
        for text in [
            "SELECT 1",
            "select count(*), max(`a`) from t where b in (1, 2) and c like '%@%' -- @x",
            "SELECT mid(a, 1), LEFT (a, 2) FROM t WHERE b NOT IN (1) AND (c) OR EXISTS(SELECT 1)",
            "WITH x AS (SELECT 1 a) SELECT a FROM x JOIN (SELECT 2 b) y ON (a < b)",
            "/* @a */ SHOW TABLES",
            "(SELECT 1) UNION (SELECT 2)",
        ] {
            assert_eq!(session(text), Session::Stateless, "{text}");
        }
    }

    #[test]
    fn whatever_may_touch_the_session_counts_as_stateful() {
        for text in [
            "SELECT @a := 1",
            "SELECT @@sql_mode",
            "SELECT GET_LOCK('x', 1)",
            "SELECT get_lock ('x', 1)",
            // Stored functions, if some have these names.
            "SELECT mid (1)",
            "SELECT mid/* */(1)",
            "SELECT mid-- x\n(1)",
            "SELECT COUNT\t(1)",
            "SELECT against(1)",
            "SELECT abs (1)",
            "WITH x AS (SELECT 1) DELETE FROM t",
            "SELECT `my_function`(1)",
            "SELECT db.f(1)",
            "SELECT db.abs(1)",
            "SELECT db . /* x */ ABS (1)",
            // To MariaDB these are names, not whitespace or signs before one of its own functions.
            "SELECT f\u{a0}ABS(1)",
            "SELECT ☃ABS(1)",
            // To MariaDB this is not a comment but a minus, another minus, and a name.
            "SELECT 1 --\u{a0}, GET_LOCK('x', 1) \n FROM (SELECT 1 AS `\u{a0}`) t",
            "SELECT 1 --\u{2028}, GET_LOCK('x', 1)",
            "SELECT LAST_INSERT_ID()",
            "SELECT 1 INTO @x",
            "SELECT /*! @a := */ 1",
            "SELECT /*M! @a := */ 1",
            "SELECT NEXT VALUE FOR s",
            "SELECT FOUND_ROWS()",
            "SHOW WARNINGS",
            "SET @a = 1",
            "USE x",
            "START TRANSACTION",
            "CREATE TEMPORARY TABLE t (a INT)",
            "INSERT INTO t VALUES (1)",
            "CALL p()",
        ] {
            assert_eq!(session(text), Session::Stateful, "{text}");
        }
    }

    #[test]
    fn names_are_found_bare_quoted_and_qualified() {
        for text in [
            "SELECT * FROM v",
            "SELECT * FROM db.V AS x",
            "SELECT * FROM a JOIN`v`USING (id)",
            "SELECT (SELECT MAX(d) FROM /* x */ `V`)",
        ] {
            assert!(names_any(text, |name| name == "v"), "{text}");
        }
        assert!(!names_any("SELECT 'v', vv, `v``` -- v", |name| name == "v"));
        assert!(names_any("SELECT * FROM `a``b`", |name| name == "a`b"));
    }

    #[test]
    fn only_windows_and_unions_outside_of_parentheses_combine_rows() {
        for text in
            ["SELECT MAX(b) OVER (PARTITION BY a) FROM t", "select lag(b) over(w)", "(SELECT 1) union (SELECT 2)"]
        {
            assert!(combines_rows(text), "{text}");
        }
        for text in ["SELECT MAX(b) FROM (SELECT 1 b UNION SELECT 2) t", "SELECT `over`, 'union' -- over\n"] {
            assert!(!combines_rows(text), "{text}");
        }
    }

    #[test]
    fn only_many_commas_or_stars_may_exceed_the_columns_of_a_result() {
        let (list, sum) = (["1"; 65_536].join(","), ["a * b"; 65_536].join(" + "));
        let joined = ["a"; 16].join(" join ");
        for text in
            [format!("SELECT {list}"), format!("SELECT * FROM {joined}"), "SELECT a.*,a.*,b.*,b.* FROM a,b".into()]
        {
            assert!(may_exceed_columns(&text), "{:.80}", text);
        }
        let few = ["a"; 15].join(" join ");
        for text in
            [format!("SELECT {}", &list[2..]), format!("SELECT * FROM {few}"), "SELECT COUNT(*), a FROM t".into()]
        {
            assert!(!may_exceed_columns(&text), "{:.80}", text);
        }
        assert!(may_exceed_columns(&format!("SELECT {sum}, 1 FROM a JOIN b")));
    }

    #[test]
    fn comments_alone_are_no_statement() {
        for text in ["", " ", "-- x", "/* x */", ";", "# x\n;"] {
            assert_eq!(effects(text), None, "{text}");
        }
    }

    #[test]
    fn only_reads_and_row_changes_keep_the_schema() {
        for text in [
            "SELECT 1",
            "INSERT INTO t VALUES (1)",
            " update t set a = 1",
            "DO 1",
            "SET @a = 1",
            "SET SESSION sql_mode = ''",
            "ANALYZE TABLE t",
            "TRUNCATE t",
        ] {
            assert_eq!(effects(text).unwrap().schema, Schema::Unchanged, "{text}");
        }
        for text in [
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT",
            "CALL p()",
            "RENAME TABLE a TO b",
            "SET STATEMENT max_statement_time = 1 FOR ALTER TABLE t ADD b INT",
            "SET /* x */ statement max_statement_time = 1 FOR DROP TABLE t",
            "SET /*! STATEMENT max_statement_time = 1 FOR DROP TABLE t */",
            "BEGIN NOT ATOMIC DROP TABLE t; END",
            "EXECUTE IMMEDIATE 'DROP TABLE t'",
            "/*! DROP TABLE t */",
        ] {
            assert_eq!(effects(text).unwrap().schema, Schema::Changed, "{text}");
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        assert_eq!(number("5"), Param::Int(5));
        assert_eq!(number("18446744073709551615"), Param::UInt(u64::MAX));
        assert_eq!(number("1.5"), Param::Double(1.5));
        assert_eq!(number("1.10"), Param::Text("1.10".into()));
        assert_eq!(number("0.12345678901234567890123"), Param::Text("0.12345678901234567890123".into()));
    }
}
