//! Refusals of `POST /api/v1/sql` and their codes.

use crate::case::eventually;
use crate::host::Host;
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        a_second_statement_is_refused_before_anything_ran,
        bodies_of_the_wrong_shape_are_refused,
        the_number_of_parameters_must_be_right,
        lists_and_objects_are_no_parameters,
        the_cause_of_a_500_is_logged_under_its_request_id,
        faults_of_the_statement_are_sql_errors,
        a_result_of_too_many_columns_is_refused,
        refusals_of_mariadb_keep_their_meaning,
        other_schemas_are_denied,
        files_are_out_of_reach,
        the_hash_of_the_accounts_password_is_out_of_reach,
        the_server_is_out_of_reach,
        a_read_key_runs_no_statement,
        a_changed_password_of_the_account_locks_no_one_out,
        a_statement_that_signals_gets_the_code_of_its_number,
    ],
}

async fn a_second_statement_is_refused_before_anything_ran(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    for query in [
        "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
        "INSERT INTO t VALUES (1); SELECT 1",
        "INSERT INTO t VALUES (1);;SELECT 1",
        "INSERT INTO t VALUES (1); DROP TABLE t",
        "INSERT INTO t VALUES (1) /* x */ ; /* y */ SELECT 2",
        "INSERT INTO t VALUES (1); nonsense",
        "SELECT ';'; INSERT INTO t VALUES (1)",
    ] {
        let answer = db.sql(query).send().await;
        answer.refused(ErrorCode::SqlError);
        let answer = db.sql_with(query, json!([])).send().await;
        answer.refused(ErrorCode::SqlError);
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn bodies_of_the_wrong_shape_are_refused(host: Host) {
    for body in [
        json!({}),
        json!([]),
        json!("SELECT 1"),
        json!(1),
        Value::Null,
        json!({"query": 1}),
        json!({"query": null}),
        json!({"query": ["SELECT 1"]}),
        json!({"sql": "SELECT 1"}),
        json!({"query": "SELECT 1", "params": {}}),
        json!({"query": "SELECT 1", "params": "x"}),
        json!({"query": "SELECT 1", "database": 5}),
        json!({"query": "SELECT 1", "databse": "demo"}),
    ] {
        host.sql(&body).send().await.refused(ErrorCode::InvalidBody);
    }
    for query in ["", " ", ";"] {
        let answer = host.sql(&json!({"query": query})).send().await;
        assert_eq!(answer.status, 400, "{answer}");
    }
    for broken in ["", "{", "{\"query\": \"SELECT 1\"", "SELECT 1", "{\"query\": \"SELECT 1\"} x"] {
        let answer = host.call(Method::POST, "/api/v1/sql").bytes(broken).send().await;
        assert!(["invalid_json", "invalid_body"].contains(&answer.code().as_str()), "{answer}");
    }
    let twice = host.call(Method::POST, "/api/v1/sql").bytes(r#"{"query":"SELECT 1","query":"SELECT 2"}"#).send().await;
    assert_eq!(twice.status, 400, "{twice}");
    for database in ["mysql", "selkie", "information_schema", "nope"] {
        let answer = host.sql(&json!({"query": "SELECT 1", "database": database})).send().await;
        answer.refused(ErrorCode::DatabaseNotFound);
    }
}

async fn the_number_of_parameters_must_be_right(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    for (query, params) in [
        ("INSERT INTO t VALUES (?)", json!([])),
        ("INSERT INTO t VALUES (?)", json!([1, 2])),
        ("SELECT 1", json!([1])),
        ("SELECT ?, ?", json!([1])),
        ("SELECT '?'", json!([1])),
    ] {
        let answer = db.sql_with(query, params).send().await;
        answer.refused(ErrorCode::InvalidBody);
    }
    let none = db.sql("SELECT ?").send().await;
    none.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

/// MariaDB would compare with the list's text: `NOT IN ('[1]')` is true for all rows.
async fn lists_and_objects_are_no_parameters(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)"]).await;
    for (query, params, at, hint) in [
        ("DELETE FROM t WHERE id NOT IN (?)", json!([[1]]), 0, "IN (?, ?)"),
        ("DELETE FROM t WHERE id NOT IN (?)", json!([[]]), 0, "IN (?, ?)"),
        ("DELETE FROM t WHERE id > ? AND id < ?", json!([0, {"a": 5}]), 1, "string"),
        ("DELETE FROM t WHERE id <> ?", json!([{}]), 0, "string"),
    ] {
        let answer = db.sql_with(query, params).send().await;
        let error = answer.refused(ErrorCode::InvalidBody);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("params[{at}]")), "{answer}");
        assert!(error["hint"].to_string().contains(hint), "{answer}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 2);
}

async fn the_cause_of_a_500_is_logged_under_its_request_id(host: Host) {
    // The error that MariaDB reports when its disk fails.
    let query = "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1030, MESSAGE_TEXT = 'Got error 28 from engine'";
    let db = TestDb::new(host, &[]).await;
    let answer = db.sql(query).send().await;
    let error = answer.refused(ErrorCode::Internal);
    assert!(!error["message"].to_string().contains("error 28"), "{answer}");
    let id = error["requestId"].as_str().expect("an id");
    let limit = Duration::from_secs(10);
    eventually("the cause is logged", limit, async || {
        let log = shared().log();
        let mut lines = log.lines();
        lines.find(|line| {
            let of_request = line.contains(id) && line.to_uppercase().contains("ERROR");
            of_request && line.contains("1030: Got error 28 from engine")
        })?;
        Some(())
    })
    .await;
}

async fn faults_of_the_statement_are_sql_errors(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    for (query, errno) in [
        ("SELEKT 1", 1064),
        ("SELECT", 1064),
        ("SELECT * FROM t WHERE", 1064),
        ("SELECT n FROM t GROUP BY SUM(n)", 1111),
        ("SELECT (SELECT 1 UNION SELECT 2)", 1242),
        ("SELECT nofunction(1)", 1305),
        ("INSERT INTO t VALUES (1, 2)", 1136),
        ("CREATE TABLE t (n INT)", 1050),
        ("SELECT 1 COLLATE nothing", 1273),
    ] {
        let answer = db.sql(query).send().await;
        let error = answer.refused(ErrorCode::SqlError);
        assert_eq!(error["details"]["errno"], errno, "{answer}");
    }
}

/// MariaDB tells the number of columns in 16 bits, and numbers what it sends in 8 bits: after 255 more columns than fit,
/// or 254 and a parameter, a driver could take the descriptions of columns for rows.
async fn a_result_of_too_many_columns_is_refused(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT)"]).await;
    let list = |count: usize| ["1"; 65_536 + 255][..count].join(",");
    for (query, params) in [
        (format!("SELECT {}", list(65_536)), json!([])),
        (format!("SELECT {}", list(65_536 + 255)), json!([])),
        (format!("SELECT {} FROM t", list(65_536 + 255)), json!([])),
        (format!("SELECT ?,{}", list(65_536 + 253)), json!([1])),
    ] {
        let answer = db.sql_with(&query, params).send().await;
        let error = answer.refused(ErrorCode::SqlError);
        assert_eq!(error["message"], "The result has more than 65,535 columns, the maximum.", "{answer}");
        assert_eq!(db.value("SELECT 5").await, 5);
    }
}

async fn refusals_of_mariadb_keep_their_meaning(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, must INT NOT NULL, word VARCHAR(3), day DATE, tiny TINYINT, pos INT CHECK (pos > 0))",
            "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES t (id))",
            "INSERT INTO t (id, must) VALUES (1, 1)",
            "INSERT INTO c VALUES (1)",
        ],
    )
    .await;
    for (query, errno, code) in [
        ("INSERT INTO t (id, must) VALUES (1, 1)", 1062, ErrorCode::DuplicateKey),
        ("DELETE FROM t WHERE id = 1", 1451, ErrorCode::ForeignKeyViolation),
        ("INSERT INTO c VALUES (99)", 1452, ErrorCode::ForeignKeyViolation),
        ("INSERT INTO t (id, must) VALUES (2, NULL)", 1048, ErrorCode::InvalidValue),
        ("INSERT INTO t (id) VALUES (2)", 1364, ErrorCode::InvalidValue),
        ("INSERT INTO t (id, must) VALUES (2, 'x')", 1366, ErrorCode::InvalidValue),
        ("INSERT INTO t (id, must, day) VALUES (2, 1, '2026-02-30')", 1292, ErrorCode::InvalidValue),
        ("INSERT INTO t (id, must, tiny) VALUES (2, 1, 300)", 1264, ErrorCode::InvalidValue),
        ("INSERT INTO t (id, must, word) VALUES (2, 1, 'four')", 1406, ErrorCode::InvalidValue),
        ("INSERT INTO t (id, must, pos) VALUES (2, 1, -1)", 4025, ErrorCode::InvalidValue),
        ("SELECT * FROM nope", 1146, ErrorCode::TableNotFound),
        ("SELECT nope FROM t", 1054, ErrorCode::UnknownField),
        ("INSERT INTO t (nope) VALUES (1)", 1054, ErrorCode::UnknownField),
        ("USE default_nowhere", 1049, ErrorCode::DatabaseNotFound),
        ("SELECT n FROM mysql.user", 1142, ErrorCode::PermissionDenied),
        ("USE mysql", 1044, ErrorCode::PermissionDenied),
        ("SET GLOBAL max_connections = 5", 1227, ErrorCode::PermissionDenied),
    ] {
        let answer = db.sql(query).send().await;
        let error = answer.refused(code);
        assert_eq!(error["details"]["errno"], errno, "{answer}");
        assert_eq!(error["details"]["sqlState"].as_str().map(str::len), Some(5), "{answer}");
        let hint = error["hint"].as_str().unwrap_or_default();
        match errno {
            1048 => assert!(hint.contains("if it has a default"), "{answer}"),
            1292 => assert!(hint.contains("without an offset"), "{answer}"),
            _ => {}
        }
    }
}

