//! Pages: what a change is, transactions, limits, waiting, snapshots.

use super::{Copy, Page, call, plain, post};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use std::time::Duration;

cases! {
    Both: [
        changes_are_told_whoever_made_them,
        changes_of_one_transaction_stand_together,
        pages_of_any_size_tell_the_same,
        records_come_into_a_condition_and_leave_it,
        a_new_key_is_another_record,
        changes_of_other_fields_are_not_told,
        a_page_waits_for_a_change,
        a_page_waits_for_a_generated_value,
        several_subscriptions_share_a_request,
        a_snapshot_and_the_feed_miss_and_double_nothing,
        what_was_rolled_back_never_comes,
        rows_of_the_past_are_not_changes,
        a_long_transaction_comes_in_pages,
    ],
}

const ORDERS: &str = "CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, \
    total DECIMAL(10,2), state ENUM('new','done') NOT NULL DEFAULT 'new', note VARCHAR(50))";

async fn orders(host: Host) -> TestDb {
    TestDb::new(host, &[ORDERS]).await
}

async fn changes_are_told_whoever_made_them(host: Host) {
    let db = orders(host).await;
    let mut copy = Copy::new(&db, "orders", &[]).await;
    assert!(copy.records.is_empty());
    db.post("orders", &json!({"customer": 1, "total": "5.5", "note": "é\"\n"})).await.payload();
    db.exec("UPDATE orders SET state = 'done', total = total + 1").await;
    db.behind("INSERT INTO orders (customer) VALUES (2)");
    db.delete("orders/1").await.payload();
    let changes = copy.catch_up(1_000).await;
    assert_eq!(
        plain(&changes),
        [
            json!({"type": "insert", "key": 1, "end": true,
                "record": {"id": 1, "customer": 1, "total": "5.50", "state": "new", "note": "é\"\n"}}),
            json!({"type": "update", "key": 1, "end": true, "changed": ["total", "state"],
                "record": {"id": 1, "customer": 1, "total": "6.50", "state": "done", "note": "é\"\n"}}),
            json!({"type": "insert", "key": 2, "end": true,
                "record": {"id": 2, "customer": 2, "total": null, "state": "new", "note": null}}),
            json!({"type": "delete", "key": 1, "end": true,
                "record": {"id": 1, "customer": 1, "total": "6.50", "state": "done", "note": "é\"\n"}}),
        ]
    );
    copy.is_the_list().await;
}

async fn changes_of_one_transaction_stand_together(host: Host) {
    let db = orders(host).await;
    let mut copy = Copy::new(&db, "orders", &[]).await;
    let operations = json!({"operations": [
        {"method": "POST", "path": db.path("orders"), "body": {"customer": 1}},
        {"method": "PUT", "path": format!("{}/1", db.path("orders")), "body": {"total": 3}},
        {"method": "POST", "path": db.path("orders"), "body": {"customer": 2}},
    ]});
    host.post("/api/v1/batch", &operations).send().await.payload();
    db.exec("UPDATE orders SET note = 'x'").await;
    let changes = copy.catch_up(1_000).await;
    let ends: Vec<_> = changes.iter().map(|change| change["end"] == true).collect();
    assert_eq!(ends, [false, false, true, false, true]);
    let positions: Vec<_> = changes.iter().map(|change| change["position"].clone()).collect();
    assert!(positions[0] == positions[2] && positions[2] != positions[3] && positions[3] == positions[4]);
    copy.is_the_list().await;
}

async fn pages_of_any_size_tell_the_same(host: Host) {
    let db = orders(host).await;
    let begin = Copy::new(&db, "orders", &[]).await;
    db.exec("INSERT INTO orders (customer) SELECT seq FROM seq_1_to_7").await;
    db.exec("UPDATE orders SET total = customer WHERE customer % 2 = 0").await;
    db.exec("UPDATE orders SET id = id + 100 WHERE id = 3").await;
    db.exec("DELETE FROM orders WHERE customer > 5").await;
    let whole = begin.page("").await;
    assert!(whole.is_up_to_date);
    for limit in [1, 2, 3, 5] {
        let mut copy = begin_of(&begin);
        assert_eq!(copy.catch_up(limit).await, whole.changes, "pages of {limit}");
        // A full page is the same for ever.
        let pages = [begin.page(&format!("limit={limit}")).await, begin.page(&format!("limit={limit}")).await];
        assert_eq!((&pages[0].changes, &pages[0].next), (&pages[1].changes, &pages[1].next));
        copy.is_the_list().await;
    }
}

