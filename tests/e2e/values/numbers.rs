//! Integers, BIT, YEAR, DECIMAL, FLOAT, DOUBLE.

use super::Found::{ByInput, NotAsked};
use super::{are_no_filters, are_refused, round_trips};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;

cases! {
    Both: [
        small_integers_are_numbers,
        big_integers_lose_no_digit,
        unsigned_integers_reach_their_maximum,
        integers_take_text_and_booleans,
        bits_are_numbers,
        bits_of_expressions_are_numbers,
        years_are_numbers,
        decimals_are_exact_text,
        decimals_take_numbers_as_written,
        floats_and_doubles_are_shortest,
        numbers_out_of_range_are_refused,
        sums_and_counts_have_the_types_of_mariadb,
        zerofill_is_a_number,
        one_beyond_either_end_is_refused,
        what_is_no_number_is_no_filter,
        numbers_beyond_a_columns_range_compare_as_numbers,
    ],
}

async fn small_integers_are_numbers(host: Host) {
    round_trips(host, "TINYINT", ByInput, &[("-128", "-128"), ("127", "127"), ("0", "0"), ("null", "null")]).await;
    round_trips(host, "SMALLINT", ByInput, &[("-32768", "-32768"), ("32767", "32767")]).await;
    round_trips(host, "MEDIUMINT", ByInput, &[("-8388608", "-8388608"), ("8388607", "8388607")]).await;
    round_trips(host, "INT", ByInput, &[("-2147483648", "-2147483648"), ("2147483647", "2147483647")]).await;
    round_trips(host, "BOOLEAN", ByInput, &[("true", "1"), ("false", "0"), ("1", "1")]).await;
}

async fn big_integers_lose_no_digit(host: Host) {
    let pairs = [
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991", "-9007199254740991"),
        ("9007199254740992", "\"9007199254740992\""),
        ("9007199254740993", "\"9007199254740993\""),
        ("-9007199254740993", "\"-9007199254740993\""),
        ("\"9007199254740993\"", "\"9007199254740993\""),
        ("9223372036854775807", "\"9223372036854775807\""),
        ("-9223372036854775808", "\"-9223372036854775808\""),
        ("\"-9223372036854775808\"", "\"-9223372036854775808\""),
    ];
    round_trips(host, "BIGINT", ByInput, &pairs).await;
}

async fn unsigned_integers_reach_their_maximum(host: Host) {
    let pairs = [
        ("18446744073709551615", "\"18446744073709551615\""),
        ("\"18446744073709551615\"", "\"18446744073709551615\""),
        ("9223372036854775808", "\"9223372036854775808\""),
        ("0", "0"),
    ];
    round_trips(host, "BIGINT UNSIGNED", ByInput, &pairs).await;
    round_trips(host, "INT UNSIGNED", ByInput, &[("4294967295", "4294967295")]).await;
    round_trips(host, "TINYINT UNSIGNED", ByInput, &[("255", "255")]).await;
}

async fn integers_take_text_and_booleans(host: Host) {
    let pairs = [("\"42\"", "42"), ("\"-7\"", "-7"), ("true", "1"), ("false", "0")];
    round_trips(host, "INT", ByInput, &pairs).await;
}

async fn bits_are_numbers(host: Host) {
    round_trips(host, "BIT(1)", ByInput, &[("1", "1"), ("0", "0"), ("true", "1"), ("\"1\"", "1"), ("null", "null")])
        .await;
    round_trips(host, "BIT(8)", ByInput, &[("255", "255"), ("49", "49"), ("\"49\"", "49")]).await;
    let wide = [("18446744073709551615", "\"18446744073709551615\""), ("9007199254740991", "9007199254740991")];
    round_trips(host, "BIT(64)", ByInput, &wide).await;
}

