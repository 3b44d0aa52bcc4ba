//! A hidden field must look like an unknown field wherever a request can name a field. Each position is tried with a
//! visible, a hidden and an absent field; the answers for the last two must be alike.

use super::Caller;
use crate::host::{Answer, Host, option};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_hidden_field_is_unknown_in_every_position_of_a_read,
        a_hidden_field_is_unknown_in_every_position_of_a_write,
        a_hint_names_no_hidden_field,
        a_hidden_field_of_one_table_does_not_stand_for_that_of_another,
    ],
}

const VISIBLE: &str = "label";
const HIDDEN: &str = "zq_hidden";
const ABSENT: &str = "zq_absent";

const TABLES: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), label VARCHAR(40), zq_hidden VARCHAR(40), \
     FULLTEXT (label), FULLTEXT (zq_hidden), FULLTEXT (name, label), FULLTEXT (name, zq_hidden))",
    "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, label VARCHAR(40), zq_hidden VARCHAR(40))",
    "INSERT INTO t (name, label, zq_hidden) VALUES ('a', 'b', 'b'), ('c', 'd', 'd')",
    "INSERT INTO u (label, zq_hidden) VALUES ('b', 'b'), ('d', 'd')",
];

fn caller(db: &TestDb) -> Caller<'_> {
    let visible = json!({"fields": {"omit": [HIDDEN]}});
    let all = json!({"read": visible, "insert": visible, "update": visible, "delete": true});
    Caller::new(db, [("t", all), ("u", json!({"read": visible}))], json!({}))
}

/// Returns the status and error of an answer, without the request's id, and with the field replaced by `…`.
fn shape(answer: &Answer, field: &str) -> (u16, Value) {
    let mut body: Value = serde_json::from_str(&answer.text().replace(field, "…")).expect("JSON");
    body["error"]["requestId"].take();
    (answer.status.as_u16(), body)
}

/// Returns the options of reads that name the field, each in another position.
fn reads(field: &str) -> Vec<Value> {
    let join = |more: Value| {
        let mut join = json!({"tableName": "u", "joinType": "INNER JOIN", "match": {"source": "id", "target": "id"}});
        join.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        join
    };
    let matched = |on: Value| json!({"join": [join(json!({"match": on}))]});
    let of_u = format!("u.{field}");
    let count = json!({"fieldName": "id", "aggregate": "COUNT", "alias": "n"});
    let mut reads = vec![
        json!({"selectFields": [field]}),
        json!({"selectFields": ["id", {"fieldName": field, "alias": "x"}]}),
        json!({"selectFields": [{"fieldName": field}]}),
        json!({"omitFields": [field]}),
        json!({"query": {field: "b"}}),
        json!({"query": {field: null}}),
        json!({"query": {field: {"value": "b%", "equality": "LIKE"}}}),
        json!({"query": {field: {"value": ["b", "c"], "equality": "IN", "not": true}}}),
        json!({"query": {field: {"value": "b", "tableName": "t"}}}),
        json!({"query": {format!("t.{field}"): "b"}}),
        json!({"query": {"x": {"value": "b", "fieldName": field}}}),
        json!({"query": {"name": "a", field: "x"}, "searchOperator": "OR"}),
        json!({"query": {"g": {"__query": {field: "b"}, "operator": "OR"}}}),
        json!({"query": {"g": {"__query": {"h": {"__query": {"name": "a", field: {"equality": "IS NULL"}}}}}}}),
        json!({"order": {"field": field}}),
        json!({"order": [{"field": "name"}, {"field": field, "strategy": "DESC"}], "limit": 1}),
        json!({"order": {"field": format!("t.{field}")}}),
        json!({"order": field}),
        json!({"order": format!("name,-{field}")}),
        json!({"group": [field], "selectFields": [count]}),
        json!({"group": field, "selectFields": [field, count]}),
        json!({"distinct": true, "selectFields": [field]}),
        json!({"count": true, "limit": 1, "query": {field: "b"}}),
        json!({"fullTextSearch": {"fields": [field], "searchTerm": "b"}}),
        json!({"fullTextSearch": {"fields": ["name", field], "searchTerm": "b"}}),
        matched(json!({"source": field, "target": "label"})),
        matched(json!({"source": "label", "target": field})),
        matched(json!({"source": {"tableName": "t", "fieldName": field}, "target": "label"})),
        matched(json!({"source": "label", "target": {"tableName": "u", "fieldName": field}})),
        matched(json!([{"source": "id", "target": "id"}, {"source": field, "targetLiteral": "b"}])),
        json!({"join": [join(json!({"selectFields": [field]}))]}),
        json!({"join": [join(json!({"selectFields": [{"fieldName": field, "alias": "x"}]}))]}),
        json!({"join": [join(json!({"omitFields": [field]}))]}),
        json!({"join": [join(json!({"selectFields": [field], "nest": true}))]}),
        json!({"join": [join(json!({}))], "query": {&of_u: "b"}}),
        json!({"join": [join(json!({}))], "query": {"x": {"value": "b", "tableName": "u", "fieldName": field}}}),
        json!({"join": [join(json!({}))], "order": {"field": &of_u}}),
        json!({"join": [join(json!({}))], "group": [&of_u], "selectFields": [{"aggregate": "COUNT", "alias": "n"}]}),
    ];
    for aggregate in ["COUNT", "COUNT_DISTINCT", "MIN", "MAX"] {
        reads.push(json!({"selectFields": [{"fieldName": field, "aggregate": aggregate, "alias": "n"}]}));
    }
    reads
}

