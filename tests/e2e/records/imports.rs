//! Inserts of CSV and of NDJSON behave like inserts of `batchData`.

use crate::formats::types::{TYPES, types};
use crate::host::{Answer, Host};
use crate::raw::{self, Wire};
use crate::roles::Caller;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode::{self, *};
use std::fmt::Write as _;

const CSV: &str = "text/csv";
const NDJSON: &str = "application/x-ndjson";

const TABLES: &[&str] =
    &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL DEFAULT 'none', n INT UNIQUE, \
     meta JSON, b BOOLEAN)"];

cases! {
    Both: [
        csv_and_lines_are_rows_of_one_insert,
        what_is_read_as_csv_or_lines_is_inserted_equal,
        an_empty_cell_is_null_or_the_default,
        what_is_no_csv_is_refused_with_its_line,
        what_is_no_line_of_json_is_refused_with_its_line,
        a_body_of_another_type_or_charset_is_refused,
        all_rows_are_inserted_or_none,
        a_body_that_breaks_off_inserts_nothing,
        imports_are_upserts_and_are_repeated_safely,
        a_role_sets_and_denies_fields_of_imports,
        imports_have_the_limits_of_a_batch,
    ],
}

async fn send(db: &TestDb, rest: &str, kind: &str, body: impl Into<Vec<u8>>) -> Answer {
    db.call(Method::POST, rest).header("content-type", kind).bytes(body).send().await
}

async fn a_body_that_breaks_off_inserts_nothing(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let target = format!("/api/v1/crud/{}/t", db.name);
    for (kind, body) in [(CSV, "name\na\n"), (NDJSON, "{\"name\":\"a\"}\n"), ("application/json", "{\"name\":\"a\"}")] {
        let length = body.len();
        let chunk = format!("{length:x}\r\n{body}\r\n");
        for (framing, sent) in [
            ("Transfer-Encoding: chunked".to_owned(), chunk.clone()),
            ("Transfer-Encoding: chunked".to_owned(), chunk + "no size\r\n"),
            (format!("Content-Length: {}", length + 1), body.to_owned()),
        ] {
            let key = &shared().full_key;
            let headers = format!("Authorization: Bearer {key}\r\nContent-Type: {kind}\r\n{framing}\r\n");
            let mut wire = Wire::open(host.url()).await;
            wire.send(&raw::request("POST", target.as_bytes(), &headers, b"")).await;
            wire.send(sent.as_bytes()).await;
            wire.finish().await;
            let answer = wire.answer().await.expect("an answer");
            assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_body"), "{kind} {framing} {sent:?}");
        }
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, json!(0));
}

async fn csv_and_lines_are_rows_of_one_insert(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let expected = json!([
        {"id": 1, "name": "a, \"b\"", "n": 5, "meta": {"k": [1]}, "b": 1},
        {"id": 2, "name": "line\nline", "n": null, "meta": "text", "b": 0},
    ]);
    for (kind, body) in [
        (CSV, "name,n,meta,b\r\n\"a, \"\"b\"\"\",5,\"{\"\"k\"\":[1]}\",1\r\n\"line\nline\",,\"\"\"text\"\"\",0\r\n"),
        (
            "Text/CSV; Charset=\"UTF-8\"; header=present",
            "\u{feff}n,name,b,meta\n5,\"a, \"\"b\"\"\",true,\"{\"\"k\"\": [1]}\"\n\n,\"line\nline\",False,\"\"\"text\"\"\"",
        ),
        (
            NDJSON,
            "{\"name\":\"a, \\\"b\\\"\",\"n\":5,\"meta\":{\"k\":[1]},\"b\":true}\n\n \r\n{\"b\":0,\"meta\":\"text\",\"name\":\"line\\nline\"}",
        ),
        (
            "application/jsonl; charset=utf-8",
            "\u{feff} {\"name\":\"a, \\\"b\\\"\",\"n\":\"5\",\"meta\":{\"k\":[1]},\"b\":1} \r\n{\"b\":0,\"meta\":\"text\",\"name\":\"line\\nline\",\"n\":null}\r\n",
        ),
        (
            "application/ndjson",
            "{\"name\":\"a, \\\"b\\\"\",\"n\":5,\"meta\":{\"k\":[1]},\"b\":1}\n{\"b\":0,\"meta\":\"text\",\"name\":\"line\\nline\"}\n",
        ),
    ] {
        let answer = send(&db, "t", kind, body).await;
        assert_eq!(answer.payload(), json!([1, 2]), "{kind}");
        assert_eq!(db.get("t?order=id").await.payload(), expected, "{kind}");
        db.exec("TRUNCATE TABLE t").await;
    }
    // A single row is answered with a list of one id.
    assert_eq!(send(&db, "t/", CSV, "name\nx").await.payload(), json!([1]));
    assert_eq!(send(&db, "t", NDJSON, "{}").await.payload(), json!([2]));
    assert_eq!(db.get("t/2").await.payload()["name"], "none");
}

