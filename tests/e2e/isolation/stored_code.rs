//! Stored code can change the session of a harmless-looking statement: functions with names of MariaDB's own, views,
//! triggers, and statements that fail half-way. Checked by reads of records, before which no session is reset.

use crate::host::Host;
use crate::test_db::{TestDb, unique};
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        functions_named_like_mariadbs_own_do_not_leak,
        a_lock_of_such_a_function_is_gone_with_the_answer,
        a_character_set_left_by_a_function_breaks_no_request,
        what_a_read_left_before_it_failed_does_not_leak,
        a_trigger_on_the_table_of_receipts_does_not_leak,
        xa_is_refused_in_every_form,
        a_prepared_xa_transaction_breaks_no_connection,
    ],
    Origin: [no_name_of_mariadbs_own_lets_a_function_leak],
}

const TABLE: [&str; 2] = [
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, at TIMESTAMP NULL, word VARCHAR(9) CHARACTER SET latin1)",
    "INSERT INTO t (id) VALUES (1), (2), (3)",
];

/// Reads more rows than a session with `sql_select_limit = 1` returns, over several connections.
async fn all_rows_are_read(db: &TestDb, after: &str) {
    for _ in 0..4 {
        let rows = db.get("t").await.payload();
        assert_eq!(rows.as_array().map(Vec::len), Some(3), "after {after}");
    }
}

async fn functions_named_like_mariadbs_own_do_not_leak(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    for name in ["mid", "count", "substr", "against", "abs", "ifnull"] {
        db.exec(&format!(
            "CREATE FUNCTION `{name}` (n INT) RETURNS INT BEGIN SET sql_select_limit = 1; SET time_zone = '+09:00'; RETURN n; END"
        ))
        .await;
        for query in [
            format!("SELECT {name} (1)"),
            format!("SELECT {name}/**/(1)"),
            format!("SELECT {name}-- x\n(1)"),
            format!("SELECT {name}\t(1) FROM t WHERE id < 3"),
            format!("SELECT {name}(1)"),
            format!("SELECT `{name}`(1)"),
            format!("SELECT {}.{name}(1)", db.name),
        ] {
            // An error is ignored: some calls run MariaDB's own function, with too few arguments.
            db.sql(&query).send().await;
            all_rows_are_read(&db, &query).await;
            db.put("t/1", &json!({"at": "2026-01-01 12:00:00"})).await.payload();
            let stored = db.behind("SET time_zone = '+00:00'; SELECT at FROM t WHERE id = 1");
            assert_eq!(stored.trim(), "2026-01-01 12:00:00", "after {query}");
        }
    }
}

/// Reads the names of functions and keywords from MariaDB, so that names of newer versions are tested too.
async fn no_name_of_mariadbs_own_lets_a_function_leak(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    let names = db.behind(
        "SELECT LOWER(WORD) FROM information_schema.KEYWORDS WHERE WORD RLIKE '^[A-Z0-9_]+$' \
         UNION SELECT LOWER(FUNCTION) FROM information_schema.SQL_FUNCTIONS",
    );
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() > 500, "{names:?}");
    db.exec("CREATE FUNCTION leaves_a_limit () RETURNS INT BEGIN SET sql_select_limit = 1; RETURN 1; END").await;
    let functions: Vec<String> = names
        .iter()
        .map(|name| format!("CREATE FUNCTION `{name}` (n INT) RETURNS INT RETURN leaves_a_limit();\n"))
        .collect();
    db.behind(&functions.concat());
    for name in names {
        for query in [format!("SELECT {name}(1)"), format!("SELECT {name} (1)")] {
            if db.sql(&query).send().await.code() == "ok" {
                let rows = db.get("t").await.payload();
                assert_eq!(rows.as_array().map(Vec::len), Some(3), "after {query}");
            }
        }
    }
}

/// Checked over another connection, so that no later use of the same connection can free the lock.
async fn a_lock_of_such_a_function_is_gone_with_the_answer(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    let lock = unique("lock");
    db.exec(&format!("CREATE FUNCTION `mid` (n INT) RETURNS INT RETURN GET_LOCK('{lock}', 5) + n")).await;
    // The second statement fails after the function has run.
    for query in ["SELECT mid (1)", "SELECT mid (id), (SELECT id FROM t) FROM t"] {
        db.sql(query).send().await;
        let free = db.behind(&format!("SELECT IS_FREE_LOCK('{lock}')"));
        assert_eq!(free.trim(), "1", "after {query}");
    }
}

/// The driver returns bytes in the session's character set, which may not be UTF-8.
async fn a_character_set_left_by_a_function_breaks_no_request(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    db.exec("CREATE FUNCTION `mid` (n INT) RETURNS INT BEGIN SET NAMES latin1; RETURN n; END").await;
    for (row, charset) in ["cp1251", "greek", "koi8r", "hebrew"].iter().enumerate() {
        db.sql("SELECT mid (1)").send().await;
        // Selkie reads the characters of a set when a table first uses it.
        let table = format!("in_{charset}");
        db.exec(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, word VARCHAR(9) CHARACTER SET {charset})")).await;
        db.sql("SELECT mid (1)").send().await;
        assert_eq!(db.post(&table, &json!({"id": row, "word": "a"})).await.payload(), row);
        assert_eq!(db.column(&format!("{table}?query={{\"word\":\"a\"}}"), "word").await, ["a"]);
    }
}

