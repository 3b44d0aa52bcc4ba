//! Any name that MariaDB allows works: percent-encoded in a path, unchanged in JSON.

use crate::host::{Host, enc, option};
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;

/// Names that would break a statement, a path or JSON if they were not quoted or escaped.
const ODD: &[&str] = &[
    "back`tick",
    "``",
    "double\"quote",
    "single'quote",
    "dot.ted",
    "with space",
    " lead",
    "percent%41",
    "%",
    "slash/ed",
    "back\\slash",
    "ünï",
    "日本語",
    "a;DROP TABLE x",
    "--",
    "/*",
    "#",
    "?",
    "&=",
    "+",
    "select",
    "1",
    "1e5",
    "-5",
    "query",
    "_schema",
    "a,b",
    "[x]",
    "{}",
    "null",
    "NULL",
    "tab\ttab",
    "line\nline",
    "quote'`\"\\",
    "@@version",
    "$",
    "é",
    "e\u{301}",
    "*",
];

cases! {
    Both: [
        odd_table_names_work,
        odd_field_names_work,
        an_odd_database_name_works,
        names_of_all_scripts_are_shown_as_themselves,
        names_of_64_characters_work,
        field_names_count_in_any_case_as_in_mariadb,
    ],
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

async fn odd_table_names_work(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for name in ODD {
        db.exec(&format!("CREATE TABLE {} (id INT PRIMARY KEY AUTO_INCREMENT, x INT)", quoted(name))).await;
        let table = enc(name);
        assert_eq!(db.post(&table, &json!({"x": 1})).await.payload(), 1, "{name:?}");
        assert_eq!(db.get(&table).await.payload(), json!([{"id": 1, "x": 1}]), "{name:?}");
        assert_eq!(db.put(&format!("{table}/1"), &json!({"x": 2})).await.payload(), 1, "{name:?}");
        assert_eq!(db.get(&format!("{table}/1?selectFields=x")).await.payload(), json!({"x": 2}), "{name:?}");
        let schema = db.get(&format!("{table}/_schema")).await.payload();
        assert_eq!(schema["schema"].as_array().map(Vec::len), Some(2), "{name:?}: {schema}");
        assert_eq!(db.delete(&format!("{table}/1")).await.payload(), 1, "{name:?}");
    }
}

async fn odd_field_names_work(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (index, name) in ODD.iter().enumerate() {
        let table = format!("t{index}");
        db.exec(&format!("CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {} INT)", quoted(name))).await;
        assert_eq!(db.post(&table, &json!({*name: 5})).await.payload(), 1, "{name:?}");
        assert_eq!(db.get(&format!("{table}/1")).await.payload(), json!({"id": 1, *name: 5}), "{name:?}");
        let query = option("query", &json!({*name: {"value": 4, "equality": ">"}}));
        let order = option("order", &json!({"field": name}));
        let fields = option("selectFields", &json!([name]));
        let answer = db.get(&format!("{table}?{query}&{order}&{fields}")).await;
        assert_eq!(answer.payload(), json!([{*name: 5}]), "{name:?}");
        assert_eq!(db.put(&format!("{table}/1"), &json!({*name: 6})).await.payload(), 1, "{name:?}");
        let body = json!({"deleteKeyValues": [{"key": name, "value": 6}]});
        assert_eq!(db.delete_where(&table, &body).await.payload(), 1, "{name:?}");
    }
}

async fn an_odd_database_name_works(host: Host) {
    for name in ["ünï cödé`\"", "a.b/c", "per%cent"] {
        let database = format!("{}{name}", crate::test_db::unique("default_"));
        let created = json!({"query": format!("CREATE DATABASE {}", quoted(&database))});
        host.sql(&created).send().await.payload();
        let table = json!({"query": "CREATE TABLE t (id INT PRIMARY KEY)", "database": database});
        host.sql(&table).send().await.payload();
        let answer = host.get(&format!("/api/v1/crud/{}/t", enc(&database))).send().await;
        assert_eq!(answer.payload(), json!([]));
    }
}

async fn names_of_all_scripts_are_shown_as_themselves(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for (name, typo) in [
        ("ชื่อลูกค้า", "ชื่อลูกคา"),
        ("ग्राहकों", "ग्राहको"),
        ("e\u{301}te\u{301}s", "e\u{301}te\u{301}"),
        ("می\u{200C}خواهم", "می\u{200C}خواه"),
    ] {
        db.exec(&format!("CREATE TABLE `{name}` (id INT PRIMARY KEY, `{name}` INT)")).await;
        let answer = db.get(&enc(typo)).await;
        let error = answer.refused(ErrorCode::TableNotFound);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("no table \"{typo}\".")), "{answer}");
        assert_eq!(error["hint"], format!("Did you mean \"{name}\"?"), "{answer}");
        let answer = db.post(&enc(name), &json!({typo: 1})).await;
        let error = answer.refused(ErrorCode::UnknownField);
        let message = error["message"].as_str().unwrap_or_default();
        assert_eq!(message, format!("The table \"{name}\" has no field \"{typo}\"."));
        assert_eq!(error["hint"], format!("Did you mean \"{name}\"?"), "{answer}");
    }
}

async fn names_of_64_characters_work(host: Host) {
    let db = TestDb::new(host, &[]).await;
    // MariaDB writes a table's name as a file name of at most 255 bytes, in which some characters take five bytes. A
    // field's name has no such limit.
    for (table, field) in
        [("x", "`"), ("ü", "日"), ("X", "ü")].map(|(table, field)| (table.repeat(64), field.repeat(64)))
    {
        db.exec(&format!("CREATE TABLE {} (id INT PRIMARY KEY, {} INT)", quoted(&table), quoted(&field))).await;
        let table = enc(&table);
        assert_eq!(db.post(&table, &json!({"id": 3, field.as_str(): 4})).await.payload(), 3);
        assert_eq!(db.get(&format!("{table}/3")).await.payload(), json!({"id": 3, field.as_str(): 4}));
    }
}

/// Field names are case-insensitive in MariaDB; table names, on Linux, are case-sensitive.
async fn field_names_count_in_any_case_as_in_mariadb(host: Host) {
    let db =
        TestDb::new(host, &["CREATE TABLE Mixed (id INT PRIMARY KEY, Name TEXT)", "INSERT INTO Mixed VALUES (1, 'a')"])
            .await;
    db.get("mixed").await.refused(ErrorCode::TableNotFound);
    let answer = db.get("Mixed?selectFields=name").await;
    // The read in another case either succeeds, as in MariaDB, or is refused with the right name as a hint.
    match answer.code().as_str() {
        "ok" => assert_eq!(answer.payload()[0].as_object().unwrap().len(), 1, "{answer}"),
        _ => {
            assert!(answer.refused(ErrorCode::UnknownField)["hint"].as_str().is_some_and(|hint| hint.contains("Name")));
        }
    }
}
