//! Users' own SQL, looked at from outside: what it may leave behind in the session, and whether it may
//! change the schema. Nothing here decides what is allowed: MariaDB's grants do.
//!
//! The reading is cautious: only statements built of nothing but well-known words and functions count
//! as [`Session::Stateless`]; whatever is not understood costs a connection reset, never a leak.

use super::tokens::{Token, Tokens};
use crate::plan::Param;
use shared::json::Value;

/// What a statement means for the session and the schema cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Whether it can see or leave session state.
    pub session: Session,
    /// Whether it can change tables.
    pub schema: Schema,
    /// Whether it can give several result sets.
    pub results: Results,
}

/// Whether a statement can see or leave session state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// It can't: the connection goes back as it is.
    Stateless,
    /// It may: it runs on a reset connection, which is reset again after it.
    Stateful,
}

/// Whether a statement can change the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// It can't.
    Kept,
    /// It may: cached schemas are read again.
    Changed,
}

/// How many result sets a statement can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// At most one.
    One,
    /// Any number: CALL and compound statements.
    Any,
}

/// Judges a statement by its text; `None` if there is none: only comments, or a lone `;`.
#[must_use]
pub fn effects(text: &str) -> Option<Effects> {
    let first = Tokens::new(text).find_map(|token| match token {
        Token::Word(word) => Some(word.to_ascii_uppercase()),
        // Code in a comment: anything.
        Token::Executable => Some(String::new()),
        _ => None,
    })?;
    let reads = [
        "SELECT", "WITH", "VALUES", "SHOW", "EXPLAIN", "DESCRIBE", "DESC",
    ];
    let reads = reads.contains(&first.as_str());
    let writes = ["INSERT", "UPDATE", "DELETE", "REPLACE"].contains(&first.as_str());
    Some(Effects {
        session: if reads && is_stateless(text) {
            Session::Stateless
        } else {
            Session::Stateful
        },
        schema: if reads || writes {
            Schema::Kept
        } else {
            Schema::Changed
        },
        results: if reads || writes {
            Results::One
        } else {
            Results::Any
        },
    })
}

/// Whether a statement names one of these: tables, say, that are more than they seem. Names are given
/// in lower case, without their quotes.
#[must_use]
pub fn names_any(text: &str, is_one: impl Fn(&str) -> bool) -> bool {
    Tokens::new(text).any(|token| match token {
        Token::Word(word) => is_one(&word.to_lowercase()),
        Token::Quoted(name) => is_one(&name.replace("``", "`").to_lowercase()),
        _ => false,
    })
}

/// Functions that neither read nor leave session state, and words that may stand before a `(`.
const PURE: &[&str] = &[
    "ABS",
    "ADDDATE",
    "ALL",
    "AND",
    "ANY",
    "AS",
    "ASCII",
    "AVG",
    "BETWEEN",
    "BIT_AND",
    "BIT_LENGTH",
    "BIT_OR",
    "BY",
    "CASE",
    "CAST",
    "CEIL",
    "CEILING",
    "CHAR",
    "CHARACTER_LENGTH",
    "CHAR_LENGTH",
    "COALESCE",
    "CONCAT",
    "CONCAT_WS",
    "CONVERT",
    "COUNT",
    "CRC32",
    "CURDATE",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "DATE",
    "DATEDIFF",
    "DATE_ADD",
    "DATE_FORMAT",
    "DATE_SUB",
    "DAY",
    "DAYOFMONTH",
    "DAYOFWEEK",
    "DAYOFYEAR",
    "DECIMAL",
    "DENSE_RANK",
    "DISTINCT",
    "ELSE",
    "EXCEPT",
    "EXISTS",
    "EXTRACT",
    "FIELD",
    "FIRST_VALUE",
    "FLOOR",
    "FORMAT",
    "FROM",
    "FROM_UNIXTIME",
    "GREATEST",
    "GROUP_CONCAT",
    "HAVING",
    "HEX",
    "HOUR",
    "IF",
    "IFNULL",
    "IN",
    "INDEX",
    "INSTR",
    "INTERSECT",
    "IS",
    "ISNULL",
    "JOIN",
    "JSON_ARRAY",
    "JSON_ARRAYAGG",
    "JSON_CONTAINS",
    "JSON_EXTRACT",
    "JSON_LENGTH",
    "JSON_OBJECT",
    "JSON_OBJECTAGG",
    "JSON_QUERY",
    "JSON_TYPE",
    "JSON_UNQUOTE",
    "JSON_VALID",
    "JSON_VALUE",
    "KEY",
    "LAG",
    "LAST_DAY",
    "LAST_VALUE",
    "LCASE",
    "LEAD",
    "LEAST",
    "LEFT",
    "LENGTH",
    "LIKE",
    "LOCATE",
    "LOWER",
    "LPAD",
    "LTRIM",
    "MATCH",
    "AGAINST",
    "MAX",
    "MD5",
    "MID",
    "MIN",
    "MINUTE",
    "MOD",
    "MONTH",
    "MONTHNAME",
    "NOT",
    "NOW",
    "NTILE",
    "NULLIF",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "POSITION",
    "POW",
    "POWER",
    "QUARTER",
    "RANK",
    "REGEXP",
    "REGEXP_REPLACE",
    "REPEAT",
    "REPLACE",
    "REVERSE",
    "RIGHT",
    "ROUND",
    "ROW_NUMBER",
    "RPAD",
    "RTRIM",
    "SECOND",
    "SELECT",
    "SHA1",
    "SHA2",
    "SIGN",
    "SQRT",
    "STD",
    "STDDEV",
    "STR_TO_DATE",
    "SUBSTR",
    "SUBSTRING",
    "SUBSTRING_INDEX",
    "SUM",
    "THEN",
    "TIME",
    "TIMEDIFF",
    "TIMESTAMP",
    "TIMESTAMPDIFF",
    "TO_DAYS",
    "TRIM",
    "TRUNCATE",
    "UCASE",
    "UNHEX",
    "UNION",
    "UNIX_TIMESTAMP",
    "UPPER",
    "USING",
    "UTC_TIMESTAMP",
    "VALUES",
    "VARIANCE",
    "WEEK",
    "WHEN",
    "WHERE",
    "WITH",
    "YEAR",
];

