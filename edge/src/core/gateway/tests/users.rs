//! Tests callers with tokens of other issuers.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};
use shared::key::subject_id;
use std::cell::Cell;

const ISSUER: &str = "https://id.example";

/// A token with the `iss` https://id.example and an invalid signature.
const FOREIGN: &str = "eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
/// The same token, but with the `iss` of Selkie's own API keys, `selkie`.
const FORGED: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJzZWxraWUifQ.AQ";

#[test]
fn a_token_of_another_issuer_is_forwarded_unchecked() {
    let foreign = |method, url, bytes| {
        let body = BodyLength::Known(bytes);
        decide(&gateway(), &call(method, url, Some(FOREIGN.to_owned())).with_body(body), NOW)
    };
    let caching = gateway_with(|config| config.read_cache_max_seconds = 60);
    for url in [POSTS, "/api/v1/crud/demo/posts?limmit=1"] {
        for (method, bytes) in [("GET", 0), ("GET", 9), ("HEAD", 9)] {
            assert!(matches!(foreign(method, url, bytes), Ok(Decision::Forward(BodyPlan::Drop))), "{method} {url}");
        }
        let read = call("GET", POSTS, Some(FOREIGN.to_owned())).with("cache-control", "max-age=60");
        let read = read.with("origin", "https://app.example");
        assert!(matches!(decide(&caching, &read, NOW), Ok(Decision::Forward(BodyPlan::Drop))));
    }
    for (url, expected) in [
        (POSTS, Some(Action::Insert)),
        ("/api/v1/crud/demo/posts/query", Some(Action::Query)),
        ("/api/v1/crud/demo/posts?limmit=1", Some(Action::Insert)),
        ("/api/v1/crud/a%00/posts", None),
    ] {
        let Ok(Decision::Forward(BodyPlan::Whole(action))) = foreign("POST", url, 9) else { panic!("{url}") };
        assert_eq!(action, expected, "{url}");
    }
    let large = EDGE_CHECKED_BODY_MAX_BYTES as u64 + 1;
    assert!(matches!(foreign("POST", POSTS, large), Ok(Decision::Forward(BodyPlan::Stream))));
    for (method, url, expected) in
        [("GET", "/metrics", "route_not_found"), ("PUT", "/api/v1/sql", "method_not_allowed")]
    {
        assert_eq!(foreign(method, url, 0).unwrap_err().code().as_str(), expected);
    }
}

#[test]
fn a_token_that_is_malformed_or_claims_to_be_selkies_is_refused() {
    let long = format!("{}.{}", FOREIGN, "A".repeat(shared::limits::AUTHORIZATION_MAX_BYTES));
    let unsigned = FOREIGN.trim_end_matches('A');
    // The algorithms `RS256`, whose signatures are longer, and `none`.
    let [other, none] = ["eyJhbGciOiJSUzI1NiJ9", "eyJhbGciOiJub25lIn0"].map(|header| {
        let (_, rest) = FOREIGN.split_once('.').unwrap();
        format!("{header}.{rest}")
    });
    let short = format!("{unsigned}AQ");
    for token in [FORGED, "x", "a.b.c", unsigned, &short, &other, &none, &long] {
        assert_eq!(code(&call("GET", POSTS, Some(token.to_owned()))), "invalid_key", "{token}");
    }
}

#[test]
fn a_foreign_token_is_counted_by_its_digest_and_a_key_by_its_id() {
    let counted = |key: String| {
        let log = RequestLog::begin("GET");
        let _ = decide_logged(&gateway(), &call("GET", POSTS, Some(key)), NOW, &log);
        (log.rate_limited_as(), log.key().is_some())
    };
    let (name, is_known) = counted(FOREIGN.to_owned());
    let name = name.unwrap();
    assert!(name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) && !is_known, "{name}");
    assert_eq!(counted(FOREIGN.to_owned()).0, Some(name));
    assert_eq!(counted(key(Access::Read)), (Some("01936f2a-7b3c-7def-8abc-0123456789ab".to_owned()), true));
    assert_eq!(counted("x".to_owned()), (None, false));
}

/// Returns a gateway that caches reads, and lists the issuer with one key for the audience `app`.
fn listing() -> Gateway {
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let list = json!([{"issuer": ISSUER, "audience": "app", "jwks": {"keys": [key]}}]);
    gateway_with(|config| {
        config.issuers = EdgeIssuers::parse(&list.to_string()).unwrap();
        config.read_cache_max_seconds = 60;
    })
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "app", "sub": "7", "exp": NOW + 300})
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

fn token(header: &Value, claims: &Value) -> String {
    let part = |json: &Value| BASE64.encode(json.to_string());
    format!("{}.{}.{}", part(header), part(claims), BASE64.encode([1; 64]))
}

/// Sends a read with a token. Returns the name under which the edge's rate limit counts the caller if the edge forwards
/// the request, otherwise the error code.
fn outcome(gateway: &Gateway, token: &str, now: u64, signed: Option<bool>) -> Result<String, &'static str> {
    let (read, log) = (call("GET", POSTS, Some(token.to_owned())), RequestLog::begin("GET"));
    let decided = gateway.decide(&read, now, &log, async |_, _| signed).now_or_never().unwrap();
    match decided {
        Ok(Decision::Forward(BodyPlan::Drop)) => Ok(log.rate_limited_as().unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(problem) => Err(problem.code().as_str()),
    }
}

fn header() -> Value {
    json!({"alg": "EdDSA", "kid": "a", "typ": "JWT"})
}

