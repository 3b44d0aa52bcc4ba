//! Generates clients of the OpenAPI document, and calls the API by them (`tests/clients/openapi-fetch.ts` and
//! `openapi-client.py`).

use super::{TABLES, description, node};
use crate::host::Host;
use crate::service::{shared, workspace};
use crate::test_db::TestDb;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

cases! {
    Both: [
        openapi_fetch_is_typed_by_the_document,
        openapi_python_client_generates_every_operation,
    ],
}

async fn folder(db: &TestDb, program: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).expect("a file");
    write("openapi.json", &description(db, "openapi.json").send().await.body);
    let text = std::fs::read_to_string(workspace().join("tests/clients").join(program)).expect("a program");
    write(program, text.replace("DATABASE", &db.name).as_bytes());
    folder
}

async fn run(mut command: Command, db: &TestDb) -> Value {
    command.env("SELKIE_URL", db.host.url()).env("SELKIE_KEY", &shared().full_key);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("a task").expect("a program");
    let [printed, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{printed}{errors}");
    serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed}{errors}"))
}

fn text(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("a path").to_owned()
}

async fn openapi_fetch_is_typed_by_the_document(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let folder = folder(&db, "openapi-fetch.ts").await;
    let folder = folder.path();
    std::os::unix::fs::symlink(workspace().join("node_modules"), folder.join("node_modules")).expect("a link");
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#).expect("a file");
    let options =
        json!({"strict": true, "module": "nodenext", "target": "es2022", "lib": ["es2023", "dom"], "types": []});
    let project = json!({"compilerOptions": options, "files": ["openapi-fetch.ts"]}).to_string();
    std::fs::write(folder.join("tsconfig.json"), project).expect("a file");
    let generated =
        ["openapi.json", "-o", "api.d.ts"].map(|name| if name == "-o" { name.to_owned() } else { text(folder, name) });
    let compiled = vec!["--project".to_owned(), text(folder, "")];
    for (program, arguments) in [("openapi-typescript", generated.to_vec()), ("tsc", compiled)] {
        let output = node(program, arguments).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    }
    let mut command = Command::new("node");
    command.arg(folder.join("openapi-fetch.js"));
    let expected = json!([
        "Bread", "2.25", null, "draft", "undefined", {"id": 2, "title": "Bread"}, "Ann", 3, "duplicate_key", "name", 2
    ]);
    assert_eq!(run(command, &db).await, expected);
}

async fn openapi_python_client_generates_every_operation(host: Host) {
    let db = TestDb::new(host, TABLES).await;
    let folder = folder(&db, "openapi-client.py").await;
    let folder = folder.path();
    // Generated code need not be formatted.
    std::fs::write(folder.join("config.yml"), "post_hooks: []\n").expect("a file");
    let bin = workspace().join(".tools/python/bin");
    let mut command = Command::new(bin.join("openapi-python-client"));
    command.args([
        "generate",
        "--path",
        "openapi.json",
        "--config",
        "config.yml",
        "--meta",
        "none",
        "--fail-on-warning",
    ]);
    command.args(["--output-path", "api_client"]).current_dir(folder);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("a task");
    let output = output.expect("the generator, which `tools/setup.sh test` installs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    let mut command = Command::new(bin.join("python"));
    command.arg(folder.join("openapi-client.py"));
    let expected =
        json!(["Sea", "1.50", "str", "Bread", 4, "record_not_found", "9223372036854775807", {"a": [1, null]}]);
    assert_eq!(run(command, &db).await, expected);
}
