//! `{id}` with keys of every type.

use crate::host::{Host, enc};
use crate::test_db::TestDb;
use serde_json::{Value, json};

cases! {
    Both: [keys_of_every_type_address_their_record, what_is_no_key_addresses_nothing],
}

/// Returns types with a value, the id that an insert returns, and the same id as a path may encode it.
fn keys() -> Vec<(&'static str, Value, Value, &'static str)> {
    vec![
        ("TINYINT", json!(-128), json!(-128), "-128"),
        ("BIGINT UNSIGNED", json!("18446744073709551615"), json!("18446744073709551615"), "18446744073709551615"),
        ("BIT(40)", json!(1_000_000), json!(1_000_000), "1000000"),
        ("YEAR", json!(2026), json!(2026), "2026"),
        ("DECIMAL(20,5)", json!("1.5"), json!("1.50000"), "1.50000"),
        ("DOUBLE", json!(0.1), json!(0.1), "0.1"),
        ("FLOAT", json!(0.1), json!(0.1), "0.1"),
        ("VARCHAR(20)", json!("a/b,ü ?"), json!("a/b,ü ?"), "a/b,ü ?"),
        ("VARCHAR(20) CHARACTER SET latin1", json!("é"), json!("é"), "é"),
        ("VARCHAR(20) CHARACTER SET utf16", json!("🦭"), json!("🦭"), "🦭"),
        ("ENUM('a','b')", json!("b"), json!("b"), "b"),
        ("SET('a','b')", json!("b,a"), json!("a,b"), "a,b"),
        (
            "UUID",
            json!("123E4567-e89b-12d3-a456-426655440000"),
            json!("123e4567-e89b-12d3-a456-426655440000"),
            "123e4567-e89b-12d3-a456-426655440000",
        ),
        ("INET6", json!("2001:DB8::1"), json!("2001:db8::1"), "2001:db8::1"),
        ("INET4", json!("10.0.0.1"), json!("10.0.0.1"), "10.0.0.1"),
        ("DATE", json!("2026-11-20"), json!("2026-11-20"), "2026-11-20"),
        (
            "DATETIME(6)",
            json!("2026-11-20T10:00:00.25+02:00"),
            json!("2026-11-20 08:00:00.250000"),
            "2026-11-20T08:00:00.25Z",
        ),
        (
            "TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3)",
            json!("2026-11-20 08:00:00.125"),
            json!("2026-11-20 08:00:00.125"),
            "2026-11-20 08:00:00.125",
        ),
        ("TIME", json!("-100:00:01"), json!("-100:00:01"), "-100:00:01"),
        ("BINARY(4)", json!("+/8="), json!("+/8AAA=="), "-_8AAA"),
        ("VARBINARY(9)", json!("+/8="), json!("+/8="), "+/8="),
    ]
}

async fn keys_of_every_type_address_their_record(host: Host) {
    for (kind, given, id, written) in keys() {
        let create = format!("CREATE TABLE t (k {kind} PRIMARY KEY, n INT)");
        let db = TestDb::new(host, &[&create]).await;
        let inserted = db.post("t", &json!({"k": given, "n": 1})).await;
        assert_eq!(inserted.payload(), id, "{kind}: {inserted}");
        let own = match &id {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for address in [own.as_str(), written] {
            let path = format!("t/{}", enc(address));
            let answer = db.get(&path).await;
            assert_eq!(answer.payload()["k"], id, "{kind}: {answer}");
            let changed = db.put(&path, &json!({"k": given, "n": 2})).await;
            assert_eq!(changed.payload(), 1, "{kind}: {changed}");
        }
        assert_eq!(db.value("SELECT n FROM t").await, 2, "{kind}");
        let gone = db.delete(&format!("t/{}", enc(written))).await;
        assert_eq!(gone.payload(), 1, "{kind}: {gone}");
    }
}

async fn what_is_no_key_addresses_nothing(host: Host) {
    for (kind, addresses) in [
        ("INT", &["x", "1.0", "01", "+1", " 1", "1e0", "true", "99999999999999999999"][..]),
        ("DECIMAL(5,2)", &["x", "1e99", "NaN"]),
        ("DOUBLE", &["x", "inf", "1e999"]),
        ("DATE", &["x", "2026-02-30", "2026-11-20T10:00:00Z"]),
        ("DATETIME", &["yesterday", "2026-11-20 25:00:00"]),
        ("TIME", &["900:00:00", "x"]),
        ("UUID", &["x", "123e4567"]),
        ("INET6", &["x", "1.2.3.4"]),
        ("ENUM('a','b')", &["1", "c"]),
        ("BINARY(2)", &["!", "AAAA"]),
        ("VARCHAR(9) CHARACTER SET latin1", &["日", "?日"]),
        ("VARCHAR(9) CHARACTER SET utf8mb3", &["🦭"]),
    ] {
        let create = format!("CREATE TABLE t (k {kind} PRIMARY KEY)");
        let db = TestDb::new(host, &[&create]).await;
        for address in addresses {
            let path = format!("t/{}", enc(address));
            let answer = db.get(&path).await;
            assert_eq!(answer.code(), "record_not_found", "{kind}: {answer}");
            let gone = db.delete(&path).await;
            assert_eq!(gone.payload(), 0, "{kind}: {gone}");
        }
    }
}
