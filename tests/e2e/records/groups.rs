//! Aggregates, groups and `distinct`: their results, and refusals of reads that have no meaning.

use super::both_notations::{SHOP, ask, refused, rows};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        aggregates_over_a_whole_table,
        aggregates_over_no_rows,
        aggregates_keep_their_types,
        sums_and_averages_are_exact,
        minima_of_every_type_come_in_their_own_form,
        a_group_by_one_field,
        a_group_by_many_fields,
        a_group_by_a_joined_field,
        a_group_may_be_ordered_by_its_aggregate,
        a_group_of_null_is_a_group,
        distinct_gives_each_row_once,
        count_distinct_leaves_out_nulls,
        a_field_outside_the_group_is_refused,
        aggregates_that_make_no_sense_are_refused,
        an_alias_names_each_aggregate,
    ],
}

async fn aggregates_over_a_whole_table(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"selectFields": [
        {"fieldName": "id", "aggregate": "COUNT", "alias": "all"}, {"fieldName": "author_id", "aggregate": "COUNT", "alias": "written"},
        {"fieldName": "author_id", "aggregate": "COUNT_DISTINCT", "alias": "writers"}, {"fieldName": "year", "aggregate": "MIN", "alias": "first"},
        {"fieldName": "year", "aggregate": "max", "alias": "last"}, {"fieldName": "price", "aggregate": "SUM", "alias": "sum"},
        {"fieldName": "price", "aggregate": "AVG", "alias": "mean"}]});
    assert_eq!(
        rows(&db, "books", &options).await,
        json!([{"all": 5, "written": 4, "writers": 3, "first": 1850, "last": 2010, "sum": "28.75", "mean": "7.187500"}])
    );
    let star = json!({"selectFields": [{"fieldName": "*", "aggregate": "COUNT", "alias": "n"}]});
    let answer = ask(&db, "books", &star).await;
    if answer.code() == "ok" {
        assert_eq!(answer.payload(), json!([{"n": 5}]));
    } else {
        assert!(answer.text().contains('*'), "{answer}");
    }
}

async fn aggregates_over_no_rows(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"query": {"id": 99}, "selectFields": [
        {"fieldName": "id", "aggregate": "COUNT", "alias": "n"}, {"fieldName": "price", "aggregate": "SUM", "alias": "sum"}]});
    assert_eq!(rows(&db, "books", &options).await, json!([{"n": 0, "sum": null}]));
    let grouped = json!({"query": {"id": 99}, "group": "year", "selectFields": ["year", {"fieldName": "id", "aggregate": "COUNT", "alias": "n"}]});
    assert_eq!(rows(&db, "books", &grouped).await, json!([]));
}

const TYPES: &[&str] = &[
    "CREATE TABLE kinds (id INT PRIMARY KEY, i BIGINT, u BIGINT UNSIGNED, b BIT(8), dc DECIMAL(30,10), f FLOAT, d DOUBLE, c VARCHAR(20), \
     t TEXT, e ENUM('z','a','m'), s SET('x','y'), da DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL, ti TIME(2), y YEAR, bi BINARY(2), bl BLOB, \
     j JSON, uu UUID, ip INET6, g POINT)",
    "INSERT INTO kinds VALUES (1, 9007199254740993, 18446744073709551615, b'00000101', '1.5', 0.1, 0.1, 'b', 'tb', 'z', 'x', '2026-01-02', \
     '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05.678', '-30:00:00.25', 2026, X'0001', X'FF', '{\"a\":1}', \
     '00000000-0000-0000-0000-000000000001', '::1', POINT(1,2)), \
     (2, -5, 7, b'11111111', '-0.0000000001', 2.5, 2.5, 'a', 'ta', 'a', 'y', '2025-01-02', \
     '2025-01-02 03:04:05.000006', '2025-01-02 03:04:05.678', '30:00:00.25', 2025, X'FFFE', X'00', '[1]', \
     'ffffffff-ffff-ffff-ffff-fffffffffff0', '::2', POINT(0,0))",
];

