//! Public files in the edge's cache, and which requests the origin gets.

use super::recording_proxy::RecordingProxy;
use crate::case::eventually;
use crate::host::{Answer, Call, Host};
use crate::service::shared;
use crate::test_db::unique;
use crate::worker::Worker;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::time::Duration;

cases! {
    Own: [
        a_public_file_is_asked_of_the_origin_once,
        a_file_that_is_not_everybodys_is_asked_for_each_time,
        a_file_that_is_deleted_or_replaced_through_the_edge_is_forgotten_at_once,
        a_folder_that_becomes_private_through_the_edge_is_so_at_once,
        a_file_is_asked_about_again_after_its_time,
        a_large_file_is_kept_behind_the_answer,
    ],
}

const MEDIA: &str = "/api/v1/media";
const SOON: Duration = Duration::from_secs(20);

/// An edge with a cache, and a recording proxy between the edge and its origin.
struct Stand {
    edge: Worker,
    tap: RecordingProxy,
    folder: String,
}

impl Stand {
    async fn new(revalidate_seconds: &str) -> Self {
        let tap = RecordingProxy::before(&shared().origin).await;
        let url = tap.url.clone();
        let seconds = revalidate_seconds.to_owned();
        let start = move || {
            Worker::in_miniflare(&[("ORIGINS", &url), ("MEDIA_REVALIDATE_SECONDS", &seconds), ("LOG_REQUESTS", "off")])
        };
        let edge = tokio::task::spawn_blocking(start).await.expect("an edge");
        Self { edge, tap, folder: unique("kept") }
    }

    fn call(&self, method: Method, path: &str) -> Call {
        Call::new(&self.edge.url, method, path)
    }

    /// Uploads a text through the edge and returns its description.
    async fn put(&self, name: &str, bytes: &[u8], more: Value) -> Value {
        let mut body = json!({
            "media": [{"name": name, "base64": format!("data:application/octet-stream;base64,{}", STANDARD.encode(bytes))}],
            "folder": self.folder,
            "type": "file",
        });
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        let call = self.call(Method::POST, MEDIA).key(&shared().full_key);
        let answer = call.json(&body).send().await;
        assert_eq!(answer.header("x-selkie-purge"), None);
        answer.payload()[0].clone()
    }

    /// Builds a request for the file with this description.
    fn at(&self, file: &Value) -> Call {
        let url = file["url"].as_str().expect("a URL");
        let path = url.strip_prefix(&self.edge.url);
        self.call(Method::GET, path.expect("a URL of the edge"))
    }

    /// Returns how often the origin was asked for bytes of this case's files.
    fn asked(&self) -> usize {
        let requests = self.tap.requests();
        let of_files = requests.iter().filter(|seen| seen.target.starts_with("/media/"));
        of_files.count()
    }

    /// Repeats the request until the answer comes from the cache, and returns that answer.
    async fn kept(&self, file: &Value) -> Answer {
        eventually("the file is kept", SOON, || async {
            let before = self.asked();
            let answer = self.at(file).send().await;
            (self.asked() == before).then_some(answer)
        })
        .await
    }
}

/// Returns the headers of an answer that belong to the file.
fn headers(answer: &Answer) -> Vec<(String, String)> {
    let of_one_request = ["x-request-id", "server-timing", "date", "age"];
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
        .filter(|(name, _)| !of_one_request.contains(&name.as_str()))
        .collect();
    headers.sort();
    headers
}

