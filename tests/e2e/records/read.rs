//! Lists and single records: which records are returned, how many, in which order, and with which fields.

use super::ITEMS;
use crate::host::{Host, option};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_whole_number_may_be_written_with_a_point,
        a_list_without_options_is_all_records,
        an_empty_table_is_an_empty_list,
        a_record_is_one_object,
        a_missing_record_is_not_found,
        limit_bounds_the_list,
        pages_count_from_one,
        offset_skips,
        an_order_may_be_one_or_a_list,
        an_order_takes_the_strategy_in_any_case,
        select_fields_gives_just_those_in_that_order,
        select_fields_may_rename,
        select_fields_may_aggregate,
        omit_fields_gives_the_others,
        options_apply_to_a_single_record,
        the_post_twin_takes_the_same_options,
        brackets_are_read_like_json,
        comma_lists_are_read_like_json,
        a_view_can_be_read,
        the_demo_database_is_there,
    ],
}

async fn a_list_without_options_is_all_records(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let payload = db.get("items").await.payload();
    assert_eq!(payload.as_array().unwrap().len(), 5);
    let first = json!({"id": 1, "name": "apple", "qty": 5, "note": "red", "day": "2026-01-01"});
    assert_eq!(payload[0], first);
}

async fn an_empty_table_is_an_empty_list(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)"]).await;
    assert_eq!(db.get("t").await.payload(), json!([]));
    assert_eq!(db.get("t?limit=5&query[id]=1").await.payload(), json!([]));
}

async fn a_record_is_one_object(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let expected = json!({"id": 2, "name": "banana", "qty": 12, "note": null, "day": "2026-02-01"});
    assert_eq!(db.get("items/2").await.payload(), expected);
}

async fn a_missing_record_is_not_found(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for id in ["99", "0", "-1", "99999999999999999999999"] {
        let answer = db.get(&format!("items/{id}")).await;
        answer.refused(ErrorCode::RecordNotFound);
    }
}

async fn limit_bounds_the_list(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (limit, count) in [(0, 0), (1, 1), (5, 5), (6, 5), (1_000_000, 5)] {
        let payload = db.get(&format!("items?limit={limit}")).await.payload();
        assert_eq!(payload.as_array().unwrap().len(), count, "limit={limit}");
    }
}

async fn pages_count_from_one(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (page, ids) in [(1, vec![1, 2]), (2, vec![3, 4]), (3, vec![5]), (4, vec![])] {
        let got = db.column(&format!("items?order[field]=id&limit=2&page={page}"), "id").await;
        assert_eq!(Value::from(got), json!(ids), "page {page}");
    }
}

async fn offset_skips(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let ids = db.column("items?order[field]=id&limit=2&offset=3", "id").await;
    assert_eq!(Value::from(ids), json!([4, 5]));
    let ids = db.column("items?order[field]=id&limit=2&offset=0", "id").await;
    assert_eq!(Value::from(ids), json!([1, 2]));
    let answer = db.get("items?order[field]=id&offset=3").await;
    // Without a limit, an offset is either applied or refused, but not ignored.
    match answer.code().as_str() {
        "ok" => assert_eq!(answer.payload().as_array().unwrap().len(), 2, "{answer}"),
        code => assert_eq!(code, "invalid_query_option", "{answer}"),
    }
}

async fn an_order_may_be_one_or_a_list(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, g INT)", "INSERT INTO t VALUES (1,2),(2,1),(3,2),(4,1)"],
    )
    .await;
    let one = option("order", &json!({"field": "id", "strategy": "DESC"}));
    assert_eq!(db.column(&format!("t?{one}"), "id").await, [4, 3, 2, 1]);
    let list = option("order", &json!([{"field": "g"}, {"field": "id", "strategy": "DESC"}]));
    assert_eq!(db.column(&format!("t?{list}"), "id").await, [4, 2, 3, 1]);
    let brackets = "order[0][field]=g&order[0][strategy]=DESC&order[1][field]=id";
    assert_eq!(db.column(&format!("t?{brackets}"), "id").await, [1, 3, 2, 4]);
}

