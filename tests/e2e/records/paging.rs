//! Keyset pagination: every record once, in the order of the unpaged read; and cursors that work only for their read.

use super::both_notations::{SHOP, ask};
use crate::host::{Answer, Host};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        pages_follow_any_column,
        pages_follow_mixed_directions,
        pages_follow_a_composite_key,
        pages_follow_joined_fields,
        pages_follow_groups,
        pages_follow_distinct_rows,
        a_table_without_a_primary_key_has_pages_by_another_key_or_by_offset,
        a_view_has_no_cursor_but_says_that_it_has_more,
        the_last_page_has_no_next,
        records_that_come_and_go_do_not_move_the_others,
    ],
}

/// Follows all pages of a read and returns the rows; each page but the last must be full.
pub(super) async fn walk(db: &TestDb, table: &str, options: &Value, limit: usize) -> Result<Vec<Value>, Answer> {
    let mut options = options.clone();
    options["limit"] = json!(limit);
    let mut all = Vec::new();
    loop {
        let answer = ask(db, table, &options).await;
        if answer.code() != "ok" {
            return Err(answer);
        }
        let page = answer.payload();
        let page = page.as_array().unwrap();
        all.extend(page.iter().cloned());
        let next = answer.json()["next"].clone();
        if next.is_null() {
            return Ok(all);
        }
        assert_eq!(page.len(), limit, "a page before the last is full: {answer}");
        assert!(all.len() < 1000, "the pages do not end: {answer}");
        options["after"] = next;
    }
}

pub(super) fn by(field: &str, strategy: &str) -> Value {
    json!({"field": field, "strategy": strategy})
}

async fn pages_follow_any_column(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE k (id INT PRIMARY KEY, i BIGINT, u BIGINT UNSIGNED, b BIT(8), dc DECIMAL(30,10), f FLOAT, d DOUBLE, \
             c VARCHAR(20), ch CHAR(6), t TEXT, e ENUM('z','a','m'), s SET('y','x','w'), da DATE, dt DATETIME(6), ts TIMESTAMP(3) NULL, \
             ti TIME(2), y YEAR, bi BINARY(3), vb VARBINARY(9), bl BLOB, uu UUID, ip INET6, i4 INET4, bo BOOLEAN)",
            "INSERT INTO k VALUES \
             (1, 9007199254740993, 18446744073709551615, b'101', '1.5', 0.1, 0.1, 'b', 'b', 'b', 'z', 'x,y', '2026-01-02', \
              '2026-01-02 03:04:05.000006', '2026-01-02 03:04:05.678', '-30:00:00.25', 2026, X'0001', X'0001', X'FF', \
              '10000000-0000-0000-0000-000000000001', '::1', '1.2.3.4', 1), \
             (2, 9007199254740992, 18446744073709551614, b'11111111', '1.5000000001', 16777216, 0.30000000000000004, 'B', 'B ', 'B ', 'a', 'y', '0000-00-00', \
              '2026-01-02 03:04:05.000005', '2026-01-02 03:04:05.677', '838:59:59', 1901, X'000100', X'000100', X'00', \
              '20000000-0000-1000-0000-000000000000', '::ffff:1.2.3.4', '10.0.0.1', 0), \
             (3, -9223372036854775808, 0, b'0', '-99999999999999999999.9999999999', -0.0, 5e-324, '', '', '', 'm', '', '1000-01-01', \
              '0000-00-00 00:00:00', '1970-01-01 00:00:01', '-838:59:59', 2155, X'', X'', X'', \
              '00000000-0000-0000-0000-000000000000', '::', '0.0.0.0', 1), \
             (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
             (5, 9223372036854775807, 1, b'1', '99999999999999999999.9999999999', 3.4e38, 1.7976931348623157e308, 'é', 'e', 'É', 'z', 'w,x,y', '9999-12-31', \
              '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.999', '00:00:00.01', 2000, X'FFFFFF', X'FFFFFFFF', X'FF00', \
              'ffffffff-ffff-ffff-ffff-ffffffffffff', 'ffff::', '255.255.255.255', 0), \
             (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
             (7, 0, 2, b'10', '0.1', 0.3, 0.1, 'a ', 'a', 'a', 'a', 'x', '2026-01-01', \
              '2026-01-02 03:04:05', '2026-01-02 03:04:05', '00:00:00.02', 0, X'FF', X'FF', X'FFFF', \
              '0fffffff-ffff-4fff-bfff-ffffffffffff', 'fe80::1', '9.0.0.1', 1)",
        ],
    )
    .await;
    for column in [
        "i", "u", "b", "dc", "f", "d", "c", "ch", "t", "e", "s", "da", "dt", "ts", "ti", "y", "bi", "vb", "bl", "uu",
        "ip", "i4", "bo",
    ] {
        for strategy in ["ASC", "DESC"] {
            let options = json!({"order": by(column, strategy), "selectFields": ["id"]});
            let paged = walk(&db, "k", &options, 1).await;
            let Ok(paged) = paged else { panic!("{column}: {}", paged.err().unwrap()) };
            let mut ids: Vec<i64> = paged.iter().map(|row| row["id"].as_i64().unwrap()).collect();
            let whole = db.exec(&format!("SELECT id FROM k ORDER BY {column} {strategy}, id {strategy}")).await;
            let whole: Vec<i64> = whole.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect();
            assert_eq!(ids, whole, "{column} {strategy}");
            let twos = walk(&db, "k", &options, 2).await.ok().expect("pages of two");
            assert_eq!(twos, paged, "{column} {strategy}");
            ids.sort_unstable();
            assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7], "{column} {strategy}");
        }
    }
}