async fn aggregates_keep_their_types(host: Host) {
    let db = TestDb::new(host, TYPES).await;
    let options = json!({"selectFields": [
        {"fieldName": "i", "aggregate": "MAX", "alias": "i"}, {"fieldName": "u", "aggregate": "MAX", "alias": "u"},
        {"fieldName": "b", "aggregate": "MAX", "alias": "b"}, {"fieldName": "dc", "aggregate": "MIN", "alias": "dc"},
        {"fieldName": "f", "aggregate": "MIN", "alias": "f"}, {"fieldName": "f", "aggregate": "SUM", "alias": "fs"},
        {"fieldName": "i", "aggregate": "SUM", "alias": "is"}, {"fieldName": "u", "aggregate": "SUM", "alias": "us"}]});
    let got = rows(&db, "kinds", &options).await;
    assert_eq!(got[0]["i"], json!("9007199254740993"), "{got}");
    assert_eq!(got[0]["u"], json!("18446744073709551615"), "{got}");
    assert_eq!(got[0]["b"], json!(255), "{got}");
    assert_eq!(got[0]["dc"], json!("-0.0000000001"), "{got}");
    assert_eq!(got[0]["f"], json!(0.1), "{got}");
    assert_eq!(got[0]["is"], json!("9007199254740988"), "{got}");
    assert_eq!(got[0]["us"], json!("18446744073709551622"), "{got}");
}

async fn sums_and_averages_are_exact(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(40,20), n BIGINT)",
            "INSERT INTO t VALUES (1,'0.00000000000000000001', 9223372036854775807), (2,'12345678901234567890.1', 9223372036854775807)",
        ],
    )
    .await;
    let options = json!({"selectFields": [
        {"fieldName": "d", "aggregate": "SUM", "alias": "d"}, {"fieldName": "n", "aggregate": "SUM", "alias": "n"},
        {"fieldName": "n", "aggregate": "AVG", "alias": "a"}]});
    assert_eq!(
        rows(&db, "t", &options).await,
        json!([{"d": "12345678901234567890.10000000000000000001", "n": "18446744073709551614", "a": "9223372036854775807.0000"}])
    );
}

/// MIN of a field has the same form as the field; for a type without an order the refusal names the field.
async fn minima_of_every_type_come_in_their_own_form(host: Host) {
    let db = TestDb::new(host, TYPES).await;
    let all = rows(&db, "kinds", &json!({"order": {"field": "id"}})).await;
    for field in [
        "i", "u", "b", "dc", "f", "d", "c", "t", "e", "s", "da", "dt", "ts", "ti", "y", "bi", "bl", "j", "uu", "ip",
        "g",
    ] {
        let options = json!({"selectFields": [{"fieldName": field, "aggregate": "MIN", "alias": "least"},
            {"fieldName": field, "aggregate": "MAX", "alias": "most"}, {"fieldName": field, "aggregate": "COUNT", "alias": "n"},
            {"fieldName": field, "aggregate": "COUNT_DISTINCT", "alias": "nd"}]});
        let answer = ask(&db, "kinds", &options).await;
        if answer.code() != "ok" {
            let error = answer.refused(ErrorCode::InvalidQueryOption);
            assert!(["j", "g"].contains(&field), "{answer}");
            assert!(error["message"].as_str().unwrap().contains(field), "{answer}");
            continue;
        }
        let got = answer.payload();
        let mut shown = [got[0]["least"].clone(), got[0]["most"].clone()];
        let mut stored = [all[0][field].clone(), all[1][field].clone()];
        shown.sort_by_key(Value::to_string);
        stored.sort_by_key(Value::to_string);
        assert_eq!(shown, stored, "{answer}");
        assert_eq!((&got[0]["n"], &got[0]["nd"]), (&json!(2), &json!(2)), "{answer}");
    }
}

fn counted(fields: Value) -> Value {
    let mut fields = fields.as_array().unwrap().clone();
    fields.push(json!({"fieldName": "id", "aggregate": "COUNT", "alias": "n"}));
    Value::from(fields)
}

async fn a_group_by_one_field(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for group in [json!("year"), json!(["year"])] {
        let options = json!({"group": group, "selectFields": counted(json!(["year"])), "order": {"field": "year"}});
        assert_eq!(
            rows(&db, "books", &options).await,
            json!([{"year": 1850, "n": 1}, {"year": 1999, "n": 1}, {"year": 2005, "n": 1}, {"year": 2010, "n": 2}])
        );
    }
    // The answer may omit or rename the group's field.
    let options = json!({"group": "year", "selectFields": counted(json!([])), "order": {"field": "year", "strategy": "DESC"}, "limit": 2});
    assert_eq!(rows(&db, "books", &options).await, json!([{"n": 2}, {"n": 1}]));
    let options = json!({"group": "year", "selectFields": counted(json!([{"fieldName": "year", "alias": "in"}])), "order": {"field": "in", "strategy": "DESC"}, "limit": 1});
    assert_eq!(rows(&db, "books", &options).await, json!([{"in": 2010, "n": 2}]));
}

