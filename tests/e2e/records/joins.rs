//! Joins: their rows, the names of their fields, and refusals.

use super::both_notations::{SHOP, ask, field, refused, rows};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        sixteen_joins_are_taken,
        an_inner_join_keeps_what_matches,
        a_left_join_keeps_every_root_record,
        a_right_join_keeps_every_joined_record,
        a_match_list_is_joined_by_its_operator,
        a_literal_is_compared_like_a_condition,
        a_join_may_match_on_an_earlier_one,
        a_table_joins_itself_under_an_alias,
        a_view_joins_and_is_joined,
        a_taken_name_gets_the_alias_or_table_in_front,
        a_joined_table_is_cut_down_by_its_own_lists,
        an_empty_list_of_fields_joins_without_showing,
        conditions_reach_joined_tables,
        orders_reach_joined_fields,
        a_single_record_takes_joins,
        joins_multiply_rows_and_limits_count_rows,
    ],
}

pub(super) fn author(kind: &str) -> Value {
    json!({"tableName": "authors", "joinType": kind, "match": {"source": "author_id", "target": "id"}})
}

pub(super) fn with(mut join: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    join.as_object_mut().expect("an object").extend(more);
    join
}

pub(super) fn by_id() -> Value {
    json!({"field": "id"})
}

async fn an_inner_join_keeps_what_matches(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for kind in ["INNER JOIN", "JOIN", "inner join", "Join"] {
        let options = json!({"join": [author(kind)], "order": by_id(), "omitFields": ["price", "editor_id"]});
        let answer = ask(&db, "books", &options).await;
        assert_eq!(answer.payload().as_array().unwrap().len(), 4, "{kind}");
        assert!(
            answer.text().contains(
                r#"[{"id":1,"title":"Engines","author_id":1,"year":1850,"authors_id":1,"name":"Ada","country":"UK"}"#
            ),
            "{kind}: {answer}"
        );
    }
}

async fn a_left_join_keeps_every_root_record(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"join": [author("LEFT JOIN")], "order": by_id(), "selectFields": ["id"]});
    let got = rows(&db, "books", &options).await;
    assert_eq!(got.as_array().unwrap().len(), 5);
    assert_eq!(got[3], json!({"id": 4, "authors_id": null, "name": null, "country": null}));
}

async fn a_right_join_keeps_every_joined_record(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"join": [with(author("RIGHT JOIN"), json!({"selectFields": ["name"]}))],
        "selectFields": ["id", "title"], "order": [{"field": "name"}, {"field": "id"}]});
    let got = rows(&db, "books", &options).await;
    assert_eq!(
        got,
        json!([
            {"id": 1, "title": "Engines", "name": "Ada"}, {"id": 2, "title": "Snow", "name": "Bo"},
            {"id": 3, "title": "More snow", "name": "Bo"}, {"id": 5, "title": "Lists", "name": "Cy"},
            {"id": null, "title": null, "name": "Dee"},
        ])
    );
}

async fn a_match_list_is_joined_by_its_operator(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let matches = json!([{"source": "author_id", "target": "id"}, {"source": "editor_id", "target": "id"}]);
    for (operator, expected) in [
        (json!({}), json!([[2, "Bo"]])),
        (json!({"operator": "AND"}), json!([[2, "Bo"]])),
        (
            json!({"operator": "or"}),
            json!([[1, "Ada"], [1, "Bo"], [2, "Bo"], [3, "Ada"], [3, "Bo"], [5, "Cy"], [5, "Dee"]]),
        ),
    ] {
        let join = with(author("JOIN"), json!({"match": matches, "selectFields": ["name"]}));
        let options = json!({"join": [with(join, operator)], "selectFields": ["id"], "order": [{"field": "id"}, {"field": "name"}]});
        let got = rows(&db, "books", &options).await;
        let pairs: Value = got.as_array().unwrap().iter().map(|row| json!([row["id"], row["name"]])).collect();
        assert_eq!(pairs, expected);
    }
    // An OR between matches stays within ON: the conditions of `query` still apply.
    let join = with(author("JOIN"), json!({"match": matches, "operator": "OR", "selectFields": []}));
    let options = json!({"join": [join], "selectFields": ["id"], "query": {"id": 5}});
    assert_eq!(rows(&db, "books", &options).await, json!([{"id": 5}, {"id": 5}]));
}

