//! Definitions of tables, and lists of what else a database has.

use super::{change, definition};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        a_definition_has_the_form_of_changes,
        a_definition_that_is_sent_back_changes_nothing,
        a_database_lists_its_code_and_views,
    ],
}

const TABLES: &[&str] = &[
    "CREATE TABLE authors (id INT PRIMARY KEY) ENGINE=InnoDB",
    "CREATE TABLE posts (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL \
     DEFAULT 'it''s', author_id INT NULL COMMENT 'who', price DECIMAL(10,2) NOT NULL DEFAULT 1.50, n INT NOT NULL DEFAULT -3 CHECK (n < 100), \
     at DATETIME(3) NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3), doc JSON NULL, half INT AS (n * 2) STORED, \
     twice INT AS (n * 4) VIRTUAL, code UUID NOT NULL DEFAULT (uuid()), kind ENUM('a','b''c') NOT NULL DEFAULT 'b''c', bits BIT(2) NOT NULL DEFAULT b'10', \
     hidden INT NULL INVISIBLE, KEY by_title (title(10), n DESC), UNIQUE by_code (code), FULLTEXT words (title), \
     CONSTRAINT of_author FOREIGN KEY (author_id) REFERENCES authors (id) ON DELETE SET NULL) ENGINE=InnoDB COMMENT='all posts'",
    "CREATE TRIGGER count_up BEFORE UPDATE ON posts FOR EACH ROW SET NEW.n = NEW.n + 1",
    "CREATE VIEW titles AS SELECT title FROM posts",
    "CREATE FUNCTION one() RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE PROCEDURE two() SELECT 2",
];

async fn a_definition_has_the_form_of_changes(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let made = definition(&db, "posts").await;
    assert_eq!(
        (&made["kind"], &made["comment"], &made["charset"]),
        (&json!("table"), &json!("all posts"), &json!("utf8mb4"))
    );
    assert!(made["create"].as_str().is_some_and(|text| text.starts_with("CREATE TABLE `posts`")), "{made}");
    assert_eq!(made["primaryKey"], json!(["id"]));
    let named = |name: &str| {
        let mut columns = made["columns"].as_array().expect("a list").iter();
        columns.find(|column| column["name"] == name).unwrap_or_else(|| panic!("{name}: {made}")).clone()
    };
    for column in [
        json!({"name": "id", "type": "bigint(20) unsigned", "nullable": false, "autoIncrement": true}),
        json!({"name": "title", "type": "varchar(50)", "charset": "utf8mb4", "collation": "utf8mb4_bin", "nullable": false, "default": "it's"}),
        json!({"name": "author_id", "type": "int(11)", "nullable": true, "comment": "who"}),
        json!({"name": "price", "type": "decimal(10,2)", "nullable": false, "default": "1.50"}),
        json!({"name": "n", "type": "int(11)", "nullable": false, "default": -3, "check": {"expression": "`n` < 100"}}),
        json!({"name": "at", "type": "datetime(3)", "nullable": true, "default": {"expression": "current_timestamp(3)"}, "onUpdate": "current_timestamp(3)"}),
        json!({"name": "doc", "type": "json", "nullable": true}),
        json!({"name": "half", "type": "int(11)", "nullable": true, "generated": {"expression": "`n` * 2", "stored": true}}),
        json!({"name": "twice", "type": "int(11)", "nullable": true, "generated": {"expression": "`n` * 4", "stored": false}}),
        json!({"name": "code", "type": "uuid", "nullable": false, "default": {"expression": "uuid()"}}),
        json!({"name": "bits", "type": "bit(2)", "nullable": false, "default": {"expression": "b'10'"}}),
        json!({"name": "hidden", "type": "int(11)", "nullable": true, "invisible": true}),
    ] {
        assert_eq!(named(column["name"].as_str().expect("a name")), column);
    }
    let keys: Vec<_> =
        made["indexes"].as_array().expect("a list").iter().map(|key| (&key["name"], &key["kind"])).collect();
    let kinds = [("by_code", "unique"), ("by_title", "index"), ("of_author", "index"), ("words", "fulltext")];
    let kinds = kinds.map(|(name, kind)| (json!(name), json!(kind)));
    assert_eq!(keys, kinds.iter().map(|(name, kind)| (name, kind)).collect::<Vec<_>>());
    assert_eq!(
        made["indexes"][1]["columns"],
        json!([{"column": "title", "length": 10}, {"column": "n", "descending": true}])
    );
    let author = json!([{"name": "of_author", "columns": ["author_id"], "references": {"table": "authors", "columns": ["id"]},
        "onDelete": "set null", "onUpdate": "restrict"}]);
    assert_eq!(made["foreignKeys"], author);
    let trigger =
        json!([{"name": "count_up", "timing": "before", "event": "update", "statement": "SET NEW.n = NEW.n + 1"}]);
    assert_eq!(made["triggers"], trigger);
    let view = definition(&db, "titles").await;
    assert!(view["kind"] == "view" && view["create"].as_str().is_some_and(|text| text.contains(" VIEW ")), "{view}");
    host.get(&db.path("nowhere").replacen("/crud/", "/schema/", 1)).send().await.refused(ErrorCode::TableNotFound);
}

/// MariaDB would tell by the algorithm, and by what it shows, that something had changed.
async fn a_definition_that_is_sent_back_changes_nothing(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let made = definition(&db, "posts").await;
    for column in made["columns"].as_array().expect("a list") {
        let mut changed = column.clone();
        changed["column"] = column["name"].clone();
        // MariaDB computes stored values anew.
        let algorithm = if column["generated"]["stored"] == true { "copy" } else { "instant" };
        let body = json!({"alter": {"changeColumns": [changed], "algorithm": algorithm}});
        change(&db, "posts", &body).send().await.payload();
    }
    assert_eq!(definition(&db, "posts").await["create"], made["create"]);
    let columns = made["columns"].clone();
    let copy = json!({"create": {"columns": columns, "primaryKey": made["primaryKey"], "indexes": made["indexes"],
        "foreignKeys": [], "comment": made["comment"]}});
    change(&db, "copies", &copy).send().await.payload();
    let copied = definition(&db, "copies").await;
    assert_eq!((&copied["columns"], &copied["indexes"]), (&made["columns"], &made["indexes"]));
}

async fn a_database_lists_its_code_and_views(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let path = format!("/api/v1/schema/{}", db.name);
    let listed = host.get(&path).send().await.payload();
    let expected = json!({"routines": [{"name": "one", "kind": "function"}, {"name": "two", "kind": "procedure"}],
        "triggers": [{"name": "count_up", "table": "posts"}], "views": [{"name": "titles"}], "events": []});
    assert_eq!(listed, expected);
    host.get("/api/v1/schema/nowhere").send().await.refused(ErrorCode::DatabaseNotFound);
    host.get(&format!("{path}?x=1")).send().await.refused(ErrorCode::InvalidQueryOption);
}
