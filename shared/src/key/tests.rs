//! Tests of forged tokens, rotation of signing keys, and expiry.

use super::*;
use crate::limits::SIGNING_KEYS_MAX_COUNT;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

const NOW: u64 = 1_800_000_000;

fn issue(kid: &str, byte: u8, claims: &KeyClaims) -> String {
    signer(kid, byte).sign(claims).unwrap()
}

fn signer(kid: &str, byte: u8) -> SigningKey {
    SigningKey::from_seed(kid, &[byte; 32])
}

fn keys() -> KeySet {
    static KEYS: LazyLock<KeySet> =
        LazyLock::new(|| KeySet::new(vec![signer("a", 1).public(), signer("b", 2).public()]).unwrap());
    KEYS.clone()
}

fn key_id() -> Uuid {
    Uuid::try_parse("01936f2a-7b3c-7def-8abc-0123456789ab").unwrap()
}

fn project() -> ProjectName {
    ProjectName::parse("shop").unwrap()
}

fn claims(exp: Option<u64>) -> KeyClaims {
    KeyClaims::new(key_id(), &project(), Access::Read, NOW - 10, exp)
}

fn code_of(token: &str) -> ErrorCode {
    verify(Some(token), &keys(), NOW).unwrap_err().code()
}

fn signed(header: &Value, claims: &Value) -> String {
    use ed25519_dalek::Signer as _;
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = ed25519_dalek::SigningKey::from_bytes(&[1; 32]).sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.to_bytes()))
}

fn good_header() -> Value {
    json!({"typ": "JWT", "alg": "EdDSA", "kid": "a"})
}

fn good_claims() -> Value {
    serde_json::to_value(claims(None)).unwrap()
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

fn without(mut object: Value, field: &str) -> Value {
    object.as_object_mut().unwrap().remove(field);
    object
}

#[test]
fn a_key_comes_back_as_the_principal_it_was_issued_to() {
    let token = issue("a", 1, &claims(Some(NOW + 1)));
    let principal = verify(Some(&format!("Bearer {token}")), &keys(), NOW).unwrap();
    assert_eq!(principal.key_id(), key_id());
    assert_eq!(principal.project(), &project());
    assert_eq!(principal.grant(), &Grant::Read);
    assert_eq!(principal.expires_at(), Some(NOW + 1));
}

#[test]
fn keys_issued_by_version_0_0_still_verify_and_are_issued_alike() {
    const OLD: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJFZERTQSIsImtpZCI6ImEifQ.\
        eyJpc3MiOiJzZWxraWUiLCJzdWIiOiIwMTkzNmYyYS03YjNjLTdkZWYtOGFiYy0wMTIzNDU2Nzg5YWIiLCJwcmoiOiJzaG9wIiwi\
        YWNjIjoicmVhZCIsImlhdCI6MTc5OTk5OTk5MCwiZXhwIjoxODAwMDAwMDAxfQ.\
        ytugag0hJYUucENyxij3jdyslJQJ57zIhmaCET7E7oNM-xFVkttEzW9rz24BsuLvouZ6nUur_PS_MC5v5F_0Dg";
    let claims = claims(Some(NOW + 1));
    assert_eq!(issue("a", 1, &claims), OLD);
    let principal = verify(Some(OLD), &keys(), NOW).unwrap();
    assert_eq!(principal.key_id(), key_id());
}

#[test]
fn bearer_is_taken_in_any_case_and_the_bare_key_too() {
    let token = issue("a", 1, &claims(None));
    for header in [
        token.clone(),
        format!("Bearer {token}"),
        format!("bearer {token}"),
        format!("BEARER   {token} "),
        format!(" bEaReR\t{token}"),
    ] {
        assert!(verify(Some(&header), &keys(), NOW).is_ok(), "{header}");
    }
}

#[test]
fn an_access_is_read_as_it_is_written() {
    for (access, text) in [(Access::Full, "full"), (Access::Read, "read")] {
        assert_eq!(access.to_string(), text);
        assert_eq!(text.parse(), Ok(access));
    }
    for text in ["", "Full", "admin"] {
        assert_eq!(text.parse::<Access>(), Err(UnknownAccess), "{text}");
    }
}

#[test]
fn a_header_of_the_most_bytes_is_read() {
    let padded = |length: usize| {
        let token = issue("a", 1, &claims(None));
        format!("{token:>length$}")
    };
    assert!(verify(Some(&padded(AUTHORIZATION_MAX_BYTES)), &keys(), NOW).is_ok());
    let refused = verify(Some(&padded(AUTHORIZATION_MAX_BYTES + 1)), &keys(), NOW).unwrap_err();
    assert!(refused.message().contains("too long"), "{refused}");
}

#[test]
fn no_key_is_a_missing_key() {
    for header in [None, Some(""), Some("   "), Some("Bearer"), Some("bearer  ")] {
        let problem = verify(header, &keys(), NOW).unwrap_err();
        assert_eq!(problem.code(), ErrorCode::MissingKey, "{header:?}");
    }
}

#[test]
fn what_is_no_token_is_an_invalid_key() {
    let token = issue("a", 1, &claims(None));
    let long = format!("Bearer {}", "x".repeat(AUTHORIZATION_MAX_BYTES));
    let basic = format!("Basic {token}");
    let twice = format!("Bearer {token} {token}");
    let (message, _) = token.rsplit_once('.').unwrap();
    let unsigned = format!("{message}.");
    for header in ["x", "a.b", "a.b.c", "..", "é.é.é", "\0", &long, &basic, &twice, message, &unsigned] {
        assert_eq!(code_of(header), ErrorCode::InvalidKey, "{header}");
    }
}

#[test]
fn both_live_keys_verify_and_a_retired_one_does_not() {
    let (first, second) = (issue("a", 1, &claims(None)), issue("b", 2, &claims(None)));
    assert!(verify(Some(&first), &keys(), NOW).is_ok());
    assert!(verify(Some(&second), &keys(), NOW).is_ok());
    let rotated = KeySet::new(vec![signer("b", 2).public(), signer("c", 3).public()]).unwrap();
    assert_eq!(verify(Some(&first), &rotated, NOW).unwrap_err().code(), ErrorCode::InvalidKey);
    assert!(verify(Some(&second), &rotated, NOW).is_ok());
}

#[test]
fn another_installations_key_is_refused_whatever_kid_it_names() {
    for kid in ["a", "b", "c", ""] {
        assert_eq!(code_of(&issue(kid, 9, &claims(None))), ErrorCode::InvalidKey);
    }
    // Signed by a valid key, but under the id of another key.
    assert_eq!(code_of(&issue("b", 1, &claims(None))), ErrorCode::InvalidKey);
}

#[test]
fn no_other_algorithm_is_accepted_even_with_a_good_signature() {
    for alg in ["none", "None", "NONE", "", "HS256", "HS512", "RS256", "ES256", "PS256", "eddsa", "Ed25519"] {
        let token = signed(&with(good_header(), "alg", json!(alg)), &good_claims());
        assert_eq!(code_of(&token), ErrorCode::InvalidKey, "{alg}");
        let (message, _) = token.rsplit_once('.').unwrap();
        assert_eq!(code_of(&format!("{message}.")), ErrorCode::InvalidKey, "{alg} without signature");
    }
}

#[test]
fn hs256_signed_with_the_public_key_is_refused() {
    let header = with(good_header(), "alg", json!("HS256"));
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", part(&header), part(&good_claims()));
    let public = ed25519_dalek::SigningKey::from_bytes(&[1; 32]).verifying_key().to_bytes();
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(hmac_sha256(&public, message.as_bytes())));
    assert_eq!(code_of(&token), ErrorCode::InvalidKey);
}

