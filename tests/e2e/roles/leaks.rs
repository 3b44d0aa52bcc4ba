//! No answer to a role's caller contains the name of a hidden field, or a value of a hidden field or record.

use super::{Caller, is_claim};
use crate::host::{Answer, Host};
use crate::test_db::TestDb;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        no_answer_holds_a_hidden_name_or_value,
        no_refusal_of_mariadb_holds_a_hidden_name_or_value,
        a_refused_value_of_an_allowed_field_is_explained_as_for_a_full_key,
        a_pattern_of_a_role_is_not_explained,
        pages_hold_no_value_of_a_hidden_key,
        a_page_token_of_one_caller_is_none_of_another,
        a_schema_names_no_table_that_the_role_denies,
    ],
}

/// The beginning of every name and value that the caller must not see.
const MARK: &str = "zqhushed_";

const TABLES: &[&str] = &[
    "CREATE TABLE zqhushed_parents (id INT PRIMARY KEY)",
    "INSERT INTO zqhushed_parents VALUES (1), (2)",
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, zqhushed_hidden VARCHAR(40) NOT NULL DEFAULT 'zqhushed_value', \
     owner INT NOT NULL, name VARCHAR(40), zqhushed_parent INT DEFAULT 1, age INT, \
     UNIQUE KEY zqhushed_key (name, zqhushed_hidden), FULLTEXT KEY zqhushed_text (name, zqhushed_hidden), \
     CONSTRAINT zqhushed_check CHECK (age < 100), \
     CONSTRAINT zqhushed_link FOREIGN KEY (zqhushed_parent) REFERENCES zqhushed_parents (id)) COMMENT 'zqhushed_comment'",
    "INSERT INTO t (owner, name, age) VALUES (1, 'a', 1), (1, 'b', 2), (2, 'zqhushed_name', 3), (1, 'c', 4)",
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, t_id INT, zqhushed_hidden VARCHAR(40) DEFAULT 'zqhushed_value', \
     zqhushed_number INT DEFAULT 1, more INT DEFAULT (zqhushed_number + 1), CONSTRAINT zqhushed_fk FOREIGN KEY (t_id) REFERENCES t (id))",
    "INSERT INTO u (t_id) VALUES (1), (2), (3)",
];

const HIDDEN: [&str; 2] = ["zqhushed_hidden", "zqhushed_parent"];

fn caller(db: &TestDb) -> Caller<'_> {
    let visible = json!({"omit": HIDDEN});
    let all = json!({
        "read": {"fields": visible, "rows": is_claim("owner", "sub")},
        "insert": {"fields": visible},
        "update": {"fields": visible, "rows": is_claim("owner", "sub")},
        "delete": {"rows": is_claim("owner", "sub")},
    });
    let of_u =
        json!({"read": {"fields": {"omit": ["zqhushed_hidden", "zqhushed_number"]}}, "insert": {"fields": ["t_id"]}});
    Caller::new(db, [("t", all), ("u", of_u)], json!({"sub": 1}))
}

fn holds_no_mark(answer: &Answer) {
    for (name, value) in &answer.headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        assert!(!value.contains(MARK), "{name}: {value} of {answer}");
    }
    let text = String::from_utf8_lossy(&answer.body);
    assert!(!text.contains(MARK), "{answer}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(token) = body["next"].as_str() else {
        return;
    };
    for part in token.split('.') {
        let part = part.trim_end_matches('=');
        let decoded = URL_SAFE_NO_PAD.decode(part).or_else(|_| STANDARD_NO_PAD.decode(part));
        let decoded = decoded.unwrap_or_else(|_| panic!("no base64: {token}"));
        assert!(!String::from_utf8_lossy(&decoded).contains(MARK), "{answer}");
    }
}

