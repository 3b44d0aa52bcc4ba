//! Claims in rules: how claims are compared, what a missing claim means, and the fields that a role sets from claims.

use super::rows::{NOTES, own_notes};
use super::{Caller, create_role, role_of};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        a_field_that_the_role_sets_is_not_the_callers_choice,
        a_claim_is_compared_as_the_value_that_it_is,
        a_missing_claim_denies,
        a_claim_in_a_pattern_is_text_to_find,
        a_claim_is_stored_as_itself_or_not_at_all,
    ],
}

async fn a_field_that_the_role_sets_is_not_the_callers_choice(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let rule = json!({
        "read": true,
        "insert": {"fields": ["title", "words"], "set": {"owner": {"claim": "sub"}, "status": "new"}},
        "update": {"fields": {"omit": ["id"]}, "set": {"owner": {"claim": "sub"}}},
    });
    let role = create_role(&role_of(&db, [("notes", rule)]));
    let caller = Caller::with_role(&db, &role, json!({"sub": 7}));
    let id = caller.post("notes", &json!({"title": "n"})).await.payload();
    let record = caller.get(&format!("notes/{id}")).await.payload();
    assert_eq!((&record["owner"], &record["status"], &record["title"]), (&json!(7), &json!("new"), &json!("n")));
    let ids = caller.post("notes", &json!({"batchData": [{"title": "o"}, {"words": 1}, {}]})).await.payload();
    for id in ids.as_array().unwrap() {
        let record = caller.get(&format!("notes/{id}")).await.payload();
        assert_eq!((&record["owner"], &record["status"]), (&json!(7), &json!("new")));
    }
    for body in [json!({"owner": 7}), json!({"owner": 1, "title": "x"}), json!({"status": "open"})] {
        caller.post("notes", &body).await.refused(ErrorCode::RoleForbids);
    }
    caller.put("notes/1", &json!({"owner": 1})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(caller.put("notes/1", &json!({"title": "mine"})).await.payload(), 1);
    let record = caller.get("notes/1").await.payload();
    assert_eq!((&record["owner"], &record["title"]), (&json!(7), &json!("mine")));
    // Nothing is written without the claim, or if the field can't hold the claim's value.
    for claims in [json!({}), json!({"sub": null}), json!({"sub": {"a": 1}}), json!({"sub": "many"})] {
        let caller = Caller::with_role(&db, &role, claims.clone());
        caller.post("notes", &json!({"title": "x"})).await.refused(ErrorCode::RoleForbids);
        caller.put("notes/1", &json!({"title": "x"})).await.refused(ErrorCode::RoleForbids);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM notes WHERE title = 'x'").await, 0);
}

async fn a_claim_in_a_pattern_is_text_to_find(host: Host) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(20))";
    let insert = "INSERT INTO t VALUES (1, 'ann'), (2, '50%'), (3, 'a.n'), (4, 'a\\\\b')";
    let db = TestDb::new(host, &[create, insert]).await;
    for (equality, found) in [
        ("LIKE", [("ann", &[1][..]), ("50%", &[2]), ("a.n", &[3]), ("a\\b", &[4])]),
        ("REGEXP", [("nn", &[1]), ("0%", &[2]), ("a.n", &[3]), ("\\", &[4])]),
        ("CONTAINS", [("nn", &[1]), ("%", &[2]), (".", &[3]), ("\\", &[4])]),
        ("STARTS WITH", [("an", &[1]), ("50%", &[2]), ("a.", &[3]), ("a\\", &[4])]),
    ] {
        let rule = json!({"read": {"rows": {"word": {"value": {"claim": "c"}, "equality": equality}}}});
        let role = create_role(&role_of(&db, [("t", rule)]));
        for (claim, ids) in found {
            let caller = Caller::with_role(&db, &role, json!({"c": claim}));
            assert_eq!(caller.ids("t?order=id").await, ids, "{equality} {claim}");
        }
        for claim in ["", "a_n", "a|b", ".*"] {
            let caller = Caller::with_role(&db, &role, json!({"c": claim}));
            assert_eq!(caller.ids("t").await, [0_i64; 0], "{equality} {claim:?}");
        }
    }
}

