//! Every operation of the interface × every kind of key, as one table.

use crate::door::{Call, Door};
use crate::room::{Room, unique};
use crate::service::shared;
use reqwest::Method;
use serde_json::{Value, json};

/// What a kind of key gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Ok,
    NoContent,
    Code(&'static str),
}

use Outcome::{Code, NoContent, Ok};

/// One operation and its outcome without a key, with a forged one, a read key, a full key, and another project's full key.
struct Row {
    name: &'static str,
    method: Method,
    path: String,
    body: Option<Value>,
    outcomes: [Outcome; 5],
}

const KINDS: [&str; 5] = [
    "no key",
    "a forged key",
    "a read key",
    "a full key",
    "another project's key",
];

cases! {
    Both: [every_operation_answers_every_kind_of_key_as_the_table_says, a_key_of_an_empty_project_may_do_nothing_here],
}

const READS: [Outcome; 5] = [
    Code("missing_key"),
    Code("invalid_key"),
    Ok,
    Ok,
    Code("database_not_found"),
];
const WRITES: [Outcome; 5] = [
    Code("missing_key"),
    Code("invalid_key"),
    Code("full_access_required"),
    Ok,
    Code("database_not_found"),
];
const SQL: [Outcome; 5] = WRITES;
const BATCH: [Outcome; 5] = WRITES;
const TOLD: [Outcome; 5] = [
    Code("missing_key"),
    Code("invalid_key"),
    NoContent,
    NoContent,
    NoContent,
];
const OPEN: [Outcome; 5] = [Ok; 5];
const NOWHERE: [Outcome; 5] = [Code("route_not_found"); 5];

fn table(room: &Room) -> Vec<Row> {
    let base = room.path("t");
    let row = |name, method: Method, path: &str, body: Option<Value>, outcomes| Row {
        name,
        method,
        path: path.to_owned(),
        body,
        outcomes,
    };
    let at = |rest: &str| format!("{base}{rest}");
    let delete_one = json!({"deleteKeyValues": [{"key": "id", "value": 900}]});
    let update_many =
        json!({"updateKeyValues": [{"key": "id", "value": 900}], "data": {"name": "z"}});
    let in_url = crate::door::option("deleteKeyValues", &json!([{"key": "id", "value": 901}]));
    let sql = json!({"query": "SELECT 1", "database": room.db});
    let ddl = json!({"query": "CREATE TABLE IF NOT EXISTS u (id INT)", "database": room.db});
    vec![
        row("list", Method::GET, &at(""), None, READS),
        row(
            "list with options",
            Method::GET,
            &at("?limit=1&order[field]=id"),
            None,
            READS,
        ),
        row("one", Method::GET, &at("/1"), None, READS),
        row("schema", Method::GET, &at("/_schema"), None, READS),
        row("options", Method::OPTIONS, &at(""), None, READS),
        row("tus", Method::OPTIONS, "/api/v1/media/tus", None, TOLD),
        row(
            "query",
            Method::POST,
            &at("/query"),
            Some(json!({"limit": 1})),
            READS,
        ),
        row(
            "insert",
            Method::POST,
            &at(""),
            Some(json!({"name": "x"})),
            WRITES,
        ),
        row(
            "insert defaults",
            Method::POST,
            &at(""),
            Some(json!({})),
            WRITES,
        ),
        row(
            "insert batch",
            Method::POST,
            &at(""),
            Some(json!({"batchData": [{"name": "y"}]})),
            WRITES,
        ),
        row(
            "update",
            Method::PUT,
            &at("/1"),
            Some(json!({"name": "z"})),
            WRITES,
        ),
        row(
            "patch",
            Method::PATCH,
            &at("/1"),
            Some(json!({"name": "z"})),
            WRITES,
        ),
        row(
            "update many",
            Method::PUT,
            &at(""),
            Some(update_many.clone()),
            WRITES,
        ),
        row(
            "patch many",
            Method::PATCH,
            &at(""),
            Some(update_many),
            WRITES,
        ),
        row("delete one", Method::DELETE, &at("/800"), None, WRITES),
        row(
            "delete by conditions",
            Method::DELETE,
            &at(""),
            Some(delete_one),
            WRITES,
        ),
        row(
            "delete by conditions in the URL",
            Method::DELETE,
            &at(&format!("?{in_url}")),
            None,
            WRITES,
        ),
        row("sql", Method::POST, "/api/v1/sql", Some(sql), SQL),
        row(
            "sql that changes",
            Method::POST,
            "/api/v1/sql",
            Some(ddl),
            SQL,
        ),
        row(
            "batch",
            Method::POST,
            "/api/v1/batch",
            Some(json!({"operations": [{"method": "POST", "path": base, "body": {"name": "w"}}]})),
            BATCH,
        ),
        row(
            "batch that only reads",
            Method::POST,
            "/api/v1/batch",
            Some(json!({"operations": [{"method": "GET", "path": base}]})),
            BATCH,
        ),
        row("health", Method::GET, "/healthz", None, OPEN),
        row("readiness", Method::GET, "/readyz", None, OPEN),
        row(
            "no such path",
            Method::GET,
            "/api/v1/nothing",
            None,
            NOWHERE,
        ),
        row(
            "no such version",
            Method::GET,
            "/api/v2/crud/a/b",
            None,
            NOWHERE,
        ),
    ]
}

async fn every_operation_answers_every_kind_of_key_as_the_table_says(door: Door) {
    let room = Room::new(
        door,
        &[
            "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name TEXT)",
            "INSERT INTO t VALUES (1, 'a')",
        ],
    )
    .await;
    let project = unique("walker");
    shared().create_project(&project);
    let other = shared().create_key(&project, "full", &[]).token;
    let forged = format!(
        "{}A",
        shared().full_key.trim_end_matches(|c: char| c != '.')
    );
    let mut wrong = Vec::new();
    for row in table(&room) {
        for (kind, (name, expected)) in KINDS.iter().zip(row.outcomes).enumerate() {
            let mut call = Call::new(door.url(), row.method.clone(), &row.path);
            call = match kind {
                0 => call,
                1 => call.key(&forged),
                2 => call.key(&shared().read_key),
                3 => call.key(&shared().full_key),
                _ => call.key(&other),
            };
            if let Some(body) = &row.body {
                call = call.json(body);
            }
            let answer = call.send().await;
            let outcome = match (answer.code().as_str(), answer.status.as_u16()) {
                ("ok", 200) => Ok,
                (_, 204) => NoContent,
                (code, _) => Code(code.to_owned().leak()),
            };
            if outcome != expected {
                wrong.push(format!(
                    "{} with {name}: {outcome:?}, expected {expected:?}\n    {answer}",
                    row.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let preflight = Call::new(door.url(), Method::OPTIONS, &room.path("t"))
        .header("origin", "https://example.com")
        .header("access-control-request-method", "GET");
    assert_eq!(preflight.send().await.status, 204);
}

async fn a_key_of_an_empty_project_may_do_nothing_here(door: Door) {
    let project = unique("empty");
    shared().create_project(&project);
    for access in ["full", "read"] {
        let key = shared().create_key(&project, access, &[]).token;
        let answer = door.get("/api/v1/crud/demo/posts/1").key(&key).send().await;
        assert_eq!(answer.code(), "database_not_found", "{answer}");
        let sql = door
            .sql(&json!({"query": "SELECT 1 AS one"}))
            .key(&key)
            .send()
            .await;
        let expected = if access == "full" {
            "ok"
        } else {
            "full_access_required"
        };
        assert_eq!(sql.code(), expected, "{sql}");
    }
}
