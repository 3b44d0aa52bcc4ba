//! DATE, DATETIME, TIMESTAMP, TIME: returned as MariaDB's text in UTC; accepted in that form or as RFC 3339.

use super::Found::{ByInput, NotAsked};
use super::{are_no_filters, are_refused, round_trips};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::json;

cases! {
    Both: [
        dates_are_their_text,
        datetimes_keep_their_fraction,
        datetimes_take_rfc_3339,
        timestamps_are_utc,
        times_go_beyond_a_day_and_below_zero,
        zero_dates_come_out_as_they_are,
        times_that_are_none_are_refused,
        sessions_run_at_utc,
        ranges_of_times_are_found,
        rfc_3339_is_read_in_every_spelling,
        zero_dates_are_found,
        what_is_no_time_is_no_filter,
    ],
}

async fn dates_are_their_text(host: Host) {
    let pairs = [
        ("\"2026-11-20\"", "\"2026-11-20\""),
        ("\"1000-01-01\"", "\"1000-01-01\""),
        ("\"9999-12-31\"", "\"9999-12-31\""),
        ("\"2024-02-29\"", "\"2024-02-29\""),
        ("null", "null"),
    ];
    round_trips(host, "DATE", ByInput, &pairs).await;
}

async fn datetimes_keep_their_fraction(host: Host) {
    let pairs = [
        ("\"2026-11-20 08:36:16\"", "\"2026-11-20 08:36:16\""),
        ("\"9999-12-31 23:59:59\"", "\"9999-12-31 23:59:59\""),
        ("\"2026-11-20 00:00:00\"", "\"2026-11-20 00:00:00\""),
    ];
    round_trips(host, "DATETIME", ByInput, &pairs).await;
    let pairs = [
        ("\"2026-11-20 08:36:16.123456\"", "\"2026-11-20 08:36:16.123456\""),
        ("\"2026-11-20 08:36:16.5\"", "\"2026-11-20 08:36:16.500000\""),
        ("\"2026-11-20 08:36:16\"", "\"2026-11-20 08:36:16.000000\""),
        ("\"2026-11-20 00:00:00.000001\"", "\"2026-11-20 00:00:00.000001\""),
    ];
    round_trips(host, "DATETIME(6)", ByInput, &pairs).await;
    round_trips(host, "DATETIME(3)", ByInput, &[("\"2026-11-20 08:36:16.120\"", "\"2026-11-20 08:36:16.120\"")]).await;
}

async fn datetimes_take_rfc_3339(host: Host) {
    let pairs = [
        ("\"2026-11-20T08:36:16Z\"", "\"2026-11-20 08:36:16\""),
        ("\"2026-11-20T08:36:16\"", "\"2026-11-20 08:36:16\""),
        ("\"2026-11-20T08:36:16+02:00\"", "\"2026-11-20 06:36:16\""),
        ("\"2026-11-20T08:36:16-05:30\"", "\"2026-11-20 14:06:16\""),
        ("\"2026-12-31T23:30:00-01:00\"", "\"2027-01-01 00:30:00\""),
        ("\"2024-02-29T00:30:00+01:00\"", "\"2024-02-28 23:30:00\""),
    ];
    round_trips(host, "DATETIME", ByInput, &pairs).await;
    round_trips(host, "TIMESTAMP NULL", ByInput, &pairs).await;
    let fractions = [
        ("\"2026-11-20T08:36:16.123Z\"", "\"2026-11-20 08:36:16.123000\""),
        ("\"2026-11-20T08:36:16.123456+02:00\"", "\"2026-11-20 06:36:16.123456\""),
    ];
    round_trips(host, "DATETIME(6)", ByInput, &fractions).await;
}

async fn timestamps_are_utc(host: Host) {
    let pairs = [
        ("\"2026-11-20 08:36:16\"", "\"2026-11-20 08:36:16\""),
        ("\"1970-01-01 00:00:01\"", "\"1970-01-01 00:00:01\""),
        ("null", "null"),
    ];
    round_trips(host, "TIMESTAMP NULL", ByInput, &pairs).await;
    round_trips(
        host,
        "TIMESTAMP(6) NULL",
        ByInput,
        &[("\"2026-11-20 08:36:16.000001\"", "\"2026-11-20 08:36:16.000001\"")],
    )
    .await;
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v TIMESTAMP NULL)"]).await;
    db.post("t", &json!({"id": 1, "v": "2026-07-01T12:00:00Z"})).await.payload();
    assert_eq!(db.value("SELECT UNIX_TIMESTAMP(v) FROM t").await, 1_782_907_200);
}

