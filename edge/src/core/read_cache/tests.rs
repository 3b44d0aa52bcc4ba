//! What is kept, for whom and how long, without a cache.

use super::*;
use crate::core::gateway::tests::{NOW, call, gateway_with, key_of};
use crate::core::{BodyLength, Decision, Gateway, RequestLog};
use shared::error::ErrorCode;
use shared::key::Access::{Full, Read};

const POSTS: &str = "/api/v1/crud/demo/posts";

fn wish(header: &str) -> Option<(u32, u32)> {
    AcceptedAge::read(header, 60).map(|age| (age.fresh_seconds, age.stale_seconds))
}

#[test]
fn a_wish_is_read_from_cache_control() {
    for (header, expected) in [
        ("max-age=5", Some((5, 0))),
        ("Max-Age = \"5\"", Some((5, 0))),
        ("max-age=5, stale-while-revalidate=10", Some((5, 10))),
        ("stale-while-revalidate=10,max-age=5", Some((5, 10))),
        ("max-age=5, max-stale=100, x", Some((5, 0))),
        ("max-age=5, max-age=3", Some((3, 0))),
        ("max-age=100", Some((60, 0))),
        ("max-age=40, stale-while-revalidate=40", Some((40, 20))),
        ("max-age=99999999999999999999", Some((60, 0))),
        ("max-age=0", None),
        ("max-age=5, max-age=0", None),
        ("no-cache", None),
        ("max-age=5, no-cache", None),
        ("no-store, max-age=5", None),
        ("max-age=-1", None),
        ("max-age=1.5", None),
        ("max-age=", None),
        ("max-age", None),
        ("max-age=5, stale-while-revalidate=x", None),
        ("stale-while-revalidate=5", None),
        ("", None),
    ] {
        assert_eq!(wish(header), expected, "{header}");
    }
}

#[test]
fn an_answer_is_fresh_then_good_enough_then_too_old() {
    let wish = AcceptedAge::read("max-age=5, stale-while-revalidate=10", 60).unwrap();
    for (age_ms, expected) in [
        (0, Freshness::Fresh),
        (5_000, Freshness::Fresh),
        (5_001, Freshness::Stale),
        (15_000, Freshness::Stale),
        (15_001, Freshness::Expired),
    ] {
        assert_eq!(wish.judge(age_ms), expected, "{age_ms}");
    }
    let kept = |wish: AcceptedAge| wish.headers(7_900).map(|(_, value)| value);
    assert_eq!(
        kept(wish),
        ["7", "private, max-age=5, stale-while-revalidate=10", "Accept, Authorization, Cache-Control"]
    );
    let plain = AcceptedAge::read("max-age=5", 60).unwrap();
    assert_eq!(plain.judge(5_001), Freshness::Expired);
    assert_eq!(kept(plain)[1], "private, max-age=5");
}

#[test]
fn an_age_is_never_negative_and_never_guessed() {
    assert_eq!(age_ms(Some("1000"), 3500), Some(2500));
    assert_eq!(age_ms(Some("4000"), 3500), Some(0));
    assert_eq!(age_ms(Some("x"), 3500), None);
    assert_eq!(age_ms(None, 3500), None);
}

#[test]
fn only_whole_and_short_successes_are_kept() {
    assert!(is_kept(200, Some(0), None));
    assert!(is_kept(200, Some(CACHED_MAX_BYTES), None));
    assert!(!is_kept(200, Some(CACHED_MAX_BYTES + 1), None));
    assert!(!is_kept(200, None, None));
    assert!(!is_kept(200, Some(10), Some("gzip")));
    for status in [204, 206, 304, 400, 404, 503] {
        assert!(!is_kept(status, Some(10), None), "{status}");
    }
}

fn gateway() -> Gateway {
    gateway_with(|config| config.read_cache_max_seconds = 60)
}

fn wishing(method: &str, url: &str, key: Option<String>) -> IncomingRequest {
    IncomingRequest { cache_control: Some("max-age=5".to_owned()), ..call(method, url, key) }
}

fn read_key(project: &str) -> Option<String> {
    Some(key_of(project, Read))
}

fn decide(gateway: &Gateway, call: &IncomingRequest) -> Decision {
    let mut record = RequestLog::begin(&call.method);
    gateway.decide(call, NOW, &mut record).unwrap()
}

/// What is looked for, if the cache may answer.
fn lookup(gateway: &Gateway, call: &IncomingRequest, body: &str) -> Option<Lookup> {
    match decide(gateway, call) {
        Decision::Read(question) => question.finish(body.as_bytes()).unwrap(),
        Decision::Forward(_) | Decision::File(_) => None,
        other @ Decision::Answer(_) => panic!("{other:?}"),
    }
}

