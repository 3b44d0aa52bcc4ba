//! Tests the formats of an answer: CSV and NDJSON must have the same rows and values as JSON.

pub(crate) mod types;

use crate::host::{Answer, Host, option};
use crate::raw::{converse, request};
use crate::service::shared;
use crate::streaming::read_all;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use shared::format::Format;
use std::collections::BTreeMap;
use std::io::Read as _;
use types::{TYPES, types};

const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";

cases! {
    Both: [
        every_value_is_the_same_in_every_form,
        null_and_an_empty_text_are_told_apart,
        every_kind_of_read_has_every_form,
        options_mean_the_same_in_every_form,
        objects_of_joins_are_objects_or_dotted_names,
        what_stands_beside_the_rows_needs_the_envelope,
        no_rows_leave_the_header_alone,
        the_form_must_be_preferred_to_json,
        refusals_are_in_the_envelope_whatever_is_accepted,
        what_is_no_read_ignores_accept,
        stored_json_stays_in_its_line,
        long_tables_come_whole_in_every_form,
        a_cut_answer_ends_with_a_mark_in_every_coding,
    ],
    // The edge speaks HTTP/1.1 to the origin.
    Origin: [a_caller_of_http_1_0_gets_the_envelope],
}

async fn get(db: &TestDb, rest: &str, accept: &str) -> Answer {
    db.call(Method::GET, rest).header("accept", accept).send().await
}

#[track_caller]
fn table(answer: &Answer) -> (Vec<String>, Vec<Vec<String>>) {
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8; header=present"), "{answer}");
    let mut reader = csv::ReaderBuilder::new().from_reader(answer.body.as_slice());
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let names = texts(reader.headers().expect("a header"));
    let rows = reader
        .records()
        .map(|record| texts(&record.unwrap_or_else(|error| panic!("no CSV ({error}): {answer}"))))
        .collect();
    (names, rows)
}

#[track_caller]
fn lines(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer}");
    assert_eq!(answer.header("content-type"), Some(NDJSON), "{answer}");
    let text = answer.text();
    assert!(text.is_empty() || text.ends_with('\n'), "{answer}");
    text.lines().map(str::to_owned).collect()
}

#[derive(serde::Deserialize)]
struct Rows {
    payload: Vec<Box<RawValue>>,
}

/// Returns the rows of a JSON answer as their exact texts.
fn raw_rows(answer: &Answer) -> Vec<String> {
    let rows: Rows = answer.read();
    rows.payload.iter().map(|row| row.get().to_owned()).collect()
}

fn cell(value: &RawValue) -> String {
    match serde_json::from_str(value.get()).expect("JSON") {
        Value::Null => String::new(),
        Value::String(text) => text,
        _ => value.get().to_owned(),
    }
}

async fn every_value_is_the_same_in_every_form(host: Host) {
    let db = types(host).await;
    let json = db.get("t?order[field]=id").await;
    let rows = raw_rows(&json);
    assert_eq!(rows.len(), 3);
    assert_eq!(lines(&get(&db, "t?order[field]=id", NDJSON).await), rows);
    let csv = get(&db, "t?order[field]=id", CSV).await;
    assert!(csv.text().starts_with("id,tiny,"), "{csv}");
    assert!(csv.text().ends_with("\r\n"), "{csv}");
    let (names, cells) = table(&csv);
    assert_eq!(names.len(), TYPES.len() + 1);
    for (row, cells) in rows.iter().zip(&cells) {
        let values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(row).expect("a record");
        for (name, got) in names.iter().zip(cells) {
            // A JSON string in a JSON column is written as JSON text, so that "null" differs from null.
            let expected = match name.as_str() {
                "scalar" if values[name].get() != "null" => values[name].get().to_owned(),
                "scalar" if values["tiny"].get() != "null" => "null".to_owned(),
                _ => cell(&values[name]),
            };
            assert_eq!(*got, expected, "{name} of {row}");
        }
    }
}

