//! The caller sees what a list would show it, and nothing else.

use super::events::Events;
use super::{Copy, call};
use crate::host::Host;
use crate::roles::{Caller, create_role, role_of, set_role_in};
use crate::service::shared;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_role_sees_its_rows_and_fields_before_and_after,
        a_role_that_changes_ends_its_tokens,
        a_snapshot_ends_at_the_maximum_of_the_role,
        a_role_follows_only_what_it_reads,
        nobody_follows_what_the_project_does_not_own,
        a_revoked_key_ends_a_wait,
    ],
}

const NOTES: &str = "CREATE TABLE notes (id INT PRIMARY KEY, owner VARCHAR(20), secret VARCHAR(20), title VARCHAR(20))";

fn own_notes() -> Value {
    json!({"read": {"fields": ["id", "owner", "title"], "rows": {"owner": {"value": {"claim": "sub"}}}}})
}

async fn a_role_sees_its_rows_and_fields_before_and_after(host: Host) {
    let db = TestDb::new(host, &[NOTES]).await;
    db.exec("INSERT INTO notes VALUES (1, 'ann', 'SECRET-1', 'a'), (2, 'bob', 'SECRET-2', 'b')").await;
    let ann = Caller::new(&db, [("notes", own_notes())], json!({"sub": "ann"}));
    let mut copy = Copy::with_key(&db, "notes", &[], Some(ann.key.clone())).await;
    assert_eq!(copy.records.len(), 1);
    for statement in [
        "UPDATE notes SET secret = 'SECRET-3'",
        "UPDATE notes SET title = 'SECRET-4' WHERE id = 2",
        "INSERT INTO notes VALUES (3, 'bob', 'SECRET-5', 'SECRET-6')",
        "UPDATE notes SET owner = 'ann', title = 'c' WHERE id = 3",
        "UPDATE notes SET owner = 'SECRET-7', title = 'SECRET-8' WHERE id = 1",
        "DELETE FROM notes WHERE id IN (1, 2)",
    ] {
        db.exec(statement).await;
    }
    let changes = copy.catch_up(10).await;
    assert!(!json!(changes).to_string().contains("SECRET"), "{changes:?}");
    let types: Vec<_> = changes.iter().map(|change| json!([change["type"], change["key"], change["left"]])).collect();
    assert_eq!(types, [json!(["insert", 3, null]), json!(["delete", 1, true])]);
    copy.is_the_list().await;
    for (options, code) in
        [("query={\"secret\":\"SECRET-5\"}", ErrorCode::UnknownField), ("selectFields=secret", ErrorCode::UnknownField)]
    {
        call(&db, "notes", options).key(&ann.key).send().await.refused(code);
    }
}

async fn a_role_that_changes_ends_its_tokens(host: Host) {
    let db = TestDb::new(host, &[NOTES]).await;
    let role = create_role(&role_of(&db, [("notes", own_notes())]));
    let ann = Caller::with_role(&db, &role, json!({"sub": "ann"}));
    let copy = Copy::with_key(&db, "notes", &[], Some(ann.key.clone())).await;
    let wider = json!({"read": {"fields": ["id", "owner", "title"]}});
    set_role_in(shared(), "default", &role, &role_of(&db, [("notes", wider)]));
    let reason = crate::case::eventually("the role's change", std::time::Duration::from_secs(20), || async {
        let answer = copy.ask(&format!("since={}", copy.token)).await;
        (answer.status != 200).then(|| answer.refused(ErrorCode::ResyncRequired)["details"]["reason"].clone())
    });
    assert_eq!(reason.await, "role_changed");
}

