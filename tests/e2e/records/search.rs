//! `fullTextSearch`: the records found in each mode, their scores, their order, and a search without an index.

use super::both_notations::{ask, field, refused, rows};
use crate::host::Host;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_search_finds_in_each_mode,
        a_score_comes_under_its_alias,
        the_best_comes_first_unless_ordered,
        a_search_goes_with_other_options,
        a_search_goes_with_joins,
        a_search_without_an_index_says_what_to_do,
        a_search_without_an_index_is_refused_as_often_as_it_comes,
        a_condition_may_match,
        odd_search_terms_are_no_fault,
        what_is_no_boolean_search_is_named,
        a_search_pages_by_its_score,
    ],
}

const NOTES: &[&str] = &[
    "CREATE TABLE notes (id INT PRIMARY KEY, title VARCHAR(80), body TEXT, plain TEXT, owner INT, FULLTEXT KEY tb (title, body), FULLTEXT KEY b (body))",
    "INSERT INTO notes VALUES (1,'database tutorial','a database stores rows','x',1), (2,'how to cook','boil water and wait','x',1), \
     (3,'database tuning','indexes make a database fast; database again','x',2), (4,'security','rows need guards','x',2), \
     (5,'mariadb','a fork of another database engine','x',NULL), (6, NULL, NULL, NULL, NULL)",
    "CREATE TABLE owners (id INT PRIMARY KEY, name VARCHAR(20), bio TEXT, FULLTEXT KEY (bio))",
    "INSERT INTO owners VALUES (1,'Ann','likes database work'), (2,'Ben','likes gardens')",
];

fn search(term: &str, more: Value) -> Value {
    let mut search = json!({"fields": ["title", "body"], "searchTerm": term});
    search.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    search
}

