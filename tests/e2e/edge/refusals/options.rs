//! Requests whose options are refused: each kind of option malformed, unknown or repeated.

use super::{Refusal, call, refusal};
use crate::host::{Call, enc, option};
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode::*;

const POSTS: &str = "/api/v1/crud/demo/posts";

pub(super) fn table() -> Vec<Refusal> {
    [options(), listed_options(), conditions(), joins()].into_iter().flatten().collect()
}

fn get(path: &str) -> Call {
    call(Method::GET, path)
}

fn options() -> Vec<Refusal> {
    let mut table = Vec::new();
    for value in ["-1", "1.5", "x", "", "1e3", "0x10", "%2B1", "%20 1", "null", "[]", "99999999999999999999", "%D9%A1"]
    {
        for options in [format!("limit={value}"), format!("offset={value}&limit=1"), format!("page={value}&limit=1")] {
            table.push(options.replace(' ', ""));
        }
    }
    table.extend(
        [
            "page=0&limit=1",
            "page=1&offset=1&limit=1",
            "page=1",
            "foo=1",
            "foo",
            "Limit=1",
            "select=id&selectFields=id",
            "where[id]=1&query[id]=1",
            "Name=x",
            "limit%00=1",
            "deleteKeyValues=[]",
            "limit=1&limit=1",
            "searchOperator=AND&searchOperator=OR",
            "order[field]=id&order[field]=title",
            "selectFields=id&selectFields=id",
            "selectFields=id&selectFields[]=title",
            "order=",
            "query[id]=1&query[id]=2",
            "selectFields=id&omitFields=title",
            "searchOperator=XOR",
            "order={",
            "distinct=perhaps",
            "count=maybe",
            "join=5",
            "join=%5B%5D%5D",
            "after=",
            "=",
            "=1",
            "[]=1",
            "[",
            "]",
            "query[",
            "query]=1",
            "query[a]b=1",
            "order[field",
            "?limit=1",
            "limit=1;page=2",
            "limit[]=1",
            "limit[a]=1",
            "limit=%ff",
            "%zz=1",
            "query[v]=%c3",
        ]
        .map(str::to_owned),
    );
    table.push(vec!["x=1"; 700].join("&"));
    let query = option("query", &json!({"id": 1}));
    table.push(format!("{query}&{query}"));
    let mut refusals: Vec<Refusal> =
        table.iter().map(|options| refusal(InvalidQueryOption, get(&format!("{POSTS}?{options}")))).collect();
    for (method, path) in [
        (Method::GET, "/api/v1/crud/demo/posts/1?foo=1"),
        (Method::GET, "/api/v1/crud/demo/posts/_schema?foo=1"),
        (Method::OPTIONS, "/api/v1/crud/demo/posts?foo=1"),
        (Method::POST, "/api/v1/crud/demo/posts?limit=1"),
        (Method::POST, "/api/v1/crud/demo/posts?onConflict=nonsense"),
        (Method::PUT, "/api/v1/crud/demo/posts/1?limit=1"),
        (Method::DELETE, "/api/v1/crud/demo/posts/1?limit=1"),
        (Method::POST, "/api/v1/crud/demo/posts/query?limit=1"),
        (Method::POST, "/api/v1/sql?x=1"),
        (Method::POST, "/api/v1/batch?atomic=1"),
        (Method::GET, "/api/v1/media?nonsense=1"),
        (Method::GET, "/api/v1/media?type=picture"),
        (Method::GET, "/api/v1/media?limit=10001"),
        (Method::GET, "/api/v1/media?folder=../x"),
        (Method::POST, "/api/v1/media?x=1"),
    ] {
        let with_body = call(method.clone(), path).json(&json!({}));
        let call = if method == Method::POST { with_body } else { call(method, path) };
        refusals.push(refusal(InvalidQueryOption, call));
    }
    refusals
}

