//! A table with a column of each type, to be read in every format.

use crate::host::Host;
use crate::test_db::TestDb;

/// Columns of each type, with values at the limits of the type.
pub(crate) const TYPES: [(&str, &str, &[&str]); 33] = [
    ("tiny", "TINYINT", &["-128", "127"]),
    ("whole", "INT", &["-5", "0"]),
    ("big", "BIGINT", &["9223372036854775807", "-9007199254740993"]),
    ("unsigned", "BIGINT UNSIGNED", &["18446744073709551615", "9007199254740991"]),
    ("bits", "BIT(12)", &["b'100000000001'", "b'0'"]),
    ("year", "YEAR", &["2026", "0"]),
    ("money", "DECIMAL(65,30)", &["12345678901234567890.123456789012345678901234567890", "-0.5"]),
    ("single", "FLOAT", &["0.1", "-1e30"]),
    ("twofold", "DOUBLE", &["0.1", "1e300"]),
    ("chars", "CHAR(10)", &["'plain'", "''"]),
    ("quotes", "VARCHAR(100)", &["'say \"hi\", she said'", "'\"'"]),
    ("lines", "TEXT", &["'one\\ntwo\\r\\nthree'", "'\\n'"]),
    ("blanks", "VARCHAR(100)", &["' both '", "'\\t'"]),
    ("commas", "VARCHAR(100)", &["'a,b'", "','"]),
    ("formula", "VARCHAR(100)", &["'=1+1'", "'@SUM(A1)'"]),
    ("scripts", "VARCHAR(100)", &["'größer 🦭 桟橋'", "'\u{feff}mark'"]),
    ("controls", "VARCHAR(100)", &["'a\\0b'", "CONCAT('x', CHAR(1), CHAR(31))"]),
    ("looks_null", "VARCHAR(100)", &["'null'", "'NULL'"]),
    ("latin", "VARCHAR(100) CHARACTER SET latin1", &["'naïve'", "''"]),
    ("pick", "ENUM('a','b,c')", &["'b,c'", "'a'"]),
    ("many", "SET('x','y')", &["'x,y'", "''"]),
    ("id128", "UUID", &["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"]),
    ("address", "INET6", &["'2001:db8::ff'", "'::1'"]),
    ("day", "DATE", &["'2026-11-20'", "'0000-00-00'"]),
    ("moment", "DATETIME(6)", &["'2026-11-20 08:36:16.000001'", "'0000-00-00 00:00:00'"]),
    ("stamp", "TIMESTAMP NULL", &["'2026-11-20 08:36:16'", "'2000-01-01 00:00:00'"]),
    ("span", "TIME(3)", &["'-838:59:59.000'", "'00:00:00.5'"]),
    ("object", "JSON", &[r#"'{"a": [1, "x,y", null], "b": "q\\"q"}'"#, "'[]'"]),
    ("scalar", "JSON", &["'null'", r#"'"text"'"#]),
    ("bytes", "BLOB", &["X'0001ff80'", "X''"]),
    ("fixed", "BINARY(3)", &["X'414243'", "X'00'"]),
    ("place", "GEOMETRY", &["ST_GeomFromText('POINT(1.5 -2.25)')", "ST_GeomFromText('LINESTRING(0 0,1 1)')"]),
    ("na\"me, odd", "INT", &["1", "2"]),
];

/// Creates a table with a column of each type: two rows of values, and one of NULLs.
pub(crate) async fn types(host: Host) -> TestDb {
    let columns: Vec<String> = TYPES.iter().map(|(name, kind, _)| format!("`{name}` {kind}")).collect();
    let db = TestDb::new(host, &[&format!("CREATE TABLE t (id INT PRIMARY KEY, {})", columns.join(", "))]).await;
    for row in 0..2 {
        let values: Vec<&str> = TYPES.iter().map(|(_, _, values)| values[row]).collect();
        db.behind(&format!(
            "SET NAMES utf8mb4; SET sql_mode = ''; INSERT INTO t VALUES ({row}, {})",
            values.join(", ")
        ));
    }
    db.exec("INSERT INTO t (id) VALUES (2)").await;
    db
}