/// Computes HMAC-SHA256 (RFC 2104) for keys of up to 64 bytes.
fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |fill: u8| -> Vec<u8> { (0..64).map(|i| key.get(i).copied().unwrap_or(0) ^ fill).collect() };
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).into()
}

#[test]
fn a_header_without_kid_or_with_critical_extensions_is_refused() {
    for header in [
        without(good_header(), "kid"),
        with(good_header(), "kid", json!(null)),
        with(good_header(), "kid", json!(["a"])),
        with(good_header(), "crit", json!(["exp"])),
        without(good_header(), "alg"),
    ] {
        assert_eq!(code_of(&signed(&header, &good_claims())), ErrorCode::InvalidKey, "{header}");
    }
    assert!(verify(Some(&signed(&good_header(), &good_claims())), &keys(), NOW).is_ok());
}

#[test]
fn claims_that_we_never_issue_are_refused_though_signed() {
    let id = key_id().to_string();
    let changed = [
        ("iss", json!("Selkie")),
        ("iss", json!(["selkie"])),
        ("prj", json!("a_b")),
        ("prj", json!("")),
        ("prj", json!(7)),
        ("acc", json!("admin")),
        ("acc", json!("FULL")),
        ("sub", json!("")),
        ("sub", json!(id.to_uppercase())),
        ("sub", json!(format!("{{{id}}}"))),
        ("sub", json!("01936f2a-7b3c-4def-8abc-0123456789ab")),
        ("iat", json!(NOW + CLOCK_SKEW_MAX_SECONDS + 1)),
        ("iat", json!(-1)),
        ("iat", json!("0")),
        ("iat", json!(u64::MAX)),
        ("exp", json!("never")),
        ("exp", json!(-1)),
        ("exp", json!(1e30)),
    ];
    for (field, value) in changed {
        let token = signed(&good_header(), &with(good_claims(), field, value.clone()));
        assert_eq!(code_of(&token), ErrorCode::InvalidKey, "{field} = {value}");
    }
    for field in ["iss", "sub", "prj", "acc", "iat"] {
        let token = signed(&good_header(), &without(good_claims(), field));
        assert_eq!(code_of(&token), ErrorCode::InvalidKey, "no {field}");
    }
    let skewed = with(good_claims(), "iat", json!(NOW + CLOCK_SKEW_MAX_SECONDS));
    assert!(verify(Some(&signed(&good_header(), &skewed)), &keys(), NOW).is_ok());
}

