//! `selkie media`: files uploaded by the CLI are served over HTTP, and the CLI reads files uploaded over HTTP.
//! `cli/faults.rs` tests errors.

pub(super) mod faults;

use super::fixtures::{png, wav};
use super::test_folder::{MEDIA, TestFolder};
use crate::host::{Call, Host};
use crate::service::shared;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

cases! {
    Origin: [
        what_is_put_is_served_and_got_back,
        names_of_any_script_come_and_go,
        a_hidden_name_is_not_hidden_here,
        standard_input_is_put_under_a_name,
        an_update_keeps_the_id,
        lists_are_filtered_and_come_in_pages,
        removed_files_are_gone,
        a_private_file_is_read_by_a_signed_url,
    ],
}

/// A local directory and a folder of the library, for one case.
struct Fixture {
    here: TempDir,
    shelf: TestFolder,
}

impl Fixture {
    fn new(host: Host) -> Self {
        Self { here: tempfile::tempdir().expect("a directory"), shelf: TestFolder::new(host) }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.here.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn names_here(&self) -> Vec<String> {
        names_in(self.here.path())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = shared().cli_command(&[&["media"], arguments].concat());
        let output = command.current_dir(self.here.path()).output();
        output.expect("the CLI runs")
    }

    /// Runs `selkie media …`, which must succeed, and returns its JSON answer.
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        serde_json::from_slice(&output.stdout).expect("an answer in JSON")
    }

    /// Runs `selkie media …`, which must fail with this exit code, and returns its message and hint.
    #[track_caller]
    fn refused(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(output.stdout.is_empty(), "{arguments:?} answers");
        told
    }

    #[track_caller]
    fn put(&self, arguments: &[&str]) -> Value {
        self.ok(&[&["put", "--folder", &self.shelf.folder], arguments].concat())
    }

    /// Returns `folder/name` of a file in the library's folder.
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.shelf.folder)
    }

    /// Reads the URL that the CLI printed: only a path, since the CLI doesn't know the service's host.
    async fn fetch(&self, url: &Value) -> Vec<u8> {
        let url = url.as_str().expect("a URL");
        let answer = Call::new(self.shelf.host.url(), Method::GET, url);
        let answer = answer.send().await;
        assert_eq!(answer.status, 200, "{answer}");
        answer.body
    }
}

fn names_in(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

async fn what_is_put_is_served_and_got_back(host: Host) {
    let fixture = Fixture::new(host);
    let files = [
        ("a.png", png(), "image"),
        ("b.wav", wav(), "audio"),
        ("c.txt", b"text".to_vec(), "file"),
        // This file is larger than the pieces in which files are read.
        ("d.bin", vec![7; 700_000], "file"),
    ];
    for (name, bytes, _) in &files {
        fixture.write(name, bytes);
    }
    let put = fixture.put(&["a.png", "b.wav", "c.txt", "d.bin"]);
    assert_eq!(fixture.shelf.names().await, ["a.png", "b.wav", "c.txt", "d.bin"]);
    let there = tempfile::tempdir().unwrap();
    for (at, (name, bytes, kind)) in files.iter().enumerate() {
        let file = &put[at];
        assert_eq!((&file["name"], &file["type"]), (&json!(name), &json!(kind)));
        assert_eq!(fixture.fetch(&file["url"]).await, *bytes, "{name}");
        let known = fixture.shelf.describe(&file["id"]).await.payload();
        assert_eq!(known["sha256"], file["sha256"], "{known}");
        let id = file["id"].to_string();
        let output = fixture.run(&["get", &id, "--output", "-"]);
        assert_eq!(output.stdout, *bytes, "{name}");
        let to = there.path().to_str().unwrap();
        fixture.ok(&["get", &fixture.path(name), "--output", to]);
        assert_eq!(fs::read(there.path().join(name)).unwrap(), *bytes);
    }
    assert_eq!(names_in(there.path()), ["a.png", "b.wav", "c.txt", "d.bin"]);
    let small = fixture.ok(&["get", &fixture.path("a.png"), "--thumbnail"]);
    let small = fixture.here.path().join(small["output"].as_str().unwrap());
    let served = fixture.fetch(&put[0]["thumbnailUrl"]).await;
    assert_eq!(fs::read(small).unwrap(), served);
}

async fn names_of_any_script_come_and_go(host: Host) {
    let mut fixture = Fixture::new(host);
    fixture.shelf.folder.push_str("/日 本/ä");
    fixture.write("写真 ü.png", &png());
    let put = fixture.put(&["写真 ü.png", "--type", "image"]);
    assert_eq!(put[0]["folder"], json!(fixture.shelf.folder));
    assert_eq!(fixture.fetch(&put[0]["url"]).await, png());
    fs::remove_file(fixture.here.path().join("写真 ü.png")).unwrap();
    fixture.ok(&["get", &fixture.path("写真 ü.png")]);
    assert_eq!(fixture.names_here(), ["写真 ü.png"]);
    let list = fixture.run(&["ls", &fixture.shelf.folder]);
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.contains(&fixture.path("写真 ü.png")), "{list}");
}

