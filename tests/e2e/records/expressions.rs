//! Expressions in aggregates, and groups by parts of dates.

use super::both_notations::{ask, refused, rows};
use crate::host::{Host, option};
use crate::roles::Caller;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        an_expression_is_computed_exactly,
        an_expression_may_join_tables,
        whole_numbers_neither_overflow_nor_stay_positive,
        what_is_no_expression_is_refused,
        a_date_is_grouped_by_its_parts,
        a_cursor_follows_parts_and_expressions,
        a_batch_and_csv_have_expressions,
        an_expression_keeps_to_a_role,
    ],
}

const SALES: &[&str] = &[
    "CREATE TABLE sales (id INT PRIMARY KEY, price DECIMAL(20,4), amount INT UNSIGNED, back BIGINT UNSIGNED, ratio DOUBLE, \
     `unit price` DECIMAL(5,2), name VARCHAR(9), sold_at DATETIME, day DATE)",
    "INSERT INTO sales VALUES \
     (1, '0.1000', 3, 1, 0.5, 1.25, 'a', '2024-01-31 23:59:59', '2024-01-31'), \
     (2, '1234567890123456.0001', 2, 5, 0.25, 2.5, 'b', '2024-02-01 00:00:00', '2024-02-01'), \
     (3, '2.5000', 4, 0, 1, 3, 'a', '2025-02-02 12:00:00', '2025-02-02'), \
     (4, NULL, 7, 7, 2, 4, 'b', NULL, NULL)",
];

fn computed(expression: &str, aggregate: &str) -> Value {
    json!({"expression": expression, "aggregate": aggregate, "alias": "x"})
}

async fn an_expression_is_computed_exactly(host: Host) {
    let db = TestDb::new(host, SALES).await;
    for (expression, aggregate, expected) in [
        ("price*amount", "SUM", json!("2469135780246922.3002")),
        ("price * amount", "MIN", json!("0.3000")),
        ("(price + 0.1) * 2", "MAX", json!("2469135780246912.2002")),
        ("amount - 10", "MIN", json!("-8")),
        ("price*amount", "AVG", json!("823045260082307.43340000")),
        ("amount / 2", "SUM", json!("8.0000")),
        ("amount / back", "MAX", json!("3.0000")),
        ("amount*ratio", "MIN", json!(0.5)),
        ("`unit price`*amount", "SUM", json!("48.75")),
        ("sales.amount + id", "SUM", json!("26")),
        ("1 / (amount - amount)", "SUM", json!(null)),
    ] {
        let options = json!({"selectFields": [computed(expression, aggregate)]});
        assert_eq!(rows(&db, "sales", &options).await, json!([{"x": expected}]), "{aggregate} of {expression}");
    }
}

async fn an_expression_may_join_tables(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE items (id INT PRIMARY KEY, price DECIMAL(6,2))",
            "CREATE TABLE parts (id INT PRIMARY KEY, item_id INT, amount INT)",
            "INSERT INTO items VALUES (1, 1.50), (2, 2)",
            "INSERT INTO parts VALUES (1, 1, 2), (2, 1, 3), (3, 2, 1)",
        ],
    )
    .await;
    let join = |select: Value| json!([{"tableName": "items", "joinType": "JOIN", "match": {"source": "item_id", "target": "id"}, "selectFields": select}]);
    let root = json!({"join": join(json!([])), "selectFields": [computed("items.price*amount", "SUM")]});
    assert_eq!(rows(&db, "parts", &root).await, json!([{"x": "9.50"}]));
    let joined = json!({"join": join(json!([computed("price*2", "SUM")])), "selectFields": ["item_id"], "group": "item_id", "order": "item_id"});
    let expected = json!([{"item_id": 1, "x": "6.00"}, {"item_id": 2, "x": "4.00"}]);
    assert_eq!(rows(&db, "parts", &joined).await, expected);
}

