//! Row rules: the condition on records that a role may read, update and delete, and on the records that it writes.

use super::{Caller, create_role, is_claim, role_of, try_set};
use crate::host::{Host, option};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        reads_find_allowed_records_only,
        a_denied_record_of_a_joined_table_is_no_match,
        a_changed_record_must_have_been_allowed,
        a_new_record_must_keep_to_the_rule,
        an_update_must_not_leave_the_rule,
        a_batch_with_a_forbidden_record_writes_nothing,
        a_rule_on_a_generated_field_holds,
        a_rule_on_a_hidden_field_holds,
        a_hidden_key_addresses_no_record_to_read,
        views_and_tables_without_transactions_take_no_write_that_can_not_be_checked,
        a_failed_update_leaves_no_verdict_for_the_next,
        a_record_has_the_tag_of_what_the_caller_sees,
        a_rule_whose_field_is_gone_denies,
        an_omitted_field_of_a_pattern_is_hidden_in_any_case,
    ],
}

/// Notes of two owners: odd ids belong to owner 1, even ids to owner 2; the last two are closed.
pub(super) const NOTES: &[&str] = &[
    "CREATE TABLE notes (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, title VARCHAR(40), \
     status VARCHAR(10) NOT NULL DEFAULT 'open', words INT, double_owner INT GENERATED ALWAYS AS (owner * 2) STORED, \
     KEY (owner))",
    "INSERT INTO notes (owner, title, status, words) VALUES (1, 'a', 'open', 1), (2, 'b', 'open', 20), \
     (1, 'c', 'open', 3), (2, 'd', 'open', 40), (1, 'e', 'closed', 5), (2, 'f', 'closed', 60)",
];

/// A rule that allows everything with the caller's own notes, except that only open notes can be changed.
pub(super) fn own_notes() -> Value {
    let open = json!({"owner": {"value": {"claim": "sub"}}, "status": "open"});
    json!({
        "read": {"rows": is_claim("owner", "sub")},
        "insert": {"rows": is_claim("owner", "sub")},
        "update": {"rows": open},
        "delete": {"rows": open},
    })
}

async fn titles(db: &TestDb) -> Value {
    db.value("SELECT GROUP_CONCAT(title ORDER BY id SEPARATOR '') FROM notes").await
}

