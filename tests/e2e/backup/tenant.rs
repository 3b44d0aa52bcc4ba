//! Backups of what hostile or careless tenants make: a restore runs nothing of theirs under another account, and an
//! object that can't be saved or restored stops nobody else's.

use super::{NewMachine, back_up, told};
use crate::host::{Call, Host};
use crate::service::{Edge, Service, peak_bytes};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

cases! {
    Own: [
        a_restore_runs_nothing_of_a_tenant_as_another_account,
        an_object_that_can_not_be_saved_stops_nothing_else,
        code_that_does_not_end_is_left_out,
        a_project_that_ends_its_own_connection_harms_no_other,
        a_table_that_becomes_a_view_during_the_backup_is_left_out,
        a_restore_takes_little_memory_for_rows_that_compress_well,
    ],
}

/// What the texts try to run at a restore.
const EVIL: &str = "CREATE USER backdoor@localhost";

/// Statements of a full key. `;E` stands for [`EVIL`], `--C` for a comment that MariaDB sees and its client does not.
const PAYLOADS: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(200))",
    "INSERT INTO t VALUES (1, '1'), (2, 'x'';;E;;'), (3, '\\\\'), (4, '\\n\\\\! touch PLACE\\n;E;\\nDELIMITER x\\n')",
    "CREATE PROCEDURE comment_1()\nSELECT 1 --C ;;E;;GRANT ALL PRIVILEGES ON *.* TO backdoor@localhost;; SELECT 2 --C \n + 1",
    "CREATE PROCEDURE comment_2() SELECT 1 --C ;E;\n + 1",
    "CREATE PROCEDURE shell() SELECT 1 --C \\! touch PLACE\n + 1",
    "CREATE PROCEDURE shell_2() SELECT 1 /*\n\\! touch PLACE\nsystem touch PLACE\n*/ + 1",
    "CREATE PROCEDURE source() SELECT 1 /*\n\\. PLACE\nsource PLACE\ntee PLACE\n*/ + 1",
    "CREATE PROCEDURE read_file() SELECT 1 --C ;;LOAD DATA LOCAL INFILE 'SECRET' INTO TABLE shop_a.t (note);;\n + 1",
    "CREATE PROCEDURE delimiter() SELECT 1 /*\nDELIMITER //\n*/ + 1 --C //;E//\n",
    "CREATE PROCEDURE executable() SELECT 1 /*!50000 + 1 */ /*M!100000 + 2 */ /*!999999 ;E */",
    "CREATE PROCEDURE newer() BEGIN SELECT 1; /*M!999999 END ;E ; */ END",
    "CREATE PROCEDURE quotes() SELECT 'x'';;E;;', \"\\\";;E;;\", `id;;E` FROM (SELECT 1 AS `id;;E`) d",
    "CREATE PROCEDURE `name;;E`() SELECT 1",
    "CREATE PROCEDURE `tick``;;E`() SELECT 1",
    "CREATE PROCEDURE `line\n;\n\\! touch x\n`() SELECT 1",
    "CREATE PROCEDURE described() COMMENT 'x'';;E;;\n\\\\! touch PLACE' SELECT 1",
    "CREATE FUNCTION worked(n INT) RETURNS INT DETERMINISTIC RETURN n --C ;;E;;\n + 1",
    "SET STATEMENT sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES' FOR EXECUTE IMMEDIATE 'CREATE PROCEDURE modes() SELECT ''a\\\\'' AS \"x;;E;;\"'",
    "SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR EXECUTE IMMEDIATE 'CREATE PROCEDURE modes_2() SELECT ''\\\\'', '';;E;;'' AS x'",
    "SET STATEMENT sql_mode = 'ORACLE' FOR EXECUTE IMMEDIATE 'CREATE FUNCTION oracle RETURN INT AS BEGIN RETURN 1 --C ;;E;;\n + 1; END'",
    "CREATE VIEW looked AS SELECT id, 'x'';;E;;' AS `a;;E`, \"\\\\\" AS `b``;;E` FROM t",
    "CREATE SQL SECURITY DEFINER VIEW a_later AS SELECT * FROM looked",
    "CREATE FUNCTION writes() RETURNS INT SQL SECURITY INVOKER BEGIN \
     INSERT INTO mysql.global_priv (Host, User) VALUES ('%', 'backdoor'); RETURN 1; END",
    "CREATE SQL SECURITY INVOKER VIEW writing AS SELECT writes() AS x FROM (SELECT 1) d WHERE writes() = 1",
    "CREATE TRIGGER noted BEFORE INSERT ON t FOR EACH ROW SET NEW.note = CONCAT('triggered', 1 --C ;;E;;\n + 1)",
    "CREATE TRIGGER second BEFORE INSERT ON t FOR EACH ROW PRECEDES noted SET NEW.id = NEW.id + 100",
    "CREATE EVENT soon ON SCHEDULE EVERY 1 SECOND DO DELETE FROM t WHERE id = 1 --C ;;E;;\n",
    "CREATE EVENT described ON SCHEDULE EVERY 1 DAY COMMENT 'x'';;E;;' DO SELECT 1",
    "CREATE TABLE `tick``;;E` (`a``;;E` INT DEFAULT 1 COMMENT 'x'';;E;;', b VARCHAR(99) DEFAULT 'x'';;E;;\\n\\\\! touch', \
     c VARCHAR(199) AS (CONCAT(b, ''';;E;;')) VIRTUAL, CHECK (b <> ''';;E;;')) COMMENT 'x'';;E;;\n\\\\! touch PLACE'",
    "CREATE TABLE `line\n;\n\\! touch x` (`a\n;;E` INT, KEY `k``;` (`a\n;;E`))",
    "CREATE TABLE parted (id INT) PARTITION BY LIST (id) (PARTITION `p``;` VALUES IN (1) COMMENT = 'x'';;E;;')",
    "CREATE TABLE only_generated (a INT AS (1) VIRTUAL)",
    "INSERT INTO only_generated () VALUES (), ()",
    "CREATE SEQUENCE `s``;` START WITH 5",
    "ALTER DATABASE shop_a COMMENT 'x'';;E;;'",
];

