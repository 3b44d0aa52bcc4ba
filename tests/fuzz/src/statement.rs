//! Checks the text of the statements that Selkie builds: only known words, quoted names, and a `?` for each value.

use origin::query::sql::Statement;
use shared::operation::sql::SqlCall;

/// Every word of Selkie's own SQL. A word that is missing here is either new, and must be added, or an injection.
const WORDS: &[&str] = &[
    "AGAINST",
    "ALL",
    "AND",
    "AS",
    "AVG",
    "BETWEEN",
    "BOOLEAN",
    "BY",
    "CAST",
    "COLLATE",
    "CONVERT",
    "COUNT",
    "DAY",
    "DECIMAL",
    "DEFAULT",
    "DELETE",
    "DESC",
    "DISTINCT",
    "DUAL",
    "DUPLICATE",
    "ESCAPE",
    "EXISTS",
    "EXPANSION",
    "EXPLAIN",
    "FALSE",
    "FORMAT",
    "FROM",
    "GROUP",
    "HAVING",
    "IF",
    "IN",
    "INSERT",
    "INTO",
    "IS",
    "JOIN",
    "JSON",
    "JSON_COMPACT",
    "KEY",
    "LANGUAGE",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MATCH",
    "MAX",
    "MIN",
    "MODE",
    "MONTH",
    "NATURAL",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "QUERY",
    "REGEXP",
    "RETURNING",
    "RIGHT",
    "SELECT",
    "SET",
    "ST_Equals",
    "ST_GeomFromGeoJSON",
    "SUM",
    "TRUE",
    "UNION",
    "UPDATE",
    "USING",
    "VALUE",
    "VALUES",
    "WHERE",
    "WITH",
    "YEAR",
    "counted",
    "selkie_conflict",
    "utf8mb4",
    "utf8mb4_bin",
];

/// Tokens between words. The literal is the ESCAPE character of Selkie's patterns.
const SIGNS: &[&str] =
    &["'|'", "<=>", "<>", "<=", ">=", "=", "<", ">", "(", ")", ",", ".", "?", "*", "+", "-", "/", ":=", "@"];

/// Maximum number of placeholders in a prepared statement: MariaDB counts them in 16 bits.
const PLACEHOLDERS_MAX: usize = 65_535;

/// Checks a statement that Selkie built, and returns its text with each quoted name replaced by `` `n` ``.
///
/// # Panics
/// The text contains an unknown word or token, or the numbers of `?` and of values differ.
#[must_use]
pub fn is_ours(statement: &Statement) -> String {
    let text = statement.text();
    let bare = without_names(text);
    let mut placeholders = 0;
    let mut rest = bare.as_str();
    while let Some(first) = rest.chars().next() {
        let taken = if first == ' ' {
            1
        } else if first == '`' {
            3
        } else if first.is_ascii_alphanumeric() {
            word(rest, text)
        } else {
            assert!(!rest.starts_with("--") && !rest.starts_with("/*"), "a comment in {text}");
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
            let sign = sign.unwrap_or_else(|| panic!("{rest:?} is not ours in {text}"));
            placeholders += usize::from(*sign == "?");
            sign.len()
        };
        rest = &rest[taken..];
    }
    assert_eq!(placeholders, statement.params().len(), "values of {text}");
    assert!(placeholders <= PLACEHOLDERS_MAX, "{placeholders} placeholders");
    bare
}

fn word(rest: &str, text: &str) -> usize {
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = &rest[..end];
    // Besides words, allows numbers, and the columns `c0`, `c1` … of a count's inner SELECT.
    let digits = word.strip_prefix('c').unwrap_or(word);
    assert!(
        WORDS.contains(&word) || digits.bytes().all(|byte| byte.is_ascii_digit()),
        "{word:?} is not ours in {text}"
    );
    end
}

/// Returns the text with each quoted name replaced; a doubled backtick belongs to the name.
fn without_names(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        bare.push_str(&rest[..start]);
        bare.push_str("`n`");
        rest = &rest[start + 1..];
        loop {
            let end = rest.find('`').unwrap_or_else(|| panic!("an open name in {text}"));
            rest = &rest[end + 1..];
            match rest.strip_prefix('`') {
                Some(more) => rest = more,
                None => break,
            }
        }
    }
    bare.push_str(rest);
    bare
}

/// Checks that a client's own statement is run unchanged, except for spaces and the comment in front of it.
///
/// # Panics
/// The statement was changed, or its values were lost.
pub fn is_verbatim(call: &SqlCall, statement: &Statement) {
    let text = statement.text();
    let (mark, own) = text.split_once("*/ ").expect("a mark");
    let inner = mark.strip_prefix("/*").expect("a comment");
    assert!(inner.bytes().all(|byte| byte.is_ascii_hexdigit()), "{mark}");
    assert!(
        own.chars().filter(|c| *c != ' ').eq(call.query.chars().filter(|c| *c != ' ')),
        "{:?} became {own:?}",
        call.query
    );
    assert_eq!(statement.params().len(), call.params.len());
}
