//! Options that writes share: `returning`, `dryRun`, `maxAffected`; conditions in `query`; `$add`.

use super::ITEMS;
use crate::host::{Host, option};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        numbers_are_added_in_the_database,
        what_can_not_be_added_is_refused,
        records_that_match_a_query_are_changed_or_deleted,
        a_query_of_a_write_never_means_a_whole_table,
        a_write_returns_the_record_as_a_read_does,
        writes_of_many_return_lists,
        inserts_return_records_by_any_spelling,
        a_replayed_insert_returns_the_same_record,
        keys_of_any_kind_are_found_again,
        a_changed_key_is_found_as_mariadb_stores_it,
        more_than_the_maximum_changes_nothing,
        a_dry_run_counts_and_changes_nothing,
        options_that_do_not_fit_are_refused,
        tables_that_can_not_keep_the_promise_refuse,
        operations_of_a_batch_take_the_options_too,
    ],
}

/// A table with a column of each kind of value.
const KINDS: &[&str] = &[
    "CREATE TABLE kinds (id INT PRIMARY KEY AUTO_INCREMENT, big BIGINT, price DECIMAL(20,10), small FLOAT, wide DOUBLE, \
     name VARCHAR(40), old VARCHAR(40) CHARACTER SET latin1, kind ENUM('a','b'), meta JSON, raw BLOB, place POINT, \
     day DATE, at DATETIME(3), bits BIT(4), twice INT AS (bits * 2) VIRTUAL, changed TIMESTAMP DEFAULT '2020-01-01' ON UPDATE \
     CURRENT_TIMESTAMP)",
];

fn kinds() -> Value {
    json!({"big": "9223372036854775807", "price": "1.0000000001", "small": 0.1, "wide": 1e300, "name": "Zoë 🦭",
        "old": "é", "kind": "b", "meta": {"b": [1, {"a": null}], "a": 1.50}, "raw": "AAH/", "day": "2026-11-20",
        "place": {"type": "Point", "coordinates": [1.5, 2]}, "at": "2026-11-20 08:36:16.125", "bits": 5})
}

async fn numbers_are_added_in_the_database(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n INT UNSIGNED, big BIGINT, price DECIMAL(38,30), small FLOAT, \
             wide DOUBLE, none INT, meta JSON, double_n INT AS (n * 2) VIRTUAL)",
            "INSERT INTO t (id, n, big, price, small, wide) VALUES (1, 5, 9223372036854775000, 0.1, 0.2, 0.5)",
        ],
    )
    .await;
    let body = json!({"n": {"$add": -2}, "big": {"$add": 807}, "price": {"$add": "0.000000000000000000000000000001"},
        "small": {"$add": 0.1}, "wide": {"$add": 1e2}, "none": {"$add": 1}, "meta": {"$add": 1}});
    let record = db.put("t/1?returning=*", &body).await.payload();
    let expected = json!({"id": 1, "n": 3, "big": "9223372036854775807", "price": "0.100000000000000000000000000001",
        "small": 0.3, "wide": 100.5, "none": null, "meta": {"$add": 1}, "double_n": 6});
    assert_eq!(record, expected);
    let many = json!({"query": {"id": [1, 2]}, "data": {"n": {"$add": "4"}}});
    assert_eq!(db.put("t", &many).await.payload(), 1);
    assert_eq!(db.value("SELECT n FROM t").await, 7);
    let path = db.path("t/1").replace("%2F", "/");
    let batch = json!({"operations": [
        {"method": "PATCH", "path": path, "body": {"n": {"$add": 1}}},
        {"method": "PATCH", "path": path, "body": {"n": {"$add": 1}}}]});
    host.post("/api/v1/batch", &batch).send().await.payload();
    assert_eq!(db.value("SELECT n FROM t").await, 9);
}

