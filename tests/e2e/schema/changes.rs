//! What changes do, and which are refused.

use super::{change, definition, dry_run, table};
use crate::host::Host;
use crate::test_db::TestDb;
use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        each_change_is_one_statement,
        a_dry_run_changes_nothing,
        malformed_changes_are_refused_by_name,
        what_mariadb_refuses_changes_nothing,
        texts_stay_texts_and_names_stay_names,
        a_change_is_seen_by_the_next_read,
    ],
}

async fn each_change_is_one_statement(host: Host) {
    let db = table(host).await;
    let name = &db.name;
    let id = json!({"name": "id", "type": "int", "autoIncrement": true});
    for (table, body, sql) in [
        (
            "drafts",
            json!({"create": {"columns": [id, {"name": "a`b", "type": "enum('it''s','b')", "nullable": true, "comment": "o'k"}],
                "primaryKey": ["id"], "indexes": [{"columns": ["a`b"]}], "comment": "new"}}),
            format!(
                "CREATE TABLE `{name}`.`drafts` (`id` int NOT NULL AUTO_INCREMENT, `a``b` enum('it''s','b') NULL COMMENT 'o''k', \
                 PRIMARY KEY (`id`), INDEX (`a``b`)) COMMENT 'new'"
            ),
        ),
        (
            "posts",
            json!({"alter": {
                "addColumns": [
                    {"name": "at", "type": "datetime(3)", "default": {"expression": "current_timestamp(3)"}, "onUpdate": "current_timestamp(3)", "after": "id"},
                    {"name": "author_id", "type": "INT", "nullable": true},
                    {"name": "loud", "type": "varchar(50)", "generated": {"expression": "upper(`title`)", "stored": false}}],
                "addIndexes": [{"name": "by_at", "kind": "unique", "columns": [{"column": "at", "descending": true}, "id"]}],
                "addForeignKeys": [{"columns": ["author_id"], "references": {"table": "authors", "columns": ["id"]}, "onDelete": "set null"}]}}),
            format!(
                "ALTER TABLE `{name}`.`posts` ADD COLUMN `at` datetime(3) NOT NULL DEFAULT (current_timestamp(3)) \
                 ON UPDATE current_timestamp(3) AFTER `id`, ADD COLUMN `author_id` int NULL, ADD COLUMN `loud` varchar(50) \
                 AS (upper(`title`)) VIRTUAL, ADD UNIQUE INDEX `by_at` (`at` DESC, `id`), ADD FOREIGN KEY (`author_id`) \
                 REFERENCES `{name}`.`authors` (`id`) ON DELETE SET NULL, ALGORITHM=COPY"
            ),
        ),
        (
            "posts",
            json!({"alter": {"changeColumns": [{"column": "title", "name": "headline", "type": "varchar(60)", "default": "it's\\"}], "dropColumns": ["loud"],
                "dropIndexes": ["by_at"], "comment": "articles"}}),
            format!(
                "ALTER TABLE `{name}`.`posts` DROP INDEX `by_at`, DROP COLUMN `loud`, CHANGE COLUMN `title` `headline` \
                 varchar(60) NOT NULL DEFAULT 'it''s\\\\', COMMENT 'articles', ALGORITHM="
            ),
        ),
        (
            "drafts",
            json!({"alter": {"primaryKey": ["id", "a`b"], "rename": "later",
                "changeColumns": [{"column": "a`b", "name": "a`b", "type": "varchar(9)"}]}}),
            format!(
                "ALTER TABLE `{name}`.`drafts` CHANGE COLUMN `a``b` `a``b` varchar(9) NOT NULL, DROP PRIMARY KEY, \
                 ADD PRIMARY KEY (`id`, `a``b`), RENAME TO `{name}`.`later`, ALGORITHM=COPY"
            ),
        ),
        ("posts", json!({"truncate": true}), format!("TRUNCATE TABLE `{name}`.`posts`")),
        ("later", json!({"drop": true}), format!("DROP TABLE `{name}`.`later`")),
    ] {
        let answer = change(&db, table, &body).send().await.payload();
        assert!(answer["sql"].as_str().is_some_and(|text| text.starts_with(&sql)), "{sql}\n{answer}");
        assert_eq!(answer["done"], true);
        assert_eq!(answer["algorithm"].is_null(), body.get("alter").is_none(), "{answer}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM posts").await, 0);
    assert_eq!(db.column("", "name").await, ["authors", "posts"]);
}