async fn null_and_an_empty_text_are_told_apart(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, a TEXT, b BLOB)", "INSERT INTO t VALUES (1, NULL, NULL), (2, '', '')"],
    )
    .await;
    let csv = get(&db, "t?order[field]=id", CSV).await;
    assert_eq!(csv.text(), "id,a,b\r\n1,,\r\n2,\"\",\"\"\r\n");
    let ndjson = get(&db, "t?order[field]=id", NDJSON).await;
    assert_eq!(ndjson.text(), "{\"id\":1,\"a\":null,\"b\":null}\n{\"id\":2,\"a\":\"\",\"b\":\"\"}\n");
}

async fn every_kind_of_read_has_every_form(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10))",
            "CREATE VIEW v AS SELECT id, name FROM t",
            "INSERT INTO t VALUES (1, 'one')",
        ],
    )
    .await;
    for call in [
        db.call(Method::GET, "t"),
        db.call(Method::GET, "v"),
        db.call(Method::GET, "t/1"),
        db.call(Method::POST, "t/query").json(&json!({"limit": 5})),
        db.sql("SELECT id, name FROM t"),
        db.sql_with("SELECT id, name FROM t WHERE id = ?", json!([1])),
    ] {
        let csv = call.clone().header("accept", CSV).send().await;
        assert_eq!(csv.text(), "id,name\r\n1,one\r\n", "{csv}");
        table(&csv);
        let ndjson = call.clone().header("accept", NDJSON).send().await;
        assert_eq!(lines(&ndjson), ["{\"id\":1,\"name\":\"one\"}"], "{ndjson}");
        let json = call.header("accept", "*/*").send().await;
        assert_eq!(json.header("content-type"), Some("application/json"));
        json.payload();
    }
    for path in ["t", "t/1"] {
        let vary = get(&db, path, CSV).await;
        assert!(vary.header("vary").unwrap_or_default().contains("Accept"), "{path}");
    }
}

async fn options_mean_the_same_in_every_form(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)",
            "INSERT INTO t SELECT seq, seq * 2, seq * 3 FROM seq_1_to_20",
        ],
    )
    .await;
    let query = option("query", &json!({"id": {"value": [3, 12], "equality": "BETWEEN"}}));
    let rest = format!("t?selectFields=b,id&limit=3&page=2&order[field]=id&order[strategy]=DESC&{query}");
    let (names, rows) = table(&get(&db, &rest, CSV).await);
    assert_eq!(names, ["b", "id"]);
    assert_eq!(rows, [["27", "9"], ["24", "8"], ["21", "7"]]);
    assert_eq!(
        lines(&get(&db, &rest, NDJSON).await),
        ["{\"b\":27,\"id\":9}", "{\"b\":24,\"id\":8}", "{\"b\":21,\"id\":7}"]
    );
}

async fn objects_of_joins_are_objects_or_dotted_names(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE authors (id INT PRIMARY KEY, name VARCHAR(20))",
            "CREATE TABLE posts (id INT PRIMARY KEY, author INT, title VARCHAR(20))",
            "INSERT INTO authors VALUES (7, 'Ann, B.'), (8, NULL)",
            "INSERT INTO posts VALUES (1, 7, 'one'), (2, 8, 'two'), (3, NULL, 'three')",
        ],
    )
    .await;
    let join = json!([{
        "tableName": "authors", "alias": "by", "joinType": "LEFT JOIN", "nest": true,
        "match": {"source": "author", "target": "id"}
    }]);
    let rest = format!("posts?selectFields=id,title&order[field]=id&{}", option("join", &join));
    let json = db.get(&rest).await;
    let rows = raw_rows(&json);
    assert_eq!(lines(&get(&db, &rest, NDJSON).await), rows);
    assert_eq!(json.payload()[2], json!({"id": 3, "title": "three", "by": null}));
    assert_eq!(
        get(&db, &rest, CSV).await.text(),
        "id,title,by.id,by.name\r\n1,one,7,\"Ann, B.\"\r\n2,two,8,\r\n3,three,,\r\n"
    );
}

