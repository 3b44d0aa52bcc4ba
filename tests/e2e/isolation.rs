//! Tests that the session state of one request never affects the next request. Each statement that changes the session
//! is followed by many probes, so that some of them use the same connection.

pub(crate) mod stored_code;

use crate::host::{Answer, Call, Host};
use crate::second_origin::{SecondOrigin, Through};
use crate::service::shared;
use crate::test_db::{TestDb, unique};
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

/// More probes than a pool has connections, so that every connection is probed.
const PROBES: usize = 24;

/// Reads session state that statements may have changed.
const PROBE: &str = "SELECT @leak AS leak, @other AS other, @@autocommit AS ac, @@sql_mode AS mode, @@time_zone AS tz, \
    @@foreign_key_checks AS fk, @@unique_checks AS uq, @@character_set_client AS csc, @@character_set_results AS csr, @@collation_connection AS cc, \
    @@sql_select_limit AS lim, @@tx_isolation AS iso, @@tx_read_only AS ro, @@in_transaction AS trx, \
    @@max_statement_time AS mst, DATABASE() AS db, @@lc_time_names AS lc, CURRENT_ROLE() AS role, @@group_concat_max_len AS gc, @@last_insert_id AS lid";

cases! {
    Both: [
        session_settings_do_not_leak,
        settings_made_in_disguise_do_not_leak,
        temporary_tables_do_not_leak,
        open_transactions_do_not_leak,
        locks_do_not_leak,
        locks_are_gone_with_the_answer,
        what_a_view_runs_does_not_leak,
        table_locks_do_not_leak,
        the_default_schema_does_not_leak,
        prepared_statements_do_not_leak,
        a_trigger_that_dirties_the_session_does_not_leak_through_records,
        a_failed_statement_leaves_nothing_open,
        diagnostics_do_not_leak,
        projects_do_not_share_sessions,
        one_text_means_each_databases_own_table,
        records_run_in_clean_sessions,
    ],
    Own: [a_session_that_can_not_be_reset_is_not_used],
}

async fn probes(db: &TestDb, query: &str) -> Vec<Answer> {
    let mut answers = join_all((0..PROBES).map(|_| db.sql(query).send())).await;
    for _ in 0..4 {
        answers.push(db.sql(query).send().await);
    }
    answers
}

/// Runs each statement, and then checks that all sessions have the same state as before.
async fn leave_no_trace(db: &TestDb, statements: &[&str]) {
    let before = db.exec(PROBE).await;
    for statement in statements {
        let done = db.sql(statement).send().await;
        assert!(done.code() != "internal", "{done}");
        for answer in probes(db, PROBE).await {
            assert_eq!(answer.payload(), before, "{statement} is seen by the next request");
        }
    }
}

/// MariaDB before 10.2.4 can't reset a session, but the driver then reports a success.
async fn a_session_that_can_not_be_reset_is_not_used(_: Host) {
    let rows = "CREATE TABLE t SELECT 1 AS n UNION SELECT 2 UNION SELECT 3";
    let db = TestDb::new(Host::Origin, &[rows]).await;
    let through = Through::announcing(shared(), "10.01.19");
    let url = through.database_url();
    let start = move || {
        let settings = [("SELKIE_DATABASE_URL", url.as_str()), ("SELKIE_POOL_SIZE", "1")];
        let mut second = SecondOrigin::launch(shared(), &settings)?;
        second.wait_until_ready().map(|()| second)
    };
    let second = tokio::task::spawn_blocking(start).await.unwrap().unwrap();
    let call = |method, path: &str| Call::new(&second.origin, method, path).key(&shared().full_key);
    let limit = json!({"query": "SET SESSION sql_select_limit = 1", "database": db.name});
    let set = call(Method::POST, "/api/v1/sql").json(&limit).send();
    set.await.payload();
    let rows = call(Method::GET, &db.path("t")).send().await.payload();
    assert_eq!(rows.as_array().map(Vec::len), Some(3));
}

