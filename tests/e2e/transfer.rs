//! Tests `selkie import` and `selkie export`: with a URL and key through both hosts, and directly on the installation.

pub(crate) mod broken;
mod memory;

use crate::formats::types::{TYPES, types};
use crate::host::Host;
use crate::roles::{create_role, role_of};
use crate::service::{binary, clear_settings, shared};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

cases! {
    Both: [
        each_type_survives_export_and_import,
        refused_rows_are_listed_with_their_lines_and_the_rest_is_imported,
        what_is_wrong_is_said_before_a_row_is_written,
        a_new_table_has_the_types_of_the_file,
        columns_are_mapped_to_fields,
        conflicts_update_or_are_ignored,
        an_export_is_chosen_by_query_select_and_order,
        a_role_binds_both_commands,
    ],
    Origin: [the_installation_is_imported_into_and_exported_from_without_a_key],
}

#[derive(Clone, Copy)]
enum Way {
    Url(Host),
    Direct,
}

struct WorkingDirectory {
    dir: TempDir,
    way: Way,
    key: String,
}

impl WorkingDirectory {
    fn new(way: Way) -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), way, key: shared().full_key.clone() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.way {
            Way::Direct => shared().cli_command(arguments),
            Way::Url(host) => {
                let mut command = Command::new(binary().expect("the binary"));
                clear_settings(&mut command);
                command.args(arguments).args(["--url", host.url()]).env("SELKIE_KEY", &self.key);
                command
            }
        };
        command.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    /// Runs a command that must exit with `code`; returns its standard output and standard error.
    #[track_caller]
    fn exits(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        (text(&output.stdout), told)
    }

    #[track_caller]
    fn import(&self, table: &str, file: &str, more: &[&str]) -> Value {
        let (answer, _) = self.exits(0, &[&["import", table, file, "--json"], more].concat());
        serde_json::from_str(&answer).expect("JSON")
    }

    fn rejects(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

async fn each_type_survives_export_and_import(host: Host) {
    survives(host, Way::Url(host), &["csv", "ndjson"]).await;
}

async fn the_installation_is_imported_into_and_exported_from_without_a_key(host: Host) {
    survives(host, Way::Direct, &["csv"]).await;
}

/// Exports a table with a column of each type, imports it into a copy, and compares both.
async fn survives(host: Host, way: Way, formats: &[&str]) {
    let db = types(host).await;
    db.exec("ALTER TABLE t ADD COLUMN twice INT AS (whole * 2)").await;
    let directory = WorkingDirectory::new(way);
    for format in formats {
        db.exec("CREATE OR REPLACE TABLE copy LIKE t").await;
        let source = format!("{}.t", db.name);
        let (rows, _) = directory.exits(0, &["export", &source, "--format", format, "--order", "id"]);
        let file = format!("t.{format}");
        directory.write(&file, &rows);
        let done = directory.import(&format!("{}.copy", db.name), &file, &[]);
        assert_eq!(done["imported"], 3, "{format}");
        let read = async |table: &str| db.get(&format!("{table}?order=id")).await.body;
        assert_eq!(read("copy").await, read("t").await, "{format}: {rows}");
        let names: Vec<String> = TYPES.iter().map(|(name, ..)| format!("`{name}`")).collect();
        // JSON's null in a JSON column is imported as NULL, so the column `scalar` is not compared.
        let exact = names.iter().filter(|name| *name != "`scalar`").map(|name| format!("a.{name} <=> b.{name}"));
        let same = exact.collect::<Vec<_>>().join(" AND ");
        let count = db.value(&format!("SELECT COUNT(*) FROM t a JOIN copy b ON a.id = b.id AND {same}")).await;
        assert_eq!(count, 3, "{format}");
    }
    db.exec("CREATE TABLE partly (id INT PRIMARY KEY, hidden INT INVISIBLE)").await;
    db.exec("INSERT INTO partly (id, hidden) VALUES (1, 7)").await;
    db.exec("CREATE TABLE partly_copy LIKE partly").await;
    let (rows, _) = directory.exits(0, &["export", &format!("{}.partly", db.name)]);
    directory.write("partly.csv", &rows);
    directory.import(&format!("{}.partly_copy", db.name), "partly.csv", &[]);
    assert_eq!(db.value("SELECT hidden FROM partly_copy").await, 7, "{rows}");
}

async fn refused_rows_are_listed_with_their_lines_and_the_rest_is_imported(host: Host) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, n INT, word VARCHAR(5) UNIQUE, CHECK (n < 100))";
    let db = TestDb::new(host, &[create]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    directory.write(
        "rows.csv",
        "\u{feff}id,n,word\r\n1,1,\"a\nb\"\r\n2,x,c\r\n3,1\r\n4,500,d\r\n\r\n5,2,\"a\nb\"\r\n6,3,\"e\"f\r\n7,,\r\n8,4,toolong\r\n9,5,\"\"\r\n",
    );
    let table = format!("{}.t", db.name);
    let (_, told) = directory.exits(3, &["import", &table, "rows.csv", "--yes"]);
    assert!(told.contains("rows refused: 6; rows.rejected.ndjson"), "{told}");
    assert_eq!(db.exec("SELECT id FROM t ORDER BY id").await, json!([{"id": 1}, {"id": 7}, {"id": 9}]));
    assert_eq!(
        db.exec("SELECT n, word FROM t WHERE id > 5 ORDER BY id").await,
        json!([{"n": null, "word": null}, {"n": 5, "word": ""}])
    );
    let rejects = directory.rejects("rows.rejected.ndjson");
    let shown: Vec<_> = rejects.iter().map(|reject| (reject["line"].clone(), reject["code"].clone())).collect();
    let expected = [
        (4, "invalid_value"),
        (5, "invalid_body"),
        (6, "invalid_value"),
        (8, "duplicate_key"),
        (10, "invalid_body"),
        (12, "invalid_value"),
    ];
    assert_eq!(shown, expected.map(|(line, code)| (json!(line), json!(code))), "{rejects:?}");
    assert_eq!(rejects[0]["row"], json!({"id": "2", "n": "x", "word": "c"}));
    assert_eq!(rejects[0]["field"], "n");
    assert_eq!(rejects[1]["text"], "3,1");
    assert!(!directory.path("rows.import-journal").exists());
    // The same import with NDJSON, and with another name for the file of refused rows.
    directory.write(
        "rows.ndjson",
        "{\"id\": 11, \"n\": 1}\n\n{\"id\": 12, \"nope\": 1}\n{\"id\": 13,\n{\"id\": \"x\"}\n{\"id\": 14}\n",
    );
    let (_, told) = directory.exits(2, &["import", &table, "rows.ndjson", "--rejects", "r"]);
    assert!(told.contains("no field \"nope\""), "{told}");
    let late: String = (0..1_100).map(|id| format!("{{\"id\": {}}}\n", 1_000 + id)).collect();
    directory
        .write("rows.ndjson", late + "{\"id\": 5000, \"nope\": 1}\n{\"id\": 5001,\n{\"id\": \"x\"}\n{\"id\": 5002}\n");
    directory.exits(3, &["import", &table, "rows.ndjson", "--rejects", "r"]);
    let codes: Vec<_> =
        directory.rejects("r").iter().map(|reject| (reject["line"].clone(), reject["code"].clone())).collect();
    let expected = [(1_101, "unknown_field"), (1_102, "invalid_json"), (1_103, "invalid_value")];
    assert_eq!(codes, expected.map(|(line, code)| (json!(line), json!(code))));
    assert_eq!(db.value("SELECT COUNT(*) FROM t WHERE id >= 1000").await, 1_101);
}