async fn a_public_file_is_asked_of_the_origin_once(_: Host) {
    let stand = Stand::new("60").await;
    let file = stand.put("a b.txt", b"0123456789", json!({})).await;
    let page = "https://page.example";
    let first = stand.at(&file).header("origin", page).send().await;
    assert_eq!((first.status.as_u16(), &first.body[..]), (200, &b"0123456789"[..]));
    assert_eq!(first.header("age"), None);
    stand.kept(&file).await;
    let asked = stand.asked();

    let again = stand.at(&file).header("origin", page).header("x-request-id", "mine").send().await;
    assert_eq!((headers(&again), &again.body), (headers(&first), &first.body));
    assert_eq!(again.header("x-request-id"), Some("mine"));
    assert!(again.header("age").is_some_and(|age| age.parse::<u64>().is_ok()));
    let timing = again.header("server-timing").expect("a timing");
    assert!(timing.starts_with("edge;dur=") && !timing.contains(','), "{timing}");

    let tag = first.header("etag").expect("a tag").to_owned();
    let date = first.header("last-modified").expect("a date").to_owned();
    let path = {
        let url = file["url"].as_str().expect("a URL");
        url.strip_prefix(&stand.edge.url).expect("a path").to_owned()
    };
    for (method, given, status) in [
        (Method::GET, &[("range", "bytes=2-4")][..], 206),
        (Method::GET, &[("range", "bytes=-3")][..], 206),
        (Method::GET, &[("range", "bytes=0-1,4-5")][..], 200),
        (Method::GET, &[("range", "bytes=10-")][..], 416),
        (Method::GET, &[("range", "bytes=2-4"), ("if-range", tag.as_str())][..], 206),
        (Method::GET, &[("range", "bytes=2-4"), ("if-range", "\"x\"")][..], 200),
        (Method::GET, &[("range", "bytes=2-4"), ("if-range", date.as_str())][..], 206),
        (Method::GET, &[("if-none-match", tag.as_str())][..], 304),
        (Method::GET, &[("if-none-match", "\"x\"")][..], 200),
        (Method::GET, &[("if-modified-since", date.as_str())][..], 304),
        (Method::GET, &[("if-match", "\"x\"")][..], 412),
        (Method::HEAD, &[][..], 200),
        (Method::HEAD, &[("range", "bytes=2-4")][..], 200),
        (Method::GET, &[("authorization", "Bearer nonsense")][..], 200),
    ] {
        let send = async |base: &str| {
            let mut call = Call::new(base, method.clone(), &path).header("x-request-id", "same");
            for (name, value) in given {
                call = call.header(name, value);
            }
            call.send().await
        };
        let (kept, direct) = (send(&stand.edge.url).await, send(&shared().origin).await);
        assert_eq!(kept.status.as_u16(), status, "{method} {given:?}");
        assert_eq!(direct.status.as_u16(), status, "{method} {given:?}");
        assert_eq!(headers(&kept), headers(&direct), "{method} {given:?}");
        assert_eq!(kept.body, direct.body, "{method} {given:?}");
    }
    let spelt = path.replace("a%20b.txt", "%61%20b%2Etxt");
    assert_ne!(spelt, path);
    assert_eq!(stand.call(Method::GET, &spelt).send().await.body, first.body);
    assert_eq!(stand.asked(), asked, "{:?}", stand.tap.requests());
    // A request for a version that never was removes nothing from the cache.
    let (name, _) = path.split_once("?v=").expect("a version");
    let never = format!("{name}?v={}", "0".repeat(32));
    assert_eq!(stand.call(Method::GET, &never).send().await.body, first.body);
    assert_eq!(stand.call(Method::GET, &path).send().await.body, first.body);
    assert_eq!(stand.asked(), asked + 1, "{:?}", stand.tap.requests());
}

async fn a_file_that_is_not_everybodys_is_asked_for_each_time(_: Host) {
    let stand = Stand::new("60").await;
    let private = stand.put("own.txt", b"own", json!({"private": true})).await;
    let public = stand.put("all.txt", b"all", json!({})).await;
    let id = &private["id"];
    let signing = stand.call(Method::POST, &format!("{MEDIA}/{id}/sign"));
    let signed = signing.key(&shared().full_key).json(&json!({"expiresIn": 600}));
    let signed = signed.send().await.payload();
    let with = |file: &Value, more: &str| {
        let url = file["url"].as_str().expect("a URL");
        json!({"url": format!("{url}{more}")})
    };
    let bare = public["url"].as_str().expect("a URL").split('?').next();
    let bare = json!({"url": bare});
    let stale = with(&bare, &format!("?v={}", "0".repeat(32)));
    for file in [&signed, &with(&public, "&download=true"), &with(&public, "&x=1"), &bare, &stale] {
        for _ in 0..3 {
            let before = stand.asked();
            assert_eq!(stand.at(file).send().await.status.as_u16(), 200, "{file}");
            assert_eq!(stand.asked(), before + 1, "{file}");
        }
    }
    for _ in 0..3 {
        let before = stand.asked();
        let with_key = stand.at(&private).key(&shared().read_key).send().await;
        assert_eq!((with_key.status.as_u16(), &with_key.body[..]), (200, &b"own"[..]));
        stand.at(&private).send().await.refused(ErrorCode::MediaNotFound);
        assert_eq!(stand.asked(), before + 2);
    }
}

async fn a_file_that_is_deleted_or_replaced_through_the_edge_is_forgotten_at_once(_: Host) {
    let stand = Stand::new("3600").await;
    let delete = async |file: &Value| {
        let call = stand.call(Method::DELETE, &format!("{MEDIA}/{}", file["id"]));
        let answer = call.key(&shared().full_key).header("x-selkie-accepts-purge", "0").send().await;
        assert_eq!((answer.payload(), answer.header("x-selkie-purge")), (json!({"id": file["id"]}), None));
    };
    let deleted = stand.put("deleted.txt", b"one", json!({})).await;
    stand.kept(&deleted).await;
    delete(&deleted).await;
    stand.at(&deleted).send().await.refused(ErrorCode::MediaNotFound);

    let old = stand.put("replaced.txt", b"old", json!({})).await;
    stand.kept(&old).await;
    let new = stand.put("replaced.txt", b"new", json!({"update": true})).await;
    assert_ne!(new["url"], old["url"]);
    for file in [&old, &new] {
        assert_eq!(stand.at(file).send().await.body, b"new");
    }
    assert_eq!(stand.kept(&new).await.body, b"new");

    stand.put("replaced.txt", b"new", json!({"update": true, "private": true})).await;
    stand.at(&new).send().await.refused(ErrorCode::MediaNotFound);

    // The origin returns the tags to any client that asks, so the edge removes the header from requests.
    let smuggled = stand.at(&new).header("x-selkie-accepts-purge", "1").send().await;
    smuggled.refused(ErrorCode::MediaNotFound);
    for seen in stand.tap.requests() {
        let expected = (seen.method != "GET").then_some("1");
        assert_eq!(seen.header("x-selkie-accepts-purge"), expected, "{} {}", seen.method, seen.target);
    }
    let direct = async |asks: Option<&str>| {
        let file = stand.put("direct.txt", b"one", json!({"update": true})).await;
        let path = format!("{MEDIA}/{}", file["id"]);
        let mut call = Call::new(&shared().origin, Method::DELETE, &path).key(&shared().full_key);
        if let Some(value) = asks {
            call = call.header("x-selkie-accepts-purge", value);
        }
        let answer = call.send().await;
        answer.payload();
        answer.header("x-selkie-purge").map(str::len)
    };
    assert_eq!(direct(Some("1")).await, Some(32));
    assert_eq!(direct(None).await, None);
}

