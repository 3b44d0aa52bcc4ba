//! Tests `selkie backup` and `selkie restore`: an installation with every kind of content is saved
//! while it runs, destroyed and restored. Also tests refusals, and interrupted or damaged backups.

pub(crate) mod load;
pub(crate) mod tenant;
pub(crate) mod texts;

use crate::host::{Call, Host, enc};
use crate::roles::set_role_in;
use crate::scratch;
use crate::service::{Edge, Service, binary, clear_settings, find_socket};
use base64::Engine as _;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

cases! {
    Own: [
        a_destroyed_installation_is_restored,
        an_interrupted_backup_is_none,
    ],
}

/// A table with columns of most types and values that are hard to preserve, and each other kind of
/// object that a database can contain.
const CONTENT: &str = r#"
    CREATE DATABASE `els ewhere-ü`;
    USE `els ewhere-ü`;
    CREATE TABLE kinds (
        id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, whole TINYINT, price DECIMAL(30,10), exact DOUBLE, near FLOAT, flags BIT(12),
        words TEXT CHARACTER SET utf8mb4, fixed BINARY(4), bytes LONGBLOB, kind ENUM('a','b'), some SET('x','y'),
        data JSON, place POINT, day DATE, moment DATETIME(6), stamp TIMESTAMP(3) NULL, span TIME(6), born YEAR, own UUID,
        address INET6, doubled INT AS (whole * 2) VIRTUAL, kept INT AS (whole + 1) STORED, hidden INT INVISIBLE DEFAULT 7,
        CHECK (whole > -100), UNIQUE KEY by_price (price)
    );
    INSERT INTO kinds VALUES
        (0, -99, 12345678901234567890.0123456789, 0.1, 16777217, b'101010101010', 'Zoë 👩‍👩‍👧 \\ '' " \n\t\Z', 0x00ff2700,
         CONCAT(CHAR(0), CHAR(10), CHAR(13), CHAR(26), CHAR(92), CHAR(39), CHAR(255)), 'b', 'x,y',
         '{"a": "\\u00e9 😀"}', ST_GeomFromText('POINT(1.5 -2.25)'), '1000-01-01', '9999-12-31 23:59:59.999999',
         '2024-02-29 12:00:00.123', '-838:59:59.999999', 1901, '123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00',
         DEFAULT, DEFAULT),
        (DEFAULT, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
         NULL, DEFAULT, DEFAULT);
    UPDATE kinds SET hidden = 11 WHERE whole = -99;
    CREATE TABLE child (id INT PRIMARY KEY, parent BIGINT UNSIGNED, note VARCHAR(40) DEFAULT 'none',
        CONSTRAINT of_kind FOREIGN KEY (parent) REFERENCES kinds (id) ON DELETE CASCADE);
    INSERT INTO child VALUES (1, 1, 'x');
    CREATE VIEW plain AS SELECT id, whole FROM kinds WHERE whole IS NOT NULL;
    CREATE TRIGGER noted BEFORE INSERT ON child FOR EACH ROW SET NEW.note = CONCAT(NEW.note, '; noted');
    CREATE SEQUENCE numbers START WITH 100 INCREMENT BY 5;
    SELECT NEXT VALUE FOR numbers;
    CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2;
    CREATE EVENT never ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01 00:00:00' DO DELETE FROM child;
"#;

/// The database of [`CONTENT`], which the project `shop` adopts.
const ADOPTED: &str = "els ewhere-ü";

/// Statements whose results must be the same after a restore.
const LOOKS: [&str; 13] = [
    "SELECT *, hidden, HEX(bytes), HEX(fixed), HEX(flags), HEX(words), HEX(data), ST_AsText(place) FROM kinds",
    "SELECT * FROM child",
    "SHOW CREATE TABLE kinds",
    "SHOW CREATE TABLE child",
    "SHOW CREATE VIEW plain",
    "SELECT ACTION_TIMING, EVENT_MANIPULATION, EVENT_OBJECT_TABLE, ACTION_STATEMENT, DEFINER, SQL_MODE \
     FROM information_schema.TRIGGERS WHERE TRIGGER_NAME = 'noted'",
    "SHOW CREATE SEQUENCE numbers",
    "SELECT next_not_cached_value FROM numbers",
    "SHOW CREATE FUNCTION twice",
    "SHOW CREATE EVENT never",
    "SELECT * FROM demo.posts ORDER BY id",
    "SHOW GRANTS FOR 'selkie-shop-rw'@'localhost'",
    "SHOW GRANTS FOR 'selkie-shop-ro'@'localhost'",
];

