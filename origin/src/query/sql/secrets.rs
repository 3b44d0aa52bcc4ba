//! Finds users' own statements that show the hash of the account's password or, to a role, the text of others'
//! statements. Text that is assembled only when it runs can't be found.

use super::session::names_any;
use super::tokens::{Token, Tokens};
use super::xa::{prepared_texts, prepares};
use shared::operation::sql::SqlCall;

/// Whether the statement is SHOW GRANTS or SHOW CREATE USER, which show the hash.
pub fn shows_password_hash(call: &SqlCall) -> bool {
    is_shown(&call.query) || (prepares(&call.query) && prepared_texts(call).any(is_shown))
}

/// Whether the statement shows other statements: by the list of processes, or by the plan of a running statement.
pub fn shows_statements(text: &str) -> bool {
    const SHOWING: [[&str; 2]; 3] = [["SHOW", "EXPLAIN"], ["SHOW", "ANALYZE"], ["FOR", "CONNECTION"]];
    names_any(text, |name| name == "processlist") || SHOWING.iter().any(|words| follow(text, words))
}

fn is_shown(text: &str) -> bool {
    follow(text, &["SHOW", "GRANTS"]) || follow(text, &["SHOW", "CREATE", "USER"])
}

/// Whether the words follow each other. With executable comments, which may separate words, in any order.
fn follow(text: &str, words: &[&str]) -> bool {
    let is = |token: &Token<'_>, wanted: &str| token.word().is_some_and(|word| word.eq_ignore_ascii_case(wanted));
    if Tokens::new(text).any(|token| token == Token::Executable) {
        return words.iter().all(|wanted| Tokens::new(text).any(|token| is(&token, wanted)));
    }
    let mut met = 0;
    Tokens::new(text).any(|token| {
        met = match () {
            () if is(&token, words[met]) => met + 1,
            () => usize::from(is(&token, words[0])),
        };
        met == words.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::format::Format;
    use shared::json::Value;

    fn call(query: &str, params: Vec<Value>) -> SqlCall {
        SqlCall { query: query.into(), params, database: None, format: Format::Envelope }
    }

    #[test]
    fn every_form_that_shows_the_hash_is_found() {
        for text in [
            "SHOW GRANTS",
            "show/* */grants FOR CURRENT_USER()",
            "SHOW -- x\nCREATE USER",
            "SHOW CREATE USER CURRENT_USER",
            "SHOW /*!50000 GRANTS */",
            "SHOW /*! CREATE */ /*!50000 USER */",
            "BEGIN NOT ATOMIC SHOW GRANTS; END",
            "EXECUTE IMMEDIATE 'SHOW GRANTS'",
            "PREPARE s FROM \"SHOW CREATE USER\"",
        ] {
            assert!(shows_password_hash(&call(text, Vec::new())), "{text}");
        }
        let given = vec![Value::Text("SHOW GRANTS".into())];
        assert!(shows_password_hash(&call("EXECUTE IMMEDIATE ?", given.clone())));
        for text in [
            "SHOW CREATE TABLE user",
            "SHOW CREATE TABLE `user`",
            "SELECT 'SHOW GRANTS'",
            "SELECT `show` grants FROM t",
            "SELECT grants, user FROM shows -- SHOW GRANTS",
            "SHOW TABLES LIKE 'GRANTS'",
        ] {
            assert!(!shows_password_hash(&call(text, Vec::new())), "{text}");
        }
        assert!(!shows_password_hash(&call("SELECT ?", given)));
    }

    #[test]
    fn every_form_that_shows_others_statements_is_found() {
        for text in [
            "SHOW PROCESSLIST",
            "SHOW FULL PROCESSLIST",
            "SELECT info FROM information_schema.processlist",
            "SELECT info FROM INFORMATION_SCHEMA . `PROCESSLIST`",
            "SHOW EXPLAIN FOR 7",
            "SHOW ANALYZE FORMAT=JSON FOR 7",
            "EXPLAIN FOR CONNECTION 7",
            "EXPLAIN FORMAT=JSON FOR CONNECTION 7",
        ] {
            assert!(shows_statements(text), "{text}");
        }
        for text in ["SHOW TABLES", "SELECT 'processlist'", "EXPLAIN SELECT 1", "SELECT connection FROM t"] {
            assert!(!shows_statements(text), "{text}");
        }
    }
}
