//! Tests the page `/docs`: its HTML by itself, and in Chromium.

use crate::host::{Call, Host};
use crate::roles::Caller;
use crate::service::workspace;
use crate::test_db::TestDb;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;
use std::process::Command;

cases! {
    Both: [
        a_browser_at_the_root_finds_the_pages_and_a_program_an_error,
        files_of_the_page_need_no_key_and_are_its_own,
        a_browser_shows_what_the_key_may_do_and_makes_a_call,
    ],
}

fn page(host: Host, path: &str) -> Call {
    Call::new(host.url(), Method::GET, path)
}

async fn a_browser_at_the_root_finds_the_pages_and_a_program_an_error(host: Host) {
    let browser = |method| Call::new(host.url(), method, "/").header("accept", "text/html,*/*;q=0.8");
    let home = browser(Method::GET).send().await;
    assert_eq!((home.status.as_u16(), home.header("content-type")), (200, Some("text/html; charset=utf-8")), "{home}");
    let text = home.text();
    for path in ["/console", "/docs", "/docs/README.md"] {
        assert!(text.contains(&format!("href=\"{path}\"")), "{text}");
        assert_eq!(page(host, path).send().await.status, 200, "{path}");
    }
    assert!(page(host, "/docs").send().await.text().contains("href=\"/console\""));
    assert_eq!(browser(Method::HEAD).send().await.status, 200);
    for call in [page(host, "/").header("accept", "application/json"), browser(Method::POST)] {
        let refused = call.send().await.refused(ErrorCode::RouteNotFound);
        let hint = refused["hint"].as_str().expect("a hint");
        assert!(hint.contains("/docs") && hint.contains("/console"), "{hint}");
    }
}

async fn files_of_the_page_need_no_key_and_are_its_own(host: Host) {
    for (path, content_type) in [
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/", "text/html; charset=utf-8"),
        ("/docs/page.js", "text/javascript; charset=utf-8"),
        ("/docs/swagger-ui.css", "text/css; charset=utf-8"),
        ("/docs/LICENSE", "text/plain; charset=utf-8"),
    ] {
        let answer = page(host, path).send().await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some(content_type)), "{path}");
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains(", script-src http://*:*/docs/ https://*:*/docs/; style-src"), "{policy}");
        assert!(!answer.body.is_empty(), "{path}");
        let tag = answer.header("etag").expect("a tag").to_owned();
        let again = page(host, path).header("if-none-match", &tag).send().await;
        assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{again}");
    }
    let source = page(host, "/docs").send().await.text();
    assert!(!source.contains("http:") && !source.contains("https:") && !source.contains("<script>"), "{source}");
    for path in ["/docs/nothing.js", "/docs/../Cargo.toml", "/docs/page.js.gz", "/docs/a/b"] {
        page(host, path).send().await.refused(ErrorCode::RouteNotFound);
    }
    Call::new(host.url(), Method::POST, "/docs").send().await.refused(ErrorCode::MethodNotAllowed);
}

async fn a_browser_shows_what_the_key_may_do_and_makes_a_call(host: Host) {
    let tables = ["CREATE TABLE tides (id INT PRIMARY KEY, height INT)", "INSERT INTO tides VALUES (1, 42)"];
    let db = TestDb::new(host, &tables).await;
    let caller = Caller::new(&db, [("tides", json!({"read": true, "insert": true}))], json!({}));
    let mut command = Command::new("node");
    command
        .arg(workspace().join("tests/clients/docs-page.mjs"))
        .args([host.url(), &db.name, "tides"])
        .env("SELKIE_KEY", &caller.key);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("a task").expect("node");
    let [said, faults] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{faults}\n{said}");
    let shown: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(shown["status"], "200", "{said}");
    assert!(shown["body"].as_str().is_some_and(|body| body.contains("42")), "{said}");
    let summaries = shown["summaries"].as_array().expect("a list");
    assert!(summaries.contains(&json!(format!("Read records of {}.tides", db.name))), "{said}");
    assert!(summaries.contains(&json!(format!("Insert records into {}.tides", db.name))), "{said}");
    assert!(!summaries.contains(&json!(format!("Delete a record of {}.tides", db.name))), "{said}");
}
