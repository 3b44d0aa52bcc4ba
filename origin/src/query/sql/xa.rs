//! Finds XA statements in users' own SQL. They are refused, since a prepared XA transaction outlives its connection and
//! keeps its locks, even over restarts. Text that is assembled only when it runs (a variable, CONCAT, a hexadecimal
//! literal) can't be found.

use super::tokens::{Token, Tokens};
use shared::json::Value;
use shared::operation::sql::SqlCall;

const VERBS: [&str; 7] = ["START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK", "RECOVER"];

pub fn holds_xa(call: &SqlCall) -> bool {
    is_xa(&call.query) || (prepares(&call.query) && prepared_texts(call).any(is_xa))
}

fn is_xa(text: &str) -> bool {
    let is = |token: Token<'_>, wanted: &str| token.word().is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    // Executable comments may separate the two words, with characters and numbers of their own.
    let disguised = Tokens::new(text).any(|token| token == Token::Executable);
    let mut tokens = Tokens::new(text).peekable();
    while let Some(token) = tokens.next() {
        let follows = |next: &Token<'_>| VERBS.iter().any(|verb| is(*next, verb));
        if is(token, "XA") && (disguised || tokens.peek().is_some_and(follows)) {
            return true;
        }
    }
    false
}

pub(super) fn prepares(text: &str) -> bool {
    Tokens::new(text).any(|token| {
        token.word().is_some_and(|word| word.eq_ignore_ascii_case("PREPARE") || word.eq_ignore_ascii_case("EXECUTE"))
    })
}

pub(super) fn prepared_texts(call: &SqlCall) -> impl Iterator<Item = &str> {
    let strings = Tokens::new(&call.query).filter_map(|token| match token {
        Token::Text(text) => Some(text),
        _ => None,
    });
    let params = call.params.iter().filter_map(|value| match value {
        Value::Text(text) => Some(&**text),
        _ => None,
    });
    strings.chain(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::format::Format;

    fn call(query: &str, params: Vec<Value>) -> SqlCall {
        SqlCall { query: query.into(), params, database: None, format: Format::Envelope }
    }

    #[test]
    fn every_form_of_xa_is_found() {
        for text in [
            "XA START 'x'",
            "xa/* */begin 'x'",
            "-- x\nXa END 'x'",
            "XA PREPARE x'61'",
            "XA COMMIT 'x' ONE PHASE",
            "XA ROLLBACK'x'",
            "XA RECOVER FORMAT='SQL'",
            "/*!XA START 'x'*/",
            "/*M!100000 XA*/ START 'x'",
            "XA /*! START */ 'x'",
            "BEGIN NOT ATOMIC XA START 'x'; END",
            "CREATE PROCEDURE p() BEGIN XA START 'x'; END",
            "EXECUTE IMMEDIATE 'XA START ''x'''",
            "EXECUTE IMMEDIATE \"XA START 'x'\"",
            "EXECUTE IMMEDIATE '/*!XA START \\'x\\'*/'",
            "PREPARE s FROM 'XA PREPARE \\'x\\''",
        ] {
            assert!(holds_xa(&call(text, Vec::new())), "{text}");
        }
        let given = vec![Value::Text("XA START 'x'".into())];
        let text = "BEGIN NOT ATOMIC EXECUTE IMMEDIATE ?; END";
        assert!(holds_xa(&call(text, given)));
    }

    #[test]
    fn names_and_data_are_no_xa() {
        for text in [
            "SELECT xa, start FROM t",
            "SELECT `xa` start FROM t",
            "SELECT 'XA START ''x'''",
            "INSERT INTO t VALUES ('XA START ''x''')",
            "-- XA START 'x'\nSELECT 1",
            "EXECUTE IMMEDIATE 'SELECT 1'",
        ] {
            assert!(!holds_xa(&call(text, Vec::new())), "{text}");
        }
        let given = vec![Value::Text("XA START 'x'".into())];
        assert!(!holds_xa(&call("INSERT INTO t VALUES (?)", given)));
    }
}