fn in_url(options: &Value) -> String {
    let options = options.as_object().unwrap().iter();
    let parts = options.map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => option(name, value),
    });
    parts.collect::<Vec<_>>().join("&")
}

fn judge(visible: &Answer, hidden: &Answer, absent: &Answer) {
    assert_eq!(visible.code(), "ok", "{visible}");
    hidden.refused(ErrorCode::UnknownField);
    assert_eq!(shape(hidden, HIDDEN), shape(absent, ABSENT), "{hidden}\n{absent}");
}

async fn a_hidden_field_is_unknown_in_every_position_of_a_read(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    let all = reads(VISIBLE).into_iter().zip(reads(HIDDEN)).zip(reads(ABSENT));
    for ((visible, hidden), absent) in all {
        let by_url = |options: &Value| caller.call(Method::GET, &format!("t?{}", in_url(options))).send();
        judge(&by_url(&visible).await, &by_url(&hidden).await, &by_url(&absent).await);
        let by_body = |options: &Value| caller.call(Method::POST, "t/query").json(options).send();
        judge(&by_body(&visible).await, &by_body(&hidden).await, &by_body(&absent).await);
        let in_batch = async |options: &Value| {
            let path = format!("{}?{}", db.path("t"), in_url(options));
            caller.batch(&[json!({"method": "GET", "path": path})]).await
        };
        if visible.get("count").is_some() {
            continue;
        }
        judge(&in_batch(&visible).await, &in_batch(&hidden).await, &in_batch(&absent).await);
        let csv = caller.call(Method::GET, &format!("t?{}", in_url(&hidden))).header("accept", "text/csv");
        csv.send().await.refused(ErrorCode::UnknownField);
    }
    for options in ["selectFields=…", "omitFields=…", "selectFields=id,…"] {
        for rest in ["t", "t/1"] {
            let get = |field: &str| caller.call(Method::GET, &format!("{rest}?{}", options.replace('…', field))).send();
            judge(&get(VISIBLE).await, &get(HIDDEN).await, &get(ABSENT).await);
        }
    }
    for options in ["order[field]=…", "order[0][field]=…", "query[…]=b", "query[…][value]=b", "group=…"] {
        let get = |field: &str| caller.call(Method::GET, &format!("t?{}", options.replace('…', field))).send();
        judge(&get(VISIBLE).await, &get(HIDDEN).await, &get(ABSENT).await);
    }
}

/// Returns writes that name the field, each in another position: method, rest of the path, body. A write with a visible
/// field changes no record that another write needs.
fn writes(field: &str) -> Vec<(Method, String, Value)> {
    let data = json!({"name": "z"});
    let key = |equality: &str| json!([{"key": field, "value": "nobody", "operator": equality}]);
    let id = json!([{"key": "id", "value": 1}]);
    vec![
        (Method::POST, "t".to_owned(), json!({field: "n"})),
        (Method::POST, "t".to_owned(), json!({"batchData": [{"name": "n"}, {field: "n"}]})),
        (Method::POST, "t?onConflict=update".to_owned(), json!({"id": 1, field: "b"})),
        (Method::POST, "t?onConflict=ignore".to_owned(), json!({"id": 1, field: "b"})),
        (Method::PUT, "t/1".to_owned(), json!({field: "b"})),
        (Method::PATCH, "t/1".to_owned(), json!({"name": "a", field: null})),
        (Method::PUT, "t".to_owned(), json!({"updateKeyValues": id, "data": {field: "b"}})),
        (Method::PUT, "t".to_owned(), json!({"updateKeyValues": key("="), "data": data})),
        (Method::PUT, "t".to_owned(), json!({"updateKeyValues": key("LIKE"), "data": data})),
        (Method::DELETE, "t".to_owned(), json!({"deleteKeyValues": key("=")})),
        (Method::DELETE, "t".to_owned(), json!({"deleteKeyValues": key("STARTS WITH")})),
        (Method::PUT, "t".to_owned(), json!({"query": {field: "nobody"}, "data": data})),
        (
            Method::PUT,
            "t".to_owned(),
            json!({"query": {"id": 1, "x": {"fieldName": field, "value": "nobody"}}, "data": data}),
        ),
        (Method::PUT, "t".to_owned(), json!({"query": {"id": 1}, "data": {field: "b"}})),
        (Method::DELETE, "t".to_owned(), json!({"query": {"g": {"__query": {field: "nobody"}}}})),
        (Method::POST, format!("t?returning=id,{field}"), json!({"name": "n"})),
        (Method::POST, format!("t?returning={field}"), json!({"batchData": [{"name": "n"}, {"name": "m"}]})),
        (Method::PUT, format!("t/1?returning={field}"), json!({"name": "a"})),
        (Method::PUT, format!("t?returning={field}"), json!({"query": {"id": 1}, "data": {"name": "a"}})),
        (Method::DELETE, format!("t?returning={field}"), json!({"query": {"id": 999}})),
        (Method::DELETE, format!("t?returning={field}"), json!({"deleteKeyValues": [{"key": "id", "value": 999}]})),
    ]
}