#[test]
fn a_key_expires_in_the_very_second_of_exp() {
    let token = issue("a", 1, &claims(Some(NOW)));
    assert!(verify(Some(&token), &keys(), NOW - 1).is_ok());
    assert_eq!(verify(Some(&token), &keys(), NOW).unwrap_err().code(), ErrorCode::ExpiredKey);
    // A forged token is reported as invalid rather than expired.
    assert_eq!(code_of(&issue("a", 9, &claims(Some(1)))), ErrorCode::InvalidKey);
}

#[test]
fn a_jwk_set_is_read_back_as_it_was_written() {
    let text = keys().to_jwks();
    assert_eq!(KeySet::from_jwks(&text).unwrap(), keys());
    assert_eq!(keys().kids().collect::<Vec<_>>(), ["a", "b"]);
    let token = issue("b", 2, &claims(None));
    assert!(verify(Some(&token), &KeySet::from_jwks(&text).unwrap(), NOW).is_ok());
}

#[test]
fn a_doubtful_jwk_set_is_refused_with_its_reason() {
    let set: Value = serde_json::from_str(&keys().to_jwks()).unwrap();
    let key = set["keys"][0].clone();
    let name = || "a".to_owned();
    let cases = [
        (json!({"keys": []}), KeySetError::Count(0)),
        (json!({"keys": [key, key, key, key, key]}), KeySetError::Count(5)),
        (json!({"keys": [key, key]}), KeySetError::KeyId),
        (json!({"keys": [without(key.clone(), "kid")]}), KeySetError::KeyId),
        (json!({"keys": [with(key.clone(), "kid", json!("a b"))]}), KeySetError::KeyId),
        (json!({"keys": [with(key.clone(), "d", json!("AAAA"))]}), KeySetError::Private(name())),
        (json!({"keys": [with(key.clone(), "crv", json!("X25519"))]}), KeySetError::Unsupported(name())),
        (json!({"keys": [with(key.clone(), "kty", json!("oct"))]}), KeySetError::Unsupported(name())),
        (json!({"keys": [with(key.clone(), "use", json!("enc"))]}), KeySetError::Unsupported(name())),
        (json!({"keys": [with(key.clone(), "x", json!("AAAA"))]}), KeySetError::Malformed(name())),
        // The neutral element of the curve: any signature would be valid under this key.
        (json!({"keys": [with(key, "x", json!(format!("AQ{}", "A".repeat(41))))]}), KeySetError::Malformed(name())),
        (json!([]), KeySetError::NotAJwkSet),
    ];
    for (set, expected) in cases {
        assert_eq!(KeySet::from_jwks(&set.to_string()).unwrap_err(), expected, "{set}");
    }
    assert_eq!(KeySet::from_jwks("").unwrap_err(), KeySetError::NotAJwkSet);
}

#[test]
fn a_key_set_takes_as_many_keys_and_as_long_ids_as_it_may() {
    let named = |count: usize| (0..count).map(|n| signer(&format!("k{n}"), n as u8).public());
    let limit = SIGNING_KEYS_MAX_COUNT;
    assert_eq!(KeySet::new(named(limit).collect()).unwrap().kids().count(), limit);
    let refused = KeySet::new(named(limit + 1).collect()).unwrap_err();
    assert_eq!(refused, KeySetError::Count(limit + 1));
    let kid = |length| KeySet::new(vec![signer(&"k".repeat(length), 1).public()]);
    assert!(kid(64).is_ok() && kid(1).is_ok());
    assert_eq!(kid(65).unwrap_err(), KeySetError::KeyId);
    assert_eq!(kid(0).unwrap_err(), KeySetError::KeyId);
}

#[test]
fn key_sets_and_their_fingerprints_differ_by_id_and_by_bytes() {
    let set = |kid, byte| KeySet::new(vec![signer(kid, byte).public()]).unwrap();
    let one = set("a", 1);
    assert_eq!((&set("a", 1), set("a", 1).fingerprint()), (&one, one.fingerprint()));
    for other in [set("b", 1), set("a", 2), keys()] {
        assert_ne!(other, one);
        assert_ne!(other.fingerprint(), one.fingerprint());
    }
}

