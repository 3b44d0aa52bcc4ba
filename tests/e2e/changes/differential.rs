//! Random writes to random values of every type: a copy that begins with a snapshot and follows the feed is, at every
//! moment, what a list answers.

use super::Copy;
use crate::host::Host;
use crate::roles::Caller;
use crate::test_db::TestDb;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

cases! {
    Both: [a_copy_is_what_a_list_answers],
}

/// Columns, and SQL expressions of their values.
const COLUMNS: &[(&str, &str, &[&str])] = &[
    ("a", "INT", &["-5", "0", "1", "2", "3", "26", "2147483647"]),
    ("b", "BIGINT UNSIGNED", &["0", "9007199254740993", "18446744073709551615"]),
    ("c", "DECIMAL(12,3)", &["-1.5", "0", "0.25", "123456789.125"]),
    ("f", "FLOAT", &["0.1", "1e20", "-3.5", "16777216"]),
    ("g", "DOUBLE", &["0.1", "1e-300", "-12345678.9", "1e300"]),
    ("s", "VARCHAR(30)", &["''", "'a'", "'Ä '", "'ß😀'", "'AB'", "'\\n\\\\\"'"]),
    ("latin", "VARCHAR(30) CHARACTER SET latin1", &["'é'", "'E'", "''", "'a'"]),
    ("cyrillic", "VARCHAR(30) CHARACTER SET cp1251", &["'Ж'", "'ж'", "'a'"]),
    ("bin", "VARCHAR(30) COLLATE utf8mb4_bin", &["'a'", "'A'", "'ä'"]),
    ("ch", "CHAR(8)", &["''", "'a'", "'ab '"]),
    ("tx", "TEXT", &["''", "REPEAT('xé', 500)"]),
    ("ut", "TEXT UNIQUE", &["UUID()"]),
    ("packed", "VARCHAR(2000) COMPRESSED", &["''", "REPEAT('xé', 500)"]),
    ("bl", "BLOB", &["x''", "x'00ff0a22'"]),
    ("vb", "VARBINARY(20)", &["x''", "x'00'", "x'c3a9'"]),
    ("bi", "BINARY(4)", &["x'01'", "x'01020300'"]),
    ("d", "DATE", &["'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "'2024-02-31'"]),
    ("dt", "DATETIME(3)", &["'2024-02-29 12:13:14.567'", "'1000-01-01 00:00:00'", "'2023-04-31 01:02:03.456'"]),
    ("ts", "TIMESTAMP(6) NULL", &["FROM_UNIXTIME(1)", "FROM_UNIXTIME(1700000000.123456)"]),
    ("ti", "TIME(2)", &["'-838:59:59'", "'-10:11:12.34'", "'00:00:00.01'"]),
    ("y", "YEAR", &["1901", "2000", "2155"]),
    ("bt", "BIT(10)", &["0", "1", "1023"]),
    ("e", "ENUM('new','Done','x y')", &["'new'", "'Done'", "'x y'"]),
    ("st", "SET('p','q','r')", &["''", "'p'", "'q,r'"]),
    ("ce", "ENUM('Ж','a') CHARACTER SET cp1251", &["'Ж'", "'a'"]),
    ("cs", "SET('Ж','б','q') CHARACTER SET cp1251", &["''", "'Ж'", "'Ж,б,q'"]),
    ("be", "ENUM('a','b') CHARACTER SET binary", &["'a'", "'b'"]),
    ("u", "UUID", &["'123e4567-e89b-42d3-a456-426614174000'", "'00000000-0000-4000-8000-000000000000'"]),
    ("i4", "INET4", &["'1.2.3.4'", "'0.0.0.0'"]),
    ("i6", "INET6", &["'::'", "'fe80::1:2'"]),
    ("j", "JSON", &["'{\"a\": 1}'", "'[1, \"é\"]'", "'\"x\"'"]),
    ("zf", "INT(6) ZEROFILL", &["0", "42"]),
    ("p", "POINT", &["POINT(1,2)", "POINT(-0.5,1e10)"]),
];

const GENERATED: &str = "v BIGINT AS (a + 1) VIRTUAL, sg VARCHAR(40) AS (CONCAT(s, '!')) STORED, \
     m INT AS (MONTH(dt)) VIRTUAL, half INT AS (a / 2) VIRTUAL, more SMALLINT AS (half % 100 + 1) VIRTUAL, \
     third DECIMAL(14,1) AS (c / 3) VIRTUAL, wide DOUBLE AS (f) VIRTUAL, narrow FLOAT AS (f / 3) VIRTUAL, \
     yes TINYINT(1) AS (a > 1) VIRTUAL, western VARCHAR(40) CHARACTER SET latin1 AS (CONCAT(latin, 'é')) VIRTUAL, \
     eastern VARCHAR(40) CHARACTER SET cp1251 AS (CONCAT(cyrillic, 'ж')) VIRTUAL, part TEXT AS (JSON_EXTRACT(j, '$[1]')) VIRTUAL, \
     seconds TIME AS (ti) VIRTUAL, day DATE AS (MAKEDATE(YEAR(dt), 1)) VIRTUAL, same UUID AS (u) VIRTUAL, \
     bytes VARBINARY(30) AS (CONCAT(vb, x'ff')) VIRTUAL, bits BIT(11) AS (bt) VIRTUAL, \
     state ENUM('Done','new','x y') AS (e) VIRTUAL, rating INT AS (a / 10) STORED, exact DECIMAL(14,3) AS (a / 3) STORED, \
     fixed CHAR(12) AS (CONCAT(s, ' ')) STORED, mood ENUM('low','High') AS (IF(a > 1, 'HIGH', 'LOW')) STORED, \
     moods SET('p','Q','r') AS (IF(a > 1, 'R,q', st)) STORED, nth ENUM('x','y','z') AS (MOD(ABS(a), 3) + 1) STORED, \
     date DATE AS (MAKEDATE(YEAR(dt), 60)) STORED, hour DATETIME AS (TIMESTAMP(MAKEDATE(YEAR(dt), 60), '12:13:14.6')) VIRTUAL, padded BINARY(6) AS (vb) STORED, \
     blob_ BLOB AS (CONCAT(bl, x'00')) STORED, year YEAR AS (y) STORED, natural_ BIGINT UNSIGNED AS (b) STORED, \
     exactly VARCHAR(40) COLLATE utf8mb4_bin AS (s) STORED, document JSON AS (j) STORED, place POINT AS (p) STORED, \
     zeros INT(8) ZEROFILL AS (zf * 2) STORED, four INET4 AS (i4) STORED, six INET6 AS (i6) STORED";

/// Lets a date have a day that its month lacks.
const MODE: &str = "SET STATEMENT sql_mode = CONCAT(@@sql_mode, ',ALLOW_INVALID_DATES') FOR ";

fn lists() -> Vec<Vec<(&'static str, Value)>> {
    let query = |query: Value| vec![("query", query)];
    let narrow = |query: Value, fields: &[&str]| vec![("query", query), ("selectFields", json!(fields))];
    vec![
        vec![],
        vec![("omitFields", json!(["s", "tx"]))],
        narrow(json!({"s": "A"}), &["id", "s", "sg"]),
        narrow(json!({"latin": "e"}), &["id", "latin"]),
        narrow(json!({"cyrillic": "ж"}), &["id", "cyrillic"]),
        narrow(json!({"bin": "a"}), &["id", "bin"]),
        query(json!({"a": 1})),
        narrow(json!({"v": {"gt": 2}}), &["id", "v"]),
        narrow(json!({"c": {"gt": "0.1"}}), &["id", "c"]),
        narrow(json!({"half": 1}), &["id", "half", "more", "third", "narrow"]),
        narrow(json!({"e": "done"}), &["id", "e"]),
        narrow(json!({"ce": "ж"}), &["id", "ce", "cs"]),
        narrow(json!({"ti": {"lt": "00:00:00"}}), &["id", "ti"]),
        narrow(json!({"ts": null}), &["id", "ts"]),
        narrow(json!({"d": {"gt": "2024-02-29"}}), &["id", "d", "m"]),
        narrow(json!({"u": "123e4567-e89b-42d3-a456-426614174000"}), &["id", "u"]),
        narrow(json!({"y": [2000, 2155]}), &["id", "y"]),
        narrow(json!({"rating": 3}), &["id", "rating"]),
        narrow(json!({"exact": "0.667"}), &["id", "exact"]),
        narrow(json!({"fixed": "AB"}), &["id", "fixed"]),
        narrow(json!({"mood": "high"}), &["id", "mood", "nth"]),
        narrow(json!({"moods": "Q,r"}), &["id", "moods"]),
        narrow(json!({"nth": "y"}), &["id", "nth"]),
        narrow(json!({"date": {"gt": "2024-02-28"}}), &["id", "date"]),
        narrow(json!({"hour": "2024-02-29 12:13:14"}), &["id", "hour"]),
        narrow(json!({"exactly": "a"}), &["id", "exactly"]),
    ]
}

fn value(rng: &mut StdRng, values: &[&str]) -> String {
    if rng.random_bool(0.15) { "NULL".to_owned() } else { (*values.choose(rng).expect("a value")).to_owned() }
}

fn write(rng: &mut StdRng) -> String {
    let names = COLUMNS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
    let row = |rng: &mut StdRng| {
        let values = COLUMNS.iter().map(|(.., values)| value(rng, values)).collect::<Vec<_>>();
        format!("({})", values.join(", "))
    };
    match rng.random_range(0..10) {
        0..4 => {
            let rows = (0..rng.random_range(1..4)).map(|_| row(rng)).collect::<Vec<_>>().join(", ");
            format!("INSERT INTO t ({names}) VALUES {rows}")
        }
        4..8 => {
            let count = rng.random_range(1..4);
            let columns: Vec<_> = COLUMNS.choose_multiple(rng, count).collect();
            let sets = columns.into_iter().map(|(name, _, values)| format!("{name} = {}", value(rng, values)));
            let sets = sets.collect::<Vec<_>>().join(", ");
            format!("UPDATE t SET {sets} WHERE id % {} = 0", rng.random_range(1..5))
        }
        8 => format!("REPLACE INTO t (id, a, s) VALUES ({}, 1, 'a')", rng.random_range(1..30)),
        _ => format!("DELETE FROM t WHERE id % 5 = {}", rng.random_range(0..5)),
    }
}

async fn a_copy_is_what_a_list_answers(host: Host) {
    let rounds = std::env::var("SELKIE_TEST_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let seed = std::env::var("SELKIE_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(28);
    println!("SELKIE_TEST_SEED={seed} SELKIE_TEST_ROUNDS={rounds}");
    let mut rng = StdRng::seed_from_u64(seed);
    let columns = COLUMNS.iter().map(|(name, definition, _)| format!("{name} {definition}")).collect::<Vec<_>>();
    let table = format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, {}, {GENERATED})", columns.join(", "));
    let db = TestDb::new(host, &[&table]).await;
    let rule =
        json!({"read": {"fields": ["id", "a", "s", "v"], "rows": {"a": {"value": {"claim": "n"}, "equality": ">="}}}});
    let role = Caller::new(&db, [("t", rule)], json!({"n": 2}));
    let rule = json!({"read": {"rows": {"rating": {"value": 3, "equality": "<"}, "mood": "low"}}});
    let of_generated = Caller::new(&db, [("t", rule)], json!({}));
    let mut copies = Vec::new();
    for caller in [&role, &of_generated] {
        copies.push(Copy::with_key(&db, "t", &[], Some(caller.key.clone())).await);
    }
    for list in lists() {
        copies.push(Copy::new(&db, "t", &list).await);
    }
    for _ in 0..rounds {
        for _ in 0..rng.random_range(1..5) {
            db.exec(&format!("{MODE}{}", write(&mut rng))).await;
        }
        let limit = *[1, 3, 10, 1_000].choose(&mut rng).expect("a limit");
        let at = rng.random_range(0..copies.len());
        copies[at].catch_up(limit).await;
        copies[at].is_the_list().await;
    }
    for copy in &mut copies {
        copy.catch_up(100).await;
        copy.is_the_list().await;
    }
}
