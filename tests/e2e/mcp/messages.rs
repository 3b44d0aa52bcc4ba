//! Tests the protocol: the form of messages, and the answers to failures of the protocol.

use super::{BOTH, message, outcome, request, result, tool};
use crate::host::{Call, Host};
use crate::second_origin::SecondOrigin;
use crate::service::shared;
use crate::worker::Worker;
use reqwest::Method;
use serde_json::{Value, json};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_request_needs_no_session,
        what_is_no_message_is_refused_in_json_rpc,
        what_is_refused_before_its_message_is_read_is_refused_as_by_the_api,
        a_message_is_json_and_posted,
        a_batch_belongs_to_the_version_that_has_batches,
        both_lifecycles_are_answered,
    ],
    Own: [
        a_web_page_of_another_origin_is_refused,
    ],
}

async fn a_request_needs_no_session(host: Host) {
    let answer = message(host, &request("ping", &json!({}))).send().await;
    assert_eq!(result(&answer), json!({}));
    assert!(answer.header("mcp-session-id").is_none());
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answer = message(host, &notification).send().await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0), "{answer}");
    let anywhere = message(host, &request("ping", &json!({}))).header("mcp-session-id", "of-another-server");
    assert_eq!(result(&anywhere.send().await), json!({}));
}

async fn what_is_no_message_is_refused_in_json_rpc(host: Host) {
    let bytes = |body: &str| host.call(Method::POST, "/mcp").header("accept", BOTH).bytes(body);
    let of = |method: &str, params: Value| message(host, &request(method, &params));
    let ping = request("ping", &json!({}));
    let accepting = |accept: &str| host.call(Method::POST, "/mcp").header("accept", accept).json(&ping);
    for (call, status, code, says) in [
        (bytes("{"), 400, -32700, "not valid JSON"),
        (bytes(""), 400, -32700, "not valid JSON"),
        (bytes("[1,"), 400, -32700, "not valid JSON"),
        (bytes("{}"), 400, -32600, "JSON-RPC 2.0"),
        (bytes(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), 400, -32600, "JSON-RPC 2.0"),
        (accepting("application/json"), 406, -32600, "Accept"),
        (accepting("text/html"), 406, -32600, "text/event-stream"),
        (of("ping", json!({})).header("mcp-protocol-version", "1999-01-01"), 400, -32600, "1999-01-01"),
        (of("nothing/here", json!({})), 200, -32601, "nothing/here"),
        (of("prompts/list", json!({})), 200, -32601, "prompts/list"),
        (of("tools/call", json!({})), 200, -32602, "tools/call"),
        (of("tools/call", json!({"name": "drop_everything"})), 200, -32602, "There is no tool \"drop_everything\""),
        (of("resources/read", json!({"uri": "selkie://schema/demo/none"})), 200, -32002, "none"),
        (of("resources/read", json!({"uri": "file:///etc/passwd"})), 200, -32002, "selkie://schema/"),
        (of("resources/list", json!({"cursor": "nonsense"})), 200, -32602, "cursor"),
    ] {
        let what = call.to_string();
        let answer = call.send().await;
        assert_eq!(answer.status.as_u16(), status, "{what}: {answer}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code, "{what}: {answer}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(says)), "{what}: {answer}");
    }
}

async fn what_is_refused_before_its_message_is_read_is_refused_as_by_the_api(host: Host) {
    let ping = request("ping", &json!({}));
    let call = || message(host, &ping);
    for (call, code) in [
        (call().no_key(), ErrorCode::MissingKey),
        (call().key("a.b.c"), ErrorCode::InvalidKey),
        (Call::new(host.url(), Method::GET, "/mcp"), ErrorCode::MethodNotAllowed),
        (Call::new(host.url(), Method::DELETE, "/mcp"), ErrorCode::MethodNotAllowed),
        (host.call(Method::POST, "/mcp?session=1").header("accept", BOTH).json(&ping), ErrorCode::InvalidQueryOption),
        (host.call(Method::POST, "/mcp/x").json(&ping), ErrorCode::RouteNotFound),
    ] {
        let answer = call.send().await;
        answer.refused(code);
        let challenge = answer.header("www-authenticate").map(|value| value.starts_with("Bearer"));
        assert_eq!(challenge, (answer.status == 401).then_some(true), "{answer}");
        assert_eq!(answer.header("allow"), (answer.status == 405).then_some("POST"), "{answer}");
    }
}