#[test]
fn neither_key_nor_seed_shows_in_debug_output() {
    let key = signer("a", 7);
    assert_eq!(format!("{key:?}"), r#"SigningKey { kid: "a", .. }"#);
    assert_eq!(format!("{:?}", keys()), r#"["a", "b"]"#);
}

#[test]
fn a_kept_token_still_expires() {
    let token = issue("a", 1, &claims(Some(NOW + 5)));
    let mut cache = TokenCache::new(keys(), 8);
    let first = cache.verify(Some(&token), NOW).unwrap();
    assert_eq!(cache.verify(Some(&token), NOW + 4).unwrap(), first);
    assert_eq!(cache.verify(Some(&token), NOW + 5).unwrap_err().code(), ErrorCode::ExpiredKey);
    // The cache also finds tokens in its old generation.
    for n in 0..8 {
        let claims = KeyClaims::new(key_id(), &project(), Access::Full, n, None);
        let other = issue("a", 1, &claims);
        cache.verify(Some(&other), NOW).unwrap();
    }
    assert_eq!(cache.verify(Some(&token), NOW + 5).unwrap_err().code(), ErrorCode::ExpiredKey);
}

#[test]
fn a_cache_counts_its_tokens_and_holds_one_at_least() {
    let mut cache = TokenCache::new(keys(), 0);
    assert!(cache.is_empty());
    let tokens = [0, 1].map(|n| issue("a", 1, &KeyClaims::new(key_id(), &project(), Access::Full, n, None)));
    for (count, token) in (1..).zip(&tokens) {
        cache.verify(Some(token), NOW).unwrap();
        assert_eq!(cache.len(), count);
        assert!(!cache.is_empty());
    }
    // The first token, now in the old generation, is moved and not counted twice.
    cache.verify(Some(&tokens[0]), NOW).unwrap();
    assert_eq!(cache.len(), 2);
    assert!(!format!("{cache:?}").contains(&tokens[0]));
}

#[test]
fn the_cache_stays_bounded_and_keeps_no_refusal() {
    let mut cache = TokenCache::new(keys(), 4);
    for n in 0..50 {
        let claims = KeyClaims::new(key_id(), &project(), Access::Full, n, None);
        let [good, forged] = [1, 9].map(|byte| issue("a", byte, &claims));
        assert!(cache.verify(Some(&good), NOW).is_ok());
        assert!(cache.verify(Some(&good), NOW).is_ok());
        assert!(cache.verify(Some(&forged), NOW).is_err());
        assert!(cache.len() <= 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_token_changed_anywhere_is_invalid(at in 0usize..300, byte in 0u8..128) {
        let token = issue("a", 1, &claims(None));
        let mut bytes = token.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let tampered = String::from_utf8(bytes).unwrap();
        let outcome = verify(Some(&tampered), &keys(), NOW);
        // White space at either end is not part of the token; any other added character is.
        prop_assert_eq!(outcome.is_ok(), tampered == token);
    }

    #[test]
    fn a_token_cut_or_grown_is_invalid(at in 0usize..300, junk in "[A-Za-z0-9_.=-]{1,8}") {
        let token = issue("a", 1, &claims(None));
        let at = at % token.len();
        prop_assert_eq!(code_of(&token[..at.max(1)]), ErrorCode::InvalidKey);
        let grown = format!("{}{junk}{}", &token[..at], &token[at..]);
        prop_assert_eq!(code_of(&grown), ErrorCode::InvalidKey);
    }

    #[test]
    fn no_header_makes_verification_panic(header in ".{0,200}") {
        prop_assert!(verify(Some(&header), &keys(), NOW).is_err());
    }
}

#[test]
fn a_link_is_no_key_and_lives_as_long_as_it_says() {
    let link = issue("a", 1, &KeyClaims::new(key_id(), &project(), Access::Full, NOW, Some(NOW + 60)).of_link());
    let token = Token::from_header(Some(&link)).unwrap();
    assert!(token.of_user().is_some_and(|token| token.is_of_link()));
    assert_eq!(code_of(&link), ErrorCode::InvalidKey);
    let code = |token: Token<'_>, now| token.verify_link(&keys(), now).map_err(|problem| problem.code());
    assert_eq!(code(token, NOW + 59).unwrap().key_id(), key_id());
    assert_eq!(code(token, NOW + 60), Err(ErrorCode::ExpiredKey));
    let key = issue("a", 1, &claims(None));
    assert_eq!(code(Token::from_header(Some(&key)).unwrap(), NOW), Err(ErrorCode::InvalidKey));
    let foreign = issue("a", 3, &claims(None).of_link());
    assert_eq!(code(Token::from_header(Some(&foreign)).unwrap(), NOW), Err(ErrorCode::InvalidKey));
}
