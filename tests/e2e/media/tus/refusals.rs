//! Refusals of resumable uploads, at each step, and what is stored afterwards.

use super::super::test_folder::{TestFolder, read_key};
use super::upload::{TUS, Upload, metadata};
use crate::host::{Call, Host};
use crate::service::shared;
use crate::test_db::unique;
use reqwest::Method;
use shared::error::ErrorCode;

cases! {
    Both: [
        another_version_is_told_which_one_is_spoken,
        a_creation_is_refused_for_what_can_not_become_a_file,
        a_part_is_refused_if_it_does_not_belong,
        more_than_was_announced_is_not_kept,
        an_upload_that_is_refused_at_its_end_is_gone,
        a_name_that_is_taken_is_refused_first_and_last,
        only_full_keys_of_the_project_see_an_upload,
    ],
}

async fn another_version_is_told_which_one_is_spoken(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 3, &said).await;
    for version in [None, Some("0.2.2"), Some("2.0.0")] {
        for (method, path) in [(Method::POST, TUS), (Method::PATCH, &upload.path), (Method::DELETE, &upload.path)] {
            let call = host.call(method, path);
            let call = match version {
                Some(version) => call.header("tus-resumable", version),
                None => call,
            };
            let refused = call.send().await;
            refused.refused(ErrorCode::PreconditionFailed);
            assert_eq!(refused.header("tus-version"), Some("1.0.0"));
            assert_eq!(refused.header("tus-resumable"), Some("1.0.0"));
        }
        let head = host.call(Method::HEAD, &upload.path).send().await;
        assert_eq!(head.status, 412);
    }
    assert_eq!(upload.offset().await, 0);
}

async fn a_creation_is_refused_for_what_can_not_become_a_file(host: Host) {
    let named = metadata(&[("filename", "a")]);
    let create = |length: &str, metadata: &str| {
        host.call(Method::POST, TUS)
            .header("tus-resumable", "1.0.0")
            .header("upload-length", length)
            .header("upload-metadata", metadata)
    };
    for (length, metadata, code) in [
        ("0", named.clone(), ErrorCode::InvalidMedia),
        ("17179869185", named.clone(), ErrorCode::BodyTooLarge),
        ("1073741825", metadata(&[("filename", "a"), ("kind", "image")]), ErrorCode::BodyTooLarge),
        ("x", named.clone(), ErrorCode::InvalidQueryOption),
        ("1", metadata(&[("filetype", "image/png")]), ErrorCode::InvalidBody),
        ("1", metadata(&[("filename", "../a")]), ErrorCode::InvalidBody),
        ("1", "filename !".to_owned(), ErrorCode::InvalidBody),
        ("1", format!("{named},x {}", "A".repeat(5_000)), ErrorCode::InvalidBody),
    ] {
        create(length, &metadata).send().await.refused(code);
    }
    for (name, value) in [("upload-defer-length", "1"), ("upload-concat", "partial"), ("upload-checksum", "sha1 x")] {
        let refused = create("1", &named).header(name, value).send().await;
        refused.refused(ErrorCode::InvalidQueryOption);
    }
    let call = host.call(Method::GET, TUS).send().await;
    call.refused(ErrorCode::MethodNotAllowed);
}

async fn a_part_is_refused_if_it_does_not_belong(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 10, &said).await;
    upload.patch(0, b"abc").await;
    for offset in [0, 2, 4, 10, 11] {
        let refused = upload.patch(offset, b"x").await;
        refused.refused(ErrorCode::UploadOffsetMismatch);
    }
    let missing = upload.call(Method::PATCH).bytes("x").send().await;
    missing.refused(ErrorCode::InvalidQueryOption);
    let typed = upload
        .call(Method::PATCH)
        .header("upload-offset", "3")
        .header("content-type", "application/octet-stream")
        .bytes("x")
        .send()
        .await;
    typed.refused(ErrorCode::UnsupportedMediaType);
    assert_eq!(upload.offset().await, 3);
    let nothing = upload.patch(3, b"").await;
    assert_eq!(nothing.status, 204, "{nothing}");
    assert_eq!(nothing.header("upload-offset"), Some("3"));
    for id in ["7", "0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e11"] {
        let stranger = Upload { host, path: format!("{TUS}/{id}") };
        stranger.patch(0, b"x").await.refused(ErrorCode::MediaNotFound);
        assert_eq!(stranger.head().await.status, 404);
    }
}

async fn more_than_was_announced_is_not_kept(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 5, &said).await;
    upload.patch(0, b"abc").await;
    upload.patch(3, b"def").await.refused(ErrorCode::BodyTooLarge);
    assert_eq!(upload.offset().await, 3);
    // A chunked body announces no length, so excess bytes are noticed only when they arrive.
    let parts = ["d", "ef"].map(Ok::<_, std::io::Error>);
    let chunked = upload.part(3, b"").request().body(reqwest::Body::wrap_stream(futures_util::stream::iter(parts)));
    let refused = chunked.send().await.expect("an answer");
    assert_eq!(refused.status(), 413);
    assert_eq!(upload.offset().await, 3);
    let done = upload.patch(3, b"de").await;
    assert!(done.header("selkie-media-id").is_some(), "{done}");
}

async fn an_upload_that_is_refused_at_its_end_is_gone(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a.png"), ("filetype", "image/png"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 9, &said).await;
    upload.patch(0, b"no pict").await;
    let refused = upload.patch(7, b"re").await;
    let error = refused.refused(ErrorCode::InvalidMedia);
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("The upload is gone."), "{message}");
    assert_eq!(upload.head().await.status, 404);
    assert_eq!(shelf.names().await, Vec::<String>::new());
}

async fn a_name_that_is_taken_is_refused_first_and_last(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a.txt"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 3, &said).await;
    shelf.put("a.txt", "file", "text/plain", b"first").await;
    let second = Upload::creation(host, 3, &said).send().await;
    second.refused(ErrorCode::MediaExists);
    upload.patch(0, b"new").await.refused(ErrorCode::MediaExists);
    assert_eq!(upload.head().await.status, 404);
    let files = shelf.list("").await.payload();
    assert_eq!(files.as_array().map(Vec::len), Some(1));
    assert_eq!(shelf.fetch(&files[0]["url"]).await.body, b"first");
}

async fn only_full_keys_of_the_project_see_an_upload(host: Host) {
    let shelf = TestFolder::new(host);
    let said = metadata(&[("filename", "a"), ("folder", &shelf.folder)]);
    let upload = Upload::begin(host, 3, &said).await;
    let refused = Upload::creation(host, 3, &said).key(read_key()).send().await;
    refused.refused(ErrorCode::FullAccessRequired);
    let project = unique("tus");
    shared().create_project(&project);
    let stranger = shared().create_key(&project, "full", &[]).token;
    let calls: [fn(&Upload) -> Call; 2] = [|upload| upload.part(0, b"abc"), |upload| upload.call(Method::DELETE)];
    for call in calls {
        let read = call(&upload).key(read_key()).send().await;
        read.refused(ErrorCode::FullAccessRequired);
        let other = call(&upload).key(&stranger).send().await;
        other.refused(ErrorCode::MediaNotFound);
        let keyless = call(&upload).no_key().send().await;
        keyless.refused(ErrorCode::MissingKey);
    }
    for (key, status) in [(read_key(), 403), (stranger.as_str(), 404)] {
        let head = upload.call(Method::HEAD).key(key).send().await;
        assert_eq!(head.status, status);
    }
    assert_eq!(upload.offset().await, 0);
}
