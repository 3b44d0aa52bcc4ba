//! Lists, single files and deletion; projects can't see each other's files.

use super::fixtures::{picture, png};
use super::test_folder::{MEDIA, TestFolder, read_key};
use crate::host::{Host, enc};
use crate::service::shared;
use crate::test_db::unique;
use image::ImageFormat;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_file_is_described,
        lists_are_filtered_ordered_and_counted,
        lists_take_names_that_look_like_json_for_names,
        lists_refuse_what_they_do_not_know,
        a_deleted_file_is_gone,
        only_full_keys_delete,
        another_projects_files_do_not_exist,
    ],
    Own: [a_list_of_own_files_reads_only_these],
}

/// The condition is that of `"read": "own"`.
async fn a_list_of_own_files_reads_only_these(_: Host) {
    let project = unique("own");
    shared().create_project(&project);
    let root = |statement: &str| shared().root_sql(statement).unwrap();
    root(&format!(
        "INSERT INTO selkie.media (project, folder, name, kind, private, object, mime, size, sha256, created_at, updated_at,
         uploader) SELECT '{project}', '', seq, 'file', TRUE, UNHEX(MD5(CONCAT('{project}', seq))), 'text/plain', 1, '', 0, 0,
         IF(seq = 7, 'own', 'other') FROM selkie.seq_1_to_1000"
    ));
    let plan = root(&format!(
        "EXPLAIN FORMAT=JSON SELECT * FROM selkie.media WHERE project = '{project}' AND (FALSE OR uploader = 'own')
         ORDER BY id DESC LIMIT 100"
    ));
    root(&format!("DELETE FROM selkie.media WHERE project = '{project}'"));
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let plan = plan.to_string();
    assert!(plan.contains(r#""key":"by_uploader""#), "{plan}");
}

async fn a_file_is_described(host: Host) {
    let shelf = TestFolder::new(host);
    let bytes = picture(64, 48, ImageFormat::Png);
    let file = shelf.put("a.png", "image", "image/png", &bytes).await;
    let call = host.get(&format!("{MEDIA}/{}", file["id"])).key(read_key());
    let known = call.send().await.payload();
    for (key, value) in [
        ("id", file["id"].clone()),
        ("name", json!("a.png")),
        ("folder", json!(shelf.folder)),
        ("url", file["url"].clone()),
        ("thumbnailUrl", file["thumbnailUrl"].clone()),
        ("type", json!("image")),
        ("mime", json!("image/png")),
        ("size", json!(bytes.len())),
        ("width", json!(64)),
        ("height", json!(48)),
        ("private", json!(false)),
    ] {
        assert_eq!(known[key], value, "{key}: {known}");
    }
    let sha256 = known["sha256"].as_str().expect("a hash");
    assert_eq!(sha256.len(), 64);
    let url = file["url"].as_str().unwrap();
    let version = url.split_once("?v=").expect("a version").1;
    assert!(sha256.starts_with(version), "{url} {sha256}");
    let created = known["createdAt"].as_str().expect("a time");
    assert!(created.ends_with('Z') && created.contains('T'), "{created}");
    for id in ["0", "99999999", "x"] {
        let absent = host.get(&format!("{MEDIA}/{id}")).send().await;
        absent.refused(ErrorCode::MediaNotFound);
    }
}

async fn lists_are_filtered_ordered_and_counted(host: Host) {
    let shelf = TestFolder::new(host);
    for (name, length) in [("b.txt", 3), ("a.txt", 1), ("c.txt", 2)] {
        shelf.put(name, "file", "text/plain", &b"xyz"[..length]).await;
    }
    shelf.put("d.png", "image", "image/png", &png()).await;
    let names = async |options: &str| -> Vec<String> {
        let files = shelf.list(options).await.payload();
        let files = files.as_array().expect("a list").iter();
        files.map(|file| file["name"].as_str().unwrap().to_owned()).collect()
    };
    // The newest file is first by default.
    assert_eq!(names("").await, ["d.png", "c.txt", "a.txt", "b.txt"]);
    assert_eq!(names("&order[field]=id").await, ["b.txt", "a.txt", "c.txt", "d.png"]);
    assert_eq!(names("&type=file&order[field]=size&order[strategy]=desc").await, ["b.txt", "c.txt", "a.txt"]);
    assert_eq!(names("&type=image").await, ["d.png"]);
    assert_eq!(names("&name=a.txt").await, ["a.txt"]);
    assert_eq!(names("&name=nothing").await, Vec::<String>::new());
    assert_eq!(names("&order[field]=name&limit=2&page=2").await, ["c.txt", "d.png"]);
    assert_eq!(names("&limit=0").await, Vec::<String>::new());
    let counted = shelf.list("&limit=1&count=true").await.json();
    assert_eq!(counted["count"], 4, "{counted}");
    assert_eq!(counted["payload"].as_array().unwrap().len(), 1);
    let files = shelf.list("&name=d.png").await.payload();
    assert!(files[0]["thumbnailUrl"].is_string() && files[0]["mime"] == "image/png", "{files}");
    let above = host.get(&format!("{MEDIA}?folder={}", enc("no such folder"))).send().await;
    assert_eq!(above.payload(), json!([]));
}

async fn lists_take_names_that_look_like_json_for_names(host: Host) {
    let top = unique("names");
    for (folder, name) in [
        (format!("[2024] photos {top}"), "a.txt"),
        (format!("{{\"a\":1}} {top}"), "[1]"),
        (format!("\"{top}\""), "\"x\""),
    ] {
        let mut shelf = TestFolder::new(host);
        shelf.folder = folder;
        shelf.put(name, "file", "text/plain", b"x").await;
        let found = shelf.list(&format!("&name={}", enc(name))).await.payload();
        assert_eq!(found[0]["name"], json!(name));
        assert_eq!(found[0]["folder"], json!(shelf.folder));
    }
}

async fn lists_refuse_what_they_do_not_know(host: Host) {
    for options in ["type=picture", "kind=image", "limit=x", "page=1", "order=,", "limit=10001", "folder=.."] {
        let answer = host.get(&format!("{MEDIA}?{options}")).send().await;
        answer.refused(ErrorCode::InvalidQueryOption);
    }
    let answer = host.get(&format!("{MEDIA}?order[field]=nam")).send().await;
    let hint = answer.refused(ErrorCode::UnknownField)["hint"].take();
    assert!(hint.as_str().unwrap().contains("name"), "{hint}");
}

async fn a_deleted_file_is_gone(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.png", "image", "image/png", &png()).await;
    assert_eq!(shelf.delete(&file["id"]).await.payload(), json!({"id": file["id"]}));
    shelf.describe(&file["id"]).await.refused(ErrorCode::MediaNotFound);
    shelf.delete(&file["id"]).await.refused(ErrorCode::MediaNotFound);
    shelf.fetch(&file["url"]).await.refused(ErrorCode::MediaNotFound);
    shelf.fetch(&file["thumbnailUrl"]).await.refused(ErrorCode::MediaNotFound);
    assert_eq!(shelf.names().await, Vec::<String>::new());
    // A new file can have the same name.
    let again = shelf.put("a.png", "image", "image/png", &png()).await;
    assert_ne!(again["id"], file["id"]);
}

async fn only_full_keys_delete(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    let delete = host.call(Method::DELETE, &format!("{MEDIA}/{}", file["id"]));
    delete.clone().key(read_key()).send().await.refused(ErrorCode::FullAccessRequired);
    delete.no_key().send().await.refused(ErrorCode::MissingKey);
    assert_eq!(shelf.names().await, ["a.txt"]);
}

async fn another_projects_files_do_not_exist(host: Host) {
    let shelf = TestFolder::new(host);
    let file = shelf.put("a.txt", "file", "text/plain", b"x").await;
    let project = unique("other-media-");
    shared().create_project(&project);
    let key = shared().create_key(&project, "full", &[]).token;
    let path = format!("{MEDIA}/{}", file["id"]);
    for method in [Method::GET, Method::DELETE] {
        let answer = host.call(method, &path).key(&key).send().await;
        answer.refused(ErrorCode::MediaNotFound);
    }
    let list = host.get(&format!("{MEDIA}?folder={}", shelf.folder)).key(&key).send().await;
    assert_eq!(list.payload(), Value::Array(Vec::new()));
    assert_eq!(shelf.names().await, ["a.txt"]);
}