async fn a_folder_that_becomes_private_through_the_edge_is_so_at_once(_: Host) {
    let stand = Stand::new("3600").await;
    let large = vec![b'x'; 2 * 1024 * 1024];
    let files = [stand.put("small.txt", b"one", json!({})).await, stand.put("large.txt", &large, json!({})).await];
    for file in &files {
        stand.kept(file).await;
    }
    let item = json!({"name": "c.txt", "base64": "data:text/plain;base64,eA==", "privateFolder": true});
    stand.put("c.txt", b"", json!({"media": [item]})).await;
    for file in &files {
        let answer = stand.at(file).send().await;
        answer.refused(ErrorCode::MediaNotFound);
    }
}

async fn a_file_is_asked_about_again_after_its_time(_: Host) {
    let stand = Stand::new("1").await;
    let staying = stand.put("staying.txt", b"staying", json!({})).await;
    let going = stand.put("going.txt", b"going", json!({})).await;
    for file in [&staying, &going] {
        stand.kept(file).await;
    }
    let tag = stand.at(&staying).send().await.header("etag").map(str::to_owned);
    let confirmed = || {
        let requests = stand.tap.requests();
        let questions = requests
            .iter()
            .filter(|seen| seen.header("if-none-match") == tag.as_deref() && seen.header("authorization").is_none());
        questions.count()
    };
    eventually("the origin is asked about it", SOON, || async {
        let answer = stand.at(&staying).key(&shared().full_key).send().await;
        assert_eq!(answer.body, b"staying");
        (confirmed() > 1).then_some(())
    })
    .await;

    // The file is deleted directly at the origin, so the edge does not know of it.
    let path = format!("{MEDIA}/{}", going["id"]);
    let call = Call::new(&shared().origin, Method::DELETE, &path);
    call.key(&shared().full_key).send().await.payload();
    eventually("the deleted file is gone", SOON, || async {
        let answer = stand.at(&going).send().await;
        (answer.status.as_u16() == 404).then_some(())
    })
    .await;

    // Without an origin, the edge serves cached files with their age.
    let Stand { edge, tap, .. } = stand;
    let path = staying["url"].as_str().and_then(|url| url.strip_prefix(&edge.url));
    let path = path.expect("a path").to_owned();
    drop(tap);
    eventually("a file is given that nobody could be asked about", SOON, || async {
        let answer = Call::new(&edge.url, Method::GET, &path).send().await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"staying"[..]));
        let age = answer.header("age").expect("an age").parse::<u64>();
        (age.expect("seconds") > 1).then_some(())
    })
    .await;
}

async fn a_large_file_is_kept_behind_the_answer(_: Host) {
    const SIZE: usize = 8 * 1024 * 1024;
    let stand = Stand::new("60").await;
    let bytes = |seed: usize| -> Vec<u8> { (0..SIZE).map(|at| (at * 31 / 7 + seed) as u8).collect() };
    let (whole, parts) = (bytes(1), bytes(2));
    let part = |file: &Value, range: &str| stand.at(file).header("range", range);

    let file = stand.put("whole.bin", &whole, json!({})).await;
    assert!(stand.at(&file).send().await.body == whole);
    assert!(stand.kept(&file).await.body == whole);
    let asked = stand.asked();
    let answer = part(&file, "bytes=5000000-5000099").send().await;
    assert_eq!(answer.header("content-range"), Some("bytes 5000000-5000099/8388608"));
    assert!(answer.body == whole[5_000_000..5_000_100]);
    assert_eq!(stand.asked(), asked);

    // A media player requests ranges only.
    let file = stand.put("parts.bin", &parts, json!({})).await;
    eventually("a part comes from the cache", SOON, || async {
        let before = stand.asked();
        let answer = part(&file, "bytes=-100").send().await;
        assert_eq!(answer.status.as_u16(), 206);
        assert!(answer.body == parts[SIZE - 100..]);
        (stand.asked() == before).then_some(())
    })
    .await;
    assert!(stand.kept(&file).await.body == parts);
}