async fn what_can_not_be_added_is_refused(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n TINYINT UNSIGNED, price DECIMAL(5,2), name VARCHAR(9), day DATE, bits \
             BIT(4), place POINT, twice INT AS (n * 2) VIRTUAL)",
            "INSERT INTO t (id, n, price, name) VALUES (1, 5, 1, 'x')",
        ],
    )
    .await;
    for (field, operand) in [
        ("n", json!("x")),
        ("n", json!(true)),
        ("n", json!(null)),
        ("n", json!([1])),
        ("n", json!(1.5)),
        ("n", json!({"$add": 1})),
        ("n", json!(-6)),
        ("n", json!(251)),
        ("price", json!("999.99")),
        ("price", json!("many")),
        ("name", json!(1)),
        ("day", json!(1)),
        ("bits", json!(1)),
        ("place", json!(1)),
        ("twice", json!(1)),
    ] {
        let error = db.put("t/1", &json!({field: {"$add": operand}})).await.refused(ErrorCode::InvalidValue);
        assert!(error["message"].as_str().unwrap_or_default().contains(field), "{error}");
    }
    let more = db.put("t/1", &json!({"n": {"$add": 1, "$mul": 2}})).await;
    more.refused(ErrorCode::InvalidValue);
    db.post("t", &json!({"id": 2, "n": {"$add": 1}})).await.refused(ErrorCode::InvalidValue);
    assert_eq!(db.exec("SELECT n, price FROM t").await, json!([{"n": 5, "price": "1.00"}]));
}

async fn records_that_match_a_query_are_changed_or_deleted(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let changed = json!({"note": "new"});
    for (query, operator, count) in [
        (json!({"name": "apple"}), None, 1),
        (json!({"name": "apple", "qty": 12}), None, 0),
        (json!({"name": "apple", "qty": 12}), Some("OR"), 2),
        (json!({"qty": {"value": 0, "equality": "<="}}), None, 2),
        (json!({"qty": null}), None, 1),
        (json!({"g": {"__query": {"id": 1, "name": "date"}, "operator": "OR"}}), None, 2),
    ] {
        let mut body = json!({"query": query, "data": changed});
        if let Some(operator) = operator {
            body["searchOperator"] = json!(operator);
        }
        assert_eq!(db.put("items", &body).await.payload(), count, "{body}");
        let patched = db.call(Method::PATCH, "items").json(&body).send().await;
        assert_eq!(patched.payload(), count, "{body}");
    }
    assert_eq!(db.delete_where("items", &json!({"query": {"qty": {"value": 5, "equality": ">="}}})).await.payload(), 2);
    let in_url = option("query", &json!({"id": 3, "name": "date"}));
    assert_eq!(db.delete(&format!("items?{in_url}&searchOperator=or")).await.payload(), 2);
    assert_eq!(db.delete("items?query[id]=5").await.payload(), 1);
    assert_eq!(db.value("SELECT COUNT(*) FROM items").await, 0);
}

async fn a_query_of_a_write_never_means_a_whole_table(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for query in [
        json!({}),
        json!([]),
        json!(null),
        json!("id"),
        json!({"id": {"value": [], "equality": "NOT IN"}}),
        json!({"id": {"value": [], "equality": "!="}, "qty": 5}),
        json!({"g": {"__query": {}}}),
        json!({"g": {"__query": {"id": {"value": [], "not": true}}}}),
    ] {
        let delete = db.delete_where("items", &json!({"query": query})).await;
        delete.refused(ErrorCode::InvalidFilter);
        let update = db.put("items", &json!({"query": query, "data": {"note": "new"}})).await;
        update.refused(ErrorCode::InvalidFilter);
        let by_url = db.delete(&format!("items?{}", option("query", &query))).await;
        by_url.refused(ErrorCode::InvalidFilter);
    }
    let list = json!([{"key": "id", "value": 1}]);
    for (conditions, code) in [
        (json!({"searchOperator": "OR"}), ErrorCode::InvalidBody),
        (json!({"query": {"id": 1}, "updateKeyValues": list}), ErrorCode::InvalidBody),
        (json!({"query": {"id": 1}, "searchOperator": "XOR"}), ErrorCode::InvalidQueryOption),
        (json!({"query": {"nope": 1}}), ErrorCode::UnknownField),
        (json!({"query": {"id": "x"}}), ErrorCode::InvalidFilter),
    ] {
        let mut update = conditions.clone();
        update["data"] = json!({"note": "new"});
        db.put("items", &update).await.refused(code);
        let delete = json!(conditions.to_string().replace("updateKeyValues", "deleteKeyValues"));
        let text = delete.as_str().unwrap().to_owned();
        db.call(Method::DELETE, "items").bytes(text).send().await.refused(code);
    }
    let both = db.delete_where("items?query[id]=1", &json!({"query": {"id": 1}})).await;
    both.refused(ErrorCode::InvalidBody);
    db.delete_where("items/1", &json!({"query": {"id": 1}})).await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE note <=> 'new'").await, 0);
    assert_eq!(db.value("SELECT COUNT(*) FROM items").await, 5);
}