async fn a_search_finds_in_each_mode(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    for (more, term, expected) in [
        (json!({}), "database", json!([1, 3, 5])),
        (json!({"mode": "natural"}), "database", json!([1, 3, 5])),
        (json!({"mode": "boolean"}), "+database -tuning", json!([1, 5])),
        (json!({"mode": "BOOLEAN"}), "\"boil water\"", json!([2])),
        (json!({"mode": "boolean"}), "data*", json!([1, 3, 5])),
        (json!({}), "nothinglikeit", json!([])),
    ] {
        let options = json!({"fullTextSearch": search(term, more.clone()), "order": {"field": "id"}});
        assert_eq!(field(&db, "notes", &options, "id").await, expected, "{term} {more}");
    }
    let options = json!({"fullTextSearch": search("tuning", json!({"mode": "expansion"})), "order": {"field": "id"}});
    let got = field(&db, "notes", &options, "id").await;
    assert!(got.as_array().unwrap().len() > 1 && got.as_array().unwrap().contains(&json!(3)), "{got}");
    // Fields in another order use the same index.
    let options = json!({"fullTextSearch": {"fields": ["body", "title"], "searchTerm": "cook"}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([2]));
    let options = json!({"fullTextSearch": {"fields": ["body"], "searchTerm": "cook"}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([]));
    let options = json!({"fullTextSearch": {"fields": "title,body", "searchTerm": "cook"}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([2]));
}

async fn a_score_comes_under_its_alias(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let options = json!({"fullTextSearch": search("database", json!({"scoreAlias": "score"})), "selectFields": ["id"]});
    let got = rows(&db, "notes", &options).await;
    for row in got.as_array().unwrap() {
        assert_eq!(row.as_object().unwrap().len(), 2, "{row}");
        assert!(row["score"].as_f64().unwrap() > 0.0, "{row}");
    }
    assert_eq!(got[0]["id"], 3, "{got}");
    let options = json!({"fullTextSearch": search("database", json!({"scoreAlias": "score"})), "order": {"field": "score"}, "selectFields": ["id"]});
    let got = rows(&db, "notes", &options).await;
    assert_eq!(got[2]["id"], 3, "{got}");
    let options = json!({"fullTextSearch": search("database", json!({})), "selectFields": ["id"]});
    assert_eq!(rows(&db, "notes", &options).await[0], json!({"id": 3}));
    // A score with the name of a field would hide the field.
    let options = json!({"fullTextSearch": search("database", json!({"scoreAlias": "title"}))});
    refused(&db, "notes", &options, ErrorCode::InvalidQueryOption, &["scoreAlias", "title"]).await;
}

async fn the_best_comes_first_unless_ordered(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let options = json!({"fullTextSearch": search("database rows", json!({"scoreAlias": "s"}))});
    let got = rows(&db, "notes", &options).await;
    let scores: Vec<f64> = got.as_array().unwrap().iter().map(|row| row["s"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    let options =
        json!({"fullTextSearch": search("database", json!({})), "order": {"field": "id", "strategy": "DESC"}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([5, 3, 1]));
}

async fn a_search_goes_with_other_options(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let base = search("database", json!({"scoreAlias": "s"}));
    let options = json!({"fullTextSearch": base, "limit": 1, "count": true});
    let answer = ask(&db, "notes", &options).await;
    assert_eq!((answer.json()["count"].clone(), answer.payload()[0]["id"].clone()), (json!(3), json!(3)), "{answer}");
    let options = json!({"fullTextSearch": base, "query": {"owner": 1}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([1]));
    // OR joins only the conditions of `query`; a record must also match the search.
    let options = json!({"fullTextSearch": base, "query": {"id": 1, "owner": 1}, "searchOperator": "OR"});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([1]));
    let options = json!({"fullTextSearch": search("database", json!({})), "group": "owner", "order": {"field": "owner"},
        "selectFields": ["owner", {"fieldName": "id", "aggregate": "COUNT", "alias": "n"}]});
    assert_eq!(
        rows(&db, "notes", &options).await,
        json!([{"owner": null, "n": 1}, {"owner": 1, "n": 1}, {"owner": 2, "n": 1}])
    );
    let options = json!({"fullTextSearch": search("database", json!({})), "selectFields": [{"fieldName": "id", "aggregate": "COUNT", "alias": "n"}]});
    assert_eq!(rows(&db, "notes", &options).await, json!([{"n": 3}]));
    let options = json!({"fullTextSearch": search("database", json!({})), "distinct": true, "selectFields": ["owner"], "order": {"field": "owner"}});
    assert_eq!(rows(&db, "notes", &options).await, json!([{"owner": null}, {"owner": 1}, {"owner": 2}]));
    let options = json!({"fullTextSearch": search("database", json!({})), "distinct": true, "selectFields": ["owner"]});
    assert_eq!(rows(&db, "notes", &options).await.as_array().unwrap().len(), 3);
    let options = json!({"fullTextSearch": search("database", json!({})), "limit": 0});
    assert_eq!(rows(&db, "notes", &options).await, json!([]));
}

async fn a_search_goes_with_joins(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    for kind in ["JOIN", "LEFT JOIN"] {
        let join = json!({"tableName": "owners", "joinType": kind, "match": {"source": "owner", "target": "id"}, "selectFields": ["name"]});
        let options = json!({"fullTextSearch": search("database", json!({})), "join": [join], "selectFields": ["id"], "order": {"field": "id"}});
        let got = rows(&db, "notes", &options).await;
        assert_eq!(got[0], json!({"id": 1, "name": "Ann"}), "{kind}");
        let count = if kind == "JOIN" { 2 } else { 3 };
        assert_eq!(got.as_array().unwrap().len(), count, "{kind}");
    }
}

async fn a_search_without_an_index_says_what_to_do(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    for fields in [json!(["plain"]), json!(["title"]), json!(["title", "body", "plain"])] {
        let options = json!({"fullTextSearch": {"fields": fields, "searchTerm": "x"}});
        refused(&db, "notes", &options, ErrorCode::FulltextIndexMissing, &["FULLTEXT"]).await;
        let error = ask(&db, "notes", &options).await.refused(ErrorCode::FulltextIndexMissing);
        let hint = error["hint"].as_str().expect("a hint");
        for name in fields.as_array().unwrap() {
            assert!(hint.contains(name.as_str().unwrap()), "{hint}");
        }
        assert!(hint.contains("notes"), "{hint}");
    }
}

async fn a_condition_may_match(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    for equality in ["MATCH", "match", "FULLTEXT"] {
        let options = json!({"query": {"body": {"value": "database", "equality": equality}}, "order": {"field": "id"}});
        assert_eq!(field(&db, "notes", &options, "id").await, json!([1, 3, 5]), "{equality}");
    }
    let options =
        json!({"query": {"body": {"value": "+database -fork", "equality": "MATCH_BOOLEAN"}}, "order": {"field": "id"}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([1, 3]));
    let options =
        json!({"query": {"body": {"value": "database", "equality": "MATCH", "not": true}}, "order": {"field": "id"}});
    let got = field(&db, "notes", &options, "id").await;
    assert_eq!(got, json!([2, 4, 6]));
    let options = json!({"query": {"plain": {"value": "x", "equality": "MATCH"}}});
    refused(&db, "notes", &options, ErrorCode::FulltextIndexMissing, &["plain"]).await;
    let options = json!({"query": {"owner": {"value": "x", "equality": "MATCH"}}});
    let answer = ask(&db, "notes", &options).await;
    answer.refused(ErrorCode::InvalidFilter);
    // The search may be on a joined table.
    let join = json!({"tableName": "owners", "joinType": "JOIN", "match": {"source": "owner", "target": "id"}, "selectFields": []});
    let options = json!({"join": [join], "query": {"owners.bio": {"value": "gardens", "equality": "MATCH"}}, "order": {"field": "id"}});
    assert_eq!(field(&db, "notes", &options, "id").await, json!([3, 4]));
}

async fn odd_search_terms_are_no_fault(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let long = "word ".repeat(2000);
    for term in ["", " "] {
        let options = json!({"fullTextSearch": search(term, json!({"scoreAlias": "s"}))});
        let answer = db.post("notes/query", &options).await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
    for term in ["'", "\\", "%", "`", "the", "数据库", "a\u{0}b", "\u{10FFFF}", long.as_str()] {
        let options = json!({"fullTextSearch": search(term, json!({"scoreAlias": "s"}))});
        let answer = db.post("notes/query", &options).await;
        assert_eq!(answer.payload(), json!([]), "{term}");
    }
}

/// An invalid boolean search is the client's error. MariaDB doesn't say which search is invalid, so the answer must.
async fn what_is_no_boolean_search_is_named(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    for term in ["+", "(", "+*", "@", "((((", "+-x", "**", "<>~", "(a"] {
        let option = json!({"fullTextSearch": search(term, json!({"mode": "boolean"}))});
        let names = ["fullTextSearch", "boolean search"];
        refused(&db, "notes", &option, ErrorCode::InvalidQueryOption, &names).await;
        let condition = json!({"value": term, "equality": "MATCH_BOOLEAN"});
        let filter = json!({"query": {"body": condition}});
        let names = ["body", "boolean search"];
        refused(&db, "notes", &filter, ErrorCode::InvalidFilter, &names).await;
        let delete = json!({"deleteKeyValues": [{"key": "body", "value": term, "operator": "MATCH_BOOLEAN"}]});
        let answer = db.call(Method::DELETE, "notes").json(&delete).send().await;
        let error = answer.refused(ErrorCode::InvalidFilter);
        assert!(error["message"].to_string().contains("body"), "{answer}");
        let operation = json!({"method": "DELETE", "path": db.path("notes"), "body": delete});
        let batch = json!({"operations": [operation]});
        let answer = host.call(Method::POST, "/api/v1/batch").json(&batch).send().await;
        let error = answer.refused(ErrorCode::InvalidFilter);
        assert!(error["message"].to_string().contains("body"), "{answer}");
    }
}

async fn a_search_pages_by_its_score(host: Host) {
    let db = TestDb::new(host, NOTES).await;
    let mut options = json!({"fullTextSearch": search("database rows", json!({"scoreAlias": "s"})), "limit": 1});
    let mut seen = Vec::new();
    for _ in 0..9 {
        let answer = ask(&db, "notes", &options).await;
        seen.extend(answer.payload().as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()));
        let next = answer.json()["next"].clone();
        if !next.is_string() {
            break;
        }
        options["after"] = next;
    }
    let whole = json!({"fullTextSearch": search("database rows", json!({"scoreAlias": "s"}))});
    let whole = field(&db, "notes", &whole, "id").await;
    assert_eq!(json!(seen), whole);
}

/// MariaDB would crash if it executed the prepared statement again.
async fn a_search_without_an_index_is_refused_as_often_as_it_comes(host: Host) {
    let tables = [
        "CREATE TABLE posts (id INT PRIMARY KEY, body TEXT)",
        "CREATE TABLE comments (id INT PRIMARY KEY, post_id INT, body TEXT, FOREIGN KEY (post_id) REFERENCES posts (id))",
        "INSERT INTO posts VALUES (1, 'a')",
        "INSERT INTO comments VALUES (1, 1, 'b')",
    ];
    let db = TestDb::new(host, &tables).await;
    for options in [
        json!({"query": {"comments": {"some": {"body": {"match": "x"}}}}}),
        json!({"query": {"comments": {"some": {"id": 1}}, "body": {"match": "x"}}}),
    ] {
        // Each connection of the pool has its own prepared statements.
        for _ in 0..20 {
            db.post("posts/query", &options).await.refused(ErrorCode::FulltextIndexMissing);
        }
    }
    assert_eq!(db.exec("SELECT 1 AS v").await, json!([{"v": 1}]));
}
