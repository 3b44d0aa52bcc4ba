//! Uploads that must be refused with a clear error, and store nothing.

use super::fixtures::{base64, data_url, picture, png};
use super::test_folder::{MEDIA, TestFolder, read_key};
use crate::host::{Answer, Host};
use image::ImageFormat;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        an_upload_needs_a_full_key,
        bodies_of_the_wrong_form_are_refused_by_the_key_at_fault,
        bytes_decide_and_not_labels,
        cut_and_corrupted_pictures_are_refused,
        names_and_folders_can_not_climb,
        a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced,
        one_bad_item_refuses_them_all,
        too_many_files_are_refused,
        bombs_are_refused_before_they_go_off,
        another_content_type_is_refused,
    ],
}

async fn refused(shelf: &TestFolder, answer: Answer, code: ErrorCode, named: &str) {
    let error = answer.refused(code);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains(named), "{named:?} is not named: {message}");
    assert_eq!(shelf.names().await, Vec::<String>::new());
}

async fn an_upload_needs_a_full_key(host: Host) {
    let shelf = TestFolder::new(host);
    let upload = shelf.upload("a.txt", "file", "text/plain", b"x");
    upload.clone().no_key().send().await.refused(ErrorCode::MissingKey);
    upload.key(read_key()).send().await.refused(ErrorCode::FullAccessRequired);
    assert_eq!(shelf.names().await, Vec::<String>::new());
}

async fn bodies_of_the_wrong_form_are_refused_by_the_key_at_fault(host: Host) {
    let shelf = TestFolder::new(host);
    let item = json!({"name": "a.txt", "base64": data_url("text/plain", b"x")});
    let body = |changes: Value| {
        let mut body = json!({"media": [item.clone()], "folder": shelf.folder, "type": "file"});
        for (key, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => body.as_object_mut().unwrap().remove(key),
                value => body.as_object_mut().unwrap().insert(key.clone(), value.clone()),
            };
        }
        body
    };
    let b = json!({"fileBase64": base64(b"x"), "fileName": "b", "fileType": "txt"});
    for (changes, named) in [
        (json!({"type": null}), "type"),
        (json!({"type": "picture"}), "picture"),
        (json!({"type": 1}), "type"),
        (json!({"media": null}), "media"),
        (json!({"media": []}), "media"),
        (json!({"media": "x"}), "media"),
        (json!({"media": [1]}), "media[0]"),
        (json!({"media": [{"name": "a"}]}), "base64"),
        (json!({"media": [{"base64": data_url("text/plain", b"x")}]}), "name"),
        (json!({"media": [{"name": 1, "base64": data_url("text/plain", b"x")}]}), "name"),
        (json!({"media": [item.clone(), b.clone()]}), "media[1]"),
        (json!({"media": [item.clone(), item.clone()]}), "a.txt"),
        (json!({"update": "perhaps"}), "update"),
        (json!({"folder": 5}), "folder"),
        (json!({"foldr": "x"}), "foldr"),
        (json!({"media": [{"name": "a", "base64": data_url("text/plain", b"x"), "size": 1}]}), "size"),
    ] {
        let answer = shelf.send(&body(changes)).await;
        refused(&shelf, answer, ErrorCode::InvalidBody, named).await;
    }
    for (text, code) in [
        ("", ErrorCode::InvalidJson),
        ("{", ErrorCode::InvalidJson),
        ("nonsense", ErrorCode::InvalidJson),
        ("{\"media\": [{\"name\": \"a\", \"base64\": \"data:text/plain;base64,aGk", ErrorCode::InvalidJson),
        ("[]", ErrorCode::InvalidBody),
    ] {
        let call = host.call(Method::POST, MEDIA).bytes(text);
        let answer = call.header("content-type", "application/json").send().await;
        refused(&shelf, answer, code, "").await;
    }
}

