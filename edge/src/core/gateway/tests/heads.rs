//! Tests of forwarded headers and of headers of responses.

use super::*;
use crate::core::{HeaderChange, Headers, RequestHeaders, RequestOutcome, RequestParts, answer_changes, forwarded};

const OUTCOME: RequestOutcome = RequestOutcome { status: 200, total_ms: 5.0, origin_ms: Some(4.0) };

fn head(method: &str, url: &str, has_body: bool, headers: &str) -> RequestParts {
    RequestParts {
        method: method.to_owned(),
        url: format!("http://api.test{url}"),
        has_body,
        headers: Headers::parse(headers.to_owned()),
    }
}

#[test]
fn a_head_is_read_line_by_line() {
    let headers = Headers::parse("accept,*/*, a\nx-empty,\nhost,b".to_owned());
    assert_eq!(headers.get("accept"), Some("*/*, a"));
    assert_eq!(headers.get("x-empty"), Some(""));
    assert_eq!(headers.get("host"), Some("b"));
    // A header's value must not be found as a name.
    assert_eq!(headers.get("b"), None);
    let all: Vec<_> = headers.iter().collect();
    assert_eq!(all, [("accept", "*/*, a"), ("x-empty", ""), ("host", "b")]);
    assert_eq!(Headers::default().get("host"), None);
    assert_eq!(Headers::parse(String::new()).iter().count(), 0);
}

#[test]
fn a_head_that_the_origin_could_not_read_is_refused() {
    let check = |url: &str, has_body, headers: &str| {
        let head = head("POST", url, has_body, headers);
        head.check().err().map(|problem| problem.code())
    };
    let crowd: Vec<String> = (0..100).map(|n| format!("x-{n},1")).collect();
    for (url, has_body, headers, code) in [
        ("/a?b", true, "x-a,a\tb\ncontent-length,5", None),
        ("/a", false, "x-a,a\u{1}b", Some(ErrorCode::InvalidRequest)),
        ("/a", false, "x-\u{fffd},a", Some(ErrorCode::InvalidRequest)),
        ("/a\u{1}", false, "", Some(ErrorCode::InvalidRequest)),
        ("/a", false, &*crowd.join("\n"), Some(ErrorCode::HeadersTooLarge)),
        ("/a", true, "trailer,x-a", Some(ErrorCode::InvalidBody)),
        ("/a", true, "content-length,5\ntransfer-encoding,chunked", Some(ErrorCode::InvalidBody)),
    ] {
        assert_eq!(check(url, has_body, headers), code, "{url} {headers:?}");
    }
}

#[test]
fn the_origin_is_told_who_asks_and_nothing_that_a_caller_made_up() {
    let sent = |headers: &str, access: &AccessConfig, seen: Option<&str>| {
        let head = head("GET", "/readyz?a=b", false, headers);
        owned(&forwarded(&IncomingRequest::of(head), access, seen))
    };
    let made_up =
        "accept,*/*\nconnection,x-hop, accept\nhost,x\nx-forwarded-for,9.9.9.9\nx-hop,1\nx-request-id,no good";
    let any = AccessConfig::default();
    assert_eq!(
        sent(made_up, &any, Some("[::1]:80")),
        "accept: */*\nx-request-id: r1\nx-forwarded-for: ::1\nx-forwarded-proto: http\nx-forwarded-host: api.test"
    );
    let unseen = sent(made_up, &any, None);
    assert!(!unseen.contains("x-forwarded-for"), "{unseen}");
    let mut access = AccessConfig::default();
    access.client_address = Some("x-real-ip".to_owned());
    let address = sent("x-real-ip,10.0.0.7", &access, Some("127.0.0.1:80"));
    assert!(address.contains("x-forwarded-for: 10.0.0.7"), "{address}");
}

fn owned(headers: &RequestHeaders<'_>) -> String {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_an_answer_has_already_is_left() {
    let request = IncomingRequest::of(head("GET", "/readyz", false, ""));
    let changed = |headers: &str, cors: &CorsOrigins| {
        let headers = Headers::parse(format!("x-request-id,r1\n{headers}"));
        answer_changes(&headers, &request, Some(cors), &OUTCOME)
    };
    let any = CorsOrigins::any();
    let own: Vec<String> = any.answer_headers(None).map(|(name, value)| format!("{name},{value}")).collect();
    let own = own.join("\n");
    let timing = HeaderChange::Append("server-timing", "edge;dur=1, upstream;dur=4".into());
    assert_eq!(changed(&own, &any), [timing]);
    let other = changed("access-control-allow-origin,https://a.test\nproxy-connection,close", &any);
    let any_origin = HeaderChange::Set("access-control-allow-origin", "*".into());
    assert!(other.contains(&HeaderChange::Delete("proxy-connection")), "{other:?}");
    assert!(other.contains(&any_origin), "{other:?}");
    let listed = CorsOrigins::parse("https://a.test").unwrap();
    let none = changed(&own, &listed);
    let vary = HeaderChange::Append("vary", "Origin".into());
    let removed = HeaderChange::Delete("access-control-allow-origin");
    assert!(none.contains(&removed) && none.contains(&vary), "{none:?}");
    assert!(!changed("vary,accept, origin", &listed).contains(&vary));
}

#[test]
fn an_own_answer_has_each_header_once() {
    let mut answer = Answer::bare(200).with("vary", "Accept").with("age", "1");
    answer.apply(vec![
        HeaderChange::Append("vary", "Origin".into()),
        HeaderChange::Set("age", "2".into()),
        HeaderChange::Append("server-timing", "x".into()),
        HeaderChange::Delete("absent"),
    ]);
    let headers: Vec<_> = answer.headers().collect();
    assert_eq!(headers, [("vary", "Accept, Origin"), ("age", "2"), ("server-timing", "x")]);
}
