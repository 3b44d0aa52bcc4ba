//! The description of the API: the OpenAPI document, and types of the tables.

mod generators;
mod page;
mod probe;
mod types;

use crate::host::{Answer, Call, Host};
use crate::roles::Caller;
use crate::service::{shared, workspace};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Output};

/// Tables with a column of each kind, keys of each form, relations, a view, and names that need quotes.
pub(crate) const TABLES: &[&str] = &[
    "CREATE TABLE authors (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL COMMENT 'in full', \
     mentor_id INT, FOREIGN KEY (mentor_id) REFERENCES authors (id))",
    "CREATE TABLE posts (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, author_id INT NOT NULL, title VARCHAR(80) NOT NULL, \
     body TEXT, price DECIMAL(10,2) NOT NULL DEFAULT 0, views INT UNSIGNED NOT NULL DEFAULT 0, \
     doubled INT UNSIGNED AS (views * 2) VIRTUAL, state ENUM('draft','out','it''s \"off\"') NOT NULL DEFAULT 'draft', \
     secret_note VARCHAR(20), FULLTEXT (title), FOREIGN KEY (author_id) REFERENCES authors (id))",
    "CREATE TABLE tags (id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL UNIQUE)",
    "CREATE TABLE post_tags (post_id BIGINT UNSIGNED, tag_id SMALLINT UNSIGNED, PRIMARY KEY (post_id, tag_id), \
     FOREIGN KEY (post_id) REFERENCES posts (id), FOREIGN KEY (tag_id) REFERENCES tags (id))",
    "CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, big BIGINT, flags BIT(4), wide BIT(60), \
     exact DECIMAL(30,20), whole DECIMAL(8,0), near DOUBLE, near_too FLOAT, letters CHAR(3), words LONGTEXT, choice SET('x','y'), code UUID, \
     address INET6, old_address INET4, day DATE, at DATETIME(3), stamp TIMESTAMP NULL, span TIME(1), born YEAR, extra JSON, bytes VARBINARY(16), \
     place POINT, hidden INT INVISIBLE DEFAULT 7)",
    "CREATE TABLE `odd names` (`the key` VARCHAR(10) PRIMARY KEY, `class` INT, `a-b` INT, `größe` INT, `1st` INT)",
    "CREATE TABLE keyless (word VARCHAR(10), id2 INT)",
    "CREATE VIEW totals AS SELECT author_id, COUNT(*) AS posts, SUM(price) AS worth FROM posts GROUP BY author_id",
    "INSERT INTO authors (name, mentor_id) VALUES ('Ann', NULL), ('Bo', 1), ('Cy', 1)",
    "INSERT INTO posts (author_id, title, price, views) VALUES (1, 'Sea', 1.5, 3), (2, 'Bread', 2.25, 9), (1, 'Rain', 0, 0)",
    "INSERT INTO tags (name) VALUES ('salt'), ('flour')",
    "INSERT INTO post_tags VALUES (1, 1), (2, 2)",
    "INSERT INTO kinds (big, flags, wide, exact, whole, near, near_too, letters, choice, code, address, old_address, day, at, stamp, span, \
     born, extra, bytes, place) VALUES (9223372036854775807, 5, 1152921504606846975, 0.1, 7, 0.1, 0.5, 'abc', 'x,y', UUID(), '::1', '192.0.2.1', \
     '2026-11-20', '2026-11-20 08:36:16.500', '2026-11-20 08:36:16', '-27:30:00.5', 2026, '{\"a\": [1, null]}', 'bytes', POINT(5, 60))",
    "INSERT INTO `odd names` VALUES ('k', 1, 2, 3, 4)",
    "INSERT INTO keyless VALUES ('a', 1)",
];

cases! {
    Both: [
        the_document_has_a_tag_and_is_the_same_until_the_schema_changes,
        a_document_is_of_one_database_or_of_all,
        a_key_that_only_reads_is_told_of_reads,
        a_roles_document_has_nothing_that_it_may_not_see,
        descriptions_take_no_other_option_and_no_other_method,
    ],
    Origin: [
        linters_find_no_fault_in_the_document,
    ],
}