async fn a_message_is_json_and_posted(host: Host) {
    let ping = request("ping", &json!({})).to_string();
    let typed = |kind: &str| host.call(Method::POST, "/mcp").header("accept", BOTH).header("content-type", kind);
    typed("text/plain").bytes(ping.clone()).send().await.refused(ErrorCode::UnsupportedMediaType);
    let answer = typed("application/json; charset=utf-8").bytes(ping).send().await;
    assert_eq!(result(&answer), json!({}));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let long = request("ping", &json!({"_meta": {"x": "y".repeat(16 * 1024 * 1024)}}));
    message(host, &long).send().await.refused(ErrorCode::BodyTooLarge);
}

async fn a_batch_belongs_to_the_version_that_has_batches(host: Host) {
    let mut ping = request("ping", &json!({}));
    let first = ping.clone();
    ping["id"] = json!("b");
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = json!([first, notification, ping, {"jsonrpc": "2.0"}]);
    let answer = message(host, &batch).header("mcp-protocol-version", "2025-03-26").send().await;
    let answers = answer.json();
    let ids: Vec<_> = answers.as_array().expect("a list").iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(7), json!("b"), Value::Null], "{answer}");
    let answer = message(host, &json!([notification])).send().await;
    assert_eq!((answer.status.as_u16(), answer.body.len()), (202, 0), "{answer}");
    let newer = message(host, &batch).header("mcp-protocol-version", "2025-06-18");
    for call in [newer, message(host, &json!([])), message(host, &json!(vec![first; 17]))] {
        let answer = call.send().await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!(-32600)), "{answer}");
    }
}

/// Up to 2025-11-25, a connection begins with `initialize`; from 2026-07-28 on, each request names its version.
async fn both_lifecycles_are_answered(host: Host) {
    for (asked, agreed) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2199-01-01", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let begun = result(&message(host, &request("initialize", &params)).send().await);
        assert_eq!(begun["protocolVersion"], agreed);
        assert_eq!(begun["serverInfo"]["name"], "selkie");
        assert!(begun["instructions"].as_str().is_some_and(|text| text.contains("list_tables")));
    }
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let newest = |method: &str| {
        let call = message(host, &request(method, &meta));
        call.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method)
    };
    let found = result(&newest("server/discover").send().await);
    assert!(found["supportedVersions"].to_string().contains("2026-07-28"), "{found}");
    let tools = result(&newest("tools/list").send().await);
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(6), "{tools}");
}

async fn a_web_page_of_another_origin_is_refused(host: Host) {
    let origins = ("SELKIE_CORS_ORIGINS", "https://app.example");
    let mut second = SecondOrigin::launch(shared(), &[origins]).expect("an origin");
    second.wait_until_ready().expect("a ready origin");
    let asked = |base: String, page: &'static str| async move {
        let call = message(host, &request("ping", &json!({}))).at(&base);
        let call = if page.is_empty() { call } else { call.header("origin", page) };
        call.key(&shared().read_key).send().await
    };
    let mut bases = vec![second.origin.clone()];
    let worker = crate::case::edge_is_open()
        .then(|| Worker::start(&[("ORIGINS", &shared().origin), ("CORS_ORIGINS", "https://app.example")]));
    bases.extend(worker.as_ref().map(|worker| worker.url.clone()));
    for base in bases {
        for page in ["", "https://app.example"] {
            assert_eq!(result(&asked(base.clone(), page).await), json!({}), "{base} {page}");
        }
        for page in ["https://evil.example", "null"] {
            asked(base.clone(), page).await.refused(ErrorCode::PermissionDenied);
        }
        let read = Call::new(&base, Method::GET, "/api/v1/crud/demo/posts/1").key(&shared().read_key);
        read.header("origin", "https://evil.example").send().await.payload();
    }
    // By default any web origin is allowed, so web pages may call with keys that they may have.
    let anywhere = tool(host, &shared().read_key, "list_tables", &json!({})).header("origin", "https://a.example");
    outcome(&result(&anywhere.send().await), None);
}