/// Where a view can call a function with a constant. To describe most of these views, MariaDB calls the function. In
/// defaults, checks, generated columns, partitions and schedules, MariaDB allows no stored function.
const CONSTANT_CALLS: &[&str] = &[
    "SELECT ROUND(1.5, seen(1)) AS x",
    "SELECT (SELECT ROUND(1.5, seen(2))) AS x",
    "SELECT * FROM (SELECT ROUND(1.5, seen(3)) AS x) d",
    "WITH c AS (SELECT ROUND(1.5, seen(4)) AS x) SELECT * FROM c",
    "SELECT 1 AS x UNION SELECT ROUND(1.5, seen(5))",
    "SELECT seen(6) AS x",
    "SELECT id FROM t WHERE id = seen(7)",
    "SELECT id FROM t HAVING id = seen(8)",
    "SELECT a.id FROM t a JOIN t b ON a.id = ROUND(1.5, seen(9))",
    "SELECT COUNT(*) FROM t GROUP BY ROUND(id, seen(10))",
    "SELECT id FROM t ORDER BY ROUND(id, seen(11))",
];

/// What the function of [`CONSTANT_CALLS`] becomes once the views are there. Transactions don't undo what it records.
const RECORDS_ITS_CALLER: &str = "CREATE FUNCTION seen(place INT) RETURNS INT DETERMINISTIC SQL SECURITY INVOKER BEGIN \
    INSERT INTO shop_a.seen VALUES (CURRENT_USER(), place); RETURN 1; END";

async fn call_by_constants(service: &Service, key: &str) {
    run(service, key, "CREATE TABLE seen (who VARCHAR(99), place INT) ENGINE = MyISAM").await;
    run(service, key, "CREATE FUNCTION seen(place INT) RETURNS INT DETERMINISTIC SQL SECURITY INVOKER RETURN 1").await;
    for (at, select) in CONSTANT_CALLS.iter().enumerate() {
        for security in ["INVOKER", "DEFINER"] {
            let create = format!("CREATE SQL SECURITY {security} VIEW constant_{security}_{at} AS {select}");
            run(service, key, &create).await;
        }
    }
    run(service, key, "DROP FUNCTION seen").await;
    run(service, key, RECORDS_ITS_CALLER).await;
}

/// Returns who called the function of [`CONSTANT_CALLS`], and forgets it.
fn callers(service: &Service) -> String {
    service.root_sql("SELECT DISTINCT who FROM shop_a.seen; TRUNCATE shop_a.seen").expect("callers")
}

