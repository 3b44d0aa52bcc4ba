//! Concurrent inserts into tables of every kind. Some tables allow no shared statements, but the answers don't show it.

use super::{CALLERS, TABLE, all_at_once, as_they_come, count, hold, insert};
use crate::host::{Answer, Host};
use crate::records::coalesced_reads::while_locked;
use crate::test_db::TestDb;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Origin: [
        keys_of_every_kind_are_answered_as_alone,
        stored_code_sees_each_row_alone,
        an_engine_without_transactions_keeps_each_row_once,
        large_records_and_wide_ones_are_whole,
        what_happens_once_and_what_may_conflict_stay_so,
        a_table_that_changes_meanwhile_breaks_nobody,
    ],
}

async fn keys_of_every_kind_are_answered_as_alone(host: Host) {
    let counted = [
        ("id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY", ""),
        ("id TINYINT AUTO_INCREMENT PRIMARY KEY", ""),
        ("id INT(8) ZEROFILL AUTO_INCREMENT PRIMARY KEY", ""),
        ("id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY", "AUTO_INCREMENT = 9007199254740980"),
        ("id DOUBLE AUTO_INCREMENT PRIMARY KEY", ""),
        ("number INT AUTO_INCREMENT PRIMARY KEY", ""),
        ("number INT AUTO_INCREMENT UNIQUE", ""),
        ("id INT AUTO_INCREMENT, a INT DEFAULT 7, PRIMARY KEY (a, id), KEY (id)", ""),
        ("number INT AUTO_INCREMENT, a INT DEFAULT 7, PRIMARY KEY (a, number), KEY (number)", ""),
        ("id INT AS (v * 2) VIRTUAL, number INT AUTO_INCREMENT PRIMARY KEY", ""),
    ];
    let given = [
        ("id INT PRIMARY KEY", json!(["0", 5, -7, "2147483647"])),
        ("id VARCHAR(20) PRIMARY KEY", json!(["a", "A b", "ä,\"\\", ""])),
        ("id BIGINT UNSIGNED PRIMARY KEY", json!(["18446744073709551615", 1])),
        ("id DECIMAL(6,2) PRIMARY KEY", json!(["1.5", 2, "-3.25"])),
        ("id DATETIME(3) PRIMARY KEY", json!(["2026-01-02 03:04:05.678", "2026-01-02"])),
        ("id BINARY(4) PRIMARY KEY", json!(["YWJj", "YWJjZA=="])),
        ("id UUID PRIMARY KEY", json!(["123E4567-e89b-12d3-a456-426614174000"])),
        ("id ENUM('x','y') PRIMARY KEY", json!(["y", "x"])),
        ("id BIT(9) PRIMARY KEY", json!([257, 3])),
        ("id INT AUTO_INCREMENT PRIMARY KEY", json!([50, 60, 40])),
        ("id INT, a CHAR(3) DEFAULT 'k,1', PRIMARY KEY (id, a)", json!([1, 2])),
        ("a CHAR(3), b CHAR(4) DEFAULT 'k,1', id INT, PRIMARY KEY (a, b)", json!([1, 1, 2])),
    ];
    for (key, options) in counted {
        let made = |table: &str| format!("CREATE TABLE {table} (v INT NOT NULL, {key}) {options}");
        let db = TestDb::new(host, &[&made("t"), &made("alone")]).await;
        let bodies: Vec<_> = (0..40).map(|v| json!({"v": v})).collect();
        let mut alone = Vec::new();
        for body in &bodies {
            alone.push(db.post("alone", body).await.text());
        }
        let answers = all_at_once(&db, "t", &bodies).await;
        let mut at_once: Vec<_> = answers.iter().map(Answer::text).collect();
        if key.contains("AS (v * 2)") {
            assert_eq!(at_once, alone, "{key}");
        }
        alone.sort_unstable();
        at_once.sort_unstable();
        assert_eq!(at_once, alone, "{key}");
        for (v, answer) in answers.iter().enumerate() {
            let id = answer.payload();
            let id = id.as_str().map_or(id.to_string(), str::to_owned);
            let id = id.trim_end_matches(".0");
            let read = db.get(&format!("t/{id}?selectFields=v")).await;
            match read.code().as_str() {
                "ok" => assert_eq!(read.payload()["v"], v, "{key}"),
                // The table has no key, so its records can't be read by an id.
                _ => assert!(key.ends_with("UNIQUE"), "{key}: {read}"),
            }
        }
    }
    for (key, ids) in given {
        let made = |table: &str| format!("CREATE TABLE {table} (v INT NOT NULL, {key})");
        let db = TestDb::new(host, &[&made("t"), &made("alone")]).await;
        let ids = ids.as_array().unwrap();
        let bodies: Vec<_> = (0..3)
            .flat_map(|v| ids.iter().map(move |id| (v, id)))
            .map(|(v, id)| match key.starts_with("a CHAR(3), b") {
                true => json!({"v": v, "id": id, "a": format!("{v}{}", id)}),
                false => json!({"v": v, "id": id}),
            })
            .collect();
        let told = |answer: &Answer| answer.code() + &answer.json()["payload"].to_string();
        let mut alone = Vec::new();
        for body in &bodies {
            alone.push(told(&db.post("alone", body).await));
        }
        let answers = all_at_once(&db, "t", &bodies).await;
        let mut at_once: Vec<_> = answers.iter().map(told).collect();
        // The order of inserts with the same id is undefined.
        alone.sort_unstable();
        at_once.sort_unstable();
        assert_eq!(at_once, alone, "{key}");
    }
}