async fn no_answer_holds_a_hidden_name_or_value(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    let join = |kind: &str, nest: bool| {
        let on = json!({"source": "id", "target": "t_id"});
        json!([{"tableName": "u", "joinType": kind, "match": on, "nest": nest}])
    };
    for (rest, body) in [
        ("t", Value::Null),
        ("t?limit=1", Value::Null),
        ("t?limit=1&order[field]=name", Value::Null),
        ("t?limit=1&order[field]=age&count=true", Value::Null),
        ("t/1", Value::Null),
        ("t?distinct=true", Value::Null),
        ("t?omitFields=age", Value::Null),
        ("t/_schema", Value::Null),
        ("u/_schema", Value::Null),
        ("t/query", json!({"join": join("INNER JOIN", false)})),
        ("t/query", json!({"join": join("LEFT JOIN", true)})),
        ("t/query", json!({"join": join("RIGHT JOIN", false), "limit": 2})),
        (
            "u/query",
            json!({"join": [{"tableName": "t", "joinType": "RIGHT JOIN", "match": {"source": "t_id", "target": "id"}}]}),
        ),
        ("t/query", json!({"group": "owner"})),
        ("t/query", json!({"selectFields": [{"fieldName": "name", "aggregate": "MAX", "alias": "most"}]})),
        ("t", json!({"owner": 1, "age": 5})),
        ("t?onConflict=update", json!({"id": 1, "owner": 1, "age": 9})),
        ("t?onConflict=ignore", json!({"id": 1, "owner": 1, "age": 9})),
    ] {
        for accept in ["application/json", "text/csv", "application/x-ndjson"] {
            let call = match &body {
                Value::Null => caller.call(Method::GET, rest),
                body => caller.call(Method::POST, rest).json(body),
            };
            let answer = call.header("accept", accept).send().await;
            // Only JSON can contain a count.
            let counted = rest.contains("count") && accept != "application/json";
            assert_eq!(answer.status, if counted { 400 } else { 200 }, "{answer}");
            holds_no_mark(&answer);
        }
    }
    holds_no_mark(&caller.call(Method::OPTIONS, "t").send().await);
    let path = db.path("t");
    let batch = caller
        .batch(&[
            json!({"method": "GET", "path": path}),
            json!({"method": "GET", "path": format!("{path}/1")}),
            json!({"method": "POST", "path": path, "body": {"owner": 1, "name": "e"}}),
        ])
        .await;
    batch.payload();
    holds_no_mark(&batch);
}

async fn no_refusal_of_mariadb_holds_a_hidden_name_or_value(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    db.exec("ALTER TABLE t ADD COLUMN zqhushed_needed INT NOT NULL").await;
    let all = json!({"omit": ["zqhushed_hidden", "zqhushed_parent", "zqhushed_needed"]});
    let deletes =
        json!({"read": {"fields": all}, "update": {"fields": all}, "insert": {"fields": all}, "delete": true});
    let role = [("t", deletes), ("u", json!({"read": {"fields": ["id", "t_id"]}, "insert": {"fields": ["t_id"]}}))];
    let caller = Caller::new(&db, role, json!({}));
    let many = |name: &str| json!({"updateKeyValues": [{"key": "id", "value": [1, 2, 4]}], "data": {"name": name}});
    for (method, rest, body, code) in [
        // MariaDB's message shows the hidden key: Duplicate entry 'a-zqhushed_value' for key 'zqhushed_key'.
        (Method::PUT, "t/2", json!({"name": "a"}), ErrorCode::DuplicateKey),
        (Method::PUT, "t", many("a"), ErrorCode::DuplicateKey),
        (Method::PUT, "t/1", json!({"age": 100}), ErrorCode::InvalidValue),
        (Method::POST, "t", json!({"owner": 1, "name": "new"}), ErrorCode::InvalidValue),
        (Method::DELETE, "t/1", Value::Null, ErrorCode::ForeignKeyViolation),
        (Method::POST, "u", json!({"t_id": 77}), ErrorCode::ForeignKeyViolation),
        (
            Method::POST,
            "t/query",
            json!({"fullTextSearch": {"fields": ["name"], "searchTerm": "a"}}),
            ErrorCode::FulltextIndexMissing,
        ),
    ] {
        let call = caller.call(method.clone(), rest);
        let alone = if body.is_null() { call } else { call.json(&body) };
        let mut operation = json!({"method": method.as_str(), "path": format!("/api/v1/crud/{}/{rest}", db.name)});
        if !body.is_null() {
            operation["body"] = body.clone();
        }
        for answer in [alone.send().await, caller.batch(&[operation]).await] {
            let error = answer.refused(code);
            holds_no_mark(&answer);
            assert!(error["details"]["errno"].is_u64(), "MariaDB's number stays: {answer}");
        }
    }
    let state = db.exec("SELECT name, age FROM t ORDER BY id").await;
    let rows = json!([{"name": "a", "age": 1}, {"name": "b", "age": 2}, {"name": "zqhushed_name", "age": 3}, {"name": "c", "age": 4}]);
    assert_eq!(state, rows);
}

