//! References to ids of records that the same batch inserts.

use super::{batch, delete, delete_where, get, post, put};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        an_id_goes_wherever_a_value_goes,
        ids_of_every_type_arrive_exactly,
        an_id_is_a_part_of_a_composite_one,
        a_composite_id_is_no_value,
        what_gives_no_id_is_not_referred_to,
        ids_by_reference_have_a_limit_of_bytes,
        the_object_itself_is_stored_outside_of_a_batch,
    ],
}

const TREE: &[&str] = &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, parent INT, doc JSON) AUTO_INCREMENT = 41"];

async fn an_id_goes_wherever_a_value_goes(host: Host) {
    let db = TestDb::new(host, TREE).await;
    let t = db.path("t");
    let done = batch(
        host,
        &[
            post(&t, json!({})),
            post(&t, json!({"batchData": [{"parent": {"$ref": 0}}, {}, {"parent": {"$ref": 0}}]})),
            put(&format!("{t}/$ref:1:1"), json!({"parent": {"$ref": 1, "row": 2}, "doc": {"$ref": 0}})),
            get(&format!("{t}/$ref:1:1")),
            post(
                &format!("{t}/query"),
                json!({"query": {"parent": {"$ref": 0}}, "order": {"field": "id"}, "selectFields": ["id"]}),
            ),
            post(
                &format!("{t}/query"),
                json!({"query": {"id": {"value": [{"$ref": 0}, {"$ref": 1, "row": 0}], "equality": "BETWEEN"}}, "selectFields": ["id"]}),
            ),
            put(
                &t,
                json!({"updateKeyValues": [{"key": "id", "value": {"$ref": 1, "row": 1}}], "data": {"parent": {"$ref": 0}}}),
            ),
            put(
                &t,
                json!({"updateKeyValues": [{"key": "id", "value": {"$ref": 1, "row": 1}}], "data": {"parent": null}}),
            ),
            delete_where(&t, "parent", json!({"$ref": 0})),
            delete_where(&t, "id", json!([{"$ref": 1, "row": 1}, 12345])),
            delete(&format!("{t}/$ref:0")),
        ],
    )
    .await;
    assert_eq!(
        done.payload(),
        json!([
            41,
            [42, 43, 44],
            1,
            {"id": 43, "parent": 44, "doc": 41},
            [{"id": 42}, {"id": 44}],
            [{"id": 41}, {"id": 42}],
            1,
            1,
            2,
            1,
            1
        ])
    );
}

async fn ids_of_every_type_arrive_exactly(host: Host) {
    for (kind, insert, id) in [
        ("BIGINT UNSIGNED", json!(18_446_744_073_709_551_610_u64), json!("18446744073709551610")),
        ("BIGINT", json!(-9_007_199_254_740_993_i64), json!("-9007199254740993")),
        ("DECIMAL(30,10)", json!("12345678901234567890.0123456789"), json!("12345678901234567890.0123456789")),
        ("VARCHAR(60)", json!("a,b/c?d=é\"'\\ %2C #"), json!("a,b/c?d=é\"'\\ %2C #")),
        ("UUID", json!("0192d9b8-0000-7000-8000-000000000001"), json!("0192d9b8-0000-7000-8000-000000000001")),
        ("VARBINARY(20)", json!("AAH/gA=="), json!("AAH/gA==")),
        ("DATETIME(6)", json!("2026-11-20T08:36:16.123456Z"), json!("2026-11-20 08:36:16.123456")),
        ("DOUBLE", json!(0.1), json!(0.1)),
        ("DATE", json!("2026-11-20"), json!("2026-11-20")),
        ("ENUM('a','b')", json!("b"), json!("b")),
    ] {
        let db = TestDb::new(
            host,
            &[
                &format!("CREATE TABLE t (id {kind} PRIMARY KEY, n INT)"),
                &format!("CREATE TABLE c (n INT PRIMARY KEY AUTO_INCREMENT, parent {kind})"),
            ],
        )
        .await;
        let (t, c) = (db.path("t"), db.path("c"));
        let done = batch(
            host,
            &[
                post(&t, json!({"id": insert})),
                post(&c, json!({"parent": {"$ref": 0}})),
                put(&format!("{t}/$ref:0"), json!({"n": {"$ref": 1}})),
                get(&format!("{c}/$ref:1")),
                post(&format!("{t}/query"), json!({"query": {"id": {"$ref": 0}}})),
            ],
        )
        .await;
        let parent = json!({"n": 1, "parent": id});
        assert_eq!(done.payload(), json!([id, 1, 1, parent, [{"id": id, "n": 1}]]), "{kind}");
    }
}

const LINKS: &[&str] = &[
    "CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT) AUTO_INCREMENT = 5",
    "CREATE TABLE links (a INT, b VARCHAR(20), n INT DEFAULT 0, PRIMARY KEY (a, b))",
    "CREATE TABLE keyless (n INT)",
    "CREATE TABLE counted (n INT, c INT AUTO_INCREMENT, KEY (c))",
];

