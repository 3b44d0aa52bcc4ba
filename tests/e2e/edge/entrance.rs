//! Access, rate limits and forwarded headers: at the edge, and at an origin with `require_edge` and `trusted_networks`.

use super::recording_proxy::RecordingProxy;
use crate::host::{Answer, Call, Host};
use crate::ledger;
use crate::second_origin::SecondOrigin;
use crate::service::shared;
use crate::worker::Worker;
use reqwest::Method;
use serde_json::Value;
use shared::error::ErrorCode;

cases! {
    Both: [preflights_allow_what_the_interface_reads_and_nothing_of_private_networks],
    Own: [
        an_origin_counts_the_requests_of_each_key,
        the_edge_holds_keys_to_a_limit_and_refuses_as_the_origin_does,
        without_a_working_binding_the_edge_limits_nobody,
        full_keys_work_in_pages_only_where_that_is_wanted,
        an_origin_behind_its_edge_answers_nobody_else,
        an_origin_believes_proxies_that_it_was_told_of,
        a_callers_own_word_for_his_address_is_not_passed_on,
        the_edges_secret_is_never_told,
    ],
    Edge: [full_keys_are_refused_to_pages],
}

const RECORD: &str = "/api/v1/crud/demo/posts/1";
const PAGE: &str = "https://shop.example";

fn get(base: &str, key: &str) -> Call {
    Call::new(base, Method::GET, RECORD).key(key)
}

/// Starts a second origin with these settings.
async fn origin(settings: &'static [(&'static str, &'static str)]) -> SecondOrigin {
    let start = move || {
        let mut second = SecondOrigin::launch(shared(), settings)?;
        second.wait_until_ready()?;
        Ok::<_, String>(second)
    };
    let started = tokio::task::spawn_blocking(start).await.unwrap();
    started.expect("a second origin")
}

fn edge_secret() -> String {
    shared().cli_ok(&["edge", "secret"]).trim().to_owned()
}

async fn preflights_allow_what_the_interface_reads_and_nothing_of_private_networks(host: Host) {
    let answer = Call::new(host.url(), Method::OPTIONS, RECORD)
        .header("origin", PAGE)
        .header("access-control-request-method", "PATCH")
        .header("access-control-request-private-network", "true")
        .send()
        .await;
    assert_eq!(answer.status, 204, "{answer}");
    assert_eq!(answer.header("access-control-max-age"), Some("86400"));
    let private = answer.header("access-control-allow-private-network");
    assert_eq!(private, None);
    let listed = |answer: &Answer, name: &str| -> Vec<String> {
        let list = answer.header(name).unwrap_or_default().to_lowercase();
        list.split(',').map(|item| item.trim().to_owned()).collect()
    };
    let allowed = listed(&answer, "access-control-allow-headers");
    for name in [
        "authorization",
        "cache-control",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "prefer",
        "range",
        "traceparent",
        "tus-resumable",
        "upload-length",
        "upload-metadata",
        "upload-offset",
        "x-request-id",
    ] {
        assert!(allowed.iter().any(|listed| listed == name), "{name}: {allowed:?}");
    }
    let refused = Call::new(host.url(), Method::GET, RECORD);
    let refused = refused.header("origin", PAGE).send().await;
    let exposed = listed(&refused, "access-control-expose-headers");
    for name in [
        "age",
        "content-range",
        "etag",
        "location",
        "ratelimit",
        "ratelimit-policy",
        "retry-after",
        "server-timing",
        "upload-offset",
        "www-authenticate",
        "x-request-id",
    ] {
        assert!(exposed.iter().any(|listed| listed == name), "{name}: {exposed:?}");
    }
}