async fn a_refused_value_of_an_allowed_field_is_explained_as_for_a_full_key(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE up (id INT PRIMARY KEY)",
            "CREATE TABLE v (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(3) NOT NULL, kind ENUM('a', 'b'), \
             n TINYINT CHECK (n < 50), m INT, day DATE, at TIMESTAMP NULL, code INT UNIQUE, shown INT NOT NULL DEFAULT 1, up_id INT, \
             body VARCHAR(9), zqhushed_hidden VARCHAR(3) NOT NULL DEFAULT 'x', FULLTEXT KEY (body), \
             CONSTRAINT zqhushed_m CHECK (m < 50), CONSTRAINT zqhushed_two CHECK (m <> shown), \
             CONSTRAINT zqhushed_up FOREIGN KEY (up_id) REFERENCES up (id))",
            "INSERT INTO v (name, code) VALUES ('a', 7)",
            "CREATE TABLE w LIKE v",
            "CREATE TRIGGER w_hidden BEFORE INSERT ON w FOR EACH ROW BEGIN \
             IF NEW.name = 'w' THEN SET NEW.zqhushed_hidden = 'zqhushed_value'; END IF; \
             IF NEW.name = 'd' THEN SET NEW.day = 'zqhushed_value'; END IF; \
             IF NEW.name = 's' THEN SIGNAL SQLSTATE '22001' SET MYSQL_ERRNO = 1406, \
             MESSAGE_TEXT = 'Data too long for column ''name'': zqhushed_value'; END IF; END",
            "CREATE TABLE x (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(3), needed INT NOT NULL)",
        ],
    )
    .await;
    let given = json!(["id", "name", "kind", "n", "m", "day", "at", "code", "up_id", "body"]);
    let read = json!(["id", "name", "kind", "n", "m", "day", "at", "code", "up_id", "body", "shown"]);
    let rule = json!({"read": {"fields": read}, "insert": {"fields": given}, "update": {"fields": given}});
    let with_needed = json!({"read": true, "insert": {"fields": ["name"]}});
    let caller = Caller::new(&db, [("v", rule.clone()), ("w", rule), ("x", with_needed)], json!({}));
    let post = |table, body: Value| (Method::POST, table, body);
    let query = |condition: Value| (Method::POST, "v/query", json!({"query": condition}));
    let invalid = ErrorCode::InvalidValue;
    // Whether the whole error is shown, or only the field of it.
    for ((method, rest, body), code, is_whole) in [
        (post("v", json!({"name": "long"})), invalid, true),
        (post("v", json!({"name": null})), invalid, true),
        (post("v", json!({"kind": "a"})), invalid, true),
        (post("x", json!({"name": "a"})), invalid, true),
        (post("w", json!({"name": "a", "kind": "c"})), invalid, true),
        (post("w", json!({"name": null})), invalid, false),
        (post("v", json!({"name": "a", "n": 60})), invalid, true),
        (post("v", json!({"name": "a", "n": 600})), invalid, true),
        (post("v", json!({"batchData": [{"name": "a"}, {"name": "long"}]})), invalid, true),
        (post("v", json!({"name": "a", "at": "2500-01-01 00:00:00"})), invalid, true),
        (post("w", json!({"name": "a", "at": "2500-01-01 00:00:00"})), invalid, false),
        ((Method::PUT, "v/1", json!({"name": "long"})), invalid, true),
        ((Method::PUT, "v", json!({"where": {"id": 1}, "data": {"n": 70}})), invalid, true),
        (post("v", json!({"name": "a", "m": 60})), invalid, false),
        (post("v", json!({"name": "a", "code": 7})), ErrorCode::DuplicateKey, false),
        (post("v", json!({"name": "a", "up_id": 7})), ErrorCode::ForeignKeyViolation, false),
        (query(json!({"name": {"regexp": "(["}})), ErrorCode::SqlError, true),
        (query(json!({"body": {"value": "+", "equality": "MATCH_BOOLEAN"}})), ErrorCode::InvalidFilter, true),
    ] {
        let full = db.call(method.clone(), rest).json(&body).send().await;
        let mut expected = full.refused(code);
        let answer = caller.call(method.clone(), rest).json(&body).send().await;
        let mut found = answer.refused(code);
        holds_no_mark(&answer);
        for error in [&mut expected, &mut found] {
            error.as_object_mut().unwrap().remove("requestId");
        }
        let field = expected["details"]["field"].clone();
        assert!(field.is_string() || rest == "v/query", "{full}");
        assert_eq!(found["details"]["field"], field, "{answer}");
        assert_eq!(found == expected, is_whole, "{body}: {found} {expected}");
        let operation =
            json!({"method": method.as_str(), "path": format!("/api/v1/crud/{}/{rest}", db.name), "body": body});
        let answer = caller.batch(&[operation]).await;
        assert_eq!(answer.refused(code)["details"]["field"], field, "{answer}");
        holds_no_mark(&answer);
    }
    // A trigger's values are hidden, and so is what they are refused for in a hidden field; and a check of two fields.
    for (table, body, field) in [
        ("w", json!({"name": "w"}), Value::Null),
        ("w", json!({"name": "d"}), json!("day")),
        ("w", json!({"name": "s"}), json!("name")),
        ("v", json!({"name": "a", "m": 1}), Value::Null),
    ] {
        let answer = caller.post(table, &body).await;
        assert_eq!(answer.refused(invalid)["details"]["field"], field, "{answer}");
        holds_no_mark(&answer);
    }
}

