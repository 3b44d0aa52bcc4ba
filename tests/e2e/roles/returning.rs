//! Roles and writes: which written records are returned, and which entity tags allow a write.

use super::{Caller, create_role, is_claim, role_of};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        only_fields_that_may_be_read_come_back,
        only_records_that_may_be_read_come_back,
        who_may_not_read_gets_nothing_back,
        a_tag_is_that_of_the_record_as_the_role_sees_it,
        rules_hold_for_dry_runs_and_sums,
        errors_name_no_field_that_may_not_be_read,
        no_write_returns_more_than_max_rows,
        an_error_names_a_field_that_may_be_written,
    ],
}

const T: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, n INT, secret VARCHAR(20) DEFAULT 's3cret')",
    "INSERT INTO t (owner, n) VALUES (7, 1), (7, 2), (8, 3)",
];

fn caller(db: &TestDb) -> Caller<'_> {
    let rule = json!({
        "read": {"fields": {"omit": ["secret"]}, "rows": is_claim("owner", "sub")},
        "insert": {"fields": ["owner", "n"]},
        "update": {"fields": ["owner", "n"]},
        "delete": true,
    });
    Caller::new(db, [("t", rule)], json!({"sub": "7"}))
}

async fn only_fields_that_may_be_read_come_back(host: Host) {
    let db = TestDb::new(host, T).await;
    let caller = caller(&db);
    let inserted = caller.post("t?returning=*", &json!({"owner": 7, "n": 4})).await.payload();
    assert_eq!(inserted, json!({"id": 4, "owner": 7, "n": 4}));
    let preferred = caller.call(Method::PUT, "t/4").json(&json!({"n": 5})).header("prefer", "return=representation");
    assert_eq!(preferred.send().await.payload(), json!({"id": 4, "owner": 7, "n": 5}));
    for answer in [
        caller.post("t?returning=secret", &json!({"owner": 7})).await,
        caller.put("t/4?returning=id,secret", &json!({"n": 6})).await,
        caller.delete("t/4?returning=secret").await,
        caller.delete("t?query[secret]=x").await,
    ] {
        answer.refused(ErrorCode::UnknownField);
    }
    assert_eq!(caller.delete("t/4?returning=*").await.payload(), json!({"id": 4, "owner": 7, "n": 5}));
}