/// Returns an installation's content as SQL, commands and API requests show it: each with its
/// result.
async fn look(service: &Service, keys: &Keys) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    for statement in LOOKS {
        let found = service.root_sql(&format!("USE `{ADOPTED}`; {statement}"));
        let found = found.unwrap_or_else(|error| panic!("{statement}: {error}"));
        // MariaDB lists grants in no particular order.
        let mut lines: Vec<&str> = found.lines().collect();
        lines.sort_unstable();
        seen.push((statement.to_owned(), lines.join("\n")));
    }
    for arguments in [
        vec!["database", "list", "--json"],
        vec!["project", "list", "--json"],
        vec!["role", "show", "reader", "--project", "shop"],
        vec!["key", "jwks"],
        vec!["media", "ls", "--project", "shop", "--json"],
    ] {
        seen.push((arguments.join(" "), service.cli_ok(&arguments)));
    }
    let database = enc(ADOPTED);
    for (path, key) in [
        (format!("/api/v1/crud/{database}/kinds"), &keys.full),
        (format!("/api/v1/crud/{database}/plain"), &keys.read),
        (format!("/api/v1/crud/{database}/child"), &keys.role),
        ("/api/v1/crud/shop_made/t".to_owned(), &keys.full),
    ] {
        let answer = Call::new(&service.origin, Method::GET, &path).key(key).send().await;
        seen.push((path, answer.payload().to_string()));
    }
    let files =
        Call::new(&service.origin, Method::GET, "/api/v1/media?order=id").key(&keys.full).send().await.payload();
    for file in files.as_array().expect("a list") {
        for url in [&file["url"], &file["thumbnailUrl"]] {
            let Some(at) = url.as_str().and_then(|url| url.find("/media/").map(|at| &url[at..])) else {
                continue;
            };
            let call = Call::new(&service.origin, Method::GET, at);
            let answer = if file["private"] == json!(true) { call.key(&keys.read) } else { call.no_key() }.send().await;
            assert_eq!(answer.status, 200, "{at}");
            seen.push((at.to_owned(), base64::prelude::BASE64_STANDARD.encode(&answer.body)));
        }
    }
    seen
}

/// Keys of the project `shop`.
struct Keys {
    full: String,
    read: String,
    role: String,
}

async fn fill(service: &Service) -> Keys {
    service.root_sql(CONTENT).expect("the content");
    service.create_project("shop");
    service.cli_ok(&["database", "adopt", ADOPTED, "--project", "shop", "--allow-drop", "nothing"]);
    service.cli_ok(&["database", "create", "shop_made", "--project", "shop"]);
    service
        .root_sql("CREATE TABLE shop_made.t (id INT PRIMARY KEY); INSERT INTO shop_made.t VALUES (1)")
        .expect("a table");
    let table = format!("{ADOPTED}.child");
    set_role_in(service, "shop", "reader", &json!({"tables": {table: {"read": {"fields": ["id", "note"]}}}}));
    let key = |more: &[&str]| {
        let printed = service.cli_ok(&[&["key", "create", "--project", "shop"], more].concat());
        printed.split_whitespace().find(|word| word.starts_with("ey")).expect("a key").to_owned()
    };
    let keys =
        Keys { full: key(&["--access", "full"]), read: key(&["--access", "read"]), role: key(&["--role", "reader"]) };
    upload(service, &keys, "image", "picture.png", false, &picture()).await;
    upload(service, &keys, "file", "naïve 😀.txt", false, b"text\0\xff").await;
    upload(service, &keys, "file", "secret.bin", true, b"private").await;
    keys
}

fn picture() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::RgbImage::from_fn(600, 400, |x, y| image::Rgb([x as u8, y as u8, (x * y) as u8]));
    picture.write_to(&mut bytes, image::ImageFormat::Png).expect("a picture");
    bytes.into_inner()
}

