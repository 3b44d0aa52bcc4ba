//! Crashes an origin at each step of storing, replacing, deleting or sweeping files. Afterwards the files must be in
//! the old state or the new one: rows refer to complete objects, and a sweep removes everything else. The steps are the
//! fault points of `origin/src/crash_points.rs`.

use crate::case::eventually;
use crate::faults::{start, stop};
use crate::host::{Answer, Call, Host, enc};
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service};
use crate::transfer::broken;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Duration;

cases! {
    Own: [
        whatever_step_an_upload_dies_at_it_is_there_whole_or_not_at_all,
        whatever_step_a_replacement_dies_at_the_old_files_are_there_or_the_new,
        whatever_step_a_deletion_dies_at_the_file_is_there_whole_or_gone,
        whatever_step_a_sweep_dies_at_the_next_one_ends_it,
        every_step_is_one_to_die_at,
    ],
}

/// The fault points of storing new files and of replacing files, before rows are committed.
const BEFORE_ROWS: [&str; 5] = ["arrived", "announced", "object_published", "published", "rows_written"];
const AFTER_ROWS: [&str; 1] = ["rows_committed"];
const AFTER_REPLACED_ROWS: [&str; 3] = ["rows_committed", "objects_deleted", "ledger_cleared"];
const BEFORE_DELETION: [&str; 1] = ["row_deleted"];
const AFTER_DELETION: [&str; 3] = ["deletion_committed", "objects_deleted", "ledger_cleared"];
const OF_A_SWEEP: [&str; 3] = ["deletion_recorded", "objects_deleted", "ledger_cleared"];

/// Maximum time of a start with its sweep, on a loaded machine.
const SWEPT_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Upload,
    Replace,
    Delete,
}

/// The state of a folder after an operation that crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Old,
    New,
}

async fn whatever_step_an_upload_dies_at_it_is_there_whole_or_not_at_all(_: Host) {
    walk(Deed::Upload, &BEFORE_ROWS, &AFTER_ROWS).await;
}

async fn whatever_step_a_replacement_dies_at_the_old_files_are_there_or_the_new(_: Host) {
    walk(Deed::Replace, &BEFORE_ROWS, &AFTER_REPLACED_ROWS).await;
}

async fn whatever_step_a_deletion_dies_at_the_file_is_there_whole_or_gone(_: Host) {
    walk(Deed::Delete, &BEFORE_DELETION, &AFTER_DELETION).await;
}

async fn walk(deed: Deed, old: &[&str], new: &[&str]) {
    let service = start(Edge::Without, &[]).await;
    let old = old.iter().map(|point| (point, State::Old));
    let new = new.iter().map(|point| (point, State::New));
    for (point, state) in old.chain(new) {
        let before = prepare(&service, deed, point).await;
        die(&service, deed, point, &before).await;
        let after = rows(&service, point).await;
        judge(deed, state, &before, &after, point);
        for row in &after {
            is_whole(&service, row).await;
        }
        make_due(&service);
        let second = second(&service).await;
        eventually("nothing is left over", SWEPT_MAX, || async { is_clean(&service).then_some(()) }).await;
        drop(second);
        // The sweep at the origin's start must not change the rows.
        assert_eq!(rows(&service, point).await, after, "{point}");
        for row in &after {
            is_whole(&service, row).await;
        }
    }
    stop(service).await;
}

async fn whatever_step_a_sweep_dies_at_the_next_one_ends_it(_: Host) {
    let service = start(Edge::Without, &[]).await;
    for point in OF_A_SWEEP {
        let before = prepare(&service, Deed::Replace, point).await;
        die(&service, Deed::Replace, "published", &before).await;
        make_due(&service);
        let mut sweeper = SecondOrigin::launch(&service, &[("SELKIE_FAULT_POINT", point)]).unwrap();
        let died = tokio::task::spawn_blocking(move || sweeper.wait_until_dead());
        died.await.unwrap().unwrap();
        assert_eq!(rows(&service, point).await, before, "{point}");
        let left = ledger(&service);
        assert_eq!(left == 0, point == "ledger_cleared", "{left} at {point}");
        let second = second(&service).await;
        eventually("nothing is left over", SWEPT_MAX, || async { is_clean(&service).then_some(()) }).await;
        drop(second);
        for row in &before {
            is_whole(&service, row).await;
        }
    }
    stop(service).await;
}

/// Fails if a fault point has no test, here or among the imports.
async fn every_step_is_one_to_die_at(_: Host) {
    let table = include_str!("../../origin/src/crash_points.rs");
    let known: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_suffix("\";")?.rsplit_once(" = \""))
        .map(|(_, name)| name)
        .collect();
    let walked: BTreeSet<&str> = [
        &BEFORE_ROWS[..],
        &AFTER_ROWS,
        &AFTER_REPLACED_ROWS,
        &BEFORE_DELETION,
        &AFTER_DELETION,
        &OF_A_SWEEP,
        &broken::POINTS,
    ]
    .concat()
    .into_iter()
    .collect();
    assert_eq!(known, walked);
}

async fn prepare(service: &Service, deed: Deed, folder: &str) -> Vec<Value> {
    if deed != Deed::Upload {
        upload(&service.origin, service, folder, 10, false).send().await.payload();
    }
    rows(service, folder).await
}

