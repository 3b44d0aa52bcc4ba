//! What batches mean, told by example.

use super::*;
use crate::operation::filter::{Comparison, Condition, Test};
use crate::operation::write::Target;

fn parse(body: &str) -> Result<Batch, Problem> {
    let head = RequestHead {
        method: "POST",
        path: "/api/v1/batch",
        query: None,
        content_type: None,
        idempotency_key: None,
        if_match: None,
        if_none_match: None,
        accept: None,
    };
    match parse_head(&head)?.finish(body.as_bytes())? {
        Operation::Batch(batch) => Ok(batch),
        other => panic!("no batch: {other:?}"),
    }
}

fn of(operations: &[&str]) -> Result<Batch, Problem> {
    parse(&format!(r#"{{"operations": [{}]}}"#, operations.join(",")))
}

/// The operations with these ids in place of all references.
fn resolved(operations: &[&str], ids: &[&str]) -> Vec<Operation> {
    let batch = of(operations).unwrap();
    let mut id =
        |reference: Reference| Ok(ids[reference.operation + reference.row.unwrap_or(0)].to_owned());
    let steps = batch.steps().iter();
    steps
        .map(|step| step.resolve(&mut id).unwrap().into_owned())
        .collect()
}

fn alone(method: &str, path: &str, body: &str) -> Operation {
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let head = RequestHead {
        method,
        path,
        query,
        content_type: None,
        idempotency_key: None,
        if_match: None,
        if_none_match: None,
        accept: None,
    };
    parse_head(&head).unwrap().finish(body.as_bytes()).unwrap()
}

const AUTHOR: &str =
    r#"{"method": "POST", "path": "/api/v1/crud/demo/authors", "body": {"name": "A"}}"#;
const TAGS: &str =
    r#"{"method": "POST", "path": "demo/tags", "body": {"batchData": [{"n": 1}, {"n": 2}]}}"#;

#[test]
fn an_operation_means_the_same_in_a_batch_as_alone() {
    for (method, path, body) in [
        (
            "POST",
            "/api/v1/crud/demo/posts",
            r#"{"title": "x", "views": 5}"#,
        ),
        (
            "POST",
            "/api/v1/crud/demo/posts",
            r#"{"batchData": [{"a": 1}, {"b": 2}]}"#,
        ),
        ("PUT", "/api/v1/crud/demo/posts/5", r#"{"title": "x"}"#),
        (
            "PATCH",
            "/api/v1/crud/demo/posts/a%2Cb,c",
            r#"{"title": null}"#,
        ),
        ("DELETE", "/api/v1/crud/demo/posts/5", ""),
        (
            "DELETE",
            "/api/v1/crud/demo/posts",
            r#"{"deleteKeyValues": [{"key": "id", "value": [1, 2]}]}"#,
        ),
        (
            "DELETE",
            "/api/v1/crud/demo/posts?deleteKeyValues=[{\"key\":\"id\",\"value\":1}]",
            "",
        ),
        ("GET", "/api/v1/crud/demo/posts?limit=3&order[field]=id", ""),
        ("GET", "/api/v1/crud/demo/posts/5?selectFields=id", ""),
        (
            "POST",
            "/api/v1/crud/demo/posts/query",
            r#"{"limit": 3, "query": {"id": 5}}"#,
        ),
    ] {
        let short = path.strip_prefix("/api/v1/crud/").unwrap();
        for path in [path, short] {
            let path = serde_json::Value::from(path);
            let body = match body {
                "" => String::new(),
                body => format!(r#", "body": {body}"#),
            };
            let batch = of(&[&format!(
                r#"{{"method": "{method}", "path": {path}{body}}}"#
            )])
            .unwrap();
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
        assert_eq!(
            step.steps()[0].operation(),
            &alone(method, path, body),
            "{method} {path}"
        );
    }
}

#[test]
fn a_reference_takes_the_place_of_a_value() {
    let done = resolved(
        &[
            AUTHOR,
            r#"{"method": "POST", "path": "demo/posts", "body": {"author": {"$ref": 0}, "b": {"x": {"$ref": 0}}}}"#,
            r#"{"method": "POST", "path": "demo/posts", "body": {"batchData": [{"author": {"$ref": 0}}, {"$ref": {"$ref": 1}}]}}"#,
            r#"{"method": "PUT", "path": "demo/posts/5", "body": {"author": {"\u0024ref": 0}}}"#,
        ],
        &["7", "\"x y\""],
    );
    assert_eq!(
        done[1],
        alone(
            "POST",
            "/api/v1/crud/demo/posts",
            r#"{"author": 7, "b": {"x": {"$ref": 0}}}"#
        )
    );
    assert_eq!(
        done[2],
        alone(
            "POST",
            "/api/v1/crud/demo/posts",
            r#"{"batchData": [{"author": 7}, {"$ref": "x y"}]}"#
        )
    );
    assert_eq!(
        done[3],
        alone("PUT", "/api/v1/crud/demo/posts/5", r#"{"author": 7}"#)
    );
}

#[test]
fn a_reference_takes_the_place_of_a_conditions_value() {
    let done = resolved(
        &[
            AUTHOR,
            r#"{"method": "DELETE", "path": "demo/posts", "body": {"deleteKeyValues": [{"key": "$ref", "value": {"$ref": 0}}]}}"#,
            r#"{"method": "POST", "path": "demo/posts/query", "body": {"query": {"$ref": {"$ref": 0},
                "b": {"value": [{"$ref": 0}, 8], "equality": "IN"}, "g": {"__query": {"$ref": {"value": {"$ref": 0}}}}}}}"#,
        ],
        &["7"],
    );
    let Operation::Delete(delete) = &done[1] else {
        panic!("{done:?}");
    };
    let Target::Matching(Condition::Test(field, Test::Compare(Comparison::Equal, value))) =
        &delete.target
    else {
        panic!("{delete:?}");
    };
    assert_eq!(
        (field.field().as_str(), value),
        ("$ref", &Value::Number("7".into()))
    );
    let body = r#"{"query": {"$ref": 7, "b": {"value": [7, 8], "equality": "IN"}, "g": {"__query": {"$ref": {"value": 7}}}}}"#;
    assert_eq!(
        done[2],
        alone("POST", "/api/v1/crud/demo/posts/query", body)
    );
}

#[test]
fn a_reference_takes_the_place_of_an_id_or_a_part_of_one() {
    let ids = ["\"a,b/ü\"", "8", "9"];
    for (path, expected) in [
        ("demo/posts/$ref:0", "/api/v1/crud/demo/posts/a,b%2F%C3%BC"),
        ("demo/posts/$ref:1:1", "/api/v1/crud/demo/posts/9"),
        (
            "demo/posts/$ref:0,x,$ref:1:0",
            "/api/v1/crud/demo/posts/a%2Cb%2F%C3%BC,x,8",
        ),
        ("demo/posts/%24ref:0", "/api/v1/crud/demo/posts/$ref:0"),
        ("demo/$ref:0/5", "/api/v1/crud/demo/$ref:0/5"),
        ("demo/posts/x$ref:0", "/api/v1/crud/demo/posts/x$ref:0"),
    ] {
        let delete = format!(r#"{{"method": "DELETE", "path": "{path}"}}"#);
        let done = resolved(&[AUTHOR, TAGS, &delete], &ids);
        assert_eq!(done[2], alone("DELETE", expected, ""), "{path}");
    }
}

#[test]
fn the_placeholder_of_a_reference_is_never_what_runs() {
    let batch = of(&[
        AUTHOR,
        r#"{"method": "GET", "path": "demo/authors/$ref:0"}"#,
    ])
    .unwrap();
    let refused = batch.steps()[1].resolve(&mut |_| Err(invalid("none".to_owned())));
    assert_eq!(refused.unwrap_err().message(), "none");
    assert_eq!(
        batch.steps()[1].references(),
        [Reference {
            operation: 0,
            row: None,
            place: Place::Id
        }]
    );
}

#[test]
fn a_wrong_reference_is_refused_by_its_operation() {
    let read = r#"{"method": "GET", "path": "demo/authors?limit=1"}"#;
    for (operation, says) in [
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 3}}}"#,
            "does not come before",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 9}}}"#,
            "does not come before",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 2}}}"#,
            "is no insert",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 1}}}"#,
            "without saying which",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 1, "row": 2}}}"#,
            "row 2",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 0, "row": 0}}}"#,
            "a single record",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": "0"}}}"#,
            "can't be read",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": -1}}}"#,
            "can't be read",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 0.0}}}"#,
            "can't be read",
        ),
        (
            r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 0, "field": "id"}}}"#,
            "\"field\"",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b", "body": {"deleteKeyValues": [{"key": "x", "value": {"$ref": 5}}]}}"#,
            "operation 5",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b/$ref:4"}"#,
            "does not come before",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b/$ref"}"#,
            "can't be read",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b/$ref:"}"#,
            "can't be read",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b/$ref:+0"}"#,
            "can't be read",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b/$ref:1:1:1"}"#,
            "can't be read",
        ),
        (
            r#"{"method": "DELETE", "path": "a/b/1,$refs"}"#,
            "can't be read",
        ),
    ] {
        let refused = of(&[AUTHOR, TAGS, read, operation]).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidBody, "{operation}");
        assert!(
            refused.message().starts_with("Operation 3: "),
            "{refused:?}"
        );
        assert!(refused.message().contains(says), "{operation}: {refused:?}");
        assert_eq!(refused.details().unwrap().operation, Some(3));
    }
}

