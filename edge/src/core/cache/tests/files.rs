//! Tests which files are cached, and what a request gets from a cache entry.

use super::*;
use shared::media::FilePath;

const V: &str = "0123456789abcdef0123456789abcdef";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn cache() -> Cache {
    Cache::new(gateway().config())
}

fn at(path_text: &str, query: &str) -> Option<Lookup> {
    cache().file(&path(path_text), Some(query))
}

fn asked(query: &str) -> Option<Lookup> {
    at("/media/default/a/b.png", query)
}

fn file() -> Lookup {
    asked(&format!("v={V}")).unwrap()
}

#[test]
fn only_a_url_of_nothing_but_a_version_may_be_answered_from_the_cache() {
    let thumbnail = asked(&format!("thumbnail=true&v={V}")).unwrap();
    assert_eq!(asked(&format!("v={V}&thumbnail=true")).unwrap().version, thumbnail.version);
    assert_ne!(thumbnail.url(), file().url());
    assert!(cache().file(&path("/media/default/a"), None).is_none());
    for query in [
        String::new(),
        "thumbnail=true".to_owned(),
        format!("v={}", &V[1..]),
        format!("v={}", V.to_uppercase()),
        format!("v={V}0"),
        format!("v=%30{}", &V[1..]),
        format!("v={V}&v={V}"),
        format!("v={V}&"),
        format!("v={V}&download=true"),
        format!("v={V}&thumbnail=false"),
        format!("v={V}&thumbnail=true&thumbnail=true"),
        format!("v={V}&expires=9999999999&signature=x"),
        format!("v={V}&utm=x"),
    ] {
        assert!(asked(&query).is_none(), "{query}");
    }
}

#[test]
fn a_file_has_one_entry_whatever_its_version_or_spelling() {
    let of = |text: &str, v: char| at(text, &format!("v={}", v.to_string().repeat(32))).unwrap();
    let (a, b) = (of("/media/default/a%62.png", 'a'), of("/media/default/ab.png", 'b'));
    assert_eq!(a.url(), b.url());
    assert_ne!((&a.file().unwrap().tag, a.version), (&b.file().unwrap().tag, b.version));
    assert_ne!(a.url(), of("/media/other/ab.png", 'a').url());
    let purged = |cache: &Cache| cache.purge(a.file().unwrap().name.clone(), 0);
    assert!(purged(&cache()).contains(&a.url()));
    let thumbnail = at("/media/default/ab.png", &format!("v={V}&thumbnail=true")).unwrap();
    assert!(purged(&cache()).contains(&thumbnail.url()));
    let elsewhere = Cache { installation: Fingerprint::of("another"), ..cache() };
    assert!(!purged(&elsewhere).contains(&a.url()));
}

/// Returns the headers of the origin's response for the file, with one header replaced or, if `value` is `None`,
/// removed.
fn answer(size: &str, name: &str, value: Option<&str>) -> Headers {
    let tag = format!("\"{V}\"");
    let headers =
        [("etag", tag.as_str()), ("last-modified", DATE), ("cache-control", IMMUTABLE), ("content-length", size)];
    let others = headers.into_iter().filter(|(known, _)| *known != name);
    others.chain(value.map(|value| (name, value))).collect()
}

#[test]
fn only_what_the_origin_calls_public_and_immutable_is_stored() {
    let outcome = |status, name: &str, value| file().outcome(status, &answer("17", name, value));
    assert_eq!(outcome(200, "x", None), FetchOutcome::Held);
    for cache_control in [
        None,
        Some("public, no-cache"),
        Some("private, max-age=60"),
        Some("private, no-cache"),
        Some("private, max-age=31536000, immutable"),
        Some("no-store"),
        Some("public, max-age=31536000"),
    ] {
        assert_eq!(outcome(200, "cache-control", cache_control), FetchOutcome::NotStored, "{cache_control:?}");
    }
    for (status, name, value) in [
        (200, "last-modified", None),
        (200, "last-modified", Some("soon")),
        (200, "content-length", None),
        (200, "content-encoding", Some("gzip")),
        (404, "x", None),
    ] {
        assert_eq!(outcome(status, name, value), FetchOutcome::NotStored, "{status} {name} {value:?}");
    }
    for tag in [Some("\"other\""), None] {
        assert_eq!(outcome(200, "etag", tag), FetchOutcome::OtherVersion);
        assert_eq!(outcome(404, "etag", tag), FetchOutcome::NotStored);
    }
}

#[test]
fn large_files_and_parts_are_stored_by_a_request_of_their_own_and_huge_ones_not_at_all() {
    for (status, size, expected) in [
        (200, 0, FetchOutcome::Held),
        (200, HELD_MAX_BYTES, FetchOutcome::Held),
        (200, HELD_MAX_BYTES + 1, FetchOutcome::Streamed),
        (200, STREAMED_MAX_BYTES, FetchOutcome::Streamed),
        (200, STREAMED_MAX_BYTES + 1, FetchOutcome::NotStored),
        (206, 10, FetchOutcome::Streamed),
        (206, STREAMED_MAX_BYTES + 1, FetchOutcome::NotStored),
    ] {
        let headers = match status {
            200 => answer(&size.to_string(), "x", None),
            _ => answer("2", "content-range", Some(&format!("bytes 0-1/{size}"))),
        };
        assert_eq!(file().outcome(status, &headers), expected, "{status} {size}");
    }
}

