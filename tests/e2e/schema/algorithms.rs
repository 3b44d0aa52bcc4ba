//! By which algorithm MariaDB makes each kind of change. A change that runs tries the algorithms from the cheapest on,
//! so its answer is the cheapest that this MariaDB can use: a dry run must have told the same.

use super::{change, dry_run};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};

cases! {
    Both: [
        each_kind_of_change_takes_the_algorithm_that_a_dry_run_tells,
    ],
}

const COLUMNS: &str = "id INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(50) NOT NULL DEFAULT 'x', body VARCHAR(100) NULL, \
     n INT NOT NULL DEFAULT 0, m INT NULL, e ENUM('a','b') NOT NULL DEFAULT 'a', s SET('a','b') NULL, d DECIMAL(10,2) NOT NULL DEFAULT 0, \
     txt TEXT NULL, latin VARCHAR(20) CHARACTER SET latin1 NULL, latin200 VARCHAR(200) CHARACTER SET latin1 NULL, \
     u3 VARCHAR(20) CHARACTER SET utf8mb3 NULL, bn VARBINARY(10) NULL, ch CHAR(10) NULL, dt DATETIME NULL, doc JSON NULL, \
     idx VARCHAR(50) NULL, ref INT NULL, a INT NOT NULL DEFAULT 1, b INT NOT NULL DEFAULT 1, KEY by_m (m), KEY by_idx (idx), UNIQUE by_a (a, id), \
     CONSTRAINT fk FOREIGN KEY (ref) REFERENCES p (id)";

/// What the table has beside [`COLUMNS`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Also {
    Nothing,
    FullText,
    Virtual,
    Stored,
    Compressed,
    Redundant,
    MyIsam,
}

impl Also {
    fn create(self, table: &str) -> String {
        let columns = match self {
            Self::FullText => format!("{COLUMNS}, FULLTEXT words (title)"),
            Self::Virtual => format!("{COLUMNS}, v INT AS (n + 1) VIRTUAL"),
            Self::Stored => format!("{COLUMNS}, g INT AS (n + 1) STORED"),
            _ => COLUMNS.to_owned(),
        };
        let options = match self {
            Self::Compressed => "ENGINE=InnoDB ROW_FORMAT=COMPRESSED",
            Self::Redundant => "ENGINE=InnoDB ROW_FORMAT=REDUNDANT",
            Self::MyIsam => "ENGINE=MyISAM",
            _ => "ENGINE=InnoDB",
        };
        let columns = columns.replace("CONSTRAINT fk", &format!("CONSTRAINT fk_{table}"));
        format!("CREATE TABLE {table} ({columns}) {options} DEFAULT CHARSET=utf8mb4")
    }
}

fn column(name: &str, data_type: &str, more: Value) -> Value {
    let mut column = json!({"name": name, "type": data_type});
    for (key, value) in more.as_object().expect("an object") {
        column[key] = value.clone();
    }
    column
}

fn add(data_type: &str, more: Value) -> Value {
    json!({"addColumns": [column("x", data_type, more)]})
}

fn modify(name: &str, data_type: &str, more: Value) -> Value {
    let mut changed = column(name, data_type, more);
    changed["column"] = json!(name);
    json!({"changeColumns": [changed]})
}

fn rename(name: &str, data_type: &str, more: Value) -> Value {
    let mut changed = column("other", data_type, more);
    changed["column"] = json!(name);
    json!({"changeColumns": [changed]})
}

fn index(column: &str, kind: &str) -> Value {
    json!({"addIndexes": [{"columns": [column], "kind": kind}]})
}

fn both(one: Value, other: Value) -> Value {
    let mut whole = one;
    for (key, value) in other.as_object().expect("an object") {
        match whole[key].as_array_mut() {
            Some(list) => list.extend(value.as_array().expect("a list").clone()),
            None => whole[key] = value.clone(),
        }
    }
    whole
}

