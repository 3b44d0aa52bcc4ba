//! Tests the envelope and its headers for particular requests. `ledger.rs` checks the rules that hold for every
//! response.

use crate::host::Host;
use crate::test_db::TestDb;
use serde_json::json;
use shared::error::ErrorCode;

const POSTS: &str = "/api/v1/crud/demo/posts?limit=1";

cases! {
    Both: [
        a_success_is_one_object_with_two_fields,
        a_refusal_is_one_object_with_three_fields,
        a_well_formed_request_id_is_kept,
        a_request_without_an_id_gets_a_uuid_v7,
        a_malformed_request_id_is_replaced,
        a_refusal_of_mariadb_carries_its_number_and_state,
        a_misspelt_field_gets_the_nearest_name_as_a_hint,
        a_misspelt_table_gets_the_nearest_name_as_a_hint,
        a_misspelt_option_is_named,
        traceparent_is_taken,
        a_missing_content_type_is_taken_for_json,
    ],
}

async fn a_success_is_one_object_with_two_fields(host: Host) {
    let answer = host.get(&format!("{POSTS}&selectFields=id&query[id]=1")).send().await;
    let body = answer.json();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["payload", "success"], "{answer}");
    assert_eq!(body["payload"].as_array().unwrap().len(), 1);
    assert!(answer.text().starts_with("{\"success\":true"), "`success` comes first: {answer}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

async fn a_refusal_is_one_object_with_three_fields(host: Host) {
    let answer = host.get("/api/v1/crud/demo/nothing_like_it").send().await;
    let error = answer.refused(ErrorCode::TableNotFound);
    let body = answer.json();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["error", "payload", "success"]);
    assert!(body["payload"].is_null());
    assert!(error["message"].as_str().unwrap().contains("nothing_like_it"), "the table is named: {answer}");
    assert_eq!(error["retryable"], false);
}

async fn a_well_formed_request_id_is_kept(host: Host) {
    for id in ["abc-123", "0192d3c4-5b6a-7c8d-9e0f-112233445566", "Root=1-67891233-abcdef012345678912345678"] {
        let answer = host.get(POSTS).header("x-request-id", id).send().await;
        assert_eq!(answer.header("x-request-id"), Some(id), "{answer}");
        let refused = host.get("/api/v1/crud/demo/nope").header("x-request-id", id).send().await;
        assert_eq!(refused.refused(ErrorCode::TableNotFound)["requestId"], id);
        let early = host.get("/nowhere").no_key().header("x-request-id", id).send().await;
        assert_eq!(early.header("x-request-id"), Some(id), "{early}");
    }
}

async fn a_request_without_an_id_gets_a_uuid_v7(host: Host) {
    let mut seen = std::collections::HashSet::new();
    for call in [host.get(POSTS), host.get("/nowhere"), host.get(POSTS).no_key(), host.get("/healthz")] {
        let answer = call.send().await;
        let id = answer.header("x-request-id").expect("an id").to_owned();
        let parsed = uuid::Uuid::parse_str(&id).unwrap_or_else(|_| panic!("{id} is no UUID: {answer}"));
        assert_eq!(parsed.get_version_num(), 7, "{id}: {answer}");
        assert!(seen.insert(id));
    }
}

async fn a_malformed_request_id_is_replaced(host: Host) {
    let long = "x".repeat(4_000);
    for id in [long.as_str(), "<script>", "two words", "\"quoted\"", "a,b;c{}"] {
        let answer = host.get(POSTS).header("x-request-id", id).send().await;
        assert_ne!(answer.header("x-request-id"), Some(id), "{answer}");
        answer.payload();
    }
}

async fn a_refusal_of_mariadb_carries_its_number_and_state(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let error = db.sql("SELEKT 1").send().await.refused(ErrorCode::SqlError);
    assert_eq!(error["details"], json!({"errno": 1064, "sqlState": "42000"}));
}

async fn a_misspelt_field_gets_the_nearest_name_as_a_hint(host: Host) {
    let db = TestDb::new(host, &["CREATE TABLE t (id INT PRIMARY KEY, title TEXT)"]).await;
    for rest in ["t?selectFields=titel", "t?order[field]=titel", "t?query[titel]=1", "t?omitFields=titel"] {
        let answer = db.get(rest).await;
        let error = answer.refused(ErrorCode::UnknownField);
        assert!(error["message"].as_str().unwrap().contains("titel"), "{answer}");
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("title")), "{answer}");
    }
    let answer = db.post("t", &json!({"id": 1, "titel": "x"})).await;
    let error = answer.refused(ErrorCode::UnknownField);
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("title")), "{answer}");
}

async fn a_misspelt_table_gets_the_nearest_name_as_a_hint(host: Host) {
    let answer = host.get("/api/v1/crud/demo/poosts").send().await;
    let error = answer.refused(ErrorCode::TableNotFound);
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("posts")), "{answer}");
}

async fn a_misspelt_option_is_named(host: Host) {
    let answer = host.get("/api/v1/crud/demo/posts?limmit=1").send().await;
    let error = answer.refused(ErrorCode::InvalidQueryOption);
    assert!(error["message"].as_str().unwrap().contains("limmit"), "{answer}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("limit")), "{answer}");
}

async fn traceparent_is_taken(host: Host) {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    host.get(POSTS).header("traceparent", parent).send().await.payload();
    host.get(POSTS).header("traceparent", "nonsense").send().await.payload();
}

async fn a_missing_content_type_is_taken_for_json(host: Host) {
    let call = host.call(reqwest::Method::POST, "/api/v1/sql");
    let answer = call.bytes(r#"{"query":"SELECT 1 AS one"}"#).send().await;
    assert_eq!(answer.payload(), json!([{"one": 1}]));
    for kind in
        ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"]
    {
        let call = host.call(reqwest::Method::POST, "/api/v1/sql").bytes(r#"{"query":"SELECT 1 AS one"}"#);
        assert_eq!(call.header("content-type", kind).send().await.payload(), json!([{"one": 1}]));
    }
}
