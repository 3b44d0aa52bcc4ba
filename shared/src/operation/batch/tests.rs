//! Tests of parsing batches.

mod references;

use super::*;
use crate::limits::BATCH_MAX_ROWS;

fn parse(body: &str) -> Result<Batch, Problem> {
    let head = RequestHead { method: "POST", path: "/api/v1/batch", ..RequestHead::default() };
    match parse_head(&head)?.finish(body.as_bytes())? {
        Operation::Batch(batch) => Ok(batch),
        other => panic!("no batch: {other:?}"),
    }
}

fn of(operations: &[&str]) -> Result<Batch, Problem> {
    parse(&format!(r#"{{"operations": [{}]}}"#, operations.join(",")))
}

fn alone(method: &str, path: &str, body: &str) -> RecordOperation {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let head = RequestHead { method, path, query, ..RequestHead::default() };
    match parse_head(&head).unwrap().finish(body.as_bytes()) {
        Ok(Operation::Records(operation)) => operation,
        other => panic!("{other:?}"),
    }
}

const AUTHOR: &str = r#"{"method": "POST", "path": "/api/v1/crud/demo/authors", "body": {"name": "A"}}"#;
const TAGS: &str = r#"{"method": "POST", "path": "demo/tags", "body": {"batchData": [{"n": 1}, {"n": 2}]}}"#;

#[test]
fn an_operation_means_the_same_in_a_batch_as_alone() {
    for (method, path, body) in [
        ("POST", "/api/v1/crud/demo/posts", r#"{"title": "x", "views": 5}"#),
        ("POST", "/api/v1/crud/demo/posts", r#"{"batchData": [{"a": 1}, {"b": 2}]}"#),
        ("PUT", "/api/v1/crud/demo/posts/5", r#"{"title": "x"}"#),
        ("PATCH", "/api/v1/crud/demo/posts/a%2Cb,c", r#"{"title": null}"#),
        ("DELETE", "/api/v1/crud/demo/posts/5", ""),
        ("DELETE", "/api/v1/crud/demo/posts", r#"{"deleteKeyValues": [{"key": "id", "value": [1, 2]}]}"#),
        ("DELETE", "/api/v1/crud/demo/posts?deleteKeyValues=[{\"key\":\"id\",\"value\":1}]", ""),
        ("GET", "/api/v1/crud/demo/posts?limit=3&order[field]=id", ""),
        ("GET", "/api/v1/crud/demo/posts/5?selectFields=id", ""),
        ("POST", "/api/v1/crud/demo/posts/query", r#"{"limit": 3, "query": {"id": 5}}"#),
    ] {
        let short = path.strip_prefix("/api/v1/crud/").unwrap();
        for path in [path, short] {
            let path = serde_json::Value::from(path);
            let body = match body {
                "" => String::new(),
                body => format!(r#", "body": {body}"#),
            };
            let batch = of(&[&format!(r#"{{"method": "{method}", "path": {path}{body}}}"#)]).unwrap();
            assert_eq!(batch.steps().len(), 1);
            assert!(batch.steps()[0].references().is_empty());
        }
        let step = of(&[&format!(
            r#"{{"method": "{}", "path": {}, "body": {}}}"#,
            method.to_lowercase(),
            serde_json::Value::from(path),
            if body.is_empty() { "null" } else { body }
        )])
        .unwrap();
        assert_eq!(step.steps()[0].operation(), &alone(method, path, body), "{method} {path}");
    }
}

#[test]
fn a_batch_holds_a_thousand_operations_and_no_more() {
    assert_eq!(of(&[AUTHOR; BATCH_OPERATIONS_MAX_COUNT]).unwrap().steps().len(), BATCH_OPERATIONS_MAX_COUNT);
    let refused = of(&[AUTHOR; BATCH_OPERATIONS_MAX_COUNT + 1]).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidBody);
    assert!(refused.message().contains("1000 operations"));
}

#[test]
fn inserts_hold_the_cells_of_one_together_and_no_more() {
    // Each row except the first is empty, but takes a cell for each field.
    let insert = |fields: usize| {
        let first: Vec<_> = (0..fields).map(|at| format!(r#""f{at}": 1"#)).collect();
        let others = vec!["{}"; BATCH_MAX_ROWS - 1].join(",");
        let rows = format!("{{{}}},{others}", first.join(","));
        format!(r#"{{"method": "POST", "path": "a/b", "body": {{"batchData": [{rows}]}}}}"#)
    };
    let half = insert(BATCH_MAX_CELLS / BATCH_MAX_ROWS / 2);
    assert!(of(&[&half, &half, r#"{"method": "GET", "path": "a/b"}"#]).is_ok());
    assert_eq!(of(&[&half, &half, &insert(1)]).unwrap_err().code(), ErrorCode::InvalidBody);
}

#[test]
fn a_batch_of_many_values_is_refused_before_it_is_parsed() {
    // Two further commas are outside of the list.
    let list = vec!["1"; BATCH_COMMAS_MAX_COUNT].join(",");
    let many = format!(r#"{{"method": "POST", "path": "a/b", "body": {{"j": [{list}]}}}}"#);
    assert_eq!(of(&[&many]).unwrap_err().code(), ErrorCode::InvalidBody);
}

#[test]
fn a_dry_run_is_a_flag_beside_the_operations() {
    for (rest, expected) in [("", Some(false)), (", \"dryRun\": true", Some(true)), (", \"dryRun\": null", Some(false))]
    {
        let batch = parse(&format!(r#"{{"operations": [{AUTHOR}]{rest}}}"#)).unwrap();
        assert_eq!(Some(batch.is_dry_run()), expected, "{rest}");
    }
    for rest in [", \"dryRun\": \"true\"", ", \"dryRun\": 1", ", \"dry_run\": true"] {
        let problem = parse(&format!(r#"{{"operations": [{AUTHOR}]{rest}}}"#)).unwrap_err();
        assert_eq!(problem.code(), ErrorCode::InvalidBody, "{rest}");
    }
    assert!(parse(r#"{"dryRun": true}"#).is_err());
}