/// Returns requests with invalid options whose values are JSON.
fn listed_options() -> Vec<Refusal> {
    let mut table = Vec::new();
    for order in [
        json!({}),
        json!({"field": 5}),
        json!({"field": "id", "strategy": "UP"}),
        json!({"field": "id", "strategy": 1}),
        json!({"field": "id", "direction": "ASC"}),
        json!([{"field": "id"}, 5]),
        json!(["id", ""]),
        json!(["id", 5]),
        json!([null]),
    ] {
        table.push(option("order", &order));
    }
    for fields in [
        json!([1]),
        json!([null]),
        json!({"a": 1}),
        json!([{"alias": "x"}]),
        json!([{"fieldName": "id", "foo": 1}]),
        json!([[]]),
        json!([{"fieldName": "id", "aggregate": "MEDIAN"}]),
    ] {
        table.push(option("selectFields", &fields));
    }
    table.push(option("omitFields", &json!([{"fieldName": "id", "alias": "x"}])));
    for search in [
        json!(5),
        json!({}),
        json!({"fields": ["title"]}),
        json!({"searchTerm": "x"}),
        json!({"fields": [], "searchTerm": "x"}),
        json!({"fields": ["title"], "searchTerm": "x", "mode": "odd"}),
    ] {
        table.push(option("fullTextSearch", &search));
    }
    let steps: Vec<Value> = (0..65).map(|at| json!({"field": format!("f{at}")})).collect();
    table.push(option("order", &json!(steps)));
    table.iter().map(|options| refusal(InvalidQueryOption, get(&format!("{POSTS}?{options}")))).collect()
}

fn conditions() -> Vec<Refusal> {
    let deep = (0..40).fold(json!({"id": 1}), |inner, _| json!({"g": {"__query": inner}}));
    let between = |value: Value| json!({"id": {"value": value, "equality": "BETWEEN"}});
    let filters = [
        between(json!([1])),
        between(json!([1, 2, 3])),
        between(json!([])),
        between(json!(1)),
        between(json!([1, null])),
        json!({"id": {"value": 1, "equality": "~"}}),
        json!({"id": {"value": 1, "equality": 5}}),
        json!({"id": {"equality": "="}}),
        json!({"id": {"value": 1, "operator": "XOR"}}),
        json!({"id": {"value": 1, "nope": 1}}),
        json!({"g": {"__query": 5}}),
    ];
    let mut table = Vec::new();
    for filter in filters {
        table.push(refusal(InvalidFilter, get(&format!("{POSTS}?{}", option("query", &filter)))));
        let twin = call(Method::POST, "/api/v1/crud/demo/posts/query");
        table.push(refusal(InvalidFilter, twin.json(&json!({"query": filter}))));
        let delete = json!([{"key": "id", "value": 1, "operator": "~"}]);
        let delete = format!("{POSTS}?{}", option("deleteKeyValues", &delete));
        table.push(refusal(InvalidFilter, call(Method::DELETE, &delete)));
    }
    table.push(refusal(InvalidQueryOption, get(&format!("{POSTS}?query={}", enc(&deep.to_string())))));
    table
}

fn joins() -> Vec<Refusal> {
    let good = json!({"tableName": "users", "joinType": "JOIN", "match": {"source": "user_id", "target": "id"}});
    let with = |key: &str, value: Value| {
        let mut join = good.clone();
        join[key] = value;
        json!([join])
    };
    [
        json!(5),
        json!("x"),
        json!([5]),
        json!([null]),
        json!([{}]),
        with("joinType", json!("CROSS JOIN")),
        with("match", json!([])),
        with("match", json!({})),
        with("match", json!({"source": "user_id"})),
        with("match", json!({"source": 5, "target": "id"})),
        with("nest", json!("perhaps")),
        with("odd", json!(1)),
        json!(vec![good.clone(); 17]),
    ]
    .iter()
    .map(|join| refusal(InvalidQueryOption, get(&format!("{POSTS}?{}", option("join", join)))))
    .collect()
}
