//! Tests of how tool calls are turned into API requests.

use super::*;

fn asked(tool: ToolName, arguments: Value) -> Result<ApiRequest, Problem> {
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    request(tool, arguments)
}

#[test]
fn a_call_is_one_api_request() {
    use ToolName::{DescribeTable, ListTables, ReadRecords, RunSql, UploadFile, WriteRecords};
    let t = |more: Value| {
        let mut all = json!({"database": "d", "table": "t"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    for (tool, arguments, expected, body) in [
        (ListTables, json!({}), "GET /api/v1/crud", Value::Null),
        (ListTables, json!({"database": "a/b"}), "GET /api/v1/crud/a%2Fb", Value::Null),
        (DescribeTable, json!({"database": "d", "table": ".."}), "GET /api/v1/crud/d/%2E%2E/_schema", Value::Null),
        (ReadRecords, t(json!({"id": 7})), "GET /api/v1/crud/d/t/7", Value::Null),
        (ReadRecords, t(json!({"id": ["a,b", 2]})), "GET /api/v1/crud/d/t/a%2Cb,2", Value::Null),
        (
            ReadRecords,
            t(json!({"id": "x y", "selectFields": ["id"]})),
            "GET /api/v1/crud/d/t/x%20y?selectFields=%5B%22id%22%5D",
            Value::Null,
        ),
        (ReadRecords, t(json!({})), "POST /api/v1/crud/d/t/query", json!({"limit": 100})),
        (
            ReadRecords,
            t(json!({"limit": 2, "query": {"a": 1}})),
            "POST /api/v1/crud/d/t/query",
            json!({"limit": 2, "query": {"a": 1}}),
        ),
        (
            WriteRecords,
            t(json!({"action": "insert", "records": [{"a": 1}], "on_conflict": "update", "dry_run": true})),
            "POST /api/v1/crud/d/t?dryRun=true&onConflict=update",
            json!({"batchData": [{"a": 1}]}),
        ),
        (
            WriteRecords,
            t(json!({"action": "update", "id": 1, "data": {"a": 2}, "returning": ["*"], "dry_run": false})),
            "PUT /api/v1/crud/d/t/1?returning=%2A",
            json!({"a": 2}),
        ),
        (
            WriteRecords,
            t(json!({"action": "update", "query": {"a": 1}, "data": {"a": 2}, "max_affected": 5})),
            "PUT /api/v1/crud/d/t?maxAffected=5",
            json!({"query": {"a": 1}, "data": {"a": 2}}),
        ),
        (WriteRecords, t(json!({"action": "delete", "id": "x"})), "DELETE /api/v1/crud/d/t/x", Value::Null),
        (
            WriteRecords,
            t(json!({"action": "delete", "where": {"a": 1}, "dry_run": true})),
            "DELETE /api/v1/crud/d/t?dryRun=true",
            json!({"query": {"a": 1}}),
        ),
        (
            RunSql,
            json!({"query": "SELECT ?", "params": [1]}),
            "POST /api/v1/sql",
            json!({"query": "SELECT ?", "params": [1]}),
        ),
        (
            UploadFile,
            json!({"name": "a.txt", "text": "x", "folder": "f", "private": true}),
            "POST /api/v1/media",
            json!({"folder": "f", "private": true, "type": "file",
                   "media": [{"name": "a.txt", "base64": "data:text/plain;base64,eA=="}]}),
        ),
        (
            UploadFile,
            json!({"name": "a.png", "base64": "eA=="}),
            "POST /api/v1/media",
            json!({"type": "image", "media": [{"name": "a.png", "base64": "data:image/png;base64,eA=="}]}),
        ),
    ] {
        let request = asked(tool, arguments.clone()).unwrap_or_else(|problem| panic!("{arguments}: {problem}"));
        assert_eq!(format!("{} {}", request.method, request.target), expected, "{arguments}");
        assert_eq!(request.body.unwrap_or_default(), body, "{arguments}");
    }
}

#[test]
fn an_argument_that_is_null_counts_as_not_given() {
    use ToolName::{ReadRecords, RunSql, WriteRecords};
    for (tool, arguments, nulls) in [
        (
            ReadRecords,
            json!({"database": "d", "table": "t", "query": {"a": null}}),
            &["id", "limit", "order", "after"][..],
        ),
        (WriteRecords, json!({"database": "d", "table": "t", "action": "delete", "id": 1}), &["query", "data"]),
        (RunSql, json!({"query": "SELECT 1"}), &["params", "database"]),
    ] {
        let mut filled = arguments.clone();
        for name in nulls {
            filled[name] = Value::Null;
        }
        let [filled, expected] = [filled, arguments].map(|given| asked(tool, given).unwrap());
        assert_eq!((filled.method, filled.target, filled.body), (expected.method, expected.target, expected.body));
    }
}

#[test]
fn a_wrong_argument_is_named() {
    use ToolName::{DescribeTable, ReadRecords, RunSql, UploadFile, WriteRecords};
    for (tool, arguments, message) in [
        (DescribeTable, json!({"database": "d"}), "describe_table: table is missing."),
        (DescribeTable, json!({"database": 1, "table": "t"}), "describe_table: database is no text."),
        (RunSql, json!({}), "run_sql: query is missing."),
        (RunSql, json!({"query": "SELECT 1", "dry_run": true}), "run_sql: there is no argument \"dry_run\"."),
        (
            ReadRecords,
            json!({"database": "d", "table": "t", "id": {}}),
            "read_records: id is no text, number or list of these.",
        ),
        (
            WriteRecords,
            json!({"database": "d", "table": "t", "action": "drop"}),
            "write_records: there is no action \"drop\".",
        ),
        (
            WriteRecords,
            json!({"database": "d", "table": "t", "action": "insert"}),
            "write_records: insert needs records.",
        ),
        (
            WriteRecords,
            json!({"database": "d", "table": "t", "action": "delete"}),
            "write_records: delete needs id or query.",
        ),
        (
            WriteRecords,
            json!({"database": "d", "table": "t", "action": "delete", "id": 1, "query": {}}),
            "write_records: give id or query, not both.",
        ),
        (
            WriteRecords,
            json!({"database": "d", "table": "t", "action": "delete", "id": 1, "records": []}),
            "write_records: \"records\" does not go with delete.",
        ),
        (
            WriteRecords,
            json!({"database": "d", "table": "t", "action": "delete", "id": null, "query": null}),
            "write_records: delete needs id or query.",
        ),
        (UploadFile, json!({"name": "a"}), "upload_file: give either text or base64."),
    ] {
        let problem = asked(tool, arguments.clone()).unwrap_err();
        assert_eq!(problem.message(), message, "{arguments}");
        assert!(problem.hint().is_some());
    }
    let near = asked(RunSql, json!({"query": "x", "param": []})).unwrap_err();
    assert_eq!(near.hint(), Some("Did you mean \"params\"?"));
}

#[test]
fn the_offset_of_a_read_is_read_as_the_api_reads_it() {
    for (options, offset) in [
        (json!({}), 0),
        (json!({"offset": 7}), 7),
        (json!({"offset": "7"}), 7),
        (json!({"offset": 7.0}), 7),
        (json!({"page": 3, "limit": 10}), 20),
        (json!({"page": "3", "limit": 10.0}), 20),
        (json!({"page": 3.0}), 200),
    ] {
        let mut arguments = json!({"database": "d", "table": "t"});
        arguments.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        assert_eq!(asked(ToolName::ReadRecords, arguments).unwrap().offset(), offset, "{options}");
    }
}
