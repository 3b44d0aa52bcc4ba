//! Texts that would do harm if they were repeated unescaped in a page, a header or a log line. Only JSON strings may
//! contain them.

use crate::host::{Call, Host};
use crate::raw::exchange;
use crate::service::shared;
use reqwest::Method;
use serde_json::Value;

cases! {
    Both: [nothing_hostile_is_repeated_but_inside_a_json_string, headers_can_not_be_smuggled_into_an_answer],
}

/// Harmful texts, each with a unique part that is searched for in answers and logs.
const HOSTILE: [&str; 5] = [
    "<script>evil()</script>",
    "\"><img src=x onerror=evil()>",
    "evil\u{2028}\u{202e}",
    "';evil()//",
    "\\\"},\"success\":true,\"payload\":\"evil",
];

async fn nothing_hostile_is_repeated_but_inside_a_json_string(host: Host) {
    for text in HOSTILE {
        let encoded = crate::host::enc(text);
        let table = "/api/v1/crud/demo/posts";
        let get = |path: String| host.get(&path);
        for call in [
            get(format!("/{encoded}")),
            get(format!("/api/v1/crud/{encoded}/posts")),
            get(format!("/api/v1/crud/demo/{encoded}")),
            get(format!("{table}/{encoded}")),
            get(format!("{table}?{encoded}=1")),
            get(format!("{table}?limit={encoded}")),
            get(format!("{table}?selectFields={encoded}")),
            get(format!("/media/default/{encoded}")),
            get(format!("/api/v1/media/{encoded}")),
            host.post(table, &serde_json::json!({ text: 1 })),
            host.sql(&serde_json::json!({"query": text})),
            host.sql(&serde_json::json!({"query": "SELECT 1", text: 1})),
        ] {
            let answer = call.send().await;
            assert!(answer.status.is_client_error(), "{answer}");
            assert_eq!(answer.header("content-type"), Some("application/json"));
            // The body is valid JSON, so the text is within a string. No header may contain the text.
            let body: Value = answer.json();
            assert_eq!(body["success"], false, "{answer}");
            let headers = format!("{:?}", answer.headers);
            assert!(!headers.contains("evil"), "{headers}");
        }
    }
}

async fn headers_can_not_be_smuggled_into_an_answer(host: Host) {
    let record = "/api/v1/crud/demo/posts/1";
    for (name, value) in [
        ("x-request-id", "<script>evil()</script>"),
        ("x-request-id", "evil, evil"),
        ("origin", "https://evil.example\"><script>"),
        ("traceparent", "evil"),
        ("tus-resumable", "evil"),
        ("if-none-match", "\"evil\""),
        ("range", "bytes=evil"),
        ("accept", "evil/evil"),
        ("idempotency-key", "evil"),
        ("x-forwarded-host", "evil.example"),
        ("upload-metadata", "evil ZXZpbA=="),
    ] {
        let call = Call::new(host.url(), Method::GET, record).key(&shared().read_key);
        let answer = call.header(name, value).send().await;
        let headers = format!("{:?}", answer.headers);
        assert!(!headers.contains("evil"), "{name}: {headers}");
    }
    for path in [
        "/%0d%0aevil:%201",
        "/api/v1/crud/demo/posts?limit=%0d%0aevil:%201",
        "/media/default/%0d%0aevil:%201",
        "/media/default/x?download=%0d%0aevil:1",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = exchange(host.url(), request.as_bytes()).await;
        let answer = answer.expect("an answer");
        assert!(!answer.head.contains("evil"), "{}", answer.head);
    }
}