fn query(body: &str) -> IncomingRequest {
    IncomingRequest {
        body: BodyLength::Known(body.len() as u64),
        ..wishing("POST", &format!("{POSTS}/query"), read_key("default"))
    }
}

#[test]
fn only_reads_of_records_with_a_read_key_are_kept_and_only_if_asked() {
    let gateway = gateway();
    let read = || read_key("default");
    let is_kept = |call: &IncomingRequest| lookup(&gateway, call, "{}").is_some();
    assert!(is_kept(&wishing("GET", POSTS, read())));
    assert!(is_kept(&wishing("GET", &format!("{POSTS}/1"), read())));
    assert!(is_kept(&query("{}")));
    for call in [
        call("GET", POSTS, read()),
        wishing("GET", POSTS, Some(key_of("default", Full))),
        wishing("HEAD", POSTS, read()),
        wishing("OPTIONS", POSTS, read()),
        wishing("GET", &format!("{POSTS}/_schema"), read()),
        wishing("GET", "/api/v1/media", read()),
        wishing("GET", "/media/default/a.png", None),
        wishing("GET", "/readyz", None),
        wishing("POST", POSTS, Some(key_of("default", Full))),
        wishing("POST", "/api/v1/sql", Some(key_of("default", Full))),
        wishing("POST", "/api/v1/batch", Some(key_of("default", Full))),
        IncomingRequest { body: BodyLength::Unknown, ..query("{}") },
    ] {
        assert!(!is_kept(&call), "{} {}", call.method, call.path);
    }
    let explain = r#"{"explain": true}"#;
    let Decision::Read(question) = decide(&gateway, &query(explain)) else {
        panic!("a read that may be kept");
    };
    let refused = question.finish(explain.as_bytes()).err();
    let code = refused.map(|problem| problem.code());
    assert_eq!(code, Some(ErrorCode::FullAccessRequired));
}

#[test]
fn nothing_is_kept_unless_the_configuration_allows_it() {
    let gateway = gateway_with(|_| {});
    assert!(gateway.reads.is_none());
    let decision = decide(&gateway, &wishing("GET", POSTS, read_key("default")));
    assert!(matches!(decision, Decision::Forward(_)));
}

#[test]
fn what_is_kept_is_named_by_project_installation_and_meaning() {
    let gateway = gateway();
    let key = |call: &IncomingRequest, body| lookup(&gateway, call, body).unwrap().key;
    let get = |url: &str, project| key(&wishing("GET", url, read_key(project)), "");
    let limited = get(&format!("{POSTS}?limit=1&distinct=false"), "default");
    assert_eq!(limited, get(&format!("{POSTS}?limit=1"), "default"));
    let body = r#"{"limit": 1}"#;
    assert_eq!(limited, key(&query(body), body));
    assert_ne!(limited, get(&format!("{POSTS}?limit=1"), "other"));
    assert_ne!(limited, get(&format!("{POSTS}?limit=2"), "default"));
    let csv = IncomingRequest {
        accept: Some("text/csv".to_owned()),
        ..wishing("GET", &format!("{POSTS}?limit=1"), read_key("default"))
    };
    assert_ne!(limited, key(&csv, ""));
    let call = wishing("GET", &format!("{POSTS}?limit=1"), read_key("default"));
    let Decision::Read(mut question) = decide(&gateway, &call) else {
        panic!("not kept");
    };
    question.cache =
        Rc::new(ReadCache { installation: Fingerprint::of("another"), ..ReadCache::new(gateway.config()).unwrap() });
    let elsewhere = question.finish(b"").unwrap().unwrap();
    assert_ne!(limited, elsewhere.key);
}

#[test]
fn a_key_is_given_kept_answers_while_the_origin_took_it_lately() {
    let cache = ReadCache::new(gateway().config()).unwrap();
    let key_id = Uuid::from_u128(1);
    let accepted = |now_ms| cache.is_accepted(key_id, now_ms);
    assert!(!accepted(0));
    cache.learn(key_id, 404, 0);
    cache.learn(key_id, 503, 0);
    assert!(!accepted(0));
    cache.learn(key_id, 200, 0);
    assert!(accepted(59_999) && !accepted(60_000));
    cache.learn(key_id, 401, 10);
    assert!(!accepted(20));
}

#[test]
fn a_key_that_the_origin_refused_elsewhere_is_given_nothing_that_is_kept() {
    let gateway = gateway();
    let reads = gateway.reads.as_ref().unwrap();
    let key_id = Uuid::from_u128(1);
    reads.learn(key_id, 200, 0);
    assert!(reads.is_accepted(key_id, 10));
    gateway.revoked(key_id, 20);
    assert!(!reads.is_accepted(key_id, 30));
}
