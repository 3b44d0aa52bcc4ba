//! The option `include`: related records in each record, and conditions on related records.

use super::both_notations::{self, ask, refused};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        records_have_what_they_refer_to_and_what_refers_to_them,
        a_relation_goes_through_a_link_table_in_both_directions,
        a_table_relates_to_itself_in_both_directions,
        composite_and_text_keys_relate_as_mariadb_compares_them,
        includes_take_fields_conditions_order_and_limit_for_each_record,
        includes_nest,
        parents_are_counted_and_paged_without_their_related_records,
        a_record_by_its_id_and_lines_of_json_have_related_records,
        a_batch_reads_related_records,
        many_records_stream_with_theirs,
        values_of_related_records_are_those_of_a_read,
        conditions_on_related_records_choose_records,
        two_keys_of_one_column_are_told_apart_by_their_tables,
        what_cannot_be_included_is_refused,
        relations_that_a_link_table_multiplies_are_limited,
        the_schema_lists_the_relations_by_the_names_that_include_takes,
    ],
}

const BLOG: &[&str] = &[
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(20), boss_id INT, FOREIGN KEY (boss_id) REFERENCES users (id))",
    "CREATE TABLE posts (id INT PRIMARY KEY, title VARCHAR(20), author_id INT, editorId INT, \
     FOREIGN KEY (author_id) REFERENCES users (id), FOREIGN KEY (editorId) REFERENCES users (id))",
    "CREATE TABLE comments (id INT PRIMARY KEY, post_id INT NOT NULL, user_id INT, stars INT, \
     FOREIGN KEY (post_id) REFERENCES posts (id), FOREIGN KEY (user_id) REFERENCES users (id))",
    "CREATE TABLE tags (id INT PRIMARY KEY, word VARCHAR(20))",
    "CREATE TABLE post_tags (post_id INT, tag_id INT, weight INT, PRIMARY KEY (post_id, tag_id), \
     FOREIGN KEY (post_id) REFERENCES posts (id), FOREIGN KEY (tag_id) REFERENCES tags (id))",
    "INSERT INTO users VALUES (1,'Ann',NULL), (2,'Bob',1), (3,'Cy',1)",
    "INSERT INTO posts VALUES (1,'one',1,2), (2,'two',2,NULL), (3,'three',NULL,NULL)",
    "INSERT INTO comments VALUES (1,1,2,5), (2,1,3,1), (3,1,NULL,3), (4,2,1,4)",
    "INSERT INTO tags VALUES (1,'red'), (2,'blue'), (3,'dull')",
    "INSERT INTO post_tags VALUES (1,2,9), (1,1,8), (2,1,7)",
];

/// Returns the payload of a read, in the order of `id` if the read gives no order.
async fn rows(db: &TestDb, table: &str, options: &Value) -> Value {
    let mut options = options.clone();
    options.as_object_mut().expect("options").entry("order").or_insert_with(|| json!({"field": "id"}));
    both_notations::rows(db, table, &options).await
}

/// Returns one field of each row of [`rows`].
async fn field(db: &TestDb, table: &str, options: &Value, name: &str) -> Value {
    let rows = rows(db, table, options).await;
    rows.as_array().expect("a list").iter().map(|row| row[name].clone()).collect()
}

async fn blog(host: Host) -> TestDb {
    TestDb::new(host, BLOG).await
}

async fn records_have_what_they_refer_to_and_what_refers_to_them(host: Host) {
    let db = blog(host).await;
    let expected = json!([
        {"id": 1, "author": {"id": 1, "name": "Ann", "boss_id": null}, "editor": {"id": 2, "name": "Bob", "boss_id": 1},
         "comments": [{"id": 1, "post_id": 1, "user_id": 2, "stars": 5}, {"id": 2, "post_id": 1, "user_id": 3, "stars": 1},
                      {"id": 3, "post_id": 1, "user_id": null, "stars": 3}]},
        {"id": 2, "author": {"id": 2, "name": "Bob", "boss_id": 1}, "editor": null,
         "comments": [{"id": 4, "post_id": 2, "user_id": 1, "stars": 4}]},
        {"id": 3, "author": null, "editor": null, "comments": []},
    ]);
    for include in [json!("author,editor,comments"), json!(["author", "editor", {"relation": "comments"}])] {
        let options = json!({"include": include, "selectFields": ["id"]});
        assert_eq!(rows(&db, "posts", &options).await, expected, "{include}");
    }
    let all = rows(&db, "posts", &json!({"include": "editorId", "limit": 1})).await;
    let ben = json!({"id": 2, "name": "Bob", "boss_id": 1});
    assert_eq!(all, json!([{"id": 1, "title": "one", "author_id": 1, "editorId": 2, "editor": ben}]));
    // The foreign key from comments to posts is the only one, so the table's name `posts` finds the relation.
    let posts =
        field(&db, "comments", &json!({"include": {"relation": "posts", "selectFields": "title"}}), "post").await;
    assert_eq!(posts, json!([{"title": "one"}, {"title": "one"}, {"title": "one"}, {"title": "two"}]));
}

