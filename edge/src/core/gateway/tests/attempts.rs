//! Tests which requests may be sent to a second origin.

use super::*;

#[test]
fn what_does_no_harm_twice_may_be_repeated() {
    let (full, body) = (|| Some(key(Access::Full)), BodyLength::Known(2));
    let call = |method, url: &str, body| call(method, url, full()).with_body(body);
    let keyed = call("POST", POSTS, body).with("idempotency-key", "k");
    let keyed_stream = keyed.clone().with_body(BodyLength::Unknown);
    let twin = format!("{POSTS}/query");
    let one = format!("{POSTS}/1");
    for (call, expected) in [
        (call("GET", POSTS, BodyLength::Known(0)), Repeat::Always),
        (call("HEAD", POSTS, BodyLength::Known(0)), Repeat::Always),
        (call("OPTIONS", POSTS, BodyLength::Known(0)), Repeat::Always),
        (call("GET", "/readyz", BodyLength::Known(0)), Repeat::Always),
        (call("GET", "/media/default/a", body), Repeat::Always),
        (call("POST", &twin, body), Repeat::Always),
        (call("POST", &twin, BodyLength::Unknown), Repeat::Never),
        (keyed, Repeat::Always),
        (keyed_stream, Repeat::Never),
        (call("POST", POSTS, body), Repeat::IfUnsent),
        (call("PUT", &one, body), Repeat::IfUnsent),
        (call("DELETE", &one, body), Repeat::IfUnsent),
        (call("POST", "/api/v1/sql", body), Repeat::IfUnsent),
        (call("POST", "/api/v1/batch", body), Repeat::IfUnsent),
        (call("POST", "/api/v1/media", body), Repeat::IfUnsent),
        (call("POST", "/api/v1/media", BodyLength::Unknown), Repeat::Never),
    ] {
        let Ok(Decision::Forward(plan)) = decide(&gateway(), &call, NOW) else { panic!("not forwarded: {call:?}") };
        assert_eq!(plan.repeat(&call), expected, "{call:?}");
    }
}

#[test]
fn an_address_loses_its_port() {
    for (address, host) in [("127.0.0.1:80", "127.0.0.1"), ("[::1]:80", "::1"), ("localhost", "localhost")] {
        assert_eq!(without_port(address), host);
    }
}
