//! What a batch does: everything in order, or nothing.

use super::{batch, delete, delete_where, get, post, put};
use crate::door::Door;
use crate::room::Room;
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

async fn an_author_a_post_and_an_order_are_made_together(door: Door) {
    let room = Room::new(door, SHOP).await;
    let books = Room::new(
        door,
        &["CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, post BIGINT NOT NULL, author INT)"],
    )
    .await;
    let done = batch(
        door,
        &[
            post(&room.path("authors"), json!({"name": "Ada"})),
            post(&room.path("posts"), json!({"author": {"$ref": 0}, "title": "one"})),
            post(
                &room.path("posts"),
                json!({"batchData": [{"author": {"$ref": 0}}, {"author": {"$ref": 0}, "title": "three"}]}),
            ),
            post(
                &books.path("orders"),
                json!({"post": {"$ref": 2, "row": 1}, "author": {"$ref": 0}}),
            ),
        ],
    )
    .await;
    assert_eq!(done.payload(), json!([1, 1, [2, 3], 1]));
    assert_eq!(
        room.get("posts?order[field]=id").await.payload(),
        json!([
            {"id": 1, "author": 1, "title": "one"},
            {"id": 2, "author": 1, "title": null},
            {"id": 3, "author": 1, "title": "three"},
        ])
    );
    assert_eq!(
        books.get("orders").await.payload(),
        json!([{"id": 1, "post": 3, "author": 1}])
    );
}

async fn operations_see_what_those_before_them_did(door: Door) {
    let room = Room::new(door, SHOP).await;
    let (authors, posts) = (room.path("authors"), room.path("posts"));
    let done = batch(
        door,
        &[
            post(&authors, json!({"name": "Ada"})),
            post(
                &authors,
                json!({"batchData": [{"name": "Bo"}, {"name": "Cy"}]}),
            ),
            put(&format!("{authors}/1"), json!({"name": "Ida"})),
            put(&format!("{authors}/9"), json!({"name": "none"})),
            get(&format!("{authors}/1?selectFields=name")),
            delete(&format!("{authors}/2")),
            delete_where(&authors, "name", json!(["Cy", "Di"])),
            get(&format!("{authors}?order[field]=id")),
            post(
                &format!("{authors}/query"),
                json!({"query": {"name": "Cy"}}),
            ),
            get(&format!("{posts}?limit=1")),
        ],
    )
    .await;
    assert_eq!(
        done.payload(),
        json!([1, [2, 3], 1, 0, {"name": "Ida"}, 1, 1, [{"id": 1, "name": "Ida"}], [], []])
    );
}

