//! Checks the service against its document: `tests/clients/openapi-probe.mjs` sends requests that the document allows,
//! and requests that it forbids.

use super::TABLES;
use crate::host::Host;
use crate::roles::Caller;
use crate::service::{shared, workspace};
use crate::test_db::TestDb;
use serde_json::json;
use std::process::Command;

/// Number of random requests of each kind for each operation.
const ROUNDS: &str = "3";

cases! {
    Both: [
        the_service_keeps_to_its_document,
    ],
}

async fn probe(db: &TestDb, key: &str, seed: &str) {
    let mut command = Command::new("node");
    let seed = std::env::var("SELKIE_OPENAPI_SEED").unwrap_or_else(|_| seed.to_owned());
    let rounds = std::env::var("SELKIE_OPENAPI_ROUNDS").unwrap_or_else(|_| ROUNDS.to_owned());
    command
        .arg(workspace().join("tests/clients/openapi-probe.mjs"))
        .args([db.host.url(), &db.name, &seed, &rounds])
        .env("SELKIE_KEY", key);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("a task").expect("node");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "{said}");
}

async fn the_service_keeps_to_its_document(host: Host) {
    let role = |db: &TestDb| {
        let rules = [
            (
                "posts",
                json!({"read": {"fields": {"omit": ["secret_note"]}, "rows": {"author_id": 1}},
                    "insert": {"fields": ["title", "price"], "set": {"author_id": 1}},
                    "update": {"fields": ["title", "views"], "rows": {"author_id": 1}}, "delete": false}),
            ),
            ("tags", json!({"insert": {"fields": ["name"]}, "delete": true})),
            ("kinds", json!({"read": true})),
        ];
        Caller::new(db, rules, json!({})).key
    };
    for (seed, key) in [("1", None), ("2", Some(shared().read_key.clone()))] {
        let db = TestDb::new(host, TABLES).await;
        probe(&db, key.as_deref().unwrap_or(&shared().full_key), seed).await;
    }
    let db = TestDb::new(host, TABLES).await;
    probe(&db, &role(&db), "3").await;
}
