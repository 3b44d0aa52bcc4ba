//! Tests of the gateway's decisions.

use super::*;
use crate::config::{AccessConfig, Config};
use crate::core::headers::without_port;
use crate::core::incoming_request::scheme_and_host;
use crate::core::{Form, OriginHead, RequestOutcome, RequestParts, judge};
use futures_util::FutureExt as _;
use shared::cors::CorsOrigins;
use shared::ident::ProjectName;
use shared::key::{Access, EdgeIssuers, KeyClaims, KeySet, SigningKey};
use shared::request_id::RequestId;
use std::time::Duration;

mod attempts;
mod heads;
mod users;

pub(in crate::core) const NOW: u64 = 1_790_000_000;

fn signer() -> SigningKey {
    SigningKey::from_seed("k1", &[7; 32])
}

fn key(access: Access) -> String {
    key_of("default", access)
}

pub(in crate::core) fn key_of(project: &str, access: Access) -> String {
    let id = "01936f2a-7b3c-7def-8abc-0123456789ab".parse().unwrap();
    let project = ProjectName::parse(project).unwrap();
    let claims = KeyClaims::new(id, &project, access, NOW - 10, Some(NOW + 10));
    signer().sign(&claims).unwrap()
}

fn gateway() -> Gateway {
    gateway_with(|_| {})
}

pub(in crate::core) fn gateway_with(change: impl FnOnce(&mut Config)) -> Gateway {
    let mut config = Config {
        origins: Vec::new(),
        origin_timeout: Duration::from_secs(1),
        origin_connect_timeout: Duration::from_secs(1),
        keys: KeySet::new(vec![signer().public()]).unwrap(),
        issuers: EdgeIssuers::default(),
        cors: CorsOrigins::any(),
        logs_requests: true,
        read_cache_max_seconds: 0,
        upload_max_bytes: 4_096,
        media_revalidate_seconds: 60,
        access: AccessConfig::default(),
    };
    change(&mut config);
    Gateway::new(config)
}

impl IncomingRequest {
    pub(in crate::core) fn of(head: RequestParts) -> Self {
        let mut request = Self::read(head, 0, || Ok::<_, ()>([0; 10])).unwrap();
        request.request_id = RequestId::from_incoming("r1").unwrap();
        request
    }

    pub(in crate::core) fn with(mut self, name: &str, value: &str) -> Self {
        self.head.headers = self.head.headers.iter().chain([(name, value)]).collect();
        self
    }

    pub(in crate::core) fn with_body(self, body: BodyLength) -> Self {
        Self { body, ..self }
    }
}

/// Returns a request with a key or token, without a body.
pub(in crate::core) fn call(method: &str, url: &str, key: Option<String>) -> IncomingRequest {
    let url = format!("https://api.test{url}");
    let request = IncomingRequest::of(RequestParts { method: method.to_owned(), url, ..RequestParts::default() });
    match key {
        Some(key) => request.with("authorization", &format!("Bearer {key}")),
        None => request,
    }
}

fn decide(gateway: &Gateway, call: &IncomingRequest, now: u64) -> Result<Decision, Problem> {
    decide_logged(gateway, call, now, &RequestLog::begin(call.method()))
}

/// Decides with a runtime that can't verify any user's token.
pub(in crate::core) fn decide_logged(
    gateway: &Gateway,
    call: &IncomingRequest,
    now: u64,
    log: &RequestLog,
) -> Result<Decision, Problem> {
    gateway.decide(call, now, log, async |_, _| None).now_or_never().unwrap()
}

fn code(call: &IncomingRequest) -> &'static str {
    decide(&gateway(), call, NOW).unwrap_err().code().as_str()
}

const POSTS: &str = "/api/v1/crud/demo/posts";

