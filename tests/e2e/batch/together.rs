//! Batches run all operations in order, or change nothing.

use super::{batch, delete, delete_where, get, post, put};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        an_author_a_post_and_an_order_are_made_together,
        operations_see_what_those_before_them_did,
        a_failure_in_the_middle_leaves_nothing,
        a_record_that_is_missing_stops_the_batch,
        a_table_that_changed_behind_the_schemas_back_is_read_anew,
        paths_may_be_short_and_names_may_be_odd,
        a_batch_of_reads_gives_one_state,
        reads_in_a_batch_join_and_page_as_alone,
        a_table_without_transactions_is_only_read,
    ],
}

const SHOP: &[&str] = &[
    "CREATE TABLE authors (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(50) NOT NULL UNIQUE)",
    "CREATE TABLE posts (id BIGINT PRIMARY KEY AUTO_INCREMENT, author INT NOT NULL, title TEXT, \
        FOREIGN KEY (author) REFERENCES authors (id))",
];

async fn an_author_a_post_and_an_order_are_made_together(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let books = TestDb::new(
        host,
        &["CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, post BIGINT NOT NULL, author INT)"],
    )
    .await;
    let done = batch(
        host,
        &[
            post(&db.path("authors"), json!({"name": "Ada"})),
            post(&db.path("posts"), json!({"author": {"$ref": 0}, "title": "one"})),
            post(
                &db.path("posts"),
                json!({"batchData": [{"author": {"$ref": 0}}, {"author": {"$ref": 0}, "title": "three"}]}),
            ),
            post(&books.path("orders"), json!({"post": {"$ref": 2, "row": 1}, "author": {"$ref": 0}})),
        ],
    )
    .await;
    assert_eq!(done.payload(), json!([1, 1, [2, 3], 1]));
    assert_eq!(
        db.get("posts?order[field]=id").await.payload(),
        json!([
            {"id": 1, "author": 1, "title": "one"},
            {"id": 2, "author": 1, "title": null},
            {"id": 3, "author": 1, "title": "three"},
        ])
    );
    assert_eq!(books.get("orders").await.payload(), json!([{"id": 1, "post": 3, "author": 1}]));
}

async fn operations_see_what_those_before_them_did(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let (authors, posts) = (db.path("authors"), db.path("posts"));
    let done = batch(
        host,
        &[
            post(&authors, json!({"name": "Ada"})),
            post(&authors, json!({"batchData": [{"name": "Bo"}, {"name": "Cy"}]})),
            put(&format!("{authors}/1"), json!({"name": "Ida"})),
            put(&format!("{authors}/9"), json!({"name": "none"})),
            get(&format!("{authors}/1?selectFields=name")),
            delete(&format!("{authors}/2")),
            delete_where(&authors, "name", json!(["Cy", "Di"])),
            get(&format!("{authors}?order[field]=id")),
            post(&format!("{authors}/query"), json!({"query": {"name": "Cy"}})),
            get(&format!("{posts}?limit=1")),
        ],
    )
    .await;
    assert_eq!(done.payload(), json!([1, [2, 3], 1, 0, {"name": "Ida"}, 1, 1, [{"id": 1, "name": "Ida"}], [], []]));
}

async fn a_failure_in_the_middle_leaves_nothing(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    db.post("authors", &json!({"name": "Ada"})).await.payload();
    let (authors, posts) = (db.path("authors"), db.path("posts"));
    let table = [
        (post(&authors, json!({"name": "Bo"})), ErrorCode::DuplicateKey, json!(1062)),
        (post(&posts, json!({"author": 77})), ErrorCode::ForeignKeyViolation, json!(1452)),
        (post(&posts, json!({"autor": 1})), ErrorCode::UnknownField, json!(null)),
        (post(&posts, json!({"author": "x"})), ErrorCode::InvalidValue, json!(null)),
        (post(&posts, json!({"title": "no author"})), ErrorCode::InvalidValue, json!(1364)),
        (put(&format!("{authors}/1"), json!({"name": null})), ErrorCode::InvalidValue, json!(1048)),
        (post(&db.path("nothing"), json!({})), ErrorCode::TableNotFound, json!(null)),
        (post("somebody_elses/t", json!({})), ErrorCode::DatabaseNotFound, json!(null)),
        (post("selkie/projects", json!({})), ErrorCode::DatabaseNotFound, json!(null)),
    ];
    for (failing, code, errno) in table {
        let answer = batch(
            host,
            &[
                post(&authors, json!({"name": "Bo"})),
                put(&format!("{authors}/1"), json!({"name": "changed"})),
                failing,
                post(&authors, json!({"name": "Cy"})),
            ],
        )
        .await;
        let error = answer.refused(code);
        assert_eq!(error["details"]["operation"], 2, "{answer}");
        assert_eq!(error["details"]["errno"], errno, "{answer}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("Operation 2: "), "{answer}");
        assert_eq!(db.get("authors").await.payload(), json!([{"id": 1, "name": "Ada"}]), "{answer}");
    }
    // The connections of rolled-back batches can be used again.
    for _ in 0..24 {
        assert_eq!(db.value("SELECT @@in_transaction").await, 0);
    }
}

async fn a_record_that_is_missing_stops_the_batch(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let authors = db.path("authors");
    let answer = batch(host, &[post(&authors, json!({"name": "Ada"})), get(&format!("{authors}/77"))]).await;
    let error = answer.refused(ErrorCode::RecordNotFound);
    assert_eq!(error["details"]["operation"], 1);
    assert_eq!(db.get("authors").await.payload(), json!([]));
}

async fn a_table_that_changed_behind_the_schemas_back_is_read_anew(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, gone INT)",
        ],
    )
    .await;
    db.post("t", &json!({"gone": 1})).await.payload();
    db.get("t").await.payload();
    db.behind("ALTER TABLE t DROP COLUMN gone");
    let done = batch(host, &[post(&db.path("log"), json!({"n": 1})), get(&db.path("t"))]).await;
    assert_eq!(done.payload()[1], json!([{"id": 1}]));
    assert_eq!(db.column("log", "n").await, [json!(1)]);
}

