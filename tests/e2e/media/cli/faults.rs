//! `selkie media` when something fails: refusals, interrupted uploads, sweeps; and how `selkie doctor` and `/readyz`
//! report a media store that fails.

use super::super::fixtures::png;
use super::super::test_folder::TestFolder;
use super::{Fixture, names_in};
use crate::case::eventually;
use crate::fake_origin::{FakeOrigin, Manner};
use crate::host::{Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::shared;
use crate::worker::Worker;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

cases! {
    Origin: [
        nothing_is_put_if_one_file_is_wrong,
        no_local_file_is_replaced_unasked,
        an_interrupted_put_leaves_nothing,
        a_sweep_deletes_what_no_row_names,
        only_commands_that_reach_the_bucket_ask_for_its_keys,
        readiness_and_the_doctor_look_at_the_store,
    ],
    Own: [both_hosts_report_a_store_that_is_away_or_full],
}

async fn nothing_is_put_if_one_file_is_wrong(host: Host) {
    let fixture = Fixture::new(host);
    fixture.shelf.put("taken.txt", "file", "text/plain", b"1").await;
    let whole = png();
    fixture.write("good.png", &whole);
    fixture.write("taken.txt", b"2");
    fixture.write("cut.png", &whole[..whole.len() / 2]);
    fixture.write("text.png", b"no picture");
    fs::create_dir(fixture.here.path().join("folder")).unwrap();
    fs::create_dir(fixture.here.path().join("other")).unwrap();
    fixture.write("other/good.png", &whole);
    let put = ["put", "--folder", &fixture.shelf.folder, "good.png"];
    for (more, code, word) in [
        (&["folder"][..], 1, "is a directory"),
        (&["missing.png"], 1, "missing.png can't be read"),
        (&["cut.png"], 1, "cut.png"),
        (&["text.png", "--type", "image"], 1, "text.png"),
        (&["taken.txt"], 1, "--update"),
        (&["other/good.png"], 2, "two of the files"),
        (&["-"], 2, "--name"),
        (&["taken.txt", "--name", "x"], 2, "--name"),
        (&["--name", "a/b.png"], 2, "--folder"),
        (&["--name", ".."], 2, ".."),
        (&["--project", "nobody"], 1, "nobody"),
    ] {
        let told = fixture.refused(&[&put[..], more].concat(), code);
        assert!(told.contains(word), "{more:?}: {told}");
        assert!(!told.contains("panicked"), "{told}");
    }
    assert_eq!(fixture.shelf.names().await, ["taken.txt"]);
}

async fn no_local_file_is_replaced_unasked(host: Host) {
    let fixture = Fixture::new(host);
    fixture.shelf.put("a.txt", "file", "text/plain", b"new").await;
    let path = fixture.write("a.txt", b"old");
    let told = fixture.refused(&["get", &fixture.path("a.txt")], 1);
    assert!(told.contains("--force"), "{told}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    for output in ["/dev/null", "nowhere/a.txt"] {
        fixture.refused(&["get", &fixture.path("a.txt"), "--force", "--output", output], 1);
    }
    for target in ["../a.txt", "a/../b", "", "x\\y"] {
        fixture.refused(&["get", target], 2);
    }
    fixture.refused(&["get", &fixture.path("a.txt"), "--thumbnail"], 1);
    fixture.ok(&["get", &fixture.path("a.txt"), "--force"]);
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fixture.names_here(), ["a.txt"]);
}

async fn an_interrupted_put_leaves_nothing(host: Host) {
    let fixture = Fixture::new(host);
    // The command uses a media store of its own, without the files of other cases.
    let store = tempfile::tempdir().unwrap();
    let folder = fixture.shelf.folder.as_str();
    let arguments = ["media", "put", "-", "--name", "a.bin", "--folder", folder];
    let mut child = shared()
        .cli_command(&arguments)
        .env("SELKIE_MEDIA_STORE", format!("file://{}", store.path().display()))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the CLI runs");
    let mut input = child.stdin.take().unwrap();
    input.write_all(&vec![1; 1_000_000]).unwrap();
    let staging = store.path().join("staging");
    let folders = || {
        let names = names_in(&staging).into_iter();
        names.filter(|name| name != "tus").collect::<Vec<_>>()
    };
    let is_staged = || {
        let mut folders = folders().into_iter().map(|name| staging.join(name));
        folders.any(|folder| folder.is_dir() && !names_in(&folder).is_empty())
    };
    eventually("a file is staged", Duration::from_secs(30), || async {
        (staging.exists() && is_staged()).then_some(())
    })
    .await;
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(input);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(folders().is_empty(), "{:?} is left", folders());
    assert!(fixture.shelf.names().await.is_empty());
}

/// Sets a file's modification time to two hours ago.
fn age(path: &Path) {
    let before = SystemTime::now() - Duration::from_secs(2 * 60 * 60);
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(before).unwrap();
}

