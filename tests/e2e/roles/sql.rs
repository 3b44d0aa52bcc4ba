//! A role with `"sql": "read"`: its keys run statements that read, by the project's read-only account.

use super::{Caller, create_role, try_set};
use crate::host::{Answer, Host};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_role_with_sql_reads_by_statements_and_changes_nothing,
        a_role_without_sql_runs_no_statement,
        max_rows_cuts_the_result_of_a_statement,
        a_statement_of_a_role_ends_with_the_roles_timeout,
        nothing_of_a_statement_reaches_the_next,
        sql_is_described_and_offered_to_such_a_role,
    ],
    Origin: [sql_goes_with_no_limit_of_rows_fields_or_tables],
}

fn reader() -> Value {
    json!({"tables": {"*": {"read": true}}, "sql": "read"})
}

async fn notes(host: Host) -> TestDb {
    TestDb::new(
        host,
        &[
            "CREATE TABLE notes (id INT PRIMARY KEY, title VARCHAR(9))",
            "INSERT INTO notes VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        ],
    )
    .await
}

async fn sql(caller: &Caller<'_>, query: &str) -> Answer {
    let body = json!({"database": caller.db.name, "query": query});
    caller.db.host.call(Method::POST, "/api/v1/sql").key(&caller.key).json(&body).send().await
}

async fn a_role_with_sql_reads_by_statements_and_changes_nothing(host: Host) {
    let db = notes(host).await;
    let writer =
        json!({"tables": {"*": {"read": true, "insert": true, "update": true, "delete": true}}, "sql": "read"});
    for role in [reader(), writer] {
        let caller = Caller::with_role(&db, &create_role(&role), json!({}));
        for (query, rows) in [
            ("SELECT COUNT(*) AS n FROM notes", json!([{"n": 3}])),
            ("WITH x AS (SELECT id FROM notes) SELECT MAX(id) AS m FROM x", json!([{"m": 3}])),
            ("(SELECT 1 AS v) UNION (SELECT 2)", json!([{"v": 1}, {"v": 2}])),
            ("SELECT @x := 5 AS v", json!([{"v": 5}])),
        ] {
            assert_eq!(sql(&caller, query).await.payload(), rows, "{query}");
        }
        let body = json!({"query": format!("SELECT title FROM {}.notes WHERE id = ?", db.name), "params": [2], "database": db.name});
        let bound = host.call(Method::POST, "/api/v1/sql").key(&caller.key).json(&body).send().await;
        assert_eq!(bound.payload(), json!([{"title": "b"}]));
        assert_eq!(sql(&caller, "SHOW TABLES").await.payload().as_array().map(Vec::len), Some(1));
        assert_eq!(sql(&caller, "DESCRIBE notes").await.payload()[0]["Field"], "id");
        assert!(!sql(&caller, "EXPLAIN SELECT * FROM notes").await.payload().as_array().unwrap().is_empty());
        for query in [
            "INSERT INTO notes VALUES (4, 'd')",
            "UPDATE notes SET title = 'x'",
            "DELETE FROM notes",
            "REPLACE INTO notes VALUES (1, 'x')",
            "TRUNCATE TABLE notes",
            "DROP TABLE notes",
            "CREATE TABLE more (id INT)",
            "CREATE TEMPORARY TABLE more (id INT)",
            "ALTER TABLE notes ADD more INT",
            "SET @a = 1",
            "SET STATEMENT max_statement_time = 9 FOR SELECT 1",
            "DO GET_LOCK('x', 1)",
            "USE mysql",
            "KILL 1",
            "LOCK TABLES notes READ",
            "START TRANSACTION",
            "HANDLER notes OPEN",
            "CALL anything()",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "PREPARE s FROM 'SELECT 1'",
            "EXECUTE IMMEDIATE 'DELETE FROM notes'",
            "ANALYZE TABLE notes",
            "FLUSH TABLES",
            "SELECT * FROM notes FOR UPDATE",
            "SELECT * FROM notes LOCK IN SHARE MODE",
            "SELECT 1 INTO @x",
            "SELECT 'x' INTO OUTFILE '/tmp/selkie-role-sql'",
            "/*! DELETE FROM notes */",
            "SELECT /*! * FROM notes FOR UPDATE */ 1",
            "SHOW FULL PROCESSLIST",
            "SELECT info FROM information_schema.`processlist`",
            "SHOW EXPLAIN FOR 1",
            "EXPLAIN FOR CONNECTION 1",
        ] {
            sql(&caller, query).await.refused(ErrorCode::RoleForbids);
        }
        for query in [
            "SELECT * FROM mysql.global_priv",
            "SELECT * FROM selkie.api_key",
            "SHOW GRANTS",
            "SHOW CREATE USER CURRENT_USER()",
        ] {
            sql(&caller, query).await.refused(ErrorCode::PermissionDenied);
        }
        assert_eq!(sql(&caller, "SELECT LOAD_FILE('/etc/passwd') AS v").await.payload(), json!([{"v": null}]));
        let fault = sql(&caller, "SELECT nothing FROM notes").await.refused(ErrorCode::UnknownField);
        assert!(fault["message"].as_str().is_some_and(|message| message.contains("nothing")), "{fault}");
        sql(&caller, "SELECT 1; SELECT 2").await.refused(ErrorCode::SqlError);
    }
    assert_eq!(db.value("SELECT GROUP_CONCAT(title ORDER BY id) FROM notes").await, json!("a,b,c"));
}

async fn a_role_without_sql_runs_no_statement(host: Host) {
    let db = notes(host).await;
    for role in
        [json!({"tables": {"*": {"read": true}}}), json!({"tables": {"*": {"read": true}}, "sql": false}), json!({})]
    {
        let caller = Caller::with_role(&db, &create_role(&role), json!({}));
        for query in ["SELECT 1", "DELETE FROM notes", "SELEKT"] {
            let refusal = sql(&caller, query).await.refused(ErrorCode::RoleForbids);
            assert_eq!(refusal["message"], "The key's role may not run SQL.");
        }
    }
}

async fn max_rows_cuts_the_result_of_a_statement(host: Host) {
    let db = notes(host).await;
    let mut role = reader();
    role["maxRows"] = json!(2);
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    for (query, count, is_limited) in [
        ("SELECT id FROM notes", 2, true),
        ("SELECT id FROM notes LIMIT 2", 2, false),
        ("SELECT id FROM notes LIMIT 1", 1, false),
        ("SELECT seq FROM seq_1_to_1000000", 2, true),
        ("SELECT id FROM notes WHERE id > 9", 0, false),
        ("SHOW COLUMNS FROM notes", 2, false),
    ] {
        let answer = sql(&caller, query).await.json();
        assert_eq!(answer["payload"].as_array().map(Vec::len), Some(count), "{query}");
        assert_eq!(answer.get("limited"), is_limited.then_some(&json!(true)), "{query}");
    }
    let body = json!({"database": db.name, "query": "SELECT id FROM notes"});
    for form in ["text/csv", "application/x-ndjson"] {
        let call = host.call(Method::POST, "/api/v1/sql").key(&caller.key).header("accept", form).json(&body);
        call.send().await.refused(ErrorCode::RoleForbids);
    }
}

async fn a_statement_of_a_role_ends_with_the_roles_timeout(host: Host) {
    let db = notes(host).await;
    let mut role = reader();
    role["timeout"] = json!("300ms");
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    sql(&caller, "SELECT SLEEP(20)").await.refused(ErrorCode::QueryTimeout);
    assert_eq!(sql(&caller, "SELECT 1 AS v").await.payload(), json!([{"v": 1}]));
}

async fn nothing_of_a_statement_reaches_the_next(host: Host) {
    let db = notes(host).await;
    let caller = Caller::with_role(&db, &create_role(&reader()), json!({}));
    sql(&caller, "SELECT @kept := 5, GET_LOCK('kept', 1)").await.payload();
    for _ in 0..4 {
        assert_eq!(
            sql(&caller, "SELECT @kept AS v, IS_FREE_LOCK('kept') AS free").await.payload(),
            json!([{"v": null, "free": 1}])
        );
    }
}

async fn sql_is_described_and_offered_to_such_a_role(host: Host) {
    let db = notes(host).await;
    for (role, is_offered) in [(reader(), true), (json!({"tables": {"*": {"read": true}}}), false)] {
        let caller = Caller::with_role(&db, &create_role(&role), json!({}));
        let path = format!("/api/v1/openapi.json?database={}", db.name);
        let document = host.call(Method::GET, &path).key(&caller.key).send().await.json();
        assert_eq!(document["paths"].get("/sql").is_some(), is_offered);
        let call = |method: &str, params: Value| {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let call = host.call(Method::POST, "/mcp").key(&caller.key).json(&message);
            call.header("accept", "application/json, text/event-stream").send()
        };
        let listed = call("tools/list", json!({})).await.text();
        assert_eq!(listed.contains("run_sql"), is_offered, "{listed}");
        let query = json!({"name": "run_sql", "arguments": {"database": db.name, "query": "SELECT title FROM notes WHERE id = 3"}});
        let answer = call("tools/call", query).await.text();
        assert_eq!(answer.contains("role_forbids"), !is_offered, "{answer}");
        assert_eq!(answer.contains("title"), is_offered, "{answer}");
    }
}

async fn sql_goes_with_no_limit_of_rows_fields_or_tables(host: Host) {
    let db = notes(host).await;
    let notes = format!("{}.notes", db.name);
    let read = json!({"read": true});
    for (tables, said) in [
        (json!({}), "its tables must have"),
        (json!({notes.clone(): read}), "its tables must have"),
        (json!({format!("{}.*", db.name): read}), "its tables must have"),
        (json!({"*": read, notes.clone(): {}}), "may not read tables."),
        (json!({"*": read, notes.clone(): {"insert": true}}), "may not read tables."),
        (json!({"*": {"read": {"rows": {"id": 1}}}}), "limits rows or fields"),
        (json!({"*": read, notes.clone(): {"read": {"rows": {"id": 1}}}}), "limits rows or fields"),
        (json!({"*": read, notes.clone(): {"read": {"fields": ["id"]}}}), "limits rows or fields"),
        (json!({"*": read, notes.clone(): {"read": {"fields": {"omit": ["title"]}}}}), "limits rows or fields"),
        (json!({"*": read, notes.clone(): {"read": true, "delete": {"rows": {"id": 1}}}}), "limits rows or fields"),
        (json!({"*": read, notes: {"read": true, "update": {"fields": ["title"]}}}), "limits rows or fields"),
    ] {
        let role = json!({"tables": tables, "sql": "read"});
        let output = try_set(shared(), "default", &unique("role"), &role.to_string());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains("wrong at sql: ") && text.contains(said), "{role}: {text}");
    }
    for wrong in [json!("write"), json!(true)] {
        let role = json!({"tables": {"*": read}, "sql": wrong});
        let output = try_set(shared(), "default", &unique("role"), &role.to_string());
        assert!(String::from_utf8_lossy(&output.stderr).contains("it must be \"read\" or false"), "{wrong}");
    }
}
