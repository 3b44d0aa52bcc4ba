//! Private files: readable with a key or a signed URL; other clients get the same answer as for a missing file.

use super::fixtures::{data_url, picture};
use super::test_folder::{MEDIA, TestFolder, read_key};
use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::roles::create_role;
use crate::service::shared;
use crate::test_db::unique;
use image::ImageFormat;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Both: [
        a_private_file_is_not_there_for_who_has_no_key_of_the_project,
        a_key_of_the_project_reads_private_files,
        a_role_reads_only_the_files_that_its_rule_names,
        a_bad_key_does_not_keep_public_files_from_anybody,
        a_signed_url_opens_one_file_and_its_thumbnail,
        a_signature_that_was_altered_opens_nothing,
        a_signature_ends,
        a_signature_outlives_a_replacement,
        a_signature_opens_no_later_file_of_the_same_name,
        a_file_that_becomes_private_is_so_at_once,
        files_of_a_folder_that_becomes_private_are_so_at_once,
        a_private_file_becomes_public_only_in_so_many_words,
    ],
}

fn body(shelf: &TestFolder, name: &str, text: &str) -> Value {
    json!({
        "media": [{"name": name, "base64": data_url("text/plain", text.as_bytes())}],
        "folder": shelf.folder,
        "type": "file",
        "private": true,
        "update": true,
    })
}

async fn put(shelf: &TestFolder, name: &str, text: &str) -> Value {
    shelf.send(&body(shelf, name, text)).await.payload()[0].clone()
}

async fn sign(host: Host, file: &Value, seconds: u64) -> Value {
    let path = format!("{MEDIA}/{}/sign", file["id"]);
    let call = host.post(&path, &json!({"expiresIn": seconds}));
    call.send().await.payload()
}

/// Returns the status, headers and body of an answer without the parts that differ between equal
/// requests, so that two answers can be compared.
fn face(answer: &Answer) -> (u16, Vec<(String, String)>, Value) {
    let headers =
        answer.headers.iter().filter(|(name, _)| !["x-request-id", "server-timing", "date"].contains(&name.as_str()));
    let mut headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.sort();
    let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if let Some(error) = body["error"].as_object_mut() {
        error.remove("requestId");
    }
    (answer.status.as_u16(), headers, body)
}

async fn a_private_file_is_not_there_for_who_has_no_key_of_the_project(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "secret").await;
    let url = file["url"].as_str().unwrap();
    let absent = json!(url.replace("a.txt", "b.txt"));
    let project = unique("stranger-");
    shared().create_project(&project);
    let stranger = shared().create_key(&project, "full", &[]).token;
    let forged = "eyJhbGciOiJub25lIn0.e30.";
    for method in [Method::GET, Method::HEAD] {
        for key in [None, Some(stranger.as_str()), Some(forged), Some("")] {
            for (name, value) in [
                ("x-nothing", ""),
                ("range", "bytes=0-0"),
                ("range", "bytes=999-"),
                ("if-none-match", "*"),
                ("if-match", "\"x\""),
            ] {
                let ask = |url: &Value| {
                    let path = url.as_str().unwrap().strip_prefix(host.url()).unwrap();
                    let call = Call::new(host.url(), method.clone(), path).header(name, value);
                    match key {
                        Some(key) => call.authorization(key),
                        None => call,
                    }
                };
                let (hidden, nothing) = (ask(&file["url"]).send().await, ask(&absent).send().await);
                assert_eq!(hidden.status, 404, "{key:?} {name}: {hidden}");
                assert_eq!(face(&hidden), face(&nothing), "{key:?} {name}");
            }
        }
    }
    shelf.fetch(&file["url"]).await.refused(ErrorCode::MediaNotFound);
}

