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
        patterns_are_not_matched_against_hidden_records,
        patterns_in_writes_keep_to_the_rows_of_their_own_action,
        an_update_of_many_locks_no_records_that_the_rule_denies,
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

/// MariaDB may test a condition while it optimises the statement, or in an index, before it reads the rule's field. The
/// patterns take longer than the role's timeout if one record is matched.
async fn patterns_are_not_matched_against_hidden_records(host: Host) {
    let tables = [
        "CREATE TABLE writers (id INT PRIMARY KEY, name VARCHAR(20), latin TEXT CHARACTER SET latin1)",
        "INSERT INTO writers (id, name) VALUES (8, 'pen')",
        "CREATE TABLE notes (id INT PRIMARY KEY, owner INT NOT NULL, kind INT, body VARCHAR(200), writer_id INT DEFAULT 8, \
         KEY (kind, body), KEY (owner), FOREIGN KEY (writer_id) REFERENCES writers (id))",
        "INSERT INTO notes (id, owner, kind, body) VALUES (1, 8, 1, 'private of eight'), (2, 7, 2, 'own')",
        "CREATE TABLE links (id INT PRIMARY KEY, note_id INT, FOREIGN KEY (note_id) REFERENCES notes (id))",
        "INSERT INTO links VALUES (1, 1)",
        "CREATE TABLE inks (id INT PRIMARY KEY, name VARCHAR(20), writer_id INT, meta JSON, \
         FULLTEXT (name), FOREIGN KEY (writer_id) REFERENCES writers (id))",
        "INSERT INTO inks VALUES (1, 'pink', 8, CONCAT('[', REPEAT('1, ', 1500000), '1]'))",
    ];
    let db = TestDb::new(host, &tables).await;
    let own = json!({"read": {"rows": is_claim("owner", "sub")}});
    let open = || json!({"read": true});
    let mut role = role_of(&db, [("notes", own), ("links", open()), ("writers", open()), ("inks", open())]);
    role["timeout"] = json!("8s");
    let seven = Caller::with_role(&db, &create_role(&role), json!({"sub": 7}));
    let slow: Vec<_> = (0..300).map(|at| format!("^p(?:|){{26}}(?!)|^~{at}")).collect();
    let slow = json!({"value": slow, "equality": "REGEXP"});
    let documents: serde_json::Map<_, _> =
        (0..900).map(|at| (format!("c{at}"), json!({"tableName": "inks", "fieldName": "meta", "value": at}))).collect();
    let inks = json!({"tableName": "inks", "joinType": "JOIN", "match": [{"source": "inks.id", "targetLiteral": 1}],
        "selectFields": ["id"]});
    for (path, query) in [
        // Comparisons of JSON take as long as patterns.
        (
            "notes/query",
            json!({"join": [inks], "query": {"notes.id": 1, "kind": {"lt": 2},
                "any": {"__query": documents, "operator": "OR"}}}),
        ),
        ("notes/query", json!({"query": {"id": 1, "body": slow}})),
        ("notes/query", json!({"query": {"id": 1, "owner": 7, "body": slow}})),
        ("notes/query", json!({"query": {"kind": 1, "body": slow}})),
        ("links/query", json!({"query": {"id": 1, "note": {"some": {"body": slow}}}})),
        // The pattern is of a table that anybody may read, and beside it stands a condition on the hidden record.
        (
            "notes/query",
            json!({"join": [{"tableName": "writers", "joinType": "JOIN", "match": [{"source": "writers.id", "targetLiteral": 8}]}],
                "query": {"notes.id": 1, "kind": {"lt": 2}, "name": slow}}),
        ),
        ("notes/query", json!({"query": {"id": 1, "kind": {"lt": 2}, "writer": {"some": {"name": slow}}}})),
        (
            "notes/query",
            json!({"query": {"id": 1, "kind": {"lt": 2}, "writer": {"some": {"inks": {"some": {"id": 1, "name": slow}}}}}}),
        ),
        (
            "writers/query",
            json!({"join": [{"tableName": "notes", "alias": "hidden", "joinType": "LEFT JOIN",
                    "match": [{"source": "hidden.id", "targetLiteral": 1}]}],
                "query": {"writers.id": 8, "hidden.kind": {"lt": 2}, "name": slow}}),
        ),
    ] {
        assert_eq!(seven.post(path, &query).await.payload(), json!([]), "{query}");
    }
    let own = seven.post("notes/query", &json!({"query": {"owner": 7, "body": {"regexp": "^o"}}})).await;
    assert_eq!(own.payload()[0]["id"], 2);
    // A search begins before the rules are tested, and its errors and time would tell what else holds.
    for query in [
        json!({"join": [inks], "query": {"notes.id": 1, "kind": {"lt": 2}, "inks.name": {"matchBoolean": "+-a"}}}),
        json!({"query": {"id": 1, "kind": {"lt": 2}, "writer": {"some": {"inks": {"some": {"name": {"match": "pink"}}}}}}}),
    ] {
        seven.post("notes/query", &query).await.refused(ErrorCode::RoleForbids);
    }
    // Rules do not limit the comparisons of ON: the time of slow conversions would tell hidden text.
    for matched in
        [json!({"source": "notes.body", "target": "w.latin"}), json!({"source": "w.latin", "targetLiteral": "π"})]
    {
        let join = json!([{"tableName": "writers", "alias": "w", "joinType": "JOIN", "match": [matched]}]);
        seven.post("notes/query", &json!({"join": join})).await.refused(ErrorCode::RoleForbids);
        let join =
            json!([{"tableName": "writers", "alias": "w", "match": [{"source": "w.name", "target": "inks.name"}]}]);
        assert_eq!(seven.post("inks/query", &json!({"join": join})).await.payload(), json!([]));
    }
    let beside = json!({"query": {"name": {"match": "pink"}, "writer": {"some": {"notes": {"some": {"id": 1}}}}}});
    seven.post("inks/query", &beside).await.refused(ErrorCode::RoleForbids);
    let alone = json!({"query": {"name": {"match": "pink"}}, "selectFields": ["id"]});
    assert_eq!(seven.post("inks/query", &alone).await.payload(), json!([{"id": 1}]));
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

async fn an_update_of_many_locks_no_records_that_the_rule_denies(host: Host) {
    let tables = [
        "CREATE TABLE teams (id INT PRIMARY KEY, member INT)",
        "INSERT INTO teams VALUES (1, 7), (2, 8)",
        "CREATE TABLE notes (id INT PRIMARY KEY, owner INT NOT NULL, team_id INT, body VARCHAR(20), \
         FOREIGN KEY (team_id) REFERENCES teams (id))",
        "INSERT INTO notes VALUES (1, 7, 1, ''), (2, 8, 2, ''), (3, 7, 1, '')",
    ];
    for (rows, moved) in [
        (is_claim("owner", "sub"), json!({"owner": 8})),
        (json!({"team": {"some": is_claim("member", "sub")}}), json!({"team_id": 2})),
    ] {
        let db = TestDb::new(host, &tables).await;
        let name = &db.name;
        let sleep = format!("IF NEW.body = 'slow' THEN DO SLEEP(25 + LENGTH('{name}') * 0); END IF");
        db.exec(&format!("CREATE TRIGGER slow BEFORE UPDATE ON notes FOR EACH ROW BEGIN {sleep}; END")).await;
        let own = json!({"read": {"rows": rows}, "update": {"rows": rows}});
        let role = create_role(&role_of(&db, [("notes", own), ("teams", json!({"read": true}))]));
        let [seven, eight] = [7, 8].map(|sub| Caller::with_role(&db, &role, json!({"sub": sub})));
        let mut all = json!({"query": {"id": {"gte": 1}}, "data": moved});
        all["data"]["body"] = json!("slow");
        let others = async {
            let sleeping = format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep' AND INFO LIKE '%{name}%'"
            );
            eventually("the update runs its trigger", Duration::from_secs(20), async || {
                (db.value(&sleeping).await != 0).then_some(())
            })
            .await;
            // Otherwise these wait for the locks, in vain: for 10 s at most.
            for id in [1, 3] {
                let path = format!("notes/{id}");
                assert_eq!(seven.put(&path, &json!({"body": "quick"})).await.payload(), 1, "{path}");
            }
        };
        tokio::select! {
            answer = eight.put("notes", &all) => panic!("the update ended first: {answer}"),
            () = others => {}
        }
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
