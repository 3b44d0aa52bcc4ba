//! Backups of texts that Unicode can't express: each character set of MariaDB has bytes without a character, or several
//! for the same one.

use super::tenant::{find, named, start};
use super::{NewMachine, back_up, told};
use crate::host::Host;
use crate::service::{Edge, Service};
use serde_json::Value;
use std::fs;

cases! {
    Own: [
        every_character_set_is_restored_byte_for_byte,
        bytes_that_are_no_text_are_named,
    ],
}

const CHARACTER_SETS: &str =
    "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS WHERE CHARACTER_SET_NAME <> 'binary' ORDER BY 1";

/// Makes the sources of the texts: all pairs of bytes by the first byte, so that characters begin at even places or
/// after a space; and all characters of Unicode's first plane with some of the second.
const SOURCES: &str = "USE shop_a; SET SESSION group_concat_max_len = 1000000;
    CREATE TABLE pairs (bytes BLOB, spaced BLOB) SELECT
        GROUP_CONCAT(CHAR(a.seq, b.seq) ORDER BY b.seq SEPARATOR '') AS bytes,
        GROUP_CONCAT(CHAR(a.seq, b.seq) ORDER BY b.seq SEPARATOR ' ') AS spaced
        FROM seq_0_to_255 a, seq_0_to_255 b GROUP BY a.seq;
    CREATE TABLE characters (text TEXT CHARACTER SET utf8mb4) SELECT
        GROUP_CONCAT(CHAR(seq USING utf32) ORDER BY seq SEPARATOR '') AS text FROM seq_1_to_70000 GROUP BY seq DIV 256;";

/// Makes a table of a character set, in which MariaDB stores `?` for what is no character of the set.
const TABLE: &str = "CREATE TABLE `SET` (id INT AUTO_INCREMENT PRIMARY KEY,
        byte VARCHAR(1) CHARACTER SET SET COLLATE SET_bin UNIQUE KEY, chars TEXT CHARACTER SET SET,
        fixed CHAR(3) CHARACTER SET SET, packed TEXT COMPRESSED CHARACTER SET SET,
        again TEXT CHARACTER SET SET AS (chars) VIRTUAL);
    INSERT IGNORE INTO `SET` (byte) SELECT CHAR(seq) FROM seq_0_to_255;
    INSERT INTO `SET` (chars, fixed, packed) SELECT bytes, SUBSTR(bytes, 257, 2), spaced FROM pairs;
    INSERT INTO `SET` (chars, packed) SELECT text, text FROM characters;";

/// Makes a table with ENUM and SET columns whose members are names of others, or have names that SHOW CREATE TABLE can't
/// express.
const MEMBERS: &str = "CREATE TABLE members (id INT AUTO_INCREMENT PRIMARY KEY,
        one ENUM('a', '', '0', '3', '😀', 'é') CHARACTER SET utf8mb4, two ENUM('x', 'y') CHARACTER SET ucs2,
        some SET('a', '', x'98', x'e9') CHARACTER SET cp1251, many SET(MANY));
    INSERT INTO members (one, two, some, many) VALUES (0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 1, 4, 3),
        (4, 1, 15, 18446744073709551615), (5, 2, 8, 9223372036854775808), (6, NULL, NULL, NULL), (NULL, 1, 1, 1);";

const MEMBER_NUMBERS: &str = "SELECT id, CAST(one AS UNSIGNED), CAST(two AS UNSIGNED), CAST(some AS UNSIGNED), \
    CAST(many AS UNSIGNED) FROM shop_a.members ORDER BY id";

