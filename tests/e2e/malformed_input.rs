//! Tests malformed requests: each is refused with its code, and none harms the service.

use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        huge_numbers_are_refused_or_kept,
        nul_bytes_are_refused_or_kept,
    ],
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
}
