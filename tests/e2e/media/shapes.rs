//! The three shapes of an upload, and their answers.

use super::fixtures::{base64, data_url, picture, png, transparent, wav};
use super::test_folder::{MEDIA, TestFolder};
use crate::host::{Answer, Host};
use image::ImageFormat;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        shape_a_is_answered_with_a_list,
        shape_b_is_answered_with_urls,
        shape_b_with_one_object_is_answered_with_one,
        a_form_is_answered_like_named_items,
        an_html_form_is_taken_as_it_is,
        a_name_is_no_label_and_an_honest_label_counts,
        keys_may_come_in_any_order,
        images_get_thumbnails_of_the_right_type,
        pictures_of_every_format_come_in,
        sound_has_no_thumbnail,
        a_name_may_be_of_any_script,
        an_upload_may_have_sixty_four_files,
    ],
}

async fn shape_a_is_answered_with_a_list(host: Host) {
    let shelf = TestFolder::new(host);
    let (one, two) = (png(), picture(600, 300, ImageFormat::Jpeg));
    let answer = shelf
        .send(&json!({
            "media": [
                {"name": "one.png", "base64": data_url("image/png", &one)},
                {"name": "two.jpg", "base64": data_url("image/jpeg", &two)},
            ],
            "folder": shelf.folder,
            "type": "image",
        }))
        .await
        .payload();
    let files = answer.as_array().expect("a list");
    assert_eq!(files.len(), 2);
    for (file, (name, bytes)) in files.iter().zip([("one.png", &one), ("two.jpg", &two)]) {
        let mut keys: Vec<&str> = file.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["folder", "id", "name", "thumbnailUrl", "url"]);
        assert_eq!(file["name"], name);
        assert_eq!(file["folder"], shelf.folder);
        let url = file["url"].as_str().unwrap();
        assert!(url.contains(&format!("/media/default/{}/{name}?v=", shelf.folder)), "{url}");
        assert_eq!(shelf.fetch(&file["url"]).await.body, **bytes);
    }
}

async fn shape_b_is_answered_with_urls(host: Host) {
    let shelf = TestFolder::new(host);
    let answer = shelf
        .send(&json!({
            "media": [
                {"imageBase64": base64(&png()), "imageName": "My Summer Photo", "imageType": "png"},
                {"fileBase64": data_url("text/plain", b"hello"), "fileName": "Read Me.TXT", "fileType": "txt"},
            ],
            "folder": format!("{}/deep/er", shelf.folder),
            "type": "image",
        }))
        .await
        .payload();
    let image = answer[0]["media_url"].as_str().expect("a URL");
    assert!(image.contains("/deep/er/my-summer-photo.png?v="), "{image}");
    assert!(answer[0]["media_thumbnail_url"].is_string());
    let file = answer[1]["media_url"].as_str().expect("a URL");
    assert!(file.contains("/deep/er/read-me.txt?v="), "{file}");
    assert_eq!(answer[1].get("media_thumbnail_url"), None);
    assert_eq!(shelf.fetch(&answer[1]["media_url"]).await.body, b"hello");
}

async fn shape_b_with_one_object_is_answered_with_one(host: Host) {
    let shelf = TestFolder::new(host);
    let item = json!({"fileBase64": base64(b"a,b\n1,2\n"), "fileName": "table", "fileType": "text/csv"});
    // The answer to a single item is an object, whether the item was sent in a list or not.
    for media in [item.clone(), json!([item])] {
        let body = json!({"media": media, "folder": shelf.folder, "type": "file", "update": true});
        let answer = shelf.send(&body).await.payload();
        assert!(answer["media_url"].as_str().unwrap().contains("/table.csv?v="), "{answer}");
    }
}

/// Sends a multipart form. Each part is given as the rest of its Content-Disposition header, and its content.
async fn send_form(host: Host, parts: &[(&str, &[u8])]) -> Answer {
    let boundary = "x-boundary-x";
    let mut body = Vec::new();
    for (head, content) in parts {
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n").as_bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").as_bytes());
    let call = host.call(Method::POST, MEDIA).bytes(body);
    let form = format!("multipart/form-data; boundary={boundary}");
    call.header("content-type", &form).send().await
}

