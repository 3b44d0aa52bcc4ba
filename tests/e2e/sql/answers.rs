//! `POST /api/v1/sql`: the answers to statements of every kind.

use crate::host::Host;
use crate::service::shared;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        rows_are_objects,
        columns_of_one_name_are_numbered,
        a_statement_without_rows_says_what_it_did,
        ddl_is_a_statement,
        a_call_gives_its_result_sets,
        every_kind_of_parameter_is_bound,
        parameters_are_never_read_as_sql,
        a_statement_may_end_with_a_semicolon,
        compound_statements_are_one_statement,
        names_may_be_qualified,
        a_project_with_one_database_needs_no_name,
        databases_are_made_and_dropped,
        statements_of_many_kinds_run,
    ],
}

async fn rows_are_objects(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, name TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, NULL)"],
    )
    .await;
    assert_eq!(
        db.exec("SELECT id, name FROM t ORDER BY id").await,
        json!([{"id": 1, "name": "a"}, {"id": 2, "name": null}])
    );
    assert_eq!(db.exec("SELECT * FROM t WHERE id > 5").await, json!([]));
    let answer = db.sql("SELECT name, id FROM t WHERE id = 1").send().await;
    assert!(answer.text().contains(r#"{"name":"a","id":1}"#), "in the order of the statement: {answer}");
    assert_eq!(db.exec("SELECT 1 AS `a``b\"c`, 2 AS 'ü 🦭'").await[0].as_object().unwrap().len(), 2);
}

async fn columns_of_one_name_are_numbered(host: Host) {
    let db = TestDb::new(host, &[]).await;
    assert_eq!(db.exec("SELECT 1 AS a, 2 AS a, 3 AS a").await, json!([{"a": 1, "a_2": 2, "a_3": 3}]));
    for query in ["SELECT 1 AS a, 2 AS a_2, 3 AS a", "SELECT 1 AS a, 2 AS a, 3 AS a_2", "SELECT 1 AS a, 2 AS A"] {
        let row = db.exec(query).await[0].clone();
        let mut values: Vec<&Value> = row.as_object().unwrap().values().collect();
        values.sort_by_key(|value| value.as_i64());
        let expected: Vec<Value> = (1..=values.len()).map(Value::from).collect();
        assert_eq!(values, expected.iter().collect::<Vec<_>>(), "{query}: no column is lost: {row}");
        assert_eq!(values.len(), query.matches(" AS ").count(), "{query}: no column is lost: {row}");
    }
    // As many columns as a result may have. Counting from 2 for each name would take minutes.
    let row = db.exec(&format!("SELECT {}", ["1 a"; 65_535].join(","))).await[0].clone();
    assert_eq!((row.as_object().unwrap().len(), &row["a_65535"]), (65_535, &json!(1)));
}

async fn a_statement_without_rows_says_what_it_did(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"]).await;
    let inserted = db.exec("INSERT INTO t (n) VALUES (1), (2), (3)").await;
    assert_eq!(inserted["affectedRows"], 3, "{inserted}");
    assert_eq!(inserted["insertId"], 1, "{inserted}");
    assert!(inserted.get("warnings").is_some(), "{inserted}");
    let mut keys: Vec<&String> = inserted.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["affectedRows", "insertId", "warnings"]);
    assert_eq!(db.exec("UPDATE t SET n = n + 1 WHERE id > 1").await["affectedRows"], 2);
    assert_eq!(db.exec("DELETE FROM t").await["affectedRows"], 3);
    assert_eq!(db.exec("DO 1").await["affectedRows"], 0);
    assert_eq!(db.exec("INSERT INTO t (n) VALUES (7) RETURNING id, n").await, json!([{"id": 4, "n": 7}]));
}

async fn ddl_is_a_statement(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for query in [
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "ALTER TABLE t ADD INDEX (n)",
        "CREATE VIEW v AS SELECT n FROM t",
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        "CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC BEGIN DECLARE b INT; SET b = a + 1; RETURN b; END",
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.n = 1; SET NEW.n = NEW.n + 1; END",
        "CREATE SEQUENCE s START WITH 5",
        "TRUNCATE TABLE t",
    ] {
        assert_eq!(db.exec(query).await["affectedRows"], 0, "{query}");
    }
    assert_eq!(db.exec("SELECT f(4) AS v, NEXTVAL(s) AS n").await, json!([{"v": 5, "n": 5}]));
    for query in
        ["DROP SEQUENCE s", "DROP TRIGGER tr", "DROP FUNCTION f", "DROP PROCEDURE p", "DROP VIEW v", "DROP TABLE t"]
    {
        db.exec(query).await;
    }
}

