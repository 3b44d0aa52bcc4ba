//! Tests tool calls: each becomes an API request with the key of the MCP request.

use super::{message, outcome, request, result, tool};
use crate::case::eventually;
use crate::host::Host;
use crate::media::test_folder::TestFolder;
use crate::roles::{Caller, create_role, role_of};
use crate::service::shared;
use crate::test_db::TestDb;
use serde_json::{Value, json};
use std::time::Duration;

cases! {
    Both: [
        errors_of_the_api_are_errors_of_the_tool,
        a_result_has_a_structure_where_the_version_knows_it,
        a_long_answer_is_truncated_after_a_record,
        a_record_that_is_too_large_can_be_passed_over,
        a_role_binds_an_agent,
        a_tool_call_counts_as_its_api_requests,
        a_file_that_an_agent_replaces_is_fresh,
    ],
    Origin: [
        a_call_ends_when_its_client_disconnects,
    ],
}

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40) UNIQUE, secret VARCHAR(40))";

async fn called(host: Host, name: &str, arguments: Value) -> Value {
    result(&tool(host, &shared().full_key, name, &arguments).send().await)
}

async fn errors_of_the_api_are_errors_of_the_tool(host: Host) {
    let db = TestDb::new(host, &[TABLE, "INSERT INTO t (name) VALUES ('a')"]).await;
    let on = |more: Value| {
        let mut all = json!({"database": db.name, "table": "t"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    for (name, arguments, code, says) in [
        ("describe_table", json!({"database": db.name, "table": "tt"}), "table_not_found", "tt"),
        ("list_tables", json!({"database": "default_nowhere"}), "database_not_found", "default_nowhere"),
        ("read_records", on(json!({"query": {"nam": 1}})), "unknown_field", "nam"),
        ("read_records", on(json!({"lmit": 1})), "invalid_body", "Did you mean \\\"limit\\\"?"),
        ("read_records", on(json!({"limit": -1})), "invalid_query_option", "limit"),
        ("read_records", on(json!({"id": 99})), "record_not_found", "no record"),
        ("read_records", on(json!({"id": "9".repeat(66_000)})), "uri_too_long", "query"),
        ("read_records", on(json!({"id": "9".repeat(20_000)})), "uri_too_long", "query"),
        ("read_records", json!({"table": "t"}), "invalid_body", "database is missing"),
        ("write_records", on(json!({"action": "insert", "records": [{"name": "a"}]})), "duplicate_key", "name"),
        (
            "write_records",
            on(json!({"action": "delete", "query": {"id": 1}, "max_affected": 0})),
            "too_many_affected",
            "maxAffected",
        ),
        ("run_sql", json!({"query": "SELEC 1"}), "sql_error", "SELEC"),
    ] {
        let result = called(host, name, arguments.clone()).await;
        let error = outcome(&result, Some(code));
        assert!(error["error"]["message"].is_string() && error["error"]["requestId"].is_string(), "{error}");
        assert!(error.to_string().contains(says), "{name} {arguments}: {error}");
    }
    assert_eq!(db.value("SELECT COUNT(*) FROM t").await, 1);
}

async fn a_result_has_a_structure_where_the_version_knows_it(host: Host) {
    let db = TestDb::new(host, &[TABLE, "INSERT INTO t (name) VALUES ('a')"]).await;
    let of = |name: &str| {
        let arguments = json!({"database": db.name, "table": "t", "selectFields": [name]});
        tool(host, &shared().full_key, "read_records", &arguments)
    };
    for (version, has_structure) in
        [(None, false), (Some("2025-03-26"), false), (Some("2025-06-18"), true), (Some("2025-11-25"), true)]
    {
        let versioned = |name: &str| match version {
            Some(version) => of(name).header("mcp-protocol-version", version),
            None => of(name),
        };
        let read = result(&versioned("name").send().await);
        let expected = json!({"success": true, "payload": [{"name": "a"}]});
        assert_eq!(outcome(&read, None), expected, "{version:?}");
        assert_eq!(read.get("structuredContent"), has_structure.then_some(&expected), "{version:?}");
        let failed = result(&versioned("nam").send().await);
        let error = outcome(&failed, Some("unknown_field"));
        assert_eq!(failed.get("structuredContent"), has_structure.then_some(&error), "{version:?}");
    }
}

async fn a_long_answer_is_truncated_after_a_record(host: Host) {
    let long = "INSERT INTO long_ (id, text) SELECT seq, REPEAT('\"},{', 1000) FROM seq_1_to_200";
    let db = TestDb::new(host, &["CREATE TABLE long_ (id INT PRIMARY KEY, text TEXT)", long]).await;
    let mut arguments = json!({"database": db.name, "table": "long_", "limit": 200});
    let answer = outcome(&called(host, "read_records", arguments.clone()).await, None);
    let records = answer["payload"].as_array().expect("a list");
    assert!((10..200).contains(&records.len()), "{}", records.len());
    assert_eq!(answer["truncated"]["records"], records.len());
    assert!(answer["truncated"]["hint"].as_str().is_some_and(|hint| hint.contains("limit")));
    assert_eq!(records.last().expect("a record")["id"], records.len());
    // Follows the hint of the truncated answer.
    arguments["limit"] = json!(records.len());
    let page = outcome(&called(host, "read_records", arguments.clone()).await, None);
    assert!(page.get("truncated").is_none());
    arguments["after"] = page["next"].clone();
    let rest = outcome(&called(host, "read_records", arguments).await, None);
    assert_eq!(rest["payload"][0]["id"], records.len() + 1);
    let sql = json!({"query": "SELECT * FROM long_ ORDER BY id", "database": db.name});
    let rows = outcome(&called(host, "run_sql", sql).await, None);
    assert!(rows["truncated"]["hint"].as_str().is_some_and(|hint| hint.contains("LIMIT")), "{}", rows["truncated"]);
    let one = "INSERT INTO long_ VALUES (1000, NULL); ALTER TABLE long_ MODIFY text LONGTEXT; \
               UPDATE long_ SET text = REPEAT('x', 300000) WHERE id = 1000";
    for statement in one.split("; ") {
        db.exec(statement).await;
    }
    let record = json!({"database": db.name, "table": "long_", "id": 1000});
    let refused = outcome(&called(host, "read_records", record).await, Some("body_too_large"));
    assert!(refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("selectFields")));
}

async fn a_record_that_is_too_large_can_be_passed_over(host: Host) {
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE big (id INT PRIMARY KEY, text LONGTEXT)",
            "CREATE VIEW shown AS SELECT * FROM big",
            "INSERT INTO big VALUES (1, REPEAT('x', 300000)), (2, 'y'), (3, 'z')",
        ],
    )
    .await;
    for table in ["big", "shown"] {
        let mut arguments = json!({"database": db.name, "table": table});
        let stuck = outcome(&called(host, "read_records", arguments.clone()).await, None);
        assert_eq!((&stuck["payload"], &stuck["truncated"]["records"]), (&json!([]), &json!(0)));
        let hint = stuck["truncated"]["hint"].as_str().expect("a hint");
        assert!(hint.contains("omitFields") && hint.contains("`limit` 1"), "{hint}");
        // Follows the hint.
        arguments["omitFields"] = json!(["text"]);
        arguments["limit"] = json!(1);
        let passed = outcome(&called(host, "read_records", arguments).await, None);
        let mut rest = json!({"database": db.name, "table": table});
        match passed.get("next") {
            Some(next) => rest["after"] = next.clone(),
            None => rest["offset"] = passed["nextOffset"].clone(),
        }
        let rest = outcome(&called(host, "read_records", rest).await, None);
        assert_eq!(rest["payload"], json!([{"id": 2, "text": "y"}, {"id": 3, "text": "z"}]));
    }
    let by_id = json!({"database": db.name, "table": "big", "id": 1});
    let hint = outcome(&called(host, "read_records", by_id).await, Some("body_too_large"))["error"]["hint"].clone();
    assert_eq!(hint, "Leave the long fields of this record out by `omitFields` or `selectFields`.");
}

