//! Uploads through the edge: the edge checks them while it forwards them, so that an invalid upload is never complete
//! at the origin.
//!
//! wrangler's local proxy forwards an answer with status 400 only after the client has sent everything
//! (docs/troubleshooting.md, "Limits of the local edge"), so these clients send everything.

use super::fixtures::data_url;
use super::test_folder::{MEDIA, TestFolder};
use crate::case::eventually;
use crate::host::{Call, Host};
use crate::raw::{self, RawAnswer, Wire};
use crate::service::{Edge, Service, shared};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

cases! {
    Edge: [
        a_fault_midway_is_named_and_nothing_is_stored,
        a_fault_midway_ends_the_origins_part_though_the_caller_goes_on,
        a_caller_who_leaves_halfway_leaves_nothing,
        a_bad_body_is_answered_as_the_origin_answers_it,
        a_body_that_ends_before_its_last_bracket_is_refused,
        bodies_are_limited_by_length_and_pauses_and_not_by_the_time_they_take,
    ],
}

const MIB: usize = 1024 * 1024;
const PIECE_BYTES: usize = 100_000;
const GONE_MAX: Duration = Duration::from_secs(30);

/// Returns an upload's body of one file with this many bytes of base64, all `A`.
fn body(shelf: &TestFolder, base64_bytes: usize) -> Vec<u8> {
    let file = "A".repeat(base64_bytes / 4 * 4);
    format!(
        r#"{{"media": [{{"name": "large.bin", "base64": "data:application/octet-stream;base64,{file}"}}], "folder": "{}", "type": "file"}}"#,
        shelf.folder
    )
    .into_bytes()
}

/// Returns the head of an upload with this `Content-Length`; `None` for a chunked body.
fn head(key: &str, length: Option<usize>) -> Vec<u8> {
    let length = match length {
        Some(bytes) => format!("Content-Length: {bytes}\r\n"),
        None => "Transfer-Encoding: chunked\r\n".to_owned(),
    };
    let headers = format!("Authorization: Bearer {key}\r\nContent-Type: application/json\r\n{length}");
    raw::request("POST", MEDIA.as_bytes(), &headers, b"")
}

fn error(answer: Option<RawAnswer>) -> (u16, Value) {
    let answer = answer.expect("an answer");
    let body: Value = serde_json::from_slice(&answer.body).expect("an envelope");
    (answer.status, body["error"].clone())
}

fn staged(service: &Service) -> BTreeMap<String, u64> {
    let dir = service.data_dir().join("media/staging");
    let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    // Each process stages its files in a directory of its own.
    let folders = entries(&dir).filter(|entry| entry.file_name() != "tus");
    folders
        .flat_map(|folder| entries(&folder.path()))
        .filter_map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((name, metadata.len()))
        })
        .collect()
}

/// Waits for a staged file of at least this size, since other cases stage small files at the same time.
async fn large_file_staged(bytes: usize) -> Vec<String> {
    eventually("the file is staged", GONE_MAX, || async {
        let files = staged(shared());
        let is_large = |size: &u64| *size >= bytes as u64;
        files.values().any(is_large).then(|| files.into_keys().collect())
    })
    .await
}

async fn all_gone(names: &[String]) {
    eventually("the staged files are gone", GONE_MAX, || async {
        let left = staged(shared());
        names.iter().all(|name| !left.contains_key(name)).then_some(())
    })
    .await;
}

async fn a_fault_midway_is_named_and_nothing_is_stored(host: Host) {
    let shelf = TestFolder::new(host);
    for length_is_known in [true, false] {
        let mut bytes = body(&shelf, 24 * MIB);
        bytes[8 * MIB] = b'*';
        let mut wire = Wire::open(host.url()).await;
        let length = length_is_known.then_some(bytes.len());
        wire.send(&head(&shared().full_key, length)).await;
        for piece in bytes.chunks(PIECE_BYTES) {
            if length_is_known {
                wire.send(piece).await;
            } else {
                wire.send(&chunk(piece)).await;
            }
        }
        if !length_is_known {
            wire.send(b"0\r\n\r\n").await;
        }
        let (status, error) = error(wire.answer().await);
        assert_eq!((status, &error["code"]), (400, &json!("invalid_media")));
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("large.bin"), "{error}");
        assert!(message.contains(&(8 * MIB).to_string()), "{error}");
        assert_eq!(shelf.names().await, Vec::<String>::new());
    }
    all_gone(&staged(shared()).into_keys().collect::<Vec<_>>()).await;
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
    bytes.extend_from_slice(piece);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