#[test]
fn only_an_origin_that_can_tell_has_a_file_removed() {
    for (status, expected) in [
        (304, FetchOutcome::Confirmed),
        (200, FetchOutcome::OtherVersion),
        (404, FetchOutcome::NotStored),
        (401, FetchOutcome::NotStored),
        (429, FetchOutcome::Unanswered),
        (500, FetchOutcome::Unanswered),
        (503, FetchOutcome::Unanswered),
    ] {
        let other = answer("17", "etag", Some("\"other\""));
        assert_eq!(file().outcome(status, &other), expected, "{status}");
    }
}

#[test]
fn only_a_plain_get_shares_its_answer_and_only_as_everybody() {
    let head = |method: &str, text: &str| {
        IncomingRequest::of(RequestParts {
            method: method.to_owned(),
            headers: headers(text),
            ..RequestParts::default()
        })
    };
    assert!(file().is_shared(&head("GET", "accept,*/*\norigin,https://a.test")));
    assert!(!file().is_shared(&head("HEAD", "")));
    for name in FILE_REQUEST_HEADERS {
        assert!(!file().is_shared(&head("GET", &format!("{name},x"))), "{name}");
    }
    let full = head("HEAD", "authorization,Bearer x\nrange,bytes=0-1\ntraceparent,t\nx-real-ip,10.0.0.7\naccept,*/*");
    let asking = file().request(&full, Some("x-real-ip"), Some("\"v\""));
    let sent: Vec<_> = asking.head.headers.iter().collect();
    assert_eq!(sent, [("traceparent", "t"), ("x-real-ip", "10.0.0.7"), ("if-none-match", "\"v\"")]);
    assert_eq!(asking.method(), "GET");
    let (_, read) = posts();
    let full = head("GET", "authorization,Bearer x\nif-none-match,\"t\"\naccept-encoding,gzip\naccept,*/*");
    let asking = read.request(&full, None, None);
    assert_eq!(asking.head.headers.iter().collect::<Vec<_>>(), [("authorization", "Bearer x"), ("accept", "*/*")]);
}

#[test]
fn conditions_and_ranges_are_answered_as_the_origin_answers_them() {
    let file = file();
    let tag = format!("\"{V}\"");
    let entry = answer("10", "x", None);
    let serve = |entry: &Headers, method: &str, request: &[(&str, &str)]| {
        let call = call(method, "/media/default/a/b.png", None);
        let call = request.iter().fold(call, |call, (name, value)| call.with(name, value));
        let served = file.serve(entry, &call, Some(30_900))?;
        Some(served.map(|served| (served.head.status, served.body, served.head)).map_err(|problem| problem.code()))
    };
    for (method, request, status, body) in [
        ("GET", &[][..], 200, ServedBody::Whole),
        ("GET", &[("if-none-match", tag.as_str())], 304, ServedBody::None),
        ("GET", &[("if-none-match", "\"x\""), ("range", "bytes=2-4")], 206, ServedBody::Part(2..5)),
        ("GET", &[("if-range", tag.as_str()), ("range", "bytes=-4")], 206, ServedBody::Part(6..10)),
        ("GET", &[("if-range", "\"x\""), ("range", "bytes=-4")], 200, ServedBody::Whole),
        ("GET", &[("range", "bytes=0-1,3-4")], 200, ServedBody::Whole),
        ("GET", &[("range", "bytes=10-")], 416, ServedBody::None),
        ("GET", &[("if-modified-since", DATE)], 304, ServedBody::None),
        ("HEAD", &[("range", "bytes=2-4")], 200, ServedBody::None),
    ] {
        let (actual, actual_body, head) = serve(&entry, method, request).unwrap().unwrap();
        assert_eq!((actual, actual_body), (status, body), "{method} {request:?}");
        let names = ["age", "content-range", "content-length", "cache-control"];
        let values = names.map(|name| head.header(name));
        let expected = match status {
            200 => [Some("30"), None, Some("10"), Some(IMMUTABLE)],
            206 if head.header("content-range") == Some("bytes 2-4/10") => {
                [Some("30"), Some("bytes 2-4/10"), Some("3"), Some(IMMUTABLE)]
            }
            206 => [Some("30"), Some("bytes 6-9/10"), Some("4"), Some(IMMUTABLE)],
            304 => [Some("30"), None, None, Some(IMMUTABLE)],
            _ => [None, Some("bytes */10"), None, None],
        };
        assert_eq!(values, expected, "{method} {request:?}");
    }
    let stored = file.serve(&entry, &call("GET", "/media/default/a/b.png", None), None);
    assert_eq!(stored.unwrap().unwrap().head.header("age"), None);
    let failed = serve(&entry, "GET", &[("if-match", "\"x\"")]).unwrap();
    assert_eq!(failed.err(), Some(ErrorCode::PreconditionFailed));
    assert!(serve(&answer("10", "last-modified", Some("")), "GET", &[]).is_none());
    assert!(serve(&answer("ten", "x", None), "GET", &[]).is_none());
    assert_eq!(range_header(&(2..5)), "bytes=2-4");
}

