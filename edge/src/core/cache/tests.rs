//! Tests which reads are cached, for whom and how long.

mod files;

use super::*;
use crate::core::gateway::tests::{NOW, call, decide_logged, gateway_with, key_of};
use crate::core::{BodyLength, Decision, Gateway, IncomingRequest, RequestLog, RequestParts};
use entry::{FILE_REQUEST_HEADERS, HELD_MAX_BYTES, STREAMED_MAX_BYTES};
use shared::error::ErrorCode;
use shared::key::Access::{Full, Read};

const POSTS: &str = "/api/v1/crud/demo/posts";

fn read_age(header: &str) -> Option<(u32, u32)> {
    AcceptedAge::parse(header, 60).map(|age| (age.fresh_seconds, age.stale_seconds))
}

#[test]
fn an_accepted_age_is_read_from_cache_control() {
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
        assert_eq!(read_age(header), expected, "{header}");
    }
}

#[test]
fn an_answer_is_fresh_then_good_enough_then_too_old() {
    let accepted_age = AcceptedAge::parse("max-age=5, stale-while-revalidate=10", 60).unwrap();
    for (age_ms, expected) in [
        (0, Freshness::Fresh),
        (5_000, Freshness::Fresh),
        (5_001, Freshness::Stale),
        (15_000, Freshness::Stale),
        (15_001, Freshness::Expired),
    ] {
        assert_eq!(accepted_age.judge(age_ms), expected, "{age_ms}");
    }
    let values = |accepted_age: AcceptedAge| accepted_age.headers().map(|(_, value)| value);
    assert_eq!(
        values(accepted_age),
        ["private, max-age=5, stale-while-revalidate=10", "Accept, Authorization, Cache-Control, X-Selkie-After"]
    );
    let plain = AcceptedAge::parse("max-age=5", 60).unwrap();
    assert_eq!(plain.judge(5_001), Freshness::Expired);
    assert_eq!(values(plain)[0], "private, max-age=5");
}

fn posts() -> (Gateway, Lookup) {
    let gateway = gateway();
    let lookup = lookup(&gateway, &accepting("GET", POSTS, read_key("default")), "").unwrap();
    (gateway, lookup)
}

fn headers(text: &str) -> Headers {
    Headers::parse(text.to_owned())
}

#[test]
fn an_age_is_never_negative_and_never_guessed() {
    let (gateway, lookup) = posts();
    let judge = |entry: &str, now_ms| gateway.cache().judge(&lookup, &headers(entry), None, now_ms);
    assert_eq!(judge("selkie-asked-at,1000", 3_500), Some((2_500, Freshness::Fresh)));
    assert_eq!(judge("selkie-asked-at,4000", 3_500), Some((0, Freshness::Fresh)));
    assert_eq!(judge("selkie-asked-at,1000", 6_001), None);
    assert_eq!(judge("selkie-asked-at,x", 3_500), None);
    assert_eq!(judge("age,1", 3_500), None);
}

#[test]
fn only_whole_and_short_successes_are_stored() {
    let (_, lookup) = posts();
    let outcome = |status, text: &str| lookup.outcome(status, &headers(text));
    assert_eq!(outcome(200, "content-length,0"), FetchOutcome::Held);
    assert_eq!(outcome(200, &format!("content-length,{HELD_MAX_BYTES}")), FetchOutcome::Held);
    assert_eq!(outcome(200, &format!("content-length,{}", HELD_MAX_BYTES + 1)), FetchOutcome::NotStored);
    assert_eq!(outcome(200, ""), FetchOutcome::NotStored);
    assert_eq!(outcome(200, "content-length,10\ncontent-encoding,gzip"), FetchOutcome::NotStored);
    for (status, expected) in [
        (204, FetchOutcome::NotStored),
        (206, FetchOutcome::NotStored),
        (304, FetchOutcome::Confirmed),
        (400, FetchOutcome::NotStored),
        (404, FetchOutcome::NotStored),
        (503, FetchOutcome::Unanswered),
    ] {
        let text = "content-length,10\ncontent-range,bytes 0-1/10";
        assert_eq!(outcome(status, text), expected, "{status}");
    }
}

