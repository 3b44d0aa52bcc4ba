//! Serving files: headers, versions, names, thumbnails, paths; and reading while a file is replaced.

use super::fixtures::{data_url, picture, transparent};
use super::test_folder::TestFolder;
use crate::host::{Answer, Call, Host};
use crate::raw;
use image::ImageFormat;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::sync::atomic::{AtomicBool, Ordering};

cases! {
    Both: [
        a_file_comes_back_as_it_was_sent_and_says_what_it_is,
        a_url_with_the_version_is_kept_for_a_year_and_any_other_is_asked_again,
        what_a_browser_would_run_is_saved_and_not_shown,
        a_file_is_saved_under_the_name_that_is_asked_for,
        any_name_comes_back_under_any_spelling_of_its_url,
        a_thumbnail_is_a_picture_of_its_own,
        files_are_only_read,
        paths_that_no_file_can_have_are_not_found,
        a_long_url_is_refused,
        pages_may_read_what_they_need,
        every_reader_gets_the_old_file_or_the_new_one_while_it_is_replaced,
        a_deleted_file_is_not_found_at_once,
    ],
}

/// Bytes of a file that is larger than the pieces in which it is read and sent.
pub(super) const LARGE: usize = 3 * 1024 * 1024 + 17;

/// Returns bytes in which no part repeats, so that a test can tell the position of a part.
pub(super) fn large(seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = std::iter::repeat_with(&mut next).take(LARGE / 8 + 1).flatten().collect();
    bytes.truncate(LARGE);
    bytes
}

pub(super) async fn put_text(shelf: &TestFolder, name: &str, bytes: &[u8]) -> Call {
    let file = shelf.put(name, "file", "text/plain", bytes).await;
    shelf.at(&file["url"])
}

pub(super) async fn put_large(shelf: &TestFolder) -> (Vec<u8>, Call) {
    let bytes = large(7);
    let mime = "application/octet-stream";
    let file = shelf.put("large.bin", "file", mime, &bytes).await;
    (bytes, shelf.at(&file["url"]))
}

fn asking(shelf: &TestFolder, url: &Value, query: &str) -> Call {
    let bare = url.as_str().unwrap().split('?').next().unwrap();
    shelf.at(&json!(format!("{bare}{query}")))
}

#[track_caller]
pub(super) fn tag(answer: &Answer) -> String {
    answer.header("etag").expect("a tag").to_owned()
}

async fn a_file_comes_back_as_it_was_sent_and_says_what_it_is(host: Host) {
    let shelf = TestFolder::new(host);
    let (bytes, call) = put_large(&shelf).await;
    let answer = call.send().await;
    assert_eq!(answer.status, 200, "{answer}");
    assert!(answer.body == bytes, "other bytes");
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment; filename=\"large.bin\""),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "cross-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("content-length"), Some(LARGE.to_string().as_str()));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"));
    let tag = tag(&answer);
    assert!(tag.starts_with('"') && tag.len() > 20, "{tag}");
    assert!(answer.header("last-modified").unwrap().ends_with(" GMT"));
}

async fn a_url_with_the_version_is_kept_for_a_year_and_any_other_is_asked_again(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    let kept = |answer: &Answer| answer.header("cache-control").unwrap().to_owned();
    let versioned = shelf.fetch(&file["url"]).await;
    assert_eq!(kept(&versioned), "public, max-age=31536000, immutable");
    for query in ["", "?v=", "?v=0123", "?x=1", "?V=1&v"] {
        let answer = asking(&shelf, &file["url"], query).send().await;
        assert_eq!(answer.status, 200, "{answer}");
        assert_eq!(kept(&answer), "public, no-cache", "{query}");
        assert_eq!(answer.header("vary"), None);
    }
}