fn begin_of<'a>(copy: &Copy<'a>) -> Copy<'a> {
    let (db, table, token) = (copy.db, copy.table, copy.token.clone());
    Copy { db, key: None, table, options: String::new(), token, records: Default::default() }
}

async fn records_come_into_a_condition_and_leave_it(host: Host) {
    let db = orders(host).await;
    db.exec("INSERT INTO orders (customer, note) VALUES (1, 'Ärger'), (2, 'b')").await;
    let options = [("query", json!({"note": "ärger"})), ("selectFields", json!(["id", "note"]))];
    let mut copy = Copy::new(&db, "orders", &options).await;
    assert_eq!(copy.records.len(), 1);
    db.exec("UPDATE orders SET note = 'ARGER' WHERE id = 2").await;
    db.exec("UPDATE orders SET note = 'z' WHERE id = 1").await;
    db.exec("DELETE FROM orders WHERE id = 1").await;
    db.exec("DELETE FROM orders WHERE id = 2").await;
    db.exec("INSERT INTO orders (note) VALUES ('y')").await;
    assert_eq!(
        plain(&copy.catch_up(1_000).await),
        [
            json!({"type": "insert", "key": 2, "record": {"id": 2, "note": "ARGER"}, "entered": true, "end": true}),
            json!({"type": "delete", "key": 1, "left": true, "end": true}),
            json!({"type": "delete", "key": 2, "record": {"id": 2, "note": "ARGER"}, "end": true}),
        ]
    );
    copy.is_the_list().await;
}

async fn a_new_key_is_another_record(host: Host) {
    let db = orders(host).await;
    db.exec("INSERT INTO orders (id, customer) VALUES (1, 7)").await;
    let mut copy = Copy::new(&db, "orders", &[("selectFields", json!(["id", "customer"]))]).await;
    db.exec("UPDATE orders SET id = 9").await;
    assert_eq!(
        plain(&copy.catch_up(1_000).await),
        [
            json!({"type": "delete", "key": 1, "left": true}),
            json!({"type": "insert", "key": 9, "record": {"id": 9, "customer": 7}, "entered": true, "end": true}),
        ]
    );
    copy.is_the_list().await;
    db.exec("CREATE TABLE pairs (a INT, b VARCHAR(5), v INT, PRIMARY KEY (a, b))").await;
    let pairs = Page::of(&call(&db, "pairs", "").send().await);
    db.exec("INSERT INTO pairs VALUES (1, 'x', 5)").await;
    let changes = Page::of(&call(&db, "pairs", &format!("since={}", pairs.next)).send().await).changes;
    let expected = json!({"type": "insert", "key": "1,x", "record": {"a": 1, "b": "x", "v": 5}, "end": true});
    assert_eq!(plain(&changes), [expected]);
}

async fn changes_of_other_fields_are_not_told(host: Host) {
    let db = orders(host).await;
    db.exec("INSERT INTO orders (id, customer, total) VALUES (1, 7, 1), (2, 8, 1)").await;
    let mut copy = Copy::new(&db, "orders", &[("selectFields", json!(["id", "customer"]))]).await;
    db.exec("UPDATE orders SET total = 2").await;
    db.exec("UPDATE orders SET total = 3, customer = id WHERE id = 1").await;
    let changes = copy.catch_up(1_000).await;
    let record = json!({"id": 1, "customer": 1});
    assert_eq!(
        plain(&changes),
        [json!({"type": "update", "key": 1, "record": record, "changed": ["customer"], "end": true})]
    );
    copy.is_the_list().await;
}