pub(crate) fn description(db: &TestDb, form: &str) -> Call {
    db.host.get(&format!("/api/v1/{form}?database={}", db.name))
}

fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().expect("paths").values();
    let operations = paths.flat_map(|path| path.as_object().expect("a path").values());
    operations.filter_map(|operation| operation["operationId"].as_str().map(str::to_owned)).collect()
}

pub(crate) async fn node(program: &str, arguments: Vec<String>) -> Output {
    let mut command = Command::new(workspace().join("node_modules/.bin").join(program));
    command.args(arguments).current_dir(workspace()).env("REDOCLY_TELEMETRY", "off");
    command.env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    tokio::task::spawn_blocking(move || command.output())
        .await
        .expect("a task")
        .expect("node, which `make setup` installs")
}

fn same(one: &Answer, other: &Answer) -> bool {
    one.body == other.body && one.header("etag") == other.header("etag")
}

async fn the_document_has_a_tag_and_is_the_same_until_the_schema_changes(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    for form in ["openapi.json", "types.ts"] {
        let first = description(&db, form).send().await;
        assert_eq!(first.status, 200, "{first}");
        assert!(same(&first, &description(&db, form).send().await), "{form}");
        let elsewhere = Call::new(Host::Origin.url(), Method::GET, &format!("/api/v1/{form}?database={}", db.name));
        assert!(same(&first, &elsewhere.key(&shared().full_key).send().await), "{form}");
        let tag = first.header("etag").expect("a tag").to_owned();
        assert!(tag.starts_with('"'), "{tag}");
        assert_eq!(first.header("cache-control"), Some("private, no-cache"));
        let again = description(&db, form).header("if-none-match", &tag).send().await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{again}");
        db.exec(&format!("CREATE TABLE `for {form}` (id INT PRIMARY KEY)")).await;
        let changed = description(&db, form).header("if-none-match", &tag).send().await;
        assert_eq!(changed.status, 200, "{changed}");
        assert!(changed.text().contains(&format!("for {form}")) || changed.text().contains(&format!("for%20{form}")));
    }
}

async fn a_document_is_of_one_database_or_of_all(host: Host) {
    let project = crate::test_db::unique("described");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let call = |path: &str| Call::new(host.url(), Method::GET, path).key(&key);
    let names = [format!("{}_b", project), format!("{}_a", project)];
    for name in &names {
        for query in [format!("CREATE DATABASE {name}"), format!("CREATE TABLE {name}.t (id INT PRIMARY KEY)")] {
            let sql = Call::new(host.url(), Method::POST, "/api/v1/sql").key(&key);
            sql.json(&json!({"query": query})).send().await.payload();
        }
    }
    let all = call("/api/v1/openapi.json").send().await;
    let found = operations(&all.json());
    assert!(names.iter().all(|name| found.contains(&format!("{name}.t.list"))), "{found:?}");
    let one = call(&format!("/api/v1/openapi.json?database={}", names[0])).send().await.json();
    assert!(!operations(&one).contains(&format!("{}.t.list", names[1])));
    call("/api/v1/openapi.json?database=nowhere").send().await.refused(ErrorCode::DatabaseNotFound);
    call("/api/v1/types.ts?database=mysql").send().await.refused(ErrorCode::DatabaseNotFound);
}

async fn a_key_that_only_reads_is_told_of_reads(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let document = description(&db, "openapi.json").key(&shared().read_key).send().await.json();
    let found = operations(&document);
    let of_posts: Vec<_> = found.iter().filter_map(|id| id.strip_prefix(&format!("{}.posts.", db.name))).collect();
    assert_eq!(of_posts, ["get", "list", "options", "query", "schema"]);
    assert!(found.contains("files") && !found.contains("sql") && !found.contains("upload") && !found.contains("batch"));
    let types = description(&db, "types.ts").key(&shared().read_key).send().await.text();
    assert!(types.contains("insert: never;") && !types.contains("insert: {"), "{types}");
    let full = operations(&description(&db, "openapi.json").send().await.json());
    let of_view: Vec<_> = full.iter().filter_map(|id| id.strip_prefix(&format!("{}.totals.", db.name))).collect();
    assert_eq!(of_view, ["list", "options", "query", "schema"], "a view without a key that can't be written");
    assert!(full.contains("sql") && full.contains("batch") && full.contains("upload"));
}