async fn a_failure_in_the_middle_leaves_nothing(door: Door) {
    let room = Room::new(door, SHOP).await;
    room.post("authors", &json!({"name": "Ada"}))
        .await
        .payload();
    let (authors, posts) = (room.path("authors"), room.path("posts"));
    let table = [
        (
            post(&authors, json!({"name": "Bo"})),
            ErrorCode::DuplicateKey,
            json!(1062),
        ),
        (
            post(&posts, json!({"author": 77})),
            ErrorCode::ForeignKeyViolation,
            json!(1452),
        ),
        (
            post(&posts, json!({"autor": 1})),
            ErrorCode::UnknownField,
            json!(null),
        ),
        (
            post(&posts, json!({"author": "x"})),
            ErrorCode::InvalidValue,
            json!(null),
        ),
        (
            post(&posts, json!({"title": "no author"})),
            ErrorCode::InvalidValue,
            json!(1364),
        ),
        (
            put(&format!("{authors}/1"), json!({"name": null})),
            ErrorCode::InvalidValue,
            json!(1048),
        ),
        (
            post(&room.path("nothing"), json!({})),
            ErrorCode::TableNotFound,
            json!(null),
        ),
        (
            post("somebody_elses/t", json!({})),
            ErrorCode::DatabaseNotFound,
            json!(null),
        ),
        (
            post("selkie/projects", json!({})),
            ErrorCode::DatabaseNotFound,
            json!(null),
        ),
    ];
    for (failing, code, errno) in table {
        let answer = batch(
            door,
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
        assert_eq!(
            room.get("authors").await.payload(),
            json!([{"id": 1, "name": "Ada"}]),
            "{answer}"
        );
    }
    // The connections that rolled back are as good as new ones.
    for _ in 0..24 {
        assert_eq!(room.value("SELECT @@in_transaction").await, 0);
    }
}

async fn a_record_that_is_missing_stops_the_batch(door: Door) {
    let room = Room::new(door, SHOP).await;
    let authors = room.path("authors");
    let answer = batch(
        door,
        &[
            post(&authors, json!({"name": "Ada"})),
            get(&format!("{authors}/77")),
        ],
    )
    .await;
    let error = answer.refused(ErrorCode::RecordNotFound);
    assert_eq!(error["details"]["operation"], 1);
    assert_eq!(room.get("authors").await.payload(), json!([]));
}

async fn a_table_that_changed_behind_the_schemas_back_is_read_anew(door: Door) {
    let room = Room::new(
        door,
        &[
            "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, gone INT)",
        ],
    )
    .await;
    room.post("t", &json!({"gone": 1})).await.payload();
    room.get("t").await.payload();
    room.behind("ALTER TABLE t DROP COLUMN gone");
    let done = batch(
        door,
        &[
            post(&room.path("log"), json!({"n": 1})),
            get(&room.path("t")),
        ],
    )
    .await;
    assert_eq!(done.payload()[1], json!([{"id": 1}]));
    assert_eq!(room.column("log", "n").await, [json!(1)]);
}

async fn paths_may_be_short_and_names_may_be_odd(door: Door) {
    let room = Room::new(
        door,
        &["CREATE TABLE `a/b ü` (id VARCHAR(20) PRIMARY KEY, `$ref` INT)"],
    )
    .await;
    let path = room.path("a/b ü");
    let short = path.strip_prefix("/api/v1/crud/").unwrap();
    let done = batch(
        door,
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

async fn a_batch_of_reads_gives_one_state(door: Door) {
    let room = Room::new(door, SHOP).await;
    room.post(
        "authors",
        &json!({"batchData": [{"name": "a"}, {"name": "b"}]}),
    )
    .await
    .payload();
    let authors = room.path("authors");
    let list = json!([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]);
    let done = batch(
        door,
        &[
            get(&authors),
            get(&format!("{authors}?limit=0")),
            get(&format!("{authors}/2?omitFields=id")),
        ],
    )
    .await;
    assert_eq!(done.payload(), json!([list, [], {"name": "b"}]));
    let patched = json!({"method": "patch", "path": format!("{authors}/2"), "body": {"name": "c"}});
    assert_eq!(batch(door, &[patched]).await.payload(), json!([1]));
    let without = door
        .call(Method::POST, "/api/v1/batch")
        .bytes(json!({"operations": [get(&authors)]}).to_string());
    assert_eq!(without.send().await.payload()[0][1]["name"], "c");
}

async fn reads_in_a_batch_join_and_page_as_alone(door: Door) {
    let room = Room::new(door, SHOP).await;
    let (authors, posts) = (room.path("authors"), room.path("posts"));
    let join = |more: &str| {
        format!(
            "{}&{more}",
            crate::door::option(
                "join",
                &json!([{"tableName": "posts", "joinType": "LEFT JOIN", "nest": true, "selectFields": ["title"],
                    "match": {"source": "id", "target": "author"}}]),
            )
        )
    };
    let done = batch(
        door,
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
    // A record with two partners is no record, in a batch as alone.
    let second = post(&posts, json!({"author": 1}));
    let both = get(&format!("{authors}/1?{}", join("selectFields=name")));
    let answer = batch(door, &[second, both]).await;
    let error = answer.refused(ErrorCode::InvalidQueryOption);
    assert_eq!(error["details"]["operation"], 1);
    assert_eq!(room.value("SELECT COUNT(*) FROM posts").await, 1);
    // What an envelope would tell beside its payload has no place in the list.
    for option in ["count=true", "limit=1&after=x", "explain=true"] {
        let answer = batch(door, &[get(&format!("{authors}?{option}"))]).await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
}

async fn a_table_without_transactions_is_only_read(door: Door) {
    let room = Room::new(
        door,
        &[
            "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT) ENGINE = MyISAM",
            "INSERT INTO log (n) VALUES (5)",
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
        ],
    )
    .await;
    let (log, t) = (room.path("log"), room.path("t"));
    for write in [
        post(&log, json!({"n": 1})),
        put(&format!("{log}/1"), json!({"n": 1})),
        delete(&format!("{log}/1")),
        delete_where(&log, "n", json!(5)),
    ] {
        let answer = batch(door, &[post(&t, json!({"n": 1})), write]).await;
        let error = answer.refused(ErrorCode::InvalidBody);
        assert_eq!(error["details"]["operation"], 1, "{answer}");
    }
    let done = batch(door, &[post(&t, json!({"n": 1})), get(&log)]).await;
    assert_eq!(done.payload(), json!([1, [{"id": 1, "n": 5}]]));
}
