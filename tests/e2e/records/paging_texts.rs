//! Keyset pagination over texts: equal in the collation, of other character sets, and longer than the sorted prefix.

use super::paging::{by, holds_with_key, walk};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        pages_follow_texts_that_sort_alike,
        pages_follow_texts_of_other_character_sets,
        pages_follow_long_texts,
    ],
}

async fn pages_follow_texts_that_sort_alike(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(20), b VARCHAR(20) COLLATE utf8mb4_bin, n VARCHAR(20) COLLATE utf8mb4_nopad_bin, \
             u VARCHAR(20) COLLATE utf8mb4_unicode_520_ci, de VARCHAR(20) COLLATE utf8mb4_german2_ci)",
            "INSERT INTO t SELECT id, c, c, c, c, c FROM (SELECT 1 id, 'straße' c UNION SELECT 2, 'STRASSE' UNION SELECT 3, 'strasse ' UNION SELECT 4, 'Ä' \
             UNION SELECT 5, 'ä' UNION SELECT 6, 'ae' UNION SELECT 7, 'a' UNION SELECT 8, 'A ' UNION SELECT 9, '😀' UNION SELECT 10, '😁' \
             UNION SELECT 11, 'a\\t' UNION SELECT 12, 'a\\0' UNION SELECT 13, '' UNION SELECT 14, ' ' UNION SELECT 15, 'ı' UNION SELECT 16, 'I') x",
        ],
    )
    .await;
    for column in ["c", "b", "n", "u", "de"] {
        for strategy in ["ASC", "DESC"] {
            for limit in [1, 3] {
                let options = json!({"order": by(column, strategy), "selectFields": ["id"]});
                holds_with_key(&db, "t", &options, limit).await;
            }
        }
    }
}

async fn pages_follow_texts_of_other_character_sets(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, l VARCHAR(20) CHARACTER SET latin1, s VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci, \
             g VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci, w VARCHAR(20) CHARACTER SET cp1251, j VARCHAR(20) CHARACTER SET utf16, \
             a VARCHAR(20) CHARACTER SET ascii, e ENUM('ü','u','é') CHARACTER SET latin1)",
            "INSERT INTO t VALUES (1,'é','ü','ß','ж','😀','a','é'), (2,'e','y','ss','Ж','é','A','ü'), (3,'É','Ü','s','я','z','b','u'), (4,'€','u','t','a','Z',NULL,NULL)",
        ],
    )
    .await;
    for column in ["l", "s", "g", "w", "j", "a", "e"] {
        for strategy in ["ASC", "DESC"] {
            let options = json!({"order": by(column, strategy), "selectFields": ["id", column]});
            holds_with_key(&db, "t", &options, 1).await;
        }
    }
}

/// Texts that differ only after the 1,024 bytes that MariaDB sorts by (`max_sort_length`), or after the 64 bytes for
/// which the server is configured.
async fn pages_follow_long_texts(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000), t LONGTEXT, b LONGBLOB, s VARCHAR(100), m TEXT)",
            "INSERT INTO t SELECT seq, CONCAT(REPEAT('x', 1500), CHAR(110 - seq)), CONCAT(REPEAT('x', 5000), CHAR(110 - seq)), CONCAT(REPEAT('x', 1030), CHAR(110 - seq)), CONCAT(REPEAT('x', 90), CHAR(110 - seq)), CONCAT(REPEAT('x', 200), CHAR(110 - seq)) FROM seq_1_to_7",
        ],
    )
    .await;
    for column in ["v", "t", "b", "s", "m"] {
        for strategy in ["ASC", "DESC"] {
            for limit in [1, 2, 3] {
                let options = json!({"order": by(column, strategy), "selectFields": ["id"]});
                match walk(&db, "t", &options, limit).await {
                    Ok(rows) => {
                        let mut ids: Vec<i64> = rows.iter().map(|row| row["id"].as_i64().unwrap()).collect();
                        ids.sort_unstable();
                        assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7], "{column} {strategy} by {limit}");
                    }
                    Err(answer) => {
                        answer.refused(ErrorCode::InvalidQueryOption);
                        assert!(answer.text().contains(column), "{answer}");
                    }
                }
            }
        }
    }
}
