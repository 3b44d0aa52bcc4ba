//! Roles and their keys over time: set, listed, shown, checked, changed and removed through the CLI.

use super::{Caller, create_role, is_claim, role_of, set_role_in, try_set};
use crate::case::eventually;
use crate::forged::claims;
use crate::host::{Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service, shared};
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        the_key_of_a_removed_role_is_refused,
        a_changed_role_acts_soon,
        a_role_is_of_its_project_alone,
    ],
    Origin: [
        a_role_is_set_listed_shown_and_replaced,
        a_role_that_may_read_no_field_may_not_read,
        a_fault_names_the_table_the_field_or_the_rule,
        a_key_holds_the_claims_that_it_was_issued_with,
        a_key_with_a_role_is_issued_only_as_it_makes_sense,
        a_check_prints_what_a_caller_could_do,
    ],
    Own: [two_origins_follow_a_change],
}

/// Maximum time until a change takes effect: 5 s, and more on a loaded machine.
const CHANGE_MAX: Duration = Duration::from_secs(9);

const T: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, name VARCHAR(20), \
     twice INT GENERATED ALWAYS AS (owner * 2) VIRTUAL)",
    "INSERT INTO t (owner, name) VALUES (1, 'a'), (2, 'b')",
];

async fn a_role_is_set_listed_shown_and_replaced(host: Host) {
    let db = TestDb::new(host, T).await;
    let first = role_of(&db, [("t", json!({"read": true}))]);
    let name = create_role(&first);
    let shown = || -> Value {
        let shown = shared().cli_ok(&["role", "show", &name, "--json"]);
        serde_json::from_str(&shown).expect("a role as JSON")
    };
    assert_eq!(shown(), first);
    let second = role_of(&db, [("t", json!({"read": {"fields": ["id"]}}))]);
    set_role_in(shared(), "default", &name, &second);
    assert_eq!(shown(), second);
    let plain = shared().cli_ok(&["role", "show", &name]);
    assert_eq!(serde_json::from_str::<Value>(&plain).expect("a role file"), second);
    for arguments in [&["role", "list"][..], &["role", "list", "--project", "default", "--json"]] {
        assert!(shared().cli_ok(arguments).contains(&name), "{arguments:?}");
    }
    shared().cli_ok(&["role", "remove", &name]);
    assert!(!shared().cli_ok(&["role", "list"]).contains(&name));
    for arguments in [["role", "show", &name], ["role", "remove", &name]] {
        let output = shared().cli(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&format!("no role {name}")), "{said}");
    }
}

async fn a_role_that_may_read_no_field_may_not_read(host: Host) {
    let db = TestDb::new(host, T).await;
    let all = json!({"fields": {"omit": ["id", "owner", "name", "twice"]}});
    for (table, fields, code) in [
        ("t", json!({"fields": []}), ErrorCode::RoleForbids),
        ("t", all, ErrorCode::RoleForbids),
        // The fields of a pattern are not checked against each table.
        ("*", json!({"fields": ["other"]}), ErrorCode::RoleForbids),
    ] {
        let caller = Caller::new(&db, [(table, json!({"read": fields, "insert": true}))], json!({}));
        for rest in ["t", "t/1", "t?count=true&limit=1", "t?selectFields=COUNT(*)", "t/_schema"] {
            let error = caller.get(rest).await.refused(code);
            assert!(error["details"]["errno"].is_null(), "{fields}: {rest}: {error}");
        }
        assert_eq!(caller.post("t", &json!({"owner": 1})).await.status.as_u16(), 200, "{fields}");
    }
    let nothing = Caller::new(&db, [("t", json!({"read": {"fields": []}}))], json!({}));
    nothing.get("t").await.refused(ErrorCode::DatabaseNotFound);
}

