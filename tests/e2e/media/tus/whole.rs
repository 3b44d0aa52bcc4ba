//! Resumable uploads from their creation to the file, in every way that the protocol allows.

use super::super::fixtures::png;
use super::super::test_folder::{TestFolder, read_key};
use super::upload::{TUS, Upload, bytes, metadata};
use crate::host::Host;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

cases! {
    Both: [
        an_upload_goes_from_its_creation_to_its_file,
        what_is_there_of_the_protocol_is_told_to_any_key,
        the_first_bytes_may_come_with_the_creation,
        an_old_proxy_sees_only_post,
        metadata_say_what_the_file_is,
        a_file_may_be_replaced,
        an_upload_is_given_up,
    ],
}

async fn an_upload_goes_from_its_creation_to_its_file(host: Host) {
    let shelf = TestFolder::new(host);
    let content = bytes(700_000);
    let said = metadata(&[("filename", "a.bin"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, content.len(), &said).await;
    let far = upload.head().await;
    assert_eq!(far.status, 200, "{far}");
    for (name, value) in [
        ("upload-offset", "0"),
        ("upload-length", "700000"),
        ("upload-metadata", &said),
        ("cache-control", "no-store"),
        ("tus-resumable", "1.0.0"),
    ] {
        assert_eq!(far.header(name), Some(value), "{name}");
    }
    assert!(far.header("upload-expires").unwrap().ends_with(" GMT"));
    assert!(far.header("selkie-media-id").is_none());
    let mut at = 0;
    for piece in content.chunks(300_000) {
        let taken = upload.patch(at, piece).await;
        at += piece.len();
        assert_eq!(taken.status, 204, "{taken}");
        assert_eq!(taken.header("upload-offset"), Some(&*at.to_string()));
        assert!(taken.header("upload-expires").is_some());
        assert_eq!(taken.header("tus-resumable"), Some("1.0.0"));
        assert_eq!(taken.header("selkie-media-id").is_some(), at == content.len());
    }
    // A client that didn't receive the last answer can ask for the offset, or send the end again.
    let last = upload.head().await;
    assert_eq!(last.header("upload-offset"), Some("700000"));
    let again = upload.patch(700_000, b"").await;
    assert_eq!(again.status, 204, "{again}");
    let id = last.header("selkie-media-id").expect("an id");
    assert_eq!(again.header("selkie-media-id"), Some(id));
    let file = shelf.describe(&id.parse().unwrap()).await.payload();
    assert_eq!(file["url"], last.header("selkie-media-url").expect("a URL"));
    assert_eq!((&file["name"], &file["type"]), (&json!("a.bin"), &json!("file")));
    assert_eq!(file["folder"], json!(shelf.folder));
    assert!(shelf.fetch(&file["url"]).await.body == content);
}

async fn what_is_there_of_the_protocol_is_told_to_any_key(host: Host) {
    for path in [TUS.to_owned(), format!("{TUS}/0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e11")] {
        let told = host.call(Method::OPTIONS, &path).key(read_key()).send().await;
        assert_eq!(told.status, 204, "{told}");
        for (name, value) in [
            ("tus-resumable", "1.0.0"),
            ("tus-version", "1.0.0"),
            ("tus-extension", "creation,creation-with-upload,termination,expiration"),
            ("tus-max-size", "17179869184"),
        ] {
            assert_eq!(told.header(name), Some(value), "{name}");
        }
        let keyless = host.call(Method::OPTIONS, &path).no_key().send().await;
        keyless.refused(ErrorCode::MissingKey);
        assert_eq!(keyless.header("tus-resumable"), Some("1.0.0"));
        let preflight = host
            .call(Method::OPTIONS, &path)
            .no_key()
            .header("origin", "https://app.example")
            .header("access-control-request-method", "PATCH")
            .send()
            .await;
        assert_eq!(preflight.status, 204, "{preflight}");
        let allowed = preflight.header("access-control-allow-headers").unwrap();
        for name in ["Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset"] {
            assert!(allowed.contains(name), "{name}: {allowed}");
        }
        let exposed = preflight.header("access-control-expose-headers").unwrap();
        for name in ["Location", "Upload-Offset", "Upload-Expires", "Selkie-Media-Id"] {
            assert!(exposed.contains(name), "{name}: {exposed}");
        }
    }
}

async fn the_first_bytes_may_come_with_the_creation(host: Host) {
    let shelf = TestFolder::new(host);
    let content = bytes(50_000);
    let said = metadata(&[("filename", "part.bin"), ("folder", &shelf.folder)]);
    let created = Upload::creation(host, content.len(), &said)
        .header("content-type", "application/offset+octet-stream")
        .bytes(&content[..20_000])
        .send()
        .await;
    assert_eq!(created.status, 201, "{created}");
    assert_eq!(created.header("upload-offset"), Some("20000"));
    let upload = Upload::of(host, &created);
    upload.patch(20_000, &content[20_000..]).await;
    let said = metadata(&[("filename", "whole.bin"), ("folder", &shelf.folder)]);
    let whole = Upload::creation(host, content.len(), &said)
        .header("content-type", "application/offset+octet-stream")
        .bytes(content.clone())
        .send()
        .await;
    assert_eq!(whole.status, 201, "{whole}");
    assert_eq!(whole.header("upload-offset"), Some("50000"));
    assert!(whole.header("selkie-media-id").is_some());
    assert_eq!(shelf.names().await, ["part.bin", "whole.bin"]);
}

async fn an_old_proxy_sees_only_post(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a.bin"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 3, &said).await;
    let post = |method: &str| upload.call(Method::POST).header("x-http-method-override", method);
    let taken = post("PATCH")
        .header("upload-offset", "0")
        .header("content-type", "application/offset+octet-stream")
        .bytes("ab")
        .send()
        .await;
    assert_eq!(taken.header("upload-offset"), Some("2"), "{taken}");
    assert_eq!(post("DELETE").send().await.status, 204);
    assert_eq!(upload.head().await.status, 404);
    let refused = post("PUT").send().await;
    refused.refused(ErrorCode::MethodNotAllowed);
}

async fn metadata_say_what_the_file_is(host: Host) {
    let shelf = TestFolder::new(host);
    let picture = png();
    let said = metadata(&[
        ("filename", "a.png"),
        ("filetype", "image/png"),
        ("folder", &shelf.folder),
        ("private", "true"),
        ("relativePath", "x/y"),
    ]);
    let upload = Upload::begin(host, picture.len(), &said).await;
    let done = upload.patch(0, &picture).await;
    let id = done.header("selkie-media-id").expect("an id");
    let file = shelf.describe(&id.parse().unwrap()).await.payload();
    assert_eq!(file["type"], "image");
    assert_eq!(file["width"], 40);
    assert_eq!(file["private"], true);
    assert_eq!(file["thumbnailUrl"].as_str(), Some(done.header("selkie-media-thumbnail-url").expect("a thumbnail")));
    shelf.fetch(&file["url"]).await.refused(ErrorCode::MediaNotFound);
}

async fn a_file_may_be_replaced(host: Host) {
    let shelf = TestFolder::new(host);
    let old = shelf.put("a.txt", "file", "text/plain", b"old").await;
    let said = metadata(&[("filename", "a.txt"), ("folder", &shelf.folder), ("update", "true")]);
    let upload = Upload::begin(host, 3, &said).await;
    // The old file stays until the last byte has arrived.
    upload.patch(0, b"ne").await;
    assert_eq!(shelf.fetch(&old["url"]).await.body, b"old");
    let done = upload.patch(2, b"w").await;
    assert_eq!(done.header("selkie-media-id"), Some(&*old["id"].to_string()));
    let file = shelf.describe(&old["id"]).await.payload();
    assert_eq!(shelf.fetch(&file["url"]).await.body, b"new");
}

async fn an_upload_is_given_up(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a.bin"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 10, &said).await;
    upload.patch(0, b"abc").await;
    let gone = upload.call(Method::DELETE).send().await;
    assert_eq!(gone.status, 204, "{gone}");
    assert_eq!(gone.header("tus-resumable"), Some("1.0.0"));
    assert_eq!(upload.head().await.status, 404);
    upload.patch(3, b"d").await.refused(ErrorCode::MediaNotFound);
    let again = upload.call(Method::DELETE).send().await;
    again.refused(ErrorCode::MediaNotFound);
    assert_eq!(shelf.names().await, Vec::<String>::new());
}