async fn what_stands_beside_the_rows_needs_the_envelope(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM seq_1_to_5"]).await;
    for accept in [CSV, NDJSON] {
        let counted = get(&db, "t?count=true", accept).await;
        let error = counted.refused(ErrorCode::InvalidQueryOption);
        assert!(error["message"].as_str().unwrap_or_default().contains("count"), "{counted}");
        let page = get(&db, "t?limit=2", accept).await;
        assert_eq!(page.text().lines().count(), if accept == CSV { 3 } else { 2 }, "{page}");
        let explained = get(&db, "t?explain=true", accept).await;
        assert!(explained.payload()["sql"].is_string(), "{explained}");
    }
    let whole = get(&db, "t?limit=2&count=true", "*/*").await.json();
    assert_eq!(whole["count"], 5);
}

async fn no_rows_leave_the_header_alone(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, `a,b` INT)"]).await;
    for rest in ["t", "t?limit=0"] {
        assert_eq!(get(&db, rest, CSV).await.text(), "id,\"a,b\"\r\n");
        assert!(lines(&get(&db, rest, NDJSON).await).is_empty());
    }
    let sql = db.sql("SELECT id FROM t").header("accept", CSV).send().await;
    assert_eq!(sql.text(), "id\r\n");
}

async fn the_form_must_be_preferred_to_json(host: Host) {
    let path = "/api/v1/crud/demo/posts?limit=1&selectFields=id";
    for (accept, expected) in [
        ("*/*", "application/json"),
        ("application/json, text/csv", "application/json"),
        ("text/csv;q=0.5, application/json", "application/json"),
        ("text/html, */*;q=0.1", "application/json"),
        ("image/png", "application/json"),
        ("text/csv, */*;q=0.1", "text/csv; charset=utf-8; header=present"),
        ("TEXT/CSV; charset=utf-8", "text/csv; charset=utf-8; header=present"),
        ("application/ndjson", NDJSON),
        ("application/jsonl, application/json;q=0.2", NDJSON),
    ] {
        let answer = host.get(path).header("accept", accept).send().await;
        assert_eq!(answer.header("content-type"), Some(expected), "{accept}: {answer}");
    }
    let two = host.get(path).header("accept", "application/json;q=0.5").header("accept", CSV);
    table(&two.send().await);
}

async fn refusals_are_in_the_envelope_whatever_is_accepted(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    for accept in [CSV, NDJSON] {
        for (rest, code) in [
            ("t?selectFields=nope", ErrorCode::UnknownField),
            ("t?limit=x", ErrorCode::InvalidQueryOption),
            ("nope", ErrorCode::TableNotFound),
            ("t/1", ErrorCode::RecordNotFound),
        ] {
            let answer = get(&db, rest, accept).await;
            answer.refused(code);
            assert_eq!(answer.header("content-type"), Some("application/json"));
        }
        let sql = db.sql("SELEKT").header("accept", accept).send().await;
        sql.refused(ErrorCode::SqlError);
    }
}

async fn what_is_no_read_ignores_accept(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, a INT)"]).await;
    let body = json!({"id": 1, "a": 2});
    for (call, payload) in [
        (db.call(Method::POST, "t").json(&body), json!(1)),
        (db.call(Method::PUT, "t/1").json(&json!({"a": 3})), json!(1)),
        (db.call(Method::DELETE, "t/1"), json!(1)),
        (db.sql("BEGIN NOT ATOMIC SELECT 1 AS a; END"), json!([{"a": 1}])),
    ] {
        assert_eq!(call.header("accept", CSV).send().await.payload(), payload);
    }
    let schema = db.call(Method::GET, "t/_schema").header("accept", CSV).send().await;
    assert_eq!(schema.payload()["schema"][0]["name"], "id");
    let created = db.sql("CREATE TABLE u (id INT)").header("accept", NDJSON).send().await;
    assert_eq!(created.payload()["affectedRows"], 0);
    let written = db.sql("INSERT INTO t VALUES (5, 6)").header("accept", CSV).send().await;
    assert_eq!(written.text(), "affectedRows,insertId,warnings\r\n1,0,0\r\n");
}