#[test]
fn what_is_plainly_wrong_never_reaches_the_origin() {
    let full = || Some(key(Access::Full));
    for (method, url, key, expected) in [
        ("GET", POSTS, None, "missing_key"),
        ("GET", POSTS, Some("x.y.z".to_owned()), "invalid_key"),
        ("POST", POSTS, Some(key(Access::Read)), "full_access_required"),
        ("GET", "/api/v1/crud/demo/posts?limmit=1", full(), "invalid_query_option"),
        ("PUT", "/api/v1/sql", full(), "method_not_allowed"),
        ("GET", "/metrics", full(), "route_not_found"),
        ("GET", "/", None, "route_not_found"),
        ("POST", "/healthz", None, "method_not_allowed"),
    ] {
        assert_eq!(code(&call(method, url, key)), expected, "{method} {url}");
    }
}

#[test]
fn a_full_key_is_refused_to_pages_whatever_they_ask_for() {
    for origin in ["https://a.example", "null", ""] {
        for (method, url) in [
            ("GET", POSTS),
            ("GET", "/media/default/private.jpg"),
            ("POST", "/api/v1/sql"),
            ("GET", "/api/v1/crud/demo/posts?limit=x"),
        ] {
            let page = |access| call(method, url, Some(key(access))).with("origin", origin);
            assert_eq!(code(&page(Access::Full)), "permission_denied", "{url}");
            let own = call(method, url, Some(key(Access::Full))).with("origin", "https://api.test");
            let is_denied =
                |page| decide(&gateway(), page, NOW).is_err_and(|fault| fault.code() == ErrorCode::PermissionDenied);
            assert!(!is_denied(&own), "{url}");
            let read = decide(&gateway(), &page(Access::Read), NOW);
            let denied = read.is_err_and(|problem| problem.code() == ErrorCode::PermissionDenied);
            assert!(!denied, "{url}");
        }
    }
}

#[test]
fn a_key_is_refused_once_its_lifetime_is_over_though_it_was_verified_before() {
    let gateway = gateway();
    let read = call("GET", POSTS, Some(key(Access::Read)));
    assert!(decide(&gateway, &read, NOW).is_ok());
    let refused = decide(&gateway, &read, NOW + 10).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ExpiredKey);
}

#[test]
fn a_preflight_needs_no_key_and_is_cached_a_day() {
    let asking = call("OPTIONS", POSTS, None).with("access-control-request-method", "DELETE");
    let preflight = asking.clone().with("origin", "https://app.example");
    let Ok(Decision::Answer(answer)) = decide(&gateway(), &preflight, NOW) else { panic!("not answered at the edge") };
    assert_eq!((answer.status, &*answer.body), (204, &b""[..]));
    assert!(answer.headers().any(|header| header == ("access-control-max-age", "86400")));
    assert_eq!(code(&asking), "missing_key");
}

#[test]
fn a_small_body_is_checked_a_large_one_is_streamed_and_a_huge_one_refused() {
    let mut insert = call("POST", POSTS, Some(key(Access::Full)));
    let mut plan = |body| {
        insert.body = body;
        decide(&gateway(), &insert, NOW)
    };
    let checked = |decision| matches!(decision, Ok(Decision::Forward(BodyPlan::Check(_))));
    let streamed = |decision| matches!(decision, Ok(Decision::Forward(BodyPlan::Stream)));
    assert!(checked(plan(BodyLength::Known(0))));
    assert!(checked(plan(BodyLength::Known(1024 * 1024))));
    assert!(streamed(plan(BodyLength::Known(1024 * 1024 + 1))));
    assert!(streamed(plan(BodyLength::Unknown)));
    let refused = plan(BodyLength::Known(u64::MAX)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BodyTooLarge);
}