async fn upload(service: &Service, keys: &Keys, kind: &str, name: &str, private: bool, bytes: &[u8]) {
    let text = base64::prelude::BASE64_STANDARD.encode(bytes);
    let mime = if kind == "image" { "image/png" } else { "application/octet-stream" };
    let item = json!({"name": name, "private": private, "base64": format!("data:{mime};base64,{text}")});
    let body = json!({"type": kind, "media": [item]});
    let answer = Call::new(&service.origin, Method::POST, "/api/v1/media").key(&keys.full).json(&body).send().await;
    assert_eq!(answer.status, 200, "{answer}");
}

/// A directory without an installation, in which `selkie` runs as on a new machine.
struct NewMachine(tempfile::TempDir);

impl NewMachine {
    fn new() -> Self {
        Self(scratch::service_directory().expect("a directory"))
    }

    fn data_dir(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary().expect("the binary"));
        clear_settings(&mut command);
        command.arg("--data-dir").arg(self.data_dir()).args(arguments);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        self.command(arguments).envs(settings.iter().copied()).output().expect("it runs")
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], settings: &[(&str, &str)], part: &str) {
        let output = self.run(arguments, settings);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", told(&output));
        assert!(told(&output).contains(part), "{part:?} is missing: {}", told(&output));
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

/// Runs a backup that must succeed, and returns what it prints with `--json`.
fn back_up(service: &Service, place: &Path, more: &[&str]) -> Value {
    let place = place.to_str().expect("a path");
    let printed = service.cli_ok(&[&["backup", place, "--json"], more].concat());
    serde_json::from_str(&printed).expect("JSON")
}

async fn a_destroyed_installation_is_restored(_: Host) {
    let service = Service::start(Edge::Without, &[]).expect("a service");
    let keys = fill(&service).await;
    let subscription = json!({"database": "shop_made", "table": "t"});
    let webhook = json!({"name": "kept", "url": "https://example.com/", "subscriptions": [subscription]});
    let made = Call::new(&service.origin, Method::POST, "/api/v1/webhooks").key(&keys.full).json(&webhook);
    assert_eq!(made.send().await.payload()["paused"], false);
    let backups = tempfile::tempdir().expect("a directory");
    let first = back_up(&service, backups.path(), &[]);
    assert_eq!((&first["copiedObjects"], &first["mediaObjects"]), (&json!(4), &json!(4)), "{first}");
    assert_eq!(first["hasSecret"], false);
    assert!(!fs::read_to_string(backups.path().join("manifest.json")).unwrap().contains("\"secret\""));
    upload(&service, &keys, "file", "late.txt", false, b"late").await;
    let second = back_up(&service, backups.path(), &["--with-secret"]);
    assert_eq!((&second["copiedObjects"], &second["mediaObjects"]), (&json!(1), &json!(5)), "{second}");
    let before = look(&service, &keys).await;
    let id = service.root_sql("SELECT uuid FROM selkie.installation").expect("an id");
    let place = backups.path().to_str().expect("a path");
    let running = service.cli(&["restore", place, "--replace", "--yes"]);
    assert!(told(&running).contains("an origin runs on this data directory"), "{}", told(&running));
    let machine = NewMachine::new();
    let user = "CREATE USER restorer@localhost IDENTIFIED BY 'restorer'; \
                GRANT ALL PRIVILEGES ON *.* TO restorer@localhost WITH GRANT OPTION";
    service.root_sql(user).expect("a user");
    let socket = find_socket(&service.data_dir()).expect("a socket");
    let url = format!("mysql://restorer:restorer@localhost?socket={}", socket.display());
    machine.fails(&["restore", place], &[("SELKIE_DATABASE_URL", &url)], "the installation is not empty");
    assert!(!machine.data_dir().join("secret").exists(), "a refused restore wrote the backup's secret");
    drop(service.stop_and_keep().expect("a stop"));
    let restored = machine.run(&["restore", place, "--json"], &[]);
    assert!(restored.status.success(), "{}", told(&restored));
    let answer: Value = serde_json::from_slice(&restored.stdout).expect("JSON");
    assert_eq!((&answer["keysStayValid"], &answer["removedFiles"]), (&json!(true), &json!(0)), "{answer}");
    let mark = fs::read_to_string(machine.data_dir().join("media/owner")).expect("a mark");
    assert_ne!(mark.trim(), id.trim(), "the copy and its original have one id");
    machine.fails(&["restore", place], &[], "the installation is not empty: it has database");
    // A restore refuses the original's media store without `--original-is-gone`.
    let media = tempfile::tempdir().expect("a directory");
    fs::write(media.path().join("owner"), &id).expect("a file");
    let store = format!("file://{}", media.path().display());
    let settings = [("SELKIE_MEDIA_STORE", store.as_str())];
    let again = ["restore", place, "--replace", "--yes"];
    machine.fails(&again, &settings, "which may still run");
    let older = [&again[..], &["--original-is-gone", "--manifest", first["manifest"].as_str().unwrap()]].concat();
    let replaced = machine.run(&older, &settings);
    assert!(replaced.status.success(), "{}", told(&replaced));
    assert!(told(&replaced).contains("media objects copied: 4"), "{}", told(&replaced));
    let newest = machine.run(&again, &settings);
    assert!(newest.status.success(), "{}", told(&newest));
    assert!(told(&newest).contains("media objects copied: 1"), "{}", told(&newest));
    let service = Service::start_in(machine.0, Edge::Without, &settings).expect("a service");
    let after = look(&service, &keys).await;
    for ((statement, before), after) in before.iter().zip(&after) {
        // The objects were made by root: they have the project's account now.
        let before = before.replace("`root`@", "`selkie-shop-rw`@").replace("\troot@", "\tselkie-shop-rw@");
        assert_eq!((statement, &before), (&after.0, &after.1));
    }
    assert_eq!(before.len(), after.len());
    assert_eq!(service.root_sql("SELECT uuid FROM selkie.installation").expect("an id"), id);
    let webhook =
        Call::new(&service.origin, Method::GET, "/api/v1/webhooks/kept").key(&keys.full).send().await.payload();
    let reason = webhook["pauseReason"].as_str().unwrap_or_default();
    assert!(webhook["paused"] == true && reason.contains("restored from a backup"), "{webhook}");
    let trigger = "INSERT INTO child (id) VALUES (2); SELECT note FROM child WHERE id = 2";
    let noted = service.root_sql(&format!("USE `{ADOPTED}`; {trigger}")).expect("a row");
    assert_eq!(noted, "none; noted\n");
    upload(&service, &keys, "file", "new.txt", false, b"new").await;
    service.stop().expect("a stop");
}

async fn an_interrupted_backup_is_none(_: Host) {
    let service = Service::start(Edge::Without, &[]).expect("a service");
    let backups = tempfile::tempdir().expect("a directory");
    let place = backups.path().to_str().expect("a path");
    let objects = backups.path().join("objects");
    fs::write(&objects, "not a directory").expect("a file");
    let failed = service.cli(&["backup", place]);
    assert_eq!(failed.status.code(), Some(1), "{}", told(&failed));
    assert!(!backups.path().join("manifest.json").exists());
    fs::remove_file(&objects).expect("no file");
    let machine = NewMachine::new();
    machine.fails(&["restore", place], &[], "no backup was completed there");
    back_up(&service, backups.path(), &[]);
    let restored = machine.run(&["restore", place], &[]);
    assert!(restored.status.success(), "{}", told(&restored));
    let databases = || told(&machine.run(&["database", "list", "--json"], &[]));
    let before = databases();
    let manifest: Value = serde_json::from_slice(&fs::read(backups.path().join("manifest.json")).unwrap()).unwrap();
    let dump = manifest["projects"][0]["dump"]["key"].as_str().unwrap_or_else(|| panic!("{manifest}"));
    let file = backups.path().join("objects").join(&dump[34..]).join(dump);
    let mut bytes = fs::read(&file).expect("the dump");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).expect("a file");
    machine.fails(&["restore", place, "--replace", "--yes"], &[], "a dump of the backup is damaged");
    assert!(before.contains("demo") && databases() == before, "a refused restore dropped something");
    fs::write(backups.path().join("manifest.json"), r#"{"format": 9}"#).expect("a file");
    machine.fails(&["restore", place], &[], "it has the format 9, and this program reads only 2");
    fs::write(backups.path().join("manifest.json"), r#"{"format": 1}"#).expect("a file");
    machine.fails(&["restore", place], &[], "could run a project's statements as the admin account");
    let same = service.cli(&["backup", service.data_dir().join("media").to_str().expect("a path")]);
    assert_eq!(same.status.code(), Some(2), "{}", told(&same));
    service.stop().expect("a stop");
}
