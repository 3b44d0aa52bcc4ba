//! Conditions use the index of their column, whatever its type. Checked by the number of rows that MariaDB reads.

use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};

cases! {
    Both: [a_condition_on_an_indexed_column_reads_few_rows],
}

/// Rows of the table. A condition that reads at most a tenth of them uses the index.
const ROWS: u64 = 1_000;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, tiny TINYINT UNSIGNED, n INT, u BIGINT UNSIGNED, \
    d DECIMAL(20,5), f FLOAT, x DOUBLE, y YEAR, b BIT(40), s VARCHAR(20), bin VARCHAR(20) COLLATE utf8mb4_bin, \
    latin VARCHAR(20) CHARACTER SET latin1, cs VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_general_cs, \
    gbk VARCHAR(20) CHARACTER SET gbk, sjis VARCHAR(20) CHARACTER SET sjis, mb3 VARCHAR(20) CHARACTER SET utf8mb3, \
    wide VARCHAR(20) CHARACTER SET utf16, plain VARCHAR(20) CHARACTER SET ascii, \
    e ENUM('m0','m1','m2','m3','m4','m5','m6','m7','m8','m9','n0','n1','n2','n3','n4','n5','n6','n7','n8','é') CHARACTER SET latin1, \
    st SET('a','b','c','d','e'), uu UUID, i6 INET6, i4 INET4, day DATE, dt DATETIME(3), ts TIMESTAMP(6) NULL, tm TIME(2), \
    fix BINARY(6), raw VARBINARY(20), KEY(tiny), KEY(n), KEY(u), KEY(d), KEY(f), KEY(x), KEY(y), KEY(b), KEY(s), KEY(bin), \
    KEY(latin), KEY(cs), KEY(gbk), KEY(sjis), KEY(mb3), KEY(wide), KEY(plain), KEY(e), KEY(st), KEY(uu), KEY(i6), KEY(i4), \
    KEY(day), KEY(dt), KEY(ts), KEY(tm), KEY(fix), KEY(raw))";

const FILL: &str = "INSERT INTO t (tiny, n, u, d, f, x, y, b, s, bin, latin, cs, gbk, sjis, mb3, wide, plain, e, st, uu, i6, i4, \
    day, dt, ts, tm, fix, raw) \
    SELECT seq % 200, seq, 18446744073709550000 + seq, seq / 8, seq / 10, seq / 10, 1901 + seq % 250, seq, \
    CONCAT('é', seq), CONCAT('é', seq), CONCAT('é', seq), CONCAT('é', seq), CONCAT('日', seq), CONCAT('日', seq), \
    CONCAT('日', seq), CONCAT('🦭', seq), CONCAT('a', seq), 1 + seq % 20, seq % 32, \
    CONCAT('00000000-0000-0000-0000-', LPAD(seq, 12, '0')), CONCAT('2001::', HEX(seq)), CONCAT('10.0.', seq DIV 256, '.', seq % 256), \
    '2000-01-01' + INTERVAL seq DAY, '2000-01-01' + INTERVAL seq * 1500 * 1000 MICROSECOND, \
    '2000-01-01' + INTERVAL seq * 1000001 MICROSECOND, SEC_TO_TIME(seq / 4), CONCAT('k', seq), CONCAT('k', seq) \
    FROM seq_1_to_1000; ANALYZE TABLE t";

async fn a_condition_on_an_indexed_column_reads_few_rows(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    db.behind(&format!("SET NAMES utf8mb4; SET time_zone = '+00:00'; {FILL}"));
    // Makes MariaDB count the rows that it reads of each table.
    db.behind("SET GLOBAL userstat = 1");
    let (scanned, _) = reads(&db, "s", &json!({"value": "77", "equality": "ENDS WITH"})).await;
    assert!(scanned >= ROWS, "a scan reads {scanned} rows: they are not counted");
    for (field, value) in [
        ("tiny", json!("77")),
        ("n", json!(77)),
        ("n", json!("77")),
        ("n", json!(77.0)),
        ("u", json!("18446744073709550077")),
        ("d", json!("9.625")),
        ("d", json!(9.625)),
        ("f", json!(7.7)),
        ("x", json!(7.7)),
        ("x", json!("7.7")),
        ("y", json!(1978)),
        ("y", json!("1978")),
        ("b", json!(77)),
        ("s", json!("é77")),
        ("bin", json!("é77")),
        ("latin", json!("é77")),
        ("cs", json!("é77")),
        ("gbk", json!("日77")),
        ("sjis", json!("日77")),
        ("mb3", json!("日77")),
        ("wide", json!("🦭77")),
        ("plain", json!("a77")),
        ("e", json!("n7")),
        ("e", json!("é")),
        ("st", json!("d,c,a")),
        ("uu", json!("00000000000000000000000000000077")),
        ("i6", json!("2001:0::4D")),
        ("i4", json!("10.0.0.77")),
        ("day", json!("2000-03-18")),
        ("day", json!("2000-03-18T00:00:00Z")),
        ("dt", json!("2000-01-01T01:01:55.500+01:00")),
        ("ts", json!("2000-01-01T00:01:17.000077Z")),
        ("tm", json!("00:00:19.25")),
        ("fix", json!("azc3")),
        ("raw", json!("azc3")),
    ] {
        for (equality, condition) in [
            ("=", json!({"value": value})),
            ("IN", json!({"value": [value, value], "equality": "IN"})),
            ("<=>", json!({"value": value, "equality": "<=>"})),
            ("BETWEEN", json!({"value": [value, value], "equality": "BETWEEN"})),
        ] {
            // An index orders members of an ENUM or SET by position, but they are compared as text.
            if equality == "BETWEEN" && ["e", "st"].contains(&field) {
                continue;
            }
            reads_few(&db, field, &condition).await;
        }
    }
    for (field, value, equality) in [
        ("n", json!(960), ">"),
        ("n", json!(40.5), "<"),
        ("d", json!("120.001"), ">="),
        ("day", json!("2000-02-01T12:00:00Z"), "<"),
        ("dt", json!("2000-01-01T00:00:30Z"), "<="),
        ("s", json!("é99"), "STARTS WITH"),
        ("latin", json!("é99"), "STARTS WITH"),
        ("latin", json!("é99%"), "LIKE"),
        ("gbk", json!("日99"), "STARTS WITH"),
        ("wide", json!("🦭99"), "STARTS WITH"),
        ("latin", json!("é998"), ">"),
    ] {
        let condition = json!({"value": value, "equality": equality});
        reads_few(&db, field, &condition).await;
    }
}

async fn reads(db: &TestDb, field: &str, condition: &Value) -> (u64, usize) {
    let before = rows_read(db);
    let found = db.ids("t", &json!({field: condition}), "").await;
    (rows_read(db) - before, found.len())
}

async fn reads_few(db: &TestDb, field: &str, condition: &Value) {
    let (read, found) = reads(db, field, condition).await;
    assert!(found > 0, "{field} {condition} finds nothing");
    assert!(read < ROWS / 10, "{field} {condition} reads {read} rows to find {found}");
}

fn rows_read(db: &TestDb) -> u64 {
    let query = format!(
        "SELECT COALESCE(SUM(ROWS_READ), 0) FROM information_schema.TABLE_STATISTICS WHERE TABLE_SCHEMA = '{}'",
        db.name
    );
    db.behind(&query).trim().parse().expect("a number")
}