/// MariaDB sends the bits of BIT columns, but the decimal digits of most expressions of type BIT.
async fn bits_of_expressions_are_numbers(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a BIT(1), b BIT(8), c BIT(10), d BIT(32), e BIT(64), n BIT(10))",
            "INSERT INTO t VALUES (1, 1, 53, 1022, 4000000000, 18446744073709551615, NULL), (2, 0, 5, 12, 49, 9, NULL)",
            "CREATE VIEW v AS SELECT id, COALESCE(b) AS b, c, (SELECT MAX(c) FROM t) AS m, COALESCE(e) AS e FROM t",
            "CREATE PROCEDURE p() SELECT MAX(b) AS b, MIN(b) AS small, MAX(e) AS e FROM t",
        ],
    )
    .await;
    let all = |form: &str| {
        let columns = ["a", "b", "c", "d", "e", "n"].map(|name| format!("{} AS {name}", form.replace('$', name)));
        columns.join(", ")
    };
    let first = json!({"a": 1, "b": 53, "c": 1022, "d": 4_000_000_000_u64, "e": "18446744073709551615", "n": null});
    let second = json!({"a": 0, "b": 5, "c": 12, "d": 49, "e": 9, "n": null});
    for (form, rest, expected) in [
        ("$", "WHERE id = ?", &first),
        ("MAX($)", "WHERE id > ? - 1", &first),
        ("MIN($)", "WHERE id > ? - 1", &second),
        ("(SELECT MAX($) FROM t)", "WHERE id = ?", &first),
        ("(SELECT MIN(u.$) FROM (SELECT $ FROM t UNION SELECT $ FROM t) u)", "WHERE id = ?", &second),
        ("COALESCE($)", "WHERE id = ? + 1", &second),
        ("IF(id = 1, $, NULL)", "WHERE id = ?", &first),
        ("MAX($)", "WHERE id = ? GROUP BY id ORDER BY id", &first),
        ("MAX($) OVER (ORDER BY id)", "WHERE id = ?", &first),
        ("FIRST_VALUE($) OVER (ORDER BY id)", "WHERE id = ? + 1", &second),
        (
            "COALESCE($)",
            "WHERE id = ? AND id IN (SELECT id FROM t) UNION ALL SELECT a, b, c, d, e, n FROM t WHERE 1 = 0",
            &first,
        ),
    ] {
        let query = format!("SELECT {} FROM t {rest}", all(form));
        assert_eq!(db.sql_with(&query, json!([1])).send().await.payload(), json!([expected]), "{query}");
        let plain = query.replace('?', "1");
        assert_eq!(db.exec(&plain).await, json!([expected]), "{plain}");
        let csv = db.sql(&plain).header("accept", "text/csv").send().await;
        let values = ["a", "b", "c", "d", "e", "n"].map(|name| match &expected[name] {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            number => number.to_string(),
        });
        assert_eq!(csv.text(), format!("a,b,c,d,e,n\r\n{}\r\n", values.join(",")), "{plain}");
    }
    assert_eq!(db.exec("CALL p()").await, json!([{"b": 53, "small": 5, "e": "18446744073709551615"}]));
    let rows = json!([
        {"id": 1, "b": 53, "c": 1022, "m": 1022, "e": "18446744073709551615"},
        {"id": 2, "b": 5, "c": 12, "m": 1022, "e": 9}
    ]);
    assert_eq!(db.get("v?order[field]=id").await.payload(), rows);
    assert_eq!(db.exec("SELECT * FROM v ORDER BY id").await, rows);
}

async fn years_are_numbers(host: Host) {
    round_trips(host, "YEAR", ByInput, &[("2026", "2026"), ("1901", "1901"), ("2155", "2155"), ("\"1999\"", "1999")])
        .await;
}