async fn what_is_read_as_csv_or_lines_is_inserted_equal(host: Host) {
    let db = types(host).await;
    db.exec("CREATE TABLE copy LIKE t").await;
    let read = async |table: &str, kind: &str| {
        db.call(Method::GET, &format!("{table}?order=id")).header("accept", kind).send().await.text()
    };
    for (kind, lines) in [(CSV, 4), (NDJSON, 3)] {
        let rows = read("t", kind).await;
        assert!(rows.matches('\n').count() >= lines, "{rows}");
        assert_eq!(send(&db, "copy", kind, rows.clone()).await.payload(), json!([0, 1, 2]), "{kind}");
        assert_eq!(read("copy", kind).await, rows);
        for (column, ..) in TYPES {
            // A JSON null is NULL in NDJSON, as in any JSON body.
            let null = if kind == NDJSON && column == "scalar" { " AND t.id > 0" } else { "" };
            let differ = format!(
                "SELECT COUNT(*) FROM t JOIN copy USING (id) WHERE NOT (t.`{column}` <=> copy.`{column}`){null}"
            );
            assert_eq!(db.value(&differ).await, 0, "{column} as {kind}");
        }
        db.exec("TRUNCATE TABLE copy").await;
    }
}

async fn an_empty_cell_is_null_or_the_default(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let body = "id,name,n\n,,\n,\"\",7\n";
    assert_eq!(send(&db, "t", CSV, body).await.payload(), json!([1, 2]));
    let rows = db.get("t?selectFields=id,name,n&order=id").await.payload();
    assert_eq!(rows, json!([{"id": 1, "name": "none", "n": null}, {"id": 2, "name": "", "n": 7}]));
    // In a table of one column, an empty line is a row.
    db.exec("CREATE TABLE one (word TEXT)").await;
    send(&db, "one", CSV, "word\r\na\r\n\r\n\"\"\r\n").await.payload();
    assert_eq!(db.exec("SELECT word FROM one").await, json!([{"word": "a"}, {"word": null}, {"word": ""}]));
    // Blanks at the end of a name in the header row don't count.
    send(&db, "t", CSV, "id ,\"name \"\n90,x\n").await.payload();
    assert_eq!(db.get("t/90").await.payload()["name"], "x");
}

/// Returns the index of the record at fault, or null.
async fn refused(db: &TestDb, kind: &str, body: impl Into<Vec<u8>>, code: ErrorCode, part: &str) -> Value {
    let body = body.into();
    let answer = send(db, "t", kind, body.clone()).await;
    let error = answer.refused(code);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains(part), "{}: {answer}", String::from_utf8_lossy(&body));
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0, "{answer}");
    error["details"]["row"].clone()
}

async fn what_is_no_csv_is_refused_with_its_line(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for (body, code, part, row) in [
        ("", InvalidBody, "no header row", json!(null)),
        ("name,n\r\n", InvalidBody, "no record", json!(null)),
        ("name,nope\nx,1", UnknownField, "\"nope\"", json!(0)),
        ("name,\nx,1", UnknownField, "There is no field \"\"", json!(null)),
        ("name,name\nx,y", InvalidBody, "names \"name\" more than once", json!(null)),
        ("name,n\nx,1\ny", InvalidBody, "Line 3 has 1 cells, but the header row has 2", json!(1)),
        ("name,n\nx,1,2", InvalidBody, "Line 2 has 3 cells, but the header row has 2", json!(0)),
        ("name,n\n\"x\ny\",1\n\"z", InvalidBody, "line 4 are not closed", json!(1)),
        ("name,n\n\"x\"y,1", InvalidBody, "closing quote of a cell in line 2", json!(0)),
        ("name,n\n\"x\ny\",1\n\nz,five", InvalidValue, "Line 5: The field \"n\"", json!(1)),
        ("name,meta\nx,{nonsense", InvalidValue, "Line 2: The field \"meta\"", json!(0)),
    ] {
        assert_eq!(refused(&db, CSV, body, code, part).await, row, "{body}");
    }
    refused(&db, CSV, b"name\n\xff".to_vec(), InvalidBody, "not UTF-8").await;
}

async fn what_is_no_line_of_json_is_refused_with_its_line(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for (body, code, part, row) in [
        ("", InvalidBody, "no record", json!(null)),
        (" \n\n", InvalidBody, "no record", json!(null)),
        ("{}\n[]", InvalidBody, "Line 2 must be an object, not a list", json!(1)),
        ("{}\n\n{\"n\":1", InvalidJson, "Line 3 is not valid JSON", json!(1)),
        ("{} {}", InvalidJson, "Line 1 is not valid JSON", json!(0)),
        ("{\"n\":\n1}", InvalidJson, "Line 1 is not valid JSON", json!(0)),
        ("{\"n\":1,\"n\":2}", InvalidBody, "Line 1 can't be read", json!(0)),
        ("{\"nope\":1}", UnknownField, "nope", json!(0)),
        ("{}\n{\"\":1}", UnknownField, "Line 2: There is no field \"\"", json!(1)),
        ("{\"n\":1}\n\n{\"n\":\"x\"}", InvalidValue, "Line 3: The field \"n\"", json!(1)),
    ] {
        assert_eq!(refused(&db, NDJSON, body, code, part).await, row, "{body}");
    }
    refused(&db, NDJSON, b"{\"name\":\"\xff\"}".to_vec(), InvalidJson, "not UTF-8").await;
}

