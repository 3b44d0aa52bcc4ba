//! Indirect ways to learn about hidden records and fields, or to be taken for another caller.

use super::{Caller, create_role, is_claim, role_of};
use crate::case::eventually;
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        patterns_find_allowed_records_only,
        patterns_in_writes_keep_to_the_rows_of_their_own_action,
        a_search_does_not_expand_by_hidden_records,
        a_field_that_was_renamed_is_denied_rather_than_shown,
        a_rule_on_a_field_that_updates_change_by_themselves_denies_updates,
        claims_that_mariadb_would_take_for_another_find_nothing,
        callers_without_a_subject_share_no_idempotency_key,
    ],
}

const TODOS: &[&str] = &[
    "CREATE TABLE todos (id INT PRIMARY KEY AUTO_INCREMENT, owner VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin, \
     number INT, title VARCHAR(80), FULLTEXT (title))",
    "INSERT INTO todos (owner, number, title) VALUES ('bob', 7, 'bank pin 4711'), ('ann', 8, 'pin'), ('ann', 8, 'bank')",
];

fn own() -> Value {
    json!({"read": {"rows": is_claim("owner", "sub")}, "insert": true})
}

async fn patterns_find_allowed_records_only(host: Host) {
    let db = TestDb::new(host, TODOS).await;
    let ann = Caller::new(&db, [("todos", own())], json!({"sub": "ann"}));
    for (equality, value) in
        [("REGEXP", "^(?:.)+k|4$"), ("LIKE", "%b%a%n%k%"), ("NOT REGEXP", "^pin"), ("LIKE", "bank%")]
    {
        let query = json!({"query": {"title": {"value": value, "equality": equality}}, "selectFields": ["id"]});
        assert_eq!(ann.post("todos/query", &query).await.payload(), json!([{"id": 3}]), "{equality} {value}");
        let one = json!({"query": {"id": 1, "title": {"value": value, "equality": equality}}});
        assert_eq!(ann.post("todos/query", &one).await.payload(), json!([]), "{equality} {value}");
    }
}

async fn patterns_in_writes_keep_to_the_rows_of_their_own_action(host: Host) {
    let db = TestDb::new(host, TODOS).await;
    let not_seven = json!({"rows": {"number": {"ne": 7}}});
    let rule = json!({"read": {"rows": is_claim("owner", "sub")}, "update": not_seven, "delete": true});
    let bob = Caller::new(&db, [("todos", rule)], json!({"sub": "bob"}));
    for condition in [json!({"like": "%an%"}), json!({"regexp": "an"}), json!({"contains": "an"})] {
        let body = json!({"where": {"title": condition}, "data": {"number": 9}});
        assert_eq!(bob.put("todos?dryRun=true", &body).await.payload(), 1, "{body}");
        let body = json!({"where": {"title": condition}});
        assert_eq!(bob.delete_where("todos?dryRun=true", &body).await.payload(), 2, "{body}");
    }
}

async fn a_search_does_not_expand_by_hidden_records(host: Host) {
    let db = TestDb::new(host, TODOS).await;
    let ann = Caller::new(&db, [("todos", own())], json!({"sub": "ann"}));
    let expansion = json!({"fullTextSearch": {"fields": ["title"], "searchTerm": "bank", "mode": "expansion"}});
    ann.post("todos/query", &expansion).await.refused(ErrorCode::RoleForbids);
    let natural = json!({"fullTextSearch": {"fields": ["title"], "searchTerm": "bank"}, "selectFields": ["id"]});
    assert_eq!(ann.post("todos/query", &natural).await.payload(), json!([{"id": 3}]));
    let all = Caller::new(&db, [("todos", json!({"read": true}))], json!({}));
    assert_eq!(all.post("todos/query", &expansion).await.status, 200);
}

async fn a_field_that_was_renamed_is_denied_rather_than_shown(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, pw VARCHAR(9))", "INSERT INTO t VALUES (1, 'x')"])
            .await;
    let visible = json!({"fields": {"omit": ["pw"]}});
    let caller = Caller::new(&db, [("t", json!({"read": visible, "update": visible}))], json!({}));
    assert_eq!(caller.get("t").await.payload(), json!([{"id": 1}]));
    db.exec("ALTER TABLE t CHANGE pw secret VARCHAR(9)").await;
    eventually("the new schema acts", Duration::from_secs(9), || async {
        (caller.get("t").await.status == 403).then_some(())
    })
    .await;
    caller.get("t").await.refused(ErrorCode::RoleForbids);
    caller.put("t/1", &json!({"secret": "mine"})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(db.value("SELECT secret FROM t").await, json!("x"));
}

async fn a_rule_on_a_field_that_updates_change_by_themselves_denies_updates(host: Host) {
    let statements = [
        "CREATE TABLE t (id INT PRIMARY KEY, x INT, touched TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP)",
        "INSERT INTO t VALUES (1, 1, NULL)",
    ];
    let db = TestDb::new(host, &statements).await;
    let caller = Caller::new(&db, [("t", json!({"read": true, "update": {"rows": {"touched": null}}}))], json!({}));
    caller.put("t/1", &json!({"x": 5})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(db.value("SELECT x FROM t").await, json!(1));
    assert_eq!(caller.put("t/1", &json!({"x": 5, "touched": null})).await.payload(), json!(1));
}

async fn claims_that_mariadb_would_take_for_another_find_nothing(host: Host) {
    let db = TestDb::new(host, TODOS).await;
    let by_number = create_role(&role_of(&db, [("todos", json!({"read": {"rows": is_claim("number", "sub")}}))]));
    let by_owner = create_role(&role_of(&db, [("todos", own())]));
    // A rule may write a field with its table's name.
    let dotted = is_claim("todos.number", "sub");
    let by_full_name = create_role(&role_of(&db, [("todos", json!({"read": {"rows": dotted}}))]));
    for (role, sub, found) in [
        (&by_full_name, "\"7\"", vec![1]),
        (&by_full_name, "\"7e0\"", vec![]),
        (&by_number, "\"7\"", vec![1]),
        (&by_number, "7", vec![1]),
        (&by_number, "\"7e0\"", vec![]),
        (&by_number, "\" 7\"", vec![]),
        (&by_number, "\"+7\"", vec![]),
        (&by_number, "\"07\"", vec![]),
        (&by_owner, "\"bob\"", vec![1]),
        (&by_owner, "\"bob \"", vec![]),
        (&by_owner, "\"BOB\"", vec![]),
    ] {
        let claim: Value = serde_json::from_str(sub).unwrap();
        let caller = Caller::with_role(&db, role, json!({"sub": claim}));
        assert_eq!(caller.ids("todos").await, found, "{sub}");
    }
}

async fn callers_without_a_subject_share_no_idempotency_key(host: Host) {
    let db = TestDb::new(host, TODOS).await;
    let role = create_role(&role_of(&db, [("todos", json!({"read": true, "insert": true}))]));
    let [one, other] = [(); 2].map(|()| Caller::with_role(&db, &role, json!({})));
    let insert = |caller: &Caller<'_>| {
        let call = caller.call(Method::POST, "todos").header("Idempotency-Key", "order-1");
        call.json(&json!({"title": "paid", "owner": "ann"})).send()
    };
    let first = insert(&one).await.payload();
    assert_eq!(insert(&one).await.payload(), first);
    assert_ne!(insert(&other).await.payload(), first);
}
