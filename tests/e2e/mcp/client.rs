//! The npm package @modelcontextprotocol/sdk, the protocol's reference client.

use super::outcome;
use crate::host::Host;
use crate::media::test_folder::TestFolder;
use crate::service::{shared, workspace};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use std::process::Command;

cases! {
    Both: [
        a_client_reads_and_writes,
        a_client_with_a_read_key_is_offered_reads_only,
    ],
}

/// Connects with a key, runs the steps, and returns what the client prints.
async fn connect(host: Host, key: &str, steps: Value) -> Value {
    let mut client = Command::new("node");
    client
        .arg(workspace().join("tests/clients/mcp.mjs"))
        .args([format!("{}/mcp", host.url()), steps.to_string()])
        .env("SELKIE_KEY", key);
    let output = tokio::task::spawn_blocking(move || client.output()).await.expect("a task").expect("node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

async fn a_client_reads_and_writes(host: Host) {
    let shelf = TestFolder::new(host);
    let db = TestDb::new(
        host,
        &[
            "CREATE TABLE authors (id INT PRIMARY KEY, name VARCHAR(40))",
            "CREATE TABLE posts (id INT PRIMARY KEY AUTO_INCREMENT, author_id INT, views INT NOT NULL DEFAULT 0, \
             FOREIGN KEY (author_id) REFERENCES authors (id))",
            "INSERT INTO authors VALUES (1, 'Ada'), (2, 'Bo')",
            "INSERT INTO posts (author_id, views) VALUES (1, 5), (2, 7)",
        ],
    )
    .await;
    let call = |name: &str, mut arguments: Value, table: &str| {
        if !table.is_empty() {
            arguments["database"] = json!(db.name);
            arguments["table"] = json!(table);
        }
        json!(["callTool", {"name": name, "arguments": arguments}])
    };
    let uri = format!("selkie://schema/{}/posts", db.name);
    let write = |more: Value| call("write_records", more, "posts");
    let steps = json!([
        ["listTools"],
        ["listResourceTemplates"],
        ["readResource", {"uri": uri}],
        call("list_tables", json!({"database": db.name}), ""),
        call("describe_table", json!({}), "posts"),
        call("read_records", json!({"include": ["author"], "order": [{"field": "views", "strategy": "DESC"}]}), "posts"),
        call("read_records", json!({"id": 1, "selectFields": ["views"]}), "posts"),
        write(json!({"action": "insert", "records": [{"author_id": 1}, {"author_id": 2}], "dry_run": true})),
        write(json!({"action": "insert", "records": [{"author_id": 1}]})),
        write(json!({"action": "update", "query": {"author_id": 1}, "data": {"views": {"$add": 1}}, "dry_run": true})),
        write(json!({"action": "update", "id": 2, "data": {"views": 9}, "returning": ["id", "views"]})),
        write(json!({"action": "delete", "id": 1, "dry_run": true})),
        write(json!({"action": "delete", "query": {"id": 1}})),
        call("run_sql", json!({"query": "SELECT ? + 1 AS n", "params": [41]}), ""),
        call("upload_file", json!({"name": "note.txt", "text": "Low water.", "folder": shelf.folder}), ""),
        ["callTool", {"name": "nothing"}],
        ["readResource", {"uri": "selkie://schema/nowhere/nothing"}],
    ]);
    let printed = connect(host, &shared().full_key, steps).await;
    assert_eq!(printed["server"]["name"], "selkie");
    assert_eq!(printed["version"], "2025-11-25");
    assert!(printed["instructions"].as_str().is_some_and(|text| text.contains("dry_run")));
    let mut results = printed["results"].as_array().expect("a list").iter();
    let mut next = || results.next().expect("a result");
    let tools = next()["tools"].as_array().expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].clone()).collect();
    let expected = ["list_tables", "describe_table", "read_records", "write_records", "run_sql", "upload_file"];
    assert_eq!(names, expected);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["type"], "object");
        let reads = tool["annotations"]["readOnlyHint"] == true;
        assert_eq!(tool["annotations"]["destructiveHint"] == true, !reads, "{tool}");
    }
    assert_eq!(next()["resourceTemplates"][0]["uriTemplate"], "selkie://schema/{database}/{table}");
    let contents = &next()["contents"][0];
    assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("application/json")));
    assert!(contents["text"].as_str().is_some_and(|text| text.contains("\"author_id\"")));
    let mut payload = || outcome(next(), None)["payload"].take();
    let tables = payload();
    assert_eq!((&tables[0]["name"], &tables[1]["name"]), (&json!("authors"), &json!("posts")));
    assert_eq!(payload()["relations"][0]["name"], "author");
    let author = json!({"id": 2, "name": "Bo"});
    assert_eq!(payload()[0], json!({"id": 2, "author_id": 2, "views": 7, "author": author}));
    assert_eq!(payload(), json!({"views": 5}));
    assert_eq!(payload(), json!(2));
    let inserted = payload();
    assert_eq!(inserted.as_array().map(Vec::len), Some(1), "{inserted}");
    assert_eq!(payload(), json!(2));
    assert_eq!(payload(), json!({"id": 2, "views": 9}));
    assert_eq!(payload(), json!(1));
    assert_eq!(payload(), json!(1));
    assert_eq!(payload(), json!([{"n": 42}]));
    let file = payload();
    assert_eq!(shelf.fetch(&file[0]["url"]).await.body, b"Low water.");
    assert_eq!(next()["code"], -32602);
    assert_eq!(next()["code"], -32002);
    assert_eq!(db.exec("SELECT views FROM posts ORDER BY id").await, json!([{"views": 9}, {"views": 0}]));
}

async fn a_client_with_a_read_key_is_offered_reads_only(host: Host) {
    let steps = json!([
        ["listTools"],
        ["listResources"],
        ["callTool", {"name": "run_sql", "arguments": {"query": "SELECT 1"}}],
        ["callTool", {"name": "read_records", "arguments": {"database": "demo", "table": "posts", "id": 42}}],
    ]);
    let printed = connect(host, &shared().read_key, steps).await;
    let [tools, resources, refused, read] = [0, 1, 2, 3].map(|at| &printed["results"][at]);
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(3));
    assert!(resources["resources"][0]["uri"].as_str().is_some_and(|uri| uri.starts_with("selkie://schema/")));
    outcome(refused, Some("full_access_required"));
    assert_eq!(outcome(read, None)["payload"]["id"], 42);
}