#[test]
fn a_short_upload_of_json_is_checked_and_others_are_streamed() {
    let gateway = gateway_with(|config| config.upload_max_bytes = 2 * 1024 * 1024);
    let decide = |access, body, content_type| {
        let upload =
            call("POST", "/api/v1/media", Some(key(access))).with_body(body).with("content-type", content_type);
        decide(&gateway, &upload, NOW)
    };
    let (json, form) = ("application/json", "multipart/form-data; boundary=b");
    const SHORT: u64 = EDGE_CHECKED_BODY_MAX_BYTES as u64;
    for (body, content_type, is_checked) in [
        (BodyLength::Known(SHORT), json, true),
        (BodyLength::Known(SHORT + 1), json, false),
        (BodyLength::Unknown, json, false),
        (BodyLength::Known(SHORT), form, false),
    ] {
        match decide(Access::Full, body, content_type) {
            Ok(Decision::Forward(BodyPlan::Check(_))) => assert!(is_checked, "{body:?} {content_type}"),
            Ok(Decision::Forward(BodyPlan::Stream)) => assert!(!is_checked, "{body:?} {content_type}"),
            other => panic!("{other:?}"),
        }
    }
    let Ok(Decision::Forward(BodyPlan::Check(checked))) = decide(Access::Full, BodyLength::Known(9), json) else {
        panic!("not checked")
    };
    let code = |body: &str| checked.clone().check(Some(json), body.as_bytes()).map_err(|problem| problem.code());
    let file = r#"{"name":"a","base64":"data:text/plain;base64,aGk="}"#;
    assert_eq!(code(&format!(r#"{{"media":[{file}],"type":"file"}}"#)), Ok(()));
    assert_eq!(code(&format!(r#"{{"media":[{file}]}}"#)), Err(ErrorCode::InvalidBody));
    assert_eq!(code(&format!(r#"{{"media":[{file}"#)), Err(ErrorCode::InvalidJson));
    let refused = decide(Access::Full, BodyLength::Known(2 * 1024 * 1024 + 1), json).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BodyTooLarge);
    let refused = decide(Access::Read, BodyLength::Known(10), json).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::FullAccessRequired);
}

#[test]
fn a_checked_body_is_refused_for_the_reason_that_the_origin_would_give() {
    let insert = call("POST", POSTS, Some(key(Access::Full)));
    let Ok(Decision::Forward(BodyPlan::Check(checked))) = decide(&gateway(), &insert, NOW) else {
        panic!("not checked")
    };
    let check_body = |body: &[u8]| checked.clone().check(None, body);
    assert!(check_body(br#"{"title":"x"}"#).is_ok());
    assert_eq!(check_body(b"{").unwrap_err().code(), ErrorCode::InvalidJson);
    assert_eq!(check_body(b"[1]").unwrap_err().code(), ErrorCode::InvalidBody);
}

#[test]
fn a_batch_is_refused_by_the_operation_that_is_wrong() {
    let batch = |access| call("POST", "/api/v1/batch", Some(key(access)));
    assert_eq!(code(&batch(Access::Read)), "full_access_required");
    let Ok(Decision::Forward(BodyPlan::Check(checked))) = decide(&gateway(), &batch(Access::Full), NOW) else {
        panic!("not checked")
    };
    let check_body = |body: &[u8]| checked.clone().check(None, body);
    let good = br#"{"operations": [{"method": "GET", "path": "demo/posts/1"}]}"#;
    assert!(check_body(good).is_ok());
    let bad = br#"{"operations": [{"method": "GET", "path": "demo/posts/1"}, {"method": "GET", "path": "demo/posts?limit=x"}]}"#;
    let refused = check_body(bad).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidQueryOption);
    assert_eq!(refused.details().unwrap().operation, Some(1));
}

#[test]
fn files_are_asked_of_the_origin_with_and_without_a_key() {
    for key in [None, Some(key(Access::Read)), Some("x.y.z".to_owned())] {
        for method in ["GET", "HEAD"] {
            let file = call(method, "/media/default/a%20b/%C3%BC.png?v=1&x", key.clone());
            assert!(matches!(decide(&gateway(), &file, NOW), Ok(Decision::Forward(BodyPlan::Drop))));
        }
    }
    for (method, url, expected) in [
        ("POST", "/media/default/a", "method_not_allowed"),
        ("GET", "/media/default/../b", "media_not_found"),
        ("GET", "/media/default/a/%2e%2e/%2e%2e/b", "media_not_found"),
        ("GET", "/media/", "media_not_found"),
        ("GET", "/media", "route_not_found"),
    ] {
        assert_eq!(code(&call(method, url, None)), expected, "{method} {url}");
    }
}

#[test]
fn a_file_of_a_version_is_looked_for_in_the_cache_first() {
    let version = "0123456789abcdef0123456789abcdef";
    let of = |method, path: &str, query: &str| {
        let file = call(method, &format!("{path}?v={version}{query}"), None);
        decide(&gateway(), &file, NOW)
    };
    for method in ["GET", "HEAD"] {
        let decision = of(method, "/media/default/a.png", "");
        assert!(matches!(decision, Ok(Decision::Cached(Cacheable::File(_)))), "{method}");
    }
    let signed = of("GET", "/media/default/a.png", "&expires=1&signature=x");
    assert!(matches!(signed, Ok(Decision::Forward(BodyPlan::Drop))));
    let elsewhere = of("POST", "/media/default/a.png", "").unwrap_err();
    assert_eq!(elsewhere.code(), ErrorCode::MethodNotAllowed);
}

#[test]
fn a_file_may_be_of_any_type_but_nothing_else_may() {
    let sent = RequestId::from_incoming("r1").unwrap();
    let verdict = |status, content_type, request_id| {
        let head = OriginHead { status, content_type, request_id };
        let form = Form::at("/media/default/a.html");
        judge(&head, form, &sent).map_or_else(|problem| problem.code().as_str(), |()| "ok")
    };
    let (html, ours) = (Some("text/html"), Some("r1"));
    for (status, content_type, request_id, expected) in [
        (200, html, ours, "ok"),
        (206, html, ours, "ok"),
        (200, None, ours, "ok"),
        (304, None, ours, "ok"),
        (416, Some("application/json"), ours, "ok"),
        (200, html, None, "bad_origin_answer"),
        (404, html, ours, "bad_origin_answer"),
        (302, html, ours, "bad_origin_answer"),
    ] {
        assert_eq!(verdict(status, content_type, request_id), expected, "{status}");
    }
    assert_eq!(Form::at("/api/v1/media/1"), Form::Interface);
}

#[test]
fn what_is_told_of_an_upload_has_no_body() {
    let sent = RequestId::from_incoming("r1").unwrap();
    let verdict = |status, content_type| {
        let head = OriginHead { status, content_type, request_id: Some("r1") };
        let form = Form::at("/api/v1/media/tus/0192f3a1-7c1e-7d3a-9d55-0b6c6a1f0e11");
        judge(&head, form, &sent).map_or_else(|problem| problem.code().as_str(), |()| "ok")
    };
    let (html, json) = (Some("text/html"), Some("application/json"));
    for (status, content_type, expected) in [
        (201, None, "ok"),
        (200, None, "ok"),
        (204, None, "ok"),
        (409, json, "ok"),
        (201, html, "bad_origin_answer"),
        (200, html, "bad_origin_answer"),
        (404, html, "bad_origin_answer"),
    ] {
        assert_eq!(verdict(status, content_type), expected, "{status}");
    }
}

#[test]
fn the_origin_is_told_which_host_was_asked() {
    for (url, told) in [
        ("https://api.example/a?b", Some(("https", "api.example"))),
        ("http://127.0.0.1:8787/", Some(("http", "127.0.0.1:8787"))),
        ("http://[::1]:1", Some(("http", "[::1]:1"))),
        ("nonsense", None),
    ] {
        assert_eq!(scheme_and_host(url), told);
    }
}

#[test]
fn reads_and_readiness_are_forwarded_without_a_body() {
    for read in [call("GET", POSTS, Some(key(Access::Read))), call("GET", "/readyz", None)] {
        assert!(matches!(decide(&gateway(), &read, NOW), Ok(Decision::Forward(BodyPlan::Drop))));
    }
}

#[test]
fn the_path_and_query_are_forwarded_as_they_came() {
    for (url, target) in [
        ("http://edge.example/a%2Fb/c?x=%7B%7D&x=1", "http://o:1/a%2Fb/c?x=%7B%7D&x=1"),
        ("http://edge.example", "http://o:1/"),
        ("http://edge.example?q", "http://o:1/?q"),
        ("http://edge.example/a?", "http://o:1/a?"),
        ("http://edge.example/a?b?c/d", "http://o:1/a?b?c/d"),
    ] {
        let head = RequestParts { url: url.to_owned(), ..RequestParts::default() };
        assert_eq!(IncomingRequest::of(head).target("http://o:1"), target);
    }
}

#[test]
fn a_body_without_an_honest_length_counts_as_endless() {
    assert_eq!(BodyLength::announced(Some("12")), BodyLength::Known(12));
    for header in [None, Some(""), Some("-1"), Some("1e3"), Some("99999999999999999999")] {
        assert_eq!(BodyLength::announced(header), BodyLength::Unknown);
    }
}

#[test]
fn only_an_answer_of_selkies_own_is_passed_on() {
    let sent = RequestId::from_incoming("r1").unwrap();
    let verdict = |status, content_type, request_id| {
        let head = OriginHead { status, content_type, request_id };
        judge(&head, Form::Interface, &sent).map_or_else(|problem| problem.code().as_str(), |()| "ok")
    };
    let (json, html, ours) = (Some("application/json"), Some("text/html; charset=utf-8"), Some("r1"));
    for (status, content_type, request_id, expected) in [
        (200, json, ours, "ok"),
        (200, Some("Application/JSON; charset=utf-8"), ours, "ok"),
        (200, Some("text/csv"), ours, "ok"),
        (204, None, ours, "ok"),
        (304, None, ours, "ok"),
        (404, json, ours, "ok"),
        (503, json, ours, "ok"),
        (200, html, ours, "bad_origin_answer"),
        (200, json, None, "bad_origin_answer"),
        (200, json, Some("r2"), "bad_origin_answer"),
        (302, None, ours, "bad_origin_answer"),
        (400, Some("text/csv"), ours, "invalid_request"),
        (400, None, None, "invalid_request"),
        (400, json, Some("r2"), "invalid_request"),
        (403, html, None, "bad_origin_answer"),
        (413, html, None, "body_too_large"),
        (414, html, None, "uri_too_long"),
        (431, None, None, "headers_too_large"),
        (502, html, None, "bad_origin_answer"),
        (520, html, None, "bad_origin_answer"),
        (521, html, None, "origin_unreachable"),
        (530, html, None, "origin_unreachable"),
        (524, html, None, "origin_timeout"),
    ] {
        assert_eq!(verdict(status, content_type, request_id), expected, "{status} {content_type:?}");
    }
}

#[test]
fn a_log_line_names_the_key_and_the_route_and_nothing_that_the_caller_chose() {
    let gateway = gateway();
    let line = |call: &IncomingRequest, status, origin_ms| {
        let record = RequestLog::begin(call.method());
        if let Err(problem) = decide_logged(&gateway, call, NOW, &record) {
            record.refused(&problem);
        }
        let outcome = RequestOutcome { status, total_ms: 12.7, origin_ms };
        outcome.line(call, &record, 0)
    };
    let path = "/api/v1/crud/shop/secrets/7?selectFields=secret";
    let read = line(&call("GET", path, Some(key(Access::Read))), 200, Some(9.2));
    assert_eq!(
        read,
        r#"{"message":"request","id":"r1","method":"GET","route":"/api/v1/crud/{db}/{table}/{id}","status":200,"key":"01936f2a-7b3c-7def-8abc-0123456789ab","project":"default","upstream_ms":9,"total_ms":12}"#
    );
    let refused = line(&call("DELETE", path, Some(key(Access::Read))), 400, None);
    assert!(refused.contains(r#""code":"invalid_query_option","#), "{refused}");
    let stranger = line(&call("BREW", path, None), 405, None);
    assert_eq!(
        stranger,
        r#"{"message":"request","id":"r1","method":"OTHER","route":"none","status":405,"code":"method_not_allowed","total_ms":12}"#
    );
}