async fn an_origin_counts_the_requests_of_each_key(_: Host) {
    let limited = origin(&[("SELKIE_RATE_LIMIT", "5/1h")]).await;
    let url = &limited.origin;
    let (read, full) = (&shared().read_key, &shared().full_key);
    // Requests without a key are not counted.
    for _ in 0..10 {
        let nobody = Call::new(url, Method::GET, RECORD).send().await;
        nobody.refused(ErrorCode::MissingKey);
        assert_eq!(nobody.header("ratelimit"), None);
    }
    for left in [4, 3] {
        let answer = get(url, read).send().await;
        answer.payload();
        assert_eq!(answer.header("ratelimit-policy"), Some("\"key\";q=5;w=3600"));
        let state = answer.header("ratelimit").unwrap_or_default();
        assert!(state.starts_with(&format!("\"key\";r={left};t=")), "{state}");
    }
    // Requests that are refused for another reason count too, and so does a request for a private file.
    let odd = Call::new(url, Method::GET, "/api/v1/crud/demo/posts?limit=x").key(read);
    let odd = odd.send().await;
    odd.refused(ErrorCode::InvalidQueryOption);
    assert!(odd.header("ratelimit").is_some_and(|state| state.contains("r=2;")), "{odd}");
    let file = || Call::new(url, Method::GET, "/media/default/nothing.txt").key(read);
    file().send().await.refused(ErrorCode::MediaNotFound);
    get(url, read).send().await.payload();
    for call in [get(url, read), file()] {
        let refused = call.send().await;
        assert_eq!(refused.refused(ErrorCode::RateLimited)["retryable"], true);
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=720).contains(&wait), "{refused}");
        let state = format!("\"key\";r=0;t={wait}");
        assert_eq!(refused.header("ratelimit"), Some(state.as_str()));
    }
    get(url, full).send().await.payload();
    let metrics = Call::new(url, Method::GET, "/metrics").send().await.text();
    assert!(metrics.contains("selkie_rate_limited_total 2\n"), "{metrics}");
    // Requests through the edge don't count towards the limit of another origin.
    get(&shared().origin, read).send().await.payload();
}

/// Returns the error and the headers of a rate-limit refusal without digits, so that two refusals
/// can be compared.
fn form(answer: &Answer) -> (Value, Vec<(String, String)>) {
    let bare = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let mut error = answer.refused(ErrorCode::RateLimited);
    error["requestId"] = Value::Null;
    error["message"] = bare(error["message"].as_str().unwrap()).into();
    let headers = ["retry-after", "ratelimit", "ratelimit-policy", "content-type", "cache-control"];
    let headers = headers.map(|name| {
        let value = answer.header(name).unwrap_or("none");
        (name.to_owned(), bare(value))
    });
    (error, headers.into())
}

async fn the_edge_holds_keys_to_a_limit_and_refuses_as_the_origin_does(_: Host) {
    let limited = origin(&[("SELKIE_RATE_LIMIT", "1/1m")]).await;
    let config = "tests/e2e/edge/limited.capnp";
    let tap = RecordingProxy::before(&shared().origin).await;
    let worker = Worker::serve(config, &[("ORIGINS", &tap.url)]);
    let (read, full) = (&shared().read_key, &shared().full_key);
    // Miniflare's rate limiter counts by minutes of the clock, and one may end during the test.
    let mut answers = Vec::new();
    for _ in 0..12 {
        answers.push(get(&worker.url, read).send().await);
    }
    let passed = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(passed == 5 || passed == 10, "{passed} passed");
    assert_eq!(tap.requests().len(), passed, "what is refused is not forwarded");
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    assert_eq!(refused.header("retry-after"), Some("60"));
    assert_eq!(refused.header("ratelimit"), Some("\"key\";r=0;t=60"));
    assert_eq!(refused.header("ratelimit-policy"), Some("\"key\";q=5;w=60"));
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    get(&worker.url, full).send().await.payload();
    get(&limited.origin, read).send().await.payload();
    let direct = get(&limited.origin, read).send().await;
    let told = |answer: &Answer| {
        let (mut error, headers) = form(answer);
        error["message"] = error["message"].as_str().unwrap().replace("requests", "request").into();
        (error, headers)
    };
    assert_eq!(told(&direct), told(refused));
}

async fn without_a_working_binding_the_edge_limits_nobody(_: Host) {
    let read = &shared().read_key;
    let without = Worker::start(&[("ORIGINS", &shared().origin), ("RATE_LIMIT", "1/1m")]);
    let config = "tests/e2e/edge/failing.capnp";
    let failing = Worker::serve(config, &[("ORIGINS", &shared().origin)]);
    for worker in [&without, &failing] {
        for _ in 0..3 {
            get(&worker.url, read).send().await.payload();
        }
    }
    assert!(failing.log().contains("The rate limit could not be asked."));
}