async fn an_html_form_is_taken_as_it_is(host: Host) {
    let shelf = TestFolder::new(host);
    let unchosen = "name=\"more\"; filename=\"\"\r\nContent-Type: application/octet-stream";
    // The second upload replaces the first.
    for content in [b"one", b"two"] {
        let parts: [(&str, &[u8]); 7] = [
            ("name=\"type\"", b"file"),
            ("name=\"folder\"", shelf.folder.as_bytes()),
            ("name=\"update\"", b"on"),
            ("name=\"private\"", b"off"),
            (unchosen, b""),
            ("name=\"file\"; filename=\"notes.txt\\\"", content),
            (unchosen, b""),
        ];
        let answer = send_form(host, &parts).await.payload();
        assert_eq!(answer.as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(answer[0]["name"], "notes.txt");
        assert_eq!(shelf.fetch(&answer[0]["url"]).await.body, content);
    }
    for (parts, code) in [
        (&[("name=a; filename=\"\"", b"".as_slice())][..], ErrorCode::InvalidBody),
        (&[("name=a; filename=\"\"", b"x")], ErrorCode::InvalidBody),
        (&[("name=a; filename=b", b"")], ErrorCode::InvalidMedia),
    ] {
        send_form(host, parts).await.refused(code);
    }
}

async fn a_name_is_no_label_and_an_honest_label_counts(host: Host) {
    let shelf = TestFolder::new(host);
    let code = b"export const a: number = 1;\n".as_slice();
    let binary = b"\0\0\x02\0\0\0\0\0\0\0\0\0\x01\0\x01\0\x18\0\xff\xff\xff".as_slice();
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".as_slice();
    for (name, label, bytes, mime, disposition) in [
        ("a.ts", None, code, "text/plain", "inline"),
        ("notes.jpg", None, b"milk, eggs", "text/plain", "inline"),
        ("a.mp4", None, binary, "application/octet-stream", "attachment"),
        ("a.txt", None, b"<!doctype html><p>", "text/html", "attachment"),
        ("a.ppm", Some("image/x-portable-pixmap"), b"P3\n1 1\n255\n0 1 2\n", "image/x-portable-pixmap", "inline"),
        ("a.tga", Some("image/x-tga"), binary, "image/x-tga", "inline"),
        ("a.m3u", Some("audio/x-mpegurl"), b"#EXTM3U\na.mp3\n", "audio/x-mpegurl", "inline"),
        ("a.svgz", Some("image/svg+xml"), gzip, "application/gzip", "attachment"),
    ] {
        let mut head = format!("name=file; filename=\"{name}\"");
        if let Some(label) = label {
            head.push_str(&format!("\r\nContent-Type: {label}"));
        }
        let parts: [(&str, &[u8]); 3] =
            [("name=type", b"file"), ("name=folder", shelf.folder.as_bytes()), (&head, bytes)];
        let files = send_form(host, &parts).await.payload();
        let answer = shelf.fetch(&files[0]["url"]).await;
        assert_eq!(answer.body, bytes, "{name}");
        assert_eq!(answer.header("content-type"), Some(mime), "{name}");
        let shown = answer.header("content-disposition").unwrap_or_default();
        assert!(shown.starts_with(disposition), "{name}: {shown}");
    }
}

async fn a_form_is_answered_like_named_items(host: Host) {
    let shelf = TestFolder::new(host);
    let picture = png();
    let parts: [(&str, &[u8]); 4] = [
        ("name=\"files\"; filename=\"a b.png\"\r\nContent-Type: image/png", &picture),
        ("name=\"files\"; filename*=UTF-8''%E5%86%99%E7%9C%9F.png", &picture),
        ("name=\"type\"", b"image"),
        ("name=\"folder\"", shelf.folder.as_bytes()),
    ];
    let answer = send_form(host, &parts).await.payload();
    assert_eq!(answer[0]["name"], "a b.png");
    assert_eq!(answer[1]["name"], "写真.png");
    assert_eq!(shelf.fetch(&answer[1]["url"]).await.body, picture);
}

async fn keys_may_come_in_any_order(host: Host) {
    let shelf = TestFolder::new(host);
    let text = format!(
        " {{ \"media\" : [ {{ \"base64\" : \"{}\" , \"name\" : \"late.txt\" }} ] ,\n \"type\":\"file\", \"folder\":{} }} ",
        data_url("text/plain", b"late").replace('/', "\\/"),
        Value::from(shelf.folder.as_str()),
    );
    let call = host.call(Method::POST, MEDIA).bytes(text);
    let answer = call.header("content-type", "application/json").send().await.payload();
    assert_eq!(shelf.fetch(&answer[0]["url"]).await.body, b"late");
}

async fn images_get_thumbnails_of_the_right_type(host: Host) {
    let shelf = TestFolder::new(host);
    let large = shelf.put("large.png", "image", "image/png", &picture(1000, 500, ImageFormat::Png)).await;
    let clear = shelf.put("clear.png", "image", "image/png", &transparent(300, 600)).await;
    let small = shelf.put("small.png", "image", "image/png", &png()).await;
    for (file, mime, size) in
        [(large, "image/jpeg", (256, 128)), (clear, "image/webp", (128, 256)), (small, "image/jpeg", (40, 30))]
    {
        let answer = shelf.fetch(&file["thumbnailUrl"]).await;
        assert_eq!(answer.header("content-type"), Some(mime), "{file}");
        let thumbnail = image::load_from_memory(&answer.body).expect("a picture");
        assert_eq!((thumbnail.width(), thumbnail.height()), size, "{file}");
        assert_eq!(thumbnail.color().has_alpha(), mime == "image/webp");
    }
}

async fn pictures_of_every_format_come_in(host: Host) {
    let shelf = TestFolder::new(host);
    for (format, name, mime) in [
        (ImageFormat::Jpeg, "a.jpg", "image/jpeg"),
        (ImageFormat::Png, "a.png", "image/png"),
        (ImageFormat::Gif, "a.gif", "image/gif"),
        (ImageFormat::WebP, "a.webp", "image/webp"),
        (ImageFormat::Bmp, "a.bmp", "image/bmp"),
        (ImageFormat::Tiff, "a.tiff", "image/tiff"),
        (ImageFormat::Ico, "a.ico", "image/x-icon"),
    ] {
        let bytes = picture(48, 32, format);
        let file = shelf.put(name, "image", mime, &bytes).await;
        let known = shelf.describe(&file["id"]).await.payload();
        assert_eq!(known["width"], 48, "{name}: {known}");
        assert_eq!(known["height"], 32, "{name}: {known}");
        assert_eq!(known["mime"], mime);
        assert_eq!(known["size"], bytes.len());
        let thumbnail = shelf.fetch(&known["thumbnailUrl"]).await;
        assert!(image::load_from_memory(&thumbnail.body).is_ok(), "{name}");
    }
}

async fn sound_has_no_thumbnail(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("silence.wav", "audio", "audio/wav", &wav()).await;
    assert_eq!(file.get("thumbnailUrl"), None);
    let known = shelf.describe(&file["id"]).await.payload();
    assert_eq!(known["type"], "audio");
}

async fn a_name_may_be_of_any_script(host: Host) {
    let shelf = TestFolder::new(host);
    for name in ["Ünï códe.txt", "写真 🦭.txt", "a+b&c=d#e?f%20.txt", "'\"<b>.txt", "CON", ".profile", "a "] {
        let file = shelf.put(name, "file", "text/plain", name.as_bytes()).await;
        assert_eq!(file["name"], name);
        let answer = shelf.fetch(&file["url"]).await;
        assert_eq!(answer.body, name.as_bytes(), "{answer}");
    }
    assert_eq!(shelf.names().await.len(), 7);
}

async fn an_upload_may_have_sixty_four_files(host: Host) {
    let shelf = TestFolder::new(host);
    let media: Vec<Value> =
        (0..64).map(|at| json!({"name": format!("{at}.txt"), "base64": data_url("text/plain", b"x")})).collect();
    let body = json!({"media": media, "folder": shelf.folder, "type": "file"});
    assert_eq!(shelf.send(&body).await.payload().as_array().unwrap().len(), 64);
    assert_eq!(shelf.names().await.len(), 64);
}
