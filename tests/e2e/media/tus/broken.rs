//! Interrupted requests, and concurrent requests to one upload.

use super::super::test_folder::TestFolder;
use super::upload::{Upload, bytes, metadata};
use crate::host::Host;
use crate::raw;
use crate::service::shared;
use shared::error::ErrorCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LENGTH: usize = 6_000_000;
const PART: usize = 3_000_000;

cases! {
    Both: [
        a_part_that_breaks_off_is_kept_as_far_as_it_came,
        a_second_part_at_the_same_time_is_refused_and_its_caller_may_take_over,
    ],
}

async fn begin(host: Host, shelf: &TestFolder) -> Upload {
    let said = metadata(&[("filename", "a.bin"), ("folder", &shelf.folder)]);
    Upload::begin(host, LENGTH, &said).await
}

/// Returns a PATCH with the length of the whole content, but only a part of it.
fn half(upload: &Upload, content: &[u8]) -> Vec<u8> {
    let headers = format!(
        "Authorization: Bearer {}\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n\
         Content-Type: application/offset+octet-stream\r\nContent-Length: {LENGTH}\r\n",
        shared().full_key
    );
    let mut request = raw::request("PATCH", upload.path.as_bytes(), &headers, b"");
    request.extend_from_slice(&content[..PART]);
    request
}

/// Sends the rest from offset `at`, and checks the file.
async fn complete(upload: &Upload, shelf: &TestFolder, content: &[u8], at: usize) {
    let done = upload.patch(at, &content[at..]).await;
    assert_eq!(done.status, 204, "{done}");
    let id = done.header("selkie-media-id").expect("an id");
    let file = shelf.describe(&id.parse().unwrap()).await.payload();
    assert!(shelf.fetch(&file["url"]).await.body == content);
}

async fn a_part_that_breaks_off_is_kept_as_far_as_it_came(host: Host) {
    let (shelf, content) = (TestFolder::new(host), bytes(LENGTH));
    let upload = begin(host, &shelf).await;
    let address = host.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = half(&upload, &content);
    stream.write_all(&request).await.expect("a request");
    // The server reads the sent bytes, then it closes the connection.
    stream.shutdown().await.expect("an end");
    let _ = stream.read_to_end(&mut Vec::new()).await;
    let at = upload.offset().await;
    assert!(at <= PART, "{at}");
    // The edge may have received bytes that did not reach the origin.
    assert!(at > 0 || host == Host::Edge);
    complete(&upload, &shelf, &content, at).await;
}

async fn a_second_part_at_the_same_time_is_refused_and_its_caller_may_take_over(host: Host) {
    let (shelf, content) = (TestFolder::new(host), bytes(LENGTH));
    let upload = begin(host, &shelf).await;
    let request = half(&upload, &content);
    // If this empty part arrives before the first one, it succeeds and changes nothing.
    let first = raw::leave_open(host.url(), &request, async || {
        let second = upload.patch(0, b"").await;
        if second.status == 204 {
            return false;
        }
        second.refused(ErrorCode::UploadLocked);
        true
    });
    let first = first.await;
    let at = upload.offset().await;
    assert!(at <= PART, "{at}");
    if let Some(answer) = first.await.expect("a task") {
        assert_eq!((answer.status, answer.code().as_str()), (423, "upload_locked"));
    }
    complete(&upload, &shelf, &content, at).await;
}
