//! Every character set of MariaDB: its characters are stored and found. Other characters are refused in a record, and
//! match nothing in a condition.

use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        every_character_set_round_trips,
        a_condition_compares_as_the_columns_collation_does,
        text_that_the_character_set_lacks_compares_as_unicode,
    ],
}

/// Characters of many alphabets; each character set has some of them.
const ALPHABETS: &str = "éßŒ€ÿąčőşџЖяשאΩψกฮあ日本語한글中龍ﾊ";
/// A character that only the Unicode character sets have. Every version of Unicode's order has it after all
/// [`ALPHABETS`]: MariaDB's default collation is of another version since 11.5.
const BEYOND: &str = "𠀀";

async fn every_character_set_round_trips(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let sets = db
        .exec(
            "SELECT CHARACTER_SET_NAME AS name FROM information_schema.CHARACTER_SETS \
             WHERE CHARACTER_SET_NAME <> 'binary' ORDER BY name",
        )
        .await;
    let sets: Vec<&str> = sets.as_array().expect("a list").iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(sets.len() >= 30, "{sets:?}");
    for set in sets {
        let create = format!("CREATE TABLE `{set}` (id INT PRIMARY KEY, v VARCHAR(40) CHARACTER SET {set}, KEY(v))");
        db.exec(&create).await;
        holds_its_own(&db, set).await;
        refuses_others(&db, set).await;
    }
}

/// Returns the characters of [`ALPHABETS`] that MariaDB can convert to this character set.
async fn repertoire(db: &TestDb, set: &str) -> String {
    let query = format!("SELECT CONVERT(CONVERT(? USING {set}) USING utf8mb4) AS v");
    let row = db.sql_with(&query, json!([ALPHABETS])).send().await.payload();
    let back = row[0]["v"].as_str().expect("text");
    ALPHABETS.chars().zip(back.chars()).filter(|(c, back)| c == back).map(|(c, _)| c).collect()
}

async fn holds_its_own(db: &TestDb, set: &str) {
    let text = format!("a {}z", repertoire(db, set).await);
    let longer = format!("{text}%z");
    let batch = json!({"batchData": [{"id": 1, "v": text}, {"id": 2, "v": longer}]});
    let inserted = db.post(set, &batch).await;
    assert_eq!(inserted.payload(), json!([1, 2]), "{set}: {inserted}");
    assert_eq!(db.column(&format!("{set}?order[field]=id"), "v").await, [text.as_str(), &longer], "{set}");
    let middle: String = text.chars().skip(1).take(3).collect();
    for (value, equality, found) in [
        (json!(text), "=", vec![1]),
        (json!([text, "b"]), "IN", vec![1]),
        (json!(text), "!=", vec![2]),
        (json!(text), ">", vec![2]),
        (json!([text, longer]), "BETWEEN", vec![1, 2]),
        (json!(format!("{text}%")), "LIKE", vec![1, 2]),
        (json!(text), "STARTS WITH", vec![1, 2]),
        (json!(middle), "CONTAINS", vec![1, 2]),
        (json!("%z"), "ENDS WITH", vec![2]),
        (json!(format!("^{middle}|^a")), "REGEXP", vec![1, 2]),
    ] {
        let query = json!({"v": {"value": value, "equality": equality}});
        assert_eq!(db.ids(set, &query, "").await, found, "{set}: {query}");
    }
    let changed = db.put(&format!("{set}/1"), &json!({"v": text})).await;
    assert_eq!(changed.payload(), 1, "{set}");
}