async fn stored_json_stays_in_its_line(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v JSON)",
            "INSERT INTO t VALUES (1, '{\\n  \"a\": [1,\\r\\n 2],\\n  \"b\": \"x\\\\ny\"\\n}')",
        ],
    )
    .await;
    let lines = lines(&get(&db, "t", NDJSON).await);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let record: Value = serde_json::from_str(&lines[0]).expect("a record");
    assert_eq!(record, json!({"id": 1, "v": {"a": [1, 2], "b": "x\ny"}}));
}

async fn long_tables_come_whole_in_every_form(host: Host) {
    const ROWS: usize = 60_000;
    let db = TestDb::new(host, &["CREATE TABLE big (id INT PRIMARY KEY, name VARCHAR(100))"]).await;
    db.exec(&format!(
        "INSERT INTO big SELECT seq, CONCAT('row \"', seq, '\", ', REPEAT('x', 60)) FROM seq_1_to_{ROWS}"
    ))
    .await;
    let (_, rows) = table(&get(&db, "big?order[field]=id", CSV).await);
    let lines = lines(&get(&db, "big?order[field]=id", NDJSON).await);
    assert_eq!((rows.len(), lines.len()), (ROWS, ROWS));
    for (index, (row, line)) in rows.iter().zip(&lines).enumerate() {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert_eq!(record["id"], index + 1);
        assert_eq!(row[0], (index + 1).to_string());
        assert_eq!(record["name"], row[1].as_str());
    }
}

async fn a_caller_of_http_1_0_gets_the_envelope(host: Host) {
    let headers = format!("Authorization: Bearer {}\r\nAccept: text/csv\r\n", shared().read_key);
    let target = b"/api/v1/crud/demo/posts?limit=1&selectFields=id";
    let newer = request("GET", target, &headers, b"");
    let older = String::from_utf8(newer.clone()).unwrap().replace("HTTP/1.1", "HTTP/1.0");
    for (request, expected) in
        [(newer, "content-type: text/csv"), (older.into_bytes(), "content-type: application/json")]
    {
        let answer = converse(host.url(), &request, |_| false).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains(expected), "{answer}");
    }
}

async fn a_cut_answer_ends_with_a_mark_in_every_coding(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE big (id INT PRIMARY KEY, name VARCHAR(100))"]).await;
    db.exec("INSERT INTO big SELECT seq, REPEAT('x', 80) FROM seq_1_to_100000").await;
    let query = "SELECT id, name, IF(id = 90000, (SELECT id FROM big WHERE id < 3), 1) AS x FROM big";
    db.exec(&format!("CREATE VIEW failing AS {query}")).await;
    for (accept, mark) in [(CSV, Format::Csv.cut_mark()), (NDJSON, Format::NdJson.cut_mark())] {
        for coding in ["identity", "gzip"] {
            for call in [db.sql(query), db.call(Method::GET, "failing")] {
                let call = call.header("accept", accept).header("accept-encoding", coding);
                let response = call.request().send().await.expect("a head");
                assert_eq!(response.status(), 200);
                let encoded = response.headers().contains_key("content-encoding");
                assert_eq!(encoded, coding == "gzip");
                let (body, ended) = read_all(response).await;
                // workerd ends a broken answer like a complete one.
                assert!(!ended || host == Host::Edge, "{accept}: a cut answer came to a proper end");
                let mut text = Vec::new();
                match encoded {
                    // Fails at the end of the text, since the end of the coding is missing.
                    true => drop(flate2::read::GzDecoder::new(&*body).read_to_end(&mut text)),
                    false => text = body,
                }
                assert!(text.ends_with(mark.as_bytes()), "{accept} {coding}: …{:?}", text.last_chunk::<80>());
            }
        }
    }
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}