async fn denied(db: &TestDb, query: &str) {
    let answer = db.sql(query).send().await;
    answer.refused(ErrorCode::PermissionDenied);
}

async fn other_schemas_are_denied(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for query in [
        "SELECT * FROM mysql.user",
        "SELECT * FROM mysql.global_priv",
        "SELECT * FROM selkie.anything",
        "INSERT INTO selkie.anything VALUES (1)",
        "CREATE TABLE selkie.mine (id INT)",
        "DROP DATABASE selkie",
        "DROP TABLE mysql.user",
        "CREATE TABLE mysql.mine (id INT)",
    ] {
        denied(&db, query).await;
    }
    let names = db.exec("SELECT SCHEMA_NAME AS n FROM information_schema.SCHEMATA").await;
    for row in names.as_array().unwrap() {
        let name = row["n"].as_str().unwrap();
        let own =
            name == "information_schema" || name == "demo" || name.starts_with("default") || name.starts_with("legacy");
        assert!(own, "the account sees the schema {name}");
    }
}

async fn the_hash_of_the_accounts_password_is_out_of_reach(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for query in [
        "SHOW GRANTS",
        "SHOW GRANTS FOR CURRENT_USER()",
        "SHOW CREATE USER",
        "SHOW /*! GRANTS */",
        "BEGIN NOT ATOMIC SHOW GRANTS; END",
        "EXECUTE IMMEDIATE 'SHOW GRANTS'",
    ] {
        denied(&db, query).await;
    }
    let prepared = db.sql_with("EXECUTE IMMEDIATE ?", json!(["SHOW GRANTS"])).send().await;
    prepared.refused(ErrorCode::PermissionDenied);
}