async fn session_settings_do_not_leak(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let statements = [
        "SET @leak = 'seen'",
        "SELECT @leak := 5",
        "SELECT 'x', 'y' INTO @leak, @other",
        "SET SESSION sql_mode = ''",
        "SET sql_mode = 'ANSI_QUOTES'",
        "SET time_zone = '+05:00'",
        "SET NAMES latin1",
        "SET CHARACTER SET latin1",
        "SET autocommit = 0",
        "SET foreign_key_checks = 0, unique_checks = 0",
        "SET sql_select_limit = 1",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION TRANSACTION READ ONLY",
        "SET @@session.max_statement_time = 12",
        "SET SESSION group_concat_max_len = 4",
        "SET lc_time_names = 'de_DE'",
    ];
    leave_no_trace(&db, &statements).await;
}

async fn settings_made_in_disguise_do_not_leak(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
            "CREATE PROCEDURE dirty() BEGIN SET @leak = 1; SET SESSION sql_mode = ''; END",
            "CREATE FUNCTION dirtying() RETURNS INT BEGIN SET @leak = 1; RETURN 1; END",
            "CREATE VIEW v AS SELECT dirtying() AS d",
        ],
    )
    .await;
    let statements = [
        "/* harmless */ SET @leak = 1",
        "/*!50000 SET @leak = 1 */",
        "/*M! SET @leak = 1 */",
        "-- harmless\nSET @leak = 1",
        "# harmless\nsEt @leak = 1",
        "CALL dirty()",
        "SELECT dirtying()",
        "DO dirtying()",
        "SELECT d FROM v",
        "INSERT INTO t (n) VALUES (dirtying())",
        "BEGIN NOT ATOMIC SET @leak = 1; SET time_zone = '+01:00'; END",
        "EXECUTE IMMEDIATE 'SET @leak = 1'",
        "SELECT 1 FROM DUAL WHERE (@leak := 7) = 7",
        "UPDATE t SET n = (@leak := 3)",
        "SELECT /*! @leak := 9 */",
        "INSERT INTO t (n) VALUES (1)",
    ];
    leave_no_trace(&db, &statements).await;
    // Requests for records run the function through a view and through a filter.
    let before = db.exec(PROBE).await;
    db.get("v").await.payload();
    for answer in probes(&db, PROBE).await {
        assert_eq!(answer.payload(), before, "reading a view is seen by the next request");
    }
}

async fn diagnostics_do_not_leak(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO t SELECT seq FROM seq_1_to_50"],
    )
    .await;
    for (probe, expected) in [
        ("SHOW WARNINGS", json!([])),
        ("SHOW ERRORS", json!([])),
        ("SELECT @@warning_count AS v, @@error_count AS w", json!([{"v": 0, "w": 0}])),
        ("BEGIN NOT ATOMIC GET DIAGNOSTICS @n = NUMBER; SELECT @n AS v; END", json!([{"v": 0}])),
        ("SELECT ROW_COUNT() AS v, LAST_INSERT_ID() AS w", json!([{"v": 0, "w": 0}])),
    ] {
        // The sessions are reset after these, and then the inserts fail in them.
        probes(&db, "DO 0").await;
        let record = json!({"id": 1});
        for refused in join_all((0..PROBES).map(|_| db.post("t", &record))).await {
            refused.refused(shared::error::ErrorCode::DuplicateKey);
        }
        for answer in probes(&db, probe).await {
            assert_eq!(answer.payload(), expected, "{probe}");
        }
    }
    for counted in probes(&db, "SELECT SQL_CALC_FOUND_ROWS id FROM t LIMIT 1").await {
        counted.payload();
    }
    for answer in probes(&db, "SELECT FOUND_ROWS() AS v").await {
        assert_ne!(answer.payload(), json!([{"v": 50}]));
    }
}