async fn times_go_beyond_a_day_and_below_zero(host: Host) {
    let pairs = [
        ("\"08:36:16\"", "\"08:36:16\""),
        ("\"25:00:00\"", "\"25:00:00\""),
        ("\"838:59:59\"", "\"838:59:59\""),
        ("\"-838:59:59\"", "\"-838:59:59\""),
        ("\"-00:00:01\"", "\"-00:00:01\""),
        ("\"00:00:00\"", "\"00:00:00\""),
        ("\"100:00:00\"", "\"100:00:00\""),
        ("null", "null"),
    ];
    round_trips(host, "TIME", ByInput, &pairs).await;
    let fractions = [
        ("\"08:36:16.500\"", "\"08:36:16.500\""),
        ("\"-25:00:00.001\"", "\"-25:00:00.001\""),
        ("\"00:00:00\"", "\"00:00:00.000\""),
    ];
    round_trips(host, "TIME(3)", ByInput, &fractions).await;
}

async fn zero_dates_come_out_as_they_are(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, d DATE, t DATETIME, u DATETIME(3), s TIMESTAMP NULL, y YEAR)"],
    )
    .await;
    db.behind(
        "SET sql_mode = ''; INSERT INTO t VALUES (1, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00', '0000-00-00 00:00:00', 0), \
         (2, '2026-00-00', '2026-05-00 10:00:00', '0000-00-00 00:00:01.5', NULL, NULL)",
    );
    let zero = json!({"id": 1, "d": "0000-00-00", "t": "0000-00-00 00:00:00", "u": "0000-00-00 00:00:00.000", "s": "0000-00-00 00:00:00", "y": 0});
    let partial = json!({"id": 2, "d": "2026-00-00", "t": "2026-05-00 10:00:00", "u": "0000-00-00 00:00:01.500", "s": null, "y": null});
    assert_eq!(db.get("t?order[field]=id").await.payload(), json!([zero, partial]));
    assert_eq!(db.get("t/1").await.payload(), zero);
    assert_eq!(db.exec("SELECT * FROM t ORDER BY id").await, json!([zero, partial]));
    let bound = db.sql_with("SELECT * FROM t WHERE id > ? ORDER BY id", json!([0])).send().await;
    assert_eq!(bound.payload(), json!([zero, partial]));
}

async fn times_that_are_none_are_refused(host: Host) {
    are_refused(host, "DATE", &["\"2026-02-30\"", "\"2026-13-01\"", "\"x\"", "\"\"", "true", "{}"]).await;
    are_refused(
        host,
        "DATETIME",
        &[
            "\"2026-11-20T25:00:00Z\"",
            "\"2026-02-30 00:00:00\"",
            "\"yesterday\"",
            "\"2026-11-20T08:36:16+99:00\"",
            "\"2026-11-20T24:00:00Z\"",
            "\"2026-11-20 08:36:60\"",
            "\"0000-00-00T00:00:00+02:00\"",
            "\"20261120083616\"",
            "20261120083616",
        ],
    )
    .await;
    are_refused(
        host,
        "TIME",
        &["\"x\"", "\"12:60:00\"", "\"900:00:00\"", "\"838:59:60\"", "\"839:00:00\"", "\"10\"", "101112"],
    )
    .await;
    are_refused(host, "TIMESTAMP NULL", &["\"2200-01-01 00:00:00\"", "\"1960-01-01 00:00:00\""]).await;
}

async fn sessions_run_at_utc(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"]).await;
    let rows = db.exec("SELECT TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), NOW()) AS off").await;
    assert_eq!(rows, json!([{"off": 0}]));
    db.post("t", &json!({"id": 1})).await.payload();
    let minutes = db.value("SELECT ABS(TIMESTAMPDIFF(MINUTE, v, UTC_TIMESTAMP())) FROM t").await;
    assert!(minutes.as_i64().unwrap() <= 1, "{minutes}");
}