async fn a_call_gives_its_result_sets(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (n INT)",
            "CREATE PROCEDURE two() BEGIN SELECT 1 AS a; SELECT 2 AS b UNION SELECT 3; END",
            "CREATE PROCEDURE one() SELECT 1 AS a",
            "CREATE PROCEDURE none() INSERT INTO t VALUES (1), (2)",
            "CREATE PROCEDURE fails() BEGIN SELECT 1 AS a; SELECT * FROM nope; END",
            "CREATE PROCEDURE takes(x INT) SELECT x * 2 AS d",
            "CREATE PROCEDURE empties() BEGIN SELECT 1 AS a WHERE 1 = 0; SELECT 2 AS b; END",
        ],
    )
    .await;
    assert_eq!(db.exec("CALL two()").await, json!([[{"a": 1}], [{"b": 2}, {"b": 3}]]));
    assert_eq!(db.exec("CALL one()").await, json!([{"a": 1}]));
    assert_eq!(db.exec("CALL empties()").await, json!([[], [{"b": 2}]]));
    assert!(db.exec("CALL none()").await.get("affectedRows").is_some());
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
    let taken = db.sql_with("CALL takes(?)", json!([21])).send().await.payload();
    assert_eq!(taken, json!([{"d": 42}]));
    // A result was sent before the error: the answer is an error or incomplete, but never a complete success.
    if let Ok(answer) = db.sql("CALL fails()").attempt().await {
        assert_ne!(answer.code(), "ok", "{answer}");
    }
    assert_eq!(db.exec("SELECT 1 AS fine").await, json!([{"fine": 1}]));
}

async fn every_kind_of_parameter_is_bound(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (value, expected) in [
        (json!(null), json!(null)),
        (json!(42), json!(42)),
        (json!(-1), json!(-1)),
        (json!(9_007_199_254_740_993_i64), json!("9007199254740993")),
        (json!(18_446_744_073_709_551_615_u64), json!("18446744073709551615")),
        (json!("text 🦭"), json!("text 🦭")),
        (json!(""), json!("")),
        (json!(1.5), json!(1.5)),
    ] {
        let answer = db.sql_with("SELECT ? AS v", json!([value])).send().await;
        let got = answer.payload()[0]["v"].clone();
        let same = got == expected || (value == json!(1.5) && got == "1.5");
        assert!(same, "{value} comes back as {got}");
    }
    for (query, params, expected) in [
        ("SELECT ? + 1 AS v", json!([41]), json!(42)),
        ("SELECT IF(?, 'yes', 'no') AS v", json!([true]), json!("yes")),
        ("SELECT IF(?, 'yes', 'no') AS v", json!([false]), json!("no")),
        ("SELECT ? IS NULL AS v", json!([null]), json!(1)),
        ("SELECT CONCAT(?, ?, ?) AS v", json!(["a", 1, "c"]), json!("a1c")),
        ("SELECT JSON_VALUE(?, '$.a[0]') AS v", json!(["{\"a\": [5]}"]), json!("5")),
        ("SELECT 'a?b' AS v, ? AS w", json!([1]), json!("a?b")),
        ("SELECT 1 AS v", json!([]), json!(1)),
    ] {
        let answer = db.sql_with(query, params).send().await;
        assert_eq!(answer.payload()[0]["v"], expected, "{answer}");
    }
}

async fn parameters_are_never_read_as_sql(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (v TEXT)"]).await;
    let texts = ["'", "\\'", "' OR 1=1 -- ", "'); DROP TABLE t; --", "?", "\u{0}", "\\", "%s", "\"", "`"];
    for text in texts {
        assert_eq!(db.sql_with("INSERT INTO t VALUES (?)", json!([text])).send().await.payload()["affectedRows"], 1);
        let rows = db.sql_with("SELECT v FROM t WHERE v = BINARY ?", json!([text])).send().await.payload();
        assert_eq!(rows, json!([{"v": text}]));
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, texts.len());
}