async fn refuses_others(db: &TestDb, set: &str) {
    let all_of_unicode = ["utf8mb4", "utf16", "utf16le", "utf32"].contains(&set);
    let text = format!("a{BEYOND}");
    let answer = db.post(set, &json!({"id": 3, "v": text})).await;
    if all_of_unicode {
        assert_eq!(answer.payload(), 3, "{set}");
        assert_eq!(db.ids(set, &json!({"v": text}), "").await, [3], "{set}");
        return;
    }
    let error = answer.refused(ErrorCode::InvalidValue);
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("\"v\""), "{set}: {message}");
    assert_eq!(db.put(&format!("{set}/1"), &json!({"v": text})).await.code(), "invalid_value", "{set}");
    for (value, equality, found) in [
        (json!(text), "=", vec![]),
        (json!(text), "!=", vec![1, 2]),
        (json!([text, text]), "IN", vec![]),
        (json!(text), "<=>", vec![]),
        (json!(BEYOND), "<", vec![1, 2]),
        (json!(BEYOND), "CONTAINS", vec![]),
        (json!(format!("%{BEYOND}%")), "LIKE", vec![]),
        (json!(format!("%{BEYOND}%")), "NOT LIKE", vec![1, 2]),
        (json!(format!("[a{BEYOND}]")), "REGEXP", vec![1, 2]),
    ] {
        let query = json!({"v": {"value": value, "equality": equality}});
        assert_eq!(db.ids(set, &query, "").await, found, "{set}: {query}");
    }
}

async fn a_condition_compares_as_the_columns_collation_does(host: Host) {
    for (kind, folded, padded) in [
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", true, true),
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", false, true),
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", false, false),
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_nopad_ci", true, false),
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci", true, true),
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_as_cs", false, true),
        ("CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_nopad_ai_ci", true, false),
        ("CHARACTER SET latin1 COLLATE latin1_swedish_ci", true, true),
        ("CHARACTER SET latin1 COLLATE latin1_general_cs", false, true),
        ("CHARACTER SET latin1 COLLATE latin1_bin", false, true),
        ("CHARACTER SET utf16 COLLATE utf16_bin", false, true),
        ("CHARACTER SET utf8mb3 COLLATE utf8mb3_bin", false, true),
    ] {
        let create = format!("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) {kind}, KEY(v))");
        let db = TestDb::new(host, &[&create]).await;
        db.post("t", &json!({"batchData": [{"id": 1, "v": "Müller"}, {"id": 2, "v": "x"}]})).await.payload();
        for (value, equality, is_found) in [
            ("müller", "=", folded),
            ("MÜLLER", "IN", folded),
            ("Müller ", "=", padded),
            ("mü", "STARTS WITH", folded),
            ("Mü", "STARTS WITH", true),
            ("ÜLL", "CONTAINS", folded),
        ] {
            let query = json!({"v": {"value": value, "equality": equality}});
            let found: &[i64] = if is_found { &[1] } else { &[] };
            assert_eq!(db.ids("t", &query, "").await, found, "{kind}: {query}");
        }
    }
}

async fn text_that_the_character_set_lacks_compares_as_unicode(host: Host) {
    for (collation, folded) in [("latin1_swedish_ci", true), ("latin1_bin", false)] {
        let create =
            format!("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET latin1 COLLATE {collation})");
        let db = TestDb::new(host, &[&create]).await;
        db.post("t", &json!({"batchData": [{"id": 1, "v": "B"}, {"id": 2, "v": "?"}]})).await.payload();
        let ids = async |value: Value, equality: &str| {
            let query = json!({"v": {"value": value, "equality": equality}});
            db.ids("t", &query, "").await
        };
        let nothing: [i64; 0] = [];
        assert_eq!(ids(json!("日"), "=").await, nothing, "{collation}");
        assert_eq!(ids(json!(["日", "B"]), "IN").await, [1], "{collation}");
        assert_eq!(ids(json!(["日", "B"]), "NOT IN").await, [2], "{collation}");
        let found: &[i64] = if folded { &[1] } else { &nothing };
        assert_eq!(ids(json!(["日", "b"]), "IN").await, found, "{collation}");
        assert_eq!(ids(json!("[b日]"), "REGEXP").await, found, "{collation}");
    }
}