/// Returns the headers of a cache entry whose origin was asked at `asked_ms`.
fn entry(asked_ms: u64) -> Headers {
    let asked = asked_ms.to_string();
    let answer = answer("10", "x", None);
    answer.iter().chain([(ASKED_AT, asked.as_str())]).collect()
}

#[test]
fn an_entry_lasts_for_its_time_and_longer_if_the_origin_confirms_it_or_does_not_answer() {
    let (cache, file) = (cache(), file());
    let freshness = |now_ms| cache.judge(&file, &entry(1_000), None, now_ms).map(|(_, freshness)| freshness);
    assert_eq!((freshness(61_000), freshness(61_001)), (Some(Freshness::Fresh), Some(Freshness::Expired)));
    let lead = |now_ms| match cache.join(&file, cache.moment(), now_ms) {
        Flight::Lead(lead) => lead,
        other => panic!("{other:?}"),
    };
    lead(61_001).unanswered(62_000);
    assert_eq!((freshness(71_999), freshness(72_000)), (Some(Freshness::Fresh), Some(Freshness::Expired)));
    cache.confirm(&file, 72_000);
    assert_eq!(cache.judge(&file, &entry(1_000), None, 80_900), Some((8_900, Freshness::Fresh)));
    assert_eq!(freshness(132_001), Some(Freshness::Expired));
    let other = asked(&format!("v={}", "f".repeat(32))).unwrap();
    assert_eq!(cache.judge(&other, &entry(1_000), None, 1_000), None);
    assert_eq!(cache.judge(&file, &answer("10", "x", None), None, 1_000), None);
}

#[test]
fn an_entry_from_before_a_folder_became_private_does_not_count() {
    let (cache, file) = (cache(), file());
    let (url, mark) = cache.private_mark(&path("/media/default/a").project, 100_000);
    assert_eq!(url, file.file().unwrap().private_mark_url);
    let mark: Headers = mark.headers().collect();
    let freshness =
        |asked_ms| cache.judge(&file, &entry(asked_ms), Some(&mark), 105_000).map(|(_, freshness)| freshness);
    for asked_ms in [80_000, 99_999, 100_000, 104_999] {
        assert_eq!(freshness(asked_ms), Some(Freshness::Expired), "{asked_ms}");
    }
    assert_eq!(freshness(105_000), Some(Freshness::Fresh));
    // A failed revalidation does not make entries valid that are older than a purge.
    match cache.join(&file, cache.moment(), 105_000) {
        Flight::Lead(lead) => lead.unanswered(105_000),
        other => panic!("{other:?}"),
    }
    assert_eq!(freshness(100_000), Some(Freshness::Expired));
}

#[test]
fn what_was_asked_before_a_purge_or_right_after_it_is_not_stored() {
    let (cache, file) = (cache(), file());
    let name = |n: u32| FilePathHash::of(&path(&format!("/media/default/{n}")));
    assert!(!cache.is_purged(&file, 0));
    cache.purge(name(1), 10_000);
    assert!(!cache.is_purged(&file, 0));
    cache.purge(file.file().unwrap().name.clone(), 10_000);
    assert!(cache.is_purged(&file, 9_000) && cache.is_purged(&file, 14_999) && !cache.is_purged(&file, 15_000));
    assert!(matches!(cache.join(&file, cache.moment(), 14_999), Flight::Alone));
    assert_eq!(cache.judge(&file, &entry(14_999), None, 15_000), Some((1, Freshness::Expired)));
    drop(cache.join(&file, cache.moment(), 15_000));
    // This file's purge may be one of the evicted purges.
    for n in 0..10_000 {
        cache.purge(name(n), 20_000);
    }
    assert!(cache.is_purged(&file, 24_999) && !cache.is_purged(&file, 25_000));
}

#[test]
fn a_projects_private_mark_is_where_no_file_is() {
    // The hash of a file's path could look like a project's name.
    let name = FilePathHash::of(&path("/media/default/a"));
    let project = format!("a{}", &name.as_str()[1..]);
    let file = at(&format!("/media/{project}/a"), &format!("v={V}")).unwrap();
    let mark = file.file().unwrap().private_mark_url.clone();
    assert_eq!(cache().private_mark(&ProjectName::parse(&project).unwrap(), 0).0, mark);
    assert_ne!(mark, file.url());
    assert_ne!(mark, super::super::url(file.version));
}