async fn a_literal_is_compared_like_a_condition(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for (field_name, literal, expected) in [
        ("country", json!("UK"), json!([1])),
        ("country", json!(null), json!([5])),
        ("country", json!(["SE", "UK"]), json!([1, 2, 3])),
        ("id", json!(3), json!([5])),
        ("id", json!("3"), json!([5])),
        ("id", json!([1, 3]), json!([1, 5])),
    ] {
        let join = with(
            author("JOIN"),
            json!({"match": [
            {"source": "author_id", "target": "id"}, {"source": null, "target": field_name, "targetLiteral": literal}]}),
        );
        // A match has the form {source, target} or {source, targetLiteral}.
        drop(join);
        let join = json!({"tableName": "books", "joinType": "JOIN", "selectFields": ["id"], "match": [
            {"source": "id", "target": "author_id"}, {"source": field_name, "targetLiteral": literal}]});
        let options = json!({"join": [join], "selectFields": ["name"], "order": {"field": "books.id"}});
        let got = field(&db, "authors", &options, "id").await;
        assert_eq!(got, expected, "{field_name} {literal}");
    }
    // If a literal has a type that the field can't have, the error names the field.
    let join = json!({"tableName": "books", "joinType": "JOIN", "match": [
        {"source": "id", "target": "author_id"}, {"source": "id", "targetLiteral": "x"}]});
    let answer = ask(&db, "authors", &json!({"join": [join]})).await;
    assert!(["invalid_value", "invalid_query_option", "invalid_filter"].contains(&answer.code().as_str()), "{answer}");
    assert!(answer.text().contains("id"), "{answer}");
}

async fn a_join_may_match_on_an_earlier_one(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let books = json!({"tableName": "books", "joinType": "LEFT JOIN", "match": {"source": "book_id", "target": "id"}, "selectFields": ["title"]});
    let authors = json!({"tableName": "authors", "alias": "a", "joinType": "LEFT JOIN", "selectFields": ["name"],
        "match": {"source": {"tableName": "books", "fieldName": "author_id"}, "target": "id"}});
    let options = json!({"join": [books, authors], "selectFields": ["id"], "order": by_id()});
    assert_eq!(
        rows(&db, "reviews", &options).await,
        json!([
            {"id": 1, "title": "Engines", "name": "Ada"}, {"id": 2, "title": "Engines", "name": "Ada"},
            {"id": 3, "title": "Snow", "name": "Bo"}, {"id": 4, "title": "More snow", "name": "Bo"},
            {"id": 5, "title": null, "name": null},
        ])
    );
    // With the joins in the other order, the match refers to a table that is joined later.
    let options = json!({"join": [authors, books]});
    refused(&db, "reviews", &options, ErrorCode::InvalidQueryOption, &["join", "books"]).await;
}

async fn a_table_joins_itself_under_an_alias(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let boss = json!({"tableName": "staff", "alias": "boss", "joinType": "LEFT JOIN", "match": {"source": "boss_id", "target": "id"}, "selectFields": ["name"]});
    let options = json!({"join": [boss], "order": by_id(), "selectFields": ["name"]});
    assert_eq!(
        rows(&db, "staff", &options).await,
        json!([{"name": "Ann", "boss_name": null}, {"name": "Ben", "boss_name": "Ann"},
            {"name": "Cat", "boss_name": "Ann"}, {"name": "Dan", "boss_name": "Ben"}])
    );
    let twice = json!({"join": [with(boss.clone(), json!({"alias": null}))]});
    let answer = ask(&db, "staff", &twice).await;
    assert_eq!(answer.code(), "invalid_query_option", "{answer}");
    let mut unnamed = boss.clone();
    unnamed.as_object_mut().unwrap().remove("alias");
    refused(&db, "staff", &json!({"join": [unnamed]}), ErrorCode::InvalidQueryOption, &["staff", "alias"]).await;
    refused(&db, "staff", &json!({"join": [boss, boss]}), ErrorCode::InvalidQueryOption, &["boss", "alias"]).await;
    // Three levels of the same table: the boss's boss.
    let top = json!({"tableName": "staff", "alias": "top", "joinType": "JOIN", "selectFields": ["name"],
        "match": {"source": {"tableName": "boss", "fieldName": "boss_id"}, "target": "id"}});
    let options = json!({"join": [boss, top], "selectFields": ["name"]});
    assert_eq!(rows(&db, "staff", &options).await, json!([{"name": "Dan", "boss_name": "Ben", "top_name": "Ann"}]));
}