async fn only_records_that_may_be_read_come_back(host: Host) {
    let db = TestDb::new(host, T).await;
    let caller = caller(&db);
    assert_eq!(caller.post("t?returning=*", &json!({"owner": 8, "n": 4})).await.payload(), Value::Null);
    let rows = json!({"batchData": [{"owner": 8, "n": 5}, {"owner": 7, "n": 5}]});
    assert_eq!(caller.post("t?returning=id", &rows).await.payload(), json!([null, {"id": 6}]));
    let many = |n: u32| json!({"query": {"id": {"value": 3, "equality": "<="}}, "data": {"n": n}});
    assert_eq!(caller.put("t", &many(9)).await.payload(), 3);
    assert_eq!(
        caller.put("t?returning=id,n", &many(10)).await.payload(),
        json!([{"id": 1, "n": 10}, {"id": 2, "n": 10}])
    );
    // After the update the record belongs to another owner, so it is not returned.
    assert_eq!(caller.put("t/1?returning=*", &json!({"owner": 8})).await.payload(), Value::Null);
    assert_eq!(db.value("SELECT owner FROM t WHERE id = 1").await, 8);
    assert_eq!(caller.delete("t/1?returning=*").await.payload(), Value::Null);
    let all = json!({"query": {"id": {"value": 0, "equality": ">"}}});
    assert_eq!(caller.delete_where("t?returning=id", &all).await.payload(), json!([{"id": 2}, {"id": 6}]));
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn who_may_not_read_gets_nothing_back(host: Host) {
    let db = TestDb::new(host, T).await;
    let writer = Caller::new(&db, [("t", json!({"insert": true, "update": true, "delete": true}))], json!({}));
    for answer in [
        writer.post("t?returning=*", &json!({"n": 4})).await,
        writer.put("t/1?returning=id", &json!({"n": 4})).await,
        writer.delete("t/1?returning=*").await,
    ] {
        answer.refused(ErrorCode::RoleForbids);
    }
    let tagged = writer.call(Method::PUT, "t/1").json(&json!({"n": 4})).header("if-match", "*").send().await;
    tagged.refused(ErrorCode::RoleForbids);
    assert_eq!(db.value("SELECT SUM(n) FROM t").await, "6");
    writer.put("t/1", &json!({"n": {"$add": 1}})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(writer.put("t/1", &json!({"n": 5})).await.payload(), 1);
}

async fn a_tag_is_that_of_the_record_as_the_role_sees_it(host: Host) {
    let db = TestDb::new(host, T).await;
    let caller = caller(&db);
    let seen = caller.get("t/1").await.header("etag").expect("a tag").to_owned();
    let whole = db.get("t/1").await.header("etag").expect("a tag").to_owned();
    assert_ne!(seen, whole);
    let put =
        |rest: &str, tag: &str| caller.call(Method::PUT, rest).json(&json!({"n": 9})).header("if-match", tag).send();
    put("t/1", &whole).await.refused(ErrorCode::PreconditionFailed);
    // A change of a field that the role can't see does not change the record's entity tag for the role.
    db.exec("UPDATE t SET secret = 'other' WHERE id = 1").await;
    assert_eq!(put("t/1", &seen).await.payload(), 1);
    // For this caller, another owner's record does not exist.
    put("t/3", "*").await.refused(ErrorCode::PreconditionFailed);
    assert_eq!(db.value("SELECT n FROM t WHERE id = 3").await, 3);
}

async fn rules_hold_for_dry_runs_and_sums(host: Host) {
    let db = TestDb::new(host, T).await;
    let own = is_claim("owner", "sub");
    let rule = json!({"read": true, "update": {"fields": ["n", "owner"], "rows": own}, "delete": {"rows": own}});
    let caller = Caller::new(&db, [("t", rule)], json!({"sub": "7"}));
    let all = json!({"id": {"value": 0, "equality": ">"}});
    assert_eq!(caller.delete_where("t?dryRun=true", &json!({"query": all})).await.payload(), 2);
    let add = json!({"query": all, "data": {"n": {"$add": 10}}});
    assert_eq!(caller.put("t?maxAffected=2&returning=n", &add).await.payload(), json!([{"n": 11}, {"n": 12}]));
    caller.put("t?maxAffected=1", &add).await.refused(ErrorCode::TooManyAffected);
    let away = json!({"owner": {"$add": 1}});
    caller.put("t/1?dryRun=true", &away).await.refused(ErrorCode::RoleForbids);
    caller.put("t/1?returning=*", &away).await.refused(ErrorCode::RoleForbids);
    assert_eq!(caller.put("t/3?returning=*", &json!({"n": 1})).await.payload(), Value::Null);
    assert_eq!(db.value("SELECT SUM(n) FROM t").await, "26");
}

async fn an_error_names_a_field_that_may_be_written(host: Host) {
    let fields = "id INT PRIMARY KEY AUTO_INCREMENT, code VARCHAR(3) NOT NULL, n TINYINT";
    let tables = [
        &format!("CREATE TABLE t ({fields}, secret INT)"),
        &format!("CREATE TABLE secretive ({fields}, secret INT NOT NULL)"),
        &format!("CREATE TABLE triggered ({fields}, secret INT)"),
        "CREATE TRIGGER multiply BEFORE INSERT ON triggered FOR EACH ROW SET NEW.n = NEW.n * 100",
        "INSERT INTO t (code) VALUES ('a')",
    ];
    let db = TestDb::new(host, &tables).await;
    let fields = json!({"fields": ["code", "n"]});
    let rights = json!({"insert": fields, "update": fields, "read": {"fields": ["id"]}});
    let caller = Caller::new(&db, ["t", "secretive", "triggered"].map(|table| (table, rights.clone())), json!({}));
    for (table, body, field) in [
        ("t", json!({"code": null}), Some("code")),
        ("t", json!({"code": "long"}), Some("code")),
        ("t", json!({"code": "b", "n": 500}), Some("n")),
        ("t", json!({"n": 1}), Some("code")),
        ("t", json!({"batchData": [{"code": "b"}, {"code": "long"}]}), Some("code")),
        // The fault is that `secret` has no value.
        ("secretive", json!({"code": "b"}), None),
        // A trigger may signal the error with a text of its own.
        ("triggered", json!({"code": "b", "n": 2}), Some("n")),
    ] {
        let mut full = db.post(table, &body).await.refused(ErrorCode::InvalidValue);
        let operation = json!({"method": "POST", "path": db.path(table), "body": body});
        let alone = caller.post(table, &body).await.refused(ErrorCode::InvalidValue);
        let batch = caller.batch(&[operation]).await.refused(ErrorCode::InvalidValue);
        assert_eq!(alone["details"].get("field"), field.map(|name| json!(name)).as_ref(), "{alone}");
        if field.is_none() || table == "triggered" {
            full["message"] = json!("The database refused this.");
        }
        assert_eq!(alone["message"], full["message"], "{alone}");
        assert_eq!(alone["details"]["row"], full["details"]["row"], "{alone}");
        assert_eq!(batch["details"].get("field"), alone["details"].get("field"), "{batch}");
    }
    let error = caller.put("t/1", &json!({"n": 500})).await.refused(ErrorCode::InvalidValue);
    assert_eq!(error["details"]["field"], "n", "{error}");
}

async fn errors_name_no_field_that_may_not_be_read(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, n TINYINT, secret VARCHAR(20) NOT NULL DEFAULT 'x', \
             UNIQUE KEY one_secret (secret), CONSTRAINT secret_rule CHECK (secret <> 'y'))",
            "INSERT INTO t (owner, n, secret) VALUES (7, 1, 'x')",
        ],
    )
    .await;
    let caller = caller(&db);
    let error = caller.post("t", &json!({"owner": 7})).await.refused(ErrorCode::DuplicateKey);
    assert_eq!(error["details"], json!({"errno": 1062, "sqlState": "23000"}));
    let rows = json!({"batchData": [{"owner": 7}, {"owner": 7}]});
    let error = caller.post("t", &rows).await.refused(ErrorCode::DuplicateKey);
    assert_eq!(error["details"], json!({"errno": 1062, "sqlState": "23000", "row": 0}));
    let answer = caller.post("t", &json!({"n": "x", "secret": "y", "zq": 1})).await;
    assert_eq!(answer.json()["errors"].as_array().map(Vec::len), Some(3), "{answer}");
    let fields = |at: usize| answer.json()["errors"][at].clone();
    assert_eq!(
        (fields(0)["code"].clone(), fields(1)["code"].clone()),
        (json!("unknown_field"), json!("unknown_field"))
    );
}