async fn pages_follow_mixed_directions(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(5), c DATE NOT NULL)"],
    )
    .await;
    db.exec("INSERT INTO t (a, b, c) SELECT NULLIF(seq % 4, 0), NULLIF(CHAR(97 + seq % 3), 'b'), DATE('2026-01-01') + INTERVAL seq % 2 DAY FROM seq_1_to_40").await;
    for order in [
        json!([by("a", "ASC"), by("b", "DESC"), by("c", "ASC")]),
        json!([by("a", "DESC"), by("b", "DESC")]),
        json!([by("b", "DESC"), by("c", "DESC"), by("a", "ASC"), by("id", "DESC")]),
        json!([by("c", "DESC"), by("id", "ASC")]),
        json!([by("id", "DESC")]),
    ] {
        for limit in [1, 3, 7, 40, 41] {
            let options = json!({"order": order, "selectFields": ["id", "a", "b", "c"]});
            holds_with_key(&db, "t", &options, limit).await;
        }
    }
    // Without `order`, pages are in the order of the primary key.
    holds_with_key(&db, "t", &json!({}), 7).await;
    let options = json!({"order": by("a", "ASC"), "query": {"b": {"value": "a", "equality": "!="}, "c": "2026-01-01"}, "searchOperator": "OR"});
    holds_with_key(&db, "t", &options, 3).await;
}

/// Like `holds`, but adds the key to the unpaged read's order to make it total.
pub(super) async fn holds_with_key(db: &TestDb, table: &str, options: &Value, limit: usize) {
    let mut total = options.clone();
    let mut orders = match options.get("order") {
        Some(Value::Array(list)) => list.clone(),
        Some(one) => vec![one.clone()],
        None => vec![],
    };
    if !orders.iter().any(|order| order["field"] == "id") {
        // The key has the direction of the last field, so that MariaDB can use an index.
        let direction = orders.last().map_or(json!("ASC"), |order| order["strategy"].clone());
        orders.push(json!({"field": "id", "strategy": direction}));
    }
    total["order"] = Value::from(orders);
    let whole = ask(db, table, &total).await;
    if whole.code() != "ok" {
        // A field that occurs twice in `order` may be refused.
        whole.refused(ErrorCode::InvalidQueryOption);
        return;
    }
    let paged = match walk(db, table, options, limit).await {
        Ok(paged) => paged,
        Err(answer) => panic!("{answer}"),
    };
    assert_eq!(json!(paged), whole.payload(), "{table} {options} by {limit}");
}

async fn pages_follow_a_composite_key(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE t (a INT, b VARCHAR(9), n INT, PRIMARY KEY (b, a))",
            "INSERT INTO t SELECT seq % 5, CHAR(97 + seq DIV 5), seq % 3 FROM seq_0_to_24",
        ],
    )
    .await;
    for (options, total) in [
        (json!({}), json!([by("b", "ASC"), by("a", "ASC")])),
        (json!({"order": by("n", "DESC")}), json!([by("n", "DESC"), by("b", "DESC"), by("a", "DESC")])),
        (json!({"order": by("a", "DESC")}), json!([by("a", "DESC"), by("b", "DESC")])),
    ] {
        let whole = ask(&db, "t", &json!({"order": total})).await.payload();
        let Ok(paged) = walk(&db, "t", &options, 4).await else { panic!("{options}") };
        assert_eq!(json!(paged), whole, "{options}");
    }
}

