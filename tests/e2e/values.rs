//! Tests that each type of MariaDB is written and read correctly, in records, SQL and filters.

mod charsets;
mod indexes;
mod keys;
mod numbers;
mod objects;
mod others;
mod random;
mod texts;
mod times;
mod zones;

use crate::host::{Answer, Host, enc};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// A filter with the inserted value must find the row.
    ByInput,
    /// Not tested: MariaDB has no equality for the type, or only an inexact one.
    NotAsked,
}

/// Inserts each input (an exact JSON text) into a column of type `kind`, and expects the output (an exact JSON text):
/// in the record, by SQL with and without parameters, and after an update.
async fn round_trips(host: Host, kind: &str, found: Found, pairs: &[(&str, &str)]) {
    let db = TestDb::new(host, &[&format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})")]).await;
    for (input, expected) in pairs {
        let body = format!("{{\"v\":{input}}}");
        let inserted = db.call(Method::POST, "t").bytes(body.clone()).send().await;
        let id = inserted.payload();
        let one = format!("t/{id}");
        let check = |how: &str, fields: crate::host::RawRecord| {
            assert_eq!(fields["v"], *expected, "{kind} from {input}, {how}");
        };
        check("as a record", db.get(&one).await.raw_record());
        check("in a list", db.get(&format!("t?query[id]={id}")).await.raw_row());
        let bare = db.sql(&format!("SELECT v FROM t WHERE id = {id}")).send().await;
        check("by SQL", bare.raw_row());
        let bound = db.sql_with("SELECT v FROM t WHERE id = ?", json!([id])).send().await;
        check("by SQL with a parameter", bound.raw_row());
        let updated = db.call(Method::PUT, &one).bytes(body).send().await;
        assert_eq!(updated.payload(), 1, "{kind}: {input}");
        check("after an update", db.get(&one).await.raw_record());
        if found == Found::ByInput {
            let query = format!("t?query={}", enc(&format!("{{\"v\":{input}}}")));
            let ids = db.column(&query, "id").await;
            assert!(ids.contains(&id), "{kind}: the filter {input} finds {ids:?}, not {id}");
        }
    }
}

async fn are_refused(host: Host, kind: &str, inputs: &[&str]) {
    let db = TestDb::new(host, &[&format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})")]).await;
    for input in inputs {
        let answer = db.call(Method::POST, "t").bytes(format!("{{\"v\":{input}}}")).send().await;
        names(&answer, "v");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0, "{kind}");
}

/// Checks that conditions with each comparison operator are refused with `invalid_filter`, and that the error names the
/// field.
async fn are_no_filters(host: Host, kind: &str, inputs: &[&str]) {
    let db = TestDb::new(host, &[&format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})")]).await;
    for input in inputs {
        for condition in [
            format!("{{\"value\":{input}}}"),
            format!("{{\"value\":{input},\"equality\":\">=\"}}"),
            format!("{{\"value\":[{input}],\"equality\":\"IN\"}}"),
            format!("{{\"value\":[{input},{input}],\"equality\":\"BETWEEN\"}}"),
        ] {
            let query = enc(&format!("{{\"v\":{condition}}}"));
            let answer = db.get(&format!("t?query={query}")).await;
            let error = answer.refused(ErrorCode::InvalidFilter);
            assert!(is_named(&error, "v"), "{answer}");
        }
    }
}

#[track_caller]
fn names(answer: &Answer, field: &str) {
    let error = answer.refused(ErrorCode::InvalidValue);
    assert!(is_named(&error, field), "{answer}");
}

fn is_named(error: &Value, field: &str) -> bool {
    let message = error["message"].as_str().unwrap_or_default();
    ['"', '\'', '`'].iter().any(|quote| message.contains(&format!("{quote}{field}{quote}")))
}