async fn a_view_joins_and_is_joined(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let reviews = json!({"tableName": "reviews", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "book_id"}, "selectFields": ["stars"]});
    let options = json!({"join": [reviews], "order": by_id()});
    assert_eq!(
        rows(&db, "modern", &options).await,
        json!([{"id": 2, "title": "Snow", "stars": 4}, {"id": 3, "title": "More snow", "stars": null}, {"id": 5, "title": "Lists", "stars": null}])
    );
    let view = json!({"tableName": "modern", "joinType": "LEFT JOIN", "match": {"source": "book_id", "target": "id"}, "nest": true});
    let options = json!({"join": [view], "order": by_id(), "selectFields": ["id"]});
    let got = rows(&db, "reviews", &options).await;
    assert_eq!(got[0], json!({"id": 1, "modern": null}));
    assert_eq!(got[2], json!({"id": 3, "modern": {"id": 2, "title": "Snow"}}));
}

async fn a_taken_name_gets_the_alias_or_table_in_front(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let a = with(author("JOIN"), json!({"alias": "w"}));
    let options =
        json!({"join": [a], "query": {"id": 1}, "selectFields": ["id", {"fieldName": "title", "alias": "name"}]});
    let answer = ask(&db, "books", &options).await;
    let row = r#"[{"id":1,"name":"Engines","w_id":1,"w_name":"Ada","country":"UK"}]"#;
    assert!(answer.text().contains(row), "{answer}");
    // Even if the prefixed name is taken too, no field is lost and no key occurs twice.
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE r (id INT PRIMARY KEY, j_id INT, x INT)",
            "CREATE TABLE j (id INT PRIMARY KEY, x INT)",
            "INSERT INTO r VALUES (1, 10, 5)",
            "INSERT INTO j VALUES (10, 7)",
        ],
    )
    .await;
    let join = json!({"tableName": "j", "joinType": "JOIN", "match": {"source": "j_id", "target": "id"}});
    let answer = ask(&db, "r", &json!({"join": [join]})).await;
    match answer.code().as_str() {
        "ok" => assert_eq!(answer.payload()[0].as_object().unwrap().len(), 5, "{answer}"),
        code => {
            assert_eq!(code, "invalid_query_option", "{answer}");
            assert!(answer.text().contains("j_id"), "{answer}");
        }
    }
    let nested = with(join, json!({"nest": true}));
    assert_eq!(
        rows(&db, "r", &json!({"join": [nested]})).await,
        json!([{"id": 1, "j_id": 10, "x": 5, "j": {"id": 10, "x": 7}}])
    );
}

async fn a_joined_table_is_cut_down_by_its_own_lists(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"query": {"id": 1}, "selectFields": ["id"]});
    for (more, expected) in [
        (json!({"selectFields": ["name"]}), json!({"id": 1, "name": "Ada"})),
        (json!({"selectFields": "name,country"}), json!({"id": 1, "name": "Ada", "country": "UK"})),
        (json!({"selectFields": [{"fieldName": "name", "alias": "author"}]}), json!({"id": 1, "author": "Ada"})),
        (json!({"omitFields": ["id", "country"]}), json!({"id": 1, "name": "Ada"})),
        (
            json!({"selectFields": [{"fieldName": "id", "alias": "n"}], "nest": true}),
            json!({"id": 1, "authors": {"n": 1}}),
        ),
    ] {
        let options = with(base.clone(), json!({"join": [with(author("JOIN"), more.clone())]}));
        let answer = ask(&db, "books", &options).await;
        assert_eq!(answer.payload(), json!([expected]));
    }
    let both = with(author("JOIN"), json!({"selectFields": ["id"], "omitFields": ["name"]}));
    refused(&db, "books", &json!({"join": [both]}), ErrorCode::InvalidQueryOption, &["selectFields", "omitFields"])
        .await;
}

async fn an_empty_list_of_fields_joins_without_showing(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join = with(author("JOIN"), json!({"selectFields": []}));
    let options = json!({"join": [join], "selectFields": ["id"], "order": by_id()});
    assert_eq!(rows(&db, "books", &options).await, json!([{"id": 1}, {"id": 2}, {"id": 3}, {"id": 5}]));
    let join = with(author("LEFT JOIN"), json!({"selectFields": [], "nest": true}));
    let options = json!({"join": [join], "selectFields": ["id"], "order": by_id(), "query": {"id": [3, 4]}});
    assert_eq!(rows(&db, "books", &options).await, json!([{"id": 3, "authors": {}}, {"id": 4, "authors": null}]));
}