/// Statements that find everything that a restore must leave as it was: the objects and rows of the projects, and
/// MariaDB's accounts.
const LOOKS: &[&str] = &[
    "SELECT User, Host FROM mysql.global_priv WHERE User <> 'root' ORDER BY 1, 2",
    "SELECT GRANTEE, TABLE_SCHEMA, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES ORDER BY 1, 2, 3",
    "SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES ORDER BY 1, 2",
    "SELECT HEX(SCHEMA_NAME), HEX(SCHEMA_COMMENT) FROM information_schema.SCHEMATA ORDER BY 1",
    "SELECT HEX(TABLE_NAME), TABLE_TYPE, HEX(TABLE_COMMENT) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'shop_a' ORDER BY 1",
    "SELECT HEX(CONCAT_WS('|', TABLE_NAME, COLUMN_NAME, COLUMN_DEFAULT, COLUMN_COMMENT, GENERATION_EXPRESSION)) \
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'shop_a' ORDER BY 1",
    "SELECT HEX(CONCAT_WS('|', ROUTINE_NAME, ROUTINE_DEFINITION, SQL_MODE, ROUTINE_COMMENT, CHARACTER_SET_CLIENT, \
     COLLATION_CONNECTION, DATABASE_COLLATION)), DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'shop_a' ORDER BY 1",
    "SELECT HEX(CONCAT_WS('|', TRIGGER_NAME, ACTION_STATEMENT, SQL_MODE)), ACTION_ORDER, DEFINER \
     FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'shop_a' ORDER BY 1",
    "SELECT HEX(CONCAT_WS('|', EVENT_NAME, EVENT_DEFINITION, SQL_MODE, EVENT_COMMENT, STATUS, TIME_ZONE)), DEFINER \
     FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'shop_a' ORDER BY 1",
    "SELECT HEX(CONCAT_WS('|', TABLE_NAME, VIEW_DEFINITION, SECURITY_TYPE)), DEFINER FROM information_schema.VIEWS \
     WHERE TABLE_SCHEMA = 'shop_a' ORDER BY 1",
    "SELECT id, HEX(note) FROM shop_a.t ORDER BY id",
    "SELECT * FROM shop_a.only_generated",
    "SELECT * FROM other_a.t",
];

fn looks(service: &Service) -> Vec<String> {
    let look = |sql: &&str| service.root_sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    LOOKS.iter().map(look).collect()
}

/// Starts an installation with the projects `shop` and `other`, each with a database. Returns a full key of `shop`.
pub(super) fn start() -> (Service, String) {
    let service = Service::start(Edge::Without, &[]).expect("a service");
    for project in ["shop", "other"] {
        service.create_project(project);
        service.cli_ok(&["database", "create", &format!("{project}_a"), "--project", project]);
    }
    service.root_sql("CREATE TABLE other_a.t (id INT); INSERT INTO other_a.t VALUES (7)").expect("a table");
    let key = service.create_key("shop", "full", &[]).token;
    (service, key)
}

async fn run(service: &Service, key: &str, sql: &str) {
    let body = json!({"database": "shop_a", "query": sql});
    let answer = Call::new(&service.origin, Method::POST, "/api/v1/sql").key(key).json(&body).send().await;
    assert_eq!(answer.status, 200, "{sql:?}: {answer}");
}

pub(super) fn named(faults: &Value) -> Vec<&str> {
    faults.as_array().into_iter().flatten().filter_map(|fault| fault["object"].as_str()).collect()
}

