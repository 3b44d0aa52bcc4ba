//! Uploads by the npm package tus-js-client.

use super::super::test_folder::TestFolder;
use super::upload::{TUS, bytes};
use crate::host::Host;
use crate::service::{shared, workspace};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::process::Command;

const LENGTH: usize = 20_000_000;

cases! {
    Both: [
        a_client_uploads_in_one_go,
        a_client_that_died_is_resumed_by_another,
    ],
}

/// A local file, and its destination.
struct Sending {
    host: Host,
    file: tempfile::NamedTempFile,
    metadata: String,
}

impl Sending {
    fn new(host: Host, shelf: &TestFolder, content: &[u8]) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), content).expect("a file");
        let metadata = json!({"filename": "whale song.bin", "folder": shelf.folder, "filetype": ""});
        Self { host, file, metadata: metadata.to_string() }
    }

    /// Runs the client to its end and returns the line that it prints.
    async fn run(&self, command: &str, address: &str, chunk: usize, more: &[&str]) -> String {
        let mut client = Command::new("node");
        client
            .arg(workspace().join("tests/clients/tus.mjs"))
            .args([command, address])
            .arg(self.file.path())
            .arg(chunk.to_string())
            .args(more)
            .env("SELKIE_KEY", &shared().full_key)
            .env("SELKIE_TUS_METADATA", &self.metadata);
        let output = tokio::task::spawn_blocking(move || client.output()).await.expect("a task").expect("node");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {error}");
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    fn endpoint(&self) -> String {
        format!("{}{TUS}", self.host.url())
    }
}

async fn expect_file(shelf: &TestFolder, id: &str, content: &[u8]) {
    let id = id.parse().unwrap_or_else(|_| panic!("no id: {id}"));
    let file = shelf.describe(&id).await.payload();
    assert_eq!(file["name"], "whale song.bin");
    assert_eq!(file["size"], content.len());
    let mut sha256 = String::new();
    for byte in Sha256::digest(content) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    assert_eq!(file["sha256"], sha256);
    assert!(shelf.fetch(&file["url"]).await.body == content);
}

async fn a_client_uploads_in_one_go(host: Host) {
    let content = bytes(LENGTH);
    for options in [&[][..], &["with-creation"], &["override-patch"]] {
        let shelf = TestFolder::new(host);
        let sending = Sending::new(host, &shelf, &content);
        let id = sending.run("whole", &sending.endpoint(), 5_000_000, options).await;
        expect_file(&shelf, &id, &content).await;
    }
}

async fn a_client_that_died_is_resumed_by_another(host: Host) {
    let (shelf, content) = (TestFolder::new(host), bytes(LENGTH));
    let sending = Sending::new(host, &shelf, &content);
    let url = sending.run("begin", &sending.endpoint(), 3_000_000, &["10000000"]).await;
    assert!(url.starts_with(&sending.endpoint()), "{url}");
    let id = sending.run("resume", &url, 1_000_000, &[]).await;
    expect_file(&shelf, &id, &content).await;
}