async fn paths_may_be_short_and_names_may_be_odd(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE `a/b ü` (id VARCHAR(20) PRIMARY KEY, `$ref` INT)"]).await;
    let path = db.path("a/b ü");
    let short = path.strip_prefix("/api/v1/crud/").unwrap();
    let done = batch(
        host,
        &[
            post(short, json!({"id": "$ref:0", "$ref": 5})),
            get(&format!("{path}/%24ref:0")),
            get(&format!("{short}/$ref:0")),
        ],
    )
    .await;
    let record = json!({"id": "$ref:0", "$ref": 5});
    assert_eq!(done.payload(), json!(["$ref:0", record, record]));
}

async fn a_batch_of_reads_gives_one_state(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    db.post("authors", &json!({"batchData": [{"name": "a"}, {"name": "b"}]})).await.payload();
    let authors = db.path("authors");
    let list = json!([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]);
    let done =
        batch(host, &[get(&authors), get(&format!("{authors}?limit=0")), get(&format!("{authors}/2?omitFields=id"))])
            .await;
    assert_eq!(done.payload(), json!([list, [], {"name": "b"}]));
    let patched = json!({"method": "patch", "path": format!("{authors}/2"), "body": {"name": "c"}});
    assert_eq!(batch(host, &[patched]).await.payload(), json!([1]));
    let without = host.call(Method::POST, "/api/v1/batch").bytes(json!({"operations": [get(&authors)]}).to_string());
    assert_eq!(without.send().await.payload()[0][1]["name"], "c");
}

async fn reads_in_a_batch_join_and_page_as_alone(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let (authors, posts) = (db.path("authors"), db.path("posts"));
    let join = |more: &str| {
        format!(
            "{}&{more}",
            crate::host::option(
                "join",
                &json!([{"tableName": "posts", "joinType": "LEFT JOIN", "nest": true, "selectFields": ["title"],
                    "match": {"source": "id", "target": "author"}}]),
            )
        )
    };
    let done = batch(
        host,
        &[
            post(&authors, json!({"batchData": [{"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"}]})),
            post(&posts, json!({"author": {"$ref": 0, "row": 0}, "title": "one"})),
            get(&format!("{authors}?limit=2&order[field]=name&selectFields=id")),
            get(&format!("{authors}?limit=2&page=2&order[field]=name&selectFields=id")),
            get(&format!("{authors}/$ref:0:0?{}", join("selectFields=name"))),
            get(&format!("{authors}?{}", join("limit=2&selectFields=name&order[field]=name"))),
            get(&format!("{authors}?selectFields=[{{\"fieldName\":\"id\",\"aggregate\":\"MAX\",\"alias\":\"m\"}}]")),
        ],
    )
    .await;
    let ada = json!({"name": "Ada", "posts": {"title": "one"}});
    assert_eq!(
        done.payload(),
        json!([[1, 2, 3], 1, [{"id": 1}, {"id": 2}], [{"id": 3}], ada, [ada, {"name": "Bo", "posts": null}], [{"m": 3}]])
    );
    // A single record that a join finds twice is refused, in a batch as alone.
    let second = post(&posts, json!({"author": 1}));
    let both = get(&format!("{authors}/1?{}", join("selectFields=name")));
    let answer = batch(host, &[second, both]).await;
    let error = answer.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(error["details"]["operation"], 1);
    assert_eq!(db.value("SELECT COUNT(*) FROM posts").await, 1);
    // Options that add to an envelope beside its payload are refused in a batch.
    for option in ["count=true", "limit=1&after=x", "explain=true"] {
        let answer = batch(host, &[get(&format!("{authors}?{option}"))]).await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
}

async fn a_table_without_transactions_is_only_read(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE = MyISAM",
            "INSERT INTO log (n) VALUES (5)",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
        ],
    )
    .await;
    let (log, t) = (db.path("log"), db.path("t"));
    for write in [
        post(&log, json!({"n": 1})),
        put(&format!("{log}/1"), json!({"n": 1})),
        delete(&format!("{log}/1")),
        delete_where(&log, "n", json!(5)),
    ] {
        let answer = batch(host, &[post(&t, json!({"n": 1})), write]).await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert_eq!(error["details"]["operation"], 1, "{answer}");
    }
    let done = batch(host, &[post(&t, json!({"n": 1})), get(&log)]).await;
    assert_eq!(done.payload(), json!([1, [{"id": 1, "n": 5}]]));
}