async fn a_claim_is_compared_as_the_value_that_it_is(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, number INT, word VARCHAR(20), amount DECIMAL(10,2), day DATE, flag BOOL)",
            "INSERT INTO t VALUES (1, 7, '7', 7.00, '2026-01-07', 1), (2, 0, 'ann', 1.50, '2026-01-08', 0), \
             (3, NULL, NULL, NULL, NULL, NULL), (4, 8, '%', 8.10, '2026-01-09', 1), (5, 9, '\\' OR 1=1 -- x', 9, NULL, 0)",
        ],
    )
    .await;
    let fields = ["number", "word", "amount", "day", "flag"];
    let role_for = |equality: &str| {
        fields.map(|field| {
            let rule = json!({field: {"value": {"claim": "c"}, "equality": equality}});
            (field, create_role(&role_of(&db, [("t", json!({"read": {"rows": rule}}))])))
        })
    };
    let (equal, unequal) = (role_for("="), role_for("!="));
    let role = |roles: &[(&str, String)], field: &str| {
        roles.iter().find(|(name, _)| *name == field).map(|(_, role)| role.clone()).expect("a role")
    };
    for (field, claim, ids) in [
        ("number", json!(7), &[1][..]),
        ("number", json!("7"), &[1]),
        ("number", json!("7abc"), &[]),
        ("number", json!(""), &[]),
        ("number", json!("ann"), &[]),
        ("number", json!(7.5), &[]),
        ("number", json!([7, 8]), &[1, 4]),
        ("number", json!([]), &[]),
        ("word", json!("ann"), &[2]),
        ("word", json!(7), &[1]),
        // MariaDB takes a text as 0 if it is compared with a number, so a number must not match this text.
        ("word", json!(0), &[]),
        ("word", json!("%"), &[4]),
        ("word", json!("' OR 1=1 -- x"), &[5]),
        ("word", json!("x' OR 'a'='a"), &[]),
        ("word", json!(["ann", "%"]), &[2, 4]),
        ("word", json!(""), &[]),
        ("amount", json!("7"), &[1]),
        ("amount", json!(1.5), &[2]),
        ("day", json!("2026-01-07"), &[1]),
        ("day", json!("yesterday"), &[]),
        ("flag", json!(true), &[1, 4]),
        ("flag", json!(false), &[2, 5]),
    ] {
        let caller = Caller::with_role(&db, &role(&equal, field), json!({"c": claim}));
        assert_eq!(caller.ids("t").await, ids, "{field} = {claim}");
        for id in 1..=5 {
            let status = caller.get(&format!("t/{id}")).await.status.as_u16();
            let expected = if ids.contains(&id) { 200 } else { 404 };
            assert_eq!(status, expected, "{id} of {field} = {claim}");
        }
    }
    for (field, claim, ids) in [
        ("number", json!(7), &[2, 4, 5][..]),
        ("number", json!([7, 8]), &[2, 5]),
        ("number", json!("7abc"), &[]),
        ("number", json!({"value": 7}), &[]),
        ("number", json!(null), &[]),
        ("number", json!([7, null]), &[]),
    ] {
        let caller = Caller::with_role(&db, &role(&unequal, field), json!({"c": claim}));
        assert_eq!(caller.ids("t").await, ids, "{field} != {claim}");
    }
}

async fn a_missing_claim_denies(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let role = create_role(&role_of(&db, [("notes", own_notes())]));
    let before = db.exec("SELECT * FROM notes").await;
    for claims in
        [json!({}), json!({"sub": null}), json!({"sub": {"value": 1}}), json!({"sub": [null]}), json!({"Sub": 1})]
    {
        let caller = Caller::with_role(&db, &role, claims.clone());
        assert_eq!(caller.ids("notes").await, [0; 0], "{claims}");
        assert_eq!(caller.get("notes?count=true&limit=1").await.json()["count"], 0);
        caller.get("notes/1").await.refused(ErrorCode::RecordNotFound);
        assert_eq!(caller.put("notes/1", &json!({"title": "x"})).await.payload(), 0);
        assert_eq!(caller.delete("notes/1").await.payload(), 0);
        caller.post("notes", &json!({"owner": 1})).await.refused(ErrorCode::RoleForbids);
        caller.post("notes", &json!({"owner": null})).await.refused(ErrorCode::RoleForbids);
        let upsert = caller.post("notes?onConflict=update", &json!({"id": 1, "title": "x"})).await;
        upsert.refused(ErrorCode::RoleForbids);
    }
    assert_eq!(db.exec("SELECT * FROM notes").await, before);
}

async fn a_claim_is_stored_as_itself_or_not_at_all(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, number INT, amount DECIMAL(10,2), approx DOUBLE, \
           bits BIT(8), flag BOOL, day DATE, moment DATETIME, word VARCHAR(20), note INT)"],
    )
    .await;
    for (field, stored, refused) in [
        ("number", vec![json!(7), json!("7"), json!("-7")], vec![json!("7e0"), json!(" 7"), json!("07"), json!(true)]),
        ("amount", vec![json!("7.5"), json!(7.25)], vec![json!("7e0"), json!(7.004), json!("7.004"), json!(true)]),
        ("approx", vec![json!(7.5), json!("7")], vec![json!("7e0"), json!("7 "), json!(true)]),
        ("bits", vec![json!(7), json!(true)], vec![json!("+7"), json!("true")]),
        ("flag", vec![json!(true), json!(0)], vec![json!("true")]),
        ("day", vec![json!("2026-01-07")], vec![json!("2026-01-07 10:00:00")]),
        ("moment", vec![json!("2026-01-07T10:00:00Z")], vec![json!("2026-01-07 10:00:00.5")]),
        ("word", vec![json!(7), json!("7e0"), json!(" 7")], vec![json!(true)]),
    ] {
        let rule = json!({"read": true, "insert": {"set": {field: {"claim": "c"}}}, "update": {"set": {field: {"claim": "c"}}}});
        let role = create_role(&role_of(&db, [("t", rule)]));
        for claim in stored {
            let caller = Caller::with_role(&db, &role, json!({"c": claim}));
            assert!(caller.post("t", &json!({})).await.payload().is_i64(), "{field}: {claim}");
        }
        let before = db.exec("SELECT * FROM t").await;
        for claim in refused {
            let caller = Caller::with_role(&db, &role, json!({"c": claim}));
            caller.post("t", &json!({})).await.refused(ErrorCode::RoleForbids);
            caller.put("t/1", &json!({"note": 1})).await.refused(ErrorCode::RoleForbids);
        }
        assert_eq!(db.exec("SELECT * FROM t").await, before, "{field}");
    }
}
