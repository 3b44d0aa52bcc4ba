//! `count=true`: the number of all matching records without paging, whatever other options the read has.

use super::both_notations::{SHOP, ask, refused};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_count_is_the_total_without_paging,
        a_count_knows_filters_and_joins,
        a_count_of_groups_and_distinct_rows_counts_rows,
        a_count_comes_with_every_keyset_page,
        without_being_asked_there_is_none,
        counts_of_nothing_are_refused_by_name,
    ],
}

async fn counted(db: &TestDb, table: &str, more: Value) -> (Value, usize) {
    let mut options = json!({"count": true});
    options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = ask(db, table, &options).await;
    let rows = answer.payload().as_array().unwrap().len();
    (answer.json()["count"].clone(), rows)
}

async fn a_count_is_the_total_without_paging(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for (more, rows) in [
        (json!({}), 5),
        (json!({"limit": 2}), 2),
        (json!({"limit": 5}), 5),
        (json!({"limit": 6}), 5),
        (json!({"limit": 0}), 0),
        (json!({"limit": 2, "page": 3}), 1),
        (json!({"limit": 2, "page": 4}), 0),
        (json!({"limit": 5, "page": 2}), 0),
        (json!({"limit": 2, "offset": 4}), 1),
        (json!({"limit": 2, "offset": 5}), 0),
        (json!({"limit": 2, "offset": 100}), 0),
        (json!({"limit": 2, "order": {"field": "year", "strategy": "DESC"}}), 2),
        (json!({"limit": 2, "page": 1_000_000}), 0),
    ] {
        assert_eq!(counted(&db, "books", more.clone()).await, (json!(5), rows), "{more}");
    }
    db.exec("CREATE TABLE none (id INT PRIMARY KEY)").await;
    for more in [json!({}), json!({"limit": 3}), json!({"limit": 0}), json!({"limit": 1, "page": 2})] {
        assert_eq!(counted(&db, "none", more.clone()).await, (json!(0), 0), "{more}");
    }
}

async fn a_count_knows_filters_and_joins(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let late = json!({"query": {"year": {"value": 2000, "equality": ">"}}, "limit": 1});
    assert_eq!(counted(&db, "books", late).await, (json!(3), 1));
    let inner = json!({"tableName": "authors", "joinType": "JOIN", "match": {"source": "author_id", "target": "id"}});
    assert_eq!(counted(&db, "books", json!({"join": [inner], "limit": 1})).await, (json!(4), 1));
    let many = json!({"tableName": "reviews", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "book_id"}});
    assert_eq!(counted(&db, "books", json!({"join": [many], "limit": 1})).await, (json!(6), 1));
    let right =
        json!({"tableName": "reviews", "joinType": "RIGHT JOIN", "match": {"source": "id", "target": "book_id"}});
    assert_eq!(counted(&db, "books", json!({"join": [right], "limit": 1})).await, (json!(5), 1));
    let filtered = json!({"join": [many], "limit": 1, "query": {"reviews.stars": {"value": 3, "equality": ">"}}});
    assert_eq!(counted(&db, "books", filtered).await, (json!(2), 1));
    let left = json!({"tableName": "authors", "joinType": "LEFT JOIN", "match": {"source": "author_id", "target": "id"}, "nest": true});
    assert_eq!(counted(&db, "books", json!({"join": [left], "limit": 2, "page": 2})).await, (json!(5), 2));
}

async fn a_count_of_groups_and_distinct_rows_counts_rows(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let select = json!(["year", {"fieldName": "id", "aggregate": "COUNT", "alias": "n"}]);
    assert_eq!(
        counted(&db, "books", json!({"group": "year", "selectFields": select, "limit": 1})).await,
        (json!(4), 1)
    );
    assert_eq!(
        counted(&db, "books", json!({"group": "year", "selectFields": select, "limit": 0})).await,
        (json!(4), 0)
    );
    assert_eq!(counted(&db, "books", json!({"group": "year", "selectFields": select})).await, (json!(4), 4));
    let total = json!([{"fieldName": "id", "aggregate": "COUNT", "alias": "n"}]);
    assert_eq!(counted(&db, "books", json!({"selectFields": total})).await, (json!(1), 1));
    assert_eq!(counted(&db, "books", json!({"selectFields": total, "limit": 1, "offset": 1})).await, (json!(1), 0));
    assert_eq!(
        counted(&db, "authors", json!({"distinct": true, "selectFields": ["country"], "limit": 1})).await,
        (json!(3), 1)
    );
    assert_eq!(counted(&db, "authors", json!({"distinct": true, "selectFields": ["country"]})).await, (json!(3), 3));
    let both = json!({"group": "year", "distinct": true, "selectFields": [{"fieldName": "id", "aggregate": "COUNT", "alias": "n"}], "limit": 1});
    assert_eq!(counted(&db, "books", both).await, (json!(2), 1));
}

async fn a_count_comes_with_every_keyset_page(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let mut options = json!({"count": true, "limit": 2, "order": {"field": "year", "strategy": "DESC"}});
    for rows in [2, 2, 1] {
        let answer = ask(&db, "books", &options).await;
        assert_eq!(answer.json()["count"], 5, "{answer}");
        assert_eq!(answer.payload().as_array().unwrap().len(), rows, "{answer}");
        options["after"] = answer.json()["next"].clone();
    }
    assert!(options["after"].is_null());
}

async fn without_being_asked_there_is_none(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for options in [json!({"limit": 2}), json!({"count": false, "limit": 2}), json!({"count": false})] {
        assert!(ask(&db, "books", &options).await.json().get("count").is_none());
    }
}

async fn counts_of_nothing_are_refused_by_name(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for wrong in [json!("exact"), json!(2), json!([]), json!({})] {
        refused(&db, "books", &json!({"count": wrong}), ErrorCode::InvalidQueryOption, &["count"]).await;
    }
    for rest in ["books?count=", "books?count", "books?count=TRUE1", "books/1?count=true"] {
        db.get(rest).await.refused(ErrorCode::InvalidQueryOption);
    }
}
