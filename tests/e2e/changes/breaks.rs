//! Where the feed can't go on, it says so.

use super::{Copy, Page, call};
use crate::host::Host;
use crate::test_db::TestDb;
use shared::error::ErrorCode;

cases! {
    Both: [
        what_the_log_does_not_tell_ends_the_feed,
        what_does_not_concern_the_table_does_not_end_the_feed,
        changes_before_a_break_come_first,
        a_break_after_a_long_row_of_its_transaction_is_told,
        a_cascade_through_another_database_ends_the_feed,
        what_happens_in_another_database_does_not_end_the_feed,
    ],
}

const TABLES: [&str; 5] = [
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE orders (id INT PRIMARY KEY, user_id INT, total INT, \
     FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE)",
    "CREATE TABLE tree (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES tree (id) ON DELETE SET NULL)",
    "CREATE TABLE plain (id INT PRIMARY KEY, v INT) PARTITION BY HASH (id) PARTITIONS 3",
    "CREATE TABLE other (id INT PRIMARY KEY, v INT)",
];

async fn what_the_log_does_not_tell_ends_the_feed(host: Host) {
    for (table, statements, reason) in [
        ("plain", "ALTER TABLE plain ADD w INT DEFAULT 5", "schema_changed"),
        ("plain", "ALTER TABLE plain MODIFY v BIGINT", "schema_changed"),
        ("plain", "RENAME TABLE other TO old, plain TO other, old TO plain", "schema_changed"),
        ("plain", "RENAME TABLES other TO old, plain TO other, old TO plain", "schema_changed"),
        ("plain", "CREATE OR REPLACE TABLE plain (id INT PRIMARY KEY, v INT)", "schema_changed"),
        ("plain", "DROP TABLE plain; CREATE TABLE plain (id INT PRIMARY KEY, v INT)", "schema_changed"),
        ("plain", "TRUNCATE TABLE plain", "truncated"),
        ("plain", "ALTER TABLE plain TRUNCATE PARTITION p1", "truncated"),
        ("plain", "SET SESSION binlog_format = 'STATEMENT'; UPDATE plain SET v = 9", "statement_logged"),
        ("plain", "SET SESSION binlog_format = 'STATEMENT'; ANALYZE UPDATE plain SET v = 9", "statement_logged"),
        (
            "plain",
            "SET SESSION binlog_format = 'STATEMENT'; SET STATEMENT max_statement_time = 5 FOR UPDATE plain SET v = 9",
            "statement_logged",
        ),
        ("orders", "DELETE FROM users WHERE id = 1", "cascade"),
        ("tree", "DELETE FROM tree WHERE id = 1", "cascade"),
    ] {
        let db = TestDb::new(host, &TABLES).await;
        db.exec("INSERT INTO users VALUES (1, 'a')").await;
        db.exec("INSERT INTO orders VALUES (1, 1, 5)").await;
        db.exec("INSERT INTO tree VALUES (1, NULL), (2, 1)").await;
        db.exec("INSERT INTO plain VALUES (1, 1), (2, 2), (3, 3)").await;
        let mut copy = Copy::new(&db, table, &[]).await;
        db.behind(statements);
        let error = copy.ask(&format!("since={}", copy.token)).await.refused(ErrorCode::ResyncRequired);
        assert_eq!(error["details"]["reason"], reason, "{statements}: {error}");
        // Reading again mends it.
        copy.begin_again().await;
        copy.is_the_list().await;
        db.exec(&format!("INSERT INTO {table} (id) VALUES (100)")).await;
        assert_eq!(copy.catch_up(10).await.len(), 1, "{statements}");
        copy.is_the_list().await;
    }
}

async fn what_does_not_concern_the_table_does_not_end_the_feed(host: Host) {
    let db = TestDb::new(host, &TABLES).await;
    let mut copies = [Copy::new(&db, "plain", &[]).await, Copy::new(&db, "orders", &[]).await];
    db.exec("INSERT INTO users VALUES (1, 'a'), (2, 'b')").await;
    for statement in [
        "ALTER TABLE other ADD w INT COMMENT 'not plain'",
        "TRUNCATE other",
        "CREATE INDEX v ON plain (v)",
        "CREATE VIEW seen AS SELECT * FROM plain",
        "ANALYZE TABLE plain",
        "UPDATE users SET name = 'c' WHERE id = 1",
        "CREATE TEMPORARY TABLE plain (a INT); DROP TEMPORARY TABLE plain",
        "CREATE TABLE made SELECT * FROM plain",
        "DROP TABLE other",
    ] {
        db.behind(statement);
        for copy in &mut copies {
            assert_eq!(copy.catch_up(10).await, Vec::<serde_json::Value>::new(), "{statement}");
        }
    }
}