#[test]
fn an_entry_of_a_read_is_served_as_its_caller_accepts_it() {
    let (_, lookup) = posts();
    let answer = headers(
        "content-length,2\ncontent-type,text/csv\netag,\"t\"\nx-selkie-limited,true\ncache-control,no-store\nx-request-id,r1",
    );
    let stored = lookup.entry(&answer, 7);
    let stored: Vec<_> = stored.headers().collect();
    let expected = [
        ("content-length", "2"),
        ("content-type", "text/csv"),
        ("etag", "\"t\""),
        ("x-selkie-limited", "true"),
        (ASKED_AT, "7"),
        ("cache-control", "max-age=60"),
    ];
    assert_eq!(stored, expected);
    let entry: Headers = stored.into_iter().collect();
    let serve = |entry: &Headers, request: &str| {
        let head = RequestParts { method: "GET".to_owned(), headers: headers(request), ..RequestParts::default() };
        let served = lookup.serve(entry, &IncomingRequest::of(head), Some(3_900)).unwrap().unwrap();
        (served.head.status, served.body, served.head)
    };
    let (status, body, head) = serve(&entry, "range,bytes=0-0\nif-match,\"x\"\nif-none-match,\"x\"");
    assert_eq!((status, body), (200, ServedBody::Whole));
    assert_eq!((head.header("age"), head.header("etag")), (Some("3"), Some("\"t\"")));
    assert_eq!(head.header("cache-control"), Some("private, max-age=5"));
    assert_eq!((head.header(ASKED_AT), head.header("x-content-type-options")), (None, Some("nosniff")));
    let (status, body, head) = serve(&entry, "if-none-match,W/\"t\"");
    assert_eq!((status, body), (304, ServedBody::None));
    assert_eq!((head.header("content-length"), head.header("vary").is_some()), (None, true));
    // An entry that is being stored has no age.
    let stored = lookup.serve(&entry, &accepting("GET", POSTS, None), None);
    assert_eq!(stored.unwrap().unwrap().head.header("age"), Some("0"));
    // Lists have no entity tag.
    assert_eq!(serve(&headers("content-length,2"), "if-none-match,*").0, 200);
}

/// Each letter is what one lookup comes to: `l`ead, `w`ait, `a`gain, or forwarded alone (`-`).
#[test]
fn a_request_looks_up_three_times_at_most_waits_once_and_confirms_what_expired() {
    let read = || accepting("GET", POSTS, read_key("default"));
    // What others do: they lead all the time, or store the entry after each lookup, or nothing.
    for (request, is_expired, others, expected) in [
        (read(), false, "nothing", "l"),
        (read(), false, "lead", "w-"),
        (read(), false, "store", "aaa-"),
        (read(), true, "nothing", "l"),
        (read(), true, "lead", "www-"),
        (read(), true, "store", "aaa-"),
    ] {
        let gateway = gateway();
        let (cache, lookup) = (gateway.cache(), lookup(&gateway, &request, "").unwrap());
        let mut visit = Visit::new(cache, &lookup, &request);
        let join = || match cache.join(&lookup, cache.moment(), 0) {
            Flight::Lead(lead) => lead,
            other => panic!("{other:?}"),
        };
        let leads = (others == "lead").then(join);
        let mut done = String::new();
        while !done.ends_with(['l', '-']) {
            done.push(match visit.look_up() {
                None => '-',
                Some(looked) => {
                    if others == "store" {
                        join().stored();
                    }
                    match visit.missed(looked, is_expired, 0) {
                        Flight::Lead(_) => 'l',
                        Flight::Wait => 'w',
                        Flight::LookAgain => 'a',
                        Flight::Alone => '-',
                    }
                }
            });
        }
        drop(leads);
        assert_eq!(done, expected, "{is_expired} {others}");
    }
}

#[test]
fn an_answer_for_one_request_alone_is_asked_for_alone_unless_it_confirms_the_entry() {
    let gateway = gateway();
    let url = format!("/media/default/a.png?v={}", "0".repeat(32));
    for (method, is_expired, leads) in [("GET", false, true), ("HEAD", false, false), ("HEAD", true, true)] {
        let request = call(method, &url, None);
        let lookup = lookup(&gateway, &request, "").unwrap();
        let mut visit = Visit::new(gateway.cache(), &lookup, &request);
        let looked = visit.look_up().unwrap();
        let flight = visit.missed(looked, is_expired, 0);
        assert_eq!(matches!(flight, Flight::Lead(_)), leads, "{method} {is_expired}");
    }
}

fn gateway() -> Gateway {
    gateway_with(|config| config.read_cache_max_seconds = 60)
}

fn accepting(method: &str, url: &str, key: Option<String>) -> IncomingRequest {
    call(method, url, key).with("cache-control", "max-age=5")
}

fn read_key(project: &str) -> Option<String> {
    Some(key_of(project, Read))
}

fn decide(gateway: &Gateway, call: &IncomingRequest) -> Decision {
    let record = RequestLog::begin(call.method());
    decide_logged(gateway, call, NOW, &record).unwrap()
}

/// Returns the cache lookup for a request; `None` if the cache may not answer.
fn lookup(gateway: &Gateway, call: &IncomingRequest, body: &str) -> Option<Lookup> {
    match decide(gateway, call) {
        Decision::Cached(cacheable) => cacheable.finish(gateway.cache(), body.as_bytes()).unwrap(),
        Decision::Forward(_) => None,
        other @ (Decision::Answer(_) | Decision::Changes(..)) => panic!("{other:?}"),
    }
}

