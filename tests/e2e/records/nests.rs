//! `nest: true`: a joined record is an object, or null if there is none.

use super::both_notations::{SHOP, ask, rows};
use super::joins::{author, by_id, with};
use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::json;

cases! {
    Both: [
        a_nested_join_is_an_object_or_null,
        a_nested_join_tells_absent_from_all_null,
        nested_names_collide_with_nothing,
    ],
}

async fn a_nested_join_is_an_object_or_null(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join = with(author("LEFT JOIN"), json!({"nest": true, "alias": "author", "selectFields": ["id", "name"]}));
    let options = json!({"join": [join], "selectFields": ["id"], "order": by_id(), "query": {"id": [1, 4]}});
    assert_eq!(
        rows(&db, "books", &options).await,
        json!([{"id": 1, "author": {"id": 1, "name": "Ada"}}, {"id": 4, "author": null}])
    );
    // The nested object is null only if there is no record, even if the fields that show this are not selected.
    let join = with(author("LEFT JOIN"), json!({"nest": true, "alias": "author", "selectFields": ["country"]}));
    let options = json!({"join": [join], "selectFields": ["id"], "order": by_id(), "query": {"id": [4, 5]}});
    assert_eq!(
        rows(&db, "books", &options).await,
        json!([{"id": 4, "author": null}, {"id": 5, "author": {"country": null}}])
    );
    let options = json!({"join": [with(author("RIGHT JOIN"), json!({"nest": true}))], "selectFields": ["title"], "order": [{"field": "authors.id"}, {"field": "id"}]});
    let got = rows(&db, "books", &options).await;
    assert_eq!(got[4], json!({"title": null, "authors": {"id": 4, "name": "Dee", "country": "UK"}}));
    // A later RIGHT JOIN may leave the nested record empty.
    let joins = json!([with(author("JOIN"), json!({"nest": true, "selectFields": ["name"]})),
        {"tableName": "reviews", "joinType": "RIGHT JOIN", "match": {"source": "id", "target": "book_id"}, "selectFields": ["id"]}]);
    let options = json!({"join": joins, "selectFields": ["title"], "order": {"field": "reviews.id"}});
    let got = rows(&db, "books", &options).await;
    assert_eq!(got[0], json!({"title": "Engines", "authors": {"name": "Ada"}, "id": 1}));
    assert_eq!(got[4], json!({"title": null, "authors": null, "id": 5}));
}

async fn a_nested_join_tells_absent_from_all_null(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    db.exec("INSERT INTO keyless VALUES (4, NULL)").await;
    let join = json!({"tableName": "keyless", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "book_id"}, "nest": true, "selectFields": ["tag"]});
    let options = json!({"join": [join], "selectFields": ["id"], "order": by_id(), "query": {"id": [4, 5]}});
    assert_eq!(
        rows(&db, "books", &options).await,
        json!([{"id": 4, "keyless": {"tag": null}}, {"id": 5, "keyless": null}])
    );
    // The first column may be NULL although the record exists.
    db.exec("CREATE TABLE loose (tag INT, book INT)").await;
    db.exec("INSERT INTO loose VALUES (NULL, 4)").await;
    for source in [
        json!({"source": "id", "target": "book"}),
        json!([{"source": "id", "target": "book"}, {"source": "id", "target": "tag"}]),
    ] {
        let join = json!({"tableName": "loose", "joinType": "LEFT JOIN", "match": source, "operator": "OR", "nest": true, "selectFields": ["tag"]});
        let options = json!({"join": [join], "selectFields": ["id"], "order": by_id(), "query": {"id": [4, 5]}});
        assert_eq!(
            rows(&db, "books", &options).await,
            json!([{"id": 4, "loose": {"tag": null}}, {"id": 5, "loose": null}])
        );
    }
}

async fn nested_names_collide_with_nothing(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let join = with(author("JOIN"), json!({"nest": true, "alias": "title"}));
    let answer = ask(&db, "books", &json!({"join": [join], "query": {"id": 1}})).await;
    match answer.code().as_str() {
        "ok" => assert!(answer.payload()[0].as_object().unwrap().len() == 7, "{answer}"),
        code => {
            assert_eq!(code, "invalid_query_option", "{answer}");
            assert!(answer.text().contains("title"), "{answer}");
        }
    }
}