async fn a_relation_goes_through_a_link_table_in_both_directions(host: Host) {
    let db = blog(host).await;
    let tags = json!({"include": "tags", "selectFields": "id"});
    let [red, blue] = [json!({"id": 1, "word": "red"}), json!({"id": 2, "word": "blue"})];
    assert_eq!(field(&db, "posts", &tags, "tags").await, json!([[red, blue], [red], []]));
    let posts =
        json!({"include": {"relation": "posts", "selectFields": "id", "order": {"field": "id", "strategy": "DESC"}}});
    assert_eq!(field(&db, "tags", &posts, "posts").await, json!([[{"id": 2}, {"id": 1}], [{"id": 1}], []]));
    // The link table's fields can order and filter the related records; its own records are a separate relation.
    let heavy = json!({"include": {"relation": "tags", "selectFields": "id", "limit": 1,
        "order": {"field": "post_tags.weight", "strategy": "DESC"}}});
    assert_eq!(field(&db, "posts", &heavy, "tags").await, json!([[{"id": 2}], [{"id": 1}], []]));
    let links = json!({"include": "post_tags", "selectFields": "id", "limit": 1});
    assert_eq!(field(&db, "posts", &links, "post_tags").await[0][0], json!({"post_id": 1, "tag_id": 1, "weight": 8}));
}

async fn a_table_relates_to_itself_in_both_directions(host: Host) {
    let db = blog(host).await;
    let options = json!({"include": ["boss", {"relation": "users", "as": "staff", "selectFields": "id"}],
        "selectFields": ["id"]});
    let ann = json!({"id": 1, "name": "Ann", "boss_id": null});
    let expected = json!([{"id": 1, "boss": null, "staff": [{"id": 2}, {"id": 3}]},
        {"id": 2, "boss": ann, "staff": []}, {"id": 3, "boss": ann, "staff": []}]);
    assert_eq!(rows(&db, "users", &options).await, expected);
    let bosses = json!({"query": {"boss": {"some": {"name": "Ann"}}}, "selectFields": "id"});
    assert_eq!(rows(&db, "users", &bosses).await, json!([{"id": 2}, {"id": 3}]));
    let led = json!({"query": {"users": {"some": {"users.name": "Bob"}}}, "selectFields": "id"});
    assert_eq!(rows(&db, "users", &led).await, json!([{"id": 1}]));
}

