//! Tests malformed requests: each is refused with its code, and none harms the service.

use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        bodies_that_are_no_json_are_refused,
        broken_utf_8_is_refused,
        other_content_types_are_refused,
        huge_numbers_are_refused_or_kept,
        nul_bytes_are_refused_or_kept,
        json_that_only_some_parsers_take_is_refused,
    ],
}

async fn bodies_that_are_no_json_are_refused(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)", "INSERT INTO t VALUES (1, 1)"],
    )
    .await;
    let bodies = [
        "{",
        "}",
        "{]",
        "nonsense",
        "{\"v\":}",
        "{\"v\":1,}",
        "{v:1}",
        "{'v':1}",
        "{\"v\":01}",
        "{\"v\":+1}",
        "{\"v\":.5}",
        "{\"v\":1.}",
        "{\"v\":0x10}",
        "{\"v\":NaN}",
        "{\"v\":Infinity}",
        "{\"v\":undefined}",
        "{\"v\":\"\u{1}\"}",
        "{\"v\":\"\\x41\"}",
        "{\"v\":\"\\u12\"}",
        "{\"v\":1} trailing",
        "{\"v\":1}{\"v\":2}",
        "// c\n{\"v\":1}",
        "\u{feff}{\"v\":1}x",
        "v=1&w=2",
        "<xml/>",
        "{\"v\":\"",
        "{\"v\":tru}",
        "\0",
    ];
    for body in bodies {
        for (method, rest) in
            [(Method::POST, "t"), (Method::PUT, "t/1"), (Method::DELETE, "t"), (Method::POST, "t/query")]
        {
            let answer = db.call(method, rest).bytes(body).send().await;
            answer.refused(ErrorCode::InvalidJson);
        }
        host.call(Method::POST, "/api/v1/sql").bytes(body).send().await.refused(ErrorCode::InvalidJson);
    }
    assert_eq!(db.exec("SELECT * FROM t").await, json!([{"id": 1, "v": 1}]));
}

async fn broken_utf_8_is_refused(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)"]).await;
    let broken: [&[u8]; 6] = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xaf", b"\xe6\x97"];
    for bytes in broken {
        let body = [b"{\"v\":\"", bytes, b"\"}"].concat();
        db.call(Method::POST, "t").bytes(body).send().await.refused(ErrorCode::InvalidJson);
        let body = [b"{\"query\":\"SELECT '", bytes, b"'\"}"].concat();
        host.call(Method::POST, "/api/v1/sql").bytes(body).send().await.refused(ErrorCode::InvalidJson);
    }
    for escape in ["\\ud800", "\\udc00", "\\ud83e", "\\ud83e\\u0041"] {
        let answer = db.call(Method::POST, "t").bytes(format!("{{\"v\":\"{escape}\"}}")).send().await;
        answer.refused(ErrorCode::InvalidJson);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn other_content_types_are_refused(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)"]).await;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/xml",
        "json",
        "*/*",
        "text/json",
    ] {
        let call = db.call(Method::POST, "t").bytes("{\"v\":1}").header("content-type", kind);
        call.send().await.refused(ErrorCode::UnsupportedMediaType);
        let call =
            host.call(Method::POST, "/api/v1/sql").bytes("{\"query\":\"SELECT 1\"}").header("content-type", kind);
        call.send().await.refused(ErrorCode::UnsupportedMediaType);
    }
    let compressed = db.call(Method::POST, "t").bytes("\x1f not as it is").header("content-encoding", "gzip");
    let answer = compressed.send().await;
    answer.refused(ErrorCode::UnsupportedMediaType);
    assert!(answer.text().contains("Content-Encoding"), "{answer}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn huge_numbers_are_refused_or_kept(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, i BIGINT, d DOUBLE, x DECIMAL(65,0), v TEXT)"],
    )
    .await;
    let digits = "9".repeat(5_000);
    for number in ["1e999", "-1e999", "1e-999999999999", "1e9999999999999999999999", digits.as_str()] {
        for field in ["i", "d", "x", "v"] {
            let answer = db.call(Method::POST, "t").bytes(format!("{{\"{field}\":{number}}}")).send().await;
            // A text column stores the digits. A DOUBLE stores 0 for a number that is too close to zero.
            if field == "v" || (field == "d" && number.contains("e-")) {
                answer.payload();
            } else {
                answer.refused(ErrorCode::InvalidValue);
            }
        }
        for option in ["limit", "offset", "page"] {
            let more = if option == "limit" { "" } else { "&limit=1" };
            let answer = db.get(&format!("t?{option}={number}{more}")).await;
            answer.refused(ErrorCode::InvalidQueryOption);
        }
        let answer = db.get(&format!("t/{number}")).await;
        answer.refused(ErrorCode::RecordNotFound);
    }
}

async fn nul_bytes_are_refused_or_kept(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)"]).await;
    let id = db.call(Method::POST, "t").bytes("{\"v\":\"a\\u0000b\"}").send().await.payload();
    assert_eq!(db.get(&format!("t/{id}")).await.payload()["v"], "a\u{0}b");
    assert_eq!(db.ids("t", &json!({"v": "a\u{0}b"}), "").await, [id.as_i64().unwrap()]);
    assert_eq!(db.ids("t", &json!({"v": "a"}), "").await, Vec::<i64>::new());
    db.call(Method::POST, "t").bytes("{\"v\":\"a\0b\"}").send().await.refused(ErrorCode::InvalidJson);
    let answer = db.sql("SELECT 1 \u{0}; DROP TABLE t").send().await;
    assert_eq!(answer.status, 400, "{answer}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

async fn json_that_only_some_parsers_take_is_refused(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v JSON)"]).await;
    for inner in [
        "{\"a\":1,}",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\" 1}",
        "[1 2]",
        "'a'",
        "/**/1",
        "[NaN]",
        "{a:1}",
        "\"\\a\"",
        "\"a\nb\"",
        "tRUE",
    ] {
        let answer = db.call(Method::POST, "t").bytes(format!("{{\"v\":{inner}}}")).send().await;
        answer.refused(ErrorCode::InvalidJson);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}