async fn no_write_returns_more_than_max_rows(host: Host) {
    let db = TestDb::new(host, T).await;
    let mut role = role_of(&db, [("t", json!({"read": true, "insert": true, "update": true, "delete": true}))]);
    role["maxRows"] = json!(2);
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    let all = json!({"id": {"value": 0, "equality": ">"}});
    let rows = |count: usize| json!({"batchData": vec![json!({"n": 4}); count]});
    let before = db.exec("SELECT * FROM t").await;
    for (method, rest, body) in [
        (Method::POST, "t?returning=*", rows(3)),
        (Method::PUT, "t?returning=id", json!({"query": all, "data": {"n": 9}})),
        (Method::PUT, "t?returning=id&maxAffected=3", json!({"query": all, "data": {"n": 9}})),
        (Method::DELETE, "t?returning=*", json!({"query": all})),
    ] {
        for is_batch in [false, true] {
            let answer = match is_batch {
                false => caller.call(method.clone(), rest).json(&body).send().await,
                true => {
                    let path = format!("{}/{rest}", db.name);
                    caller.batch(&[json!({"method": method.as_str(), "path": path, "body": body})]).await
                }
            };
            let error = answer.refused(ErrorCode::TooManyAffected);
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .contains("the 2 that the role's maxRows or the setting max_rows allows"),
                "{answer}"
            );
            assert_eq!(db.exec("SELECT * FROM t").await, before, "{answer}");
        }
    }
    // The smaller maximum is named; what returns no list has none.
    let body = json!({"query": all, "data": {"n": 9}});
    let answer = caller.put("t?returning=id&maxAffected=1", &body).await;
    assert!(
        answer.refused(ErrorCode::TooManyAffected)["message"].as_str().unwrap().contains("maxAffected"),
        "{answer}"
    );
    assert_eq!(caller.put("t?dryRun=true", &body).await.payload(), json!(3));
    assert_eq!(caller.put("t", &body).await.payload(), json!(3));
    assert_eq!(caller.put("t/1?returning=n", &json!({"n": 8})).await.payload(), json!({"n": 8}));
    assert_eq!(caller.post("t?returning=n", &rows(2)).await.payload(), json!([{"n": 4}, {"n": 4}]));
    assert_eq!(caller.post("t", &rows(3)).await.payload().as_array().map(Vec::len), Some(3));
}