async fn pages_follow_joined_fields(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let left = json!({"tableName": "books", "joinType": "LEFT JOIN", "match": {"source": "book_id", "target": "id"}, "selectFields": ["title", "year"]});
    for order in [
        json!([by("books.year", "DESC")]),
        json!([by("year", "ASC"), by("stars", "DESC")]),
        json!([by("books.title", "ASC")]),
    ] {
        for limit in [1, 2] {
            holds_with_key(
                &db,
                "reviews",
                &json!({"join": [left], "order": order, "selectFields": ["id", "stars"]}),
                limit,
            )
            .await;
        }
    }
    // A join with many records: the root's key repeats, and all rows must be returned.
    let many = json!({"tableName": "reviews", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "book_id"}, "selectFields": ["stars"]});
    let options = json!({"join": [many], "selectFields": ["id"]});
    let whole = json!({"join": [many], "selectFields": ["id"], "order": [by("id", "ASC"), by("reviews.id", "ASC")]});
    let whole = ask(&db, "books", &whole).await.payload();
    for limit in [1, 2, 4] {
        let paged = walk(&db, "books", &options, limit).await;
        let Ok(paged) = paged else { panic!("{}", paged.err().unwrap()) };
        assert_eq!(json!(paged), whole, "by {limit}");
    }
    // A RIGHT JOIN: the root's key is NULL in rows with only a joined record.
    let right = json!({"tableName": "reviews", "joinType": "RIGHT JOIN", "match": {"source": "id", "target": "book_id"}, "selectFields": ["stars"]});
    db.exec("INSERT INTO reviews VALUES (6, 98, 2, '', 'en'), (7, NULL, 2, '', 'en')").await;
    for limit in [1, 2, 3] {
        let paged = walk(&db, "books", &json!({"join": [right], "selectFields": ["id"]}), limit).await;
        let Ok(paged) = paged else { panic!("{}", paged.err().unwrap()) };
        assert_eq!(paged.len(), 7, "{paged:?}");
        let mut stars: Vec<String> = paged.iter().map(|row| row["stars"].to_string()).collect();
        stars.sort();
        assert_eq!(stars, ["1", "2", "2", "3", "4", "5", "null"]);
    }
    // A join with a table without a key has no cursor.
    let keyless =
        json!({"tableName": "keyless", "joinType": "LEFT JOIN", "match": {"source": "id", "target": "book_id"}});
    match walk(&db, "books", &json!({"join": [keyless], "selectFields": ["id"]}), 1).await {
        Ok(paged) => assert_eq!(paged.len(), 1, "{paged:?}"),
        Err(answer) => panic!("{answer}"),
    }
}

async fn pages_follow_groups(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, g INT, h VARCHAR(3), n DECIMAL(9,2))"]).await;
    db.exec("INSERT INTO t SELECT seq, NULLIF(seq % 6, 0), CHAR(97 + seq % 2), seq / 4 FROM seq_1_to_50").await;
    let select = json!(["g", "h", {"fieldName": "n", "aggregate": "SUM", "alias": "sum"}, {"fieldName": "id", "aggregate": "COUNT", "alias": "count"}]);
    for order in
        [json!([]), json!([by("g", "DESC")]), json!([by("count", "DESC"), by("h", "ASC")]), json!([by("sum", "ASC")])]
    {
        let mut options = json!({"group": ["g", "h"], "selectFields": select});
        let mut total = order.as_array().unwrap().clone();
        if !total.is_empty() {
            options["order"] = order.clone();
        }
        let direction = total.last().map_or(json!("ASC"), |order| order["strategy"].clone());
        for tie in ["g", "h"] {
            if !total.iter().any(|order| order["field"] == tie) {
                total.push(by(tie, direction.as_str().unwrap()));
            }
        }
        let whole = json!({"group": ["g", "h"], "selectFields": select, "order": total});
        let whole = ask(&db, "t", &whole).await.payload();
        let Ok(paged) = walk(&db, "t", &options, 2).await else { panic!("{order}") };
        assert_eq!(json!(paged), whole, "{order}");
    }
    // A cursor is of one grouping.
    let page = ask(&db, "t", &json!({"group": ["g"], "limit": 1})).await;
    let other = json!({"selectFields": ["g"], "distinct": true, "limit": 1, "after": page.json()["next"]});
    ask(&db, "t", &other).await.refused(ErrorCode::InvalidQueryOption);
}

async fn pages_follow_distinct_rows(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let options = json!({"distinct": true, "selectFields": ["country"], "order": by("country", "DESC")});
    let Ok(paged) = walk(&db, "authors", &options, 1).await else { panic!("{options}") };
    let whole = ask(&db, "authors", &options).await.payload();
    assert_eq!(json!(paged), whole);
}

