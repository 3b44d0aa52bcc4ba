//! JSON, binaries, geometry, UUID, INET.

use super::Found::ByInput;
use super::{are_no_filters, are_refused, round_trips};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};

cases! {
    Both: [
        json_is_the_value_itself,
        json_numbers_lose_no_digit,
        json_in_sql_is_text,
        binaries_are_base64,
        what_is_no_base64_is_refused,
        geometries_are_geojson,
        what_is_no_geojson_is_refused,
        uuids_and_addresses_are_texts,
        a_row_of_nulls_is_nulls,
        sql_functions_have_values_too,
        sql_takes_and_gives_every_type,
        json_null_is_null,
        computed_columns_are_read_and_found,
    ],
}

async fn json_is_the_value_itself(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v JSON)"]).await;
    for value in [
        json!({"b": 1, "a": {"c": [1, 2, {"d": null}]}}),
        json!([]),
        json!({}),
        json!([1, "two", true, false, null, 1.5]),
        json!("a text"),
        json!(""),
        json!("{\"looks\": \"like JSON\"}"),
        json!("null"),
        json!(5),
        json!(true),
        json!({"emoji 🦭": "\u{1}\"\\/\n"}),
        json!({"": ""}),
    ] {
        let id = db.post("t", &json!({"v": value})).await.payload();
        let record = db.get(&format!("t/{id}")).await;
        assert_eq!(record.payload()["v"], value, "{record}");
        assert_eq!(db.put(&format!("t/{id}"), &json!({"v": value})).await.payload(), 1);
        assert_eq!(db.get(&format!("t/{id}")).await.payload()["v"], value);
        let valid = db.value(&format!("SELECT JSON_VALID(v) FROM t WHERE id = {id}")).await;
        assert_eq!(valid, 1);
    }
    let id = db.post("t", &json!({"v": null})).await.payload();
    assert_eq!(db.get(&format!("t/{id}")).await.payload()["v"], Value::Null);
    assert_eq!(db.value(&format!("SELECT v IS NULL FROM t WHERE id = {id}")).await, 1);
    // The same value, inserted by SQL with more white space.
    db.exec("INSERT INTO t VALUES (500, ' { \"a\" : [ 1 , 2 ] } ')").await;
    assert_eq!(db.get("t/500").await.payload()["v"], json!({"a": [1, 2]}));
}

async fn json_numbers_lose_no_digit(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v JSON)"]).await;
    let text = "[12345678901234567890123,0.1000000000000000055511151231257827,1e2,-0.0]";
    db.call(Method::POST, "t").bytes(format!("{{\"id\":1,\"v\":{text}}}")).send().await.payload();
    let got = db.get("t/1").await.raw_record()["v"].replace(' ', "");
    assert!(got.contains("12345678901234567890123"), "{got}");
    assert!(got.contains("0.1000000000000000055511151231257827"), "{got}");
}

async fn json_in_sql_is_text(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v JSON)", r#"INSERT INTO t VALUES (1, '{"a":1}')"#])
            .await;
    assert_eq!(db.exec("SELECT v FROM t").await, json!([{"v": "{\"a\":1}"}]));
}

async fn binaries_are_base64(host: Host) {
    let pairs =
        [("\"AAEC/f7/\"", "\"AAEC/f7/\""), ("\"\"", "\"\""), ("\"aGVsbG8=\"", "\"aGVsbG8=\""), ("null", "null")];
    for kind in ["VARBINARY(100)", "BLOB", "LONGBLOB", "TINYBLOB"] {
        round_trips(host, kind, ByInput, &pairs).await;
    }
    round_trips(host, "BINARY(4)", ByInput, &[("\"AQID\"", "\"AQIDAA==\""), ("\"AQIDBA==\"", "\"AQIDBA==\"")]).await;
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v BLOB)", "INSERT INTO t VALUES (1, X'00ff80')"])
        .await;
    assert_eq!(db.get("t/1").await.payload()["v"], "AP+A");
    assert_eq!(db.value("SELECT v FROM t").await, "AP+A");
    assert_eq!(db.value("SELECT HEX(v) FROM t").await, "00FF80");
}

async fn what_is_no_base64_is_refused(host: Host) {
    are_refused(host, "BLOB", &["\"not base64!\"", "\"AAA\u{e9}\"", "{}", "[1,2]"]).await;
    are_refused(host, "VARBINARY(2)", &["\"AAECAw==\""]).await;
    are_refused(host, "BINARY(2)", &["\"AAEC\""]).await;
    are_no_filters(host, "BLOB", &["\"not base64!\"", "5", "{}", "\"AAA==\""]).await;
    // Both alphabets of base64, with or without padding.
    let pairs = [("\"+/8=\"", "\"+/8=\""), ("\"+/8\"", "\"+/8=\""), ("\"-_8=\"", "\"+/8=\""), ("\"-_8\"", "\"+/8=\"")];
    round_trips(host, "VARBINARY(9)", ByInput, &pairs).await;
}