async fn what_a_read_left_before_it_failed_does_not_leak(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    for statement in [
        "CREATE FUNCTION fail_at_2 (n INT) RETURNS INT BEGIN SET sql_select_limit = 1; \
         IF n = 2 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'two'; END IF; RETURN n; END",
        "CREATE VIEW v AS SELECT id, fail_at_2(id) AS d FROM t",
        "CREATE TABLE w (id INT PRIMARY KEY)",
        "CREATE TRIGGER tr BEFORE INSERT ON w FOR EACH ROW SET NEW.id = fail_at_2(NEW.id)",
    ] {
        db.exec(statement).await;
    }
    for reading in ["v", "v?count=true&limit=1", "v/2", "v?explain=true"] {
        db.get(reading).await;
        all_rows_are_read(&db, reading).await;
    }
    for body in [json!({"id": 2}), json!({"batchData": [{"id": 1}, {"id": 2}]})] {
        db.post("w", &body).await;
        all_rows_are_read(&db, &format!("inserting {body}")).await;
    }
    db.sql("INSERT INTO w VALUES (1), (2)").send().await;
    all_rows_are_read(&db, "SQL that failed").await;
}

/// A project can add triggers to its table of receipts.
async fn a_trigger_on_the_table_of_receipts_does_not_leak(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    let insert = |key: &str| {
        let body = json!({"word": "a"});
        let call = db.call(reqwest::Method::POST, "w").json(&body);
        call.header("idempotency-key", key)
    };
    db.exec("CREATE TABLE w (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(9))").await;
    insert("\"first\"").send().await.payload();
    db.behind("CREATE TRIGGER tr BEFORE INSERT ON selkie_receipts FOR EACH ROW SET sql_select_limit = 1");
    insert("\"second\"").send().await.payload();
    all_rows_are_read(&db, "an insert with a key").await;
}

async fn xa_is_refused_in_every_form(host: Host) {
    let db = TestDb::new(host, &TABLE).await;
    let xid = unique("xa");
    for query in [
        format!("XA START '{xid}'"),
        format!("/*!XA*/ BEGIN '{xid}'"),
        format!("XA COMMIT '{xid}'"),
        "XA RECOVER".to_owned(),
        format!("BEGIN NOT ATOMIC XA START '{xid}'; XA END '{xid}'; XA PREPARE '{xid}'; END"),
        format!("CREATE PROCEDURE p() BEGIN XA START '{xid}'; XA END '{xid}'; END"),
        format!("EXECUTE IMMEDIATE 'XA START ''{xid}'''"),
        format!("PREPARE s FROM \"XA START '{xid}'\""),
    ] {
        db.sql(&query).send().await.refused(ErrorCode::PermissionDenied);
    }
    let given = json!([format!("XA START '{xid}'")]);
    db.sql_with("BEGIN NOT ATOMIC EXECUTE IMMEDIATE ?; END", given).send().await.refused(ErrorCode::PermissionDenied);
    // A column's name and a text are no XA statements.
    db.exec("CREATE TABLE x (xa INT)").await;
    for query in ["SELECT xa FROM x", "SELECT 'XA START' AS a", "SELECT xa AS `end` FROM x"] {
        db.exec(query).await;
    }
    assert_eq!(db.get("x").await.payload(), Value::Array(Vec::new()));
}

/// Selkie can't see statements that are composed at run time. After XA PREPARE, MariaDB's reset leaves a session that
/// can't read its tables.
async fn a_prepared_xa_transaction_breaks_no_connection(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (n INT)"]).await;
    let xid = unique("xa");
    let step = |verb: &str| format!("EXECUTE IMMEDIATE CONCAT('X', 'A {verb} ''{xid}''')");
    db.exec(&format!(
        "BEGIN NOT ATOMIC {}; INSERT INTO t VALUES (1); {}; {}; END",
        step("START"),
        step("END"),
        step("PREPARE")
    ))
    .await;
    for answer in super::probes(&db, "SELECT COUNT(*) AS c FROM t").await {
        assert_eq!(answer.payload(), json!([{"c": 0}]));
    }
    assert_eq!(db.get("t").await.payload(), json!([]));
    // The metrics show the prepared transaction to the operator.
    let metrics = crate::host::Call::new(Host::Origin.url(), reqwest::Method::GET, "/metrics");
    let metrics = metrics.send().await.text();
    let count = metrics.lines().find_map(|line| {
        let count = line.strip_prefix("selkie_prepared_xa_transactions ")?;
        count.parse::<u32>().ok()
    });
    assert!(count.is_some_and(|count| count > 0), "{count:?}");
    let doctor = crate::service::shared().cli(&["doctor"]).stdout;
    let doctor = String::from_utf8_lossy(&doctor).into_owned();
    assert!(doctor.contains("prepared XA"), "{doctor}");
    db.behind(&format!("XA COMMIT '{xid}'"));
    assert_eq!(db.get("t").await.payload(), json!([{"n": 1}]));
}
