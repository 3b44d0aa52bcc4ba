//! Requests whose head is refused, except for options: keys, policy, routes, methods, names, headers.

use super::{Refusal, call, refusal};
use crate::host::Call;
use crate::service::shared;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode::{self, *};

const POSTS: &str = "/api/v1/crud/demo/posts";
const TUS: &str = "/api/v1/media/tus";

pub(super) fn table(expired: &str) -> Vec<Refusal> {
    [keys(expired), policy(), routes(), methods(), headers(), resumable(), unfit()].into_iter().flatten().collect()
}

fn get(path: &str) -> Call {
    call(Method::GET, path)
}

fn keys(expired: &str) -> Vec<Refusal> {
    let full = &shared().full_key;
    let (signed, signature) = full.rsplit_once('.').expect("a signature");
    let other = format!("{signed}.{}", signature.chars().rev().collect::<String>());
    let cut = &full[..full.len() - 2];
    let long = "x".repeat(3_000);
    let mut table = Vec::new();
    for (method, path) in [
        (Method::GET, POSTS),
        (Method::HEAD, "/api/v1/crud/demo/posts/1"),
        (Method::POST, POSTS),
        (Method::OPTIONS, POSTS),
        (Method::POST, "/api/v1/sql"),
        (Method::POST, "/api/v1/batch"),
        (Method::GET, "/api/v1/media"),
        (Method::POST, "/api/v1/media"),
        (Method::POST, TUS),
        // The key is checked before the options.
        (Method::GET, "/api/v1/crud/demo/posts?limmit=1"),
    ] {
        let call = call(method, path);
        table.push(refusal(MissingKey, call.clone().no_key()));
        for wrong in ["x.y.z", &other, cut, &long, "Basic eDp5", "Bearer", full, ".."] {
            let value = match wrong == full.as_str() {
                true => format!("Bearer Bearer {full}"),
                false => format!("Bearer {wrong}"),
            };
            table.push(refusal(InvalidKey, call.clone().authorization(&value)));
        }
        table.push(refusal(ExpiredKey, call.key(expired)));
    }
    table
}

fn policy() -> Vec<Refusal> {
    let writes = [
        (Method::POST, POSTS.to_owned()),
        (Method::PUT, format!("{POSTS}/1")),
        (Method::PATCH, format!("{POSTS}/1")),
        (Method::PUT, POSTS.to_owned()),
        (Method::DELETE, format!("{POSTS}/1")),
        (Method::DELETE, POSTS.to_owned()),
        (Method::POST, "/api/v1/sql".to_owned()),
        (Method::POST, "/api/v1/batch".to_owned()),
        (Method::POST, "/api/v1/media".to_owned()),
        (Method::DELETE, "/api/v1/media/7".to_owned()),
        (Method::GET, format!("{POSTS}?explain=true")),
    ];
    writes
        .into_iter()
        .map(|(method, path)| call(method, &path).key(&shared().read_key))
        .map(|call| refusal(FullAccessRequired, call))
        .collect()
}

fn routes() -> Vec<Refusal> {
    let paths = [
        "/",
        "/api",
        "/api/v1/",
        "/api/v1/crud//",
        "/api/v1/crud/demo//",
        "/api/v1/crud/demo/posts//",
        "/api/v1/sql//",
        "/api/v1/crud/demo/posts/1/extra",
        "/api/v1/sql/x",
        "/api/v1/batch/x",
        "/API/V1/crud/demo/posts",
        "//api/v1/crud/demo/posts",
        "/api/v2/sql",
        "/favicon.ico",
        "/.env",
        "/healthz/",
        "/healthz/x",
        "/api/v1/nothing?x=1",
        "/media",
        "/wp-login.php",
    ];
    let mut table: Vec<Refusal> = paths
        .into_iter()
        .flat_map(|path| [get(path), get(path).no_key(), call(Method::POST, path).json(&json!({}))])
        .map(|call| refusal(RouteNotFound, call))
        .collect();
    for path in ["/media/", "/media/default/", "/media/default/a//b", "/media/default/%00"] {
        table.push(refusal(MediaNotFound, get(path).no_key()));
    }
    for id in ["x", "-1", "0192f3a17c1e7d3a9d550b6c6a1f0e11"] {
        for path in [format!("/api/v1/media/{id}"), format!("{TUS}/{id}")] {
            table.push(refusal(MediaNotFound, call(Method::HEAD, &path).header("tus-resumable", "1.0.0")));
        }
        table.push(refusal(MediaNotFound, call(Method::DELETE, &format!("/api/v1/media/{id}"))));
    }
    let fill = "x".repeat(20_000);
    for path in [format!("{POSTS}?query[title]={fill}"), format!("{POSTS}/{fill}"), format!("/api/v1/sql?{fill}")] {
        table.push(refusal(UriTooLong, get(&path)));
        table.push(refusal(UriTooLong, get(&path).no_key()));
    }
    table
}

