//! `onConflict` under a role: a conflict must neither read nor change a record that the role could not read or change.

use super::{Caller, is_claim};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_conflict_changes_no_record_outside_the_rule,
        a_conflict_moves_no_record_out_of_the_rule,
        an_ignored_conflict_is_null,
        rows_of_one_upsert_are_judged_one_by_one,
        an_upsert_needs_both_rights,
        a_failed_upsert_leaves_no_verdict_for_the_next,
    ],
}

const T: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, code VARCHAR(10) UNIQUE, name VARCHAR(20), \
     CONSTRAINT few CHECK (name <> 'many'))",
    "INSERT INTO t (owner, code, name) VALUES (1, 'a', 'A'), (2, 'b', 'B'), (1, 'c', 'C')",
];

fn own() -> Value {
    let rows = json!({"rows": is_claim("owner", "sub")});
    json!({"read": rows, "insert": rows, "update": rows})
}

async fn state(db: &TestDb) -> Value {
    db.value("SELECT GROUP_CONCAT(id, owner, code, name ORDER BY id SEPARATOR ' ') FROM t").await
}

const BEFORE: &str = "11aA 22bB 31cC";

async fn a_conflict_changes_no_record_outside_the_rule(host: Host) {
    let db = TestDb::new(host, T).await;
    let caller = Caller::new(&db, [("t", own())], json!({"sub": 1}));
    for body in [
        json!({"id": 2, "owner": 1, "name": "x"}),
        json!({"id": 2, "name": "x"}),
        json!({"id": 2}),
        json!({"code": "b", "owner": 1, "name": "x"}),
        json!({"code": "b", "owner": 2, "name": "x"}),
        json!({"code": "b"}),
        json!({"batchData": [{"owner": 1, "code": "n", "name": "N"}, {"owner": 1, "code": "b", "name": "x"}]}),
        json!({"batchData": [{"owner": 1, "code": "b", "name": "x"}, {"owner": 1, "code": "n", "name": "N"}]}),
    ] {
        caller.post("t?onConflict=update", &body).await.refused(ErrorCode::RoleForbids);
        assert_eq!(state(&db).await, BEFORE, "{body}");
    }
    // A refusal doesn't reveal the record's values either.
    let refusals = async |body: Value| {
        let mut error = caller.post("t?onConflict=update", &body).await.refused(ErrorCode::RoleForbids);
        error["requestId"].take();
        error
    };
    let new = refusals(json!({"code": "zz", "owner": 2})).await;
    assert_eq!(refusals(json!({"code": "b", "owner": 2})).await, new);
    assert_eq!(caller.post("t?onConflict=update", &json!({"id": 1, "owner": 1, "name": "x"})).await.payload(), 1);
    assert_eq!(caller.post("t?onConflict=update", &json!({"code": "c", "name": "y"})).await.payload(), 3);
    assert_eq!(state(&db).await, "11ax 22bB 31cy");
}

async fn a_conflict_moves_no_record_out_of_the_rule(host: Host) {
    let db = TestDb::new(host, T).await;
    let caller = Caller::new(&db, [("t", own())], json!({"sub": 1}));
    for body in [
        json!({"id": 1, "owner": 2}),
        json!({"code": "a", "owner": null}),
        json!({"id": 1, "owner": 2, "name": "x"}),
        json!({"id": 9, "owner": 2, "code": "new"}),
        json!({"code": "new"}),
    ] {
        caller.post("t?onConflict=update", &body).await.refused(ErrorCode::RoleForbids);
        assert_eq!(state(&db).await, BEFORE, "{body}");
    }
    let mut inserted = json!({"owner": 1, "code": "new", "name": "N"});
    let id = caller.post("t?onConflict=update", &inserted).await.payload();
    inserted["id"] = id.clone();
    assert_eq!(caller.get(&format!("t/{id}")).await.payload(), inserted);
}

async fn an_ignored_conflict_is_null(host: Host) {
    let db = TestDb::new(host, T).await;
    let caller = Caller::new(&db, [("t", own())], json!({"sub": 1}));
    for body in [
        json!({"id": 2, "owner": 1, "name": "x"}),
        json!({"code": "b", "owner": 1, "name": "x"}),
        json!({"code": "a", "owner": 1, "name": "x"}),
        json!({"id": 1, "owner": 1}),
    ] {
        assert_eq!(caller.post("t?onConflict=ignore", &body).await.payload(), Value::Null, "{body}");
    }
    assert_eq!(state(&db).await, BEFORE);
    let batch = json!({"batchData": [
        {"code": "b", "owner": 1}, {"code": "n", "owner": 1, "name": "N"}, {"code": "a", "owner": 1},
    ]});
    let ids = caller.post("t?onConflict=ignore", &batch).await.payload();
    assert_eq!((&ids[0], &ids[2]), (&Value::Null, &Value::Null));
    assert_eq!(caller.get(&format!("t/{}", ids[1])).await.payload()["code"], "n");
    for body in [
        json!({"code": "m", "owner": 2}),
        json!({"code": "m"}),
        json!({"batchData": [{"code": "b", "owner": 1}, {"code": "m", "owner": 2}]}),
        json!({"batchData": [{"code": "m", "owner": 2}, {"code": "b", "owner": 1}]}),
    ] {
        caller.post("t?onConflict=ignore", &body).await.refused(ErrorCode::RoleForbids);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 4);
}