async fn reads_find_allowed_records_only(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let caller = Caller::new(&db, [("notes", own_notes())], json!({"sub": 1}));
    assert_eq!(caller.ids("notes").await, [1, 3, 5]);
    assert_eq!(caller.ids("notes?query={\"id\":[1,2,3]}").await, [1, 3]);
    assert_eq!(caller.ids("notes?query={\"owner\":2}").await, [0; 0]);
    let either = json!({"query": {"owner": 2, "id": {"value": 0, "equality": ">"}}, "searchOperator": "OR"});
    let found = caller.post("notes/query", &either).await.payload();
    assert_eq!(found.as_array().unwrap().len(), 3, "OR does not open the rule");
    let not = json!({"query": {"g": {"__query": {"owner": 1}, "not": true}}});
    assert_eq!(caller.post("notes/query", &not).await.payload(), json!([]));
    for id in 1..=7 {
        let answer = caller.get(&format!("notes/{id}")).await;
        if [1, 3, 5].contains(&id) {
            assert_eq!(answer.payload()["id"], id);
        } else {
            answer.refused(ErrorCode::RecordNotFound);
        }
    }
    let denied = caller.get("notes/2").await.json();
    let missing = caller.get("notes/7").await.json();
    for part in ["code", "message", "hint", "details"] {
        assert_eq!(denied["error"].get(part), missing["error"].get(part), "{part}");
    }
    let counted = caller.get("notes?count=true&limit=1&order[field]=id").await.json();
    assert_eq!((&counted["count"], &counted["payload"][0]["id"]), (&json!(3), &json!(1)));
    let mut next = counted["next"].clone();
    for id in [3, 5] {
        let token = next.as_str().expect("a token");
        let page = caller.get(&format!("notes?limit=1&order[field]=id&after={token}")).await.json();
        assert_eq!(page["payload"][0]["id"], id);
        next = page["next"].clone();
    }
    assert_eq!(next, Value::Null, "no page shows the records of others");
    let sums = json!({"selectFields": [
        {"fieldName": "words", "aggregate": "SUM", "alias": "sum"},
        {"fieldName": "id", "aggregate": "COUNT", "alias": "n"},
        {"fieldName": "words", "aggregate": "MAX", "alias": "max"},
    ]});
    assert_eq!(caller.post("notes/query", &sums).await.payload(), json!([{"sum": "9", "n": 3, "max": 5}]));
    let groups = json!({"group": "owner", "selectFields": ["owner", {"aggregate": "COUNT", "alias": "n"}]});
    assert_eq!(caller.post("notes/query", &groups).await.payload(), json!([{"owner": 1, "n": 3}]));
    let distinct = json!({"distinct": true, "selectFields": ["owner"]});
    assert_eq!(caller.post("notes/query", &distinct).await.payload(), json!([{"owner": 1}]));
    let csv =
        caller.call(Method::GET, "notes?selectFields=id&order[field]=id").header("accept", "text/csv").send().await;
    assert_eq!(csv.text().split_whitespace().collect::<Vec<_>>(), ["id", "1", "3", "5"]);
    let path = db.path("notes");
    let batch = caller.batch(&[json!({"method": "GET", "path": format!("{path}?selectFields=id")})]).await;
    assert_eq!(batch.payload()[0].as_array().unwrap().len(), 3);
    let denied = caller.batch(&[json!({"method": "GET", "path": format!("{path}/2")})]).await;
    denied.refused(ErrorCode::RecordNotFound);
}