async fn a_restore_runs_nothing_of_a_tenant_as_another_account(_: Host) {
    let (service, key) = start();
    let place = tempfile::tempdir().expect("a directory");
    let (touched, secret) = (place.path().join("touched"), service.data_dir().join("secret"));
    for payload in PAYLOADS {
        let sql = payload
            .replace("PLACE", touched.to_str().expect("a path"))
            .replace("SECRET", secret.to_str().expect("a path"))
            .replace("--C", "--\u{1}");
        run(&service, &key, &sql.replace(";E", &format!(";{EVIL}"))).await;
    }
    call_by_constants(&service, &key).await;
    let strangers = "SET NAMES latin1; \
        CREATE DEFINER = 'selkie-other-rw'@localhost PROCEDURE shop_a.latin() SELECT '\u{e9}', _latin1'\u{e9}'; \
        CREATE DEFINER = root@localhost SQL SECURITY DEFINER VIEW shop_a.stranger AS SELECT * FROM other_a.t";
    service.root_sql(strangers).expect("objects of strangers");
    callers(&service);
    let doctor = told(&service.cli(&["doctor"]));
    for (definer, object) in
        [("root@localhost", "view shop_a.stranger"), ("selkie-other-rw@localhost", "procedure shop_a.latin")]
    {
        let warning = format!("project shop: with the rights of {definer} run {object}\n");
        assert!(doctor.contains(&warning), "{doctor}");
    }
    assert_eq!(callers(&service), "", "the doctor called a function of a tenant");
    let before = looks(&service);
    callers(&service);
    let backups = tempfile::tempdir().expect("a directory");
    let saved = back_up(&service, backups.path(), &["--with-secret"]);
    assert_eq!(saved["incomplete"], json!([]), "{saved}");
    assert_eq!(callers(&service), "selkie-shop-rw@localhost\n", "who ran a function during the backup");
    drop(service.stop_and_keep().expect("a stop"));
    let machine = NewMachine::new();
    let restored = machine.run(&["restore", backups.path().to_str().expect("a path"), "--json"], &[]);
    assert!(!touched.exists(), "a restore ran a command of a tenant");
    assert_eq!(restored.status.code(), Some(1), "{}", told(&restored));
    let answer: Value = serde_json::from_slice(&restored.stdout).expect("JSON");
    // The view of another project's table is the only object that the project could not have made.
    assert_eq!(named(&answer["missing"]), ["view shop_a.stranger"], "{answer}");
    let redefined = json!(["routine shop_a.latin (selkie-other-rw)", "view shop_a.stranger (root)"]);
    assert_eq!(answer["redefined"], redefined);
    let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
    assert_eq!(callers(&service), "selkie-shop-rw@localhost\n", "who ran a function during the restore");
    let stranger: String = "stranger".bytes().map(|byte| format!("{byte:02X}")).collect();
    for ((look, before), after) in LOOKS.iter().zip(&before).zip(&looks(&service)) {
        let own = |text: &str| {
            let kept = text.lines().filter(|line| !line.contains(&stranger));
            // A set, because MariaDB doesn't sort long texts to their end.
            kept.map(|line| line.replace("\tselkie-other-rw@", "\tselkie-shop-rw@")).collect::<BTreeSet<_>>()
        };
        assert_eq!(own(before), own(after), "{look}");
    }
    service.stop().expect("a stop");
}

async fn an_object_that_can_not_be_saved_stops_nothing_else(_: Host) {
    let (service, key) = start();
    for sql in [
        "CREATE TABLE a (id INT)",
        "CREATE VIEW b AS SELECT * FROM a",
        "DROP TABLE a",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE PROCEDURE q() SELECT 2",
        "CREATE TABLE kept (id INT)",
        "INSERT INTO kept VALUES (5)",
        "CREATE TABLE lost (id INT) ENGINE = MyISAM",
    ] {
        run(&service, &key, sql).await;
    }
    let broken = "CREATE DEFINER = ghost@localhost SQL SECURITY DEFINER VIEW shop_a.haunted AS SELECT * FROM shop_a.kept; \
        UPDATE mysql.proc SET body = 'BEGIN nonsense', body_utf8 = 'BEGIN nonsense' WHERE db = 'shop_a' AND name = 'p'; \
        FLUSH TABLES";
    service.root_sql(broken).expect("objects that MariaDB can't use");
    fs::write(find(&service.data_dir(), "shop_a").join("lost.frm"), "no table").expect("a file");
    let backups = tempfile::tempdir().expect("a directory");
    let place = backups.path().to_str().expect("a path");
    let saved = service.cli(&["backup", place, "--json"]);
    assert_eq!(saved.status.code(), Some(1), "{}", told(&saved));
    let answer: Value = serde_json::from_slice(&saved.stdout).unwrap_or_else(|_| panic!("{}", told(&saved)));
    let incomplete = ["table shop_a.lost", "routine shop_a.p", "view shop_a.b"];
    assert_eq!(named(&answer["incomplete"]), incomplete, "{answer}");
    let errors = String::from_utf8_lossy(&saved.stderr);
    assert!(errors.contains("view shop_a.b: View 'shop_a.b' references invalid table(s)"), "{errors}");
    let manifest: Value = serde_json::from_slice(&fs::read(backups.path().join("manifest.json")).unwrap()).unwrap();
    let shop = manifest["projects"].as_array().unwrap().iter().find(|part| part["project"] == "shop").unwrap();
    assert_eq!(named(&shop["missing"]), incomplete[..2]);
    assert_eq!(named(&shop["broken"]), incomplete[2..]);
    service.stop().expect("a stop");
    let machine = NewMachine::new();
    let restored = machine.run(&["restore", place, "--json"], &[]);
    assert_eq!(restored.status.code(), Some(1), "{}", told(&restored));
    let answer: Value = serde_json::from_slice(&restored.stdout).expect("JSON");
    assert_eq!(named(&answer["missing"]), incomplete, "{answer}");
    // The view without a definer got the project's account, and so can be used again.
    assert_eq!(answer["redefined"], json!(["view shop_a.haunted (ghost)"]));
    let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
    let rows = "SELECT * FROM shop_a.haunted; SELECT * FROM other_a.t; CALL shop_a.q()";
    assert_eq!(service.root_sql(rows).expect("rows"), "5\n7\n2\n");
    service.stop().expect("a stop");
}