async fn files_are_out_of_reach(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (v TEXT)"]).await;
    for query in [
        "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
        "SELECT 'x' INTO OUTFILE '/tmp/selkie-out'",
        "SELECT 'x' INTO DUMPFILE '/tmp/selkie-dump'",
    ] {
        denied(&db, query).await;
    }
    // With symbolic links disabled, MariaDB ignores DATA DIRECTORY.
    db.exec("CREATE TABLE far (id INT) DATA DIRECTORY = '/tmp'").await;
    let made = db.exec("SHOW CREATE TABLE far").await.to_string();
    assert!(!made.contains("DIRECTORY"), "{made}");
    let local = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t";
    let answer = db.sql(local).send().await;
    answer.refused(ErrorCode::SqlError);
    assert_eq!(db.value("SELECT LOAD_FILE('/etc/passwd')").await, Value::Null);
    assert_eq!(db.behind("SELECT LOAD_FILE('/etc/passwd')"), "NULL\n", "MariaDB's administrator reads files");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
    let answer = db.sql_with(local, json!([])).send().await;
    answer.refused(ErrorCode::SqlError);
}

async fn the_server_is_out_of_reach(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for query in [
        "SHUTDOWN",
        "CREATE USER intruder",
        "GRANT ALL ON *.* TO CURRENT_USER",
        "FLUSH TABLES WITH READ LOCK",
        "INSTALL PLUGIN x SONAME 'y.so'",
        "SET GLOBAL general_log = 1",
        "SET GLOBAL sql_mode = ''",
        "CHANGE MASTER TO MASTER_HOST = 'x'",
        "DROP USER root@localhost",
        "CREATE ROLE boss",
        "SET SESSION sql_log_bin = 0",
        "PURGE BINARY LOGS BEFORE NOW()",
    ] {
        let answer = db.sql(query).send().await;
        answer.refused(ErrorCode::PermissionDenied);
    }
    // Without the PROCESS privilege, an account sees only its own connections.
    let users = db.exec("SELECT DISTINCT USER AS u FROM information_schema.PROCESSLIST").await;
    assert!(users.as_array().unwrap().len() <= 1, "{users}");
}

