//! How `{id}` finds a record: the column `id`, else the primary key, simple or composite, of any type.

use crate::host::{Host, enc};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        a_table_without_a_column_id_is_addressed_by_its_key,
        a_column_id_counts_before_the_key,
        a_composite_key_is_addressed_in_key_order,
        every_operation_takes_a_composite_key,
        a_whole_composite_key_may_be_encoded,
        a_composite_key_of_the_wrong_parts_changes_nothing,
        text_keys_are_taken_literally,
        dates_and_binaries_are_keys_too,
        a_table_without_any_key_has_no_single_records,
        an_id_is_never_read_loosely,
        an_auto_increment_key_of_another_name_is_answered,
    ],
}

async fn a_table_without_a_column_id_is_addressed_by_its_key(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (code INT PRIMARY KEY, x INT)", "INSERT INTO t VALUES (7, 1)"]).await;
    assert_eq!(db.get("t/7").await.payload(), json!({"code": 7, "x": 1}));
    assert_eq!(db.put("t/7", &json!({"x": 2})).await.payload(), 1);
    assert_eq!(db.delete("t/7").await.payload(), 1);
    db.get("t/7").await.refused(ErrorCode::RecordNotFound);
}

async fn a_column_id_counts_before_the_key(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (pk INT PRIMARY KEY, id INT UNIQUE)", "INSERT INTO t VALUES (1, 20), (20, 1)"],
    )
    .await;
    assert_eq!(db.get("t/20").await.payload(), json!({"pk": 1, "id": 20}));
    db.exec("CREATE TABLE upper (ID INT PRIMARY KEY, x INT)").await;
    db.exec("INSERT INTO upper VALUES (3, 4)").await;
    assert_eq!(db.get("upper/3").await.payload(), json!({"ID": 3, "x": 4}));
}

async fn a_composite_key_is_addressed_in_key_order(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (x INT, b VARCHAR(20), a INT, PRIMARY KEY (a, b))",
            "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 1), (3, 'comma, here', 2)",
        ],
    )
    .await;
    assert_eq!(db.get("t/1,two").await.payload()["x"], 2);
    assert_eq!(db.put("t/1,one", &json!({"x": 9})).await.payload(), 1);
    assert_eq!(db.delete("t/1,two").await.payload(), 1);
    db.get("t/1,nope").await.refused(ErrorCode::RecordNotFound);
    // The parts are in the wrong order: no such record, because a part has the wrong type or value.
    let swapped = db.get("t/two,1").await;
    swapped.refused(ErrorCode::RecordNotFound);
    assert_eq!(db.get("t/2,comma%2C%20here").await.payload()["x"], 3);
    for wrong in ["t/1", "t/1,one,extra"] {
        let answer = db.get(wrong).await;
        answer.refused(ErrorCode::InvalidValue);
    }
    assert_eq!(db.post("t", &json!({"a": 5, "b": "five"})).await.status, 200);
}

/// Commas within a part are encoded; commas between parts are not.
async fn every_operation_takes_a_composite_key(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (lang VARCHAR(20), day DATE, n BIGINT UNSIGNED, x INT, PRIMARY KEY (lang, day, n))"],
    )
    .await;
    for (lang, n) in [("de", "1"), ("a,b", "18446744073709551615"), ("%2C", "2"), ("", "3")] {
        let record = json!({"lang": lang, "day": "2026-11-20", "n": n, "x": 1});
        assert_eq!(db.post("t", &record).await.payload(), format!("{lang},2026-11-20,{n}"));
        let at = format!("t/{},2026-11-20,{n}", enc(lang));
        assert_eq!(db.get(&at).await.payload()["lang"], lang, "{at}");
        assert_eq!(db.put(&at, &json!({"x": 2})).await.payload(), 1, "{at}");
        let patch = db.call(Method::PATCH, &at).json(&json!({"x": 3})).send();
        assert_eq!(patch.await.payload(), 1, "{at}");
        assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE x = 3").await, 1, "{at}");
        assert_eq!(db.delete(&at).await.payload(), 1, "{at}");
        assert_eq!(db.delete(&at).await.payload(), 0, "{at}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
}

async fn a_whole_composite_key_may_be_encoded(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (a INT, b VARCHAR(20), x INT, PRIMARY KEY (a, b))"]).await;
    let id = db.post("t", &json!({"a": 1, "b": "two", "x": 5})).await.payload();
    let at = format!("t/{}", enc(id.as_str().unwrap()));
    assert!(at.contains("%2C"), "{at}");
    assert_eq!(db.get(&at).await.payload()["x"], 5);
    assert_eq!(db.put(&at, &json!({"x": 6})).await.payload(), 1);
    assert_eq!(db.delete(&at).await.payload(), 1);
}

async fn a_composite_key_of_the_wrong_parts_changes_nothing(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (a INT, b VARCHAR(20), x INT, PRIMARY KEY (a, b))",
            "INSERT INTO t VALUES (1, 'one', 1), (2, 'a,b', 1)",
        ],
    )
    .await;
    for id in ["1", "1,one,1", "1,one,", ",1,one", "2,a,b", "2%2Ca%2Cb"] {
        let at = format!("t/{id}");
        for answer in [db.get(&at).await, db.put(&at, &json!({"x": 9})).await, db.delete(&at).await] {
            answer.refused(ErrorCode::InvalidValue);
        }
    }
    // The right number of parts, but no record has this key.
    for id in ["x,one", "1,", ",one", "one,1"] {
        let at = format!("t/{id}");
        db.get(&at).await.refused(ErrorCode::RecordNotFound);
        assert_eq!(db.put(&at, &json!({"x": 9})).await.payload(), 0, "{id}");
        assert_eq!(db.delete(&at).await.payload(), 0, "{id}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE x = 1").await, 2, "nothing changed");
}