/// Returns requests that are refused for any operation.
fn unfit() -> Vec<Refusal> {
    let mut table = Vec::new();
    for path in [POSTS, "/readyz", "/healthz", "/media/default/a", "/nowhere"] {
        let crowd = (0..80).fold(get(path), |call, n| call.header(&format!("x-{n}"), "1"));
        table.push(refusal(HeadersTooLarge, crowd));
        let large = get(path).header("cookie", &"a".repeat(70_000));
        table.push(refusal(HeadersTooLarge, large));
        table.push(refusal(InvalidRequest, get(&format!("{path}?a=`"))));
        table.push(refusal(InvalidBody, get(path).header("trailer", "x-a")));
        table.push(refusal(UriTooLong, get(&format!("{path}?{}", "a".repeat(17_000)))));
    }
    table
}

fn methods() -> Vec<Refusal> {
    let custom = || Method::from_bytes(b"PROPFIND").expect("a method");
    [
        (Method::POST, "/api/v1/crud/demo/posts/1"),
        (Method::GET, "/api/v1/sql"),
        (Method::PUT, "/api/v1/sql"),
        (Method::HEAD, "/api/v1/batch"),
        (Method::POST, "/healthz"),
        (Method::DELETE, "/readyz"),
        (Method::DELETE, "/api/v1/crud/demo/posts/_schema"),
        (Method::PUT, "/api/v1/media"),
        (Method::GET, TUS),
        (Method::POST, "/media/default/a.txt"),
        (custom(), POSTS),
    ]
    .into_iter()
    .flat_map(|(method, path)| [call(method.clone(), path), call(method, path).no_key()])
    .map(|call| refusal(MethodNotAllowed, call))
    .collect()
}

/// Returns requests with headers that contradict the body or are invalid.
fn headers() -> Vec<Refusal> {
    let insert = || call(Method::POST, POSTS).json(&json!({"title": "x"}));
    let long = "x".repeat(256);
    let mut table: Vec<Refusal> = ["", &long, "a\u{e9}", "a b\tc"]
        .iter()
        .map(|key| refusal(InvalidQueryOption, insert().header("idempotency-key", key)))
        .collect();
    for (name, idle) in [
        ("idempotency-key", call(Method::PUT, "/api/v1/crud/demo/posts/1")),
        ("idempotency-key", call(Method::POST, "/api/v1/sql")),
        ("if-match", insert()),
        ("if-none-match", call(Method::DELETE, "/api/v1/crud/demo/posts/1")),
    ] {
        table.push(refusal(InvalidQueryOption, idle.header(name, "\"x\"")));
    }
    for options in
        ["returning=", "returning=id,id", "dryRun=perhaps", "dryRun=true&returning=*", "maxAffected=-1", "limit=1"]
    {
        let update = call(Method::PUT, &format!("{POSTS}/1?{options}"));
        table.push(refusal(InvalidQueryOption, update.json(&json!({"title": "x"}))));
    }
    table
}

fn resumable() -> Vec<Refusal> {
    let id = format!("{TUS}/0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e11");
    let mut table = Vec::new();
    for (method, path) in [(Method::POST, TUS), (Method::PATCH, &id), (Method::DELETE, &id), (Method::HEAD, &id)] {
        table.push(refusal(PreconditionFailed, call(method.clone(), path)));
        let old = call(method, path).header("tus-resumable", "0.2.2");
        table.push(refusal(PreconditionFailed, old));
    }
    let spoken = |method, path: &str| call(method, path).header("tus-resumable", "1.0.0");
    let creation = |length: &str, metadata: &str| {
        spoken(Method::POST, TUS).header("upload-length", length).header("upload-metadata", metadata)
    };
    let named = "filename YQ==";
    let long = format!("{named},x {}", "A".repeat(5_000));
    let faults: [(&str, &str, ErrorCode); 8] = [
        ("0", named, InvalidMedia),
        ("x", named, InvalidQueryOption),
        ("-1", named, InvalidQueryOption),
        ("1", "filetype aW1hZ2UvcG5n", InvalidBody),
        ("1", "filename Li4vYQ==", InvalidBody),
        ("1", "filename !", InvalidBody),
        ("1", "", InvalidBody),
        ("1", &long, InvalidBody),
    ];
    for (length, metadata, code) in faults {
        table.push(refusal(code, creation(length, metadata)));
    }
    table.push(refusal(InvalidQueryOption, spoken(Method::POST, TUS)));
    for (name, value) in [("upload-defer-length", "1"), ("upload-concat", "partial"), ("upload-checksum", "sha1 x")] {
        table.push(refusal(InvalidQueryOption, creation("1", named).header(name, value)));
    }
    let part = || spoken(Method::PATCH, &id).bytes("x");
    table.push(refusal(InvalidQueryOption, part()));
    let odd = part().header("upload-offset", "x");
    table.push(refusal(InvalidQueryOption, odd.header("content-type", "application/offset+octet-stream")));
    let typed = part().header("upload-offset", "0");
    table.push(refusal(UnsupportedMediaType, typed.header("content-type", "text/plain")));
    let stranger = creation("1", named).key(&shared().read_key);
    table.push(refusal(FullAccessRequired, stranger));
    table
}