async fn bytes_decide_and_not_labels(host: Host) {
    let shelf = TestFolder::new(host);
    let jpeg = picture(20, 20, ImageFormat::Jpeg);
    for (name, kind, mime, bytes) in [
        ("a.png", "image", "image/png", b"no picture at all".as_slice()),
        ("a.png", "image", "image/png", &jpeg),
        ("a.svg", "image", "image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ("a.mp4", "video", "video/mp4", &jpeg),
        ("a.mp3", "audio", "audio/mpeg", b"not a sound"),
        ("a.png", "file", "image/png", b"<html><script>alert(1)</script></html>"),
        ("a.pdf", "file", "application/pdf", &jpeg),
        ("a.foo", "file", "image/foo", b"nothing that is known"),
    ] {
        let answer = shelf.upload(name, kind, mime, bytes).send().await;
        refused(&shelf, answer, ErrorCode::InvalidMedia, name).await;
    }
    // Invalid data URLs and invalid base64.
    for text in ["aGk=", "data:text/plain,hi", "data:text/plain;base64,a*b=", "data:text/plain;base64,"] {
        let body = json!({"media": [{"name": "a.txt", "base64": text}], "folder": shelf.folder, "type": "file"});
        let answer = shelf.send(&body).await;
        refused(&shelf, answer, ErrorCode::InvalidMedia, "").await;
    }
}

async fn cut_and_corrupted_pictures_are_refused(host: Host) {
    let shelf = TestFolder::new(host);
    for (format, mime) in [
        (ImageFormat::Jpeg, "image/jpeg"),
        (ImageFormat::Png, "image/png"),
        (ImageFormat::Gif, "image/gif"),
        (ImageFormat::WebP, "image/webp"),
        (ImageFormat::Bmp, "image/bmp"),
        (ImageFormat::Tiff, "image/tiff"),
        (ImageFormat::Ico, "image/x-icon"),
    ] {
        let whole = picture(200, 100, format);
        for cut in [whole.len() / 2, whole.len() * 9 / 10] {
            let answer = shelf.upload("cut", "image", mime, &whole[..cut]).send().await;
            refused(&shelf, answer, ErrorCode::InvalidMedia, "cut").await;
        }
    }
    let mut corrupted = picture(200, 100, ImageFormat::Png);
    let middle = corrupted.len() / 2;
    corrupted[middle] ^= 0xff;
    let answer = shelf.upload("flipped.png", "image", "image/png", &corrupted).send().await;
    refused(&shelf, answer, ErrorCode::InvalidMedia, "flipped.png").await;
}

async fn names_and_folders_can_not_climb(host: Host) {
    let shelf = TestFolder::new(host);
    let file = data_url("text/plain", b"x");
    for name in ["..", ".", "", "a/b", "../a", "/../a", "..\\a", "a\u{0}", "a\nb", "a\u{202e}b", &"n".repeat(256)] {
        let body = json!({"media": [{"name": name, "base64": file}], "folder": shelf.folder, "type": "file"});
        let answer = shelf.send(&body).await;
        refused(&shelf, answer, ErrorCode::InvalidBody, "name").await;
    }
    for folder in ["..", "a/../b", "a//b", "./a", "a\\b", "a/\u{7}", &"f".repeat(256)] {
        let body = json!({"media": [{"name": "a", "base64": file}], "folder": folder, "type": "file"});
        let answer = shelf.send(&body).await;
        refused(&shelf, answer, ErrorCode::InvalidBody, "folder").await;
    }
    // Names that only look like a path to a parent directory are allowed.
    for name in ["..%2f..%2fetc%2fpasswd", "..\u{2215}a", "..\u{ff0f}a", "%2e%2e"] {
        let kept = shelf.put(name, "file", "text/plain", b"x").await;
        assert_eq!(kept["name"], name);
        assert_eq!(shelf.fetch(&kept["url"]).await.body, b"x");
    }
}

async fn a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced(host: Host) {
    let shelf = TestFolder::new(host);
    let first = shelf.put("a.txt", "file", "text/plain", b"one").await;
    let again = shelf.upload("a.txt", "file", "text/plain", b"two").send().await;
    let error = again.refused(ErrorCode::MediaExists);
    assert!(error["message"].as_str().unwrap().contains("a.txt"), "{error}");
    assert_eq!(shelf.fetch(&first["url"]).await.body, b"one");

    let mut body = shelf.body("a.txt", "file", "text/plain", b"three");
    body["update"] = json!(true);
    let replaced = shelf.send(&body).await.payload();
    assert_eq!(replaced[0]["id"], first["id"]);
    assert_ne!(replaced[0]["url"], first["url"]);
    assert_eq!(shelf.fetch(&replaced[0]["url"]).await.body, b"three");
    assert_eq!(shelf.names().await, ["a.txt"]);
}

async fn one_bad_item_refuses_them_all(host: Host) {
    let shelf = TestFolder::new(host);
    let body = json!({
        "media": [
            {"name": "good.png", "base64": data_url("image/png", &png())},
            {"name": "bad.png", "base64": data_url("image/png", b"bad")},
        ],
        "folder": shelf.folder,
        "type": "image",
    });
    let answer = shelf.send(&body).await;
    refused(&shelf, answer, ErrorCode::InvalidMedia, "bad.png").await;
}

async fn too_many_files_are_refused(host: Host) {
    let shelf = TestFolder::new(host);
    for count in [65, 10_000] {
        let media: Vec<Value> =
            (0..count).map(|at| json!({"name": format!("{at}.txt"), "base64": data_url("text/plain", b"x")})).collect();
        let body = json!({"media": media, "folder": shelf.folder, "type": "file"});
        let answer = shelf.send(&body).await;
        refused(&shelf, answer, ErrorCode::InvalidBody, "64").await;
    }
}

async fn bombs_are_refused_before_they_go_off(host: Host) {
    let shelf = TestFolder::new(host);
    // A valid PNG header for 60,000 × 60,000 pixels, without the pixels.
    let mut png = png();
    png[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    png[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let checksum = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&checksum.to_be_bytes());
    let answer = shelf.upload("bomb.png", "image", "image/png", &png).send().await;
    refused(&shelf, answer, ErrorCode::InvalidMedia, "bomb.png").await;
}

/// CRC-32 as PNG defines it (ISO 3309).
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !sum
}

async fn another_content_type_is_refused(host: Host) {
    let shelf = TestFolder::new(host);
    let call = host.call(Method::POST, MEDIA).bytes(png());
    let answer = call.header("content-type", "image/png").send().await;
    refused(&shelf, answer, ErrorCode::UnsupportedMediaType, "image/png").await;
}
