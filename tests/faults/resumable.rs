//! Resumable uploads whose origin is killed, whose disk two origins share, or which are abandoned. Each case starts its
//! own service.

use crate::case::eventually;
use crate::faults::{start, stop};
use crate::host::{Answer, Call, Host};
use crate::raw;
use crate::second_origin::SecondOrigin;
use crate::service::{Edge, Service};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use shared::error::ErrorCode;
use std::time::Duration;

const TUS: &str = "/api/v1/media/tus";
const LENGTH: usize = 6_000_000;
const PART: usize = 3_000_000;
const ARRIVAL_MAX: Duration = Duration::from_secs(60);

cases! {
    Own: [
        an_upload_outlives_the_origin_that_was_taking_it,
        whatever_step_its_end_dies_at_an_upload_becomes_one_file,
        an_upload_that_nobody_goes_on_with_expires,
    ],
}

fn call(service: &Service, origin: &str, method: Method, path: &str) -> Call {
    Call::new(origin, method, path).key(&service.full_key).header("tus-resumable", "1.0.0")
}

async fn begin(service: &Service, name: &str, length: usize) -> String {
    let created = call(service, &service.origin, Method::POST, TUS)
        .header("upload-length", &length.to_string())
        .header("upload-metadata", &format!("filename {}", STANDARD.encode(name)))
        .send()
        .await;
    assert_eq!(created.status, 201, "{created}");
    created.header("location").expect("a location").to_owned()
}

fn part(service: &Service, path: &str, offset: usize, bytes: &[u8]) -> Call {
    call(service, &service.origin, Method::PATCH, path)
        .header("upload-offset", &offset.to_string())
        .header("content-type", "application/offset+octet-stream")
        .bytes(bytes)
}

async fn head(service: &Service, path: &str) -> Answer {
    call(service, &service.origin, Method::HEAD, path).send().await
}

async fn an_upload_outlives_the_origin_that_was_taking_it(_: Host) {
    let service = start(Edge::Without, &[]).await;
    let content: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    let path = begin(&service, "outlives.bin", LENGTH).await;
    let mut at = 0;
    // The second origin is killed while it receives the first part, then another while it receives the second part.
    for end in [PART, PART + 1_000_000] {
        let mut second = SecondOrigin::start(&service).expect("a second origin");
        let headers = format!(
            "Authorization: Bearer {}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: {at}\r\n\
             Content-Type: application/offset+octet-stream\r\nContent-Length: {}\r\n",
            service.full_key,
            LENGTH - at
        );
        let mut request = raw::request("PATCH", path.as_bytes(), &headers, b"");
        request.extend_from_slice(&content[at..end]);
        // While one origin receives a part, the other one refuses parts of the upload.
        let sent = raw::leave_open(&second.origin, &request, async || {
            let other = part(&service, &path, at, b"").send().await;
            if other.status == 204 {
                return false;
            }
            other.refused(ErrorCode::UploadLocked);
            true
        });
        let sent = sent.await;
        assert_eq!(head(&service, &path).await.status, 423);
        second.kill();
        assert!(sent.await.expect("a task").is_none());
        let far = head(&service, &path).await;
        assert_eq!(far.status, 200, "{far}");
        let offset: usize = far.header("upload-offset").unwrap().parse().unwrap();
        assert!((at..=end).contains(&offset), "{offset}");
        at = offset;
    }
    let done = part(&service, &path, at, &content[at..]).send().await;
    assert_eq!(done.status, 204, "{done}");
    let id = done.header("selkie-media-id").expect("an id");
    let url = done.header("selkie-media-url").expect("a URL");
    let again = head(&service, &path).await;
    assert_eq!(again.header("selkie-media-id"), Some(id));
    let file = url.strip_prefix(&service.origin).expect("a URL of the origin");
    let file = Call::new(&service.origin, Method::GET, file).send().await;
    assert!(file.body == content);
    stop(service).await;
}

async fn whatever_step_its_end_dies_at_an_upload_becomes_one_file(_: Host) {
    let service = start(Edge::Without, &[]).await;
    let content = b"It ends in the middle of its end.";
    for point in ["arrived", "announced", "object_published", "published", "rows_written", "rows_committed"] {
        let path = begin(&service, point, content.len()).await;
        let mut second = SecondOrigin::launch(&service, &[("SELKIE_FAULT_POINT", point)]).unwrap();
        second.wait_until_ready().expect("a second origin");
        let last = call(&service, &second.origin, Method::PATCH, &path)
            .header("upload-offset", "0")
            .header("content-type", "application/offset+octet-stream")
            .bytes(&content[..]);
        assert!(last.attempt().await.is_err(), "{point}");
        second.wait_until_dead().expect("an end");
        // The client asks for the offset at which to resume.
        let far = head(&service, &path).await;
        assert_eq!(far.status, 200, "{point}: {far}");
        assert_eq!(far.header("upload-offset"), Some("33"), "{point}");
        let id = far.header("selkie-media-id").expect("an id").to_owned();
        let again = head(&service, &path).await;
        assert_eq!(again.header("selkie-media-id"), Some(&*id), "{point}");
        let get = |path: &str| Call::new(&service.origin, Method::GET, path).key(&service.full_key);
        let listed = format!("/api/v1/media?name={point}");
        let files = get(&listed).send().await.payload();
        assert_eq!(files.as_array().map(Vec::len), Some(1), "{point}: {files}");
        assert_eq!(files[0]["id"].to_string(), id, "{point}");
        let url = files[0]["url"].as_str().expect("a URL");
        let file = get(url.strip_prefix(&service.origin).expect("a path"));
        assert_eq!(file.send().await.body, content, "{point}");
    }
    let kept = service.data_dir().join("media/staging/tus");
    assert_eq!(std::fs::read_dir(kept).expect("a folder").count(), 0);
    stop(service).await;
}

async fn an_upload_that_nobody_goes_on_with_expires(_: Host) {
    let settings = &[("SELKIE_TUS_EXPIRY", "2s"), ("SELKIE_TUS_MAX_BYTES", "2048")];
    let service = start(Edge::Without, settings).await;
    let path = begin(&service, "expires.bin", 2_048).await;
    assert_eq!(part(&service, &path, 0, b"abc").send().await.status, 204);
    eventually("an end", ARRIVAL_MAX, || async { (head(&service, &path).await.status == 404).then_some(()) }).await;
    let late = part(&service, &path, 3, b"d").send().await;
    late.refused(ErrorCode::MediaNotFound);
    let large = call(&service, &service.origin, Method::POST, TUS)
        .header("upload-length", "2049")
        .header("upload-metadata", "filename YQ==")
        .send()
        .await;
    large.refused(ErrorCode::BodyTooLarge);
    stop(service).await;
}