async fn a_body_of_another_type_or_charset_is_refused(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for kind in [
        "text/csv; charset=latin1",
        "text/csv; header=absent",
        "application/x-ndjson; charset=utf-16",
        "text/tab-separated-values",
    ] {
        refused(&db, kind, "name\nx", UnsupportedMediaType, kind.split(';').next().unwrap()).await;
    }
    for (method, rest) in [(Method::PUT, "t/1"), (Method::PATCH, "t"), (Method::DELETE, "t"), (Method::POST, "t/query")]
    {
        let call = db.call(method, rest).header("content-type", CSV).bytes("name\nx");
        call.send().await.refused(UnsupportedMediaType);
    }
    let compressed = db.call(Method::POST, "t").header("content-type", CSV).header("content-encoding", "gzip");
    compressed.bytes("name\nx").send().await.refused(UnsupportedMediaType);
}

async fn all_rows_are_inserted_or_none(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let mut csv = "n\n".to_owned();
    let mut lines = String::new();
    for n in (0..3_000).chain([7]) {
        let _ = writeln!(csv, "{n}");
        let _ = writeln!(lines, "{{\"n\":{n}}}");
    }
    refused(&db, CSV, csv, DuplicateKey, "").await;
    refused(&db, NDJSON, lines, DuplicateKey, "").await;
    send(&db, "t", CSV, "id,n\n1,1\n").await.payload();
    db.call(Method::POST, "t")
        .header("content-type", CSV)
        .key(&shared().read_key)
        .bytes("n\n2\n")
        .send()
        .await
        .refused(FullAccessRequired);
}

async fn imports_are_upserts_and_are_repeated_safely(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    send(&db, "t", CSV, "n,name\n1,a\n2,b\n").await.payload();
    let updated = send(&db, "t?onConflict=update", CSV, "n,name\n2,c\n3,d\n").await.payload();
    assert_eq!(updated[0], 2, "{updated}");
    let ignored =
        send(&db, "t?onConflict=ignore", NDJSON, "{\"n\":2,\"name\":\"e\"}\n{\"n\":4,\"name\":\"f\"}").await.payload();
    assert_eq!(ignored[0], Value::Null, "{ignored}");
    assert_eq!(db.value("SELECT GROUP_CONCAT(name ORDER BY n) FROM t").await, "a,c,d,f");
    let once = async |kind: &str, body: &str| {
        let call = db.call(Method::POST, "t").header("content-type", kind).header("idempotency-key", "import-1");
        call.bytes(body).send().await
    };
    let first = once(NDJSON, "{}\n").await.payload();
    assert_eq!(once(NDJSON, "{}\n").await.payload(), first);
    once("application/json", "{}\n").await.refused(IdempotencyMismatch);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 5);
}

async fn a_role_sets_and_denies_fields_of_imports(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let insert = json!({"fields": ["name"], "set": {"n": {"claim": "sub"}}});
    let caller = Caller::new(&db, [("t", json!({"read": true, "insert": insert}))], json!({"sub": 9}));
    let send = async |kind: &str, body: &str| {
        caller.call(Method::POST, "t").header("content-type", kind).bytes(body).send().await
    };
    assert_eq!(send(CSV, "name\nx\n").await.payload(), json!([1]));
    assert_eq!(db.get("t/1").await.payload()["n"], 9);
    send(CSV, "name,n\nx,1\n").await.refused(RoleForbids);
    send(NDJSON, "{\"name\":\"x\"}\n{\"meta\":1}").await.refused(RoleForbids);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

async fn imports_have_the_limits_of_a_batch(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for (kind, head, row) in [(CSV, "name\n", "x\n"), (NDJSON, "", "{\"name\":\"x\"}\n")] {
        let most = send(&db, "t", kind, format!("{head}{}", row.repeat(10_000))).await;
        assert_eq!(most.payload().as_array().map(Vec::len), Some(10_000));
        db.exec("TRUNCATE TABLE t").await;
        refused(&db, kind, format!("{head}{}", row.repeat(10_001)), InvalidBody, "more than 10000 rows").await;
        refused(&db, kind, vec![b' '; 16 * 1024 * 1024 + 1], BodyTooLarge, "larger than").await;
    }
    let wide: Vec<String> = (0..5_000).map(|n| format!("c{n}")).collect();
    refused(&db, CSV, wide.join(","), InvalidBody, "more than 4096 cells").await;
    let deep = format!("{{\"meta\":{}1{}}}", "[".repeat(40), "]".repeat(40));
    refused(&db, NDJSON, deep, InvalidJson, "nests deeper").await;
}
