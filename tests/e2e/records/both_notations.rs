//! Sends the same read as URL options and as the body of `POST …/query`. Both answers must be equal.

use crate::host::{Answer, enc};
use crate::test_db::TestDb;
use serde_json::Value;
use shared::error::ErrorCode;

/// Returns `table?…` with each option as JSON, except that strings and numbers have no quotes.
pub(crate) fn spelled(table: &str, options: &Value) -> String {
    let options = options.as_object().expect("options are an object");
    let pairs: Vec<String> = options
        .iter()
        .map(|(name, value)| match value {
            Value::String(word) => format!("{}={}", enc(name), enc(word)),
            other => format!("{}={}", enc(name), enc(&other.to_string())),
        })
        .collect();
    format!("{}?{}", enc(table), pairs.join("&"))
}

/// Sends a read in both forms, compares the answers, and returns the answer to the URL. Of refusals only the codes are
/// compared, since messages may quote the value as it was written.
pub(crate) async fn ask(db: &TestDb, table: &str, options: &Value) -> Answer {
    let by_url = db.get(&spelled(table, options)).await;
    let by_body = db.post(&format!("{}/query", enc(table)), options).await;
    assert_eq!(by_url.status, by_body.status, "{by_url}\n{by_body}");
    assert_eq!(by_url.code(), by_body.code(), "{by_url}\n{by_body}");
    if by_url.status.is_success() {
        assert_eq!(by_url.text(), by_body.text(), "{by_url}\n{by_body}");
    }
    by_url
}

/// Returns the payload of a read that must succeed.
pub(crate) async fn rows(db: &TestDb, table: &str, options: &Value) -> Value {
    ask(db, table, options).await.payload()
}

/// Returns one field of each row of a read that must succeed.
pub(crate) async fn field(db: &TestDb, table: &str, options: &Value, name: &str) -> Value {
    let rows = rows(db, table, options).await;
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| row[name].clone()).collect()
}

/// Checks that a read is refused with `code`, and that the message or hint contains all of `names`.
pub(crate) async fn refused(db: &TestDb, table: &str, options: &Value, code: ErrorCode, names: &[&str]) {
    let answer = ask(db, table, options).await;
    let error = answer.refused(code);
    let said =
        format!("{} {}", error["message"].as_str().unwrap_or_default(), error["hint"].as_str().unwrap_or_default());
    for name in names {
        assert!(said.contains(name), "{name} is not named: {answer}");
    }
}

/// The tables of a small shop: authors, books, reviews, staff; a view; a table without any key.
pub(crate) const SHOP: &[&str] = &[
    "CREATE TABLE authors (id INT PRIMARY KEY, name VARCHAR(40), country CHAR(2))",
    "CREATE TABLE books (id INT PRIMARY KEY, title VARCHAR(80), author_id INT, editor_id INT, \
     price DECIMAL(8,2), year INT, KEY (author_id), KEY (year))",
    "CREATE TABLE reviews (id INT PRIMARY KEY, book_id INT, stars INT, body TEXT, lang CHAR(2), FULLTEXT KEY (body), KEY (book_id))",
    "CREATE TABLE staff (id INT PRIMARY KEY, name VARCHAR(20), boss_id INT)",
    "CREATE TABLE keyless (book_id INT, tag VARCHAR(20))",
    "CREATE VIEW modern AS SELECT id, title FROM books WHERE year >= 2000",
    "INSERT INTO authors VALUES (1,'Ada','UK'), (2,'Bo','SE'), (3,'Cy',NULL), (4,'Dee','UK')",
    "INSERT INTO books VALUES (1,'Engines',1,2,'10.50',1850), (2,'Snow',2,2,'7.00',2005), (3,'More snow',2,1,'8.25',2010), \
     (4,'Nobody''s',NULL,NULL,NULL,1999), (5,'Lists',3,4,'3.00',2010)",
    "INSERT INTO reviews VALUES (1,1,5,'a grand engine of thought','en'), (2,1,3,'dense and dry','en'), (3,2,4,'snow everywhere','sv'), \
     (4,3,NULL,'more snow than snow','sv'), (5,99,1,'about no book','en')",
    "INSERT INTO staff VALUES (1,'Ann',NULL), (2,'Ben',1), (3,'Cat',1), (4,'Dan',2)",
    "INSERT INTO keyless VALUES (1,'old'), (1,'rare'), (2,'cold'), (2,'cold'), (NULL,'lost')",
];