fn is_stateless(text: &str) -> bool {
    let mut previous = None;
    let mut before = None;
    for token in Tokens::new(text) {
        let harmless = match (&token, previous) {
            // User and system variables, `INTO @x`, `:=`; locks.
            (Token::At, _) => false,
            (Token::Word(word), _)
                if word.eq_ignore_ascii_case("INTO") || word.eq_ignore_ascii_case("LOCK") =>
            {
                false
            }
            (Token::Word(word), _)
                if word.eq_ignore_ascii_case("SQL_CALC_FOUND_ROWS")
                    || word.eq_ignore_ascii_case("WARNINGS")
                    || word.eq_ignore_ascii_case("ERRORS") =>
            {
                false
            }
            // A sequence's value, `NEXT VALUE FOR`, `PREVIOUS VALUE FOR`, is remembered by the session.
            (Token::Word(word), _) if word.eq_ignore_ascii_case("VALUE") => false,
            // `db.abs(1)` is a stored function, whatever its name.
            (Token::Open, Some(Token::Word(_))) if before == Some(Token::Dot) => false,
            (Token::Open, Some(Token::Word(word))) => {
                PURE.iter().any(|pure| pure.eq_ignore_ascii_case(word))
            }
            (Token::Open, Some(Token::Quoted(_))) => false,
            // `/*! … */` is code that looks like a comment.
            (Token::Executable, _) => false,
            _ => true,
        };
        if !harmless {
            return false;
        }
        before = previous;
        previous = Some(token);
    }
    true
}

/// A JSON value as a parameter of users' own SQL, where no column tells its type.
pub(super) fn param(value: &Value) -> Param {
    match value {
        Value::Null => Param::Null,
        Value::Bool(truth) => Param::Int(i64::from(*truth)),
        Value::Text(text) => Param::Text(text.clone()),
        Value::List(text) | Value::Object(text) => Param::Text(text.clone()),
        Value::Number(text) => number(text),
    }
}

/// A number as the nearest type that loses no digit; else its text, which MariaDB converts.
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
    fn plain_reads_leave_nothing_behind() {
        for text in [
            "SELECT 1",
            "select count(*), max(`a`) from t where b in (1, 2) and c like '%@%' -- @x",
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
            "SELECT `my_function`(1)",
            "SELECT db.f(1)",
            "SELECT db.abs(1)",
            "SELECT db . /* x */ ABS (1)",
            // Names to MariaDB, not blanks or signs before a function of its own.
            "SELECT f\u{a0}ABS(1)",
            "SELECT ☃ABS(1)",
            // No comment to MariaDB: a minus, and a minus, and a name.
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
        ] {
            assert_eq!(effects(text).unwrap().schema, Schema::Kept, "{text}");
        }
        for text in [
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD b INT",
            "CALL p()",
            "TRUNCATE t",
            "RENAME TABLE a TO b",
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
        assert_eq!(
            number("0.12345678901234567890123"),
            Param::Text("0.12345678901234567890123".into())
        );
    }
}