async fn composite_and_text_keys_relate_as_mariadb_compares_them(host: Host) {
    let statements = [
        "CREATE TABLE halls (code VARCHAR(9) COLLATE utf8mb4_unicode_ci PRIMARY KEY)",
        "CREATE TABLE `rows` (hall VARCHAR(9) COLLATE utf8mb4_unicode_ci, number DECIMAL(4,1), width INT, \
         PRIMARY KEY (hall, number), FOREIGN KEY (hall) REFERENCES halls (code))",
        "CREATE TABLE seats (id INT PRIMARY KEY, in_hall VARCHAR(9) COLLATE utf8mb4_unicode_ci, in_row DECIMAL(4,1), \
         CONSTRAINT stands_in FOREIGN KEY (in_hall, in_row) REFERENCES `rows` (hall, number))",
        "INSERT INTO halls VALUES ('Main'), ('side')",
        "INSERT INTO `rows` VALUES ('MAIN', 1, 4), ('main', 2.5, 5), ('Side', 1, 6)",
        "INSERT INTO seats VALUES (1,'main',1), (2,'Main',1), (3,'main',2.5), (4,NULL,1)",
    ];
    let db = TestDb::new(host, &statements).await;
    let widths = json!({"include": {"relation": "rows", "selectFields": "width"}, "order": {"field": "code"}});
    assert_eq!(field(&db, "halls", &widths, "rows").await, json!([[{"width": 4}, {"width": 5}], [{"width": 6}]]));
    let by_key = json!([{"field": "hall"}, {"field": "number"}]);
    let seats = json!({"include": {"relation": "seats", "selectFields": "id"}, "order": by_key});
    let seats = field(&db, "rows", &seats, "seats").await;
    assert_eq!(seats, json!([[{"id": 1}, {"id": 2}], [{"id": 3}], []]));
    for (direction, expected) in [("ASC", json!([[4, 5], [6]])), ("DESC", json!([[5, 4], [6]]))] {
        let order = json!({"field": "width", "strategy": direction});
        let include = json!({"include": {"relation": "rows", "selectFields": "width", "order": order}, "order": {"field": "code"}});
        let lists = field(&db, "halls", &include, "rows").await;
        let widths =
            |list: &Value| -> Value { list.as_array().unwrap().iter().map(|row| row["width"].clone()).collect() };
        assert_eq!(lists.as_array().unwrap().iter().map(widths).collect::<Value>(), expected, "{direction}");
    }
    for name in ["rows", "stands_in"] {
        let include = json!({"include": {"relation": name, "selectFields": "width"}, "selectFields": "id"});
        let found = field(&db, "seats", &include, "rows").await;
        assert_eq!(found, json!([{"width": 4}, {"width": 4}, {"width": 5}, null]), "{name}");
    }
    let halls = json!({"include": {"relation": "halls", "as": "at"}, "order": by_key});
    let halls = field(&db, "rows", &halls, "at").await;
    assert_eq!(halls, json!([{"code": "Main"}, {"code": "Main"}, {"code": "side"}]));
}

async fn includes_take_fields_conditions_order_and_limit_for_each_record(host: Host) {
    let db = blog(host).await;
    for (include, expected) in [
        (json!({"selectFields": ["id"], "order": {"field": "stars", "strategy": "DESC"}}), json!([[1, 3, 2], [4], []])),
        (json!({"order": {"field": "stars"}, "limit": 2}), json!([[2, 3], [4], []])),
        (json!({"order": {"field": "id", "strategy": "DESC"}, "limit": 1}), json!([[3], [4], []])),
        (json!({"limit": 0}), json!([[], [], []])),
        (json!({"query": {"stars": {"value": 4, "equality": ">="}}}), json!([[1], [4], []])),
        (json!({"query": {"stars": 5, "user_id": 1}, "searchOperator": "OR", "limit": 9}), json!([[1], [4], []])),
        (json!({"query": {"user": {"none": {"name": "Bob"}}}}), json!([[2, 3], [4], []])),
        (json!({"omitFields": ["stars", "post_id"], "limit": 1}), json!([[1], [4], []])),
    ] {
        let mut include = include;
        include["relation"] = json!("comments");
        let found = field(&db, "posts", &json!({"include": include}), "comments").await;
        let ids =
            |list: &Value| -> Value { list.as_array().expect("a list").iter().map(|one| one["id"].clone()).collect() };
        let found: Value = found.as_array().unwrap().iter().map(ids).collect();
        assert_eq!(found, expected, "{include}");
    }
    let twice = json!({"include": [{"relation": "comments", "as": "best", "query": {"stars": 5}, "selectFields": "id"},
        {"relation": "comments", "as": "last", "limit": 1, "order": {"field": "id", "strategy": "DESC"}, "selectFields": "id"}],
        "selectFields": "id", "limit": 1});
    assert_eq!(rows(&db, "posts", &twice).await, json!([{"id": 1, "best": [{"id": 1}], "last": [{"id": 3}]}]));
    let none = json!({"include": {"relation": "author", "query": {"name": "Ann"}, "selectFields": "id"}});
    assert_eq!(field(&db, "posts", &none, "author").await, json!([{"id": 1}, null, null]));
}