async fn ranges_of_times_are_found(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v DATETIME(3))",
            "INSERT INTO t VALUES (1, '2026-01-01 00:00:00.000'), (2, '2026-01-01 00:00:00.500'), (3, '2026-06-01 12:00:00')",
        ],
    )
    .await;
    for (value, equality, ids) in [
        (json!("2026-01-01T00:00:00.250Z"), "<", vec![1]),
        (json!("2026-01-01 00:00:00.500"), ">=", vec![2, 3]),
        (json!(["2026-01-01T01:00:00.500+01:00", "2026-06-01T12:00:00Z"]), "BETWEEN", vec![2, 3]),
        (json!(["2026-06-01T14:00:00+02:00"]), "IN", vec![3]),
    ] {
        let query = json!({"v": {"value": value, "equality": equality}});
        assert_eq!(db.ids("t", &query, "").await, ids, "{query}");
    }
}

async fn rfc_3339_is_read_in_every_spelling(host: Host) {
    let pairs = [
        ("\"2026-11-20t08:36:16z\"", "\"2026-11-20 08:36:16\""),
        ("\"2026-11-20 08:36:16Z\"", "\"2026-11-20 08:36:16\""),
        ("\"2026-11-20T08:36:16-00:00\"", "\"2026-11-20 08:36:16\""),
        ("\"2026-11-20T08:36+0530\"", "\"2026-11-20 03:06:00\""),
        ("\"2016-12-31T23:59:60Z\"", "\"2016-12-31 23:59:59\""),
        ("\"2027-01-01T00:30:00+01:00\"", "\"2026-12-31 23:30:00\""),
    ];
    round_trips(host, "DATETIME", ByInput, &pairs).await;
    round_trips(host, "TIMESTAMP NULL", ByInput, &pairs).await;
    // Further digits of a fraction are cut off as in MariaDB, not rounded, so the value becomes another time.
    let cut = [
        ("\"2026-11-20T08:36:16.9999Z\"", "\"2026-11-20 08:36:16.999\""),
        ("\"2026-11-20T08:36:16.123456789Z\"", "\"2026-11-20 08:36:16.123\""),
    ];
    round_trips(host, "DATETIME(3)", NotAsked, &cut).await;
    let nine = [
        ("\"2026-11-20T08:36:16.123456789Z\"", "\"2026-11-20 08:36:16.123456\""),
        ("\"2026-11-20T08:36:16.1Z\"", "\"2026-11-20 08:36:16.100000\""),
    ];
    round_trips(host, "DATETIME(6)", ByInput, &nine).await;
    round_trips(
        host,
        "DATE",
        NotAsked,
        &[
            ("\"2026-11-20T00:00:00.000Z\"", "\"2026-11-20\""),
            ("\"2026-11-20T23:30:00-01:00\"", "\"2026-11-21\""),
            ("\"2026-1-5\"", "\"2026-01-05\""),
        ],
    )
    .await;
    round_trips(
        host,
        "TIME(1)",
        ByInput,
        &[
            ("\"10:11:12.5Z\"", "\"10:11:12.5\""),
            ("\"2026-11-20T10:11:12+02:00\"", "\"08:11:12.0\""),
            ("\"-838:59:59.9\"", "\"-838:59:59.9\""),
            ("\"10:11\"", "\"10:11:00.0\""),
        ],
    )
    .await;
}

async fn zero_dates_are_found(host: Host) {
    let pairs = [
        ("\"0000-00-00\"", "\"0000-00-00\""),
        ("\"2026-00-10\"", "\"2026-00-10\""),
        ("\"2026-02-00\"", "\"2026-02-00\""),
        ("\"0000-01-01\"", "\"0000-01-01\""),
    ];
    round_trips(host, "DATE", ByInput, &pairs).await;
    let pairs = [
        ("\"0000-00-00 00:00:00\"", "\"0000-00-00 00:00:00\""),
        ("\"2026-00-10 01:02:03\"", "\"2026-00-10 01:02:03\""),
    ];
    round_trips(host, "DATETIME", ByInput, &pairs).await;
    round_trips(host, "TIMESTAMP NULL", ByInput, &pairs[..1]).await;
}

async fn what_is_no_time_is_no_filter(host: Host) {
    let days = ["\"2026-02-30\"", "\"2026-13-01\"", "\"x\"", "\"\"", "20261120", "true"];
    are_no_filters(host, "DATE", &days).await;
    are_no_filters(host, "DATETIME(6)", &days).await;
    are_no_filters(host, "TIMESTAMP NULL", &["\"2026-11-20 25:00:00\"", "\"now\""]).await;
    are_no_filters(host, "TIME", &["\"900:00:00\"", "\"12:60:00\"", "\"noon\"", "12"]).await;
}