async fn a_role_binds_an_agent(host: Host) {
    let db = TestDb::new(host, &[TABLE, "CREATE TABLE hidden (id INT PRIMARY KEY)"]).await;
    db.exec("INSERT INTO t (name, secret) VALUES ('a', 's1'), ('b', 's2')").await;
    let rule = json!({"read": {"fields": {"omit": ["secret"]}, "rows": {"name": "a"}}});
    let caller = Caller::new(&db, [("t", rule)], json!({}));
    let call = async |name: &str, arguments: Value| result(&tool(host, &caller.key, name, &arguments).send().await);
    let tools = result(&message(host, &request("tools/list", &json!({}))).key(&caller.key).send().await);
    let names: Vec<_> = tools["tools"].as_array().expect("a list").iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["list_tables", "describe_table", "read_records"]);
    let listed = outcome(&call("list_tables", json!({})).await, None);
    assert_eq!(listed["payload"][0]["tables"].as_array().map(Vec::len), Some(1), "{listed}");
    let of = |table: &str, more: Value| {
        let mut all = json!({"database": db.name, "table": table});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let described = outcome(&call("describe_table", of("t", json!({}))).await, None);
    assert!(!described.to_string().contains("secret"), "{described}");
    let read = outcome(&call("read_records", of("t", json!({}))).await, None);
    assert_eq!(read["payload"], json!([{"id": 1, "name": "a"}]));
    for (name, arguments, code) in [
        ("describe_table", of("hidden", json!({})), "table_not_found"),
        ("read_records", of("hidden", json!({})), "table_not_found"),
        ("read_records", of("t", json!({"selectFields": ["secret"]})), "unknown_field"),
        ("write_records", of("t", json!({"action": "delete", "id": 1})), "role_forbids"),
        (
            "write_records",
            of("t", json!({"action": "insert", "records": [{"name": "c"}], "dry_run": true})),
            "role_forbids",
        ),
        ("run_sql", json!({"query": "SELECT secret FROM t", "database": db.name}), "role_forbids"),
        ("upload_file", json!({"name": "a.txt", "text": "x"}), "role_forbids"),
    ] {
        outcome(&call(name, arguments).await, Some(code));
    }
    let resources = result(&message(host, &request("resources/list", &json!({}))).key(&caller.key).send().await);
    assert_eq!(resources["resources"][0]["uri"], format!("selkie://schema/{}/t", db.name));
    assert_eq!(resources["resources"].as_array().map(Vec::len), Some(1));
    let uri = format!("selkie://schema/{}/hidden", db.name);
    let read = message(host, &request("resources/read", &json!({"uri": uri}))).key(&caller.key).send().await;
    assert_eq!(read.json()["error"]["code"], -32002, "{read}");
}