async fn a_table_without_a_primary_key_has_pages_by_another_key_or_by_offset(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let answer = ask(&db, "keyless", &json!({"limit": 2, "order": by("tag", "ASC")})).await;
    assert_eq!(answer.payload().as_array().unwrap().len(), 2);
    assert_eq!((&answer.json()["next"], &answer.json()["more"]), (&json!(null), &json!(true)), "{answer}");
    // A unique `id` may contain many NULLs, so the primary key breaks ties.
    db.exec("CREATE TABLE n (id INT UNIQUE, b INT, pk INT PRIMARY KEY)").await;
    db.exec("INSERT INTO n VALUES (NULL,1,1),(NULL,1,2),(3,1,3),(NULL,1,4)").await;
    for options in [json!({}), json!({"order": by("b", "DESC")}), json!({"order": by("id", "DESC")})] {
        let Ok(paged) = walk(&db, "n", &options, 1).await else { panic!("{options}") };
        assert_eq!(paged.len(), 4, "{options}");
    }
    // Of the unique keys, those whose fields are NOT NULL order the records.
    db.exec("CREATE TABLE u (a INT NOT NULL, b INT, c INT NOT NULL, UNIQUE KEY k0 (b), UNIQUE KEY k1 (c, a))").await;
    db.exec("INSERT INTO u VALUES (1,1,2),(2,3,1),(3,2,1),(4,NULL,2),(5,NULL,2)").await;
    for (options, whole) in [
        (json!({}), json!([2, 3, 1, 4, 5])),
        (json!({"order": by("b", "ASC")}), json!([4, 5, 1, 3, 2])),
        (json!({"order": by("c", "DESC")}), json!([5, 4, 1, 3, 2])),
    ] {
        let Ok(paged) = walk(&db, "u", &options, 2).await else { panic!("{options}") };
        assert_eq!(json!(paged.iter().map(|row| &row["a"]).collect::<Vec<_>>()), whole, "{options}");
    }
}

async fn a_view_has_no_cursor_but_says_that_it_has_more(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    let read = async |limit: usize, offset: usize| {
        let options = json!({"order": by("title", "ASC"), "limit": limit, "offset": offset});
        let answer = ask(&db, "modern", &options).await.json();
        (answer["payload"].as_array().map(Vec::len), answer["next"].clone(), answer["more"].clone())
    };
    let all = ask(&db, "modern", &json!({})).await.payload().as_array().unwrap().len();
    assert_eq!(read(1, 0).await, (Some(1), json!(null), json!(true)));
    assert_eq!(read(1, all - 1).await, (Some(1), json!(null), json!(null)));
    assert_eq!(read(all, 0).await, (Some(all), json!(null), json!(null)));
    assert_eq!(read(0, 0).await, (Some(0), json!(null), json!(null)));
}

async fn the_last_page_has_no_next(host: Host) {
    let db = TestDb::new(host, SHOP).await;
    for (limit, more) in [(4, true), (5, false), (6, false), (0, false)] {
        let answer = ask(&db, "books", &json!({"limit": limit, "order": by("id", "ASC")})).await;
        let next = answer.json()["next"].clone();
        assert_eq!(next.is_string(), more, "limit={limit}: {answer}");
    }
    // A read without a limit has no cursor either.
    let answer = ask(&db, "books", &json!({})).await;
    assert!(answer.json()["next"].is_null(), "{answer}");
    // A page by number also has a cursor.
    let answer = ask(&db, "books", &json!({"limit": 2, "page": 2, "order": by("id", "ASC")})).await;
    let next = answer.json()["next"].clone();
    if next.is_string() {
        let rest = ask(&db, "books", &json!({"limit": 2, "after": next, "order": by("id", "ASC")})).await;
        assert_eq!(rest.payload()[0]["id"], 5, "{rest}");
        assert_eq!(rest.payload().as_array().unwrap().len(), 1, "{rest}");
    }
}

async fn records_that_come_and_go_do_not_move_the_others(host: Host) {
    let db = TestDb::new(
        host,
        &["CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t SELECT seq * 10, seq % 3 FROM seq_1_to_9"],
    )
    .await;
    let mut options = json!({"limit": 3, "order": by("n", "ASC")});
    let first = ask(&db, "t", &options).await;
    let ids: Vec<Value> = first.payload().as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, [30, 60, 90]);
    // Deletes the last record of the page, and inserts one before and one after it.
    db.exec("DELETE FROM t WHERE id = 90").await;
    db.exec("INSERT INTO t VALUES (5, 0), (15, 1)").await;
    options["after"] = first.json()["next"].clone();
    let second = ask(&db, "t", &options).await;
    let ids: Vec<Value> = second.payload().as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, [10, 15, 40]);
}