/// Makes views of which the first lifts the session's time limit, and the others sleep: one to be saved, the other to be
/// restored.
async fn code_that_does_not_end_is_left_out(_: Host) {
    let (service, key) = start();
    for sql in [
        "CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE VIEW a_lifts AS SELECT ROUND(1.5, f(1)) AS x",
        "CREATE VIEW b_saved AS SELECT ROUND(1.5, f(2)) AS x",
        "CREATE VIEW c_restored AS SELECT ROUND(1.5, f(3)) AS x",
        "CREATE VIEW d_kept AS SELECT 5 AS x",
        "DROP FUNCTION f",
        "CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC BEGIN \
         DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; \
         SET SESSION max_statement_time = 0; \
         IF n = 2 OR n = 3 AND NOT EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME = 'c_restored') \
         THEN DO SLEEP(3600); END IF; RETURN 1; END",
    ] {
        run(&service, &key, sql).await;
    }
    let backups = tempfile::tempdir().expect("a directory");
    let place = backups.path().to_str().expect("a path");
    let saved = service.cli(&["backup", place, "--json"]);
    assert_eq!(saved.status.code(), Some(1), "{}", told(&saved));
    let answer: Value = serde_json::from_slice(&saved.stdout).unwrap_or_else(|_| panic!("{}", told(&saved)));
    assert_eq!(named(&answer["incomplete"]), ["view shop_a.b_saved"], "{answer}");
    drop(service.stop_and_keep().expect("a stop"));
    let machine = NewMachine::new();
    let restored = machine.run(&["restore", place, "--json"], &[]);
    assert_eq!(restored.status.code(), Some(1), "{}", told(&restored));
    let answer: Value = serde_json::from_slice(&restored.stdout).expect("JSON");
    assert_eq!(named(&answer["missing"]), ["view shop_a.b_saved", "view shop_a.c_restored"], "{answer}");
    let errors = String::from_utf8_lossy(&restored.stderr);
    assert!(errors.contains("view shop_a.c_restored: Query execution was interrupted"), "{errors}");
    let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
    let rows = service.root_sql("SELECT * FROM shop_a.d_kept; SELECT * FROM other_a.t");
    assert_eq!(rows.expect("rows"), "5\n7\n");
    service.stop().expect("a stop");
}

async fn a_project_that_ends_its_own_connection_harms_no_other(_: Host) {
    let (service, key) = start();
    // MariaDB calls the function when the backup describes the views, and when the restore creates `b_restored`.
    let ends = |condition: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION f(n INT) RETURNS INT DETERMINISTIC BEGIN \
             IF {condition} THEN KILL CONNECTION CONNECTION_ID(); END IF; RETURN 1; END"
        )
    };
    for sql in [
        "CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE VIEW b_restored AS SELECT ROUND(1.5, f(2)) AS x",
        &ends("NOT EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME = 'b_restored')"),
    ] {
        run(&service, &key, sql).await;
    }
    let backups = tempfile::tempdir().expect("a directory");
    let place = backups.path().to_str().expect("a path");
    let saved = service.cli(&["backup", place, "--json"]);
    assert!(saved.status.success(), "{}", told(&saved));
    let spoilt = tempfile::tempdir().expect("a directory");
    run(&service, &key, &ends("TRUE")).await;
    let incomplete = service.cli(&["backup", spoilt.path().to_str().expect("a path"), "--json"]);
    assert_eq!(incomplete.status.code(), Some(1), "{}", told(&incomplete));
    let answer: Value = serde_json::from_slice(&incomplete.stdout).unwrap_or_else(|_| panic!("{}", told(&incomplete)));
    assert_eq!(named(&answer["incomplete"]), ["part of shop_a"], "{answer}");
    drop(service.stop_and_keep().expect("a stop"));
    for place in [place, spoilt.path().to_str().expect("a path")] {
        let machine = NewMachine::new();
        let restored = machine.run(&["restore", place, "--json"], &[]);
        assert_eq!(restored.status.code(), Some(1), "{}", told(&restored));
        let answer: Value = serde_json::from_slice(&restored.stdout).unwrap_or_else(|_| panic!("{}", told(&restored)));
        assert_eq!(named(&answer["missing"]), ["part of shop_a"], "{answer}");
        let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
        assert_eq!(service.root_sql("SELECT * FROM other_a.t").expect("rows"), "7\n");
        service.stop().expect("a stop");
    }
}

