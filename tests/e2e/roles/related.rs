//! Relations under a role: neither an include nor a condition on related records reaches a table, field or record that
//! the role hides.

use super::{Caller, is_claim};
use crate::host::{Host, option};
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        related_records_keep_to_the_rules_of_their_tables,
        a_relation_over_hidden_tables_or_fields_does_not_exist,
    ],
}

const TABLES: &[&str] = &[
    "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(20), pin VARCHAR(20), team INT)",
    "CREATE TABLE tasks (id INT PRIMARY KEY, person_id INT, title VARCHAR(20), FOREIGN KEY (person_id) REFERENCES people (id))",
    "CREATE TABLE labels (id INT PRIMARY KEY, word VARCHAR(20))",
    "CREATE TABLE task_labels (task_id INT, label_id INT, secret INT, PRIMARY KEY (task_id, label_id), \
     FOREIGN KEY (task_id) REFERENCES tasks (id), FOREIGN KEY (label_id) REFERENCES labels (id))",
    "INSERT INTO people VALUES (1,'Ann','11',1), (2,'Bob','22',2)",
    "INSERT INTO tasks VALUES (1,1,'a'), (2,2,'b'), (3,1,'c')",
    "INSERT INTO labels VALUES (1,'red'), (2,'blue')",
    "INSERT INTO task_labels VALUES (1,1,0), (1,2,1), (2,1,0)",
];

async fn read(caller: &Caller<'_>, table: &str, options: &Value) -> Value {
    let mut options = options.clone();
    options["order"] = json!({"field": "id"});
    caller.post(&format!("{table}/query"), &options).await.payload()
}

async fn related_records_keep_to_the_rules_of_their_tables(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let rules = [
        ("people", json!({"read": {"fields": {"omit": ["pin"]}, "rows": is_claim("team", "team")}})),
        ("tasks", json!({"read": {"rows": {"title": {"value": "c", "equality": "!="}}}})),
        ("labels", json!({"read": true})),
        ("task_labels", json!({"read": {"fields": {"omit": ["secret"]}, "rows": {"secret": 0}}})),
    ];
    let caller = Caller::new(&db, rules, json!({"team": 1}));
    let ann = json!({"id": 1, "name": "Ann", "team": 1});
    let people = read(&caller, "tasks", &json!({"include": "person", "selectFields": "id"})).await;
    assert_eq!(people, json!([{"id": 1, "person": ann}, {"id": 2, "person": null}]));
    let tasks = read(&caller, "people", &json!({"include": {"relation": "tasks", "selectFields": "id"}})).await;
    assert_eq!(tasks, json!([{"id": 1, "name": "Ann", "team": 1, "tasks": [{"id": 1}]}]));
    for limit in [json!(null), json!(5)] {
        let mut include = json!({"relation": "labels", "selectFields": "word"});
        if !limit.is_null() {
            include["limit"] = limit;
        }
        let labels = read(&caller, "tasks", &json!({"include": include, "selectFields": "id"})).await;
        let red = json!([{"word": "red"}]);
        assert_eq!(labels, json!([{"id": 1, "labels": red}, {"id": 2, "labels": red}]));
    }
    for (table, query, expected) in [
        ("tasks", json!({"person": {"some": {}}}), json!([1])),
        ("tasks", json!({"person": {"none": {}}}), json!([2])),
        ("tasks", json!({"labels": {"some": {"word": "blue"}}}), json!([])),
        ("tasks", json!({"labels": {"every": {"word": "red"}}}), json!([1, 2])),
        ("people", json!({"tasks": {"some": {"title": "c"}}}), json!([])),
    ] {
        let found = read(&caller, table, &json!({"query": query, "selectFields": "id"})).await;
        let ids: Value = found.as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
        assert_eq!(ids, expected, "{table} {query}");
    }
    let hidden = json!({"include": {"relation": "person", "query": {"pin": "11"}}});
    caller.post("tasks/query", &hidden).await.refused(ErrorCode::UnknownField);
}

async fn a_relation_over_hidden_tables_or_fields_does_not_exist(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let seen = json!({"read": true});
    let without = |field: &str| json!({"read": {"fields": {"omit": [field]}}});
    let named =
        [("people", seen.clone()), ("tasks", seen.clone()), ("labels", seen.clone()), ("task_labels", seen.clone())];
    for (changed, rule, table, relation) in [
        ("people", json!({"delete": true}), "tasks", "person"),
        ("tasks", without("person_id"), "tasks", "person"),
        ("tasks", without("person_id"), "people", "tasks"),
        ("people", without("id"), "tasks", "person"),
        ("task_labels", json!({"insert": true}), "tasks", "labels"),
        ("task_labels", without("label_id"), "tasks", "labels"),
        ("labels", without("id"), "tasks", "labels"),
    ] {
        let rules =
            named.iter().map(|(name, seen)| (*name, if *name == changed { rule.clone() } else { seen.clone() }));
        let caller = Caller::new(&db, rules.collect::<Vec<_>>(), json!({}));
        for (name, code, options) in [
            (relation, ErrorCode::InvalidQueryOption, json!({"include": relation})),
            (relation, ErrorCode::UnknownField, json!({"query": {relation: {"some": {}}}})),
        ] {
            let url = options.as_object().unwrap().iter().map(|(name, value)| option(name, value)).collect::<String>();
            let hidden = caller.call(Method::GET, &format!("{table}?{url}")).send().await;
            let absent = caller.call(Method::GET, &format!("{table}?{}", url.replace(name, "zq_absent"))).send().await;
            let said = |answer: &crate::host::Answer, name: &str| {
                let error = answer.refused(code);
                format!("{} {}", error["message"], error["hint"]).replace(&format!("\\\"{name}\\\""), "…")
            };
            assert_eq!(said(&hidden, name), said(&absent, "zq_absent"), "{changed} {rule}");
        }
    }
}
