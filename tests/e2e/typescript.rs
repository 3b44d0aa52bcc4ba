//! Tests the TypeScript client (`clients/typescript`): runs its own tests, and its calls in Node, in Chromium and in a
//! worker.
//!
//! The scripts in `clients/typescript/test` check the answers. The cases here give them databases, keys and addresses.

use crate::host::Host;
use crate::roles::create_role;
use crate::service::{clear_settings, shared, workspace};
use crate::test_db::{TestDb, unique};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

cases! {
    Both: [
        every_call_works_in_node,
        every_call_works_in_a_browser,
        two_pages_edit_one_live_list,
        the_to_do_list_works_for_two_users,
    ],
    Origin: [every_call_works_in_a_worker, a_typed_program_uses_the_packed_client],
    Own: [the_client_passes_its_unit_tests, the_types_refuse_wrong_calls],
}

/// Returns the client's folder. Builds the client if its sources changed.
pub(crate) fn client() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let status = Command::new("make").args(["--no-print-directory", "client"]).current_dir(workspace()).status();
        assert!(status.is_ok_and(|status| status.success()), "`make client` failed");
    });
    workspace().join("clients/typescript")
}

/// Runs Node in the client's folder and returns what it prints. Panics if it fails.
pub(crate) async fn node(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("node");
    clear_settings(&mut command);
    command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null());
    let shown = arguments.join(" ");
    let work = move || command.current_dir(client()).output();
    let output = tokio::task::spawn_blocking(work).await.expect("a task").expect("node");
    let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "node {shown} failed:\n{printed}{errors}");
    printed.into_owned()
}

async fn the_client_passes_its_unit_tests(_: Host) {
    let folder = client().join("test/unit");
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let files: Vec<String> =
        entries.map(|path| path.display().to_string()).filter(|path| path.ends_with(".test.mjs")).collect();
    assert!(!files.is_empty(), "no unit tests");
    let arguments: Vec<&str> = ["--test"].into_iter().chain(files.iter().map(String::as_str)).collect();
    node(&arguments, &[]).await;
}

async fn the_types_refuse_wrong_calls(_: Host) {
    node(&["../../node_modules/typescript/bin/tsc", "--project", "test/types"], &[]).await;
}

async fn shop(host: Host) -> TestDb {
    let schema = include_str!("../../clients/typescript/test/e2e/schema.sql");
    let statements: Vec<&str> = schema.split(";\n").filter(|statement| !statement.trim().is_empty()).collect();
    TestDb::new(host, &statements).await
}

/// Runs a script against a host with a key that may do everything with the database's tables and with media.
async fn run(script: &str, host: Host) {
    let db = shop(host).await;
    let everything = json!({"read": true, "insert": true, "update": true, "delete": true});
    let role = create_role(&json!({
        "tables": {format!("{}.*", db.name): everything},
        "media": {"read": true, "upload": true, "delete": "own"},
    }));
    let key = shared().create_role_key("default", &role, &[]).token;
    let folder = unique("typescript");
    let variables = [
        ("SELKIE_URL", host.url()),
        ("SELKIE_KEY", &key),
        ("SELKIE_FULL_KEY", &shared().full_key),
        ("SELKIE_DATABASE", &db.name),
        ("SELKIE_FOLDER", &folder),
    ];
    node(&[&format!("test/e2e/{script}.mjs")], &variables).await;
}

async fn every_call_works_in_node(host: Host) {
    run("node", host).await;
}

async fn every_call_works_in_a_browser(host: Host) {
    run("chromium", host).await;
}

async fn two_pages_edit_one_live_list(host: Host) {
    run("pages", host).await;
}

async fn every_call_works_in_a_worker(host: Host) {
    run("worker", host).await;
}

async fn a_typed_program_uses_the_packed_client(host: Host) {
    run("pack", host).await;
}

/// Sets up the example as its README describes, with a database of its own.
async fn the_to_do_list_works_for_two_users(host: Host) {
    const NAME: &str = "default_todo";
    let db = TestDb::new(host, &[]).await;
    let example = client().join("examples/todo");
    let read = |file: &str| fs::read_to_string(example.join(file)).expect("a file").replace(NAME, &db.name);
    db.exec(&read("schema.sql")).await;
    let role: Value = serde_json::from_str(&read("role.json")).expect("a role");
    let role = create_role(&role);
    let keys = tempfile::tempdir().expect("a directory");
    let keys = keys.path().to_str().expect("a path");
    let issuer = format!("http://localhost/{}", unique("todo"));
    let variables =
        [("SELKIE_URL", host.url()), ("TODO_DATABASE", &db.name), ("TODO_KEYS", keys), ("TODO_ISSUER", &issuer)];
    node(&["examples/todo/serve.mjs", "keys"], &variables).await;
    let jwks = format!("{keys}/jwks.json");
    shared().cli_ok(&[
        "issuer",
        "add",
        "--project",
        "default",
        "--issuer",
        &issuer,
        "--audience",
        "todo",
        "--jwks",
        &jwks,
        "--role",
        &role,
    ]);
    let users = [("TODO_USERS", if host == Host::Edge { "edge" } else { "origin" })];
    node(&["test/e2e/todo.mjs"], &[&variables[..], &users].concat()).await;
}