async fn a_hidden_name_is_not_hidden_here(host: Host) {
    let fixture = Fixture::new(host);
    fixture.write("profile", b"echo");
    fixture.put(&["profile", "--name", ".bashrc"]);
    let got = fixture.ok(&["get", &fixture.path(".bashrc")]);
    assert_eq!(got["output"], "_bashrc");
    assert_eq!(fixture.names_here(), ["_bashrc", "profile"]);
}

async fn standard_input_is_put_under_a_name(host: Host) {
    let fixture = Fixture::new(host);
    let file = fs::File::open(fixture.write("x", &png())).unwrap();
    let folder = fixture.shelf.folder.as_str();
    let arguments = ["media", "put", "-", "--name", "in.png", "--folder", folder];
    let output = shared().cli_command(&arguments).stdin(file).output();
    let output = output.expect("the CLI runs");
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains(&fixture.path("in.png")), "{told}");
    let output = fixture.run(&["get", &fixture.path("in.png"), "-o", "-"]);
    assert_eq!(output.stdout, png());
}

async fn an_update_keeps_the_id(host: Host) {
    let fixture = Fixture::new(host);
    let first = fixture.shelf.put("a.txt", "file", "text/plain", b"one").await;
    fixture.write("a.txt", b"two");
    let told = fixture.refused(&["put", "a.txt", "--folder", &fixture.shelf.folder], 1);
    assert!(told.contains("--update"), "{told}");
    let second = fixture.put(&["a.txt", "--update"]);
    assert_eq!(second[0]["id"], first["id"]);
    assert_eq!(fixture.fetch(&second[0]["url"]).await, b"two");
}

async fn lists_are_filtered_and_come_in_pages(host: Host) {
    let fixture = Fixture::new(host);
    for name in ["a.txt", "b.txt", "c.txt"] {
        fixture.shelf.put(name, "file", "text/plain", b"text").await;
    }
    fixture.shelf.put("d.png", "image", "image/png", &png()).await;
    let folder = fixture.shelf.folder.as_str();
    let names = |arguments: &[&str]| {
        let list = fixture.ok(&[&["ls", folder], arguments].concat());
        let files = list.as_array().expect("a list").iter();
        files.map(|file| file["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["d.png", "c.txt", "b.txt", "a.txt"]);
    assert_eq!(names(&["--type", "image"]), ["d.png"]);
    assert_eq!(names(&["--name", "b.txt"]), ["b.txt"]);
    assert_eq!(names(&["--limit", "3", "--page", "2"]), ["a.txt"]);
    let page = fixture.run(&["ls", folder, "--limit", "3"]);
    let told = String::from_utf8(page.stderr).unwrap();
    assert!(told.contains("3 of 4 files; --page 2"), "{told}");
    fixture.refused(&["ls", "--type", "picture"], 2);
    let told = fixture.refused(&["ls", "--project", "nobody"], 1);
    assert!(told.contains("nobody"), "{told}");
}

async fn removed_files_are_gone(host: Host) {
    let fixture = Fixture::new(host);
    let a = fixture.shelf.put("a.txt", "file", "text/plain", b"a").await;
    fixture.shelf.put("b.txt", "file", "text/plain", b"b").await;
    let (id, path) = (a["id"].to_string(), fixture.path("b.txt"));
    let told = fixture.refused(&["rm", &id, &path, &fixture.path("c.txt")], 1);
    assert!(told.contains("c.txt"), "{told}");
    assert_eq!(fixture.shelf.names().await, ["a.txt", "b.txt"]);
    let removed = fixture.ok(&["rm", &id, &path, &fixture.path("a.txt")]);
    assert_eq!(removed.as_array().map(Vec::len), Some(2), "{removed}");
    assert!(fixture.shelf.names().await.is_empty());
    let gone = host.get(&format!("{MEDIA}/{id}")).send().await;
    gone.refused(ErrorCode::MediaNotFound);
    fixture.refused(&["get", &id], 1);
}

async fn a_private_file_is_read_by_a_signed_url(host: Host) {
    let fixture = Fixture::new(host);
    fixture.write("a.txt", b"secret");
    let put = fixture.put(&["a.txt", "--private"]);
    let url = put[0]["url"].as_str().unwrap();
    let bare = Call::new(host.url(), Method::GET, url).send().await;
    bare.refused(ErrorCode::MediaNotFound);
    let output = fixture.run(&["sign", &fixture.path("a.txt"), "--expires", "10m"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("public_url"), "{told}");
    let signed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(fixture.fetch(&json!(signed.trim())).await, b"secret");
    for time in ["8d", "0s", "soon"] {
        fixture.refused(&["sign", &fixture.path("a.txt"), "--expires", time], 2);
    }
}