async fn a_fault_midway_ends_the_origins_part_though_the_caller_goes_on(host: Host) {
    let shelf = TestFolder::new(host);
    let mut bytes = body(&shelf, 24 * MIB);
    let middle = 12 * MIB;
    bytes[middle] = b'*';
    let mut wire = Wire::open(host.url()).await;
    wire.send(&head(&shared().full_key, Some(bytes.len()))).await;
    wire.send(&bytes[..middle]).await;
    let names = large_file_staged(4 * MIB).await;
    wire.send(&bytes[middle..16 * MIB]).await;
    // The connection is still open, and a third of the body has not been sent.
    all_gone(&names).await;
    assert_eq!(shelf.names().await, Vec::<String>::new());
    drop(wire);
}

async fn a_caller_who_leaves_halfway_leaves_nothing(host: Host) {
    let shelf = TestFolder::new(host);
    for length_is_known in [true, false] {
        let bytes = body(&shelf, 24 * MIB);
        let half = &bytes[..12 * MIB];
        let mut wire = Wire::open(host.url()).await;
        if length_is_known {
            wire.send(&head(&shared().full_key, Some(bytes.len()))).await;
            wire.send(half).await;
        } else {
            wire.send(&head(&shared().full_key, None)).await;
            wire.send(&chunk(half)).await;
        }
        let names = large_file_staged(4 * MIB).await;
        drop(wire);
        all_gone(&names).await;
        assert_eq!(shelf.names().await, Vec::<String>::new());
    }
}

async fn a_bad_body_is_answered_as_the_origin_answers_it(host: Host) {
    let shelf = TestFolder::new(host);
    let file = data_url("text/plain", &[b'x'; 300_000]);
    let good =
        json!({"media": [{"name": "a.txt", "base64": file}], "folder": shelf.folder, "type": "file"}).to_string();
    let form = "multipart/form-data; boundary=b";
    let part = |disposition: &str, content: &str| {
        format!("--b\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{content}\r\n")
    };
    let content = "x".repeat(200_000);
    let in_form = part("name=\"file\"; filename=\"a.txt\"", &content);
    let json_type = "application/json";
    for (content_type, body) in [
        (json_type, String::new()),
        (json_type, "[]".to_owned()),
        (json_type, good[..200_000].to_owned()),
        (json_type, good[..good.len() - 1].to_owned()),
        (json_type, format!("{good}{good}")),
        (json_type, good.replacen("eHh4", "eH*4", 1)),
        (json_type, good.replace("\",\"name\"", "*\",\"name\"")),
        (json_type, good.replace("\"type\":\"file\"", "\"type\":\"picture\"")),
        (json_type, good.replace("\"type\"", "\"typ\"")),
        (json_type, good.replace("a.txt", "../a.txt")),
        (json_type, good.replace("\"name\"", "\"nam\"")),
        (json_type, good.replace("\"name\":\"a.txt\"", "\"name\":\"a.txt\",\"name\":\"b.txt\"")),
        (json_type, good.replace("data:text/plain;base64,", "data:text/plain,")),
        (json_type, "[".repeat(100_000)),
        (json_type, format!("{{\"{}", "k".repeat(100_000))),
        (form, in_form.clone()),
        (form, format!("{in_form}--b--\r\n")),
        (form, format!("{in_form}{}--b--\r\n", part("name=\"type\"", "picture"))),
        (form, format!("no boundary {content}")),
        (form, "--b\r\nno header at all\r\n\r\n--b--\r\n".to_owned()),
        ("multipart/form-data", in_form.clone()),
        ("text/plain", good.clone()),
    ] {
        let ask = |host: Host| {
            let call = host.call(Method::POST, MEDIA).bytes(body.clone());
            call.header("content-type", content_type).send()
        };
        let (direct, through) = (ask(Host::Origin).await, ask(host).await);
        let comparable = |answer: &crate::host::Answer| {
            let mut error = answer.json()["error"].clone();
            error["requestId"] = Value::Null;
            (answer.status, error)
        };
        assert!(direct.status.is_client_error(), "{direct}");
        assert_eq!(comparable(&direct), comparable(&through), "\n{direct}\n{through}");
    }
    assert_eq!(shelf.names().await, Vec::<String>::new());
}