async fn text_keys_are_taken_literally(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (word VARCHAR(80) COLLATE utf8mb4_bin PRIMARY KEY)"]).await;
    let words = [
        "plain",
        "with space",
        "a/b",
        "50%",
        "a%2Fb",
        "q?x=1",
        "hash#1",
        "ünï",
        "日本",
        "🦭",
        "a+b",
        "a,b",
        "'",
        "\"",
        "`",
        "\\",
        "..x",
        "_schema!",
        "null",
        "0",
        "1e3",
        "a;b",
        "a&b=c",
    ];
    for word in words {
        assert_eq!(db.post("t", &json!({"word": word})).await.payload(), word);
        assert_eq!(db.get(&format!("t/{}", enc(word))).await.payload(), json!({"word": word}));
    }
    db.get("t/PLAIN").await.refused(ErrorCode::RecordNotFound);
    for word in words {
        assert_eq!(db.delete(&format!("t/{}", enc(word))).await.payload(), 1, "{word}");
    }
}

async fn dates_and_binaries_are_keys_too(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE days (day DATE PRIMARY KEY, x INT)",
            "INSERT INTO days VALUES ('2026-11-20', 1)",
            "CREATE TABLE uuids (id UUID PRIMARY KEY, x INT)",
            "INSERT INTO uuids VALUES ('123e4567-e89b-12d3-a456-426655440000', 1)",
            "CREATE TABLE money (amount DECIMAL(10,2) PRIMARY KEY, x INT)",
            "INSERT INTO money VALUES (1.50, 1)",
            "CREATE TABLE big (id BIGINT UNSIGNED PRIMARY KEY, x INT)",
            "INSERT INTO big VALUES (18446744073709551615, 1), (9007199254740993, 2), (9007199254740992, 3)",
        ],
    )
    .await;
    for rest in [
        "days/2026-11-20",
        "uuids/123e4567-e89b-12d3-a456-426655440000",
        "uuids/123E4567-E89B-12D3-A456-426655440000",
        "money/1.5",
        "money/1.50",
        "big/18446744073709551615",
    ] {
        assert_eq!(db.get(rest).await.payload()["x"], 1, "{rest}");
    }
    assert_eq!(db.get("big/9007199254740993").await.payload()["x"], 2);
}

async fn a_table_without_any_key_has_no_single_records(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (x INT)", "INSERT INTO t VALUES (1)"]).await;
    assert_eq!(db.get("t").await.payload(), json!([{"x": 1}]));
    db.get("t/1").await.refused(ErrorCode::RecordNotFound);
    db.put("t/1", &json!({"x": 2})).await.refused(ErrorCode::InvalidBody);
    db.delete("t/1").await.refused(ErrorCode::InvalidBody);
    assert_eq!(db.value("SELECT x FROM t").await, 1);
}

/// MariaDB compares `'1abc'` and 1 as equal; an id must not match so loosely.
async fn an_id_is_never_read_loosely(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, x INT)", "INSERT INTO t VALUES (0, 0), (1, 1), (2, 2)"],
    )
    .await;
    for id in ["1abc", "abc", "1.0001", "1%20OR%201=1", "1;", "0x1", "1%00", "true", "%27%27"] {
        let rest = format!("t/{id}");
        let answer = db.get(&rest).await;
        answer.refused(ErrorCode::RecordNotFound);
        assert_eq!(db.delete(&rest).await.payload(), 0, "{rest}");
        let answer = db.put(&rest, &json!({"x": 9})).await;
        assert_eq!(answer.payload(), 0, "{rest}");
    }
    // A path with an empty id is the path of the whole table, of which nothing is changed without conditions.
    assert_eq!(db.get("t/?order=id").await.payload(), db.get("t?order=id").await.payload());
    for answer in [db.delete("t/").await, db.put("t/", &json!({"x": 9})).await] {
        answer.refused(ErrorCode::InvalidBody);
    }
    for answer in [db.get("t//").await, db.delete("t//").await, db.put("t//", &json!({"x": 9})).await] {
        answer.refused(ErrorCode::RouteNotFound);
    }
    assert_eq!(db.column("t?order[field]=id", "x").await, [0, 1, 2]);
}

async fn an_auto_increment_key_of_another_name_is_answered(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (nr INT PRIMARY KEY AUTO_INCREMENT, x INT)"]).await;
    assert_eq!(db.post("t", &json!({"x": 5})).await.payload(), 1);
    assert_eq!(db.get("t/1").await.payload(), json!({"nr": 1, "x": 5}));
}
