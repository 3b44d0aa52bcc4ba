//! Tests of references to earlier operations of a batch.

use super::{AUTHOR, TAGS, alone, of};
use crate::error::ErrorCode;
use crate::json::Value;
use crate::operation::RecordOperation;
use crate::operation::batch::{Position, Reference, invalid};
use crate::operation::filter::{Comparison, Condition, Test};
use crate::operation::write::WriteTarget;

fn resolved(operations: &[&str], ids: &[&str]) -> Vec<RecordOperation> {
    let batch = of(operations).unwrap();
    let mut id = |reference: Reference| Ok(ids[reference.operation + reference.row.unwrap_or(0)].to_owned());
    let steps = batch.steps().iter();
    steps.map(|step| step.resolve(&mut id).unwrap().into_owned()).collect()
}

#[test]
fn a_reference_takes_the_place_of_a_value() {
    let done = resolved(
        &[
            AUTHOR,
            r#"{"method": "POST", "path": "demo/posts", "body": {"author": {"$ref": 0}, "b": {"x": {"$ref": 0}}}}"#,
            r#"{"method": "POST", "path": "demo/posts", "body": {"batchData": [{"author": {"$ref": 0}}, {"$ref": {"$ref": 1}}]}}"#,
            r#"{"method": "PUT", "path": "demo/posts/5", "body": {"author": {"\u0024ref": 0}}}"#,
            r#"{"method": "PUT", "path": "demo/posts", "body": {"data": {"author": {"$ref": 0}},
                "updateKeyValues": [{"key": "author", "value": [{"$ref": 0}, 8]}]}}"#,
        ],
        &["7", "\"x y\""],
    );
    assert_eq!(done[1], alone("POST", "/api/v1/crud/demo/posts", r#"{"author": 7, "b": {"x": {"$ref": 0}}}"#));
    assert_eq!(done[2], alone("POST", "/api/v1/crud/demo/posts", r#"{"batchData": [{"author": 7}, {"$ref": "x y"}]}"#));
    assert_eq!(done[3], alone("PUT", "/api/v1/crud/demo/posts/5", r#"{"author": 7}"#));
    let many = r#"{"data": {"author": 7}, "updateKeyValues": [{"key": "author", "value": [7, 8]}]}"#;
    assert_eq!(done[4], alone("PUT", "/api/v1/crud/demo/posts", many));
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
    let RecordOperation::Delete(delete) = &done[1] else {
        panic!("{done:?}");
    };
    let WriteTarget::Matching(Condition::Test(field, Test::Compare(Comparison::Equal, value))) = &delete.target else {
        panic!("{delete:?}");
    };
    assert_eq!((field.field().as_str(), value), ("$ref", &Value::Number("7".into())));
    let body =
        r#"{"query": {"$ref": 7, "b": {"value": [7, 8], "equality": "IN"}, "g": {"__query": {"$ref": {"value": 7}}}}}"#;
    assert_eq!(done[2], alone("POST", "/api/v1/crud/demo/posts/query", body));
}

#[test]
fn a_reference_takes_the_place_of_an_id_or_a_part_of_one() {
    let ids = ["\"a,b/ü\"", "8", "9"];
    for (path, expected) in [
        ("demo/posts/$ref:0", "/api/v1/crud/demo/posts/a,b%2F%C3%BC"),
        ("demo/posts/$ref:1:1", "/api/v1/crud/demo/posts/9"),
        ("demo/posts/$ref:0,x,$ref:1:0", "/api/v1/crud/demo/posts/a%2Cb%2F%C3%BC,x,8"),
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
fn an_id_that_reads_like_a_route_is_an_id() {
    let read = r#"{"method": "GET", "path": "demo/posts/$ref:0"}"#;
    for id in ["_schema", "query", "..", "a?b#c", "50%", "$ref:0"] {
        let done = resolved(&[AUTHOR, read], &[&serde_json::Value::from(id).to_string()]);
        let RecordOperation::ReadOne(read) = &done[1] else {
            panic!("{id}: {done:?}");
        };
        assert_eq!(read.id.whole(), id);
    }
}

#[test]
fn the_placeholder_of_a_reference_is_never_what_runs() {
    let batch = of(&[AUTHOR, r#"{"method": "GET", "path": "demo/authors/$ref:0"}"#]).unwrap();
    let refused = batch.steps()[1].resolve(&mut |_| Err(invalid("none".to_owned())));
    assert_eq!(refused.unwrap_err().message(), "none");
    assert_eq!(batch.steps()[1].references(), [Reference { operation: 0, row: None, position: Position::Id }]);
}

#[test]
fn a_wrong_reference_is_refused_by_its_operation() {
    let read = r#"{"method": "GET", "path": "demo/authors?limit=1"}"#;
    for (operation, says) in [
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 3}}}"#, "does not come before"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 9}}}"#, "does not come before"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 2}}}"#, "is no insert"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 1}}}"#, "without saying which"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 1, "row": 2}}}"#, "row 2"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 0, "row": 0}}}"#, "a single record"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": "0"}}}"#, "can't be read"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": -1}}}"#, "can't be read"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 0.0}}}"#, "can't be read"),
        (r#"{"method": "POST", "path": "a/b", "body": {"x": {"$ref": 0, "field": "id"}}}"#, "\"field\""),
        (
            r#"{"method": "DELETE", "path": "a/b", "body": {"deleteKeyValues": [{"key": "x", "value": {"$ref": 5}}]}}"#,
            "operation 5",
        ),
        (r#"{"method": "DELETE", "path": "a/b/$ref:4"}"#, "does not come before"),
        (r#"{"method": "DELETE", "path": "a/b/$ref"}"#, "can't be read"),
        (r#"{"method": "DELETE", "path": "a/b/$ref:"}"#, "can't be read"),
        (r#"{"method": "DELETE", "path": "a/b/$ref:+0"}"#, "can't be read"),
        (r#"{"method": "DELETE", "path": "a/b/$ref:1:1:1"}"#, "can't be read"),
        (r#"{"method": "DELETE", "path": "a/b/1,$refs"}"#, "can't be read"),
    ] {
        let refused = of(&[AUTHOR, TAGS, read, operation]).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidBody, "{operation}");
        assert!(refused.message().starts_with("Operation 3: "), "{refused:?}");
        assert!(refused.message().contains(says), "{operation}: {refused:?}");
        assert_eq!(refused.details().unwrap().operation, Some(3));
    }
}
