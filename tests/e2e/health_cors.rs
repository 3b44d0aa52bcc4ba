//! Health checks, metrics, CORS and HTTP versions.

use crate::host::{Call, Host};
use crate::service::shared;
use reqwest::Method;
use serde_json::json;
use shared::error::ErrorCode;

const POSTS: &str = "/api/v1/crud/demo/posts?limit=1";

cases! {
    Both: [
        health_and_readiness_need_no_key,
        any_origin_may_read_the_answers,
        refusals_can_be_read_by_any_origin_too,
        useful_headers_are_exposed,
        server_timing_is_well_formed,
        server_timing_is_exact_for_full_keys_only,
        answers_are_not_kept_by_caches,
    ],
    Origin: [metrics_count_requests, metrics_hold_no_names_of_records, http_2_is_spoken],
    Edge: [metrics_are_not_shown_at_the_edge],
}

async fn health_and_readiness_need_no_key(host: Host) {
    for path in ["/healthz", "/readyz"] {
        let answer = Call::new(host.url(), Method::GET, path).send().await;
        assert_eq!(answer.status, 200, "{answer}");
        answer.payload();
    }
}

async fn any_origin_may_read_the_answers(host: Host) {
    let answer = host.get(POSTS).key(&shared().read_key).header("origin", "https://shop.example").send().await;
    answer.payload();
    let allowed = answer.header("access-control-allow-origin").unwrap_or_default().to_owned();
    assert_eq!(allowed, "*");
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

async fn refusals_can_be_read_by_any_origin_too(host: Host) {
    for call in [
        host.get(POSTS).no_key(),
        host.get("/nowhere"),
        host.get("/api/v1/crud/demo/nope").key(&shared().read_key),
        host.get("/api/v1/crud/demo/posts?foo=1").key(&shared().read_key),
        host.get("/api/v1/crud/demo/posts?foo=1"),
    ] {
        let page = call.header("origin", "https://shop.example");
        let answer = page.send().await;
        assert!(answer.header("access-control-allow-origin").is_some(), "{answer}");
    }
}

async fn useful_headers_are_exposed(host: Host) {
    let answer = host.get(POSTS).key(&shared().read_key).header("origin", "https://shop.example").send().await;
    let exposed = answer.header("access-control-expose-headers").unwrap_or_default().to_lowercase();
    for name in ["x-request-id", "retry-after", "server-timing"] {
        assert!(exposed.contains(name), "{name} is not exposed: {exposed:?}");
    }
}

async fn server_timing_is_well_formed(host: Host) {
    for call in [host.get(POSTS), host.get("/nowhere")] {
        let answer = call.send().await;
        let timing = answer.header("server-timing").unwrap_or_default().to_owned();
        for metric in timing.split(',') {
            let duration = metric.split(';').find_map(|part| part.trim().strip_prefix("dur="));
            assert!(duration.is_some_and(|text| text.parse::<f64>().is_ok_and(|ms| ms >= 0.0)), "{timing:?}");
        }
    }
}

/// Exact times would tell a caller how many records it may not see a statement has read.
async fn server_timing_is_exact_for_full_keys_only(host: Host) {
    let exact = async |call: Call| {
        let timing = call.send().await.header("server-timing").unwrap_or_default().to_owned();
        let of_origin: Vec<_> =
            timing.split(", ").filter(|part| part.starts_with("db") || part.starts_with("origin")).collect();
        assert_eq!(of_origin.len(), 2, "{timing}");
        of_origin.iter().any(|part| part.contains('.'))
    };
    assert!(exact(host.get(POSTS)).await);
    for call in [host.get(POSTS).key(&shared().read_key), host.get("/api/v1/crud/demo/nope").key(&shared().read_key)] {
        assert!(!exact(call).await);
    }
}

/// A shared cache must never give one key's answer to another client.
async fn answers_are_not_kept_by_caches(host: Host) {
    let answer = host.get(POSTS).send().await;
    let control = answer.header("cache-control").unwrap_or_default().to_owned();
    assert!(!control.contains("public") && !control.contains("s-maxage"), "{control:?}");
}

async fn metrics_count_requests(host: Host) {
    let counted = || async {
        let answer = Call::new(host.url(), Method::GET, "/metrics").send().await;
        assert_eq!(answer.status, 200);
        let text = answer.text();
        for name in ["selkie_http_requests_total", "selkie_http_request_seconds"] {
            assert!(text.contains(name), "{name} is missing");
        }
        let line = text
            .lines()
            .find(|line| line.starts_with("selkie_http_requests_total{") && line.contains("status=\"200\""));
        assert!(line.is_some_and(|line| line.contains("method=") && line.contains("route=")), "{line:?}");
        let value =
            |line: &str| line.rsplit(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("selkie_http_requests_total{")).map(value).sum::<f64>()
    };
    let before = counted().await;
    for _ in 0..5 {
        host.get(POSTS).send().await.payload();
    }
    assert!(counted().await >= before + 5.0);
}

/// Labels have few values: routes, but never tables, ids or keys.
async fn metrics_hold_no_names_of_records(host: Host) {
    let name = crate::test_db::unique("label_seven_seas_");
    host.get(&format!("/api/v1/crud/demo/{name}")).send().await.refused(ErrorCode::TableNotFound);
    host.get(&format!("/{name}")).send().await.refused(ErrorCode::RouteNotFound);
    let odd = Method::from_bytes(b"LABELSEVENSEAS").unwrap();
    host.call(odd, "/api/v1/sql").send().await;
    let text = Call::new(host.url(), Method::GET, "/metrics").send().await.text();
    assert!(!text.to_lowercase().contains("sevenseas") && !text.contains("seven_seas"));
}

async fn http_2_is_spoken(host: Host) {
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let url = format!("{}{POSTS}", host.url());
    let requests = (0..20).map(|_| client.get(&url).bearer_auth(&shared().read_key).send());
    for response in futures_util::future::join_all(requests).await {
        let response = response.expect("an answer");
        assert_eq!(response.version(), reqwest::Version::HTTP_2);
        assert_eq!(response.status(), 200);
    }
    let sql = client.post(format!("{}/api/v1/sql", host.url())).bearer_auth(&shared().full_key);
    let response = sql.json(&json!({"query": "SELECT 1 AS v"})).send().await.expect("an answer");
    assert_eq!(response.status(), 200);
}

async fn metrics_are_not_shown_at_the_edge(host: Host) {
    host.get("/metrics").send().await.refused(ErrorCode::RouteNotFound);
}
