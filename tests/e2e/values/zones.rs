//! Values are in UTC, whatever the time zone of MariaDB and of the machine.

use crate::host::{Call, Host};
use crate::service::{Edge, Service};
use reqwest::Method;
use serde_json::json;

cases! {
    Own: [times_are_at_utc_on_a_server_of_another_zone],
}

/// New York's time zone as a rule, so that no zone file is needed.
const NEW_YORK: &str = "EST5EDT,M3.2.0,M11.1.0";
/// Times around the hours that New York skips and repeats in 2026.
const INSTANTS: [(&str, &str, i64); 5] = [
    ("2026-03-08T02:30:00Z", "2026-03-08 02:30:00", 1_772_937_000),
    ("2026-03-08T06:59:59Z", "2026-03-08 06:59:59", 1_772_953_199),
    ("2026-03-08T03:00:00-04:00", "2026-03-08 07:00:00", 1_772_953_200),
    ("2026-11-01T01:30:00-04:00", "2026-11-01 05:30:00", 1_793_511_000),
    ("2026-11-01T01:30:00-05:00", "2026-11-01 06:30:00", 1_793_514_600),
];

async fn times_are_at_utc_on_a_server_of_another_zone(_: Host) {
    let started = tokio::task::spawn_blocking(|| Service::start(Edge::Without, &[("TZ", NEW_YORK)]));
    let service = started.await.expect("a task").expect("a service");
    // The machine's time zone is MariaDB's default.
    service.root_sql("SET GLOBAL time_zone = 'SYSTEM'").expect("a zone");
    let zone = service.root_sql("SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW())").expect("a zone");
    assert!(["-4", "-5"].contains(&zone.trim()), "the server is not in New York: {zone}");
    let records = format!("/api/v1/crud/{}/zoned", service.database);
    let call = |method: Method, path: &str| Call::new(&service.origin, method, path).key(&service.full_key);
    let sql = async |query: &str| {
        let body = json!({"query": query, "database": service.database});
        call(Method::POST, "/api/v1/sql").json(&body).send().await.payload()
    };
    sql("CREATE TABLE zoned (id INT PRIMARY KEY AUTO_INCREMENT, s TIMESTAMP NULL, d DATETIME, KEY(s))").await;
    for (given, text, unix) in INSTANTS {
        let inserted = call(Method::POST, &records).json(&json!({"s": given, "d": given})).send().await;
        let id = inserted.payload();
        let record = call(Method::GET, &format!("{records}/{id}")).send().await.payload();
        assert_eq!(record, json!({"id": id, "s": text, "d": text}), "{given}");
        let seconds =
            sql(&format!("SELECT UNIX_TIMESTAMP(s) AS s, UNIX_TIMESTAMP(d) AS d FROM zoned WHERE id = {id}")).await;
        assert_eq!(seconds, json!([{"s": unix, "d": unix}]), "{given}");
        for field in ["s", "d"] {
            let query = crate::host::option("query", &json!({field: given}));
            let found = call(Method::GET, &format!("{records}?{query}&selectFields=id")).send().await;
            assert_eq!(found.payload(), json!([{"id": id}]), "{field} {given}");
        }
        // The session's time zone, which a client's SQL changed, returns to UTC.
        sql("SET time_zone = '+05:00'").await;
    }
    service.root_sql("SET GLOBAL time_zone = '-11:00'").expect("a zone");
    let seconds = sql("SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), NOW()) AS off").await;
    assert_eq!(seconds, json!([{"off": 0}]));
    tokio::task::spawn_blocking(move || service.stop()).await.expect("a task").expect("an end");
}