fn query(body: &str) -> IncomingRequest {
    let request = accepting("POST", &format!("{POSTS}/query"), read_key("default"));
    request.with_body(BodyLength::Known(body.len() as u64))
}

#[test]
fn only_reads_of_records_with_a_read_key_are_cached_and_only_if_asked() {
    let gateway = gateway();
    let read = || read_key("default");
    let is_cacheable = |call: &IncomingRequest| lookup(&gateway, call, "{}").is_some();
    assert!(is_cacheable(&accepting("GET", POSTS, read())));
    assert!(is_cacheable(&accepting("GET", &format!("{POSTS}/1"), read())));
    assert!(is_cacheable(&query("{}")));
    for call in [
        call("GET", POSTS, read()),
        accepting("GET", POSTS, Some(key_of("default", Full))),
        accepting("HEAD", POSTS, read()),
        accepting("OPTIONS", POSTS, read()),
        accepting("GET", &format!("{POSTS}/_schema"), read()),
        accepting("GET", "/api/v1/media", read()),
        accepting("GET", "/media/default/a.png", None),
        accepting("GET", "/readyz", None),
        accepting("POST", POSTS, Some(key_of("default", Full))),
        accepting("POST", "/api/v1/sql", Some(key_of("default", Full))),
        accepting("POST", "/api/v1/batch", Some(key_of("default", Full))),
        query("{}").with_body(BodyLength::Unknown),
        accepting("GET", POSTS, read()).with("x-selkie-after", "0-1-2"),
    ] {
        assert!(!is_cacheable(&call), "{} {}", call.method(), call.path);
    }
    let explain = r#"{"explain": true}"#;
    let Decision::Cached(cacheable) = decide(&gateway, &query(explain)) else {
        panic!("a read that may be cached");
    };
    let refused = cacheable.finish(gateway.cache(), explain.as_bytes()).err();
    let code = refused.map(|problem| problem.code());
    assert_eq!(code, Some(ErrorCode::FullAccessRequired));
}

#[test]
fn nothing_is_cached_unless_the_configuration_allows_it() {
    let gateway = gateway_with(|_| {});
    let decision = decide(&gateway, &accepting("GET", POSTS, read_key("default")));
    assert!(matches!(decision, Decision::Forward(_)));
}

#[test]
fn a_cache_key_is_made_of_project_installation_and_meaning() {
    let gateway = gateway();
    let key = |call: &IncomingRequest, body| lookup(&gateway, call, body).unwrap().key;
    let get = |url: &str, project| key(&accepting("GET", url, read_key(project)), "");
    let limited = get(&format!("{POSTS}?limit=1&distinct=false"), "default");
    assert_eq!(limited, get(&format!("{POSTS}?limit=1"), "default"));
    let body = r#"{"limit": 1}"#;
    assert_eq!(limited, key(&query(body), body));
    assert_ne!(limited, get(&format!("{POSTS}?limit=1"), "other"));
    assert_ne!(limited, get(&format!("{POSTS}?limit=2"), "default"));
    let accept = |accept| {
        let read = accepting("GET", &format!("{POSTS}?limit=1"), read_key("default"));
        key(&read.with("accept", accept), "")
    };
    assert_ne!(limited, accept("text/csv"));
    // The origin answers JSON: a header that is not ASCII has no meaning.
    assert_eq!(limited, accept("text/csv;x=\u{e9}"));
    let other_installation = Cache { installation: Fingerprint::of("another"), ..Cache::new(gateway.config()) };
    let Decision::Cached(cacheable) =
        decide(&gateway, &accepting("GET", &format!("{POSTS}?limit=1"), read_key("default")))
    else {
        panic!("a read that may be cached");
    };
    let elsewhere = cacheable.finish(&other_installation, b"").unwrap().unwrap();
    assert_ne!(limited, elsewhere.key);
}

#[test]
fn a_key_gets_cached_answers_while_the_origin_accepted_it_lately() {
    let (gateway, lookup) = posts();
    let cache = gateway.cache();
    let key_id = lookup.key_id();
    let accepted = |now_ms| cache.is_accepted(&lookup, now_ms);
    assert!(!accepted(0));
    cache.learn(key_id, 404, 0);
    cache.learn(key_id, 503, 0);
    assert!(!accepted(0));
    cache.learn(key_id, 200, 0);
    assert!(accepted(59_999) && !accepted(60_000));
    // A late response to an earlier request does not change the time at which the key was accepted.
    cache.learn(key_id, 200, 100);
    cache.learn(key_id, 304, 90);
    assert!(accepted(60_099));
    cache.learn(key_id, 401, 10);
    assert!(!accepted(20));
}