async fn an_id_is_a_part_of_a_composite_one(host: Host) {
    let db = TestDb::new(host, LINKS).await;
    let links = db.path("links");
    let done = batch(
        host,
        &[
            post(&db.path("a"), json!({})),
            post(&links, json!({"a": {"$ref": 0}, "b": "x y"})),
            put(&format!("{links}/$ref:1"), json!({"n": 1})),
            put(&format!("{links}/$ref:0,x%20y"), json!({"n": 2})),
            get(&format!("{links}/5,x%20y")),
            delete(&format!("{links}/$ref:1")),
        ],
    )
    .await;
    assert_eq!(done.payload(), json!([5, "5,x y", 1, 1, {"a": 5, "b": "x y", "n": 2}, 1]));
}

async fn refused(host: Host, operations: &[Value], at: usize) -> String {
    let answer = batch(host, operations).await;
    let error = answer.refused(ErrorCode::InvalidBody);
    assert_eq!(error["details"]["operation"], at, "{answer}");
    error["message"].as_str().unwrap().to_owned()
}

async fn ids_by_reference_have_a_limit_of_bytes(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id VARCHAR(1022) CHARACTER SET latin1 PRIMARY KEY)"]).await;
    let t = db.path("t");
    // In JSON, the id has 1,024 bytes.
    let insert = post(&t, json!({"id": "x".repeat(1022)}));
    let read =
        |count| post(&format!("{t}/query"), json!({"query": {"id": {"value": vec![json!({"$ref": 0}); count]}}}));
    assert_eq!(batch(host, &[insert.clone(), read(1024)]).await.payload()[1].as_array().map(Vec::len), Some(1));
    db.exec("DELETE FROM t").await;
    let says = refused(host, &[insert, read(1024), read(1)], 2).await;
    assert!(says.contains("1048576 bytes"), "{says}");
    assert_eq!(db.get("t").await.payload(), json!([]));
}

async fn a_composite_id_is_no_value(host: Host) {
    let db = TestDb::new(host, LINKS).await;
    let (a, links) = (db.path("a"), db.path("links"));
    let link = post(&links, json!({"a": 1, "b": "x"}));
    for operation in [
        post(&a, json!({"id": {"$ref": 0}})),
        put(&format!("{a}/1"), json!({"id": {"$ref": 0}})),
        delete_where(&a, "id", json!({"$ref": 0})),
        delete(&format!("{links}/$ref:0,y")),
    ] {
        let says = refused(host, &[link.clone(), operation], 1).await;
        assert!(says.contains("2 parts"), "{says}");
    }
    assert_eq!(db.get("links").await.payload(), json!([]));
}

async fn what_gives_no_id_is_not_referred_to(host: Host) {
    let db = TestDb::new(host, LINKS).await;
    db.exec("CREATE VIEW v AS SELECT a, b FROM links").await;
    let a = db.path("a");
    let link = post(&a, json!({"id": {"$ref": 0}}));
    for insert in [post(&db.path("keyless"), json!({"n": 1})), post(&db.path("v"), json!({"a": 1, "b": "x"}))] {
        let says = refused(host, &[insert, link.clone()], 1).await;
        assert!(says.contains("gives no id"), "{says}");
    }
    assert_eq!(db.get("links").await.payload(), json!([]));
    assert_eq!(db.get("keyless").await.payload(), json!([]));
    // The existing row has an id, but the ignored insert didn't return it.
    let ignored = post(&format!("{a}?onConflict=ignore"), json!({"batchData": [{"id": 1}, {"id": 1}]}));
    let second = put(&format!("{a}/9"), json!({"id": {"$ref": 0, "row": 1}}));
    refused(host, &[ignored, second], 1).await;
    assert_eq!(db.get("a").await.payload(), json!([]));
    // An insert returns AUTO_INCREMENT's value as its id, even if the column is no key.
    let counted = post(&db.path("counted"), json!({"n": 1}));
    assert_eq!(batch(host, &[counted, link]).await.payload(), json!([1, 1]));
}

async fn the_object_itself_is_stored_outside_of_a_batch(host: Host) {
    let db = TestDb::new(host, TREE).await;
    let literal = json!({"$ref": "#/definitions/x"});
    refused(host, &[post(&db.path("t"), json!({"doc": literal}))], 0).await;
    let id = db.post("t", &json!({"doc": literal})).await.payload();
    let inside = json!({"inside": [literal]});
    let done = batch(
        host,
        &[
            post(&db.path("t"), json!({"doc": inside})),
            get(&format!("{}/{id}?selectFields=doc", db.path("t"))),
            get(&format!("{}/$ref:0?selectFields=doc", db.path("t"))),
        ],
    )
    .await;
    let payload = done.payload();
    assert_eq!((&payload[1]["doc"], &payload[2]["doc"]), (&literal, &inside));
}