async fn each_kind_of_change_takes_the_algorithm_that_a_dry_run_tells(host: Host) {
    use Also::{Compressed, FullText, MyIsam, Nothing, Redundant, Stored, Virtual};
    const INSTANT: &str = "instant none";
    const NOCOPY: &str = "nocopy none";
    const INPLACE: &str = "inplace none";
    /// Others may write while the table is copied since MariaDB 11.2.
    const COPY: &str = "copy";
    let none = json!({});
    let null = json!({"nullable": true});
    let zero = json!({"default": 0});
    let to_p = |column: &str| json!({"addForeignKeys": [{"columns": [column], "references": {"table": "p", "columns": ["id"]}}]});
    let expression = |text: &str| json!({"nullable": true, "default": {"expression": text}});
    let with = |more: Value, key: &str, value: Value| both(more, json!({key: value}));
    let db =
        TestDb::new(host, &["CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO p VALUES (1)"]).await;
    let rows: Vec<(Also, Value, &str)> = vec![
        // Columns that are added.
        (Nothing, add("int", null.clone()), INSTANT),
        (Nothing, add("int", json!({"default": 5})), INSTANT),
        (Nothing, add("text", json!({"default": "abc"})), INSTANT),
        (Nothing, add("json", null.clone()), INSTANT),
        (Nothing, add("int", with(null.clone(), "first", json!(true))), INSTANT),
        (Nothing, add("int", with(null.clone(), "after", json!("title"))), INSTANT),
        (Nothing, add("datetime", expression("current_timestamp()")), INSTANT),
        (Nothing, add("int", expression("1 + 1")), INSTANT),
        (Nothing, add("varchar(40)", expression("uuid()")), COPY),
        (Nothing, add("int", expression("n + 1")), COPY),
        (Nothing, add("int", json!({"generated": {"expression": "n + 3"}})), INSTANT),
        (Nothing, add("int", json!({"generated": {"expression": "n + 3", "stored": true}})), COPY),
        (
            Nothing,
            both(add("int", json!({"generated": {"expression": "n + 3"}})), json!({"dropColumns": ["body"]})),
            INSTANT,
        ),
        (Nothing, both(add("int", null.clone()), json!({"dropColumns": ["body"], "comment": "x"})), INSTANT),
        (Virtual, add("int", null.clone()), INSTANT),
        (Virtual, add("int", with(null.clone(), "after", json!("id"))), COPY),
        (FullText, add("int", null.clone()), "inplace shared"),
        (Compressed, add("int", null.clone()), INPLACE),
        (Redundant, add("int", null.clone()), INSTANT),
        (MyIsam, add("int", null.clone()), COPY),
        // Columns that are dropped.
        (Nothing, json!({"dropColumns": ["body", "txt"]}), INSTANT),
        (Nothing, json!({"dropColumns": ["m"]}), NOCOPY),
        (Virtual, json!({"dropColumns": ["v"]}), INSTANT),
        (Virtual, json!({"dropColumns": ["body"]}), INSTANT),
        (Virtual, both(json!({"dropColumns": ["v"]}), add("int", null.clone())), COPY),
        (Stored, json!({"dropColumns": ["g"]}), INSTANT),
        (FullText, json!({"dropColumns": ["body"]}), "inplace shared"),
        (Compressed, json!({"dropColumns": ["body"]}), INPLACE),
        // Columns that get another name, place, default or comment.
        (Nothing, rename("body", "varchar(100)", null.clone()), INSTANT),
        (Nothing, rename("idx", "varchar(50)", null.clone()), INSTANT),
        (FullText, rename("body", "varchar(100)", null.clone()), INSTANT),
        (MyIsam, rename("body", "varchar(100)", null.clone()), INSTANT),
        (Nothing, modify("n", "int", json!({"default": 7})), INSTANT),
        (Nothing, modify("n", "int", none.clone()), INSTANT),
        (Nothing, modify("n", "integer", json!({"default": 0, "comment": "x"})), INSTANT),
        (Nothing, modify("n", "int", with(zero.clone(), "first", json!(true))), INSTANT),
        (Nothing, modify("n", "int", with(zero.clone(), "after", json!("title"))), INSTANT),
        (Nothing, modify("dt", "datetime", json!({"nullable": true, "onUpdate": "current_timestamp()"})), INSTANT),
        (FullText, modify("n", "int", with(zero.clone(), "first", json!(true))), "inplace shared"),
        (Compressed, modify("n", "int", with(zero.clone(), "first", json!(true))), INPLACE),
        (Nothing, modify("id", "int", none.clone()), INSTANT),
        // NULL and NOT NULL.
        (Nothing, modify("n", "int", with(zero.clone(), "nullable", json!(true))), INPLACE),
        (Nothing, modify("m", "int", zero.clone()), INPLACE),
        (Redundant, modify("n", "int", with(zero.clone(), "nullable", json!(true))), INSTANT),
        (FullText, modify("n", "int", with(zero.clone(), "nullable", json!(true))), "inplace shared"),
        // Types.
        (Nothing, modify("body", "varchar(200)", null.clone()), INSTANT),
        (Nothing, modify("idx", "varchar(60)", null.clone()), INSTANT),
        (Nothing, modify("body", "varchar(60)", null.clone()), COPY),
        (FullText, modify("title", "varchar(90)", json!({"default": "x"})), COPY),
        (Nothing, modify("bn", "varbinary(300)", null.clone()), INSTANT),
        (Nothing, modify("latin", "varchar(300)", with(null.clone(), "charset", json!("latin1"))), INSTANT),
        (Nothing, modify("latin200", "varchar(300)", with(null.clone(), "charset", json!("latin1"))), COPY),
        (Nothing, modify("latin", "varchar(20)", null.clone()), COPY),
        (Nothing, modify("u3", "varchar(20)", null.clone()), INSTANT),
        (Nothing, modify("ch", "char(12)", null.clone()), COPY),
        (Nothing, modify("n", "bigint", zero.clone()), COPY),
        (Nothing, modify("n", "int unsigned", zero.clone()), COPY),
        (Nothing, modify("d", "decimal(12,2)", zero.clone()), COPY),
        (Nothing, modify("dt", "datetime(6)", null.clone()), COPY),
        (Nothing, modify("txt", "mediumtext", null.clone()), COPY),
        (Nothing, modify("body", "text", null.clone()), COPY),
        (Nothing, modify("doc", "longtext", null.clone()), COPY),
        (Nothing, modify("doc", "json", null.clone()), INSTANT),
        (Nothing, modify("e", "enum('a','b','c')", json!({"default": "a"})), INSTANT),
        (Nothing, modify("e", "enum('b','a')", json!({"default": "a"})), COPY),
        (Nothing, modify("s", "set('a','b','c')", null.clone()), INSTANT),
        (Nothing, modify("title", "varchar(50)", json!({"default": "x", "collation": "utf8mb4_bin"})), INSTANT),
        (Nothing, modify("idx", "varchar(50)", with(null.clone(), "collation", json!("utf8mb4_bin"))), NOCOPY),
        (Stored, modify("g", "int", json!({"generated": {"expression": "n + 5", "stored": true}})), COPY),
        (Virtual, modify("v", "int", json!({"generated": {"expression": "n + 5"}})), INSTANT),
        (Nothing, modify("n", "int", json!({"default": 0, "check": {"expression": "n >= 0"}})), INSTANT),
        (Nothing, add("int", json!({"check": {"expression": "x >= 0"}})), INSTANT),
        // Indexes and keys.
        (Nothing, index("n", "index"), NOCOPY),
        (Nothing, json!({"addIndexes": [{"columns": [{"column": "body", "length": 10, "descending": true}]}]}), NOCOPY),
        (Nothing, json!({"addIndexes": [{"columns": ["n", "id"], "kind": "unique"}]}), NOCOPY),
        (Nothing, both(index("n", "index"), add("int", null.clone())), INPLACE),
        (Nothing, json!({"dropIndexes": ["by_idx"]}), NOCOPY),
        (Nothing, both(json!({"dropIndexes": ["by_idx"]}), add("int", null.clone())), NOCOPY),
        (Nothing, both(json!({"dropIndexes": ["by_idx"]}), index("n", "index")), NOCOPY),
        (Virtual, index("v", "index"), NOCOPY),
        (Compressed, index("n", "index"), NOCOPY),
        (MyIsam, index("n", "index"), COPY),
        (Nothing, index("title", "fulltext"), "inplace shared"),
        (FullText, index("body", "fulltext"), "nocopy shared"),
        (FullText, index("n", "index"), NOCOPY),
        (FullText, json!({"dropIndexes": ["words"]}), NOCOPY),
        (Nothing, both(index("title", "fulltext"), index("body", "fulltext")), COPY),
        (Nothing, json!({"primaryKey": ["id", "n"]}), INPLACE),
        (Nothing, both(modify("id", "int", none.clone()), json!({"primaryKey": null})), INPLACE),
        (Nothing, to_p("m"), COPY),
        (Nothing, both(to_p("m"), add("int", null.clone())), COPY),
        // The table.
        (Nothing, json!({"comment": "x"}), INSTANT),
        (Nothing, json!({"comment": "x", "rename": "renamed"}), INSTANT),
        (MyIsam, json!({"comment": "x"}), INSTANT),
        (Nothing, json!({"rename": "renamed"}), "instant exclusive"),
    ];
    let version = db.value("SELECT VERSION()").await;
    let version: Vec<u32> =
        version.as_str().expect("a version").split('.').filter_map(|part| part.parse().ok()).collect();
    let copied = if version.as_slice() >= &[11, 2][..] { "copy none" } else { "copy shared" };
    let mut wrong = Vec::new();
    for (at, (also, alter, expected)) in rows.into_iter().enumerate() {
        let expected = if expected == COPY { copied } else { expected };
        let table = format!("t{at}");
        db.exec(&also.create(&table)).await;
        db.exec(&format!("INSERT INTO {table} (m, ref) VALUES (1, NULL)")).await;
        let body = json!({"alter": alter});
        let told = |answer: &Value| {
            format!(
                "{} {}",
                answer["algorithm"].as_str().unwrap_or_default(),
                answer["lock"].as_str().unwrap_or_default()
            )
        };
        let predicted = dry_run(&db, &table, &body).send().await.payload();
        let answer = change(&db, &table, &body).send().await;
        let done = if answer.status == 200 { told(&answer.payload()) } else { answer.text() };
        if (told(&predicted).as_str(), done.as_str()) != (expected, expected) {
            wrong.push(format!("{}: expected {expected}, told {}, done {done}", predicted["sql"], told(&predicted)));
        }
        db.exec("DROP TABLE IF EXISTS renamed").await;
        db.exec(&format!("DROP TABLE IF EXISTS {table}")).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