async fn includes_nest(host: Host) {
    let db = blog(host).await;
    let options = json!({"include": [{"relation": "comments", "selectFields": "id", "limit": 2,
        "include": [{"relation": "user", "selectFields": "name", "include": [{"relation": "boss", "selectFields": "name"}]}]}],
        "selectFields": "id"});
    let expected = json!([
        {"id": 1, "comments": [{"id": 1, "user": {"name": "Bob", "boss": {"name": "Ann"}}},
                               {"id": 2, "user": {"name": "Cy", "boss": {"name": "Ann"}}}]},
        {"id": 2, "comments": [{"id": 4, "user": {"name": "Ann", "boss": null}}]},
        {"id": 3, "comments": []},
    ]);
    assert_eq!(rows(&db, "posts", &options).await, expected);
    let deep = json!({"relation": "author", "include": {"relation": "posts.author_id", "include":
        {"relation": "comments", "include": {"relation": "post", "selectFields": "title"}}}});
    let found = rows(&db, "posts", &json!({"include": deep, "limit": 1})).await;
    assert_eq!(found[0]["author"]["posts"][0]["comments"][2]["post"], json!({"title": "one"}));
}

async fn parents_are_counted_and_paged_without_their_related_records(host: Host) {
    let db = blog(host).await;
    let mut options = json!({"include": "comments", "selectFields": "title", "limit": 2, "count": true,
        "order": {"field": "title"}});
    let first = ask(&db, "posts", &options).await.json();
    assert_eq!(first["count"], 3);
    let titles = |page: &Value| -> Vec<String> {
        let rows = page["payload"].as_array().expect("a list");
        rows.iter().map(|row| format!("{} {}", row["title"], row["comments"].as_array().unwrap().len())).collect()
    };
    assert_eq!(titles(&first), ["\"one\" 3", "\"three\" 0"]);
    options["after"] = first["next"].clone();
    options.as_object_mut().unwrap().remove("count");
    let second = ask(&db, "posts", &options).await.json();
    assert_eq!((titles(&second), &second["next"]), (vec!["\"two\" 1".to_owned()], &Value::Null));
    let joined = json!({"join": {"tableName": "post_tags", "match": {"source": "id", "target": "post_id"}, "selectFields": []},
        "include": "comments", "selectFields": "id"});
    assert_eq!(field(&db, "posts", &joined, "id").await, json!([1, 1, 2]));
}