async fn whole_numbers_neither_overflow_nor_stay_positive(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE big (id INT PRIMARY KEY, a BIGINT UNSIGNED, b BIGINT, c BIT(64), d DECIMAL(65,0))",
            "INSERT INTO big VALUES (1, 18446744073709551615, -9223372036854775808, b'101', REPEAT('9', 65))",
        ],
    )
    .await;
    for (expression, expected) in [
        ("a*a", "340282366920938463426481119284349108225"),
        ("id - a", "-18446744073709551614"),
        ("b - a", "-27670116110564327423"),
        ("c + 1", "6"),
    ] {
        let options = json!({"selectFields": [computed(expression, "SUM")]});
        assert_eq!(rows(&db, "big", &options).await, json!([{"x": expected}]), "{expression}");
    }
    let too_large = json!({"selectFields": [computed("d*d", "SUM")]});
    ask(&db, "big", &too_large).await.refused(ErrorCode::InvalidValue);
}

async fn what_is_no_expression_is_refused(host: Host) {
    let db = TestDb::new(host, SALES).await;
    for (item, code, said) in [
        (computed("sleep(9)", "SUM"), ErrorCode::InvalidQueryOption, "(9)"),
        (computed("price; DROP TABLE sales", "SUM"), ErrorCode::InvalidQueryOption, "; DROP"),
        (computed("price*'1'", "SUM"), ErrorCode::InvalidQueryOption, "'1'"),
        (computed("(SELECT 1)", "SUM"), ErrorCode::InvalidQueryOption, "1)"),
        (computed("5", "SUM"), ErrorCode::InvalidQueryOption, "5"),
        (computed("price*", "SUM"), ErrorCode::InvalidQueryOption, "price*"),
        (computed("name*2", "SUM"), ErrorCode::InvalidQueryOption, "name"),
        (computed("sold_at + 1", "MAX"), ErrorCode::InvalidQueryOption, "sold_at"),
        (computed("prize*2", "SUM"), ErrorCode::UnknownField, "price"),
        (computed("price*2", "COUNT"), ErrorCode::InvalidQueryOption, "SUM"),
        (json!({"expression": "price*2", "aggregate": "SUM"}), ErrorCode::InvalidQueryOption, "alias"),
        (json!({"expression": "price*2", "alias": "x"}), ErrorCode::InvalidQueryOption, "aggregate"),
        (json!({"fieldName": "day", "part": "year", "aggregate": "MIN"}), ErrorCode::InvalidQueryOption, "aggregate"),
        (json!({"fieldName": "day", "part": "year"}), ErrorCode::InvalidQueryOption, "group"),
        (json!({"fieldName": "day", "part": "week"}), ErrorCode::InvalidQueryOption, "week"),
    ] {
        refused(&db, "sales", &json!({"selectFields": [item]}), code, &[said]).await;
    }
    let many: Vec<_> =
        (0..17).map(|at| json!({"expression": "price*2", "aggregate": "SUM", "alias": format!("x{at}")})).collect();
    refused(&db, "sales", &json!({"selectFields": many}), ErrorCode::InvalidQueryOption, &["16 expressions"]).await;
    for group in [json!([{"fieldName": "name", "part": "year"}]), json!([{"fieldName": "id", "part": "day"}])] {
        refused(&db, "sales", &json!({"group": group}), ErrorCode::InvalidQueryOption, &["no date"]).await;
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM sales").await, 4);
}

async fn a_date_is_grouped_by_its_parts(host: Host) {
    let db = TestDb::new(host, SALES).await;
    let part = |name: &str| json!({"fieldName": "sold_at", "part": name});
    let options = json!({"group": [part("year"), part("month")], "order": ["year_sold_at", "month_sold_at"],
        "selectFields": [part("year"), part("month"), {"aggregate": "COUNT", "alias": "n"}]});
    let expected = json!([
        {"year_sold_at": null, "month_sold_at": null, "n": 1}, {"year_sold_at": 2024, "month_sold_at": 1, "n": 1},
        {"year_sold_at": 2024, "month_sold_at": 2, "n": 1}, {"year_sold_at": 2025, "month_sold_at": 2, "n": 1}]);
    assert_eq!(rows(&db, "sales", &options).await, expected);
    let of_day = json!({"group": [{"fieldName": "day", "part": "day"}], "order": "day_day", "count": true});
    let answer = ask(&db, "sales", &of_day).await;
    assert_eq!(answer.payload(), json!([{"day_day": null}, {"day_day": 1}, {"day_day": 2}, {"day_day": 31}]));
    assert_eq!(answer.json()["count"], 4);
    let bracketed = db.get("sales?group[0][fieldName]=day&group[0][part]=year&order=-year_day&limit=1").await;
    assert_eq!(bracketed.payload(), json!([{"year_day": 2025}]));
    let whole = json!({"group": "day", "selectFields": [{"fieldName": "day", "part": "year", "alias": "y"}], "order": "-y", "limit": 1});
    assert_eq!(rows(&db, "sales", &whole).await, json!([{"y": 2025}]));
}

async fn a_cursor_follows_parts_and_expressions(host: Host) {
    let db = TestDb::new(host, SALES).await;
    let part = json!({"fieldName": "sold_at", "part": "year"});
    let worth = json!({"expression": "price*amount", "aggregate": "SUM", "alias": "worth"});
    for order in [json!([]), json!("-year_sold_at"), json!("worth"), json!("-worth"), json!(["-n", "worth"])] {
        let mut options = json!({"group": [part], "selectFields": [part, worth, {"aggregate": "COUNT", "alias": "n"}]});
        if order != json!([]) {
            options["order"] = order.clone();
        }
        let mut all = rows(&db, "sales", &options).await;
        if order == json!([]) {
            all.as_array_mut().unwrap().sort_by_key(|row| row["year_sold_at"].as_i64());
        }
        options["limit"] = json!(1);
        let mut paged = Vec::new();
        for _ in 0..all.as_array().unwrap().len() {
            let answer = ask(&db, "sales", &options).await;
            paged.extend(answer.payload().as_array().unwrap().clone());
            options["after"] = answer.json()["next"].clone();
        }
        assert_eq!(Value::from(paged), all, "{order}");
        assert_eq!(options["after"], Value::Null, "{order}: the last page has no next");
    }
    let inexact =
        json!({"group": [part], "selectFields": [part, computed("amount*ratio", "SUM")], "order": "x", "limit": 1});
    let answer = ask(&db, "sales", &inexact).await.json();
    assert_eq!((answer.get("next"), &answer["more"]), (None, &json!(true)));
}

async fn a_batch_and_csv_have_expressions(host: Host) {
    let db = TestDb::new(host, SALES).await;
    let select = json!([computed("price*amount", "SUM")]);
    let path = format!("{}?{}", db.path("sales"), option("selectFields", &select));
    let body = json!({"operations": [{"method": "GET", "path": path}]});
    let batch = host.call(Method::POST, "/api/v1/batch").json(&body).send().await;
    assert_eq!(batch.payload(), json!([[{"x": "2469135780246922.3002"}]]));
    let csv = db.call(Method::GET, &format!("sales?{}", option("selectFields", &select))).header("accept", "text/csv");
    assert_eq!(csv.send().await.text(), "x\r\n2469135780246922.3002\r\n");
}

async fn an_expression_keeps_to_a_role(host: Host) {
    let db = TestDb::new(host, SALES).await;
    let read = json!({"read": {"fields": {"omit": ["price", "sold_at"]}, "rows": {"name": "a"}}});
    let caller = Caller::new(&db, [("sales", read)], json!({}));
    let call = async |options: Value| caller.call(Method::POST, "sales/query").json(&options).send().await;
    for options in [
        json!({"selectFields": [computed("price*amount", "SUM")]}),
        json!({"group": [{"fieldName": "sold_at", "part": "year"}]}),
    ] {
        call(options).await.refused(ErrorCode::UnknownField);
    }
    let own = call(json!({"selectFields": [computed("amount*2", "SUM")]})).await;
    assert_eq!(own.payload(), json!([{"x": "14"}]));
}