async fn a_page_waits_for_a_change(host: Host) {
    let db = orders(host).await;
    let copy = Copy::new(&db, "orders", &[("query", json!({"customer": 5}))]).await;
    let waiting = tokio::spawn(copy.call(&format!("since={}&wait=25s", copy.token)).send());
    // Neither another customer's order nor an order of another table ends the wait with nothing.
    db.exec("INSERT INTO orders (customer) VALUES (4)").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    db.behind("INSERT INTO orders (customer) VALUES (5)");
    let page = Page::of(&waiting.await.expect("an answer"));
    assert_eq!(page.changes.len(), 1);
    assert_eq!(page.changes[0]["record"]["customer"], 5);
    let empty = copy.call(&format!("since={}&wait=100ms", page.next)).send().await;
    let empty = Page::of(&empty);
    assert!(empty.changes.is_empty() && empty.is_up_to_date);
}

/// MariaDB 11 leaves generated columns out of the log.
async fn a_page_waits_for_a_generated_value(host: Host) {
    let table = "CREATE TABLE gen (id INT PRIMARY KEY, a INT, v INT AS (a + 0) VIRTUAL, s INT AS (a + 0) STORED)";
    let db = TestDb::new(host, &[table]).await;
    db.exec("INSERT INTO gen (id, a) VALUES (1, 7)").await;
    for field in ["v", "s"] {
        let mut copy = Copy::new(&db, "gen", &[("query", json!({field: 7}))]).await;
        for statement in ["UPDATE gen SET a = 8", "UPDATE gen SET a = 7"] {
            let waiting = tokio::spawn(copy.call(&format!("since={}&wait=5s", copy.token)).send());
            tokio::time::sleep(Duration::from_millis(300)).await;
            db.exec(statement).await;
            let page = Page::of(&waiting.await.expect("an answer"));
            assert_eq!(page.changes.len(), 1, "{field} after {statement}");
            copy.apply(&page.changes[0]);
            copy.token = page.next;
        }
        copy.is_the_list().await;
    }
}

async fn several_subscriptions_share_a_request(host: Host) {
    let db = TestDb::new(host, &[ORDERS, "CREATE TABLE notes (id INT PRIMARY KEY, text TEXT)"]).await;
    let subscriptions = json!([
        {"id": "five", "database": db.name, "table": "orders", "query": {"customer": 5}, "selectFields": ["id"]},
        {"id": "all", "database": db.name, "table": "orders", "selectFields": ["id", "customer"]},
        {"id": "notes", "database": db.name, "table": "notes"},
    ]);
    let body = |more: &[(&str, Value)]| {
        let mut body = json!({"subscriptions": subscriptions});
        for (name, value) in more {
            body[*name] = value.clone();
        }
        body
    };
    db.exec("INSERT INTO notes VALUES (1, 'a')").await;
    let snapshot = post(host, &body(&[("snapshot", json!(true))])).send().await.text();
    let lines: Vec<Value> = snapshot.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [record, last] = lines.as_slice() else { panic!("{snapshot}") };
    let expected = json!({"type": "insert", "snapshot": true, "key": 1, "record": {"id": 1, "text": "a"},
        "subscription": "notes"});
    assert_eq!(*record, expected);
    db.exec("INSERT INTO orders (customer) VALUES (5), (6)").await;
    db.exec("UPDATE notes SET text = 'b'").await;
    let expected = [
        json!({"type": "insert", "key": 1, "record": {"id": 1}, "subscription": "five"}),
        json!({"type": "insert", "key": 1, "record": {"id": 1, "customer": 5}, "subscription": "all"}),
        json!({"type": "insert", "key": 2, "record": {"id": 2, "customer": 6}, "subscription": "all", "end": true}),
        json!({"type": "update", "key": 1, "record": {"id": 1, "text": "b"}, "changed": ["text"],
            "subscription": "notes", "end": true}),
    ];
    for limit in [1, 2, 1_000] {
        let (mut token, mut all) = (last["next"].clone(), Vec::new());
        loop {
            let page = Page::of(&post(host, &body(&[("since", token), ("limit", json!(limit))])).send().await);
            all.extend(plain(&page.changes));
            if page.is_up_to_date {
                break;
            }
            token = json!(page.next);
        }
        assert_eq!(all, expected, "pages of {limit}");
    }
}