/// Operations that are refused, and how.
const FAULTY: &[(&str, ErrorCode)] = &[
    ("5", ErrorCode::InvalidBody),
    ("{}", ErrorCode::InvalidBody),
    (r#"{"method": "POST"}"#, ErrorCode::InvalidBody),
    (r#"{"method": "POST", "path": 5}"#, ErrorCode::InvalidBody),
    (
        r#"{"method": "POST", "path": "a/b", "body": {}, "headers": {}}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "POST", "path": "a/b", "body": []}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "POST", "path": "a/b"}"#,
        ErrorCode::InvalidJson,
    ),
    (
        r#"{"method": "GET", "path": "a/b", "body": {}}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "HEAD", "path": "a/b"}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "OPTIONS", "path": "a/b"}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "GET", "path": "a/b/_schema"}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "POST", "path": "/api/v1/sql", "body": {"query": "SELECT 1"}}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "POST", "path": "/api/v1/batch", "body": {"operations": []}}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "GET", "path": "/api/v1/media"}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "GET", "path": "/crud/a/b"}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "GET", "path": "a"}"#,
        ErrorCode::RouteNotFound,
    ),
    (
        r#"{"method": "GET", "path": "a/b/c/d"}"#,
        ErrorCode::RouteNotFound,
    ),
    (
        r#"{"method": "PUT", "path": "a/b/_schema"}"#,
        ErrorCode::MethodNotAllowed,
    ),
    (
        r#"{"method": "GET", "path": "a/b?nonsense=1"}"#,
        ErrorCode::InvalidQueryOption,
    ),
    (
        r#"{"method": "GET", "path": "a/%zz"}"#,
        ErrorCode::InvalidIdentifier,
    ),
    (
        r#"{"method": "PUT", "path": "a/b/1", "body": {}}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "DELETE", "path": "a/b"}"#,
        ErrorCode::InvalidBody,
    ),
    (
        r#"{"method": "DELETE", "path": "a/b", "body": {"deleteKeyValues": []}}"#,
        ErrorCode::InvalidFilter,
    ),
];

#[test]
fn what_is_wrong_with_one_operation_has_its_own_code() {
    for (operation, code) in FAULTY {
        let refused = of(&[AUTHOR, operation]).unwrap_err();
        assert_eq!(refused.code(), *code, "{operation}: {refused:?}");
        assert!(
            refused.message().starts_with("Operation 1: "),
            "{refused:?}"
        );
        assert_eq!(refused.details().unwrap().operation, Some(1));
    }
}

#[test]
fn what_is_wrong_with_the_whole_names_no_operation() {
    for (body, code) in [
        ("", ErrorCode::InvalidJson),
        ("{", ErrorCode::InvalidJson),
        ("[]", ErrorCode::InvalidBody),
        ("{}", ErrorCode::InvalidBody),
        (r#"{"operations": {}}"#, ErrorCode::InvalidBody),
        (r#"{"operations": []}"#, ErrorCode::InvalidBody),
        (
            r#"{"operations": [], "atomic": true}"#,
            ErrorCode::InvalidBody,
        ),
        (
            r#"{"atomic": true, "operations": []}"#,
            ErrorCode::InvalidBody,
        ),
    ] {
        let refused = parse(body).unwrap_err();
        assert_eq!(refused.code(), code, "{body}");
        assert_eq!(refused.details(), None, "{body}");
    }
}

#[test]
fn a_batch_holds_a_thousand_operations_and_no_more() {
    assert_eq!(
        of(&[AUTHOR; BATCH_OPERATIONS_MAX_COUNT])
            .unwrap()
            .steps()
            .len(),
        BATCH_OPERATIONS_MAX_COUNT
    );
    let refused = of(&[AUTHOR; BATCH_OPERATIONS_MAX_COUNT + 1]).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidBody);
    assert!(refused.message().contains("1000 operations"));
}

#[test]
fn small_operations_that_would_take_gigabytes_together_are_refused() {
    // Rows that name a field each: 900 of them have 810,000 cells, in 12 KB.
    let rows: Vec<String> = (0..900).map(|at| format!(r#"{{"f{at}": 1}}"#)).collect();
    let wide = format!(
        r#"{{"method": "POST", "path": "a/b", "body": {{"batchData": [{}]}}}}"#,
        rows.join(",")
    );
    assert!(of(&[&wide, &wide]).is_ok());
    assert_eq!(
        of(&[&wide, &wide, &wide]).unwrap_err().code(),
        ErrorCode::InvalidBody
    );
    let many = format!(
        r#"{{"method": "POST", "path": "a/b", "body": {{"j": [{}]}}}}"#,
        vec!["1"; BATCH_COMMAS_MAX_COUNT + 2].join(",")
    );
    assert_eq!(of(&[&many]).unwrap_err().code(), ErrorCode::InvalidBody);
}