async fn a_record_by_its_id_and_lines_of_json_have_related_records(host: Host) {
    let db = blog(host).await;
    let one = db.get("posts/2?include=author,comments&selectFields=title").await;
    let expected = json!({"title": "two", "author": {"id": 2, "name": "Bob", "boss_id": 1},
        "comments": [{"id": 4, "post_id": 2, "user_id": 1, "stars": 4}]});
    assert_eq!(one.payload(), expected);
    let tag = one.header("etag").expect("a record has a tag").to_owned();
    let again = db.call(Method::GET, "posts/2?include=author,comments&selectFields=title");
    assert_eq!(again.header("If-None-Match", &tag).send().await.status, 304);
    db.get("posts/9?include=author").await.refused(ErrorCode::RecordNotFound);
    assert_eq!(db.call(Method::HEAD, "posts?include=comments").send().await.status, 200);
    let lines = db
        .call(Method::GET, r#"posts?include=author&selectFields=id&order={"field":"id"}"#)
        .header("Accept", "application/x-ndjson");
    assert_eq!(
        lines.send().await.text(),
        "{\"id\":1,\"author\":{\"id\":1,\"name\":\"Ann\",\"boss_id\":null}}\n\
         {\"id\":2,\"author\":{\"id\":2,\"name\":\"Bob\",\"boss_id\":1}}\n{\"id\":3,\"author\":null}\n"
    );
    let csv = db.call(Method::GET, "posts?include=author").header("Accept", "text/csv");
    csv.send().await.refused(ErrorCode::InvalidQueryOption);
}

async fn a_batch_reads_related_records(host: Host) {
    let db = blog(host).await;
    let path = db.path("posts");
    let operations = json!([
        {"method": "POST", "path": path, "body": {"id": 4, "title": "four", "author_id": 3}},
        {"method": "GET", "path": format!("{path}/4?include=author")},
        {"method": "GET", "path": format!("{path}?include=comments&selectFields=id&limit=2&order={{\"field\":\"id\"}}")},
    ]);
    let answer = host.post("/api/v1/batch", &json!({"operations": operations})).send().await.payload();
    assert_eq!(answer[1]["author"], json!({"id": 3, "name": "Cy", "boss_id": 1}));
    assert_eq!(answer[2][1], json!({"id": 2, "comments": [{"id": 4, "post_id": 2, "user_id": 1, "stars": 4}]}));
}

async fn many_records_stream_with_theirs(host: Host) {
    let db = blog(host).await;
    // More parents than two batches of 256, and more than one UNION has SELECTs.
    db.exec("INSERT INTO posts SELECT seq, CONCAT('p', seq), 1 + seq % 3, NULL FROM seq_10_to_700").await;
    db.exec("INSERT INTO comments SELECT seq, 10 + seq % 691, 1, seq % 5 FROM seq_10_to_2000").await;
    let comments = db
        .exec("SELECT post_id, MAX(id) AS last, COUNT(*) AS n FROM comments WHERE post_id >= 10 GROUP BY post_id")
        .await;
    let options = json!({"query": {"id": {"value": 10, "equality": ">="}}, "selectFields": ["id", "author_id"],
        "include": ["comments", "author",
            {"relation": "comments", "as": "last", "limit": 1, "order": {"field": "id", "strategy": "DESC"}}]});
    let found = rows(&db, "posts", &options).await;
    let found = found.as_array().expect("a list");
    assert_eq!(found.len(), 691);
    for (row, of) in found.iter().zip(comments.as_array().expect("a list")) {
        assert_eq!(row["id"], of["post_id"]);
        assert_eq!(row["author"]["id"], row["author_id"]);
        assert_eq!(row["comments"].as_array().unwrap().len(), of["n"].as_u64().unwrap() as usize, "{row}");
        assert!(row["comments"].as_array().unwrap().iter().all(|one| one["post_id"] == row["id"]), "{row}");
        assert_eq!(row["last"][0]["id"], of["last"], "{row}");
    }
}

async fn values_of_related_records_are_those_of_a_read(host: Host) {
    let statements = [
        "CREATE TABLE boxes (id INT PRIMARY KEY)",
        "CREATE TABLE things (id INT PRIMARY KEY, box_id INT, big BIGINT UNSIGNED, price DECIMAL(20,4), f FLOAT, d DATE, \
         t DATETIME(6), j JSON, b VARBINARY(9), g POINT, e ENUM('a','b'), u UUID, bit8 BIT(8), \
         FOREIGN KEY (box_id) REFERENCES boxes (id))",
        "INSERT INTO boxes VALUES (1)",
        "INSERT INTO things VALUES (1, 1, 18446744073709551615, '0.1000', 0.1, '2020-02-29', '2020-01-01 00:00:00.5', \
         '{\"a\":\\n [1]}', x'00ff', POINT(1, 2), 'b', UUID(), b'101'), (2, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    ];
    let db = TestDb::new(host, &statements).await;
    let read = rows(&db, "things", &json!({})).await;
    for include in [json!("things"), json!({"relation": "things", "limit": 5})] {
        assert_eq!(field(&db, "boxes", &json!({"include": include}), "things").await, json!([read]), "{include}");
    }
    let line = |path: &'static str| db.call(Method::GET, path).header("Accept", "application/x-ndjson").send();
    let (things, boxes) = (line("things").await.text(), line("boxes?include=things").await.text());
    assert_eq!(boxes, format!("{{\"id\":1,\"things\":[{}]}}\n", things.trim_end().replace('\n', ",")));
}

async fn conditions_on_related_records_choose_records(host: Host) {
    let db = blog(host).await;
    for (query, expected) in [
        (json!({"comments": {"some": {"stars": 5}}}), json!([1])),
        (json!({"comments": {"some": {}}}), json!([1, 2])),
        (json!({"comments": {"none": {}}}), json!([3])),
        (json!({"comments": {"none": {"stars": {"value": 4, "equality": ">="}}}}), json!([3])),
        // "every" holds without related records; NULL meets no condition.
        (json!({"comments": {"every": {"stars": {"value": 4, "equality": ">="}}}}), json!([2, 3])),
        (json!({"comments": {"every": {"user_id": {"value": 0, "equality": ">"}}}}), json!([2, 3])),
        (json!({"comments": {"some": {}, "none": {"stars": 5}}}), json!([2])),
        (json!({"author": {"some": {"name": "Ann"}}}), json!([1])),
        (json!({"author": {"none": {"name": "Ann"}}}), json!([2, 3])),
        (json!({"tags": {"some": {"word": "red"}}}), json!([1, 2])),
        (json!({"tags": {"every": {"word": "red"}}}), json!([2, 3])),
        (json!({"comments": {"some": {"user": {"some": {"boss": {"some": {"name": "Ann"}}}}}}}), json!([1])),
        (
            json!({"x": {"__query": {"comments": {"some": {"stars": 4}}, "title": "three"}, "operator": "OR"}}),
            json!([2, 3]),
        ),
        (
            json!({"comments": {"some": {"x": {"__query": {"stars": 3, "user_id": 1}, "operator": "OR"}}}}),
            json!([1, 2]),
        ),
    ] {
        let options = json!({"query": query, "selectFields": "id", "order": {"field": "id"}});
        assert_eq!(field(&db, "posts", &options, "id").await, expected, "{query}");
    }
    // A condition on related records never repeats a row, and can be combined with joins, counts and includes.
    let options = json!({"query": {"comments": {"some": {}}}, "count": true, "limit": 1, "include": "comments",
        "join": {"tableName": "users", "alias": "related1", "match": {"source": "author_id", "target": "id"}, "selectFields": ["name"]}});
    let answer = ask(&db, "posts", &options).await.json();
    assert_eq!((&answer["count"], &answer["payload"][0]["name"]), (&json!(2), &json!("Ann")));
}

async fn two_keys_of_one_column_are_told_apart_by_their_tables(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE films (id INT PRIMARY KEY)",
            "CREATE TABLE books (id INT PRIMARY KEY)",
            "CREATE TABLE stars (id INT PRIMARY KEY, owner_id INT, FOREIGN KEY (owner_id) REFERENCES films (id), \
             FOREIGN KEY (owner_id) REFERENCES books (id))",
            "INSERT INTO films VALUES (1)",
            "INSERT INTO books VALUES (1)",
            "INSERT INTO stars VALUES (5, 1)",
        ],
    )
    .await;
    let schema = db.get("stars/_schema").await.payload();
    let names: Vec<_> = schema["relations"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["films", "books"]);
    let include = json!({"include": [{"relation": "films"}, {"relation": "books", "as": "book"}]});
    let expected = json!([{"id": 5, "owner_id": 1, "owner": {"id": 1}, "book": {"id": 1}}]);
    assert_eq!(rows(&db, "stars", &include).await, expected);
    let answer = ask(&db, "stars", &json!({"include": "owner"})).await;
    let error = answer.refused(ErrorCode::AmbiguousRelation);
    assert_eq!(error["hint"], "Use one of films, books.");
}