async fn temporary_tables_do_not_leak(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)"]).await;
    for statement in [
        "CREATE TEMPORARY TABLE gone (n INT)",
        "CREATE /* x */ TEMPORARY TABLE gone AS SELECT 1 AS n",
        "CREATE OR REPLACE TEMPORARY TABLE gone (n INT)",
    ] {
        db.exec(statement).await;
        for answer in probes(&db, "SELECT * FROM gone").await {
            answer.refused(shared::error::ErrorCode::TableNotFound);
        }
    }
    // A temporary table with the name of a real table hides it within its session.
    db.exec("CREATE TEMPORARY TABLE t (other INT)").await;
    for answer in probes(&db, "SELECT * FROM t").await {
        assert_eq!(answer.payload(), json!([{"n": 1}]));
    }
    for _ in 0..PROBES {
        assert_eq!(db.get("t").await.payload(), json!([{"n": 1}]));
    }
}

async fn open_transactions_do_not_leak(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"]).await;
    for opening in ["BEGIN", "START TRANSACTION", "SET autocommit = 0", "START TRANSACTION READ ONLY"] {
        db.sql(opening).send().await;
        let inserts = join_all((0..PROBES).map(|_| db.sql("INSERT INTO t (n) VALUES (1)").send())).await;
        for answer in inserts {
            assert_eq!(answer.payload()["affectedRows"], 1, "after {opening}");
        }
        db.post("t", &json!({"n": 2})).await.payload();
        let seen = db.behind("SELECT COUNT(*) FROM t");
        assert_eq!(seen.trim(), (PROBES + 1).to_string(), "after {opening} all is committed");
        db.exec("DELETE FROM t").await;
    }
    // A transaction that a statement left open is rolled back.
    db.exec("BEGIN NOT ATOMIC START TRANSACTION; INSERT INTO t (n) VALUES (5); END").await;
    for answer in probes(&db, "SELECT COUNT(*) AS c FROM t").await {
        assert_eq!(answer.payload(), json!([{"c": 0}]));
    }
}

async fn locks_do_not_leak(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let lock = unique("lock");
    for query in [
        format!("SELECT GET_LOCK('{lock}', 5) AS v"),
        format!("DO GET_LOCK('{lock}', 5)"),
        format!("SELECT /* */ get_lock('{lock}', 5)"),
    ] {
        db.exec(&query).await;
        let free = crate::case::eventually("the lock is free", std::time::Duration::from_secs(5), || async {
            (db.value(&format!("SELECT IS_FREE_LOCK('{lock}')")).await == 1).then_some(())
        });
        free.await;
    }
}

/// The locks are checked over another connection, since a later use of the same connection could free them.
async fn locks_are_gone_with_the_answer(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)"]).await;
    let lock = unique("lock");
    db.exec(&format!("SELECT GET_LOCK('{lock}', 5)")).await;
    let free = db.behind(&format!("SELECT IS_FREE_LOCK('{lock}')"));
    assert_eq!(free.trim(), "1");
    for statement in ["LOCK TABLES t WRITE", "BEGIN NOT ATOMIC START TRANSACTION; UPDATE t SET n = 2 WHERE id = 1; END"]
    {
        db.exec(statement).await;
        db.behind(&format!(
            "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1; UPDATE {}.t SET n = n + 10",
            db.name
        ));
    }
    assert_eq!(db.value("SELECT n FROM t").await, 21);
}

/// Checked with requests for records, since no session is reset before these.
async fn what_a_view_runs_does_not_leak(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1), (2), (3)",
            "CREATE FUNCTION ABS(n INT) RETURNS INT BEGIN SET sql_select_limit = 1; RETURN n; END",
        ],
    )
    .await;
    db.exec(&format!("CREATE VIEW `V` AS SELECT {}.ABS(1) AS d", db.name)).await;
    for reading in ["SELECT * FROM V", "SELECT d FROM t, `V` WHERE id < 3", "SELECT {db}.ABS(1)"] {
        db.exec(&reading.replace("{db}", &db.name)).await;
        for _ in 0..4 {
            let rows = db.get("t").await.payload();
            assert_eq!(rows.as_array().map(Vec::len), Some(3), "after {reading}");
        }
    }
}