async fn a_tool_call_counts_as_its_api_requests(host: Host) {
    let db = TestDb::new(host, &[TABLE]).await;
    let mut role = role_of(&db, [("t", json!({"read": true}))]);
    role["rateLimit"] = json!("5/1h");
    let caller = Caller::with_role(&db, &create_role(&role), json!({}));
    let left = async |body: &Value| {
        let answer = message(host, body).key(&caller.key).send().await;
        assert_eq!(answer.status, 200, "{answer}");
        answer.header("ratelimit").and_then(|limit| limit.split("r=").nth(1)?.chars().next()).expect("a limit")
    };
    let ping = request("ping", &json!({}));
    let read = json!({"name": "read_records", "arguments": {"database": db.name, "table": "t"}});
    let read = request("tools/call", &read);
    let listed = request("tools/call", &json!({"name": "list_tables"}));
    assert_eq!(left(&ping).await, '4');
    assert_eq!(left(&read).await, '3');
    // `list_tables` made two requests: it listed the databases, then the tables of the only database.
    assert_eq!(left(&listed).await, '2');
    // The second read of the batch is counted too, and takes the last request.
    let batch = json!([read, read, read]);
    let answer = message(host, &batch).key(&caller.key).send().await;
    let limited: Vec<_> =
        answer.json().as_array().expect("a list").iter().map(|one| one["result"]["isError"].clone()).collect();
    assert_eq!(limited, [json!(false), json!(true), json!(true)], "{answer}");
    let refused = message(host, &ping).key(&caller.key).send().await;
    refused.refused(shared::error::ErrorCode::RateLimited);
    assert!(refused.header("retry-after").is_some());
}

async fn a_file_that_an_agent_replaces_is_fresh(host: Host) {
    let shelf = TestFolder::new(host);
    let upload = |text: &str| json!({"name": "a.txt", "text": text, "folder": shelf.folder, "update": true});
    let first = outcome(&called(host, "upload_file", upload("one")).await, None);
    let url = first["payload"][0]["url"].as_str().expect("a URL");
    let plain = json!(url.split('?').next());
    assert_eq!(shelf.fetch(&plain).await.body, b"one");
    outcome(&called(host, "upload_file", upload("two")).await, None);
    assert_eq!(shelf.fetch(&plain).await.body, b"two");
}

async fn a_call_ends_when_its_client_disconnects(host: Host) {
    let db = TestDb::new(host, &[]).await;
    let mark = format!("of_{}", db.name);
    let running = async || {
        let query = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE CONCAT('%SLEEP(500) /* ', '{mark}%')"
        );
        db.value(&query).await
    };
    let sleep = json!({"query": format!("SELECT SLEEP(500) /* {mark} */")});
    let call = tokio::spawn(tool(host, &shared().full_key, "run_sql", &sleep).attempt());
    eventually("the statement runs", Duration::from_secs(30), || async { (running().await == 1).then_some(()) }).await;
    call.abort();
    eventually("the statement is killed", Duration::from_secs(30), || async { (running().await == 0).then_some(()) })
        .await;
}