async fn what_a_browser_would_run_is_saved_and_not_shown(host: Host) {
    let shelf = TestFolder::new(host);
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let html = "<!doctype html><title>x</title><script>alert(1)</script>";
    let xml = "<?xml version=\"1.0\"?><a xmlns:x=\"http://www.w3.org/1999/xhtml\"/>";
    for (name, mime, text, shown) in [
        ("a.svg", "image/svg+xml", svg, false),
        ("a.html", "text/html", html, false),
        ("a.xml", "application/xml", xml, false),
        ("a.js", "text/javascript", "alert(1)", false),
        ("a.bin", "application/octet-stream", "\0\u{1}", false),
        ("a.txt", "text/plain", "plain", true),
        ("a.pdf", "application/pdf", "%PDF-1.4\n", true),
    ] {
        let file = shelf.put(name, "file", mime, text.as_bytes()).await;
        let answer = shelf.fetch(&file["url"]).await;
        let disposition = answer.header("content-disposition").unwrap();
        let expected = if shown { "inline;" } else { "attachment;" };
        assert!(disposition.starts_with(expected), "{name}: {disposition}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let policy = answer.header("content-security-policy").unwrap();
        assert_eq!(policy.contains("sandbox"), name != "a.pdf", "{policy}");
    }
    let bytes = picture(8, 8, ImageFormat::Png);
    let file = shelf.put("a.png", "image", "image/png", &bytes).await;
    let answer = shelf.fetch(&file["url"]).await;
    assert_eq!(answer.header("content-type"), Some("image/png"));
    assert_eq!(answer.header("content-disposition"), Some("inline; filename=\"a.png\""));
}

async fn a_file_is_saved_under_the_name_that_is_asked_for(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    for (query, disposition) in [
        ("?download", "attachment; filename=\"a.txt\""),
        ("?download=true", "attachment; filename=\"a.txt\""),
        ("?download=false", "inline; filename=\"a.txt\""),
        ("?download=b+c.txt", "attachment; filename=\"b c.txt\""),
        ("?download=%C3%BC%22.txt", "attachment; filename=\"__.txt\"; filename*=UTF-8''%C3%BC%22.txt"),
        ("?download=a%0D%0Ab:c", "attachment; filename=\"a.txt\""),
        ("?download=..%2Fx", "attachment; filename=\"a.txt\""),
    ] {
        let answer = asking(&shelf, &file["url"], query).send().await;
        assert_eq!(answer.header("content-disposition"), Some(disposition), "{query}");
    }
}

async fn any_name_comes_back_under_any_spelling_of_its_url(host: Host) {
    let shelf = TestFolder::new(host);
    for (name, spellings) in [
        ("写真 🦭.txt", &["%E5%86%99%E7%9C%9F%20%F0%9F%A6%AD.txt", "%e5%86%99%e7%9c%9f%20%f0%9f%a6%ad%2Etxt"][..]),
        ("a\"b;c'd.txt", &["a%22b;c'd.txt", "a%22b%3Bc%27d.txt"]),
        ("100% #1? a&b=c+d.txt", &["100%25%20%231%3F%20a&b=c+d.txt", "100%25%20%231%3F%20a%26b%3Dc%2Bd.txt"]),
        ("~!@$()*,[].txt", &["~!@$()*,[].txt", "%7E%21%40%24%28%29%2A%2C%5B%5D.txt"]),
    ] {
        let file = shelf.put(name, "file", "text/plain", name.as_bytes()).await;
        let answer = shelf.fetch(&file["url"]).await;
        assert_eq!(answer.text(), name);
        let disposition = answer.header("content-disposition").unwrap();
        assert!(disposition.is_ascii(), "{disposition}");
        for spelling in spellings {
            let url = format!("{}/media/default/{}/{spelling}", host.url(), shelf.folder);
            let answer = shelf.fetch(&json!(url)).await;
            assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, name), "{url}");
        }
    }
}