async fn what_is_wrong_is_said_before_a_row_is_written(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, at DATETIME)",
            "CREATE VIEW v AS SELECT id FROM t",
            "CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM",
        ],
    )
    .await;
    let directory = WorkingDirectory::new(Way::Url(host));
    let t = format!("{}.t", db.name);
    let missing = format!("{}.nope", db.name);
    let old = format!("{}.old", db.name);
    let none = "";
    for (content, arguments, code, part) in [
        (none, &["import", &t, "other.csv"][..], 1, "other.csv can't be read"),
        (none, &["import", &t, "rows.csv"], 2, "rows.csv is empty"),
        ("id,n\n1,2\n", &["import", &missing, "rows.csv"], 1, "no table"),
        ("id,m\n1,2\n", &["import", &t, "rows.csv"], 2, "no field \"m\""),
        ("id,\n1,2\n", &["import", &t, "rows.csv"], 2, "no name for column 2"),
        ("id,n,id\n1,2,3\n", &["import", &t, "rows.csv"], 2, "\"id\" more than once"),
        ("id;n\n1;2\n", &["import", &t, "rows.csv"], 2, "--delimiter \";\""),
        ("id\n1\n", &["import", &t, "rows.csv"], 2, "requires the field \"n\""),
        ("id,n\n1,many\n", &["import", &t, "rows.csv"], 2, "texts such as \"many\""),
        ("ID,N\n1,2\n", &["import", &t, "rows.csv"], 2, "\"ID\" is taken for the field \"id\""),
        ("id,n\n1,2\n", &["import", &t, "rows.csv", "--create"], 2, "exists"),
        ("id,n\n1,2\n", &["import", &t, "rows.csv", "--resume"], 2, "no broken import"),
        ("id,n\n1,2\n", &["import", &t, "rows.csv", "--map", "m=n"], 2, "\"m\", which the file doesn't have"),
        ("id,n\n1,2\n", &["import", &t, "rows.csv", "--map", "n=id"], 2, "two columns go to the field \"id\""),
        ("id,n\n1,2\n", &["import", "t", "rows.csv"], 2, "a database and a table"),
        ("id\n1\n", &["import", &old, "rows.csv"], 1, "no transactions"),
        (none, &["export", &missing], 1, "table_not_found"),
        (none, &["export", &t, "--select", "nope"], 1, "unknown_field"),
        (none, &["export", &t, "--query", "{"], 2, "it is no JSON"),
    ] {
        directory.write("rows.csv", content);
        let (out, told) = directory.exits(code, arguments);
        assert!(told.contains(part), "{arguments:?} of {content:?}: {told}");
        assert_eq!(out, "", "{arguments:?}");
        let _ = fs::remove_file(directory.path("rows.import-journal"));
    }
    directory.write("rows.csv", b"\x1f\x8bgarbage instead of gzip");
    let (_, told) = directory.exits(1, &["import", &t, "rows.csv"]);
    assert!(told.contains("damaged") && !told.contains("--resume"), "{told}");
    directory.write("rows.csv", b"id,n\xff\n1,2\n");
    let (_, told) = directory.exits(2, &["import", &t, "rows.csv"]);
    assert!(told.contains("UTF-8"), "{told}");
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 0);
    let mut command = directory.command(&["export", &t]);
    let output = command.env_remove("SELKIE_KEY").output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("SELKIE_KEY is not set"));
}