async fn a_hidden_field_is_unknown_in_every_position_of_a_write(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    let state = async || db.exec("SELECT id, name, zq_hidden FROM t WHERE id <= 2 ORDER BY id").await;
    let before = state().await;
    let all = writes(VISIBLE).into_iter().zip(writes(HIDDEN)).zip(writes(ABSENT));
    for ((visible, hidden), absent) in all {
        type Write = (Method, String, Value);
        let alone = |(method, rest, body): &Write| caller.call(method.clone(), rest).json(body).send();
        judge(&alone(&visible).await, &alone(&hidden).await, &alone(&absent).await);
        let in_batch = async |(method, rest, body): &Write| {
            let path = format!("/api/v1/crud/{}/{rest}", db.name);
            caller.batch(&[json!({"method": method.as_str(), "path": path, "body": body})]).await
        };
        judge(&in_batch(&visible).await, &in_batch(&hidden).await, &in_batch(&absent).await);
    }
    for (kind, body) in [("text/csv", "name,…\nn,n\n"), ("application/x-ndjson", "{}\n{\"…\":\"n\"}")] {
        let import = |field: &str| {
            caller.call(Method::POST, "t").header("content-type", kind).bytes(body.replace('…', field)).send()
        };
        judge(&import(VISIBLE).await, &import(HIDDEN).await, &import(ABSENT).await);
    }
    // A reference to an id may be the value of a field, like any value.
    let refers = async |field: &str| {
        let path = db.path("t");
        caller
            .batch(&[
                json!({"method": "POST", "path": path, "body": {"name": "first"}}),
                json!({"method": "POST", "path": path, "body": {field: {"$ref": 0}}}),
                json!({"method": "POST", "path": format!("{path}/query"), "body": {"query": {field: {"$ref": 0}}}}),
                json!({"method": "DELETE", "path": path, "body": {"deleteKeyValues": [{"key": field, "value": {"$ref": 0}}]}}),
            ])
            .await
    };
    judge(&refers(VISIBLE).await, &refers(HIDDEN).await, &refers(ABSENT).await);
    let delete = |field: &str| {
        let keys = option("deleteKeyValues", &json!([{"key": field, "value": "nobody"}]));
        caller.call(Method::DELETE, &format!("t?{keys}")).send()
    };
    judge(&delete(VISIBLE).await, &delete(HIDDEN).await, &delete(ABSENT).await);
    assert_eq!(state().await, before);
}

async fn a_hint_names_no_hidden_field(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let caller = caller(&db);
    for (near, hint) in [("zq_hiddem", None), ("zq_hidde", None), ("lable", Some("Did you mean \"label\"?"))] {
        for answer in [
            caller.get(&format!("t?selectFields={near}")).await,
            caller.get(&format!("t?order[field]={near}")).await,
            caller.post("t", &json!({near: 1})).await,
            caller.put("t/1", &json!({near: 1})).await,
            caller.post("t/query", &json!({"query": {near: 1}})).await,
        ] {
            let error = answer.refused(ErrorCode::UnknownField);
            assert_eq!(error["hint"].as_str(), hint, "{answer}");
            assert!(!answer.text().contains(HIDDEN), "{answer}");
        }
    }
}

async fn a_hidden_field_of_one_table_does_not_stand_for_that_of_another(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let hides = json!({"read": {"fields": {"omit": [HIDDEN]}}});
    let caller = Caller::new(&db, [("t", hides), ("u", json!({"read": true}))], json!({}));
    let join = json!([{"tableName": "u", "joinType": "INNER JOIN", "match": {"source": "id", "target": "id"}}]);
    db.exec("UPDATE u SET zq_hidden = 'of u'").await;
    // The table's own field is hidden, so the joined table's field is the only visible one, and needs no prefix.
    let read = json!({"join": join, "query": {HIDDEN: "of u"}, "order": {"field": HIDDEN}, "limit": 1});
    let record = caller.post("t/query", &read).await.payload()[0].clone();
    assert_eq!(record, json!({"id": 1, "name": "a", "label": "b", "u_id": 1, "u_label": "b", "zq_hidden": "of u"}),);
    let read = json!({"join": join, "query": {HIDDEN: {"value": "b", "tableName": "t"}}});
    caller.post("t/query", &read).await.refused(ErrorCode::UnknownField);
}