async fn rows_of_one_upsert_are_judged_one_by_one(host: Host) {
    let db = TestDb::new(host, T).await;
    // With this rule, any owner's record may be updated, but only own records inserted.
    let rule = json!({"read": true, "insert": {"rows": {"owner": 1}}, "update": true});
    let inserts = Caller::new(&db, [("t", rule)], json!({}));
    // With this rule, only own records may be updated, but any owner's inserted.
    let rule = json!({"read": true, "insert": true, "update": {"rows": {"owner": 1}}});
    let updates = Caller::new(&db, [("t", rule)], json!({}));
    for (caller, rows, code) in [
        (&inserts, json!([{"code": "b", "owner": 2, "name": "x"}]), "ok"),
        (
            &inserts,
            json!([{"code": "b", "owner": 2, "name": "x"}, {"code": "n", "owner": 2, "name": "x"}]),
            "role_forbids",
        ),
        (&inserts, json!([{"code": "n", "owner": 1, "name": "x"}, {"code": "b", "owner": 2, "name": "x"}]), "ok"),
        (&inserts, json!([{"code": "m", "owner": 2, "name": "x"}]), "role_forbids"),
        (&updates, json!([{"code": "o", "owner": 2, "name": "x"}]), "ok"),
        (&updates, json!([{"code": "a", "owner": 1, "name": "x"}, {"code": "p", "owner": 2, "name": "x"}]), "ok"),
        (
            &updates,
            json!([{"code": "q", "owner": 2, "name": "x"}, {"code": "b", "owner": 2, "name": "y"}]),
            "role_forbids",
        ),
        (&updates, json!([{"code": "a", "owner": 2, "name": "y"}]), "role_forbids"),
        (
            &updates,
            json!([{"code": "a", "owner": 1, "name": "y"}, {"code": "b", "owner": 1, "name": "y"}]),
            "role_forbids",
        ),
        // The second row conflicts with the first.
        (&updates, json!([{"code": "r", "owner": 1, "name": "x"}, {"code": "r", "owner": 1, "name": "z"}]), "ok"),
        (
            &updates,
            json!([{"code": "s", "owner": 2, "name": "x"}, {"code": "s", "owner": 2, "name": "z"}]),
            "role_forbids",
        ),
    ] {
        let before = state(&db).await;
        let answer = caller.post("t?onConflict=update", &json!({"batchData": rows})).await;
        assert_eq!(answer.code(), code, "{answer}");
        if code == "ok" {
            assert_ne!(state(&db).await, before, "{rows}");
        } else {
            assert_eq!(state(&db).await, before, "{rows}");
        }
    }
}

async fn an_upsert_needs_both_rights(host: Host) {
    let db = TestDb::new(host, T).await;
    let named = json!({"fields": ["code", "name"]});
    for (rule, option, body, code) in [
        (json!({"read": true, "insert": true}), "update", json!({"code": "a", "name": "x"}), "role_forbids"),
        (json!({"read": true, "update": true}), "update", json!({"code": "a", "name": "x"}), "role_forbids"),
        (json!({"read": true, "update": true}), "ignore", json!({"code": "a", "name": "x"}), "role_forbids"),
        (json!({"read": true, "insert": true}), "ignore", json!({"code": "a", "name": "x"}), "ok"),
        (
            json!({"read": true, "insert": true, "update": named}),
            "update",
            json!({"code": "a", "owner": 5}),
            "role_forbids",
        ),
        (
            json!({"read": true, "insert": true, "update": {"fields": ["owner"]}}),
            "update",
            json!({"code": "a", "name": "x"}),
            "role_forbids",
        ),
        (
            json!({"read": true, "insert": true, "update": {"fields": ["name"]}}),
            "update",
            json!({"id": 1, "name": "A"}),
            "ok",
        ),
    ] {
        let caller = Caller::new(&db, [("t", rule.clone())], json!({}));
        let answer = caller.post(&format!("t?onConflict={option}"), &body).await;
        assert_eq!(answer.code(), code, "{rule}: {answer}");
        assert_eq!(state(&db).await, BEFORE, "{rule}");
    }
}

/// The result of the rule's check of a conflict is a session variable until the row ends; it must not affect the next
/// insert.
async fn a_failed_upsert_leaves_no_verdict_for_the_next(host: Host) {
    let db = TestDb::new(host, T).await;
    let rule = json!({"read": true, "insert": {"rows": {"owner": 1}}, "update": true});
    let caller = Caller::new(&db, [("t", rule)], json!({}));
    for at in 0..20 {
        // The rule for updates allows the conflict, but then a CHECK constraint refuses the record.
        let many = json!({"code": "b", "owner": 2, "name": "many"});
        assert_eq!(caller.post("t?onConflict=update", &many).await.code(), "invalid_value");
        let foreign = json!({"code": format!("n{at}"), "owner": 2, "name": "x"});
        caller.post("t?onConflict=update", &foreign).await.refused(ErrorCode::RoleForbids);
    }
    assert_eq!(state(&db).await, BEFORE);
}
