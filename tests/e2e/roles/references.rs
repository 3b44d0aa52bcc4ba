//! A foreign key that a role writes must point to a record that the role may read.

use super::{Caller, is_claim, role_of, try_set};
use crate::host::Host;
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_new_record_must_refer_to_readable_records,
        an_update_must_not_refer_to_hidden_records,
        upserts_batches_and_imports_refer_to_readable_records,
        keys_that_the_role_sets_leaves_unchecked_or_hides_no_record_of_are_free,
        a_key_of_two_fields_is_checked_as_a_whole,
        a_reference_is_judged_by_a_rule_through_relations,
    ],
    Origin: [an_unchecked_field_must_exist],
}

const TABLES: &[&str] = &[
    "CREATE TABLE folders (id INT PRIMARY KEY, owner INT, parent_id INT, FOREIGN KEY (parent_id) REFERENCES folders (id))",
    "CREATE TABLE files (id INT PRIMARY KEY AUTO_INCREMENT, folder_id INT, copy_of INT, name VARCHAR(20), \
     FOREIGN KEY (folder_id) REFERENCES folders (id), FOREIGN KEY (copy_of) REFERENCES files (id))",
    "INSERT INTO folders VALUES (1, 7, NULL), (2, 8, NULL), (3, 7, 1)",
    "INSERT INTO files VALUES (1, 1, NULL, 'a'), (2, 2, NULL, 'b'), (3, NULL, NULL, 'c')",
];

fn rules() -> [(&'static str, Value); 2] {
    let write = json!({"fields": ["id", "folder_id", "name"]});
    [
        ("folders", json!({"read": {"rows": is_claim("owner", "sub")}, "insert": true, "update": true})),
        ("files", json!({"read": true, "insert": write, "update": write, "delete": true})),
    ]
}

async fn files(db: &TestDb) -> Value {
    db.value("SELECT GROUP_CONCAT(CONCAT(name, COALESCE(folder_id, '-')) ORDER BY id SEPARATOR ' ') FROM files").await
}

fn names(refusal: &Value, field: &str) {
    assert_eq!(refusal["details"]["field"], field, "{refusal}");
    assert!(refusal["message"].as_str().is_some_and(|message| message.contains(&format!("\"{field}\""))), "{refusal}");
}

async fn a_new_record_must_refer_to_readable_records(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = Caller::new(&db, rules(), json!({"sub": 7}));
    for (path, body) in [
        ("files", json!({"folder_id": 2, "name": "x"})),
        ("files?returning=*", json!({"folder_id": 2, "name": "x"})),
        ("files?dryRun=true", json!({"folder_id": 2, "name": "x"})),
        ("files", json!({"batchData": [{"folder_id": 1, "name": "x"}, {"folder_id": 2, "name": "x"}]})),
    ] {
        names(&caller.post(path, &body).await.refused(ErrorCode::RoleForbids), "folder_id");
    }
    caller.post("files", &json!({"folder_id": 9, "name": "x"})).await.refused(ErrorCode::ForeignKeyViolation);
    names(
        &caller.post("folders", &json!({"id": 4, "parent_id": 2})).await.refused(ErrorCode::RoleForbids),
        "parent_id",
    );
    assert_eq!(files(&db).await, json!("a1 b2 c-"));
    for body in [json!({"folder_id": 3, "name": "d"}), json!({"folder_id": null, "name": "e"}), json!({"name": "f"})] {
        caller.post("files", &body).await.payload();
    }
    assert_eq!(files(&db).await, json!("a1 b2 c- d3 e- f-"));
    assert_eq!(caller.post("folders", &json!({"id": 4, "parent_id": 3})).await.payload(), json!(4));
}

async fn an_update_must_not_refer_to_hidden_records(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = Caller::new(&db, rules(), json!({"sub": 7}));
    for (path, body) in [
        ("files/1", json!({"folder_id": 2})),
        ("files/1?returning=*", json!({"name": "x", "folder_id": 2})),
        ("files", json!({"query": {"id": {"gte": 0}}, "data": {"folder_id": 2}})),
        ("files/3", json!({"folder_id": 2})),
    ] {
        names(&caller.put(path, &body).await.refused(ErrorCode::RoleForbids), "folder_id");
    }
    names(&caller.put("folders/3", &json!({"parent_id": 2})).await.refused(ErrorCode::RoleForbids), "parent_id");
    assert_eq!(files(&db).await, json!("a1 b2 c-"));
    assert_eq!(caller.put("files/2", &json!({"name": "B"})).await.payload(), json!(1), "an old key is not written");
    assert_eq!(caller.put("files/1", &json!({"folder_id": null})).await.payload(), json!(1));
    assert_eq!(caller.put("files/2?returning=id", &json!({"folder_id": 3})).await.payload(), json!({"id": 2}));
    assert_eq!(caller.put("files/99", &json!({"folder_id": 2})).await.payload(), json!(0));
    assert_eq!(files(&db).await, json!("a- B3 c-"));
}

async fn upserts_batches_and_imports_refer_to_readable_records(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = Caller::new(&db, rules(), json!({"sub": 7}));
    for conflict in ["update", "ignore"] {
        let path = format!("files?onConflict={conflict}");
        let new = json!({"id": 9, "folder_id": 2, "name": "x"});
        names(&caller.post(&path, &new).await.refused(ErrorCode::RoleForbids), "folder_id");
    }
    let changed = json!({"id": 1, "folder_id": 2, "name": "x"});
    names(&caller.post("files?onConflict=update", &changed).await.refused(ErrorCode::RoleForbids), "folder_id");
    assert_eq!(caller.post("files?onConflict=ignore", &changed).await.payload(), Value::Null);
    let path = db.path("files");
    let insert = |folder: i64| json!({"method": "POST", "path": path, "body": {"folder_id": folder, "name": "x"}});
    let refusal = caller.batch(&[insert(1), insert(2)]).await.refused(ErrorCode::RoleForbids);
    names(&refusal, "folder_id");
    let import = caller.call(Method::POST, "files").header("content-type", "text/csv");
    import.bytes("folder_id,name\n1,x\n2,x\n").send().await.refused(ErrorCode::RoleForbids);
    assert_eq!(files(&db).await, json!("a1 b2 c-"));
    caller.post("files?onConflict=update", &json!({"id": 2, "folder_id": 1, "name": "B"})).await.payload();
    caller.batch(&[insert(1), insert(3)]).await.payload();
    assert_eq!(files(&db).await, json!("a1 B1 c- x1 x3"));
}

async fn keys_that_the_role_sets_leaves_unchecked_or_hides_no_record_of_are_free(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let hidden = ("folders", json!({"read": {"rows": is_claim("owner", "sub")}}));
    for (at, (folders, insert)) in [
        (hidden.clone(), json!({"fields": ["name"], "set": {"folder_id": 2}})),
        (hidden.clone(), json!({"unchecked": ["folder_id"]})),
        (("folders", json!({"read": true})), json!(true)),
        (("folders", json!({"insert": true})), json!(true)),
    ]
    .into_iter()
    .enumerate()
    {
        let caller = Caller::new(
            &db,
            [folders, ("files", json!({"insert": insert, "update": {"fields": ["name", "folder_id"]}}))],
            json!({"sub": 7}),
        );
        let mut file = json!({"id": at + 10, "name": "x", "folder_id": 2});
        if at == 0 {
            file = json!({"name": "x"});
        }
        caller.post("files", &file).await.payload();
        if at == 1 {
            let upsert = caller.post("files?onConflict=update", &file).await;
            names(&upsert.refused(ErrorCode::RoleForbids), "folder_id");
        }
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM files WHERE name = 'x' AND folder_id = 2").await, json!(4));
}

async fn a_key_of_two_fields_is_checked_as_a_whole(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE seats (hall INT, number INT, secret INT, PRIMARY KEY (hall, number))",
            "CREATE TABLE tickets (id INT PRIMARY KEY, hall INT, number INT, FOREIGN KEY (hall, number) REFERENCES seats (hall, number))",
            "INSERT INTO seats VALUES (1, 1, 0), (1, 2, 1), (2, 1, 0)",
            "INSERT INTO tickets VALUES (1, 1, 1), (2, 2, NULL)",
        ],
    )
    .await;
    let rules = [
        ("seats", json!({"read": {"fields": ["hall"], "rows": {"secret": 0}}})),
        ("tickets", json!({"insert": true, "update": {"fields": ["number"]}})),
    ];
    let caller = Caller::new(&db, rules, json!({}));
    names(
        &caller.post("tickets", &json!({"id": 3, "hall": 1, "number": 2})).await.refused(ErrorCode::RoleForbids),
        "hall",
    );
    assert_eq!(caller.post("tickets", &json!({"id": 3, "hall": 1, "number": null})).await.payload(), Value::Null);
    names(&caller.put("tickets/1", &json!({"number": 2})).await.refused(ErrorCode::RoleForbids), "number");
    assert_eq!(caller.put("tickets/2", &json!({"number": 1})).await.payload(), json!(1));
}