async fn a_denied_record_of_a_joined_table_is_no_match(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE books (id INT PRIMARY KEY, author_id INT, open INT)",
            "CREATE TABLE authors (id INT PRIMARY KEY, open INT)",
            "INSERT INTO authors VALUES (1, 1), (2, 0), (3, 1), (4, 0)",
            "INSERT INTO books VALUES (10, 1, 1), (11, 1, 0), (12, 2, 1), (13, 2, 0), (14, NULL, 1), (15, NULL, 0)",
        ],
    )
    .await;
    let open = json!({"read": {"rows": {"open": 1}, "fields": {"omit": ["open"]}}});
    let rules = [("books", open.clone()), ("authors", open)];
    let caller = Caller::new(&db, rules, json!({}));
    let pairs = async |kind: &str, more: Value| {
        let on = json!({"source": "author_id", "target": "id"});
        let mut options = json!({
            "join": [{"tableName": "authors", "joinType": kind, "match": on, "selectFields": [{"fieldName": "id", "alias": "a"}]}],
            "selectFields": [{"fieldName": "id", "alias": "b"}],
        });
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = caller.post("books/query", &options).await;
        let rows = answer.payload();
        let mut pairs: Vec<_> =
            rows.as_array().unwrap().iter().map(|row| (row["b"].as_i64(), row["a"].as_i64())).collect();
        pairs.sort_unstable();
        pairs
    };
    for (kind, expected) in [
        ("INNER JOIN", &[(Some(10), Some(1))][..]),
        ("LEFT JOIN", &[(Some(10), Some(1)), (Some(12), None), (Some(14), None)]),
        ("RIGHT JOIN", &[(None, Some(3)), (Some(10), Some(1))]),
    ] {
        assert_eq!(pairs(kind, json!({})).await, expected, "{kind}");
        let conditions =
            json!({"query": {"x": {"value": 0, "equality": ">=", "tableName": "authors", "fieldName": "id"}}});
        let matched: Vec<_> = expected.iter().copied().filter(|(_, author)| author.is_some()).collect();
        assert_eq!(pairs(kind, conditions).await, matched, "{kind} with a condition");
    }
    // A join condition that is true for every record reveals no hidden record either.
    let every = |kind: &str| {
        let on = json!([{"source": "id", "targetLiteral": 10}, {"source": "id", "targetLiteral": 12}]);
        let join = json!([{"tableName": "authors", "joinType": kind, "match": on, "operator": "OR"}]);
        caller.call(Method::POST, "books/query").json(&json!({"join": join, "count": true, "limit": 1})).send()
    };
    for (kind, count) in [("INNER JOIN", 4), ("LEFT JOIN", 5), ("RIGHT JOIN", 4)] {
        assert_eq!(every(kind).await.json()["count"], count, "{kind}");
    }
    let chain = |first: &str, second: &str| {
        let to_author = json!({"source": "author_id", "target": "id"});
        let back = json!({"source": {"tableName": "authors", "fieldName": "id"}, "target": "author_id"});
        let options = json!({
            "selectFields": [{"fieldName": "id", "alias": "b"}],
            "join": [
                {"tableName": "authors", "joinType": first, "match": to_author, "selectFields": [{"fieldName": "id", "alias": "a"}]},
                {"tableName": "books", "alias": "more", "joinType": second, "match": back, "selectFields": [{"fieldName": "id", "alias": "m"}]},
            ],
        });
        caller.call(Method::POST, "books/query").json(&options).send()
    };
    for (first, second, expected) in [
        ("INNER JOIN", "INNER JOIN", json!([[10, 1, 10]])),
        ("LEFT JOIN", "LEFT JOIN", json!([[10, 1, 10], [12, null, null], [14, null, null]])),
        ("RIGHT JOIN", "LEFT JOIN", json!([[null, 3, null], [10, 1, 10]])),
        ("LEFT JOIN", "RIGHT JOIN", json!([[null, null, 12], [null, null, 14], [10, 1, 10]])),
        ("RIGHT JOIN", "RIGHT JOIN", json!([[null, null, 12], [null, null, 14], [10, 1, 10]])),
        ("RIGHT JOIN", "INNER JOIN", json!([[10, 1, 10]])),
    ] {
        let answer = chain(first, second).await;
        let rows = answer.payload();
        let mut rows: Vec<_> =
            rows.as_array().unwrap().iter().map(|row| json!([row["b"], row["a"], row["m"]])).collect();
        rows.sort_by_key(|row| (row[0].as_i64(), row[1].as_i64(), row[2].as_i64()));
        assert_eq!(Value::from(rows), expected, "{first}, {second}");
    }
    let on = json!({"source": "author_id", "target": "id"});
    let join = json!([{"tableName": "authors", "joinType": "LEFT JOIN", "match": on}]);
    let one = caller.get(&format!("books/12?{}", option("join", &join))).await;
    assert_eq!(one.payload(), json!({"id": 12, "author_id": 2, "authors_id": null}));
}

async fn a_changed_record_must_have_been_allowed(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let caller = Caller::new(&db, [("notes", own_notes())], json!({"sub": 1}));
    let title = json!({"title": "z"});
    for (id, matched) in [(1, 1), (2, 0), (5, 0), (77, 0)] {
        assert_eq!(caller.put(&format!("notes/{id}"), &title).await.payload(), matched, "{id}");
    }
    assert_eq!(titles(&db).await, "zbcdef");
    let every = json!([{"key": "id", "value": 0, "operator": ">"}]);
    let many = json!({"updateKeyValues": every, "data": {"title": "y"}});
    assert_eq!(caller.put("notes", &many).await.payload(), 2);
    assert_eq!(titles(&db).await, "ybydef");
    let either = json!([{"key": "owner", "value": 2}, {"key": "id", "value": 0, "operator": ">"}]);
    let many = json!({"updateKeyValues": either, "updateKeyValuesOperator": "OR", "data": {"title": "x"}});
    assert_eq!(caller.put("notes", &many).await.payload(), 2);
    assert_eq!(titles(&db).await, "xbxdef");
    for (id, deleted) in [(2, 0), (5, 0), (1, 1), (1, 0)] {
        assert_eq!(caller.delete(&format!("notes/{id}")).await.payload(), deleted, "{id}");
    }
    let many = json!({"deleteKeyValues": either, "deleteKeyValuesOperator": "OR"});
    assert_eq!(caller.delete_where("notes", &many).await.payload(), 1);
    assert_eq!(titles(&db).await, "bdef");
    let path = db.path("notes");
    let batch = caller
        .batch(&[
            json!({"method": "PUT", "path": format!("{path}/2"), "body": {"title": "w"}}),
            json!({"method": "DELETE", "path": format!("{path}/4")}),
            json!({"method": "DELETE", "path": path, "body": {"deleteKeyValues": every}}),
        ])
        .await;
    assert_eq!(batch.payload(), json!([0, 0, 0]));
    assert_eq!(titles(&db).await, "bdef");
}