async fn a_fault_names_the_table_the_field_or_the_rule(host: Host) {
    let db = TestDb::new(host, T).await;
    db.exec("CREATE VIEW v AS SELECT id, owner FROM t").await;
    let good = role_of(&db, [("t", json!({"read": true}))]);
    let name = create_role(&good);
    let t = format!("tables.\"{}.t\"", db.name);
    for (table, rule, said) in [
        ("tt", json!({"read": true}), &["tables.", ".tt\"", "has no table \"tt\""][..]),
        ("t", json!({"read": {"fields": ["nam"]}}), &["read.fields: ", "no field \"nam\"", "\"name\""]),
        ("t", json!({"read": {"fields": {"omit": ["nam"]}}}), &["read.fields: ", "\"nam\""]),
        ("t", json!({"read": {"rows": {"ownr": 1}}}), &["read.rows: ", "\"ownr\""]),
        ("t", json!({"read": {"rows": {"ownr": {"value": {"claim": "sub"}}}}}), &["read.rows: ", "\"ownr\""]),
        ("t", json!({"read": {"rows": {"x": {"value": 1, "fieldName": {"claim": "f"}}}}}), &["read.rows: "]),
        ("t", json!({"read": {"rows": {"owner": "many"}}}), &["read.rows: ", "\"owner\""]),
        ("t", json!({"read": {"rows": {"owner": {"value": 1, "equality": "~"}}}}), &["read.rows: ", "\"~\""]),
        ("t", json!({"read": {"rows": {"owner": {"claim": 7}}}}), &["read.rows: ", "the claim's name"]),
        ("t", json!({"read": {"set": {"owner": 1}}}), &["read: ", "no part \"set\""]),
        ("t", json!({"insert": {"fields": ["nam"]}}), &["insert.fields: ", "\"nam\""]),
        ("t", json!({"insert": {"set": {"nam": 1}}}), &["insert.set.\"nam\": "]),
        ("t", json!({"insert": {"set": {"owner": "many"}}}), &["insert.set.\"owner\": "]),
        ("t", json!({"insert": {"set": {"twice": 1}}}), &["insert.set.\"twice\": "]),
        ("t", json!({"insert": {"fields": ["owner"], "set": {"owner": 1}}}), &["insert: ", "\"owner\""]),
        ("t", json!({"insert": {"rows": {"nam": 1}}}), &["insert.rows: ", "\"nam\""]),
        ("t", json!({"update": {"fields": ["nam"]}}), &["update.fields: ", "\"nam\""]),
        ("t", json!({"update": {"rows": {"nam": 1}}}), &["update.rows: ", "\"nam\""]),
        ("t", json!({"update": {"set": {"nam": 1}}}), &["update.set.\"nam\": "]),
        ("t", json!({"delete": {"rows": {"nam": 1}}}), &["delete.rows: ", "\"nam\""]),
        ("t", json!({"delete": {"fields": ["name"]}}), &["delete: ", "no part \"fields\""]),
        ("t", json!({"reed": true}), &["no part \"reed\"", "read"]),
        ("v", json!({"insert": {"rows": {"owner": 1}}}), &["insert.rows: ", "view"]),
    ] {
        let role = role_of(&db, [(table, rule)]);
        let output = try_set(shared(), "default", &name, &role.to_string());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{role}");
        assert!(table != "t" || error.contains(&t), "{role}: {error}");
        for part in said {
            assert!(error.contains(part), "{role} has {part:?} at fault: {error}");
        }
    }
    for (text, said) in [
        ("", "JSON"),
        ("[]", "an object, not a list"),
        (r#"{"table": {}}"#, "no part \"table\""),
        (r#"{"tables": {"orders": {}}}"#, "tables.\"orders\": "),
        (r#"{"tables": {"selkie.api_key": {"read": true}}}"#, "tables.\"selkie.api_key\": "),
        (r#"{"tables": {"default_nowhere.t": {"read": true}}}"#, "tables.\"default_nowhere.t\": "),
        (r#"{"maxRows": "many"}"#, "maxRows: "),
        (r#"{"timeout": "soon"}"#, "timeout: "),
        (r#"{"rateLimit": "often"}"#, "rateLimit: "),
        (r#"{"media": {"delete": "some"}}"#, "media.delete: "),
    ] {
        let output = try_set(shared(), "default", &name, text);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(said), "{text}: {error}");
    }
    let shown = shared().cli_ok(&["role", "show", &name, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), good, "no wrong file replaces a role");
    for name in ["full", "read", "Author", "an author", "-", ""] {
        let output = try_set(shared(), "default", name, &good.to_string());
        assert!(!output.status.success(), "a role is named {name:?}");
    }
    assert!(!try_set(shared(), "nobody", "author", &good.to_string()).status.success());
}

async fn a_key_holds_the_claims_that_it_was_issued_with(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = create_role(&role_of(&db, [("t", json!({"read": {"rows": is_claim("owner", "sub")}}))]));
    let given = ["sub=2", "team=red", "tags=[\"a\",1]", "code=\"7\"", "pro=true"].map(str::to_owned);
    let key = shared().create_role_key("default", &role, &given);
    let claims = claims(&key.token);
    assert_eq!((&claims["acc"], &claims["role"], &claims["prj"]), (&json!("role"), &json!(role), &json!("default")));
    assert_eq!(claims["clm"], json!({"sub": 2, "team": "red", "tags": ["a", 1], "code": "7", "pro": true}));
    let caller = Caller { db: &db, key: key.token };
    assert_eq!(caller.ids("t").await, [2]);
    assert!(shared().cli_ok(&["key", "list"]).contains(&role), "the list shows the role");
    shared().cli_ok(&["key", "revoke", &key.id]);
    let revoked = eventually("the key is revoked", CHANGE_MAX, || async {
        let answer = caller.get("t").await;
        (answer.status != 200).then_some(answer)
    });
    revoked.await.refused(ErrorCode::RevokedKey);
}

async fn a_key_with_a_role_is_issued_only_as_it_makes_sense(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = create_role(&role_of(&db, [("t", json!({"read": true}))]));
    for arguments in [
        &["--role", "nobody-has-this-role"][..],
        &["--role", &role, "--access", "read"],
        &["--role", &role, "--access", "full"],
        &["--access", "read", "--claim", "sub=7"],
        &["--claim", "sub=7"],
        &["--role", &role, "--claim", "sub"],
        &["--role", "full"],
    ] {
        let output = shared().cli(&[&["key", "create"], arguments].concat());
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

async fn a_check_prints_what_a_caller_could_do(host: Host) {
    let db = TestDb::new(host, T).await;
    let rule = json!({
        "read": {"fields": {"omit": ["name"]}, "rows": is_claim("owner", "sub")},
        "insert": {"fields": ["name"], "set": {"owner": {"claim": "sub"}}, "unchecked": ["name"]},
        "delete": {"rows": {"name": "a"}},
    });
    let role = create_role(&role_of(&db, [("t", rule)]));
    let table = format!("{}.t", db.name);
    let check = |claims: &str| shared().cli_ok(&["role", "check", &role, "--table", &table, "--as", claims, "--json"]);
    let seen: Value = serde_json::from_str(&check(r#"{"sub": 7}"#)).expect("JSON");
    let of = |action: &str| seen.as_array().unwrap().iter().find(|line| line["action"] == action).unwrap();
    let (read, insert) = (of("read"), of("insert"));
    assert_eq!((&read["allowed"], &read["fields"]), (&json!(true), &json!(["id", "owner", "twice"])));
    assert!(read["condition"].as_str().unwrap().contains("`owner`"), "{read}");
    assert_eq!(read["params"], json!(["7"]));
    assert_eq!((&insert["fields"], &insert["set"]), (&json!(["name"]), &json!(["owner"])));
    assert_eq!((&insert["unchecked"], &read["unchecked"]), (&json!(["name"]), &json!([])));
    assert_eq!(of("sql")["allowed"], false);
    assert_eq!(of("update")["allowed"], false);
    assert!(of("delete")["condition"].as_str().unwrap().contains("`name`"));
    let text = shared().cli_ok(&["role", "check", &role, "--table", &table, "--as", r#"{"sub": 7}"#]);
    for line in ["read: yes", "insert: yes", "  unchecked: name", "update: no", "delete: yes", "sql: no"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let reader = create_role(&json!({"tables": {"*": {"read": true}}, "sql": "read"}));
    let text = shared().cli_ok(&["role", "check", &reader, "--table", &table]);
    assert!(text.lines().any(|found| found == "sql: yes"), "{text}");
    let without: Value = serde_json::from_str(&check("{}")).expect("JSON");
    assert_eq!(without[0]["params"], json!([]), "a missing claim is no value: {without}");
    for arguments in [[&role, "nowhere.t", "{}"], ["nobody-has-this-role", &table, "{}"], [&role, &table, "7"]] {
        let [role, table, claims] = arguments;
        let output = shared().cli(&["role", "check", role, "--table", table, "--as", claims]);
        assert!(!output.status.success(), "{arguments:?}");
    }
}

async fn the_key_of_a_removed_role_is_refused(host: Host) {
    let db = TestDb::new(host, T).await;
    let role = role_of(&db, [("t", json!({"read": true, "insert": true}))]);
    let name = create_role(&role);
    let caller = Caller::with_role(&db, &name, json!({}));
    assert_eq!(caller.ids("t").await, [1, 2]);
    shared().cli_ok(&["role", "remove", &name]);
    let refused = eventually("the role ends", CHANGE_MAX, || async {
        let answer = caller.get("t").await;
        (answer.status != 200).then_some(answer)
    });
    refused.await.refused(ErrorCode::RoleForbids);
    for answer in [
        caller.post("t", &json!({})).await,
        caller.get("t/1").await,
        caller.get("t/_schema").await,
        caller.get("nothing").await,
        caller.batch(&[json!({"method": "GET", "path": db.path("t")})]).await,
    ] {
        answer.refused(ErrorCode::RoleForbids);
    }
    set_role_in(shared(), "default", &name, &role);
    eventually("the role is back", CHANGE_MAX, || async { (caller.get("t").await.status == 200).then_some(()) }).await;
}

async fn a_changed_role_acts_soon(host: Host) {
    let db = TestDb::new(host, T).await;
    let name = create_role(&role_of(&db, [("t", json!({"read": true}))]));
    let caller = Caller::with_role(&db, &name, json!({}));
    assert_eq!(caller.get("t/1").await.payload(), json!({"id": 1, "owner": 1, "name": "a", "twice": 2}));
    let narrow = json!({"read": {"fields": ["id", "name"], "rows": {"owner": 2}}});
    set_role_in(shared(), "default", &name, &role_of(&db, [("t", narrow)]));
    eventually("the narrow rule acts", CHANGE_MAX, || async { (caller.get("t/1").await.status == 404).then_some(()) })
        .await;
    assert_eq!(caller.get("t").await.payload(), json!([{"id": 2, "name": "b"}]));
    assert_eq!(caller.get("t/2").await.payload(), json!({"id": 2, "name": "b"}));
    caller.get("t?query={\"owner\":2}").await.refused(ErrorCode::UnknownField);
    set_role_in(shared(), "default", &name, &role_of(&db, [("t", json!({}))]));
    let refused = eventually("the table is denied", CHANGE_MAX, || async {
        let answer = caller.get("t/2").await;
        (answer.status != 200).then_some(answer)
    });
    assert_eq!(refused.await.status, 404);
}

async fn a_role_is_of_its_project_alone(host: Host) {
    let db = TestDb::new(host, T).await;
    let project = unique("roles");
    shared().create_project(&project);
    let name = create_role(&role_of(&db, [("t", json!({"read": true}))]));
    let output = shared().cli(&["key", "create", "--project", &project, "--role", &name]);
    assert!(!output.status.success(), "a key of one project has a role of another");
    // Another project's role of the same name may name this project's tables, but keys of that project don't reach
    // them.
    set_role_in(shared(), &project, &name, &json!({"tables": {"*": {"read": true}}}));
    let key = shared().create_role_key(&project, &name, &[]).token;
    Caller { db: &db, key }.get("t").await.refused(ErrorCode::DatabaseNotFound);
    let foreign = role_of(&db, [("t", json!({"read": true}))]);
    let refused = try_set(shared(), &project, "foreign", &foreign.to_string());
    assert!(!refused.status.success(), "a role names a table of another project");
    let own = Caller::with_role(&db, &name, json!({}));
    assert_eq!(own.ids("t").await, [1, 2]);
}

async fn two_origins_follow_a_change(_: Host) {
    let start = || Service::start(Edge::Without, &[]);
    let service = tokio::task::spawn_blocking(start).await.unwrap().expect("a service");
    let second = tokio::task::block_in_place(|| SecondOrigin::start(&service)).expect("a second origin");
    let role = |fields: Value| json!({"tables": {"demo.posts": {"read": {"fields": fields}}}});
    set_role_in(&service, "default", "reader", &role(json!(["id", "title"])));
    let key = service.create_role_key("default", "reader", &[]).token;
    let origins = [service.origin.clone(), second.origin.clone()];
    let read = |at: &str| Call::new(at, Method::GET, "/api/v1/crud/demo/posts/1").key(&key).send();
    for origin in &origins {
        let record = read(origin).await.payload();
        assert_eq!(record.as_object().unwrap().len(), 2, "{record}");
    }
    set_role_in(&service, "default", "reader", &role(json!(["id"])));
    for origin in &origins {
        let follows = || async { (read(origin).await.payload() == json!({"id": 1})).then_some(()) };
        eventually("the changed role acts", CHANGE_MAX, follows).await;
    }
    service.cli_ok(&["role", "remove", "reader"]);
    for origin in &origins {
        let refused = eventually("the removed role ends", CHANGE_MAX, || async {
            let answer = read(origin).await;
            (answer.status != 200).then_some(answer)
        });
        refused.await.refused(ErrorCode::RoleForbids);
    }
    drop(second);
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}