async fn die(service: &Service, deed: Deed, point: &str, before: &[Value]) {
    let mut dying = SecondOrigin::launch(service, &[("SELKIE_FAULT_POINT", point)]).unwrap();
    let (mut dying, ready) = tokio::task::spawn_blocking(move || {
        let ready = dying.wait_until_ready();
        (dying, ready)
    })
    .await
    .unwrap();
    ready.unwrap();
    let folder = before.first().and_then(|row| row["folder"].as_str()).unwrap_or(point);
    let call = match deed {
        Deed::Upload => upload(&dying.origin, service, folder, 90, false),
        Deed::Replace => upload(&dying.origin, service, folder, 90, true),
        Deed::Delete => {
            let path = format!("/api/v1/media/{}", before[0]["id"]);
            Call::new(&dying.origin, Method::DELETE, &path).key(&service.full_key)
        }
    };
    let answered = call.attempt().await;
    assert!(answered.is_err(), "{deed:?} does not come to {point}");
    tokio::task::spawn_blocking(move || dying.wait_until_dead()).await.unwrap().unwrap();
}

async fn second(service: &Service) -> SecondOrigin {
    tokio::task::block_in_place(|| SecondOrigin::start(service)).unwrap()
}

fn upload(origin: &str, service: &Service, folder: &str, shade: u8, update: bool) -> Call {
    let media = ["one.png", "two.png"].map(|name| {
        let picture = STANDARD.encode(picture(shade + u8::try_from(name.len() % 7).unwrap()));
        json!({"name": name, "base64": format!("data:image/png;base64,{picture}")})
    });
    let mut body = json!({"media": media, "folder": folder, "type": "image"});
    if update {
        body["update"] = json!(true);
    }
    Call::new(origin, Method::POST, "/api/v1/media").key(&service.full_key).json(&body)
}

fn picture(shade: u8) -> Vec<u8> {
    let pixels = RgbImage::from_fn(400, 300, |x, y| {
        Rgb([shade, u8::try_from(x % 251).unwrap(), u8::try_from(y % 241).unwrap()])
    });
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::from(pixels).write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

async fn rows(service: &Service, folder: &str) -> Vec<Value> {
    let path = format!("/api/v1/media?folder={}&order={}", enc(folder), enc(r#"{"field":"name"}"#));
    let list = Call::new(&service.origin, Method::GET, &path).key(&service.full_key);
    list.send().await.payload().as_array().unwrap().clone()
}

fn judge(deed: Deed, state: State, before: &[Value], after: &[Value], point: &str) {
    let of = |rows: &[Value], field: &str| -> Vec<Value> { rows.iter().map(|row| row[field].clone()).collect() };
    match (state, deed) {
        (State::Old, _) => assert_eq!(after, before, "{point}"),
        (State::New, Deed::Upload) => {
            assert_eq!(of(after, "name"), ["one.png", "two.png"], "{point}");
        }
        (State::New, Deed::Replace) => {
            assert_eq!(of(after, "id"), of(before, "id"), "{point}");
            for (new, old) in after.iter().zip(before) {
                assert_ne!(new["sha256"], old["sha256"], "{point}");
            }
        }
        (State::New, Deed::Delete) => assert_eq!(after, &before[1..], "{point}"),
    }
}

/// Checks that a client gets the bytes that a file's row describes.
async fn is_whole(service: &Service, row: &Value) {
    let bytes = fetch(service, row["url"].as_str().unwrap()).await.body;
    assert_eq!(json!(bytes.len()), row["size"]);
    assert_eq!(json!(hex(&Sha256::digest(&bytes))), row["sha256"]);
    let small = fetch(service, row["thumbnailUrl"].as_str().unwrap()).await;
    let small = image::load_from_memory(&small.body).unwrap();
    assert_eq!((small.width(), small.height()), (256, 192));
}

async fn fetch(service: &Service, url: &str) -> Answer {
    let path = &url[url.find("/media/").unwrap()..];
    let answer = Call::new(&service.origin, Method::GET, path).send().await;
    assert_eq!(answer.status, 200, "{answer}");
    answer
}

fn make_due(service: &Service) {
    let due = "UPDATE selkie.media_due SET due_at = 1 WHERE due_at > 0";
    service.root_sql(due).unwrap();
}

fn ledger(service: &Service) -> u64 {
    let count = service.root_sql("SELECT COUNT(*) FROM selkie.media_due");
    count.unwrap().trim().parse().unwrap()
}

/// Returns whether the store contains exactly the objects that rows refer to, with their size and hash.
fn is_clean(service: &Service) -> bool {
    let named = "SELECT HEX(object), size, HEX(sha256) FROM selkie.media UNION ALL \
        SELECT HEX(thumbnail_object), thumbnail_size, HEX(thumbnail_sha256) FROM selkie.media \
        WHERE thumbnail_object IS NOT NULL";
    let named: BTreeMap<String, (u64, String)> = service
        .root_sql(named)
        .unwrap()
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            let size = cells[1].parse().unwrap();
            (cells[0].to_lowercase(), (size, cells[2].to_lowercase()))
        })
        .collect();
    let media = service.data_dir().join("media");
    let stored: BTreeMap<String, (u64, String)> = files(&media.join("objects"))
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().replace('-', "");
            let bytes = std::fs::read(path).unwrap_or_default();
            (name, (bytes.len() as u64, hex(&Sha256::digest(&bytes))))
        })
        .collect();
    for (object, content) in &named {
        assert_eq!(stored.get(object), Some(content), "a row's object is not whole");
    }
    stored.len() == named.len() && ledger(service) == 0 && is_nothing_staged(&media.join("staging"))
}

/// Returns whether the staging directory contains only the locks of running processes.
fn is_nothing_staged(staging: &Path) -> bool {
    let mut files = files(staging).into_iter();
    files.all(|file| file.extension().is_some_and(|extension| extension == "lock"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
