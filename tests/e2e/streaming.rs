//! Tests that long answers are complete and valid, or cut so that no client takes them for complete.

use crate::case::eventually;
use crate::host::Host;
use crate::service::shared;
use crate::test_db::TestDb;
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

const ROWS: usize = 200_000;

cases! {
    Both: [
        a_table_of_200_000_rows_is_read_whole,
        a_reader_who_leaves_midway_frees_the_connection,
        a_reader_who_leaves_a_procedure_midway_leaves_nothing_of_its_session,
        an_answer_that_fails_midway_is_cut,
        a_query_killed_midway_cuts_its_answer,
    ],
}

#[derive(serde::Deserialize)]
struct List {
    success: bool,
    payload: Vec<Row>,
}

#[derive(serde::Deserialize)]
struct Row {
    id: usize,
    name: String,
}

async fn big(host: Host) -> TestDb {
    let db = TestDb::new(host, &["CREATE TABLE big (id INT PRIMARY KEY, name VARCHAR(100))"]).await;
    db.exec(&format!(
        "INSERT INTO big SELECT seq, CONCAT('row number ', seq, ' ', REPEAT('x', 60)) FROM seq_1_to_{ROWS}"
    ))
    .await;
    db
}

async fn a_table_of_200_000_rows_is_read_whole(host: Host) {
    let db = big(host).await;
    for answer in [db.get("big?order[field]=id").await, db.sql("SELECT id, name FROM big ORDER BY id").send().await] {
        let list: List = answer.read();
        assert!(list.success);
        assert_eq!(list.payload.len(), ROWS);
        for (index, row) in list.payload.iter().enumerate() {
            assert_eq!(row.id, index + 1);
            assert!(row.name.starts_with(&format!("row number {} ", row.id)));
        }
    }
}

/// Reads the whole answer. Returns its body, and whether the body ended properly.
pub(crate) async fn read_all(response: reqwest::Response) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(bytes) => body.extend_from_slice(&bytes),
            Err(_) => return (body, false),
        }
    }
    (body, true)
}

fn must_not_pass_for_complete(host: Host, body: &[u8], ended: bool) {
    let value: Result<Value, _> = serde_json::from_slice(body);
    assert!(value.is_err(), "an answer that failed midway is JSON");
    // workerd ends a broken answer like a complete one.
    assert!(!ended || host == Host::Edge, "a cut answer came to a proper end");
}

async fn an_answer_that_fails_midway_is_cut(host: Host) {
    let db = big(host).await;
    let query = "SELECT id, name, IF(id = 150000, (SELECT id FROM big WHERE id < 3), 1) AS x FROM big";
    let response = db.sql(query).request().send().await.expect("a head");
    let (body, ended) = read_all(response).await;
    must_not_pass_for_complete(host, &body, ended);
    db.exec(&format!("CREATE VIEW failing AS {query}")).await;
    let response = db.call(Method::GET, "failing").request().send().await.expect("a head");
    let (body, ended) = read_all(response).await;
    must_not_pass_for_complete(host, &body, ended);
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}

pub(crate) fn thread_of(text: &str) -> Option<String> {
    let query = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%{text}%' AND INFO NOT LIKE '%PROCESSLIST%' AND COMMAND <> 'Sleep'"
    );
    shared().root_sql(&query).expect("the process list").lines().next().map(str::to_owned)
}

/// Returns a statement whose result is longer than all buffers and doesn't end within the test.
fn endless(mark: &str) -> String {
    format!("SELECT a.id, a.name, REPEAT('y', 500) AS y FROM big a JOIN big b /* {mark} */")
}

async fn a_query_killed_midway_cuts_its_answer(host: Host) {
    let db = big(host).await;
    let mark = format!("cut_{}", db.name);
    let response = db.sql(&endless(&mark)).request().send().await.expect("a head");
    let thread = eventually("the statement runs", Duration::from_secs(10), || async { thread_of(&mark) }).await;
    shared().root_sql(&format!("KILL QUERY {thread}")).expect("the kill");
    let (body, ended) = read_all(response).await;
    must_not_pass_for_complete(host, &body, ended);
}

async fn a_reader_who_leaves_midway_frees_the_connection(host: Host) {
    let db = big(host).await;
    for n in 0..6 {
        let mark = format!("left_{n}_{}", db.name);
        let response = db.sql(&endless(&mark)).request().send().await.expect("a head");
        let mut chunks = response.bytes_stream();
        chunks.next().await.expect("a chunk").expect("bytes");
        drop(chunks);
        eventually("the statement ends", Duration::from_secs(5), || async { thread_of(&mark).is_none().then_some(()) })
            .await;
    }
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}

async fn a_reader_who_leaves_a_procedure_midway_leaves_nothing_of_its_session(host: Host) {
    let db = big(host).await;
    let mark = format!("kept_{}", db.name);
    let body = endless(&mark);
    db.exec(&format!(
        "CREATE PROCEDURE p() BEGIN SET @kept = 1; SET time_zone = '+07:00'; START TRANSACTION; UPDATE big SET name = 'x' WHERE id = 1; {body}; END"
    ))
    .await;
    for _ in 0..3 {
        let response = db.sql("CALL p()").request().send().await.expect("a head");
        let mut chunks = response.bytes_stream();
        chunks.next().await.expect("a chunk").expect("bytes");
        drop(chunks);
        eventually("the statement ends", Duration::from_secs(5), || async { thread_of(&mark).is_none().then_some(()) })
            .await;
    }
    // More concurrent requests than the pool has connections.
    let asks: Vec<_> = (0..12)
        .map(|_| db.sql("SELECT @kept AS kept, @@time_zone AS zone, @@in_transaction AS open, SLEEP(0.1)").send())
        .collect();
    for answer in futures_util::future::join_all(asks).await {
        let row = &answer.payload()[0];
        assert_eq!(row["kept"], Value::Null);
        assert_eq!(row["zone"], "+00:00");
        assert_eq!(row["open"], 0);
    }
    let name = db.value("SELECT name FROM big WHERE id = 1").await;
    assert_ne!(name, json!("x"), "what was open was rolled back");
}