async fn conditions_reach_joined_tables(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"join": [author("LEFT JOIN")], "selectFields": ["id"], "order": by_id()});
    for (query, expected) in [
        (json!({"name": {"value": "Bo", "tableName": "authors"}}), json!([2, 3])),
        (json!({"x": {"value": "Bo", "tableName": "authors", "fieldName": "name"}}), json!([2, 3])),
        (json!({"authors.name": "Bo"}), json!([2, 3])),
        (json!({"authors.country": null}), json!([4, 5])),
        (json!({"authors.country": {"value": null, "equality": "!="}}), json!([1, 2, 3])),
        (json!({"authors.id": [1, 3]}), json!([1, 5])),
        (json!({"books.id": 1}), json!([1])),
        (json!({"authors.id": {"value": 1, "not": true}}), json!([2, 3, 5])),
        (json!({"g": {"__query": {"authors.name": "Bo", "year": 1850}, "operator": "OR"}}), json!([1, 2, 3])),
        (
            json!({"a": {"fieldName": "id", "tableName": "authors", "value": 1, "equality": ">="}, "b": {"fieldName": "id", "value": 3, "equality": "<"}}),
            json!([1, 2]),
        ),
    ] {
        let options = with(base.clone(), json!({"query": query}));
        assert_eq!(field(&db, "books", &options, "id").await, expected, "{query}");
    }
    for (query, code, names) in [
        (json!({"nope.name": "Bo"}), ErrorCode::UnknownField, vec!["nope"]),
        (json!({"authors.nme": "Bo"}), ErrorCode::UnknownField, vec!["nme", "name"]),
        (json!({"name": {"value": "Bo", "tableName": "nope"}}), ErrorCode::InvalidFilter, vec!["nope"]),
    ] {
        let options = with(base.clone(), json!({"query": query}));
        let answer = ask(&db, "books", &options).await;
        assert!(
            [code.as_str(), "invalid_filter", "unknown_field", "invalid_query_option", "table_not_found"]
                .contains(&answer.code().as_str()),
            "{answer}"
        );
        for name in names {
            assert!(answer.text().contains(name), "{name}: {answer}");
        }
    }
}

async fn orders_reach_joined_fields(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let base = json!({"join": [with(author("JOIN"), json!({"selectFields": [{"fieldName": "name", "alias": "author"}]}))], "selectFields": ["id"]});
    for order in [
        json!([{"field": "authors.name", "strategy": "DESC"}, {"field": "books.id"}]),
        json!([{"field": "author", "strategy": "desc"}, {"field": "id"}]),
        json!([{"field": "name", "strategy": "DESC"}, {"field": "id"}]),
    ] {
        let options = with(base.clone(), json!({"order": order}));
        assert_eq!(field(&db, "books", &options, "id").await, json!([5, 2, 3, 1]), "{order}");
    }
    // A name that no table has is an unknown field, even with several joined tables.
    let joins =
        json!([author("JOIN"), {"tableName": "staff", "joinType": "JOIN", "match": {"source": "id", "target": "id"}}]);
    refused(&db, "books", &json!({"join": joins, "order": {"field": "nme"}}), ErrorCode::UnknownField, &["nme"]).await;
}

async fn a_single_record_takes_joins(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join = with(author("JOIN"), json!({"nest": true, "selectFields": ["name"]}));
    let options = json!({"join": [join], "selectFields": ["title"]});
    let rest = super::both_notations::spelled("books", &options);
    let rest = rest.replacen("books?", "books/2?", 1);
    assert_eq!(db.get(&rest).await.payload(), json!({"title": "Snow", "authors": {"name": "Bo"}}));
    let rest = rest.replacen("books/2?", "books/4?", 1);
    db.get(&rest).await.refused(ErrorCode::RecordNotFound);
}

async fn joins_multiply_rows_and_limits_count_rows(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join = json!({"tableName": "reviews", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "book_id"}, "selectFields": ["stars"]});
    let options = json!({"join": [join], "selectFields": ["id"], "order": [{"field": "id"}, {"field": "reviews.id"}], "limit": 3, "count": true});
    let answer = ask(&db, "books", &options).await;
    assert_eq!(answer.json()["count"], 6, "{answer}");
    assert_eq!(answer.payload(), json!([{"id": 1, "stars": 5}, {"id": 1, "stars": 3}, {"id": 2, "stars": 4}]));
}

async fn sixteen_joins_are_taken(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"join": chain(16), "selectFields": ["id"], "order": by_id()});
    assert_eq!(field(&db, "books", &options, "id").await, json!([1, 2, 3, 4, 5]));
}

fn chain(count: usize) -> Value {
    (0..count).map(|n| with(author("LEFT JOIN"), json!({"alias": format!("a{n}"), "selectFields": []}))).collect()
}