async fn a_key_of_the_project_reads_private_files(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "secret").await;
    for key in [read_key(), &shared().full_key] {
        for authorization in [key.to_owned(), format!("bearer {key}")] {
            let answer = shelf.at(&file["url"]).authorization(&authorization).send().await;
            assert_eq!(answer.text(), "secret");
            assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
            let vary = answer.header("vary").unwrap_or_default().to_lowercase();
            assert!(vary.contains("authorization"), "{vary}");
        }
    }
    let call = shelf.at(&file["url"]).key(read_key());
    let known = call.clone().header("if-none-match", "*").send().await;
    assert_eq!(known.status, 304);
    let vary = known.header("vary").unwrap_or_default().to_lowercase();
    assert!(vary.contains("authorization"), "{vary}");
    assert_eq!(call.header("range", "bytes=1-2").send().await.text(), "ec");
}

async fn a_role_reads_only_the_files_that_its_rule_names(host: Host) {
    let [ann, bob] = ["ann", "bob"].map(unique);
    let shelf = TestFolder::new(host);
    // In LIKE, the name of this folder would be a pattern for the shelf's.
    let pattern = shelf.folder.replace("shelf", "_____");
    let role = |read: Value| create_role(&json!({"media": {"read": read, "upload": true, "delete": "own"}}));
    let key = |role: &str, sub: &str| shared().create_role_key("default", role, &[format!("sub={sub}")]).token;
    let uploads = role(json!(false));
    let mut files = Vec::new();
    for (name, owner, below) in [("a.txt", Some(&ann), ""), ("b.txt", Some(&bob), "/x"), ("c.txt", None, "/y/z")] {
        let body = json!({
            "media": [{"name": name, "base64": data_url("text/plain", name.as_bytes())}],
            "folder": format!("{}{below}", shelf.folder), "type": "file", "private": true,
        });
        let call = host.post(MEDIA, &body);
        let call = owner.map_or(call.clone(), |owner| call.key(&key(&uploads, owner)));
        files.push((name, call.send().await.payload()[0].clone()));
    }
    let folder = |below: &str| json!({"folder": format!("{}{below}", shelf.folder)});
    for (read, names) in [
        (json!("own"), vec!["a.txt"]),
        (folder("/x"), vec!["b.txt"]),
        (json!(["own", folder("/y")]), vec!["a.txt", "c.txt"]),
        (folder(""), vec!["a.txt", "b.txt", "c.txt"]),
        (folder("/x/"), vec!["b.txt"]),
        (json!({"folder": "{sub}"}), vec![]),
        (json!({"folder": pattern}), vec![]),
        (json!(true), vec!["a.txt", "b.txt", "c.txt"]),
    ] {
        let reader = key(&role(read.clone()), &ann);
        let mut listed = Vec::new();
        for (name, file) in &files {
            let id = &file["id"];
            let named = host.get(&format!("{MEDIA}?name={name}&count=true")).key(&reader).send().await;
            let payload = named.payload();
            let found = payload.as_array().unwrap().iter().filter(|found| found["id"] == *id).count();
            assert_eq!(named.json()["count"], payload.as_array().unwrap().len(), "{read} {named}");
            listed.extend((found == 1).then_some(*name));
            let described = host.get(&format!("{MEDIA}/{id}")).key(&reader).send().await;
            let signed = host.post(&format!("{MEDIA}/{id}/sign"), &json!({"expiresIn": 60})).key(&reader).send().await;
            let bytes = shelf.at(&file["url"]).key(&reader).send().await;
            let deleted = host.call(Method::DELETE, &format!("{MEDIA}/{id}")).key(&key(&role(read.clone()), "none"));
            match found {
                1 => {
                    assert_eq!(described.payload()["name"], *name, "{read}");
                    assert_eq!(shelf.fetch(&signed.payload()["url"]).await.text(), *name, "{read}");
                    assert_eq!(bytes.text(), *name, "{read}");
                }
                _ => {
                    for answer in [described, signed, bytes, deleted.send().await] {
                        answer.refused(ErrorCode::MediaNotFound);
                    }
                }
            }
        }
        assert_eq!(listed, names, "{read}");
    }
    for nothing in [json!(false), json!({"folder": "a/{team}"}), json!([])] {
        let reader = key(&role(nothing), &ann);
        host.get(MEDIA).key(&reader).send().await.refused(ErrorCode::RoleForbids);
    }
}