async fn geometries_are_geojson(host: Host) {
    for (kind, geometry) in [
        ("POINT", json!({"type": "Point", "coordinates": [1.5, -2.25]})),
        ("GEOMETRY", json!({"type": "Point", "coordinates": [0, 0]})),
        ("LINESTRING", json!({"type": "LineString", "coordinates": [[0, 0], [1, 1.5], [2, 0]]})),
        ("POLYGON", json!({"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 0]]]})),
        ("MULTIPOINT", json!({"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]})),
        (
            "GEOMETRYCOLLECTION",
            json!({"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1, 2]}]}),
        ),
    ] {
        let db = TestDb::new(host, &[&format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {kind})")]).await;
        let id = db.post("t", &json!({"v": geometry})).await.payload();
        let record = db.get(&format!("t/{id}")).await;
        assert!(same_numbers(&record.payload()["v"], &geometry), "{kind}: {record}");
        assert_eq!(db.put(&format!("t/{id}"), &json!({"v": geometry})).await.payload(), 1);
        let valid = db.value("SELECT ST_AsText(v) IS NOT NULL FROM t").await;
        assert_eq!(valid, 1);
        let null = db.post("t", &json!({"v": null})).await.payload();
        assert_eq!(db.get(&format!("t/{null}")).await.payload()["v"], Value::Null);
    }
}

/// Compares JSON values, with 1 and 1.0 equal.
fn same_numbers(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_numbers(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same_numbers(value, other)))
        }
        _ => left == right,
    }
}

async fn what_is_no_geojson_is_refused(host: Host) {
    let nonsense = [
        "{}",
        "\"POINT(1 2)\"",
        "5",
        "[1,2]",
        "{\"type\":\"Circle\"}",
        "{\"type\":\"Point\",\"coordinates\":[\"a\",1]}",
        "{\"type\":\"Point\"}",
        "{\"type\":\"Point\",\"coordinates\":[1,2,3]}",
        "{\"type\":\"MultiPoint\",\"coordinates\":[]}",
        "{\"type\":\"LineString\",\"coordinates\":[[1,2]]}",
        "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[1,1],[0,1]]]}",
        "{\"type\":\"Feature\",\"properties\":{},\"geometry\":{\"type\":\"Point\",\"coordinates\":[1,2]}}",
    ];
    are_refused(host, "GEOMETRY", &nonsense).await;
    are_refused(host, "POINT", &["{\"type\":\"LineString\",\"coordinates\":[[0,0],[1,1]]}"]).await;
}

async fn uuids_and_addresses_are_texts(host: Host) {
    let uuid = "\"123e4567-e89b-12d3-a456-426655440000\"";
    let upper = "\"123E4567-E89B-12D3-A456-426655440000\"";
    round_trips(host, "UUID", ByInput, &[(uuid, uuid), (upper, uuid), ("null", "null")]).await;
    round_trips(
        host,
        "INET6",
        ByInput,
        &[
            ("\"::1\"", "\"::1\""),
            ("\"2001:db8::FF\"", "\"2001:db8::ff\""),
            ("\"::ffff:1.2.3.4\"", "\"::ffff:1.2.3.4\""),
        ],
    )
    .await;
    round_trips(host, "INET4", ByInput, &[("\"10.0.0.1\"", "\"10.0.0.1\"")]).await;
    let simple = "\"123E4567E89B12D3A456426655440000\"";
    round_trips(host, "UUID", ByInput, &[(simple, uuid)]).await;
    for (kind, nonsense) in [
        ("UUID", &["\"x\"", "5", "\"\""][..]),
        ("INET6", &["\"x\"", "\"1.2.3.400\"", "\"1.2.3.4\"", "\"fe80::1%eth0\""]),
        ("INET4", &["\"1.2.3\"", "\"::1\"", "16909060"]),
    ] {
        are_refused(host, kind, nonsense).await;
        are_no_filters(host, kind, nonsense).await;
    }
}

async fn a_row_of_nulls_is_nulls(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b DECIMAL(5,2), c DOUBLE, d TEXT, e DATE, f DATETIME(6), g TIME, h JSON, i BLOB, \
             j GEOMETRY, k BIT(3), l YEAR, m ENUM('x'), n UUID, o INET6, p TIMESTAMP NULL)",
            "INSERT INTO t (id) VALUES (1)",
        ],
    )
    .await;
    let record = db.get("t/1").await.payload();
    let nulls = record.as_object().unwrap().values().filter(|value| value.is_null()).count();
    assert_eq!(nulls, 16, "{record}");
    let fields: Vec<&String> = record.as_object().unwrap().keys().filter(|name| *name != "id").collect();
    for field in fields {
        assert_eq!(db.ids("t", &json!({field.as_str(): null}), "").await, [1], "{field}");
    }
}

async fn sql_functions_have_values_too(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let query = "SELECT NULL AS n, 1 AS i, 1.50 AS d, 1e0 AS f, 'x' AS s, TRUE AS t, X'ff' AS b, CAST('2026-01-02' AS DATE) AS day, \
                 18446744073709551615 AS u, CAST('10:00:00' AS TIME) AS tm, '' AS e";
    let expected = json!({
        "n": null, "i": 1, "d": "1.50", "f": 1.0, "s": "x", "t": 1, "b": "/w==", "day": "2026-01-02", "u": "18446744073709551615",
        "tm": "10:00:00", "e": ""
    });
    let bound = db.sql_with(&format!("{query}, ? AS p"), json!(["p"])).send().await.payload();
    for mut row in [db.exec(query).await[0].clone(), bound[0].clone()] {
        row.as_object_mut().unwrap().remove("p");
        for (name, value) in expected.as_object().unwrap() {
            assert!(same_numbers(&row[name], value), "{name}: {row}");
        }
    }
}

async fn sql_takes_and_gives_every_type(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, i BIGINT UNSIGNED, d DECIMAL(65,30), f FLOAT, x DOUBLE, s VARCHAR(20), \
             l VARCHAR(20) CHARACTER SET latin1, e ENUM('a','b'), st SET('a','b'), u UUID, a INET6, day DATE, dt DATETIME(6), \
             ts TIMESTAMP(3) NULL, tm TIME(6), j JSON, b BIT(64), y YEAR, z INT(6) ZEROFILL)",
        ],
    )
    .await;
    let given = json!([
        1,
        18_446_744_073_709_551_615_u64,
        "12345678901234567890123456789012345.123456789012345678901234567890",
        0.1,
        0.1,
        "日🦭",
        "é",
        "b",
        "b,a",
        "123E4567-E89B-12D3-A456-426655440000",
        "::FF",
        "2026-11-20",
        "2026-11-20 08:36:16.123456",
        "2026-11-20 08:36:16.5",
        "-838:59:59.999999",
        "{\"a\":[1,null]}",
        18_446_744_073_709_551_615_u64,
        2026,
        42
    ]);
    let marks = vec!["?"; given.as_array().expect("a list").len()].join(", ");
    let inserted = db.sql_with(&format!("INSERT INTO t VALUES ({marks})"), given).send().await;
    assert_eq!(inserted.payload()["affectedRows"], 1, "{inserted}");
    let expected = json!([{
        "id": 1, "i": "18446744073709551615", "d": "12345678901234567890123456789012345.123456789012345678901234567890",
        "f": 0.1, "x": 0.1, "s": "日🦭", "l": "é", "e": "b", "st": "a,b", "u": "123e4567-e89b-12d3-a456-426655440000",
        "a": "::ff", "day": "2026-11-20", "dt": "2026-11-20 08:36:16.123456", "ts": "2026-11-20 08:36:16.500",
        "tm": "-838:59:59.999999", "j": "{\"a\":[1,null]}", "b": "18446744073709551615", "y": 2026, "z": 42
    }]);
    assert_eq!(db.exec("SELECT * FROM t").await, expected);
    let bound = db.sql_with(
        "SELECT * FROM t WHERE i = ? AND d = ? AND l = ?",
        json!([
            18_446_744_073_709_551_615_u64,
            "12345678901234567890123456789012345.123456789012345678901234567890",
            "é"
        ]),
    );
    assert_eq!(bound.send().await.payload(), expected);
    let mut record = expected[0].clone();
    record["j"] = json!({"a": [1, null]});
    assert_eq!(db.get("t/1").await.payload(), record);
}

