//! Tests `selkie database load`: dumps as MariaDB's and MySQL's tools and phpMyAdmin write them, and refusals by line.

use super::told;
use crate::host::Host;
use crate::service::shared;
use std::fs;
use std::process::Output;

cases! {
    Own: [
        a_dump_is_loaded_with_the_rights_of_the_project,
        a_statement_that_can_not_be_loaded_is_named_by_its_line,
    ],
}

const MYSQL_DUMP: &str = r"/*M!999999\- enable the sandbox mode */
-- MySQL dump; with a semicolon
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
SET @@SESSION.SQL_LOG_BIN= 0;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `their_shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `their_shop`;
DROP TABLE IF EXISTS `notes`;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `notes` (`id` int NOT NULL, `note` varchar(99) DEFAULT 'a;b''c', PRIMARY KEY (`id`)) ENGINE=InnoDB COMMENT='x;y';
LOCK TABLES `notes` WRITE;
INSERT INTO `notes` VALUES (0,'semi;colon'),(1,'it''s \'quoted\' \\'),(2,'-- none
# none; /* none');
UNLOCK TABLES;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `marked` BEFORE INSERT ON `notes` FOR EACH ROW
BEGIN SET NEW.note = CONCAT(NEW.note, ';'); END */;;
CREATE DEFINER=`their`@`%` PROCEDURE `counted`()
BEGIN SELECT COUNT(*) FROM notes; /* ;; */ END ;;
DELIMITER ;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `shown` AS select `notes`.`note` AS `note` from `notes` */;
SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES';
INSERT INTO notes VALUES (3, 'back\'); INSERT INTO notes VALUES (4, '/*');
INSERT INTO notes VALUES (5, '*/');
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */";

/// Loads a file into databases of the project `loading`.
fn load(text: &str, more: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("dump.sql");
    fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("a path");
    shared().cli(&[&["database", "load", file, "--project", "loading"], more].concat())
}

async fn a_dump_is_loaded_with_the_rights_of_the_project(_: Host) {
    let service = shared();
    service.create_project("loading");
    service.cli_ok(&["database", "create", "loading_a", "--project", "loading"]);
    let loaded = load(MYSQL_DUMP, &["--database", "loading_a"]);
    assert!(loaded.status.success(), "{}", told(&loaded));
    let said = told(&loaded);
    assert!(said.contains("3 objects have the project's account as definer"), "{said}");
    assert!(said.contains("line 4 is left out") && said.contains("line 5 is left out"), "{said}");
    let rows = service.root_sql("SELECT id, HEX(note) FROM loading_a.notes ORDER BY id").expect("rows");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
    let expected = ["semi;colon", "it's 'quoted' \\", "-- none\n# none; /* none", "back\\;", "/*;", "*/;"];
    let expected: String = expected.iter().enumerate().map(|(id, note)| format!("{id}\t{}\n", hex(note))).collect();
    assert_eq!(rows, expected);
    let definers = "SELECT DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'loading_a' UNION ALL \
        SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'loading_a' UNION ALL \
        SELECT DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = 'loading_a'";
    assert_eq!(service.root_sql(definers).expect("definers"), "selkie-loading-rw@localhost\n".repeat(3));
    let mut piped = service.cli_command(&["database", "load", "-", "--project", "loading"]);
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("more.sql"), "INSERT INTO shown VALUES ('x')").expect("a file");
    let input = fs::File::open(dir.path().join("more.sql")).expect("a file");
    let piped = piped.stdin(input).output().expect("it runs");
    assert_eq!(piped.status.code(), Some(1), "a view without the key takes no row: {}", told(&piped));
    assert!(told(&piped).contains("line 1: MariaDB refused the statement"), "{}", told(&piped));
}

async fn a_statement_that_can_not_be_loaded_is_named_by_its_line(_: Host) {
    let service = shared();
    service.create_project("loading");
    service
        .root_sql("CREATE DATABASE IF NOT EXISTS loading_b; CREATE DATABASE IF NOT EXISTS loading_c")
        .expect("databases");
    let into = ["--database", "loading_b"];
    for (text, more, code, part) in [
        ("SELECT 1;\n\nSELEKT 2;", &into[..], 1, "line 3: MariaDB refused the statement: You have an error"),
        ("SELECT 1;\nGRANT ALL ON *.* TO x;", &into, 1, "line 2: MariaDB refused the statement"),
        ("SELECT 1 --\u{1} ;\nCREATE USER y;\n + 1;", &into, 1, "line 1: MariaDB refused the statement"),
        ("SELECT * FROM mysql.user", &into, 1, "remove it, or run it yourself as an administrator"),
        ("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE x", &into, 1, "line 1: "),
        ("SELECT 1;\n\\! touch /tmp/x\n", &into, 1, "line 2: MariaDB refused the statement"),
        ("CREATE TABLE t (a TEXT COLLATE utf8mb4_of_mysql_ci)", &into, 1, "utf8mb4_unicode_ci"),
        ("SELECT 1;\n/*!40000 DROP DATABASE IF EXISTS `x`*/;", &into, 1, "line 2: the file drops a database"),
        ("USE a;\nUSE b;", &into, 1, "line 2: the file has more than one database"),
        ("SELECT 1;", &["--database", "mysql"], 2, "project loading has no database mysql"),
        ("USE demo;", &[], 2, "project loading has no database demo: it has loading_"),
        ("CREATE TABLE unplaced (a INT);", &[], 1, "name the database with --database"),
        ("USE loading_b; SELECT 1; USE loading_c; SELECT 2", &[], 0, "2 statements were run"),
        ("", &into, 0, "0 statements were run"),
    ] {
        let loaded = load(text, more);
        assert_eq!(loaded.status.code(), Some(code), "{text}: {}", told(&loaded));
        assert!(told(&loaded).contains(part), "{text}: {}", told(&loaded));
    }
}