async fn a_sweep_deletes_what_no_row_names(host: Host) {
    let fixture = Fixture::new(host);
    let named = fixture.shelf.put("a.txt", "file", "text/plain", b"named").await;
    let objects = shared().data_dir().join("media/objects");
    let hex = shared().root_sql(&format!("SELECT LOWER(HEX(object)) FROM selkie.media WHERE id = {}", named["id"]));
    let hex = hex.unwrap();
    let key = uuid::Uuid::parse_str(hex.trim()).unwrap().to_string();
    let named_at = objects.join(&key[34..]).join(&key);
    age(&named_at);
    let (old, young) = ("0190a1b2-c3d4-7abc-8def-0123456789ab", "0190a1b2-c3d4-7abc-8def-0123456789ac");
    let lay = |key: &str| {
        let folder = objects.join(&key[34..]);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(key);
        fs::write(&path, b"left over").unwrap();
        path
    };
    let (old, young) = (lay(old), lay(young));
    age(&old);
    let counted = fixture.ok(&["sweep"]);
    assert!(counted["orphans"].as_u64() >= Some(1), "{counted}");
    assert_eq!(counted["deleted"], false);
    assert!(old.exists());
    let swept = fixture.ok(&["sweep", "--delete"]);
    assert!(swept["orphans"].as_u64() >= Some(1), "{swept}");
    assert_eq!(swept["deleted"], true);
    assert!(!old.exists() && young.exists() && named_at.exists());
    fs::remove_file(young).unwrap();
    let url = named["url"].as_str().unwrap();
    assert_eq!(fixture.shelf.fetch(&json!(url)).await.body, b"named");
    let told = fixture.run(&["sweep", "--grace", "2h"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.starts_with("would delete "), "{told}");
    fixture.refused(&["sweep", "--grace", "soon"], 2);
    fixture.refused(&["sweep", "--max-share", "101"], 2);
}

async fn only_commands_that_reach_the_bucket_ask_for_its_keys(host: Host) {
    let fixture = Fixture::new(host);
    fixture.shelf.put("a.txt", "file", "text/plain", b"x").await;
    let run = |arguments: &[&str]| {
        let mut command = shared().cli_command(arguments);
        command.env("SELKIE_MEDIA_STORE", "s3://bucket");
        command.output().expect("the CLI runs")
    };
    let path = fixture.path("a.txt");
    for arguments in [&["key", "list"][..], &["project", "list"], &["media", "ls"], &["media", "sign", &path]] {
        let output = run(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
    }
    for arguments in [&["media", "get", &path, "--output", "-"][..], &["media", "sweep"]] {
        let output = run(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains("media_s3_access_key"), "{told}");
    }
}

fn store_finding(report: &[u8]) -> Value {
    let report: Value = serde_json::from_slice(report).expect("a report");
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["check"] == "store");
    found.expect("the store is looked at").clone()
}

async fn readiness_and_the_doctor_look_at_the_store(host: Host) {
    let ready = Call::new(host.url(), Method::GET, "/readyz").send().await;
    assert_eq!(ready.payload()["storage"], "ok");
    let report = shared().cli(&["doctor", "--json"]);
    assert_eq!(store_finding(&report.stdout)["verdict"], "ok");
    let mut doctor = shared().cli_command(&["doctor", "--json"]);
    let report = doctor.env("SELKIE_MEDIA_STORE", "file:///dev/null/media").output();
    let report = report.expect("the CLI runs");
    assert_eq!(report.status.code(), Some(1));
    let finding = store_finding(&report.stdout);
    assert_eq!(finding["verdict"], "wrong", "{finding}");
    assert!(finding["hint"].as_str().unwrap().contains("SELKIE_MEDIA_STORE"));
}

/// Uses a second origin on the shared service's MariaDB, and a worker in front of it.
async fn both_hosts_report_a_store_that_is_away_or_full(_: Host) {
    const FULL: &str = "HTTP/1.1 507 Insufficient Storage\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let store = FakeOrigin::start("store", Manner::Refuse).await;
    let endpoint = store.url.clone();
    let start = move || {
        let settings = [
            ("SELKIE_MEDIA_STORE", "s3://bucket"),
            ("SELKIE_MEDIA_S3_ENDPOINT", &endpoint),
            ("SELKIE_MEDIA_S3_ACCESS_KEY", "id"),
            ("SELKIE_MEDIA_S3_SECRET_KEY", "storesecret"),
        ];
        let mut origin = SecondOrigin::launch(shared(), &settings)?;
        origin.wait_until_ready()?;
        let worker = Worker::start(&[("ORIGINS", &origin.origin)]);
        Ok::<_, String>((origin, worker))
    };
    let started = tokio::task::spawn_blocking(start).await.unwrap();
    let (origin, worker) = started.expect("an origin and a worker");
    for url in [&origin.origin, &worker.url] {
        let get = |path| Call::new(url, Method::GET, path).send();
        store.turn(Manner::Refuse);
        let unready = get("/readyz").await;
        unready.refused(ErrorCode::StorageUnavailable);
        get("/healthz").await.payload();
        let upload = TestFolder::new(Host::Origin).upload("a.txt", "file", "text/plain", b"x");
        let refused = upload.clone().at(url).send().await;
        refused.refused(ErrorCode::StorageUnavailable);
        store.turn(Manner::Raw(FULL));
        let refused = upload.at(url).send().await;
        refused.refused(ErrorCode::StorageFull);
    }
    assert!(!origin.log().contains("storesecret"));
}