async fn every_character_set_is_restored_byte_for_byte(_: Host) {
    let (service, _) = start();
    let sets = service.root_sql(CHARACTER_SETS).expect("character sets");
    let many = (1..=64).map(|member| format!("'m{member}'")).collect::<Vec<_>>().join(", ");
    let tables: String = sets
        .lines()
        .map(|set| {
            TABLE
                .replace("SET_bin", &format!("{set}_bin"))
                .replace("`SET`", &format!("`{set}`"))
                .replace("CHARACTER SET SET", &format!("CHARACTER SET {set}"))
        })
        .collect();
    let content = format!("{SOURCES} SET SESSION sql_mode = ''; {tables} {}", MEMBERS.replace("MANY", &many));
    service.root_sql(&content).expect("tables");
    let look = |service: &Service, set: &str| {
        let columns = "id, HEX(byte), HEX(chars), HEX(fixed), HEX(packed), HEX(again)";
        service.root_sql(&format!("SELECT {columns} FROM shop_a.`{set}` ORDER BY id")).expect("rows")
    };
    let before: Vec<String> = sets.lines().map(|set| look(&service, set)).collect();
    let members = service.root_sql(MEMBER_NUMBERS).expect("rows");
    let backups = tempfile::tempdir().expect("a directory");
    back_up(&service, backups.path(), &[]);
    service.stop().expect("a stop");
    let machine = NewMachine::new();
    let restored = machine.run(&["restore", backups.path().to_str().expect("a path")], &[]);
    assert!(restored.status.success(), "{}", told(&restored));
    let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
    let changed = sets.lines().zip(&before).filter(|(set, before)| look(&service, set) != **before);
    assert_eq!(changed.map(|(set, _)| set).collect::<Vec<_>>(), Vec::<&str>::new());
    assert_eq!(service.root_sql(MEMBER_NUMBERS).expect("rows"), members);
    service.stop().expect("a stop");
}

/// Old versions of MariaDB stored any bytes. The files of a table with bytes become those of a table with texts.
async fn bytes_that_are_no_text_are_named(_: Host) {
    let (service, _) = start();
    let tables = "USE shop_a;
        CREATE TABLE of_bytes (id INT, note VARBINARY(20)) ENGINE = MyISAM;
        CREATE TABLE of_texts (id INT, note VARCHAR(5) COLLATE utf8mb4_bin) ENGINE = MyISAM;
        INSERT INTO of_bytes VALUES (1, x'c3a9'), (2, x'41ff'), (3, x'41fe'); FLUSH TABLES of_bytes, of_texts";
    service.root_sql(tables).expect("tables");
    let directory = find(&service.data_dir(), "shop_a");
    for extension in ["MYD", "MYI"] {
        let of = |name: &str| directory.join(name).with_extension(extension);
        fs::copy(of("of_bytes"), of("of_texts")).expect("a copy");
    }
    // Values of a column's own type are copied without a check.
    let copy = "USE shop_a; FLUSH TABLES of_texts;
        CREATE TABLE of_keys (id INT, note VARCHAR(5) COLLATE utf8mb4_bin UNIQUE KEY);
        INSERT INTO of_keys SELECT * FROM of_texts; CREATE TABLE of_others (id INT); INSERT INTO of_others VALUES (7)";
    service.root_sql(copy).expect("a copy");
    let rows = "SELECT id, HEX(note) FROM shop_a.of_texts; SELECT id, HEX(note) FROM shop_a.of_keys; \
        SELECT * FROM shop_a.of_others";
    let text = "1\tC3A9\n2\t41FF\n3\t41FE\n";
    assert_eq!(service.root_sql(rows).expect("rows"), format!("{text}{text}7\n"));
    let backups = tempfile::tempdir().expect("a directory");
    back_up(&service, backups.path(), &[]);
    service.stop().expect("a stop");
    let machine = NewMachine::new();
    let restored = machine.run(&["restore", backups.path().to_str().expect("a path"), "--json"], &[]);
    assert_eq!(restored.status.code(), Some(1), "{}", told(&restored));
    let answer: Value = serde_json::from_slice(&restored.stdout).expect("JSON");
    assert_eq!(
        named(&answer["missing"]),
        ["rows of table shop_a.of_keys", "rows of table shop_a.of_texts"],
        "{answer}"
    );
    let service = Service::start_in(machine.0, Edge::Without, &[]).expect("a service");
    assert_eq!(service.root_sql(rows).expect("rows"), "1\tC3A9\n2\t413F\n3\t413F\n7\n");
    service.stop().expect("a stop");
}