async fn a_pattern_of_a_role_is_not_explained(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))", "INSERT INTO t VALUES (1, 'a')"])
            .await;
    let rule = json!({"read": {"rows": {"name": {"regexp": "(["}}}});
    let caller = Caller::new(&db, [("t", rule)], json!({}));
    let error = caller.get("t?limit=1").await.refused(ErrorCode::SqlError);
    assert_eq!(error["message"], "The database refused this.");
}

async fn pages_hold_no_value_of_a_hidden_key(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE k (zqhushed_code VARCHAR(20) PRIMARY KEY, name VARCHAR(20))",
            "INSERT INTO k VALUES ('zqhushed_1', 'a'), ('zqhushed_2', 'a'), ('zqhushed_3', 'b')",
            "CREATE TABLE i (id VARCHAR(20) PRIMARY KEY, name VARCHAR(20))",
            "INSERT INTO i VALUES ('zqhushed_1', 'a'), ('zqhushed_2', 'a'), ('zqhushed_3', 'b')",
        ],
    )
    .await;
    let hides = |field: &str| json!({"read": {"fields": {"omit": [field]}}, "insert": true});
    let caller = Caller::new(&db, [("k", hides("zqhushed_code")), ("i", hides("id"))], json!({}));
    for table in ["k", "i"] {
        for options in [
            "limit=1",
            "limit=1&order[field]=name",
            "limit=2&order[field]=name&order[strategy]=DESC&count=true",
            "limit=1&distinct=true",
        ] {
            let answer = caller.get(&format!("{table}?{options}")).await;
            answer.payload();
            holds_no_mark(&answer);
        }
        for id in ["zqhushed_1", "zqhushed_9"] {
            let answer = caller.get(&format!("{table}/{id}")).await;
            answer.refused(ErrorCode::RecordNotFound);
            holds_no_mark(&answer);
        }
    }
    // The answer to an insert does not contain the hidden key of the new record.
    assert_eq!(caller.post("i", &json!({"id": "zqhushed_5", "name": "c"})).await.payload(), Value::Null);
    let batch = json!({"batchData": [{"id": "zqhushed_6"}, {"id": "zqhushed_7"}]});
    assert_eq!(caller.post("i", &batch).await.payload(), json!([null, null]));
    let duplicate = caller.post("i", &json!({"id": "zqhushed_5"})).await;
    duplicate.refused(ErrorCode::DuplicateKey);
    holds_no_mark(&duplicate);
}

async fn a_page_token_of_one_caller_is_none_of_another(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let rule = json!({"read": {"fields": {"omit": HIDDEN}, "rows": is_claim("owner", "sub")}});
    let role = super::create_role(&super::role_of(&db, [("t", rule)]));
    let [one, other] = [1, 2].map(|sub| Caller::with_role(&db, &role, json!({"sub": sub})));
    let first = one.get("t?limit=1&order[field]=name").await.json();
    let token = first["next"].as_str().expect("a token").to_owned();
    let next = |caller: &Caller<'_>| caller.call(Method::GET, &format!("t?limit=1&order[field]=name&after={token}"));
    assert_eq!(next(&one).send().await.payload()[0]["name"], "b");
    next(&other).send().await.refused(ErrorCode::InvalidQueryOption);
    let full = db.call(Method::GET, "t?limit=1&order[field]=name").send().await.json();
    let full = full["next"].as_str().expect("a token");
    let foreign = one.get(&format!("t?limit=1&order[field]=name&after={full}")).await;
    foreign.refused(ErrorCode::InvalidQueryOption);
}

async fn a_schema_names_no_table_that_the_role_denies(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let target = async |rules: Vec<(&str, Value)>| {
        let caller = Caller::new(&db, rules, json!({}));
        let schema = caller.get("u/_schema").await.payload();
        let fields = schema["schema"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == "t_id").expect("a field")["references"].clone()
    };
    let u = || ("u", json!({"read": true}));
    let shown = json!({"table": "t", "field": "id"});
    for (rule, references) in [
        (None, Value::Null),
        (Some(json!({})), Value::Null),
        (Some(json!({"insert": true})), Value::Null),
        (Some(json!({"read": {"fields": ["name"]}})), Value::Null),
        (Some(json!({"read": {"fields": ["id"]}})), shown),
    ] {
        let of_t = rule.clone().map(|rule| ("t", rule));
        assert_eq!(target([u()].into_iter().chain(of_t).collect()).await, references, "{rule:?}");
    }
}