async fn a_new_table_has_the_types_of_the_file(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    directory.write("a.csv", "id,zip,price,at,on,meta,note\n1,01234,3.20,2024-01-01T08:00:00+02:00,true,\"{\"\"a\"\":1}\",\n2,9,10,2024-01-02 09:00:00.25,false,[],x\n");
    let table = format!("{}.a", db.name);
    let (_, told) = directory.exits(0, &["import", &table, "a.csv", "--create"]);
    assert!(told.contains("CREATE TABLE `a`") && told.contains("all 2 rows"), "{told}");
    let types = db.exec("SELECT COLUMN_NAME AS name, COLUMN_TYPE AS type FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'a' ORDER BY ORDINAL_POSITION").await;
    let found: Vec<_> =
        types.as_array().expect("rows").iter().map(|row| row["type"].as_str().expect("a type").to_owned()).collect();
    assert_eq!(
        found,
        ["int(11)", "varchar(255)", "decimal(4,2)", "datetime(2)", "tinyint(1)", "longtext", "varchar(255)"]
    );
    let row = db.get("a/1").await.payload();
    let expected = json!({"id": 1, "zip": "01234", "price": "3.20", "at": "2024-01-01 06:00:00.00", "on": 1, "meta": {"a": 1}, "note": null});
    assert_eq!(row, expected);
    // NDJSON from standard input, compressed, without a column `id`.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"name\": \"a\", \"n\": 1}\n{\"name\": null, \"more\": [1]}\n").expect("bytes");
    let mut child = directory
        .command(&["import", &format!("{}.b", db.name), "-", "--create", "--yes"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("a pipe").write_all(&gzip.finish().expect("bytes")).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = db.get("b?order=id").await.payload();
    assert_eq!(
        rows,
        json!([{"id": 1, "name": "a", "n": 1, "more": null}, {"id": 2, "name": null, "n": null, "more": [1]}])
    );
}

async fn columns_are_mapped_to_fields(host: Host) {
    let create = "CREATE TABLE t (id INT PRIMARY KEY, full_name VARCHAR(50), n INT, twice INT AS (n * 2))";
    let db = TestDb::new(host, &[create]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    directory.write("rows.txt", "ID\tFull Name \tcount \ttwice\tnote \n1\ta, \"b\"\t3\t6\tx\n2\t\"\"\t\t\ty\n");
    let table = format!("{}.t", db.name);
    let (_, told) = directory
        .exits(0, &["import", &table, "rows.txt", "--delimiter", "\\t", "--map", "count=n", "--map", "note=", "--yes"]);
    assert!(told.contains("(left out)"), "{told}");
    let rows = db.get("t?order=id").await.payload();
    assert_eq!(
        rows,
        json!([{"id": 1, "full_name": "a, \"b\"", "n": 3, "twice": 6}, {"id": 2, "full_name": "", "n": null, "twice": null}])
    );
}

async fn conflicts_update_or_are_ignored(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)"]).await;
    let directory = WorkingDirectory::new(Way::Url(host));
    let table = format!("{}.t", db.name);
    directory.write("rows.csv", "id,n\n1,5\n2,6\n2,7\n");
    let done = directory.import(&table, "rows.csv", &["--on-conflict", "ignore"]);
    assert_eq!((done["imported"].clone(), done["unchanged"].clone()), (json!(1), json!(2)));
    assert_eq!(db.value("SELECT GROUP_CONCAT(n ORDER BY id) FROM t").await, "1,6");
    directory.import(&table, "rows.csv", &["--on-conflict", "update", "--batch-rows", "1"]);
    assert_eq!(db.value("SELECT GROUP_CONCAT(n ORDER BY id) FROM t").await, "5,7");
}

async fn an_export_is_chosen_by_query_select_and_order(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1), (2, 2), (3, 2)"],
    )
    .await;
    let mut directory = WorkingDirectory::new(Way::Url(host));
    directory.key.clone_from(&shared().read_key);
    let arguments =
        ["export", &format!("{}.t", db.name), "--query", "{\"n\": 2}", "--select", "n,id", "--order", "-n,-id"];
    assert_eq!(directory.exits(0, &arguments).0, "n,id\r\n2,3\r\n2,2\r\n");
    // The API key is read from a file.
    directory.write("key", format!("{}\n", directory.key));
    let mut command = directory.command(&[&arguments[..], &["--key-file", "key"]].concat());
    let output = command.env_remove("SELKIE_KEY").output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n,id\r\n2,3\r\n2,2\r\n");
}

