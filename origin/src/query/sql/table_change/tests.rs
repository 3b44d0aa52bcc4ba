//! Tests of the SQL of changes of tables.

use super::*;
use shared::operation::schema::{SchemaCall, TableChange};

fn rendered(change: &str) -> String {
    let body = format!("{{\"database\":\"s`p\",\"table\":\"posts\",{change}}}");
    let SchemaCall { table, change } = SchemaCall::from_body(body.as_bytes()).unwrap();
    let known = TableDefinition { primary_key: vec!["id".to_owned()], ..TableDefinition::default() };
    let statement = match change {
        TableChange::Create(new) => create(&table, &new),
        TableChange::Alter(change) => alter(&table, &known, &change, Method::ALL[0]),
        TableChange::Truncate => truncate(&table),
        TableChange::Drop => drop(&table),
    };
    statement.text().replace(", ALGORITHM=INSTANT, LOCK=NONE", "").replace("`s``p`.", "").replace(" `posts`", "")
}

fn column(members: &str) -> String {
    let text = rendered(&format!("\"alter\":{{\"addColumns\":[{{\"name\":\"a\",{members}}}]}}"));
    text.replace("ALTER TABLE ADD COLUMN `a` ", "")
}

#[test]
fn columns_are_written_as_mariadb_reads_them() {
    for (members, sql) in [
        (r#""type":"INT""#, "int NOT NULL"),
        (r#""type":"int unsigned zerofill","nullable":true"#, "int unsigned zerofill NULL"),
        (r#""type":"decimal(10, 2)","default":1.50"#, "decimal(10,2) NOT NULL DEFAULT 1.50"),
        (r#""type":"int","default":-1e3"#, "int NOT NULL DEFAULT -1e3"),
        (r#""type":"tinyint(1)","default":true"#, "tinyint(1) NOT NULL DEFAULT 1"),
        (r#""type":"varchar(9)","default":"it's\\""#, r"varchar(9) NOT NULL DEFAULT 'it''s\\'"),
        (r#""type":"varchar(9)","default":null,"nullable":true"#, "varchar(9) NULL"),
        (r#""type":"enum('a','it''s','\\\\')""#, r"enum('a','it''s','\\') NOT NULL"),
        (
            r#""type":"text","charset":"latin1","collation":"latin1_bin","comment":"o'k""#,
            "text CHARACTER SET latin1 COLLATE latin1_bin NOT NULL COMMENT 'o''k'",
        ),
        (r#""type":"uuid","default":{"expression":" uuid() "}"#, "uuid NOT NULL DEFAULT (uuid())"),
        (
            r#""type":"datetime(3)","onUpdate":"now(3)","default":{"expression":"now(3)"}"#,
            "datetime(3) NOT NULL DEFAULT (now(3)) ON UPDATE current_timestamp(3)",
        ),
        (r#""type":"int","autoIncrement":true"#, "int NOT NULL AUTO_INCREMENT"),
        (r#""type":"int","generated":{"expression":"b + 1"}"#, "int AS (b + 1) VIRTUAL"),
        (r#""type":"int","generated":{"expression":"b-'1'","stored":true}"#, "int AS (b- '1') STORED"),
        (
            r#""type":"int","invisible":true,"nullable":true,"check":{"expression":"a > 0"}"#,
            "int NULL INVISIBLE CHECK (a > 0)",
        ),
        (r#""type":"int","first":true"#, "int NOT NULL FIRST"),
        (r#""type":"int","after":"b`c""#, "int NOT NULL AFTER `b``c`"),
    ] {
        assert_eq!(column(members), sql, "{members}");
    }
}

#[test]
fn each_change_is_one_statement() {
    for (change, sql) in [
        (r#""truncate":true"#, "TRUNCATE TABLE"),
        (r#""drop":true"#, "DROP TABLE"),
        (
            r#""create":{"columns":[{"name":"a","type":"int"}],"primaryKey":["a","b"],"comment":"c",
            "indexes":[{"columns":["a"],"kind":"fulltext"},{"name":"i","columns":[{"column":"a","length":5,"descending":true}]}],
            "foreignKeys":[{"name":"f","columns":["a"],"references":{"database":"o","table":"t","columns":["id"]},"onUpdate":"no action"}]}"#,
            "CREATE TABLE (`a` int NOT NULL, PRIMARY KEY (`a`, `b`), FULLTEXT INDEX (`a`), INDEX `i` (`a`(5) DESC), \
             CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `o`.`t` (`id`) ON UPDATE NO ACTION) COMMENT 'c'",
        ),
        (
            r#""alter":{"changeColumns":[{"column":"x","name":"y","type":"int"}],"dropColumns":["z"],"dropIndexes":["i"],"dropForeignKeys":["f"],
            "addForeignKeys":[{"columns":["a"],"references":{"table":"t","columns":["id"]},"onDelete":"cascade"}],
            "addIndexes":[{"columns":["a","b"],"kind":"unique"}],"primaryKey":["a"],"comment":"","rename":"new"}"#,
            "ALTER TABLE DROP FOREIGN KEY `f`, DROP INDEX `i`, DROP COLUMN `z`, CHANGE COLUMN `x` `y` int NOT NULL, DROP PRIMARY KEY, \
             ADD PRIMARY KEY (`a`), ADD UNIQUE INDEX (`a`, `b`), ADD FOREIGN KEY (`a`) REFERENCES `t` (`id`) ON DELETE CASCADE, \
             COMMENT '', RENAME TO `new`",
        ),
        (r#""alter":{"primaryKey":null}"#, "ALTER TABLE DROP PRIMARY KEY"),
    ] {
        assert_eq!(rendered(change), sql);
    }
}
