//! Tests of file names and types in JSON items such as `{fileBase64, fileName, fileType}`.

use crate::upload::label::Label;
use crate::upload::name::compose;

fn composed(name: &str, kind: &str) -> Option<String> {
    let label = Label::parse(kind).ok()?;
    Some(compose(name, &label).ok()?.to_string())
}

#[test]
fn names_are_lower_cased_and_hyphenated_and_get_their_extension() {
    for (name, kind, composed_name) in [
        ("My Summer Photo", "jpg", "my-summer-photo.jpg"),
        ("My Summer Photo.JPG", ".jpg", "my-summer-photo.jpg"),
        ("photo.jpeg", "jpg", "photo.jpeg"),
        ("photo.jpg", "image/jpeg", "photo.jpg"),
        ("photo.png", "jpg", "photo-png.jpg"),
        ("a__b -- c!?.", "PNG", "a-b-c.png"),
        ("scan.tiff", "tif", "scan.tiff"),
        ("page.htm", "text/html", "page.htm"),
        ("archive.tar.gz", "tar.gz", "archive.tar.gz"),
        ("archive.tar", "gz", "archive-tar.gz"),
        ("../../etc/passwd", "txt", "etc-passwd.txt"),
        ("Ünï çode", "webp", "ünï-çode.webp"),
        ("写真 二", "png", "写真-二.png"),
        ("写真、二。", "png", "写真-二.png"),
        ("नमस्ते", "png", "नमस्ते.png"),
        ("report", "application/vnd.ms-excel", "report.xls"),
        ("report.v2", "application/octet-stream", "report.v2"),
        ("report", "application/octet-stream", "report.bin"),
        ("clip", "video/x-matroska", "clip.mkv"),
        ("a.svg", "image/svg+xml; charset=utf-8", "a.svg"),
        (".jpg", "jpg", "jpg.jpg"),
    ] {
        assert_eq!(composed(name, kind).as_deref(), Some(composed_name));
    }
}

#[test]
fn names_of_nothing_and_types_of_nothing_are_refused() {
    for (name, kind) in [
        ("", "jpg"),
        (" ", "jpg"),
        ("--__!!", "jpg"),
        ("..", "jpg"),
        ("a", ""),
        ("a", "."),
        ("a", "j pg"),
        ("a", "../x"),
        ("a", "image/"),
        ("a", "/png"),
        ("a", "a..b"),
    ] {
        assert_eq!(composed(name, kind), None, "{name:?} {kind:?}");
    }
    assert_eq!(composed(&"é".repeat(128), "jpg"), None);
}