async fn a_bad_key_does_not_keep_public_files_from_anybody(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    for authorization in ["Bearer a.b.c", "Basic eDp5", "", "nonsense"] {
        let call = shelf.at(&file["url"]).authorization(authorization);
        let answer = call.send().await;
        assert_eq!(answer.text(), "x", "{authorization}");
        let kept = answer.header("cache-control").unwrap();
        assert!(kept.starts_with("public"), "{kept}");
    }
}

async fn a_signed_url_opens_one_file_and_its_thumbnail(host: Host) {
    let shelf = TestFolder::new(host);
    let bytes = picture(600, 300, ImageFormat::Png);
    let mut upload = shelf.body("a.png", "image", "image/png", &bytes);
    upload["private"] = json!(true);
    let file = shelf.send(&upload).await.payload()[0].clone();
    put(&shelf, "b.txt", "other").await;
    let signed = sign(host, &file, 600).await;
    let answer = shelf.fetch(&signed["url"]).await;
    assert!(answer.body == bytes, "{answer}");
    let kept = answer.header("cache-control").unwrap();
    let age: u64 = kept.strip_prefix("private, max-age=").expect(kept).parse().unwrap();
    assert!((1..=600).contains(&age), "{kept}");
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    let small = shelf.fetch(&signed["thumbnailUrl"]).await;
    assert_eq!(small.header("content-type"), Some("image/jpeg"));
    let url = signed["url"].as_str().unwrap();
    for spelling in ["thumbnail=1", "thumbnail=True", "thumbnail"] {
        let again = shelf.fetch(&json!(format!("{url}&{spelling}"))).await;
        assert_eq!(again.body, small.body, "{spelling}");
    }
    let part = shelf.at(&signed["url"]).header("range", "bytes=0-7");
    assert_eq!(part.send().await.body, bytes[..8]);
    // The signature without the file's version, `v`.
    let url = signed["url"].as_str().unwrap();
    let (path, query) = url.split_once('?').unwrap();
    let pairs = query.split('&').filter(|pair| !pair.starts_with("v="));
    let bare = format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"));
    let answer = shelf.fetch(&json!(bare)).await;
    assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
    let other = bare.replace("/a.png", "/b.txt");
    shelf.fetch(&json!(other)).await.refused(ErrorCode::MediaNotFound);
}

async fn a_signature_that_was_altered_opens_nothing(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "secret").await;
    let signed = sign(host, &file, 600).await;
    let url = signed["url"].as_str().unwrap();
    let expires = |text: &str| {
        let digits = text.split("expires=").nth(1).unwrap();
        digits.split('&').next().unwrap().to_owned()
    };
    let end = expires(url);
    let later = (end.parse::<u64>().unwrap() + 1).to_string();
    let (front, signature) = url.split_once("signature=").unwrap();
    let flipped: String = signature.chars().rev().collect();
    for altered in [
        url.replace(&end, &later),
        url.replace(&end, &format!("0{end}")),
        url.replace(&end, &format!("%2B{end}")),
        format!("{url}&expires={end}"),
        format!("{url}&expires={later}"),
        url.replace("expires=", &format!("expires={later}&expires=")),
        url.replace(&format!("expires={end}&"), ""),
        format!("{front}signature={flipped}"),
        format!("{front}signature="),
        front.to_owned(),
        url[..url.len() - 1].to_owned(),
        format!("{url}A"),
        url.replace(&shelf.folder, &format!("{}/x", shelf.folder)),
    ] {
        let answer = shelf.fetch(&json!(altered)).await;
        answer.refused(ErrorCode::MediaNotFound);
    }
    assert_eq!(shelf.fetch(&signed["url"]).await.text(), "secret");
    // Links are often shared with added parameters, which must not stop a signed URL from working.
    let more = json!(format!("{url}&fbclid=1&_=2"));
    assert_eq!(shelf.fetch(&more).await.text(), "secret");
}