async fn decimals_are_exact_text(host: Host) {
    let wide = "\"12345678901234567890123456789012345.123456789012345678901234567890\"";
    let negative = "\"-99999999999999999999999999999999999.999999999999999999999999999999\"";
    let tiny = "\"0.000000000000000000000000000001\"";
    round_trips(host, "DECIMAL(65,30)", ByInput, &[(wide, wide), (negative, negative), (tiny, tiny), ("null", "null")])
        .await;
    let pairs = [
        ("\"1.5\"", "\"1.50\""),
        ("\"-0.01\"", "\"-0.01\""),
        ("\"0\"", "\"0.00\""),
        ("\"99999999.99\"", "\"99999999.99\""),
    ];
    round_trips(host, "DECIMAL(10,2)", ByInput, &pairs).await;
    round_trips(host, "DECIMAL(20,0)", ByInput, &[("\"12345678901234567890\"", "\"12345678901234567890\"")]).await;
}

async fn decimals_take_numbers_as_written(host: Host) {
    let pairs = [
        ("12345678901234567890.12345678901234567890", "\"12345678901234567890.123456789012345678900000000000\""),
        ("0.1", "\"0.100000000000000000000000000000\""),
        ("-3", "\"-3.000000000000000000000000000000\""),
        ("1e2", "\"100.000000000000000000000000000000\""),
    ];
    round_trips(host, "DECIMAL(65,30)", ByInput, &pairs).await;
}

async fn floats_and_doubles_are_shortest(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, f FLOAT, d DOUBLE)"]).await;
    for text in ["0.1", "1.1", "3.4028235e38", "1e-38", "16777216", "-0.25", "123456.79", "0", "0.3"] {
        let answer = db.call(Method::POST, "t").bytes(format!("{{\"f\":{text}}}")).send().await;
        let fields = db.get(&format!("t/{}", answer.payload())).await.raw_record();
        let got = &fields["f"];
        let equal = got.parse::<f64>().ok() == text.parse::<f64>().ok();
        assert!(equal, "a FLOAT {text} comes out as {got}");
    }
    let doubles = [
        "0.1",
        "0.30000000000000004",
        "1.7976931348623157e308",
        "5e-324",
        "2.2250738585072014e-308",
        "-123456789.12345679",
        "1e22",
        "9007199254740993.0",
        "3.141592653589793",
        "1e300",
    ];
    for text in doubles {
        for input in [text.to_owned(), format!("\"{text}\"")] {
            let answer = db.call(Method::POST, "t").bytes(format!("{{\"d\":{input}}}")).send().await;
            let id = answer.payload();
            let record = db.get(&format!("t/{id}")).await.raw_record();
            let sql = db.sql(&format!("SELECT d FROM t WHERE id = {id}")).send().await.raw_row();
            let bound = db.sql_with("SELECT d FROM t WHERE id = ?", json!([id])).send().await.raw_row();
            for (how, got) in [("record", &record["d"]), ("sql", &sql["d"]), ("bound", &bound["d"])] {
                let bits = got.parse::<f64>().map(f64::to_bits).ok();
                assert_eq!(
                    bits,
                    text.parse::<f64>().map(f64::to_bits).ok(),
                    "{how}: a DOUBLE {input} comes out as {got}"
                );
                assert!(got.len() <= 25, "{how}: {got} is not shortest");
            }
        }
    }
    round_trips(host, "DOUBLE", NotAsked, &[("null", "null"), ("0.1", "0.1"), ("1.5", "1.5"), ("-2.25", "-2.25")])
        .await;
    round_trips(host, "FLOAT", NotAsked, &[("null", "null"), ("0.1", "0.1"), ("1.5", "1.5")]).await;
}

async fn numbers_out_of_range_are_refused(host: Host) {
    are_refused(host, "TINYINT", &["128", "-129", "\"x\"", "1e10", "\"\"", "\"1 2\"", "\"0x1\"", "{}", "[]"]).await;
    are_refused(host, "INT UNSIGNED", &["-1", "4294967296"]).await;
    are_refused(host, "BIGINT", &["9223372036854775808", "-9223372036854775809", "1e40", "\"9223372036854775808\""])
        .await;
    are_refused(host, "BIGINT UNSIGNED", &["18446744073709551616", "-1"]).await;
    are_refused(host, "DECIMAL(5,2)", &["1000", "\"1000.00\"", "\"abc\"", "1e9", "\"\""]).await;
    are_refused(host, "DOUBLE", &["\"abc\"", "\"1e400\"", "\"\"", "\"NaN\"", "\"Infinity\""]).await;
    are_refused(host, "FLOAT", &["1e39"]).await;
    are_refused(host, "BIT(4)", &["16", "-1", "\"x\""]).await;
    are_refused(host, "YEAR", &["1800", "3000", "1900", "2156"]).await;
}

