//! Heads as text, and what is changed in them on either way.

use super::*;
use shared::cors::CorsOrigins;

const ENDING: Ending = Ending {
    status: 200,
    total_ms: 5.0,
    origin_ms: Some(4.0),
};

fn request(headers: &str) -> Head {
    Head::of_request(format!("GET\nhttp://api.test/readyz?a=b\n{headers}"))
}

fn sent(head: &Head, door: &Door, seen: Option<&str>) -> String {
    let call = call("GET", "/readyz", None);
    let mut out = String::new();
    forwarded_changes(head, &call, door, seen).write_changed(head, &mut out);
    out.replace(call.request_id.as_str(), "ID")
}

#[test]
fn a_head_is_read_line_by_line() {
    let head = request("body\naccept\n*/*\nx-empty\n\nhost\nb");
    assert_eq!((head.method(), head.has_body()), ("GET", true));
    assert_eq!(head.url(), "http://api.test/readyz?a=b");
    assert_eq!(head.get("accept"), Some("*/*"));
    assert_eq!(head.get("x-empty"), Some(""));
    assert_eq!(head.get("host"), Some("b"));
    // A value is no name.
    assert_eq!(head.get("b"), None);
    assert!(head.is_ascii());
    assert!(!request("\nx\né").is_ascii());
    let nothing = Head::default();
    assert_eq!((nothing.get("host"), nothing.status()), (None, 0));
    assert_eq!(Head::of_answer("204".to_owned()).status(), 204);
}

#[test]
fn a_head_that_the_origin_could_not_read_is_refused() {
    let check = |url: &str, rest: &str| {
        let head = Head::of_request(format!("POST\nhttp://api.test{url}\n{rest}"));
        head.check().err().map(|problem| problem.code())
    };
    let crowd: String = (0..100).map(|n| format!("\nx-{n}\n1")).collect();
    for (url, rest, code) in [
        ("/a?b", "body\nx-a\na\tb\ncontent-length\n5", None),
        ("/a", "\nx-a\na\u{1}b", Some(ErrorCode::InvalidRequest)),
        ("/a", "\nx-\u{fffd}\na", Some(ErrorCode::InvalidRequest)),
        ("/a\u{1}", "", Some(ErrorCode::InvalidRequest)),
        ("/a", &*crowd, Some(ErrorCode::HeadersTooLarge)),
        ("/a", "body\ntrailer\nx-a", Some(ErrorCode::InvalidBody)),
        (
            "/a",
            "body\ncontent-length\n5\ntransfer-encoding\nchunked",
            Some(ErrorCode::InvalidBody),
        ),
    ] {
        assert_eq!(check(url, rest), code, "{url} {rest:?}");
    }
}

#[test]
fn the_origin_is_told_who_asks_and_nothing_that_a_caller_made_up() {
    let head = request(
        "\naccept\n*/*\nconnection\nx-hop, accept\nx-hop\n1\nhost\nx\nx-forwarded-for\n9.9.9.9\nx-request-id\nno good",
    );
    assert_eq!(
        sent(&head, &Door::default(), Some("[::1]:80")),
        "\naccept\n*/*\nx-request-id\nID\nx-forwarded-for\n::1\nx-forwarded-proto\nhttp\nx-forwarded-host\napi.test"
    );
    let unseen = sent(&head, &Door::default(), None);
    assert!(!unseen.contains("x-forwarded-for"), "{unseen}");
    let mut door = Door::default();
    door.client_address = Some("x-real-ip".to_owned());
    let told = request("\nx-real-ip\n10.0.0.7");
    let told = sent(&told, &door, Some("127.0.0.1:80"));
    assert!(told.contains("\nx-forwarded-for\n10.0.0.7\n"), "{told}");
}

#[test]
fn what_an_answer_has_already_is_left() {
    let mut call = call("GET", "/readyz", None);
    call.is_https = false;
    let changed = |headers: &str, cors: &CorsOrigins| {
        let id = call.request_id.as_str();
        let head = Head::of_answer(format!("200\nx-request-id\n{id}\n{headers}"));
        origin_changes(&head, &call, cors, &ENDING).into_lines()
    };
    let any = CorsOrigins::any();
    let own: String = any
        .answer_headers(None)
        .map(|(name, value)| format!("{name}\n{value}\n"))
        .collect();
    let timing = "+server-timing\nedge;dur=1, upstream;dur=4\n";
    assert_eq!(changed(own.trim_end(), &any), timing);
    let other = changed(
        "access-control-allow-origin\nhttps://a.test\nproxy-connection\nclose",
        &any,
    );
    assert!(other.contains("-proxy-connection\n\n"), "{other}");
    assert!(
        other.contains("=access-control-allow-origin\n*\n"),
        "{other}"
    );
    let listed = CorsOrigins::parse("https://a.test").unwrap();
    let none = changed(own.trim_end(), &listed);
    assert!(none.contains("-access-control-allow-origin\n\n"), "{none}");
    assert!(none.contains("+vary\nOrigin\n"), "{none}");
    assert!(!changed("vary\naccept, origin", &listed).contains("vary"));
}