async fn a_roles_document_has_nothing_that_it_may_not_see(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let rules = [
        (
            "posts",
            json!({"read": {"fields": {"omit": ["secret_note", "price"]}},
                "insert": {"fields": ["title", "author_id"], "set": {"views": 1}}, "update": {"fields": ["title"]}}),
        ),
        ("tags", json!({"insert": {"fields": ["name"]}})),
    ];
    let caller = Caller::new(&db, rules, json!({}));
    let (openapi, types) = (
        description(&db, "openapi.json").key(&caller.key).send().await,
        description(&db, "types.ts").key(&caller.key).send().await,
    );
    for answer in [&openapi, &types] {
        assert_eq!(answer.status, 200, "{answer}");
        let text = answer.text();
        for hidden in ["secret_note", "price", "authors", "mentor", "post_tags", "kinds", "odd", "keyless", "totals"] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
    }
    let document = openapi.json();
    let found = operations(&document);
    let of = |table: &str| -> Vec<_> {
        let prefix = format!("{}.{table}.", db.name);
        found.iter().filter_map(|id| id.strip_prefix(&prefix)).map(str::to_owned).collect()
    };
    assert_eq!(
        of("posts"),
        ["get", "insert", "list", "options", "patch", "patchMany", "query", "schema", "update", "updateMany"]
    );
    assert_eq!(of("tags"), ["insert"]);
    let insert = &document["components"]["schemas"][format!("{}.posts.insert", db.name)];
    assert_eq!(insert["required"], json!(["author_id", "title"]));
    assert!(!found.contains("sql") && !found.contains("files"));
}

async fn descriptions_take_no_other_option_and_no_other_method(host: Host) {
    for path in ["/api/v1/openapi.json", "/api/v1/types.ts", "/api/v1/types.py", "/api/v1/types.rs"] {
        host.get(&format!("{path}?tables=a")).send().await.refused(ErrorCode::InvalidQueryOption);
        host.get(&format!("{path}?database=a&database=b")).send().await.refused(ErrorCode::InvalidQueryOption);
        host.call(Method::POST, path).send().await.refused(ErrorCode::MethodNotAllowed);
        host.get(path).no_key().send().await.refused(ErrorCode::MissingKey);
        let head = host.call(Method::HEAD, &format!("{path}?database=nowhere")).send().await;
        assert_eq!(head.status, 404, "{head}");
    }
}

async fn linters_find_no_fault_in_the_document(host: Host) {
    let document = async |tables: &[&str]| {
        let db = TestDb::new(host, tables).await;
        let mut file = tempfile::Builder::new().suffix(".json").tempfile().expect("a file");
        file.write_all(&description(&db, "openapi.json").send().await.body).expect("a file");
        let path = file.path().to_str().expect("a path").to_owned();
        (file, path)
    };
    // Spectral decodes percent-encoded paths, and then doesn't check the parts below them.
    let plain: Vec<_> = TABLES.iter().filter(|statement| !statement.contains("odd names")).copied().collect();
    let ((_file, path), (_plain_file, plain_path)) = (document(TABLES).await, document(&plain).await);
    let redocly = ["lint", "--config", "tests/clients/redocly.yaml", &path].map(str::to_owned).to_vec();
    let spectral = ["lint", "--ruleset", "tests/clients/spectral.yaml", "--fail-severity", "warn", &plain_path];
    let spectral = spectral.map(str::to_owned).to_vec();
    let (redocly, spectral) = tokio::join!(node("redocly", redocly), node("spectral", spectral));
    for output in [redocly, spectral] {
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success(), "{said}");
    }
}