#[test]
fn a_verified_token_is_counted_by_its_subject_and_others_by_themselves() {
    let gateway = listing();
    let subject = Ok(subject_id(ISSUER, "7").to_string());
    let [one, two] = [300, 301].map(|seconds| token(&header(), &with(claims(), "exp", json!(NOW + seconds))));
    assert_eq!(outcome(&gateway, &one, NOW, Some(true)), subject);
    assert_eq!(outcome(&gateway, &two, NOW, Some(true)), subject);
    // Tokens that are forwarded unverified: the runtime can't use the key; the key is not listed; or the token has no
    // `kid` and no listed key verifies it.
    let nameless = token(&json!({"alg": "EdDSA"}), &claims());
    let digest = |text: &str| Ok(Token::from_header(Some(text)).unwrap().digest().to_string());
    for (text, signed) in [
        (token(&header(), &with(claims(), "exp", json!(NOW + 302))), None),
        (token(&with(header(), "kid", json!("b")), &claims()), Some(false)),
        (token(&header(), &with(claims(), "iss", json!("selkie-console"))), Some(false)),
        (nameless.clone(), Some(false)),
        (token(&json!({"alg": "ES256"}), &claims()), Some(false)),
    ] {
        assert_eq!(outcome(&gateway, &text, NOW, signed), digest(&text), "{text}");
    }
    assert_eq!(outcome(&gateway, &nameless, NOW, Some(true)), subject);
}

#[test]
fn what_the_origin_must_refuse_and_issuers_that_are_not_listed_are_refused_at_the_edge() {
    let gateway = listing();
    for (header, claims, signed, code) in [
        (header(), claims(), false, "invalid_key"),
        (header(), with(claims(), "aud", json!("other")), true, "invalid_key"),
        (header(), with(claims(), "iss", json!("https://other.example")), true, "invalid_key"),
        (header(), with(claims(), "exp", json!(NOW - 60)), true, "expired_key"),
        // A forger must not learn that the claims have expired.
        (header(), with(claims(), "exp", json!(NOW - 60)), false, "invalid_key"),
        (header(), with(claims(), "nbf", json!(NOW + 61)), true, "invalid_key"),
        (header(), with(claims(), "sub", json!(null)), true, "invalid_key"),
        (with(header(), "alg", json!("HS256")), claims(), true, "invalid_key"),
        (with(header(), "alg", json!("none")), claims(), true, "invalid_key"),
        (with(header(), "alg", json!("RS256")), claims(), true, "invalid_key"),
        (json!({"alg": "HS256"}), claims(), true, "invalid_key"),
        (json!({"alg": "HS256", "kid": "b"}), claims(), true, "invalid_key"),
        (with(header(), "crit", json!(["exp"])), claims(), true, "invalid_key"),
        (with(header(), "typ", json!("logout+jwt")), claims(), true, "invalid_key"),
    ] {
        let text = token(&header, &claims);
        assert_eq!(outcome(&gateway, &text, NOW, Some(signed)), Err(code), "{header} {claims}");
    }
    // The signature's length differs from that of the key's signatures.
    let short = format!("{}AQ", token(&header(), &claims()).trim_end_matches(|c| c != '.'));
    assert_eq!(outcome(&gateway, &short, NOW, None), Err("invalid_key"));
    // An unknown route is reported rather than a forged token. A request for a file is forwarded even with a forged
    // token, since the file may be public.
    let forged = Some(token(&header(), &claims()));
    let decide = |url| {
        let call = call("GET", url, forged.clone());
        gateway.decide(&call, NOW, &RequestLog::begin("GET"), async |_, _| Some(false)).now_or_never().unwrap()
    };
    assert_eq!(decide("/nowhere").unwrap_err().code(), ErrorCode::RouteNotFound);
    assert!(matches!(decide("/media/default/a.txt"), Ok(Decision::Forward(BodyPlan::Drop))));
}

#[test]
fn the_signature_of_a_token_is_verified_once_and_its_lifetime_always() {
    let gateway = listing();
    let read = call("GET", POSTS, Some(token(&header(), &claims())));
    let verified = Cell::new(0);
    let decide = |now, signed| {
        let counted = async |_: &VerificationKey, _: &UserToken<'_>| {
            verified.set(verified.get() + 1);
            Some(signed)
        };
        gateway.decide(&read, now, &RequestLog::begin("GET"), counted).now_or_never().unwrap().map(drop)
    };
    // A refusal is not cached.
    assert!(decide(NOW, false).is_err());
    for _ in 0..3 {
        assert!(decide(NOW, true).is_ok());
    }
    assert_eq!(verified.get(), 2);
    let refused = decide(NOW + 360, true).unwrap_err();
    assert_eq!((refused.code(), verified.get()), (ErrorCode::ExpiredKey, 2));
}

#[test]
fn a_verified_token_changes_nothing_but_how_its_caller_is_counted() {
    let gateway = listing();
    let token = token(&header(), &claims());
    for (url, method, bytes) in [(POSTS, "GET", 0), ("/api/v1/crud/demo/posts?limmit=1", "GET", 0), (POSTS, "POST", 9)]
    {
        let body = BodyLength::Known(bytes);
        let request = call(method, url, Some(token.clone())).with("cache-control", "max-age=60").with_body(body);
        let log = RequestLog::begin(method);
        let decided = gateway.decide(&request, NOW, &log, async |_, _| Some(true)).now_or_never().unwrap();
        assert!(matches!(decided, Ok(Decision::Forward(BodyPlan::Drop | BodyPlan::Whole(_)))), "{method} {url}");
        assert_eq!((log.key(), log.project()), (None, None));
    }
}