async fn a_dry_run_changes_nothing(host: Host) {
    let db = table(host).await;
    let before = definition(&db, "posts").await;
    for body in [
        json!({"alter": {"addColumns": [{"name": "x", "type": "int"}]}}),
        json!({"alter": {"dropColumns": ["title"], "rename": "other"}}),
        json!({"truncate": true}),
        json!({"drop": true}),
    ] {
        let answer = dry_run(&db, "posts", &body).send().await.payload();
        assert_eq!((&answer["done"], &answer["warnings"]), (&json!(false), &json!([])), "{answer}");
        assert!(answer["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{answer}");
    }
    let new = json!({"create": {"columns": [{"name": "id", "type": "int"}]}});
    dry_run(&db, "new", &new).send().await.payload();
    assert_eq!(definition(&db, "posts").await, before);
    assert_eq!(db.value("SELECT COUNT(*) FROM posts").await, 2);
    db.get("new").await.refused(ErrorCode::TableNotFound);
    // MariaDB parses the statement.
    let wrong = json!({"alter": {"addColumns": [{"name": "x", "type": "strings"}]}});
    dry_run(&db, "posts", &wrong).send().await.refused(ErrorCode::SqlError);
}

async fn malformed_changes_are_refused_by_name(host: Host) {
    let db = table(host).await;
    let column = |more: Value| {
        let mut column = json!({"name": "x", "type": "int"});
        for (key, value) in more.as_object().expect("an object") {
            column[key] = value.clone();
        }
        json!({"alter": {"addColumns": [column]}})
    };
    for (body, code, message) in [
        (json!({}), ErrorCode::InvalidBody, "give one of create, alter, truncate and drop"),
        (json!({"drop": true, "truncate": true}), ErrorCode::InvalidBody, "several changes"),
        (json!({"drop": "posts"}), ErrorCode::InvalidBody, "drop must be true"),
        (json!({"drop": true, "cascade": true}), ErrorCode::InvalidBody, "\"cascade\""),
        (json!({"alter": {}}), ErrorCode::InvalidBody, "alter has no change"),
        (column(json!({"typ": "int"})), ErrorCode::InvalidBody, "\"typ\" in alter.addColumns[0]"),
        (column(json!({"type": "int, DROP COLUMN id"})), ErrorCode::InvalidBody, "alter.addColumns[0].type"),
        (column(json!({"type": "int) ENGINE=MyISAM -- "})), ErrorCode::InvalidBody, "alter.addColumns[0].type"),
        (column(json!({"type": "int NOT NULL"})), ErrorCode::InvalidBody, "alter.addColumns[0].type"),
        (column(json!({"type": "enum('a') DEFAULT 'a'"})), ErrorCode::InvalidBody, "alter.addColumns[0].type"),
        (
            column(json!({"default": {"expression": "1), DROP COLUMN (id"}})),
            ErrorCode::InvalidBody,
            "default.expression",
        ),
        (column(json!({"default": {"expression": "1 -- "}})), ErrorCode::InvalidBody, "default.expression"),
        (column(json!({"default": {"expression": "'a"}})), ErrorCode::InvalidBody, "default.expression"),
        (
            column(json!({"generated": {"expression": "1; DROP TABLE posts"}})),
            ErrorCode::InvalidBody,
            "generated.expression",
        ),
        (column(json!({"check": {"expression": "1 /*"}})), ErrorCode::InvalidBody, "check.expression"),
        (column(json!({"collation": "x, DROP COLUMN id"})), ErrorCode::InvalidBody, "collation"),
        (column(json!({"name": "x "})), ErrorCode::InvalidIdentifier, "ends with a space"),
        (column(json!({"after": ""})), ErrorCode::InvalidIdentifier, "is empty"),
    ] {
        let error = change(&db, "posts", &body).send().await.refused(code);
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{body}: {error}");
    }
    let drop = json!({"database": db.name, "table": "posts", "drop": true});
    host.post("/api/v1/schema?dryrun=true", &drop).send().await.refused(ErrorCode::InvalidQueryOption);
    host.post("/api/v1/schema?dryRun=maybe", &drop).send().await.refused(ErrorCode::InvalidQueryOption);
    host.post("/api/v1/schema", &json!({"drop": true})).send().await.refused(ErrorCode::InvalidBody);
    host.call(Method::DELETE, "/api/v1/schema").send().await.refused(ErrorCode::MethodNotAllowed);
    assert_eq!(db.value("SELECT COUNT(*) FROM posts").await, 2);
}

async fn what_mariadb_refuses_changes_nothing(host: Host) {
    let db = table(host).await;
    let before = definition(&db, "posts").await;
    let id = json!([{"name": "id", "type": "int"}]);
    for (table, body, code) in [
        ("nowhere", json!({"drop": true}), ErrorCode::TableNotFound),
        ("selkie_receipts", json!({"drop": true}), ErrorCode::TableNotFound),
        ("selkie_receipts", json!({"create": {"columns": id}}), ErrorCode::InvalidIdentifier),
        ("posts", json!({"create": {"columns": id}}), ErrorCode::SqlError),
        ("posts", json!({"alter": {"dropColumns": ["nowhere"]}}), ErrorCode::UnknownField),
        ("posts", json!({"alter": {"addIndexes": [{"columns": ["nowhere"]}]}}), ErrorCode::UnknownField),
        ("posts", json!({"alter": {"addColumns": [{"name": "title", "type": "int"}]}}), ErrorCode::SqlError),
        // All of it fails.
        (
            "posts",
            json!({"alter": {"addColumns": [{"name": "x", "type": "int"}], "dropIndexes": ["nowhere"]}}),
            ErrorCode::UnknownField,
        ),
        // MariaDB could only copy the table.
        (
            "posts",
            json!({"alter": {"changeColumns": [{"column": "title", "name": "title", "type": "int"}], "algorithm": "inplace"}}),
            ErrorCode::SqlError,
        ),
        (
            "posts",
            json!({"alter": {"changeColumns": [{"column": "title", "name": "title", "type": "int"}]}}),
            ErrorCode::InvalidValue,
        ),
    ] {
        change(&db, table, &body).send().await.refused(code);
    }
    let nowhere = json!({"database": "nowhere", "table": "t", "create": {"columns": id}});
    let codes = [ErrorCode::DatabaseNotFound.as_str(), ErrorCode::PermissionDenied.as_str()];
    let code = host.post("/api/v1/schema", &nowhere).send().await.code();
    assert!(codes.contains(&code.as_str()), "{code}");
    for database in ["mysql", "selkie", "information_schema"] {
        let body = json!({"database": database, "table": "user", "drop": true});
        host.post("/api/v1/schema", &body).send().await.refused(ErrorCode::DatabaseNotFound);
        host.get(&format!("/api/v1/schema/{database}")).send().await.refused(ErrorCode::DatabaseNotFound);
    }
    let mut after = definition(&db, "posts").await;
    // MariaDB's estimate of the rows changes at times of its own.
    after["rows"] = before["rows"].clone();
    assert_eq!(after, before);
}

async fn texts_stay_texts_and_names_stay_names(host: Host) {
    let db = TestDb::new(host, &[]).await;
    for text in ["'", "\\", "\\'", "''", "`", "\"", "; DROP TABLE x", "-- x", "/*", ":name", "?", "%s", "日本", "a\nb"]
    {
        let table = format!("t{text}").trim_end().to_owned();
        let member = text.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n");
        let columns = json!([
            {"name": format!("c{text}x"), "type": "varchar(40)", "default": text, "comment": text},
            {"name": "e", "type": format!("enum('{member}')"), "default": text},
            {"name": "f", "type": "varchar(40)", "default": {"expression": format!("concat('a', '{member}')")}},
        ]);
        let index = json!([{"name": format!("i{text}x"), "columns": [format!("c{text}x")]}]);
        let new = json!({"create": {"columns": columns, "indexes": index, "comment": text}});
        change(&db, &table, &new).send().await.payload();
        let made = definition(&db, &table).await;
        assert_eq!(made["comment"], text);
        assert_eq!(made["indexes"][0]["name"], format!("i{text}x"));
        let column = &made["columns"][0];
        assert_eq!(
            (&column["name"], &column["default"], &column["comment"]),
            (&json!(format!("c{text}x")), &json!(text), &json!(text))
        );
        db.host.post(&db.path(&table), &json!({})).send().await.payload();
        let row = db.host.get(&db.path(&table)).send().await.payload()[0].clone();
        assert_eq!(row, json!({format!("c{text}x"): text, "e": text, "f": format!("a{text}")}));
        change(&db, &table, &json!({"drop": true})).send().await.payload();
    }
    assert_eq!(db.column("", "name").await, Vec::<Value>::new());
}

async fn a_change_is_seen_by_the_next_read(host: Host) {
    let db = table(host).await;
    for round in 0..5 {
        let name = format!("c{round}");
        let added = json!({"alter": {"addColumns": [{"name": name, "type": "int", "default": round}]}});
        // Reads run meanwhile.
        let reads = join_all((0..4).map(|_| db.get("posts")));
        let (answer, reads) = futures_util::join!(change(&db, "posts", &added).send(), reads);
        answer.payload();
        reads.iter().for_each(|read| drop(read.payload()));
        assert_eq!(db.column(&format!("posts?select={name}"), &name).await, [json!(round), json!(round)]);
    }
    change(&db, "posts", &json!({"alter": {"rename": "articles"}})).send().await.payload();
    db.get("posts").await.refused(ErrorCode::TableNotFound);
    assert_eq!(db.get("articles").await.payload().as_array().map(Vec::len), Some(2));
}