async fn a_reference_is_judged_by_a_rule_through_relations(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let of_own = json!({"folder": {"some": is_claim("owner", "sub")}});
    let rules = [("files", json!({"read": {"rows": of_own}, "insert": true, "update": {"fields": ["copy_of"]}}))];
    let caller = Caller::new(&db, rules, json!({"sub": 7}));
    names(&caller.post("files", &json!({"copy_of": 2})).await.refused(ErrorCode::RoleForbids), "copy_of");
    caller.post("files", &json!({"copy_of": 1})).await.payload();
    names(&caller.put("files/1", &json!({"copy_of": 3})).await.refused(ErrorCode::RoleForbids), "copy_of");
    assert_eq!(caller.put("files/3", &json!({"copy_of": 1})).await.payload(), json!(1));
    let all = json!({"query": {"id": {"gte": 0}}, "data": {"copy_of": 2}});
    names(&caller.put("files", &all).await.refused(ErrorCode::RoleForbids), "copy_of");
    let upsert = json!({"id": 3, "copy_of": 2});
    names(&caller.post("files?onConflict=update", &upsert).await.refused(ErrorCode::RoleForbids), "copy_of");
    caller.post("files?onConflict=update", &json!({"id": 3, "copy_of": 1})).await.payload();
}

async fn an_unchecked_field_must_exist(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let role = role_of(&db, [("files", json!({"insert": {"unchecked": ["folder"]}}))]);
    let output = try_set(shared(), "default", &unique("role"), &role.to_string());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("insert.unchecked: The table \"files\" has no field"), "{text}");
}