async fn stored_code_sees_each_row_alone(host: Host) {
    let made = [
        "CREATE TABLE log (v INT) ENGINE = Aria TRANSACTIONAL = 0",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL, number INT UNIQUE)",
        "CREATE TRIGGER seen BEFORE INSERT ON t FOR EACH ROW BEGIN \
           INSERT INTO log VALUES (NEW.v); \
           IF NEW.v % 10 = 3 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no threes'; END IF; \
         END",
        "CREATE VIEW seen_through AS SELECT * FROM t",
    ];
    let db = TestDb::new(host, &made).await;
    let bodies: Vec<_> = (0..CALLERS).map(|v| json!({"v": v})).collect();
    for table in ["t", "seen_through"] {
        for (v, answer) in (0..).zip(all_at_once(&db, table, &bodies).await) {
            match v % 10 {
                3 => assert!(answer.text().contains("no threes"), "{answer}"),
                _ => drop(answer.payload()),
            }
        }
    }
    assert_eq!(count(&db).await, 2 * CALLERS * 9 / 10);
    let logged = db.value("SELECT COUNT(*) AS n FROM log").await;
    assert_eq!(logged, 2 * CALLERS, "each row was tried once");
}

async fn an_engine_without_transactions_keeps_each_row_once(host: Host) {
    for engine in ["MyISAM", "Aria", "MEMORY"] {
        let made =
            format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL UNIQUE) ENGINE = {engine}");
        let db = TestDb::new(host, &[&made]).await;
        let bodies: Vec<_> = (0..CALLERS).map(|n| json!({"v": n / 2})).collect();
        let answers = all_at_once(&db, "t", &bodies).await;
        let taken = answers.iter().filter(|answer| answer.code() == "ok");
        assert_eq!(taken.count() as i64, CALLERS / 2, "{engine}");
        assert_eq!(count(&db).await, CALLERS / 2, "{engine}");
    }
}

async fn large_records_and_wide_ones_are_whole(host: Host) {
    let columns: Vec<_> = (0..400).map(|n| format!("c{n} INT")).collect();
    let made = [
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT NOT NULL, body LONGTEXT)".to_owned(),
        format!("CREATE TABLE wide (id INT PRIMARY KEY AUTO_INCREMENT, {})", columns.join(", ")),
    ];
    let db = TestDb::new(host, &[&made[0], &made[1]]).await;
    let size = |v: i64| [0, 100, 15_000, 17_000, 300_000][usize::try_from(v % 5).unwrap()];
    let bodies: Vec<_> = (0..CALLERS).map(|v| json!({"v": v, "body": "é\u{0}".repeat(size(v))})).collect();
    for (v, answer) in (0..).zip(all_at_once(&db, "t", &bodies).await) {
        let id = answer.payload();
        let found = db
            .value(&format!("SELECT CONCAT(v, ' ', CHAR_LENGTH(body), ' ', body = REPEAT(CONCAT('é', CHAR(0)), {})) AS x FROM t WHERE id = {id}", size(v)))
            .await;
        assert_eq!(found, format!("{v} {} 1", 2 * size(v)));
    }
    let wide = |v: i64| -> Value {
        let fields = (0..400).map(|n| (format!("c{n}"), json!(v * 400 + n)));
        Value::Object(fields.collect())
    };
    let bodies: Vec<_> = (0..60).map(wide).collect();
    for (v, answer) in (0..).zip(as_they_come(&db, "wide", &bodies).await) {
        let id = answer.payload();
        let mut row = db.get(&format!("wide/{id}")).await.payload();
        row.as_object_mut().unwrap().remove("id");
        assert_eq!(row, wide(v));
    }
}

async fn what_happens_once_and_what_may_conflict_stay_so(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    let calls = (0..CALLERS).map(|n| {
        let call = match n % 3 {
            0 => insert(&db, "t", &json!({"v": n, "u": n})),
            1 => insert(&db, "t", &json!({"v": 1, "u": -1})).header("idempotency-key", &format!("{}-once", db.name)),
            _ => insert(&db, "t?onConflict=ignore", &json!({"v": 2, "u": -2})),
        };
        async move { (n, call.send().await) }
    });
    let held = hold(&db, &["t"]).await;
    let answers = join_all(calls).await;
    held.await.unwrap();
    for (n, answer) in answers {
        match (n % 3, answer.code().as_str()) {
            (1, "idempotency_in_progress") | (_, "ok") => {}
            _ => panic!("{answer}"),
        }
    }
    assert_eq!(count(&db).await, CALLERS / 3 + 2);
}

async fn a_table_that_changes_meanwhile_breaks_nobody(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    db.post("t", &json!({"v": -1, "name": "a"})).await.payload();
    let bodies: Vec<_> = (0..CALLERS).map(|v| json!({"v": v, "name": "a"})).collect();
    let moved = "ALTER TABLE t MODIFY name VARCHAR(30) FIRST, DROP COLUMN u, ADD COLUMN w INT DEFAULT 5";
    let answers = while_locked(&db, moved, as_they_come(&db, "t", &bodies)).await;
    for (v, answer) in (0..).zip(answers) {
        let row = db.get(&format!("t/{}", answer.payload())).await.payload();
        assert_eq!((&row["v"], &row["name"], &row["w"]), (&json!(v), &json!("a"), &json!(5)));
    }
    let dropped = "ALTER TABLE t DROP COLUMN name";
    let answers = while_locked(&db, dropped, as_they_come(&db, "t", &bodies)).await;
    for answer in answers {
        answer.refused(ErrorCode::UnknownField);
    }
    assert_eq!(count(&db).await, 1 + CALLERS);
}