async fn a_new_record_must_keep_to_the_rule(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let caller = Caller::new(&db, [("notes", own_notes())], json!({"sub": 1}));
    let id = caller.post("notes", &json!({"owner": 1, "title": "n"})).await.payload();
    assert_eq!(caller.get(&format!("notes/{id}")).await.payload()["title"], "n");
    let before = titles(&db).await;
    for body in [
        json!({"owner": 2, "title": "x"}),
        json!({"owner": null, "title": "x"}),
        json!({"title": "x"}),
        json!({}),
        json!({"batchData": [{"owner": 1, "title": "x"}, {"owner": 2, "title": "x"}]}),
        json!({"batchData": [{"owner": 2, "title": "x"}, {"owner": 1, "title": "x"}]}),
        json!({"batchData": [{"owner": 1, "title": "x"}, {"title": "x"}]}),
    ] {
        caller.post("notes", &body).await.refused(ErrorCode::RoleForbids);
        assert_eq!(titles(&db).await, before, "{body}");
    }
    let many: Vec<Value> = (0..1_500).map(|_| json!({"owner": 1, "title": "m"})).collect();
    let ids = caller.post("notes", &json!({"batchData": many})).await.payload();
    assert_eq!(ids.as_array().unwrap().len(), 1_500);
    let mut wrong = many;
    // The wrong row is in the second statement of the insert.
    wrong[1_400]["owner"] = json!(2);
    caller.post("notes", &json!({"batchData": wrong})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(db.value("SELECT COUNT(*) FROM notes WHERE title = 'm'").await, 1_500);
}

async fn an_update_must_not_leave_the_rule(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let caller = Caller::new(&db, [("notes", own_notes())], json!({"sub": 1}));
    let state = async || db.exec("SELECT * FROM notes ORDER BY id").await;
    let before = state().await;
    for (rest, body) in [
        ("notes/1", json!({"owner": 2})),
        ("notes/1", json!({"owner": null, "title": "x"})),
        ("notes/1", json!({"title": "x", "status": "closed"})),
        (
            "notes",
            json!({"updateKeyValues": [{"key": "id", "value": [1, 3]}], "data": {"title": "x", "status": "shut"}}),
        ),
        ("notes", json!({"updateKeyValues": [{"key": "id", "value": 0, "operator": ">"}], "data": {"owner": 2}})),
    ] {
        for method in [Method::PUT, Method::PATCH] {
            caller.call(method, rest).json(&body).send().await.refused(ErrorCode::RoleForbids);
            assert_eq!(state().await, before, "{body}");
        }
    }
    // A caller may change fields that the rule does not mention, and set values that meet the rule. The answer reveals
    // nothing about others' records.
    for (rest, body, matched) in [
        ("notes/1", json!({"owner": 1, "status": "open", "title": "x"}), 1),
        ("notes/1", json!({"status": "OPEN"}), 1),
        ("notes/2", json!({"owner": 1}), 0),
        ("notes/2", json!({"owner": 2}), 0),
        ("notes/77", json!({"owner": 2}), 0),
    ] {
        assert_eq!(caller.put(rest, &body).await.payload(), matched, "{rest} {body}");
    }
}

async fn a_batch_with_a_forbidden_record_writes_nothing(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let caller = Caller::new(&db, [("notes", own_notes())], json!({"sub": 1}));
    let state = async || db.exec("SELECT * FROM notes ORDER BY id").await;
    let before = state().await;
    let path = db.path("notes");
    let good = [
        json!({"method": "POST", "path": path, "body": {"owner": 1, "title": "x"}}),
        json!({"method": "PUT", "path": format!("{path}/3"), "body": {"title": "x"}}),
        json!({"method": "DELETE", "path": format!("{path}/1")}),
    ];
    for wrong in [
        json!({"method": "PUT", "path": format!("{path}/3"), "body": {"owner": 2}}),
        json!({"method": "POST", "path": path, "body": {"owner": 2}}),
        json!({"method": "POST", "path": path, "body": {"batchData": [{"owner": 1}, {"owner": 2}]}}),
        json!({"method": "POST", "path": format!("{path}?onConflict=update"), "body": {"id": 2, "owner": 1}}),
    ] {
        for at in 0..=good.len() {
            let mut operations = good.to_vec();
            operations.insert(at, wrong.clone());
            let error = caller.batch(&operations).await.refused(ErrorCode::RoleForbids);
            assert_eq!(error["details"]["operation"], at, "{wrong}");
            assert_eq!(state().await, before, "{wrong} at {at}");
        }
    }
    let done = caller.batch(&good).await.payload();
    assert_eq!((&done[1], &done[2]), (&json!(1), &json!(1)));
}

async fn a_rule_on_a_generated_field_holds(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let two = json!({"rows": {"double_owner": 2}});
    let rule = json!({"read": two, "insert": two, "delete": two});
    let caller = Caller::new(&db, [("notes", rule)], json!({}));
    assert_eq!(caller.ids("notes").await, [1, 3, 5]);
    caller.get("notes/2").await.refused(ErrorCode::RecordNotFound);
    assert_eq!(caller.delete("notes/2").await.payload(), 0);
    assert_eq!(caller.delete("notes/5").await.payload(), 1);
    caller.post("notes", &json!({"owner": 1, "title": "n"})).await.payload();
    caller.post("notes", &json!({"owner": 2, "title": "n"})).await.refused(ErrorCode::RoleForbids);
    caller.post("notes", &json!({"title": "n"})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(titles(&db).await, "abcdfn");
    // MariaDB computes the field only after the change, so a rule on it can't be checked in an update.
    let updates = role_of(&db, [("notes", json!({"update": two}))]);
    let refused = try_set(shared(), "default", &unique("role"), &updates.to_string());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("update.rows: MariaDB computes double_owner"));
}

async fn a_rule_on_a_hidden_field_holds(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let rows = is_claim("owner", "sub");
    let fields = json!({"omit": ["owner", "double_owner"]});
    let rule = json!({
        "read": {"rows": rows, "fields": fields},
        "insert": {"fields": ["title"], "set": {"owner": {"claim": "sub"}}, "rows": rows},
        "update": {"fields": ["title"], "rows": rows},
        "delete": {"rows": rows},
    });
    let caller = Caller::new(&db, [("notes", rule)], json!({"sub": 2}));
    assert_eq!(caller.ids("notes").await, [2, 4, 6]);
    let record = json!({"id": 2, "title": "b", "status": "open", "words": 20});
    assert_eq!(caller.get("notes/2").await.payload(), record);
    caller.get("notes/1").await.refused(ErrorCode::RecordNotFound);
    let id = caller.post("notes", &json!({"title": "n"})).await.payload();
    assert_eq!(db.value(&format!("SELECT owner FROM notes WHERE id = {id}")).await, 2);
    assert_eq!(caller.put("notes/1", &json!({"title": "x"})).await.payload(), 0);
    assert_eq!(caller.put("notes/2", &json!({"title": "x"})).await.payload(), 1);
    assert_eq!(caller.delete("notes/1").await.payload(), 0);
    assert_eq!(caller.delete("notes/4").await.payload(), 1);
    assert_eq!(titles(&db).await, "axcefn");
}

async fn a_hidden_key_addresses_no_record_to_read(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let hides = json!({"fields": {"omit": ["id"]}});
    let rule = json!({"read": hides, "insert": hides, "update": hides, "delete": true});
    let caller = Caller::new(&db, [("notes", rule)], json!({}));
    for id in [1, 77] {
        let answer = caller.get(&format!("notes/{id}")).await;
        answer.refused(ErrorCode::RecordNotFound);
    }
    assert_eq!(caller.post("notes", &json!({"title": "n"})).await.payload(), Value::Null);
    assert_eq!(caller.post("notes", &json!({"batchData": [{}, {}]})).await.payload(), json!([null, null]));
    let upsert = caller.post("notes?onConflict=update", &json!({"title": "n"})).await;
    assert_eq!(upsert.payload(), Value::Null);
    let path = db.path("notes");
    let insert = json!({"method": "POST", "path": path, "body": {"title": "o"}});
    let refers = json!({"method": "PUT", "path": format!("{path}/$ref:0"), "body": {"title": "p"}});
    caller.batch(&[insert, refers]).await.refused(ErrorCode::InvalidBody);
    assert_eq!(caller.get("notes?limit=1&order[field]=title").await.payload()[0].get("id"), None);
    let read = caller.post("notes/query", &json!({"order": {"field": "id"}})).await;
    read.refused(ErrorCode::UnknownField);
}

async fn views_and_tables_without_transactions_take_no_write_that_can_not_be_checked(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    db.exec("CREATE TABLE plain (id INT PRIMARY KEY AUTO_INCREMENT, owner INT, title VARCHAR(40)) ENGINE = MyISAM")
        .await;
    db.exec("INSERT INTO plain (owner, title) VALUES (1, 'a'), (2, 'b')").await;
    db.exec("CREATE VIEW v AS SELECT id, owner, title FROM notes").await;
    let rows = is_claim("owner", "sub");
    let database = &db.name;
    // A pattern's rules are not checked against tables when the role is set.
    let role = json!({"tables": {format!("{database}.*"): {
        "read": {"rows": rows}, "insert": {"rows": rows}, "update": {"rows": rows}, "delete": {"rows": rows},
    }}});
    let caller = Caller::with_role(&db, &create_role(&role), json!({"sub": 1}));
    for (table, own, others) in [("plain", 1, 2), ("v", 1, 2)] {
        caller.post(table, &json!({"owner": 1})).await.refused(ErrorCode::RoleForbids);
        caller.put(&format!("{table}/{own}"), &json!({"owner": 2})).await.refused(ErrorCode::RoleForbids);
        assert_eq!(caller.put(&format!("{table}/{own}"), &json!({"title": "x"})).await.payload(), 1, "{table}");
        assert_eq!(caller.put(&format!("{table}/{others}"), &json!({"title": "x"})).await.payload(), 0, "{table}");
        caller.get(&format!("{table}/{others}")).await.refused(ErrorCode::RecordNotFound);
        assert_eq!(caller.delete(&format!("{table}/{others}")).await.payload(), 0, "{table}");
        assert_eq!(caller.delete(&format!("{table}/{own}")).await.payload(), 1, "{table}");
    }
    assert_eq!(db.value("SELECT GROUP_CONCAT(title) FROM plain").await, "b");
}

/// The result of the rule's check of an update is a session variable until the update ends; it must not affect the next
/// update.
async fn a_failed_update_leaves_no_verdict_for_the_next(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, owner INT NOT NULL, code INT, UNIQUE (owner, code))",
            "INSERT INTO t VALUES (1, 1, 5), (2, 1, 6), (3, 1, 7), (4, 2, 6)",
        ],
    )
    .await;
    let rule = json!({"read": true, "update": {"rows": is_claim("owner", "sub")}});
    let caller = Caller::new(&db, [("t", rule)], json!({"sub": 1}));
    for _ in 0..20 {
        // The first record breaks the rule, the second one a unique key, which ends the statement.
        let many = json!({"updateKeyValues": [{"key": "id", "value": [1, 2]}], "data": {"owner": 2}});
        let code = caller.put("t", &many).await.code();
        assert_eq!(code, "duplicate_key");
        assert_eq!(caller.put("t/3", &json!({"owner": 1})).await.payload(), 1, "an update that keeps to the rule");
    }
}