async fn a_snapshot_and_the_feed_miss_and_double_nothing(host: Host) {
    let db = orders(host).await;
    let writes = async {
        for at in 0..60 {
            db.exec(&format!("INSERT INTO orders (customer, total) VALUES ({at}, 0)")).await;
            db.exec(&format!("UPDATE orders SET total = total + 1 WHERE customer >= {at} - 5")).await;
            db.exec(&format!("DELETE FROM orders WHERE customer = {at} - 20")).await;
        }
    };
    let copies = async {
        let mut copies = Vec::new();
        for _ in 0..8 {
            copies.push(Copy::new(&db, "orders", &[]).await);
        }
        copies
    };
    let ((), mut copies) = tokio::join!(writes, copies);
    for copy in &mut copies {
        copy.catch_up(50).await;
        copy.is_the_list().await;
    }
}

async fn what_was_rolled_back_never_comes(host: Host) {
    let db = orders(host).await;
    let mut copy = Copy::new(&db, "orders", &[]).await;
    db.behind("BEGIN; INSERT INTO orders (customer) VALUES (1); ROLLBACK");
    db.behind(
        "BEGIN; INSERT INTO orders (customer) VALUES (2); SAVEPOINT `a b`; INSERT INTO orders (customer) VALUES (3); \
         ROLLBACK TO `a b`; INSERT INTO orders (customer) VALUES (4); COMMIT",
    );
    db.behind(
        "XA START 'one'; INSERT INTO orders (customer) VALUES (5); XA END 'one'; XA PREPARE 'one'; XA ROLLBACK 'one'",
    );
    db.behind("XA START 'two'; INSERT INTO orders (customer) VALUES (6); XA END 'two'; XA PREPARE 'two'");
    let customers =
        |changes: &[Value]| -> Vec<_> { changes.iter().map(|change| change["record"]["customer"].clone()).collect() };
    assert_eq!(customers(&copy.catch_up(1_000).await), [2, 4]);
    db.behind("XA COMMIT 'two'");
    assert_eq!(customers(&copy.catch_up(1_000).await), [6]);
    copy.is_the_list().await;
}

async fn rows_of_the_past_are_not_changes(host: Host) {
    let table = "CREATE TABLE versions (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING";
    let named = "CREATE TABLE named (id INT PRIMARY KEY, v INT, began TIMESTAMP(6) GENERATED ALWAYS AS ROW START INVISIBLE, \
        ended TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (began, ended)) \
        WITH SYSTEM VERSIONING";
    let db = TestDb::new(host, &[table, named]).await;
    for table in ["versions", "named"] {
        let mut copy = Copy::new(&db, table, &[]).await;
        db.exec(&format!("INSERT INTO {table} VALUES (1, 1), (2, 2)")).await;
        db.exec(&format!("UPDATE {table} SET v = 5 WHERE id = 1")).await;
        db.exec(&format!("DELETE FROM {table} WHERE id = 2")).await;
        let changes = copy.catch_up(1_000).await;
        let types: Vec<_> = changes.iter().map(|change| json!([change["type"], change["key"]])).collect();
        assert_eq!(types, [json!(["insert", 1]), json!(["insert", 2]), json!(["update", 1]), json!(["delete", 2])]);
        assert!(changes.iter().all(|change| change.get("left").is_none()), "{changes:?}");
        copy.is_the_list().await;
    }
}

/// The transaction is longer than what is passed on at once, and than a page may be in bytes.
async fn a_long_transaction_comes_in_pages(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE texts (id INT PRIMARY KEY, text MEDIUMTEXT)"]).await;
    let mut copy = Copy::new(&db, "texts", &[]).await;
    db.exec("INSERT INTO texts SELECT seq, REPEAT('x', 20000) FROM seq_1_to_1500").await;
    let changes = copy.catch_up(1_000).await;
    assert_eq!(changes.len(), 1_500);
    let ends: Vec<_> =
        changes.iter().enumerate().filter(|(_, change)| change["end"] == true).map(|(at, _)| at).collect();
    assert_eq!(ends, [1_499]);
    copy.is_the_list().await;
}