async fn a_role_binds_both_commands(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, n INT, secret INT)", "INSERT INTO t VALUES (1, 1, 9), (2, 2, 9)"],
    )
    .await;
    let table = format!("{}.t", db.name);
    let mut directory = WorkingDirectory::new(Way::Url(host));
    let rule = json!({"insert": {"fields": ["id", "n"], "rows": {"n": {"value": 5, "equality": ">"}}}, "read": {"rows": {"n": {"value": 2, "equality": ">="}}, "fields": ["id", "n"]}});
    let role = create_role(&role_of(&db, [("t", rule)]));
    directory.key = shared().create_role_key("default", &role, &[]).token;
    assert_eq!(directory.exits(0, &["export", &table]).0, "id,n\r\n2,2\r\n");
    directory.write("rows.csv", "id,n\n10,6\n11,5\n12,7\n");
    directory.exits(3, &["import", &table, "rows.csv"]);
    assert_eq!(directory.rejects("rows.rejected.ndjson")[0]["code"], "role_forbids");
    assert_eq!(db.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM t").await, "1,2,10,12");
    directory.write("secret.csv", "id,secret\n20,6\n");
    let (_, told) = directory.exits(2, &["import", &table, "secret.csv", "--yes"]);
    assert!(told.contains("no field \"secret\""), "{told}");
    directory.key.clone_from(&shared().read_key);
    let (_, told) = directory.exits(1, &["import", &table, "rows.csv", "--rejects", "r"]);
    assert!(told.contains("may not insert"), "{told}");
    let mut role = role_of(&db, [("t", json!({"read": true}))]);
    role["maxRows"] = json!(3);
    directory.key = shared().create_role_key("default", &create_role(&role), &[]).token;
    for format in ["csv", "ndjson"] {
        let (printed, told) = directory.exits(1, &["export", &table, "--format", format]);
        assert_eq!(printed, "");
        assert!(told.contains("role lets one read have"), "{told}");
    }
}