async fn full_keys_are_refused_to_pages(host: Host) {
    for call in [
        host.get(RECORD),
        host.get("/media/default/nothing.txt"),
        host.sql(&serde_json::json!({"query": "SELECT 1"})),
        host.call(Method::DELETE, RECORD),
    ] {
        let refused = call.header("origin", PAGE).send().await;
        let error = refused.refused(ErrorCode::PermissionDenied);
        let hint = error["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("ALLOW_FULL_KEYS_FROM_BROWSERS"), "{refused}");
        assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    }
    let read = get(host.url(), &shared().read_key).header("origin", PAGE);
    read.send().await.payload();
    // A direct request to this origin is accepted even if it has an `Origin` header: no edge calls it a browser's.
    let direct = get(&shared().origin, &shared().full_key).header("origin", PAGE);
    direct.send().await.payload();
}

async fn full_keys_work_in_pages_only_where_that_is_wanted(_: Host) {
    let variables = [("ORIGINS", shared().origin.as_str()), ("ALLOW_FULL_KEYS_FROM_BROWSERS", "true")];
    let worker = Worker::start(&variables);
    let page = get(&worker.url, &shared().full_key).header("origin", PAGE);
    page.send().await.payload();
}

async fn an_origin_behind_its_edge_answers_nobody_else(_: Host) {
    let guarded = origin(&[("SELKIE_REQUIRE_EDGE", "on")]).await;
    let key = &shared().full_key;
    let secret = edge_secret();
    assert_eq!(secret.len(), 43);
    for path in [RECORD, "/readyz", "/metrics", "/media/default/a.txt", "/nowhere"] {
        let direct = Call::new(&guarded.origin, Method::GET, path).key(key).send().await;
        let error = direct.refused(ErrorCode::PermissionDenied);
        assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("trusted_networks")));
        assert_eq!(direct.header("ratelimit"), None);
    }
    let alive = Call::new(&guarded.origin, Method::GET, "/healthz").send().await;
    alive.payload();
    let large = Call::new(&guarded.origin, Method::POST, "/api/v1/sql").key(key);
    let large = large.bytes(vec![b' '; 1 << 20]).send().await;
    large.refused(ErrorCode::PermissionDenied);
    let knows = Worker::start(&[("ORIGINS", &guarded.origin), ("EDGE_SECRET", &secret)]);
    get(&knows.url, key).send().await.payload();
    let ready = Call::new(&knows.url, Method::GET, "/readyz").send().await;
    ready.payload();
    // An edge without the secret doesn't forward the header of a client that has it.
    let other = "A".repeat(43);
    for variables in
        [&[("ORIGINS", guarded.origin.as_str())][..], &[("ORIGINS", &guarded.origin), ("EDGE_SECRET", &other)]]
    {
        let worker = Worker::start(variables);
        let call = get(&worker.url, key).header("x-selkie-edge", &secret);
        call.send().await.refused(ErrorCode::PermissionDenied);
    }
    let trusting =
        origin(&[("SELKIE_REQUIRE_EDGE", "on"), ("SELKIE_TRUSTED_NETWORKS", "10.0.0.0/8, 127.0.0.0/8")]).await;
    get(&trusting.origin, key).send().await.payload();
}

/// Returns the host in the URL of a newly signed link.
async fn url_host(base: &str, id: &Value, secret: Option<&str>) -> String {
    let path = format!("/api/v1/media/{id}");
    let mut call = Call::new(base, Method::GET, &path)
        .key(&shared().full_key)
        .header("x-forwarded-host", "told.example")
        .header("x-forwarded-proto", "https");
    if let Some(secret) = secret {
        call = call.header("x-selkie-edge", secret);
    }
    let file = call.send().await.payload();
    let url = file["url"].as_str().unwrap().to_owned();
    url.split('/').take(3).collect::<Vec<_>>().join("/")
}