async fn changes_before_a_break_come_first(host: Host) {
    let db = TestDb::new(host, &TABLES).await;
    let begin = Page::of(&call(&db, "plain", "").send().await);
    db.exec("INSERT INTO plain VALUES (1, 1)").await;
    db.exec("TRUNCATE TABLE plain").await;
    let page = Page::of(&call(&db, "plain", &format!("since={}", begin.next)).send().await);
    assert_eq!(page.changes.len(), 1);
    assert!(!page.is_up_to_date);
    let next = call(&db, "plain", &format!("since={}", page.next)).send().await;
    assert_eq!(next.refused(ErrorCode::ResyncRequired)["details"]["reason"], "truncated");
}

/// The reader of the log passes the row on before the transaction ends.
async fn a_break_after_a_long_row_of_its_transaction_is_told(host: Host) {
    let letters = "CREATE TABLE letters (id INT PRIMARY KEY, user_id INT, body MEDIUMTEXT, \
                   FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE)";
    let db = TestDb::new(host, &[TABLES[0], letters]).await;
    db.exec("INSERT INTO users VALUES (1, 'a')").await;
    let begin = Page::of(&call(&db, "letters", "").send().await);
    db.behind(
        "START TRANSACTION; INSERT INTO letters VALUES (1, NULL, REPEAT('x', 2000000)); \
         DELETE FROM users WHERE id = 1; COMMIT",
    );
    let answer = call(&db, "letters", &format!("since={}", begin.next)).send().await;
    assert_eq!(answer.refused(ErrorCode::ResyncRequired)["details"]["reason"], "cascade");
}

async fn a_cascade_through_another_database_ends_the_feed(host: Host) {
    let db = TestDb::new(host, &[TABLES[0]]).await;
    let other = TestDb::new(host, &[]).await;
    let child = |name: &str, parent: &str| {
        format!(
            "CREATE TABLE {name} (id INT PRIMARY KEY, parent INT, \
             FOREIGN KEY (parent) REFERENCES {parent} (id) ON DELETE CASCADE)"
        )
    };
    other.behind(&child("orders", &format!("{}.users", db.name)));
    db.behind(&child("parts", &format!("{}.orders", other.name)));
    db.exec("INSERT INTO users VALUES (1, 'a')").await;
    other.exec("INSERT INTO orders VALUES (1, 1)").await;
    db.exec("INSERT INTO parts VALUES (1, 1)").await;
    let begin = Page::of(&call(&db, "parts", "").send().await);
    db.exec("DELETE FROM users WHERE id = 1").await;
    assert_eq!(db.value("SELECT COUNT(*) FROM parts").await, 0);
    let answer = call(&db, "parts", &format!("since={}", begin.next)).send().await;
    assert_eq!(answer.refused(ErrorCode::ResyncRequired)["details"]["reason"], "cascade");
}

async fn what_happens_in_another_database_does_not_end_the_feed(host: Host) {
    let db = TestDb::new(host, &TABLES).await;
    let other = TestDb::new(host, &["CREATE TABLE plain (id INT PRIMARY KEY, body MEDIUMTEXT)"]).await;
    other.behind("CREATE TABLE direct (id INT PRIMARY KEY) ENGINE = MyISAM");
    let mut copy = Copy::new(&db, "plain", &[]).await;
    let begin = Page::of(&call(&other, "plain", "").send().await);
    // MariaDB logs a rollback to a savepoint after changes in an engine without transactions.
    other.behind(
        "START TRANSACTION; SAVEPOINT one; INSERT INTO plain VALUES (1, REPEAT('x', 2000000)); \
         INSERT INTO direct VALUES (1); ROLLBACK TO one; COMMIT",
    );
    let answer = call(&other, "plain", &format!("since={}", begin.next)).send().await;
    assert_eq!(answer.refused(ErrorCode::ResyncRequired)["details"]["reason"], "statement_logged");
    for statement in [
        "ALTER TABLE plain ADD w INT COMMENT 'as in DB.plain, `DB`.`plain`'",
        "ALTER TABLE plain COMMENT \"it's DB.plain\"",
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; ALTER TABLE plain MODIFY w INT COMMENT '\\', ADD v INT COMMENT 'DB.plain'",
        "CREATE TABLE more (a VARCHAR(90) DEFAULT 'DB.plain') /* DB.plain */",
        "TRUNCATE plain",
        "DROP TABLE plain -- DB.plain",
    ] {
        let statement = statement.replace("DB", &db.name);
        other.behind(&statement);
        assert_eq!(copy.catch_up(10).await, Vec::<serde_json::Value>::new(), "{statement}");
    }
}