async fn a_signature_ends(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "secret").await;
    let signed = sign(host, &file, 2).await;
    let shelf = &shelf;
    let url = &signed["url"];
    eventually("an end of the signature", Duration::from_secs(20), async || {
        let answer = shelf.fetch(url).await;
        match answer.status.as_u16() {
            404 => Some(answer.refused(ErrorCode::MediaNotFound)),
            _ => {
                assert_eq!(answer.text(), "secret");
                None
            }
        }
    })
    .await;
}

async fn a_signature_outlives_a_replacement(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "old").await;
    let signed = sign(host, &file, 600).await;
    assert_eq!(shelf.fetch(&signed["url"]).await.text(), "old");
    put(&shelf, "a.txt", "new").await;
    let answer = shelf.fetch(&signed["url"]).await;
    assert_eq!(answer.text(), "new");
    assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
}

async fn a_signature_opens_no_later_file_of_the_same_name(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "first").await;
    let signed = sign(host, &file, 600).await;
    assert_eq!(shelf.fetch(&signed["url"]).await.text(), "first");
    host.call(Method::DELETE, &format!("{MEDIA}/{}", file["id"])).send().await.payload();
    let missing = face(&shelf.fetch(&signed["url"]).await);
    let later = put(&shelf, "a.txt", "second").await;
    assert_ne!(later["id"], file["id"]);
    assert_eq!(face(&shelf.fetch(&signed["url"]).await), missing);
    let signed = sign(host, &later, 600).await;
    assert_eq!(shelf.fetch(&signed["url"]).await.text(), "second");
}

async fn a_file_that_becomes_private_is_so_at_once(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    assert_eq!(shelf.fetch(&file["url"]).await.text(), "x");
    put(&shelf, "a.txt", "x").await;
    shelf.fetch(&file["url"]).await.refused(ErrorCode::MediaNotFound);
}

async fn files_of_a_folder_that_becomes_private_are_so_at_once(host: Host) {
    let mut shelf = TestFolder::new(host);
    let top = shelf.put("a.txt", "file", "text/plain", b"x").await;
    let folder = shelf.folder.clone();
    shelf.folder = format!("{folder}/below");
    let below = shelf.put("a.txt", "file", "text/plain", b"x").await;
    shelf.folder = format!("{folder}0");
    let beside = shelf.put("a.txt", "file", "text/plain", b"x").await;
    // Fetched repeatedly, so that the files are cached wherever that is possible.
    for file in [&top, &below, &beside].repeat(3) {
        assert_eq!(shelf.fetch(&file["url"]).await.text(), "x");
    }
    shelf.folder = folder;
    let mut hiding = shelf.body("b.txt", "file", "text/plain", b"y");
    hiding["media"][0]["privateFolder"] = json!(true);
    shelf.send(&hiding).await.payload();
    for file in [&top, &below] {
        let answer = shelf.fetch(&file["url"]).await;
        answer.refused(ErrorCode::MediaNotFound);
        let with_key = shelf.at(&file["url"]).key(read_key()).send().await;
        assert_eq!(with_key.text(), "x");
    }
    assert_eq!(shelf.fetch(&beside["url"]).await.text(), "x");
}

async fn a_private_file_becomes_public_only_in_so_many_words(host: Host) {
    let shelf = TestFolder::new(host);
    let file = put(&shelf, "a.txt", "x").await;
    let mut again = body(&shelf, "a.txt", "x");
    again.as_object_mut().unwrap().remove("private");
    shelf.send(&again).await.payload();
    shelf.fetch(&file["url"]).await.refused(ErrorCode::MediaNotFound);
    again["private"] = json!(false);
    shelf.send(&again).await.payload();
    assert_eq!(shelf.fetch(&file["url"]).await.text(), "x");
}