async fn a_thumbnail_is_a_picture_of_its_own(host: Host) {
    let shelf = TestFolder::new(host);
    for (name, bytes, mime, saved) in [
        ("photo.png", picture(600, 300, ImageFormat::Png), "image/jpeg", "photo-thumbnail.jpg"),
        ("clear", transparent(600, 300), "image/webp", "clear-thumbnail.webp"),
    ] {
        let file = shelf.put(name, "image", "image/png", &bytes).await;
        let whole = shelf.fetch(&file["url"]).await;
        assert!(whole.body == bytes);
        let small = shelf.fetch(&file["thumbnailUrl"]).await;
        assert_eq!(small.status, 200, "{small}");
        assert_eq!(small.header("content-type"), Some(mime));
        let disposition = format!("inline; filename=\"{saved}\"");
        assert_eq!(small.header("content-disposition"), Some(disposition.as_str()));
        assert_eq!(small.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_ne!(tag(&small), tag(&whole));
        let shown = image::load_from_memory(&small.body).expect("a picture");
        assert_eq!((shown.width(), shown.height()), (256, 128));
        let part = shelf.at(&file["thumbnailUrl"]).header("range", "bytes=0-9");
        assert_eq!(part.send().await.body, small.body[..10]);
    }
    let text = shelf.put("a.txt", "file", "text/plain", b"x").await;
    let none = asking(&shelf, &text["url"], "?thumbnail=true").send().await;
    none.refused(ErrorCode::MediaNotFound);
}

async fn files_are_only_read(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    let path = file["url"].as_str().unwrap().strip_prefix(host.url()).unwrap();
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let answer = host.call(method.parse().unwrap(), path).send().await;
        answer.refused(ErrorCode::MethodNotAllowed);
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    assert_eq!(shelf.fetch(&file["url"]).await.text(), "x");
}

async fn paths_that_no_file_can_have_are_not_found(host: Host) {
    for path in [
        "/media/default/absent.txt",
        "/media/default/",
        "/media/default",
        "/media/",
        "/media//a",
        "/media/default//a",
        "/media/default/a/",
        "/media/default/a%2Fb",
        "/media/default/..%2F..%2Fsecret",
        "/media/default/..%5Csecret",
        "/media/default/%00",
        "/media/default/%ff",
        "/media/default/%",
        "/media/Default/a",
        "/media/nobody/a",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = raw::exchange(host.url(), request.as_bytes()).await.expect("an answer");
        assert_eq!(answer.status, 404, "{path}: {}", answer.head);
        assert_eq!(answer.code(), "media_not_found", "{path}");
        assert!(answer.head.contains("no-store"), "{path}: {}", answer.head);
    }
    // Paths that lead out of the media folder are refused, before another layer can resolve them.
    for path in ["/media/default/../../secret", "/media/%2e%2e/%2e%2e/secret"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = raw::exchange(host.url(), request.as_bytes()).await.expect("an answer");
        assert_eq!(answer.status, 404, "{path}: {}", answer.head);
    }
}

async fn a_long_url_is_refused(host: Host) {
    let path = format!("/media/default/a?x={}", "a".repeat(17 * 1024));
    let answer = Call::new(host.url(), Method::GET, &path).send().await;
    answer.refused(ErrorCode::UriTooLong);
}

async fn pages_may_read_what_they_need(host: Host) {
    let shelf = TestFolder::new(host);
    let call = put_text(&shelf, "a.txt", b"x").await;
    let answer = call.header("origin", "https://a.example").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let exposed = answer.header("access-control-expose-headers").unwrap().to_lowercase();
    let exposed: Vec<&str> = exposed.split(", ").collect();
    for name in ["accept-ranges", "content-disposition", "content-length", "content-range", "etag"] {
        assert!(exposed.contains(&name), "{name}: {exposed:?}");
    }
}

async fn every_reader_gets_the_old_file_or_the_new_one_while_it_is_replaced(host: Host) {
    const REPLACEMENTS: usize = 12;
    let shelf = TestFolder::new(host);
    let versions = [large(11), large(12)];
    let body = |version: &[u8]| {
        json!({
            "media": [{"name": "r.bin", "base64": data_url("application/octet-stream", version)}],
            "folder": shelf.folder,
            "type": "file",
            "update": true,
        })
    };
    let bodies = [body(&versions[0]), body(&versions[1])];
    let mut tags = Vec::new();
    for body in &bodies {
        let file = shelf.send(body).await.payload()[0].clone();
        tags.push(tag(&asking(&shelf, &file["url"], "").send().await));
    }
    assert_ne!(tags[0], tags[1]);
    let path = format!("/media/default/{}/r.bin", shelf.folder);
    let done = AtomicBool::new(false);
    let read = async |range: Option<(usize, usize)>| {
        let mut seen = 0_usize;
        while !done.load(Ordering::Relaxed) {
            let mut call = Call::new(host.url(), Method::GET, &path);
            if let Some((first, last)) = range {
                call = call.header("range", &format!("bytes={first}-{last}"));
            }
            let answer = call.send().await;
            let (status, first, end) = match range {
                Some((first, last)) => (206, first, last + 1),
                None => (200, 0, LARGE),
            };
            assert_eq!(answer.status, status, "{answer}");
            let at = tags.iter().position(|known| *known == tag(&answer));
            let version = &versions[at.expect("a known tag")];
            assert!(answer.body == version[first..end], "pieces of two versions");
            seen += 1;
        }
        seen
    };
    let write = async {
        for at in 0..REPLACEMENTS {
            shelf.send(&bodies[at % 2]).await.payload();
        }
        done.store(true, Ordering::Relaxed);
    };
    let range = Some((1_000_000, 2_500_000));
    let (a, b, c, d, ()) = tokio::join!(read(None), read(None), read(range), read(range), write);
    assert!(a + b + c + d >= 4, "nobody read");
    let last = Call::new(host.url(), Method::GET, &path).send().await;
    assert_eq!(tag(&last), tags[(REPLACEMENTS - 1) % 2], "the last one holds at once");
}

async fn a_deleted_file_is_not_found_at_once(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    assert_eq!(shelf.fetch(&file["url"]).await.status, 200);
    shelf.delete(&file["id"]).await.payload();
    let gone = shelf.fetch(&file["url"]).await;
    gone.refused(ErrorCode::MediaNotFound);
    assert_eq!(gone.header("cache-control"), Some("no-store"));
    let again = shelf.put("a.txt", "file", "text/plain", b"y").await;
    assert_eq!(shelf.fetch(&again["url"]).await.text(), "y");
}