async fn an_order_takes_the_strategy_in_any_case(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (strategy, first) in [("asc", 1), ("ASC", 1), ("Desc", 5), ("DESC", 5)] {
        let order = option("order", &json!({"field": "id", "strategy": strategy}));
        assert_eq!(db.column(&format!("items?{order}&limit=1"), "id").await, [first]);
    }
}

async fn select_fields_gives_just_those_in_that_order(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for fields in
        ["selectFields=name,id", "selectFields=%5B%22name%22,%22id%22%5D", "selectFields[]=name&selectFields[]=id"]
    {
        let answer = db.get(&format!("items?{fields}&limit=1&order[field]=id")).await;
        assert_eq!(answer.payload(), json!([{"name": "apple", "id": 1}]));
        assert!(answer.text().contains(r#"{"name":"apple","id":1}"#), "{answer}");
    }
    assert_eq!(db.get("items?selectFields=name&limit=1&order[field]=id").await.payload(), json!([{"name": "apple"}]));
}

async fn select_fields_may_rename(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let fields = option("selectFields", &json!(["id", {"fieldName": "name", "alias": "fruit"}]));
    let answer = db.get(&format!("items?{fields}&limit=1&order[field]=id")).await;
    assert_eq!(answer.payload(), json!([{"id": 1, "fruit": "apple"}]));
    let odd = option("selectFields", &json!([{"fieldName": "name", "alias": "a`b\"c 'd\\ ü"}]));
    let answer = db.get(&format!("items?{odd}&limit=1&order[field]=id")).await;
    assert_eq!(answer.payload(), json!([{"a`b\"c 'd\\ ü": "apple"}]));
}

async fn select_fields_may_aggregate(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let unknown = json!([{"fieldName": "note", "aggregate": "SLEEP"}]);
    let answer = db.get(&format!("items?{}", option("selectFields", &unknown))).await;
    answer.refused(ErrorCode::InvalidQueryOption);
    let cases =
        [("COUNT", "id", json!(5)), ("MAX", "qty", json!(12)), ("MIN", "qty", json!(-3)), ("SUM", "qty", json!("14"))];
    for (aggregate, field, expected) in cases {
        for spelling in [aggregate.to_owned(), aggregate.to_lowercase()] {
            let fields = option("selectFields", &json!([{"fieldName": field, "alias": "x", "aggregate": spelling}]));
            let answer = db.get(&format!("items?{fields}")).await;
            assert_eq!(answer.payload(), json!([{"x": expected}]), "{answer}");
        }
    }
    let distinct = json!([{"fieldName": "note", "alias": "x", "aggregate": "COUNT_DISTINCT"}]);
    let answer = db.get(&format!("items?{}", option("selectFields", &distinct))).await;
    assert_eq!(answer.payload(), json!([{"x": 4}]), "{answer}");
    let unknown = json!([{"fieldName": "note", "aggregate": "SLEEP"}]);
    let answer = db.get(&format!("items?{}", option("selectFields", &unknown))).await;
    answer.refused(ErrorCode::InvalidQueryOption);
}

async fn omit_fields_gives_the_others(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for fields in [
        "omitFields=note,day,qty",
        "omitFields=%5B%22note%22,%22day%22,%22qty%22%5D",
        "omitFields[]=note&omitFields[]=day&omitFields[]=qty",
    ] {
        let answer = db.get(&format!("items?{fields}&limit=1&order[field]=id")).await;
        assert_eq!(answer.payload(), json!([{"id": 1, "name": "apple"}]), "{answer}");
    }
    let all = db.get("items?omitFields=id,name,qty,note,day").await;
    all.refused(ErrorCode::InvalidQueryOption);
}

async fn options_apply_to_a_single_record(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    assert_eq!(db.get("items/1?selectFields=name").await.payload(), json!({"name": "apple"}));
    assert_eq!(db.get("items/1?omitFields=note,day").await.payload(), json!({"id": 1, "name": "apple", "qty": 5}));
}

async fn the_post_twin_takes_the_same_options(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let body = json!({
        "limit": 2, "offset": 1, "order": {"field": "id", "strategy": "desc"}, "selectFields": ["id"],
        "query": {"qty": {"value": -5, "equality": ">"}}
    });
    let payload = db.post("items/query", &body).await.payload();
    assert_eq!(payload, json!([{"id": 4}, {"id": 2}]));
    assert_eq!(db.post("items/query", &json!({})).await.payload().as_array().unwrap().len(), 5);
    db.post("items/query", &json!({"limmit": 1})).await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(db.get("items?limit=5").await.payload(), db.post("items/query", &json!({"limit": 5})).await.payload());
}

async fn brackets_are_read_like_json(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let by_json = option("query", &json!({"qty": {"value": 5, "equality": ">="}}));
    let expected = db.get(&format!("items?{by_json}&order[field]=id")).await.payload();
    for brackets in [
        "query[qty][value]=5&query[qty][equality]=%3E%3D&order[field]=id",
        "query%5Bqty%5D%5Bvalue%5D=5&query%5Bqty%5D%5Bequality%5D=%3E%3D&order%5Bfield%5D=id",
    ] {
        assert_eq!(db.get(&format!("items?{brackets}")).await.payload(), expected, "{brackets}");
    }
    assert_eq!(db.column("items?query[name]=apple", "id").await, [1]);
    assert_eq!(db.column("items?query[name]=apple&query[qty]=5", "id").await, [1]);
    let list = "items?query[id][value][]=1&query[id][value][]=3&order[field]=id";
    assert_eq!(db.column(list, "id").await, [1, 3]);
    let indexed = "items?query[id][value][0]=1&query[id][value][1]=3&order[field]=id";
    assert_eq!(db.column(indexed, "id").await, [1, 3]);
}

async fn comma_lists_are_read_like_json(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let comma = db.get("items?selectFields=id,name&order[field]=id").await.payload();
    let encoded = db.get("items?selectFields=id%2Cname&order[field]=id").await.payload();
    let json =
        db.get(&format!("items?{}&order[field]=id", option("selectFields", &json!(["id", "name"])))).await.payload();
    assert_eq!(comma, json);
    assert_eq!(encoded, json);
}

async fn a_view_can_be_read(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    db.exec("CREATE VIEW fruit AS SELECT id, UPPER(name) AS shout FROM items WHERE qty > 0").await;
    let payload = db.get("fruit?order[field]=id").await.payload();
    assert_eq!(payload, json!([{"id": 1, "shout": "APPLE"}, {"id": 2, "shout": "BANANA"}]));
    assert_eq!(db.get("fruit/2").await.payload(), json!({"id": 2, "shout": "BANANA"}));
    assert_eq!(db.column("fruit?query[shout]=APPLE", "id").await, [1]);
    db.exec("CREATE VIEW keyless AS SELECT name FROM items").await;
    assert_eq!(db.get("keyless").await.payload().as_array().unwrap().len(), 5);
    let by_id = db.get("keyless/1").await;
    by_id.refused(ErrorCode::RecordNotFound);
}

async fn the_demo_database_is_there(host: Host) {
    let rows =
        host.sql(&json!({"query": "SELECT COUNT(*) AS n FROM posts", "database": "demo"})).send().await.payload();
    assert!(rows[0]["n"].as_i64().unwrap() >= 1_000, "{rows}");
    for table in ["authors", "posts", "comments"] {
        let payload = host.get(&format!("/api/v1/crud/demo/{table}?limit=3")).send().await.payload();
        assert_eq!(payload.as_array().unwrap().len(), 3, "{table}");
    }
}

async fn a_whole_number_may_be_written_with_a_point(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for number in [json!(2.0), json!("2.0"), json!("2")] {
        let body = json!({"limit": number, "page": number, "select": "id", "order": "id"});
        assert_eq!(db.post("items/query", &body).await.payload(), json!([{"id": 3}, {"id": 4}]), "{number}");
    }
    let answer = db.get("items?limit=2.0&page=2.00&select=id&order=id").await;
    assert_eq!(answer.payload(), json!([{"id": 3}, {"id": 4}]));
}