async fn a_table_that_becomes_a_view_during_the_backup_is_left_out(_: Host) {
    let (service, key) = start();
    for sql in ["CREATE TABLE a (id INT)", "CREATE TABLE b (id INT)", "CREATE TABLE t (id INT)"] {
        run(&service, &key, sql).await;
    }
    call_by_constants(&service, &key).await;
    callers(&service);
    let backups = tempfile::tempdir().expect("a directory");
    let saved = std::thread::scope(|scope| {
        // The backup has listed the tables when it waits for the first one.
        let locked = scope.spawn(|| service.root_sql("LOCK TABLES shop_a.a WRITE; SELECT SLEEP(600)"));
        wait_for(&service, "INFO = 'SELECT SLEEP(600)'");
        let saved = scope.spawn(|| service.cli(&["backup", backups.path().to_str().expect("a path"), "--json"]));
        wait_for(&service, "STATE = 'Waiting for table metadata lock'");
        let swap = "DROP TABLE shop_a.b; \
            CREATE SQL SECURITY INVOKER VIEW shop_a.b AS SELECT ROUND(1.5, shop_a.seen(99)) AS id; \
            SELECT CONCAT('KILL ', ID) INTO @kill FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'; \
            EXECUTE IMMEDIATE @kill";
        service.root_sql(swap).expect("a swap");
        let _ = locked.join();
        saved.join().expect("a backup")
    });
    let answer: Value = serde_json::from_slice(&saved.stdout).unwrap_or_else(|_| panic!("{}", told(&saved)));
    assert_eq!(named(&answer["incomplete"]), ["table shop_a.b"], "{}", told(&saved));
    let callers = service.root_sql("SELECT DISTINCT who FROM shop_a.seen WHERE who <> 'root@localhost'");
    assert_eq!(callers.expect("callers"), "selkie-shop-rw@localhost\n");
    service.stop().expect("a stop");
}

/// The rows have 320 MiB, and some kilobytes in the backup, so one read of the backup has all of them.
async fn a_restore_takes_little_memory_for_rows_that_compress_well(_: Host) {
    const PEAK_MAX_BYTES: u64 = 256 * 1024 * 1024;
    let (service, key) = start();
    run(&service, &key, "CREATE TABLE t (id INT PRIMARY KEY, note LONGTEXT COMPRESSED)").await;
    run(&service, &key, "INSERT INTO t SELECT seq, REPEAT('a', 4194304) FROM seq_1_to_80").await;
    let backups = tempfile::tempdir().expect("a directory");
    back_up(&service, backups.path(), &[]);
    service.stop().expect("a stop");
    let machine = NewMachine::new();
    let mut command = machine.command(&["restore", backups.path().to_str().expect("a path")]);
    let mut child = command.stdout(Stdio::null()).spawn().expect("it runs");
    let id = i32::try_from(child.id()).expect("a process id");
    let mut peak = 0;
    let ended = loop {
        peak = peak_bytes(id).unwrap_or_default().max(peak);
        if let Some(ended) = child.try_wait().expect("its status") {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(ended.success());
    assert!((1..PEAK_MAX_BYTES).contains(&peak), "{peak} bytes");
    let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
    let rows = service.root_sql("SELECT COUNT(*), SUM(LENGTH(note)) FROM shop_a.t").expect("rows");
    assert_eq!(rows, "80\t335544320\n");
    service.stop().expect("a stop");
}

fn wait_for(service: &Service, condition: &str) {
    let count = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE {condition}");
    for _ in 0..3_000 {
        if service.root_sql(&count).expect("a count") != "0\n" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no process with {condition}");
}

/// Returns the directory `name` somewhere below `dir`.
pub(super) fn find(dir: &Path, name: &str) -> PathBuf {
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir()) {
            if entry.file_name().to_str() == Some(name) {
                return entry.path();
            }
            waiting.push(entry.path());
        }
    }
    panic!("no directory {name}");
}