async fn table_locks_do_not_leak(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)", "CREATE TABLE u (n INT)"]).await;
    for statement in ["LOCK TABLES t WRITE", "LOCK TABLES t READ", "LOCK /* x */ TABLE t WRITE"] {
        db.exec(statement).await;
        for answer in probes(&db, "INSERT INTO t VALUES (1)").await {
            assert_eq!(answer.payload()["affectedRows"], 1, "after {statement}");
        }
        for answer in probes(&db, "SELECT COUNT(*) FROM u").await {
            answer.payload();
        }
    }
}

async fn the_default_schema_does_not_leak(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    let other = TestDb::new(host, &["CREATE TABLE elsewhere (n INT)"]).await;
    db.exec(&format!("USE {}", other.name)).await;
    db.exec(&format!("/* x */ use {}", other.name)).await;
    for answer in probes(&db, "SELECT DATABASE() AS d").await {
        assert_eq!(answer.payload(), json!([{"d": db.name}]));
    }
    let unnamed = || host.sql(&json!({"query": "SELECT DATABASE() AS d"})).send();
    for answer in join_all((0..PROBES).map(|_| unnamed())).await {
        assert_eq!(answer.payload(), json!([{"d": Value::Null}]), "without `database` there is no default schema");
    }
    let dropped = TestDb::new(host, &[]).await;
    dropped.exec(&format!("DROP DATABASE {}", dropped.name)).await;
    for answer in probes(&db, "SELECT DATABASE() AS d").await {
        assert_eq!(answer.payload(), json!([{"d": db.name}]));
    }
}

async fn prepared_statements_do_not_leak(host: Host) {
    let db = TestDb::new(host, &[]).await;
    db.sql("PREPARE kept FROM 'SELECT 1'").send().await;
    for answer in probes(&db, "EXECUTE kept").await {
        assert_eq!(answer.code(), "sql_error", "{answer}");
    }
}

async fn a_trigger_that_dirties_the_session_does_not_leak_through_records(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"]).await;
    db.exec("CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW SET @leak = NEW.n").await;
    let before = db.exec(PROBE).await;
    db.post("t", &json!({"n": 5})).await.payload();
    db.post("t", &json!({"batchData": [{"n": 6}, {"n": 7}]})).await.payload();
    for answer in probes(&db, PROBE).await {
        assert_eq!(answer.payload(), before, "a trigger's variable is seen by the next request");
    }
}

async fn a_failed_statement_leaves_nothing_open(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, n INT)"]).await;
    let statements = [
        "BEGIN NOT ATOMIC SET @leak = 1; SELECT * FROM nope; END",
        "BEGIN NOT ATOMIC START TRANSACTION; INSERT INTO t VALUES (1, 1); SIGNAL SQLSTATE '45000'; END",
        "SELECT @leak := 1, (SELECT 1 UNION SELECT 2)",
    ];
    leave_no_trace(&db, &statements).await;
    let batch = json!({"batchData": [{"id": 1}, {"id": 1}]});
    db.post("t", &batch).await.refused(shared::error::ErrorCode::DuplicateKey);
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
    assert_eq!(db.post("t", &json!({"id": 1})).await.payload(), 1);
    assert_eq!(db.behind("SELECT COUNT(*) FROM t").trim(), "1");
}

async fn projects_do_not_share_sessions(host: Host) {
    let project = unique("apart");
    shared().create_project(&project);
    let full = shared().create_key(&project, "full", &[]).token;
    let body = json!({"query": "SELECT CURRENT_USER() AS u"});
    let db = TestDb::new(host, &[]).await;
    let own = db.exec("SELECT CURRENT_USER() AS u").await;
    for _ in 0..8 {
        let (theirs, ours) = tokio::join!(host.sql(&body).key(&full).send(), host.sql(&body).send());
        assert_eq!(ours.payload(), own);
        assert_ne!(theirs.payload(), own);
    }
}