async fn a_read_key_runs_no_statement(host: Host) {
    for query in ["SELECT 1", "SHOW TABLES", "DROP DATABASE demo"] {
        let answer = host.sql(&json!({"query": query})).key(&shared().read_key).send().await;
        answer.refused(ErrorCode::FullAccessRequired);
    }
}

/// MariaDB lets an account change its own password without any right. This must not lock a project out.
async fn a_changed_password_of_the_account_locks_no_one_out(host: Host) {
    let project = unique("locked");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let run = |query: &str| host.sql(&json!({"query": query})).key(&key).send();
    run(&format!("CREATE DATABASE {project}_db")).await.payload();
    for query in [
        "SET PASSWORD = PASSWORD('hijacked')",
        "ALTER USER CURRENT_USER() IDENTIFIED BY 'hijacked'",
        "BEGIN NOT ATOMIC SET PASSWORD = PASSWORD('hijacked'); END",
        "EXECUTE IMMEDIATE 'SET PASSWORD = PASSWORD(''hijacked'')'",
    ] {
        // The statement is refused, or its effect is repaired afterwards.
        run(query).await;
        eventually("the project works on all connections", Duration::from_secs(15), || async {
            let answers = futures_util::future::join_all((0..24).map(|_| run("SELECT SLEEP(0.01)"))).await;
            answers.iter().all(|answer| answer.code() == "ok").then_some(())
        })
        .await;
    }
    // Kills all connections, since only new ones need the right password.
    let kills = shared()
        .root_sql(&format!(
            "SELECT CONCAT('KILL ', ID, ';') FROM information_schema.PROCESSLIST WHERE USER LIKE '%{project}%'"
        ))
        .unwrap();
    for kill in kills.lines() {
        // The kill fails if the connection has already ended.
        let _ = shared().root_sql(kill);
    }
    eventually("the project works on new connections", Duration::from_secs(15), || async {
        (run("SELECT 1").await.code() == "ok").then_some(())
    })
    .await;
}

/// Procedures of users can signal any error number, so this also tests the table of MariaDB's error numbers.
async fn a_statement_that_signals_gets_the_code_of_its_number(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (errno, state, code) in [
        (1062, "23000", ErrorCode::DuplicateKey),
        (1169, "23000", ErrorCode::DuplicateKey),
        (1586, "23000", ErrorCode::DuplicateKey),
        (1216, "23000", ErrorCode::ForeignKeyViolation),
        (1217, "23000", ErrorCode::ForeignKeyViolation),
        (1451, "23000", ErrorCode::ForeignKeyViolation),
        (1452, "23000", ErrorCode::ForeignKeyViolation),
        (1213, "40001", ErrorCode::Deadlock),
        (1205, "HY000", ErrorCode::LockTimeout),
        (1969, "70100", ErrorCode::QueryTimeout),
        (1048, "23000", ErrorCode::InvalidValue),
        (1264, "22003", ErrorCode::InvalidValue),
        (1406, "22001", ErrorCode::InvalidValue),
        (4025, "23000", ErrorCode::InvalidValue),
        (1044, "42000", ErrorCode::PermissionDenied),
        (1142, "42000", ErrorCode::PermissionDenied),
        (1143, "42000", ErrorCode::PermissionDenied),
        (1227, "42000", ErrorCode::PermissionDenied),
        (1146, "42S02", ErrorCode::TableNotFound),
        (1049, "42000", ErrorCode::DatabaseNotFound),
        (1054, "42S22", ErrorCode::UnknownField),
        (1644, "45000", ErrorCode::RejectedByDatabase),
        (1644, "23000", ErrorCode::RejectedByDatabase),
        (1643, "02000", ErrorCode::RejectedByDatabase),
        (1062, "45000", ErrorCode::RejectedByDatabase),
        (1213, "45000", ErrorCode::RejectedByDatabase),
    ] {
        let query = format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {errno}, MESSAGE_TEXT = 'raised'");
        let answer = db.sql(&query).send().await;
        let error = answer.refused(code);
        // The error has the signalled number; only a timeout's error may have another number.
        let told = error["details"]["errno"] == errno || code == ErrorCode::QueryTimeout;
        assert!(told, "{answer}");
    }
}