async fn sums_and_counts_have_the_types_of_mariadb(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (i INT, d DECIMAL(10,2), f DOUBLE)", "INSERT INTO t VALUES (1, 1.10, 0.5), (2, 2.20, 0.25)"],
    )
    .await;
    let row = db
        .exec("SELECT COUNT(*) AS n, SUM(i) AS si, SUM(d) AS sd, SUM(f) AS sf, AVG(i) AS a, MAX(i) AS m FROM t")
        .await;
    assert_eq!(row, json!([{"n": 2, "si": "3", "sd": "3.30", "sf": 0.75, "a": "1.5000", "m": 2}]));
}

async fn zerofill_is_a_number(host: Host) {
    round_trips(host, "INT(8) UNSIGNED ZEROFILL", ByInput, &[("42", "42")]).await;
}

async fn one_beyond_either_end_is_refused(host: Host) {
    for (kind, bits) in [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)] {
        let half = 1_i128 << (bits - 1);
        let (below, above) = ((-half - 1).to_string(), half.to_string());
        are_refused(host, kind, &[&below, &above, &format!("\"{above}\"")]).await;
        let unsigned = format!("{kind} UNSIGNED");
        are_refused(host, &unsigned, &["-1", &(half * 2).to_string(), "1.5"]).await;
    }
    for width in [1, 8, 63, 64] {
        let above = (1_u128 << width).to_string();
        are_refused(host, &format!("BIT({width})"), &["-1", &above]).await;
    }
    let widest = "9".repeat(66);
    are_refused(host, "DECIMAL(65,0)", &[&widest, "1e65"]).await;
    are_refused(host, "DECIMAL(38,38)", &["1", "\"-1.0\""]).await;
}

async fn what_is_no_number_is_no_filter(host: Host) {
    let nonsense = ["\"x\"", "\"\"", "\"0x1\"", "\"1 2\"", "{}", "\"NaN\""];
    for kind in ["INT", "BIT(9)", "YEAR", "DECIMAL(9,2)", "DOUBLE", "FLOAT"] {
        are_no_filters(host, kind, &nonsense).await;
    }
    are_no_filters(host, "DOUBLE", &["\"1e999\"", "1e999", "\"Infinity\""]).await;
    are_no_filters(host, "DECIMAL(65,30)", &["1e65", "1e-39"]).await;
}

async fn numbers_beyond_a_columns_range_compare_as_numbers(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a TINYINT, b INT UNSIGNED, c DECIMAL(4,2), d FLOAT)",
            "INSERT INTO t VALUES (1, -128, 0, -99.99, 0.5), (2, 127, 4294967295, 99.99, 1.5)",
        ],
    )
    .await;
    for (field, value, equality, ids) in [
        ("a", json!(1000), "<", vec![1, 2]),
        ("a", json!(127.5), "<", vec![1, 2]),
        ("a", json!("1e30"), ">", vec![]),
        ("a", json!(-129), "=", vec![]),
        ("b", json!(-1), ">", vec![1, 2]),
        ("b", json!("4294967296"), ">=", vec![]),
        ("c", json!("99.995"), "<", vec![1, 2]),
        ("c", json!("99.9900000000000000000000000000000000000000000000"), "=", vec![2]),
        ("d", json!(1e300), "<", vec![1, 2]),
    ] {
        let query = json!({field: {"value": value, "equality": equality}});
        assert_eq!(db.ids("t", &query, "").await, ids, "{query}");
    }
}