/// A statement that was prepared for one database must not be run for another database that sends the same text.
async fn one_text_means_each_databases_own_table(host: Host) {
    let first = TestDb::new(host, &["CREATE TABLE t (id INT, v INT)", "INSERT INTO t VALUES (1, 1)"]).await;
    let second = TestDb::new(host, &["CREATE TABLE t (id INT, v TEXT)", "INSERT INTO t VALUES (1, 'two')"]).await;
    for _ in 0..3 {
        for (db, expected) in [(&first, json!([{"v": 1}])), (&second, json!([{"v": "two"}]))] {
            for answer in probes(db, "SELECT v FROM t WHERE id = 1").await {
                assert_eq!(answer.payload(), expected, "rows of another database");
            }
            let bound = (0..PROBES).map(|_| db.sql_with("SELECT v FROM t WHERE id = ?", json!([1])).send());
            for answer in join_all(bound).await {
                assert_eq!(answer.payload(), expected, "rows of another database");
            }
        }
    }
    for db in [&first, &second] {
        db.sql_with("UPDATE t SET v = ? WHERE id = ?", json!([7, 1])).send().await.payload();
        assert_eq!(db.behind("SELECT v FROM t").trim(), "7");
    }
    // Also checked after a table or database is created again, and after the default schema was dropped.
    first.exec("DROP TABLE t").await;
    first.exec("CREATE TABLE t (id INT, v DATE)").await;
    first.exec("INSERT INTO t VALUES (1, '2026-01-01')").await;
    for answer in probes(&first, "SELECT v FROM t WHERE id = 1").await {
        assert_eq!(answer.payload(), json!([{"v": "2026-01-01"}]));
    }
}

/// Requests for records share connections with SQL statements, whose settings must not change their results.
async fn records_run_in_clean_sessions(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE parent (id INT PRIMARY KEY)",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, p INT, word VARCHAR(3), at TIMESTAMP NULL, FOREIGN KEY (p) REFERENCES parent (id))",
            "INSERT INTO t (word, at) VALUES ('ü', '2026-01-01 12:00:00'), ('b', NULL)",
        ],
    )
    .await;
    let expected = db.get("t").await.payload();
    for statement in [
        "SET sql_select_limit = 1",
        "SET time_zone = '+05:00'",
        "SET NAMES latin1",
        "SET autocommit = 0",
        "SET SESSION TRANSACTION READ ONLY",
        "SET foreign_key_checks = 0",
        "SET sql_mode = ''",
        "SET SESSION max_statement_time = 0.001",
        "SET innodb_lock_wait_timeout = 0",
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, p INT, word VARCHAR(3), at TIMESTAMP NULL)",
        "BEGIN",
        "LOCK TABLES parent WRITE",
        "SET SESSION collation_connection = utf8mb4_bin",
        "SET last_insert_id = 77, insert_id = 99",
    ] {
        db.sql(statement).send().await;
        for answer in join_all((0..PROBES).map(|_| db.get("t"))).await {
            assert_eq!(answer.payload(), expected, "a list after {statement}");
        }
        db.sql(statement).send().await;
        let orphan = json!({"p": 99});
        for answer in join_all((0..PROBES).map(|_| db.post("t", &orphan))).await {
            answer.refused(shared::error::ErrorCode::ForeignKeyViolation);
        }
        db.sql(statement).send().await;
        let long = json!({"word": "far too long"});
        for answer in join_all((0..PROBES).map(|_| db.post("t", &long))).await {
            answer.refused(shared::error::ErrorCode::InvalidValue);
        }
        db.sql(statement).send().await;
        let inserted = db.post("t", &json!({"word": "new"})).await.payload();
        let seen = db.behind(&format!("SELECT COUNT(*) FROM t WHERE word = 'new' AND id = {inserted}"));
        assert_eq!(seen.trim(), "1", "an insert after {statement} is committed, under the id that was answered");
        db.delete(&format!("t/{inserted}")).await.payload();
    }
}
