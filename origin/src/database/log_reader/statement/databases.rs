//! Which databases a logged statement may change rows in. Its session may be that of a project, which could otherwise
//! break the feeds of other projects by aliases with the names of their databases.

use super::{Token, Tokens};
use std::borrow::Cow;
use std::collections::HashSet;

/// Words before a changed table or a called procedure. In parentheses, FROM is also an operator of functions.
const BEFORE_TABLES: [&[u8]; 14] = [
    b"CALL",
    b"CONCURRENT",
    b"DELAYED",
    b"DELETE",
    b"FROM",
    b"IGNORE",
    b"INSERT",
    b"INTO",
    b"JOIN",
    b"LOW_PRIORITY",
    b"QUICK",
    b"REPLACE",
    b"TABLE",
    b"UPDATE",
];

const NOTHING: &[u8] = b"";

/// Returns the databases whose tables the statement names, or whose functions it calls, with ASCII letters in lower case.
///
/// What `d.x` names depends on its place: where only a table or a function can stand, `d` is a database. Elsewhere `d` may
/// be an alias, or a table of the session's database, if something in the statement has that name. Then `d` counts as a
/// database only by its other places, so a table after a comma, as in `UPDATE a.t AS d, d.t SET …`, is not found.
pub(in crate::database::log_reader) fn databases(statement: &[u8], sql_mode: u64) -> HashSet<Vec<u8>> {
    let (mut certain, mut possible) = (HashSet::new(), HashSet::new());
    each_name(statement, sql_mode, |name| {
        if let Some(qualifier) = &name.qualifier {
            let found = if name.must_be_of_database { &mut certain } else { &mut possible };
            found.insert(qualifier.to_ascii_lowercase());
        }
    });
    each_name(statement, sql_mode, |name| {
        let is_qualified_by_itself = name.qualifier.is_some_and(|qualifier| qualifier.eq_ignore_ascii_case(&name.name));
        if !name.is_qualifier && !is_qualified_by_itself && !possible.is_empty() {
            possible.remove(&name.name.to_ascii_lowercase());
        }
    });
    certain.extend(possible);
    certain
}

struct Placed<'a> {
    qualifier: Option<Cow<'a, [u8]>>,
    name: Cow<'a, [u8]>,
    /// Whether a dot follows.
    is_qualifier: bool,
    must_be_of_database: bool,
}

fn each_name<'a>(statement: &'a [u8], sql_mode: u64, mut with: impl FnMut(Placed<'a>)) {
    let is_space = |token: &Token<'_>| matches!(token, Token::Other(byte) if byte.is_ascii_whitespace());
    let mut tokens = Tokens { rest: statement, sql_mode }.filter(|token| !is_space(token)).peekable();
    // The two words before, without a qualifier in between.
    let mut before = [NOTHING; 2];
    let (mut qualifier, mut depth) = (None, 0);
    while let Some(token) = tokens.next() {
        let (name, word) = match token {
            Token::Word(word) => (Cow::Borrowed(word), word),
            Token::Name(name) => (name, NOTHING),
            Token::Other(b'.') => continue,
            Token::Other(byte) => {
                depth += i64::from(byte == b'(') - i64::from(byte == b')');
                (before, qualifier) = ([NOTHING; 2], None);
                continue;
            }
        };
        let is_qualifier = matches!(tokens.peek(), Some(Token::Other(b'.')));
        let is_called = matches!(tokens.peek(), Some(Token::Other(b'(')));
        let is_of_table = depth == 0
            && BEFORE_TABLES.iter().any(|known| before[1].eq_ignore_ascii_case(known))
            // The columns after ON DUPLICATE KEY UPDATE.
            && !before[0].eq_ignore_ascii_case(b"KEY");
        let qualifier_before = qualifier.take();
        if is_qualifier {
            qualifier = Some(name.clone());
        } else {
            before = [before[1], word];
        }
        with(Placed { qualifier: qualifier_before, name, is_qualifier, must_be_of_database: is_called || is_of_table });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_told_from_aliases() {
        for (statement, expected) in [
            ("INSERT INTO shop.items VALUES (1)", "shop"),
            ("insert shop . `items` (id) values (`a`.`b`)", "a shop"),
            ("UPDATE items SET x = shop.f(2)", "shop"),
            ("UPDATE shop.items SET shop = 1, x = blog.x", "blog shop"),
            ("UPDATE shop.shop SET shop.x = 1", "shop"),
            ("DELETE FROM Shop.items WHERE x = '.blog.x'", "shop"),
            ("UPDATE items JOIN shop.sums USING (id) SET x = 1", "shop"),
            ("LOAD DATA INFILE 'f' IGNORE INTO TABLE shop.items", "shop"),
            ("CALL shop.p", "shop"),
            ("UPDATE a.items SET x = (SELECT x FROM shop.items)", "a shop"),
            ("UPDATE a.x, shop.items SET y = 1", "a shop"),
            // Aliases with names of databases.
            ("INSERT INTO a.t SELECT 1 AS shop", "a"),
            ("INSERT INTO a.t SELECT shop.x, SHOP.y FROM a.u AS Shop WHERE shop.x IN (1)", "a"),
            ("INSERT INTO t SELECT EXTRACT(DAY FROM shop.x), (shop.y) FROM u shop", ""),
            ("INSERT INTO a.shop VALUES (1) ON DUPLICATE KEY UPDATE shop.x = 1", "a"),
            ("UPDATE a.shop SET a.shop.x = 1, shop.shop = 2", "a"),
            ("UPDATE `shop` SET `shop`.`x` = 1", ""),
            ("DELETE shop.* FROM a.u AS shop", "a"),
            ("INSERT INTO t VALUES (1.5, @shop, :shop)", "1"),
            ("INSERT INTO t SELECT STRAIGHT_JOIN shop.x FROM u shop", ""),
        ] {
            let mut found: Vec<_> = databases(statement.as_bytes(), 0).into_iter().collect();
            found.sort_unstable();
            let found: Vec<_> = found.into_iter().map(|name| String::from_utf8(name).unwrap()).collect();
            assert_eq!(found.join(" "), expected, "{statement}");
        }
    }
}
