//! `Idempotency-Key` under roles: the same key of two callers counts as two different keys.

use super::{Caller, create_role, role_of};
use crate::host::{Answer, Host};
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_caller_gets_no_answer_of_another_caller,
        a_repeat_by_the_same_caller_gets_the_first_answer,
        a_repeat_after_the_right_is_gone_is_refused,
        a_repeat_shows_no_field_that_the_role_has_lost,
        a_refused_insert_leaves_the_key_free,
    ],
}

const T: &[&str] = &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, name VARCHAR(20))"];

fn rule() -> Value {
    let insert = json!({"fields": ["name"], "set": {"owner": {"claim": "sub"}}});
    json!({"read": {"rows": super::is_claim("owner", "sub")}, "insert": insert})
}

async fn insert(caller: &Caller<'_>, key: &str, body: &Value) -> Answer {
    caller.call(Method::POST, "t").header("idempotency-key", key).json(body).send().await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

async fn a_caller_gets_no_answer_of_another_caller(host: Host) {
    let db = TestDb::new(host, T).await;
    let [role, same] = [0; 2].map(|_| create_role(&role_of(&db, [("t", rule())])));
    let with = |role: &str, claims: Value| Caller::with_role(&db, role, claims);
    let callers = [
        (with(&role, json!({"sub": 1})), 1),
        (with(&role, json!({"sub": 2})), 2),
        (with(&role, json!({"sub": "1"})), 1),
        (with(&same, json!({"sub": 1})), 1),
    ];
    let (key, body) = (unique("key-of-roles-"), json!({"name": "a"}));
    for (at, (caller, owner)) in callers.iter().enumerate() {
        let answer = insert(caller, &key, &body).await;
        assert!(!is_replayed(&answer), "{answer}");
        let id = answer.payload();
        assert_eq!(id, at + 1, "each caller inserts its own record");
        assert_eq!(db.value(&format!("SELECT owner FROM t WHERE id = {id}")).await, *owner);
    }
    // The same key of the full key's caller is a different key too, with another body.
    let full = db.call(Method::POST, "t").header("idempotency-key", &key).json(&json!({"name": "full"})).send().await;
    assert_eq!((full.payload(), full.header("idempotency-replayed")), (json!(5), None));
    for (at, (caller, _)) in callers.iter().enumerate() {
        let again = insert(caller, &key, &body).await;
        assert!(is_replayed(&again), "{again}");
        assert_eq!(again.payload(), at + 1);
    }
    let again = db.call(Method::POST, "t").header("idempotency-key", &key).json(&json!({"name": "full"})).send().await;
    assert!(is_replayed(&again) && again.payload() == 5, "{again}");
}

async fn a_repeat_by_the_same_caller_gets_the_first_answer(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = create_role(&role_of(&db, [("t", rule())]));
    let claims = json!({"sub": 1, "team": "red"});
    let caller = Caller::with_role(&db, &role, claims);
    // A new API key for the same subject. The role's rules do not refer to the claims that differ.
    let renewed = Caller::with_role(&db, &role, json!({"sub": 1, "team": "blue", "plan": "pro"}));
    let (key, body) = (unique("key-of-roles-"), json!({"batchData": [{"name": "a"}, {}]}));
    let first = insert(&caller, &key, &body).await;
    assert_eq!(first.payload(), json!([1, 2]));
    for again in [insert(&caller, &key, &body).await, insert(&renewed, &format!("\"{key}\""), &body).await] {
        assert!(is_replayed(&again), "{again}");
        assert_eq!(again.body, first.body);
    }
    insert(&caller, &key, &json!({"name": "other"})).await.refused(ErrorCode::IdempotencyMismatch);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
}

async fn a_repeat_after_the_right_is_gone_is_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = create_role(&role_of(&db, [("t", rule())]));
    let caller = Caller::with_role(&db, &role, json!({"sub": 1}));
    let (key, body) = (unique("key-of-roles-"), json!({"name": "a"}));
    insert(&caller, &key, &body).await.payload();
    super::set_role_in(crate::service::shared(), "default", &role, &role_of(&db, [("t", json!({"read": true}))]));
    let refused = crate::case::eventually("the right ends", std::time::Duration::from_secs(9), || async {
        let answer = insert(&caller, &key, &body).await;
        (answer.status != 200).then_some(answer)
    });
    refused.await.refused(ErrorCode::RoleForbids);
}

async fn a_repeat_shows_no_field_that_the_role_has_lost(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = create_role(&role_of(&db, [("t", json!({"read": true, "insert": true}))]));
    let caller = Caller::with_role(&db, &role, json!({"sub": 1}));
    let (key, body) = (unique("key-of-roles-"), json!({"owner": 7, "name": "a"}));
    let insert = async || {
        let call = caller.call(Method::POST, "t?returning=*").header("idempotency-key", &key);
        call.json(&body).send().await
    };
    assert_eq!(insert().await.payload(), json!({"id": 1, "owner": 7, "name": "a"}));
    let again = insert().await;
    assert!(is_replayed(&again), "{again}");
    assert_eq!(again.payload(), json!({"id": 1, "owner": 7, "name": "a"}));
    let less = json!({"read": {"fields": ["id"]}, "insert": true});
    super::set_role_in(crate::service::shared(), "default", &role, &role_of(&db, [("t", less)]));
    let refused = crate::case::eventually("the fields are gone", std::time::Duration::from_secs(9), || async {
        let answer = insert().await;
        (answer.status != 200).then_some(answer)
    });
    refused.await.refused(ErrorCode::IdempotencyMismatch);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

async fn a_refused_insert_leaves_the_key_free(host: Host) {
    let db = TestDb::new(host, T).await;
    let rule = json!({"read": true, "insert": {"rows": {"owner": 1}}});
    let caller = Caller::new(&db, [("t", rule)], json!({}));
    let key = unique("key-of-roles-");
    insert(&caller, &key, &json!({"owner": 2})).await.refused(ErrorCode::RoleForbids);
    let answer = insert(&caller, &key, &json!({"owner": 1})).await;
    assert!(!is_replayed(&answer), "{answer}");
    let id = answer.payload();
    let again = insert(&caller, &key, &json!({"owner": 1})).await;
    assert!(is_replayed(&again) && again.payload() == id, "{again}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}