/// A `Content-Length` that is too short cuts the body; the rest is parsed as another request, which is invalid.
async fn a_body_that_ends_before_its_last_bracket_is_refused(host: Host) {
    let shelf = TestFolder::new(host);
    let bytes = body(&shelf, 400_000);
    let mut wire = Wire::open(host.url()).await;
    wire.send(&head(&shared().full_key, Some(bytes.len() - 1))).await;
    wire.send(&bytes[..bytes.len() - 1]).await;
    let (status, error) = error(wire.answer().await);
    assert_eq!((status, &error["code"]), (400, &json!("invalid_json")));
    // The last chunk of a chunked body comes too early.
    let mut wire = Wire::open(host.url()).await;
    wire.send(&head(&shared().full_key, None)).await;
    wire.send(&chunk(&bytes[..300_000])).await;
    wire.send(b"0\r\n\r\n").await;
    let (status, error) = self::error(wire.answer().await);
    assert_eq!((status, &error["code"]), (400, &json!("invalid_json")));
    assert_eq!(shelf.names().await, Vec::<String>::new());
}

/// A service with a limit of 2 MiB per body and 2 s per pause, whose edge waits 6 s for its origin.
async fn bodies_are_limited_by_length_and_pauses_and_not_by_the_time_they_take(host: Host) {
    let settings =
        [("SELKIE_UPLOAD_MAX_BYTES", "2097152"), ("SELKIE_BODY_READ_TIMEOUT", "2s"), ("SELKIE_QUERY_TIMEOUT", "1s")];
    let start = move || Service::start(Edge::With, &settings);
    let service = tokio::task::spawn_blocking(start).await.unwrap().expect("a service");
    let edge = service.edge.clone().expect("an edge");
    let shelf = TestFolder::new(host);
    // The body is refused because of its announced length, before it is sent.
    for length in [2 * MIB + 1, 100 * 1024 * MIB] {
        let mut wire = Wire::open(&edge).await;
        wire.send(&head(&service.full_key, Some(length))).await;
        let (status, error) = error(wire.answer().await);
        assert_eq!((status, &error["code"]), (413, &json!("body_too_large")));
    }
    // The body is refused because of its actual length, before it ends.
    let bytes = body(&shelf, 4 * MIB);
    let mut wire = Wire::open(&edge).await;
    wire.send(&head(&service.full_key, None)).await;
    wire.send(&chunk(&bytes[..3 * MIB])).await;
    let (status, error) = self::error(wire.answer().await);
    assert_eq!((status, &error["code"]), (413, &json!("body_too_large")));
    // A client that pauses too long gets the origin's error in the middle of its body.
    let bytes = body(&shelf, MIB);
    let mut wire = Wire::open(&edge).await;
    wire.send(&head(&service.full_key, Some(bytes.len()))).await;
    wire.send(&bytes[..MIB / 2]).await;
    for (what, kept) in [("it arrives", 1), ("the origin gives it up", 0)] {
        let is_so = || async { (staged(&service).len() == kept).then_some(()) };
        eventually(what, Duration::from_secs(30), is_so).await;
    }
    wire.send(&bytes[MIB / 2..]).await;
    let (status, error) = self::error(wire.answer().await);
    assert_eq!((status, &error["code"]), (400, &json!("invalid_body")));
    assert_eq!(staged(&service).len(), 0);
    // A slow upload takes longer than the edge waits for the origin, and is stored.
    let mut wire = Wire::open(&edge).await;
    wire.send(&head(&service.full_key, Some(bytes.len()))).await;
    for piece in bytes.chunks(PIECE_BYTES) {
        tokio::time::sleep(Duration::from_millis(800)).await;
        wire.send(piece).await;
    }
    let answer = wire.answer().await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let list = Call::new(&edge, Method::GET, MEDIA).key(&service.full_key);
    let files = list.send().await.payload();
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files}");
    tokio::task::spawn_blocking(move || service.stop()).await.unwrap().unwrap();
}