async fn a_statement_may_end_with_a_semicolon(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for query in [
        "SELECT 1 AS v;",
        "SELECT 1 AS v ; ",
        "SELECT 1 AS v;\n",
        " \n SELECT 1 AS v",
        "SELECT 1 AS v -- ; here",
        "SELECT /* ; */ 1 AS v",
        "SELECT 1 AS v # ;",
    ] {
        assert_eq!(db.exec(query).await, json!([{"v": 1}]), "{query:?}");
    }
    assert_eq!(db.exec("SELECT ';' AS v, \";'\" AS w, 1 AS `;`").await[0]["v"], ";");
}

async fn compound_statements_are_one_statement(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    db.exec("BEGIN NOT ATOMIC INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); END").await;
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
    db.exec("BEGIN NOT ATOMIC START TRANSACTION; INSERT INTO t VALUES (3); COMMIT; END").await;
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 3);
}

async fn names_may_be_qualified(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (5)"]).await;
    let answer = host.sql(&json!({"query": format!("SELECT n FROM {}.t", db.name)})).send().await;
    assert_eq!(answer.payload(), json!([{"n": 5}]));
    let unqualified = host.sql(&json!({"query": "SELECT n FROM t"})).send().await;
    unqualified.refused(ErrorCode::SqlError);
    let unknown = host.sql(&json!({"query": "SELECT 1", "database": "default_never_made"})).send().await;
    unknown.refused(ErrorCode::DatabaseNotFound);
}

async fn a_project_with_one_database_needs_no_name(host: Host) {
    let project = crate::test_db::unique("single");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let run = |query: String| host.sql(&json!({"query": query})).key(&key).send();
    run(format!("CREATE DATABASE {project}_one")).await.payload();
    run("CREATE TABLE t (n INT)".into()).await.payload();
    assert_eq!(run("SELECT DATABASE() AS d".into()).await.payload(), json!([{"d": format!("{project}_one")}]));
    run(format!("CREATE DATABASE {project}_two")).await.payload();
    run("SELECT * FROM t".into()).await.refused(ErrorCode::SqlError);
}

async fn databases_are_made_and_dropped(host: Host) {
    let name = crate::test_db::unique("default_made_");
    let run = |query: String| host.sql(&json!({"query": query})).send();
    run(format!("CREATE DATABASE {name}")).await.payload();
    host.get(&format!("/api/v1/crud/{name}/t")).send().await.refused(ErrorCode::TableNotFound);
    run(format!("DROP DATABASE {name}")).await.payload();
    host.get(&format!("/api/v1/crud/{name}/t")).send().await.refused(ErrorCode::DatabaseNotFound);
    run("CREATE DATABASE elsewhere".into()).await.refused(ErrorCode::PermissionDenied);
    run("CREATE DATABASE other_project".into()).await.refused(ErrorCode::PermissionDenied);
    // The underscore in the pattern of the project's databases is not a wildcard.
    run("CREATE DATABASE defaultXescaped".into()).await.refused(ErrorCode::PermissionDenied);
}

async fn statements_of_many_kinds_run(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)"]).await;
    for query in [
        "SHOW TABLES",
        "SHOW CREATE TABLE t",
        "DESCRIBE t",
        "EXPLAIN SELECT * FROM t",
        "ANALYZE SELECT * FROM t",
        "SHOW WARNINGS",
        "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT * FROM c",
        "VALUES (1), (2)",
        "(SELECT 1) UNION (SELECT 2)",
        "CHECK TABLE t",
        "SELECT * FROM t FOR UPDATE",
        "HELP 'x'",
    ] {
        db.sql(query).send().await.payload();
    }
    // A statement of MySQL that MariaDB doesn't have.
    let answer = db.sql("TABLE t").send().await;
    answer.refused(ErrorCode::SqlError);
    let text = db.host.call(Method::POST, "/api/v1/sql").bytes(json!({"query": "SELECT '日本🦭' AS v"}).to_string());
    assert_eq!(text.send().await.payload(), json!([{"v": "日本🦭"}]));
}