async fn a_write_returns_the_record_as_a_read_does(host: Host) {
    let db = TestDb::new(host, KINDS).await;
    let inserted = db.post("kinds?returning=*", &kinds()).await;
    let read = db.get("kinds/1").await;
    assert_eq!(inserted.text(), read.text());
    let tag = |answer: &crate::host::Answer| answer.header("etag").map(|tag| tag.trim_start_matches("W/").to_owned());
    assert_eq!(tag(&inserted), tag(&read));
    let updated = db.put("kinds/1?returning=*", &json!({"name": "other", "price": "2"})).await;
    let read = db.get("kinds/1").await;
    assert_eq!((updated.text(), tag(&updated)), (read.text(), tag(&read)));
    let part = db.put("kinds/1?returning=name,id", &json!({"name": "third"})).await;
    assert_eq!(
        (part.raw_record().keys().cloned().collect::<Vec<_>>(), tag(&part)),
        (vec!["id".into(), "name".into()], None)
    );
    let upserted = db.post("kinds?onConflict=update&returning=*", &json!({"id": 1, "kind": "a"})).await;
    assert_eq!(upserted.text(), db.get("kinds/1").await.text());
    let read = db.get("kinds/1").await;
    let deleted = db.delete("kinds/1?returning=*").await;
    assert_eq!(deleted.text(), read.text());
    for answer in [
        db.put("kinds/1?returning=*", &json!({"name": "x"})).await,
        db.delete("kinds/1?returning=id").await,
        db.delete("kinds/x?returning=id").await,
    ] {
        assert_eq!((answer.payload(), tag(&answer)), (Value::Null, None));
    }
}

async fn writes_of_many_return_lists(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let note = |id: u32, note: &str| json!({"id": id, "note": note});
    let body = json!({"query": {"qty": {"value": 0, "equality": "<="}}, "data": {"qty": 7, "note": "x"}});
    assert_eq!(db.put("items?returning=id,note", &body).await.payload(), json!([note(4, "x"), note(5, "x")]));
    assert_eq!(db.put("items?returning=id,note", &body).await.payload(), json!([]));
    let inserted = db.post("items?returning=name,id", &json!({"batchData": [{"name": "f"}, {"name": "g"}]})).await;
    assert_eq!(inserted.payload(), json!([{"name": "f", "id": 6}, {"name": "g", "id": 7}]));
    db.exec("ALTER TABLE items ADD UNIQUE (name)").await;
    let again = json!({"batchData": [{"name": "f", "qty": 1}, {"name": "h", "qty": 1}]});
    let ignored = db.post("items?onConflict=ignore&returning=name,qty", &again).await;
    assert_eq!(ignored.payload(), json!([null, {"name": "h", "qty": 1}]));
    let updated = db.post("items?onConflict=update&returning=name,qty", &again).await;
    assert_eq!(updated.payload(), json!([{"name": "f", "qty": 1}, {"name": "h", "qty": 1}]));
    let deleted = db.delete_where("items?returning=name", &json!({"query": {"id": [1, 2, 99]}})).await;
    assert_eq!(deleted.payload(), json!([{"name": "apple"}, {"name": "banana"}]));
    assert_eq!(db.delete("items?query[id]=1&returning=*").await.payload(), json!([]));
    // Changes more records than one statement reads again for the answer.
    db.exec("INSERT INTO items (name, qty) SELECT CONCAT('s', seq), 50 FROM seq_1_to_2500").await;
    let many = json!({"query": {"qty": 50}, "data": {"qty": 51}});
    let answer = db.put("items?returning=qty,name", &many).await.payload();
    let records = answer.as_array().expect("a list");
    assert_eq!((records.len(), &records[0]["name"], &records[2499]["name"]), (2500, &json!("s1"), &json!("s2500")));
    assert!(records.iter().all(|record| record["qty"] == 51));
    db.exec("INSERT INTO items (name, qty) SELECT CONCAT('u', seq), 60 FROM seq_1_to_10001").await;
    let many = json!({"query": {"qty": 60}, "data": {"qty": 61}});
    db.put("items?returning=id", &many).await.refused(ErrorCode::InvalidBody);
    db.delete_where("items?returning=id", &json!({"query": {"qty": 60}})).await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE qty = 60").await, 10_001);
}