/// A record's null is SQL's NULL. JSON's null is only stored within documents, and read if SQL wrote it.
async fn json_null_is_null(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, v JSON, w JSON NOT NULL)"]).await;
    db.post("t", &json!({"id": 1, "v": null, "w": [null]})).await.payload();
    db.exec("INSERT INTO t VALUES (2, 'null', '{}')").await;
    assert_eq!(db.value("SELECT v IS NULL FROM t WHERE id = 1").await, 1);
    assert_eq!(db.column("t?order[field]=id", "v").await, [Value::Null, Value::Null]);
    assert_eq!(db.ids("t", &json!({"v": null}), "").await, [1]);
    assert_eq!(db.ids("t", &json!({"v": {"value": null, "equality": "!="}}), "").await, [2]);
    db.put("t/2", &json!({"v": null})).await.payload();
    assert_eq!(db.ids("t", &json!({"v": null}), "").await, [1, 2]);
    let refused = db.put("t/2", &json!({"w": null})).await;
    super::names(&refused, "w");
}

async fn computed_columns_are_read_and_found(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, price DECIMAL(10,2), twice DECIMAL(11,2) AS (price * 2) STORED, \
             day DATE, later DATETIME AS (day + INTERVAL 36 HOUR) VIRTUAL, j JSON, name VARCHAR(20) AS (JSON_VALUE(j, '$.name')))",
        ],
    )
    .await;
    db.post("t", &json!({"id": 1, "price": "1.10", "day": "2026-11-20", "j": {"name": "é"}})).await.payload();
    let record = db.get("t/1").await.payload();
    assert_eq!(record["twice"], "2.20");
    assert_eq!(record["later"], "2026-11-21 12:00:00");
    let query = json!({"twice": 2.2, "later": "2026-11-21T13:00:00+01:00", "name": "é"});
    assert_eq!(db.ids("t", &query, "").await, [1]);
    for body in [json!({"twice": 1}), json!({"name": "x"})] {
        assert_eq!(db.put("t/1", &body).await.code(), "invalid_value");
    }
}