async fn a_group_by_many_fields(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"group": ["author_id", "year"], "selectFields": counted(json!(["author_id", "year"])), "order": [{"field": "author_id"}, {"field": "year"}]});
    let got = rows(&db, "books", &options).await;
    assert_eq!(got.as_array().unwrap().len(), 5, "{got}");
    assert_eq!(got[0], json!({"author_id": null, "year": 1999, "n": 1}));
}

async fn a_group_by_a_joined_field(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join = json!({"tableName": "books", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "author_id"},
        "selectFields": [{"fieldName": "price", "aggregate": "SUM", "alias": "worth"}, {"fieldName": "id", "aggregate": "COUNT", "alias": "books"}]});
    let options = json!({"join": [join], "group": "name", "selectFields": ["name"], "order": {"field": "name"}});
    assert_eq!(
        rows(&db, "authors", &options).await,
        json!([{"name": "Ada", "worth": "10.50", "books": 1}, {"name": "Bo", "worth": "15.25", "books": 2},
            {"name": "Cy", "worth": "3.00", "books": 1}, {"name": "Dee", "worth": null, "books": 0}])
    );
    // A count of all rows would count Dee's book, who has none.
    let join = json!({"tableName": "books", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "author_id"}, "selectFields": []});
    for (count, code, named) in [
        (json!({"tableName": "books", "aggregate": "COUNT"}), ErrorCode::InvalidQueryOption, "fieldName"),
        (json!({"tableName": "books", "fieldName": "*", "aggregate": "COUNT"}), ErrorCode::UnknownField, "*"),
    ] {
        let options = json!({"join": [join], "group": "name", "selectFields": ["name", count]});
        refused(&db, "authors", &options, code, &[named]).await;
    }
    let join = json!({"tableName": "authors", "alias": "a", "joinType": "JOIN", "match": {"source": "author_id", "target": "id"}, "selectFields": ["country"]});
    for group in ["country", "a.country"] {
        let options = json!({"join": [join], "group": group, "selectFields": counted(json!([])), "order": [{"field": "n", "strategy": "DESC"}, {"field": "a.country"}]});
        let got = rows(&db, "books", &options).await;
        assert_eq!(
            got,
            json!([{"n": 2, "country": "SE"}, {"n": 1, "country": null}, {"n": 1, "country": "UK"}]),
            "{group}"
        );
    }
}

async fn a_group_may_be_ordered_by_its_aggregate(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"group": "author_id", "selectFields": counted(json!(["author_id"])),
        "order": [{"field": "n", "strategy": "DESC"}, {"field": "author_id"}], "limit": 2, "count": true});
    let answer = ask(&db, "books", &options).await;
    assert_eq!(answer.json()["count"], 4, "{answer}");
    assert_eq!(answer.payload(), json!([{"author_id": 2, "n": 2}, {"author_id": null, "n": 1}]));
}

async fn a_group_of_null_is_a_group(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options =
        json!({"group": "country", "selectFields": counted(json!(["country"])), "order": {"field": "country"}});
    assert_eq!(
        rows(&db, "authors", &options).await,
        json!([{"country": null, "n": 1}, {"country": "SE", "n": 1}, {"country": "UK", "n": 2}])
    );
}