async fn a_record_has_the_tag_of_what_the_caller_sees(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let narrow = json!({"read": {"fields": ["id", "title"], "rows": is_claim("owner", "sub")}});
    let role = create_role(&role_of(&db, [("notes", narrow)]));
    let [one, other] = [1, 2].map(|sub| Caller::with_role(&db, &role, json!({"sub": sub})));
    let full = db.get("notes/1").await;
    let full = full.header("etag").expect("a tag").to_owned();
    let own = one.get("notes/1").await;
    let own = own.header("etag").expect("a tag").to_owned();
    assert_ne!(own, full);
    let asks = |caller: &Caller<'_>, tag: &str| caller.call(Method::GET, "notes/1").header("if-none-match", tag).send();
    assert_eq!(asks(&one, &own).await.status, 304);
    assert_eq!(asks(&one, &full).await.status, 200);
    for tag in [&own, &full, "*"] {
        asks(&other, tag).await.refused(ErrorCode::RecordNotFound);
    }
    db.exec("UPDATE notes SET words = 77 WHERE id = 1").await;
    assert_eq!(asks(&one, &own).await.status, 304, "a hidden field changes no tag");
}

async fn a_rule_whose_field_is_gone_denies(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let own = is_claim("owner", "sub");
    let rule = json!({
        "read": {"rows": own}, "insert": {"rows": own}, "update": {"rows": own}, "delete": {"rows": own},
    });
    let sets = json!({"read": {"fields": ["id"]}, "insert": {"set": {"owner": {"claim": "sub"}}}});
    let caller = Caller::new(&db, [("notes", rule)], json!({"sub": 1}));
    let setter = Caller::new(&db, [("notes", sets)], json!({"sub": 1}));
    assert_eq!(caller.ids("notes").await, [1, 3, 5]);
    setter.post("notes", &json!({"title": "s"})).await.payload();
    db.exec("ALTER TABLE notes DROP COLUMN double_owner").await;
    db.exec("ALTER TABLE notes CHANGE owner holder INT").await;
    assert_eq!(caller.ids("notes").await, [0; 0]);
    caller.get("notes/1").await.refused(ErrorCode::RecordNotFound);
    assert_eq!(caller.put("notes/1", &json!({"title": "x"})).await.payload(), 0);
    assert_eq!(caller.delete("notes/1").await.payload(), 0);
    caller.post("notes", &json!({"holder": 1})).await.refused(ErrorCode::RoleForbids);
    setter.post("notes", &json!({"title": "x"})).await.refused(ErrorCode::RoleForbids);
    assert_eq!(titles(&db).await, "abcdefs");
    db.exec("ALTER TABLE notes CHANGE holder owner INT").await;
    assert_eq!(caller.ids("notes").await.len(), 4);
}

/// The omitted fields of a pattern's rule are hidden in any case. The pattern's tables are not known when the role is
/// set, so a wrong case can't be refused.
async fn an_omitted_field_of_a_pattern_is_hidden_in_any_case(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let role = json!({"tables": {format!("{}.*", db.name): {"read": {"fields": {"omit": ["OWNER", "Double_Owner"]}}}}});
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    let record = json!({"id": 2, "title": "b", "status": "open", "words": 20});
    assert_eq!(caller.get("notes/2").await.payload(), record);
    for field in ["owner", "OWNER", "Owner"] {
        let answer = caller.get(&format!("notes?selectFields={field}")).await;
        answer.refused(ErrorCode::UnknownField);
    }
}