async fn an_origin_believes_proxies_that_it_was_told_of(_: Host) {
    let name = crate::test_db::unique("told");
    let upload = serde_json::json!({
        "media": [{"name": format!("{name}.txt"), "base64": "data:text/plain;base64,eA=="}],
        "type": "file",
    });
    let stored = Host::Origin.post("/api/v1/media", &upload).send().await.payload();
    let id = &stored[0]["id"];
    let told = "https://told.example";
    assert_eq!(url_host(&shared().origin, id, None).await, told);
    let strict = origin(&[("SELKIE_TRUSTED_NETWORKS", "192.0.2.0/24")]).await;
    assert_eq!(url_host(&strict.origin, id, None).await, strict.origin);
    let secret = edge_secret();
    assert_eq!(url_host(&strict.origin, id, Some(&secret)).await, told);
    let trusting = origin(&[("SELKIE_TRUSTED_NETWORKS", "127.0.0.1")]).await;
    assert_eq!(url_host(&trusting.origin, id, None).await, told);
}

async fn a_callers_own_word_for_his_address_is_not_passed_on(_: Host) {
    let tap = RecordingProxy::before(&shared().origin).await;
    let forged = |worker: &Worker| {
        let mut call = get(&worker.url, &shared().read_key).header("x-selkie-edge", "forged");
        for name in ["cf-connecting-ip", "x-forwarded-for", "x-real-ip", "true-client-ip", "forwarded"] {
            call = call.header(name, "192.0.2.1");
        }
        call
    };
    let deaf = Worker::start(&[("ORIGINS", &tap.url)]);
    forged(&deaf).send().await.payload();
    let passed = tap.requests().pop().expect("a request");
    assert!(passed.headers.iter().all(|(_, value)| !value.contains("192.0.2.1") && value != "forged"), "{passed:?}");
    assert_eq!(passed.header("x-selkie-edge"), None);
    let told = Worker::start(&[("ORIGINS", &tap.url), ("CLIENT_ADDRESS_HEADER", "X-Real-IP")]);
    forged(&told).send().await.payload();
    let passed = tap.requests().pop().expect("a request");
    assert_eq!(passed.header("x-forwarded-for"), Some("192.0.2.1"));
    let rest = passed.headers.iter().filter(|(name, _)| name != "x-forwarded-for");
    assert!(rest.clone().all(|(_, value)| value != "192.0.2.1"), "{passed:?}");
}

/// The shared service's logs are searched for the secret after all cases.
async fn the_edges_secret_is_never_told(_: Host) {
    let secret = edge_secret();
    ledger::keep_secret(&secret);
    let variables = [("ORIGINS", shared().origin.as_str()), ("EDGE_SECRET", &secret), ("RATE_LIMIT", "5/1m")];
    let worker = Worker::start(&variables);
    let read = &shared().read_key;
    for base in [&worker.url, &shared().origin] {
        let call = |path: &str| Call::new(base, Method::GET, path);
        for call in [
            call(RECORD).key(read),
            call(RECORD).key(&secret),
            call("/api/v1/crud/demo/nope").key(read),
            call("/api/v1/crud/demo/posts?limit=x").key(read),
            call("/nowhere"),
            call("/healthz"),
        ] {
            let call = call
                .header("x-selkie-edge", &secret)
                .header("cookie", &secret)
                .header("proxy-authorization", &secret)
                .header("user-agent", &secret);
            let answer = call.send().await;
            let headers = format!("{:?}", answer.headers);
            assert!(!headers.contains(&secret), "{answer}");
            assert!(!answer.text().contains(&secret), "{answer}");
        }
    }
    // One worker whose origin can't be reached, and one whose origin sends wrong answers.
    let log = worker.log();
    let gone = [("ORIGINS", "http://127.0.0.1:9"), ("EDGE_SECRET", secret.as_str())];
    let lost = Worker::start(&gone);
    let answer = get(&lost.url, read).send().await;
    answer.refused(ErrorCode::OriginUnreachable);
    assert!(!shared().log().contains(&secret));
    for log in [log, lost.log()] {
        assert!(!log.contains(&secret[1..]) && !log.contains(read.as_str()), "{log}");
    }
    let config = shared().cli_ok(&["config"]);
    assert!(!config.contains(&secret));
}