async fn distinct_gives_each_row_once(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"distinct": true, "selectFields": ["country"], "order": {"field": "country"}, "count": true});
    let answer = ask(&db, "authors", &options).await;
    assert_eq!(answer.payload(), json!([{"country": null}, {"country": "SE"}, {"country": "UK"}]));
    assert_eq!(answer.json()["count"], 3, "{answer}");
    let options = json!({"distinct": true, "order": [{"field": "book_id"}, {"field": "tag"}]});
    assert_eq!(rows(&db, "keyless", &options).await.as_array().unwrap().len(), 4);
    let options = json!({"distinct": false, "selectFields": ["country"]});
    assert_eq!(rows(&db, "authors", &options).await.as_array().unwrap().len(), 4);
    // With `distinct`, `limit` counts distinct rows.
    let options =
        json!({"distinct": true, "selectFields": ["country"], "order": {"field": "country"}, "limit": 2, "page": 2});
    assert_eq!(rows(&db, "authors", &options).await, json!([{"country": "UK"}]));
    let join = json!({"tableName": "books", "joinType": "JOIN", "match": {"source": "id", "target": "author_id"}, "selectFields": []});
    let options = json!({"distinct": true, "join": [join], "selectFields": ["name"], "order": {"field": "name"}});
    assert_eq!(rows(&db, "authors", &options).await, json!([{"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"}]));
    // With `distinct`, an order by a hidden field is either refused or right.
    let options = json!({"distinct": true, "selectFields": ["country"], "order": {"field": "name"}});
    let answer = ask(&db, "authors", &options).await;
    if answer.code() == "ok" {
        assert_eq!(answer.payload().as_array().unwrap().len(), 3, "{answer}");
    } else {
        answer.refused(ErrorCode::InvalidQueryOption);
        assert!(answer.text().contains("name"), "{answer}");
    }
}

async fn count_distinct_leaves_out_nulls(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"selectFields": [{"fieldName": "country", "aggregate": "COUNT_DISTINCT", "alias": "n"}]});
    assert_eq!(rows(&db, "authors", &options).await, json!([{"n": 2}]));
}

async fn a_field_outside_the_group_is_refused(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for options in [
        json!({"selectFields": counted(json!(["title"]))}),
        json!({"group": "year", "selectFields": counted(json!(["title"]))}),
        json!({"group": "year", "selectFields": counted(json!(["year"])), "order": {"field": "title"}}),
        json!({"selectFields": counted(json!([])), "order": {"field": "title"}}),
    ] {
        refused(&db, "books", &options, ErrorCode::InvalidQueryOption, &["title"]).await;
    }
    // Grouped by the whole primary key, every field has one value per group.
    let options = json!({"group": "id", "selectFields": ["id", "title"], "order": {"field": "id"}, "limit": 1});
    let answer = ask(&db, "books", &options).await;
    if answer.code() == "ok" {
        assert_eq!(answer.payload(), json!([{"id": 1, "title": "Engines"}]));
    } else {
        answer.refused(ErrorCode::InvalidQueryOption);
    }
}

async fn aggregates_that_make_no_sense_are_refused(host: Host) {
    let db = TestDb::new(host, TYPES).await;
    for field in ["c", "t", "e", "da", "dt", "bl", "j", "uu", "ip", "g"] {
        for aggregate in ["SUM", "AVG"] {
            let options = json!({"selectFields": [{"fieldName": field, "aggregate": aggregate, "alias": "x"}]});
            refused(&db, "kinds", &options, ErrorCode::InvalidQueryOption, &[field, aggregate]).await;
        }
    }
}

async fn an_alias_names_each_aggregate(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    // Without an alias, the service chooses a name.
    let options = json!({"selectFields": [{"fieldName": "year", "aggregate": "MAX"}]});
    let got = rows(&db, "books", &options).await;
    assert_eq!(got[0].as_object().unwrap().values().collect::<Vec<_>>(), [&json!(2010)]);
    let options = json!({"selectFields": [{"fieldName": "year", "aggregate": "MAX", "alias": "y"}, {"fieldName": "year", "aggregate": "MIN", "alias": "y"}]});
    refused(&db, "books", &options, ErrorCode::InvalidQueryOption, &["selectFields", "y"]).await;
    let options = json!({"selectFields": [{"fieldName": "year", "aggregate": "MAX", "alias": "a`b\"c\\d"}]});
    assert_eq!(rows(&db, "books", &options).await, json!([{"a`b\"c\\d": 2010}]));
    // In a group, `order` prefers an alias to a field of the same name.
    let options = json!({"group": "author_id", "selectFields": ["author_id", {"fieldName": "price", "aggregate": "SUM", "alias": "year"}], "order": {"field": "year", "strategy": "DESC"}, "limit": 1});
    assert_eq!(rows(&db, "books", &options).await, json!([{"author_id": 2, "year": "15.25"}]));
}