/// Each two foreign keys that form the primary key of a link table are a relation.
async fn relations_that_a_link_table_multiplies_are_limited(host: Host) {
    let keys = |column: &str| {
        let key = |n| format!("CONSTRAINT {column}{n} FOREIGN KEY ({column}) REFERENCES nodes (id)");
        (0..300).map(key).collect::<Vec<_>>().join(", ")
    };
    let links = format!("CREATE TABLE links (a INT, b INT, PRIMARY KEY (a, b), KEY (b), {}, {})", keys("a"), keys("b"));
    let db = TestDb::new(host, &["CREATE TABLE nodes (id INT PRIMARY KEY)", &links]).await;
    let answer = db.get("nodes?include=links").await;
    let error = answer.refused(ErrorCode::SqlError);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("all relations by foreign keys") && message.contains("32 MiB"), "{message}");
    assert_eq!(db.get("nodes").await.payload(), json!([]));
}

async fn what_cannot_be_included_is_refused(host: Host) {
    use ErrorCode::{AmbiguousRelation, InvalidFilter, InvalidQueryOption, UnknownField};
    let db = blog(host).await;
    let named = |relation: &str, more: Value| {
        let mut include = json!({"relation": relation});
        include.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"include": include})
    };
    let deep = json!({"relation": "comments", "include": {"relation": "post", "include": {"relation": "comments",
        "include": {"relation": "post", "include": "comments"}}}});
    for (table, options, code, said) in [
        ("posts", json!({"include": "comment"}), InvalidQueryOption, &["comment", "comments"][..]),
        ("posts", json!({"include": "nonsense"}), InvalidQueryOption, &["author, editor, comments"]),
        ("posts", json!({"include": "users"}), AmbiguousRelation, &["author", "editor"]),
        ("users", json!({"include": "posts"}), AmbiguousRelation, &["posts.author_id", "posts.editorId"]),
        ("users", json!({"query": {"posts": {"some": {}}}}), AmbiguousRelation, &["posts.author_id"]),
        ("posts", json!({"include": "comments,comments"}), InvalidQueryOption, &["comments", "as"]),
        ("posts", named("author", json!({"as": "title"})), InvalidQueryOption, &["title"]),
        ("posts", named("author", json!({"limit": 1})), InvalidQueryOption, &["author", "limit"]),
        ("posts", named("comments", json!({"limit": -1})), InvalidQueryOption, &["include.limit"]),
        ("posts", named("comments", json!({"page": 1})), InvalidQueryOption, &["page"]),
        ("posts", named("comments", json!({"selectFields": "nope"})), UnknownField, &["nope"]),
        ("posts", named("comments", json!({"order": {"field": "nope"}})), UnknownField, &["nope"]),
        ("posts", named("comments", json!({"query": {"nope": 1}})), UnknownField, &["nope"]),
        (
            "posts",
            named("comments", json!({"selectFields": [{"fieldName": "id", "aggregate": "MAX"}]})),
            InvalidQueryOption,
            &["aggregate"],
        ),
        ("posts", json!({"include": {"as": "x"}}), InvalidQueryOption, &["relation"]),
        ("posts", json!({"include": [5]}), InvalidQueryOption, &["include"]),
        ("posts", json!({"include": deep}), InvalidQueryOption, &["4 levels"]),
        ("posts", json!({"include": vec!["author"; 9]}), InvalidQueryOption, &["8 relations"]),
        ("posts", json!({"include": "author", "distinct": true}), InvalidQueryOption, &["distinct"]),
        (
            "posts",
            json!({"include": "author", "selectFields": [{"fieldName": "id", "aggregate": "SUM"}]}),
            InvalidQueryOption,
            &["aggregates"],
        ),
        ("posts", json!({"include": "author", "group": "title"}), InvalidQueryOption, &["group"]),
        ("posts", json!({"query": {"nope": {"some": {}}}}), UnknownField, &["nope"]),
        ("posts", json!({"query": {"comments": {"some": 5}}}), InvalidFilter, &["some", "comments"]),
        ("posts", json!({"query": {"comments": {"some": {}, "value": 5}}}), InvalidFilter, &["value"]),
        ("posts", json!({"query": {"comments": {"some": {"nope": 5}}}}), UnknownField, &["nope"]),
    ] {
        refused(&db, table, &options, code, said).await;
    }
    let many: serde_json::Map<String, Value> =
        (0..9).map(|at| (format!("g{at}"), json!({"__query": {"comments": {"some": {}}}}))).collect();
    refused(&db, "posts", &json!({"query": many}), InvalidFilter, &["8 conditions"]).await;
}

async fn the_schema_lists_the_relations_by_the_names_that_include_takes(host: Host) {
    let db = blog(host).await;
    let relations = db.get("posts/_schema").await.payload()["relations"].take();
    let one = |name: &str, field: &str| json!({"name": name, "kind": "one", "table": "users", "fields": [field], "references": ["id"]});
    let many = |name: &str, field: &str| json!({"name": name, "kind": "many", "table": name, "fields": ["id"], "references": [field]});
    let tags = json!({"name": "tags", "kind": "many", "table": "tags", "fields": ["id"], "references": ["post_id"],
        "through": "post_tags"});
    let expected = json!([
        one("author", "author_id"),
        one("editor", "editorId"),
        many("comments", "post_id"),
        many("post_tags", "post_id"),
        tags
    ]);
    assert_eq!(relations, expected);
    for table in ["users", "posts", "comments", "tags", "post_tags"] {
        let schema = db.get(&format!("{table}/_schema")).await.payload();
        for relation in schema["relations"].as_array().expect("a list") {
            let include = json!({"include": {"relation": relation["name"], "as": "zq_related"}});
            assert_eq!(ask(&db, table, &include).await.status, 200, "{table} {relation}");
        }
    }
}