async fn inserts_return_records_by_any_spelling(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for options in ["returning=name,qty", "returning=%5B%22name%22,%22qty%22%5D", "returning[0]=name&returning[1]=qty"]
    {
        let answer = db.post(&format!("items?{options}"), &json!({"name": "x", "qty": 1})).await;
        assert_eq!(answer.payload(), json!({"name": "x", "qty": 1}), "{options}");
    }
    for (options, code) in [
        ("returning=", ErrorCode::InvalidQueryOption),
        ("returning=id,id", ErrorCode::InvalidQueryOption),
        ("returning=nope", ErrorCode::UnknownField),
        ("returning=other.id", ErrorCode::UnknownField),
        ("returning=name&returning=name", ErrorCode::InvalidQueryOption),
        ("returning=name&returning=nope", ErrorCode::UnknownField),
    ] {
        db.post(&format!("items?{options}"), &json!({"name": "y"})).await.refused(code);
        db.put(&format!("items/1?{options}"), &json!({"name": "y"})).await.refused(code);
        db.delete(&format!("items/1?{options}")).await.refused(code);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE name = 'y' OR id = 1").await, 1);
}

async fn a_replayed_insert_returns_the_same_record(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let insert = |options: &str, name: &str| {
        let call = db.call(Method::POST, &format!("items{options}")).json(&json!({"name": name}));
        call.header("idempotency-key", "one")
    };
    let first = insert("?returning=*", "x").send().await;
    db.exec("UPDATE items SET qty = 99 WHERE name = 'x'").await;
    let again = insert("?returning=*", "x").send().await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{again}");
    assert_eq!((again.text(), again.payload()["qty"].clone()), (first.text(), Value::Null));
    let preferred = insert("", "x").header("prefer", "return=representation").send().await;
    assert_eq!(
        (preferred.text(), preferred.header("preference-applied")),
        (first.text(), Some("return=representation"))
    );
    for other in [insert("", "x"), insert("?returning=id", "x"), insert("?returning=*", "y")] {
        other.send().await.refused(ErrorCode::IdempotencyMismatch);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE name = 'x'").await, 1);
}

async fn keys_of_any_kind_are_found_again(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (at, (sql_type, keys)) in [
        ("BIGINT UNSIGNED", [json!("18446744073709551615"), json!(1)]),
        ("DECIMAL(40,20)", [json!("12345678901234567890.12345678901234567890"), json!("1.00000000000000000001")]),
        ("VARCHAR(20)", [json!("Zoë 🦭"), json!("a")]),
        ("VARCHAR(20) CHARACTER SET latin1", [json!("é"), json!("f")]),
        ("ENUM('a','b')", [json!("b"), json!("a")]),
        ("BINARY(3)", [json!("AAH/"), json!("/wAA")]),
        ("DATE", [json!("2026-11-20"), json!("2026-11-21")]),
        ("DATETIME(3)", [json!("2026-11-20 08:36:16.125"), json!("2026-11-20 08:36:16.126")]),
        ("UUID", [json!("0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e11"), json!("0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e12")]),
        ("FLOAT", [json!(0.1), json!(0.2)]),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("t{at}");
        db.exec(&format!("CREATE TABLE {table} (k {sql_type} PRIMARY KEY, n INT)")).await;
        let rows: Vec<_> = keys.iter().map(|key| json!({"k": key, "n": 1})).collect();
        let inserted = db.post(&format!("{table}?returning=k,n"), &json!({"batchData": rows})).await;
        assert_eq!(inserted.payload(), json!(rows), "{sql_type}");
        let mut updated =
            db.put(&format!("{table}?returning=k"), &json!({"query": {"n": 1}, "data": {"n": 2}})).await.payload();
        let found = updated.as_array_mut().expect("a list");
        assert_eq!(found.len(), 2, "{sql_type}: {found:?}");
        assert!(keys.iter().all(|key| found.contains(&json!({"k": key}))), "{sql_type}: {found:?}");
    }
    db.exec("CREATE TABLE pair (a INT, b VARCHAR(9), n INT, PRIMARY KEY (a, b))").await;
    db.post("pair", &json!({"batchData": [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}]})).await.payload();
    let moved = db.put("pair?returning=*", &json!({"query": {"a": 1}, "data": {"a": 2}})).await.payload();
    assert_eq!(moved, json!([{"a": 2, "b": "x", "n": null}, {"a": 2, "b": "y", "n": null}]));
    let moved = db.put("pair/2,x?returning=*", &json!({"b": "z", "n": 1})).await.payload();
    assert_eq!(moved, json!({"a": 2, "b": "z", "n": 1}));
    let same = db.put("pair/2,z?returning=n", &json!({"n": {"$add": 1}})).await.payload();
    assert_eq!(same, json!({"n": 2}));
}

async fn a_changed_key_is_found_as_mariadb_stores_it(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (at, (sql_type, old, new, stored)) in [
        ("DECIMAL(5,1)", json!("1.0"), json!("1.25"), json!("1.3")),
        ("DECIMAL(5)", json!(1), json!(2.5), json!("3")),
        ("FLOAT", json!(1), json!("0.1000000001"), json!(0.1)),
        ("DATETIME", json!("2026-11-20 08:36:16"), json!("2026-11-20T08:36:17.9Z"), json!("2026-11-20 08:36:17")),
        ("TIME(2)", json!("08:36:16"), json!("08:36:17.128"), json!("08:36:17.12")),
        ("BINARY(3)", json!("AAH/"), json!("/w=="), json!("/wAA")),
        ("VARBINARY(3)", json!("AAH/"), json!("/w=="), json!("/w==")),
        ("CHAR(5)", json!("a"), json!("b "), json!("b")),
        ("CHAR(5) COLLATE utf8mb4_nopad_bin", json!("a"), json!("b "), json!("b")),
        ("YEAR", json!(2001), json!(70), json!(1970)),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("t{at}");
        db.exec(&format!("CREATE TABLE {table} (k {sql_type} PRIMARY KEY, n INT)")).await;
        db.post(&table, &json!({"k": old, "n": 1})).await.payload();
        let updated = db.put(&format!("{table}?returning=k"), &json!({"query": {"n": 1}, "data": {"k": new}})).await;
        assert_eq!(updated.payload(), json!([{"k": stored}]), "{sql_type}");
    }
    // Only MariaDB knows what it stores here.
    db.exec("CREATE TABLE rounded (k DOUBLE(7,2) PRIMARY KEY) SELECT 1 AS k").await;
    let body = json!({"query": {"k": 1}, "data": {"k": 1.005}});
    db.put("rounded?returning=k", &body).await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(db.value("SELECT COUNT(*) FROM rounded WHERE k = 1").await, 1);
}

async fn more_than_the_maximum_changes_nothing(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let query = json!({"id": [1, 2, 3]});
    let update = json!({"query": query, "data": {"note": "new"}});
    for options in ["maxAffected=2", "maxAffected=0", "maxAffected=2&returning=*", "maxAffected=2&dryRun=true"] {
        db.put(&format!("items?{options}"), &update).await.refused(ErrorCode::TooManyAffected);
        let delete = db.delete_where(&format!("items?{options}"), &json!({"query": query})).await;
        delete.refused(ErrorCode::TooManyAffected);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE note <=> 'new'").await, 0);
    assert_eq!(db.put("items?maxAffected=3", &update).await.payload(), 3);
    let returned = db.delete_where("items?maxAffected=3&returning=id", &json!({"query": query})).await.payload();
    assert_eq!(returned, json!([{"id": 1}, {"id": 2}, {"id": 3}]));
    assert_eq!(db.put("items/4?maxAffected=1", &json!({"note": "new"})).await.payload(), 1);
    for wrong in ["maxAffected=-1", "maxAffected=many", "maxAffected=1.5", "maxAffected=[1]"] {
        db.put(&format!("items?{wrong}"), &update).await.refused(ErrorCode::InvalidQueryOption);
    }
}

async fn a_dry_run_counts_and_changes_nothing(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    db.exec("ALTER TABLE items ADD UNIQUE (name)").await;
    let query = json!({"qty": {"value": 0, "equality": "<="}});
    let update = json!({"query": query, "data": {"note": "new"}});
    let rows = json!({"batchData": [{"name": "apple", "qty": 1}, {"name": "f"}]});
    for (answer, count) in [
        (db.put("items?dryRun=true", &update).await, 2),
        (db.put("items?dryRun=1&maxAffected=2", &update).await, 2),
        (db.put("items/1?dryRun=true", &json!({"note": "new"})).await, 1),
        (db.put("items/99?dryRun=true", &json!({"note": "new"})).await, 0),
        (db.delete("items/1?dryRun=true").await, 1),
        (db.delete("items/99?dryRun=true").await, 0),
        (db.delete_where("items?dryRun=true", &json!({"query": query})).await, 2),
        (db.post("items?dryRun=true", &json!({"name": "new"})).await, 1),
        (db.post("items?dryRun=true&onConflict=update", &rows).await, 2),
        (db.post("items?dryRun=true&onConflict=ignore", &rows).await, 1),
    ] {
        assert_eq!(answer.payload(), count, "{answer}");
    }
    db.put("items/1?dryRun=true", &json!({"name": "banana"})).await.refused(ErrorCode::DuplicateKey);
    db.post("items?dryRun=true", &rows).await.refused(ErrorCode::DuplicateKey);
    assert_eq!(db.column("items?order[field]=id", "name").await, ["apple", "banana", "cherry", "date", "elderberry"]);
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE note <=> 'new'").await, 0);
    assert_eq!(db.put("items?dryRun=false", &update).await.payload(), 2);
}

async fn options_that_do_not_fit_are_refused(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    for (method, rest) in [
        (Method::POST, "items?maxAffected=1"),
        (Method::POST, "items?dryRun=true&returning=id"),
        (Method::POST, "items?dryRun=perhaps"),
        (Method::PUT, "items/1?onConflict=update"),
        (Method::PUT, "items/1?dryRun=true&returning=*"),
        (Method::PUT, "items/1?query[id]=1"),
        (Method::PUT, "items/1?returning=id&returning=id"),
    ] {
        let answer = db.call(method, rest).json(&json!({"name": "x"})).send().await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
    for rest in ["items?returning=*", "items/1?dryRun=true", "items?maxAffected=1"] {
        db.get(rest).await.refused(ErrorCode::InvalidQueryOption);
    }
    let dry = db.call(Method::POST, "items?dryRun=true").json(&json!({"name": "x"})).header("idempotency-key", "k");
    dry.send().await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE name = 'x'").await, 0);
}

async fn tables_that_can_not_keep_the_promise_refuse(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE plain (id INT PRIMARY KEY, n INT) ENGINE = Aria",
            "CREATE TABLE bare (n INT)",
            "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
            "CREATE VIEW v AS SELECT id, n FROM t",
            "CREATE TABLE texts (id INT, lang CHAR(2), n INT, PRIMARY KEY (id, lang))",
            "INSERT INTO texts VALUES (1, 'de', 1), (1, 'en', 1)",
            "INSERT INTO plain VALUES (1, 1)",
            "INSERT INTO bare VALUES (1)",
            "INSERT INTO t VALUES (1, 1)",
        ],
    )
    .await;
    let new = json!({"n": 2});
    for table in ["plain", "v"] {
        for options in ["dryRun=true", "maxAffected=5", "returning=*"] {
            let update = db.put(&format!("{table}/1?{options}"), &new).await;
            let error = update.refused(ErrorCode::InvalidQueryOption);
            assert!(error["message"].as_str().unwrap_or_default().contains(table), "{error}");
        }
        let conditional = db.call(Method::PUT, &format!("{table}/1")).json(&new).header("if-match", "*").send().await;
        conditional.refused(ErrorCode::InvalidQueryOption);
    }
    db.delete("v/1?returning=*").await.refused(ErrorCode::InvalidQueryOption);
    db.post("v?returning=*", &json!({"id": 2})).await.refused(ErrorCode::InvalidQueryOption);
    // Several records have this id, so a single record can't be returned or compared.
    for call in [db.call(Method::PUT, "texts/1?returning=*"), db.call(Method::PUT, "texts/1").header("if-match", "*")] {
        call.json(&new).send().await.refused(ErrorCode::InvalidQueryOption);
    }
    db.delete("texts/1?returning=*").await.refused(ErrorCode::InvalidQueryOption);
    let both = json!({"query": {"id": 1}, "data": new});
    let both = db.put("texts?returning=lang,n", &both).await.payload();
    assert_eq!(both, json!([{"lang": "de", "n": 2}, {"lang": "en", "n": 2}]));
    let bare = json!({"query": {"n": 1}, "data": new});
    db.put("bare?returning=*", &bare).await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(
        db.exec("SELECT n FROM t UNION ALL SELECT n FROM plain UNION ALL SELECT n FROM bare").await,
        json!([{"n": 1}, {"n": 1}, {"n": 1}])
    );
    assert_eq!(db.post("bare?returning=n", &json!({"n": 3})).await.payload(), json!({"n": 3}));
    let deleted = db.delete_where("bare?returning=*", &json!({"query": {"n": 3}})).await;
    assert_eq!(deleted.payload(), json!([{"n": 3}]));
}

async fn operations_of_a_batch_take_the_options_too(host: Host) {
    let db = TestDb::new(host, ITEMS).await;
    let (all, of) = (db.path("items"), |id: &str| format!("{}/{id}", db.path("items")));
    let answer = host
        .post(
            "/api/v1/batch",
            &json!({"operations": [
                {"method": "POST", "path": format!("{all}?returning=id,name"), "body": {"name": "f"}},
                {"method": "PUT", "path": format!("{}?returning=id,qty", of("$ref:0")), "body": {"qty": {"$add": 1}}},
                {"method": "POST", "path": format!("{all}?returning=name"), "body": {"batchData": [{"name": "g"}, {"name": "h"}]}},
                {"method": "PUT", "path": format!("{all}?returning=id"), "body": {"query": {"id": {"value": [{"$ref": 0}, {"$ref": 2, "row": 1}]}}, "data": {"note": "n"}}},
                {"method": "DELETE", "path": format!("{all}?dryRun=true"), "body": {"query": {"id": {"value": 0, "equality": ">"}}}},
                {"method": "DELETE", "path": format!("{}?returning=name", of("1"))},
                {"method": "DELETE", "path": format!("{}?returning=name", of("99"))},
                {"method": "DELETE", "path": format!("{all}?maxAffected=1&query[id]=2")},
                {"method": "GET", "path": format!("{all}?selectFields=id")},
            ]}),
        )
        .send()
        .await;
    let ids = |ids: &[u32]| json!(ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>());
    assert_eq!(
        answer.payload(),
        json!([{"id": 6, "name": "f"}, {"id": 6, "qty": null}, [{"name": "g"}, {"name": "h"}], ids(&[6, 8]), 8,
            {"name": "apple"}, null, 1, ids(&[3, 4, 5, 6, 7, 8])])
    );
    let answer = host
        .post(
            "/api/v1/batch",
            &json!({"operations": [
                {"method": "POST", "path": &all, "body": {"name": "later"}},
                {"method": "PUT", "path": format!("{all}?maxAffected=1"), "body": {"query": {"id": [3, 4]}, "data": {"note": "n"}}},
            ]}),
        )
        .send()
        .await;
    assert_eq!(answer.refused(ErrorCode::TooManyAffected)["details"]["operation"], 1);
    assert_eq!(db.value("SELECT COUNT(*) FROM items WHERE name = 'later'").await, 0);
}