async fn a_snapshot_ends_at_the_maximum_of_the_role(host: Host) {
    let db = TestDb::new(host, &[NOTES]).await;
    db.exec("INSERT INTO notes SELECT seq, 'ann', '', seq FROM seq_1_to_5").await;
    let mut role = role_of(&db, [("notes", json!({"read": {"fields": ["id", "title"]}}))]);
    role["maxRows"] = json!(3);
    let ann = Caller::with_role(&db, &create_role(&role), json!({}));
    for (options, ids, is_limited) in [
        ("", &[1, 2, 3][..], true),
        ("&query={\"id\":{\"gt\":2}}", &[3, 4, 5], false),
        ("&query={\"id\":{\"gt\":1}}", &[2, 3, 4], true),
    ] {
        let snapshot = || call(&db, "notes", &format!("snapshot=true{options}")).key(&ann.key);
        let text = snapshot().send().await.text();
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let last = lines.pop().expect("a last line");
        assert_eq!(lines.iter().map(|line| line["key"].clone()).collect::<Vec<_>>(), ids);
        assert_eq!((&last["upToDate"], last["limited"] == true), (&json!(true), is_limited), "{last}");
        let mut events = Events::open(snapshot(), None).await;
        for id in ids {
            assert_eq!(events.next().await.expect("an event").data["key"], *id);
        }
        let last = events.next().await.expect("an event");
        assert_eq!((&*last.name, last.data["limited"] == true), ("transaction", is_limited), "{last:?}");
    }
    // Each subscription has as many.
    let subscription = json!({"database": db.name, "table": "notes"});
    let body = json!({"subscriptions": [subscription, subscription], "snapshot": true});
    let text = super::post(host, &body).key(&ann.key).send().await.text();
    assert_eq!(text.lines().count(), 7);
    let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["limited"], true, "{text}");
    let document = host.get(&format!("/api/v1/openapi.json?database={}", db.name)).send().await.json();
    for (path, method) in [("/changes/{database}/{table}", "get"), ("/changes", "post")] {
        let answer = &document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"];
        for member in last.as_object().expect("an object").keys() {
            assert!(answer["properties"].get(member).is_some(), "{path} does not describe {member}: {answer}");
        }
    }
}

async fn a_role_follows_only_what_it_reads(host: Host) {
    let db = TestDb::new(host, &[NOTES, "CREATE TABLE other (id INT PRIMARY KEY)"]).await;
    let keyless = json!({"read": {"fields": ["title"]}});
    let ann = Caller::new(&db, [("notes", keyless)], json!({}));
    let refused = call(&db, "notes", "").key(&ann.key).send().await.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(refused["message"], "The table \"notes\" has no unique key that the caller may read.");
    call(&db, "other", "").key(&ann.key).send().await.refused(ErrorCode::TableNotFound);
    let writer = Caller::new(&db, [("notes", json!({"insert": {"fields": ["id"]}}))], json!({}));
    call(&db, "notes", "").key(&writer.key).send().await.refused(ErrorCode::RoleForbids);
}

async fn nobody_follows_what_the_project_does_not_own(host: Host) {
    let project = crate::test_db::unique("follower");
    shared().create_project(&project);
    let stranger = shared().create_key(&project, "full", &[]).token;
    let db = TestDb::new(host, &[NOTES]).await;
    let own = shared().full_key.clone();
    // Makes the table selkie_receipts.
    let insert = db.call(reqwest::Method::POST, "notes").json(&json!({"id": 1}));
    insert.header("idempotency-key", "\"receipt\"").send().await.payload();
    assert_eq!(db.value("SELECT COUNT(*) FROM selkie_receipts").await, 1);
    let of_others = [
        (&own, "selkie", "keys"),
        (&own, "mysql", "user"),
        (&own, "information_schema", "tables"),
        (&own, "performance_schema", "threads"),
        (&own, &db.name, "selkie_receipts"),
        (&stranger, &*db.name, "notes"),
        (&stranger, "selkie", "keys"),
    ];
    for (key, database, table) in of_others {
        let list = host.get(&format!("/api/v1/crud/{database}/{table}")).key(key).send().await;
        let expected = list.json()["error"].clone();
        assert!(expected["code"].is_string(), "{list}");
        let subscription = json!({"database": database, "table": table});
        let body = json!({"subscriptions": [{"database": db.name, "table": "notes"}, subscription]});
        let body = if *key == own { body } else { json!({"subscriptions": [subscription]}) };
        let path = format!("/api/v1/changes/{database}/{table}");
        for call in [host.get(&path), host.get(&format!("{path}?snapshot=true")), super::post(host, &body)] {
            let answer = call.key(key).send().await;
            let found = answer.json()["error"].clone();
            for part in ["code", "message"] {
                assert_eq!(found[part], expected[part], "{database}.{table}: {answer}");
            }
        }
    }
}

async fn a_revoked_key_ends_a_wait(host: Host) {
    let db = TestDb::new(host, &[NOTES]).await;
    let key = shared().create_key("default", "read", &[]);
    let copy = Copy::with_key(&db, "notes", &[], Some(key.token.clone())).await;
    let waiting = tokio::spawn(copy.call(&format!("since={}&wait=25s", copy.token)).send());
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(!waiting.is_finished());
    shared().cli_ok(&["key", "revoke", &key.id]);
    let answer = waiting.await.expect("an answer");
    answer.refused(ErrorCode::RevokedKey);
}
