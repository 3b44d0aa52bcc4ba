//! Tests JWK sets with usable and unusable keys, and the search for the key of a token.

use serde_json::{Value, json};

use super::*;

/// Returns a JWK of the algorithm. Its bytes need not form a real key, since nothing is verified here.
fn jwk(alg: &str, kid: &str) -> Value {
    let number = |bytes: usize| URL_SAFE_NO_PAD.encode(vec![0xAB; bytes]);
    let key = match alg {
        "EdDSA" => json!({"kty": "OKP", "crv": "Ed25519", "x": number(32)}),
        "ES256" => json!({"kty": "EC", "crv": "P-256", "x": number(32), "y": number(32)}),
        _ => json!({"kty": "RSA", "n": number(256), "e": "AQAB"}),
    };
    with(with(with(key, "kid", json!(kid)), "use", json!("sig")), "alg", json!(alg))
}

fn set(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

fn fault(jwk: &Value) -> KeyFault {
    let (keys, unusable) = VerificationKeys::parse(&set(std::slice::from_ref(jwk))).unwrap();
    assert!(keys.is_empty(), "{jwk}");
    unusable[0].fault
}

#[test]
fn a_key_that_can_not_verify_is_told_with_its_fault() {
    let [ed25519, p256, rsa] = ["EdDSA", "ES256", "RS256"].map(|alg| jwk(alg, "k"));
    let modulus = |bytes: usize| json!(URL_SAFE_NO_PAD.encode(vec![0xFF; bytes]));
    for (jwk, expected) in [
        (with(ed25519.clone(), "d", json!("AAAA")), KeyFault::Secret),
        (with(rsa.clone(), "d", json!("AAAA")), KeyFault::Secret),
        (json!({"kty": "oct", "k": "AAAA", "alg": "HS256"}), KeyFault::Secret),
        (json!({"kty": "oct"}), KeyFault::Secret),
        (with(ed25519.clone(), "crv", json!("X25519")), KeyFault::Type),
        (with(p256.clone(), "crv", json!("P-384")), KeyFault::Type),
        (with(p256.clone(), "crv", json!(null)), KeyFault::Type),
        (json!({"kty": "X"}), KeyFault::Type),
        (with(rsa.clone(), "alg", json!("RS512")), KeyFault::Algorithm),
        (with(rsa.clone(), "alg", json!("PS256")), KeyFault::Algorithm),
        (with(rsa.clone(), "alg", json!("HS256")), KeyFault::Algorithm),
        (with(p256.clone(), "alg", json!("EdDSA")), KeyFault::Algorithm),
        (with(rsa.clone(), "use", json!("enc")), KeyFault::Use),
        (with(rsa.clone(), "key_ops", json!(["sign"])), KeyFault::Use),
        (with(rsa.clone(), "n", modulus(255)), KeyFault::Length),
        (with(rsa.clone(), "n", modulus(1025)), KeyFault::Length),
        (with(rsa.clone(), "n", json!("")), KeyFault::Malformed),
        (with(rsa.clone(), "n", json!(7)), KeyFault::Malformed),
        (with(rsa.clone(), "kid", json!(7)), KeyFault::Malformed),
        (with(rsa.clone(), "key_ops", json!("verify")), KeyFault::Malformed),
        (with(rsa, "e", json!(null)), KeyFault::Malformed),
        (with(p256.clone(), "y", json!("AAAA")), KeyFault::Malformed),
        (with(p256, "x", json!("+/+/")), KeyFault::Malformed),
        (with(ed25519, "x", json!(null)), KeyFault::Malformed),
        (json!({}), KeyFault::Malformed),
        (json!(7), KeyFault::Malformed),
    ] {
        assert_eq!(fault(&jwk), expected, "{jwk}");
    }
}

#[test]
fn usable_keys_are_kept_beside_others() {
    let other = json!({"kty": "EC", "crv": "P-521", "kid": "b"});
    let keys = [jwk("EdDSA", "a"), other, jwk("ES256", "a"), jwk("EdDSA", "a"), json!({})];
    let (keys, unusable) = VerificationKeys::parse(&set(&keys)).unwrap();
    assert_eq!(keys.len(), 2);
    let unusable: Vec<_> = unusable.iter().map(|key| (&*key.name, key.fault)).collect();
    let expected = [("\"b\"", KeyFault::Type), ("\"a\"", KeyFault::Repeated), ("number 5", KeyFault::Malformed)];
    assert_eq!(unusable, expected);
}

#[test]
fn a_key_is_found_by_its_id_and_its_own_algorithm() {
    let set = set(&[jwk("EdDSA", "a"), jwk("ES256", "b"), jwk("ES256", "c")]);
    let (keys, _) = VerificationKeys::parse(&set).unwrap();
    let find = |alg: &str, kid: Option<&str>| {
        let header = serde_json::from_value(json!({"alg": alg, "kid": kid})).unwrap();
        keys.find(&header).map(|key| key.kid.clone().unwrap())
    };
    assert_eq!(find("EdDSA", Some("a")), Ok("a".to_owned()));
    assert_eq!(find("ES256", Some("c")), Ok("c".to_owned()));
    assert_eq!(find("EdDSA", None), Ok("a".to_owned()));
    // Two keys could have signed the token.
    assert_eq!(find("ES256", None), Err(NoKey::Unfit));
    assert_eq!(find("ES256", Some("a")), Err(NoKey::Unfit));
    assert_eq!(find("HS256", Some("a")), Err(NoKey::Unfit));
    assert_eq!(find("ES256", Some("d")), Err(NoKey::UnknownId));
    assert_eq!(find("none", Some("")), Err(NoKey::UnknownId));
}

#[test]
fn a_set_beyond_a_limit_is_refused() {
    let keys = |count: usize| set(&vec![json!({"kty": "X"}); count]);
    assert!(VerificationKeys::parse(&keys(JWKS_KEYS_MAX_COUNT)).is_ok());
    let one_more = JWKS_KEYS_MAX_COUNT + 1;
    assert_eq!(VerificationKeys::parse(&keys(one_more)), Err(JwkSetFault::TooMany(one_more)));
    let padded = |bytes: usize| " ".repeat(bytes - keys(1).len()) + &keys(1);
    assert!(VerificationKeys::parse(&padded(JWKS_MAX_BYTES)).is_ok());
    assert_eq!(VerificationKeys::parse(&padded(JWKS_MAX_BYTES + 1)), Err(JwkSetFault::TooLarge));
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":null}"#] {
        assert_eq!(VerificationKeys::parse(text), Err(JwkSetFault::NotAJwkSet), "{text}");
    }
}

#[test]
fn a_key_is_printed_with_nothing_but_its_id_and_public_part() {
    for alg in ["EdDSA", "ES256", "RS256"] {
        let mut bare = jwk(alg, "k");
        let full = with(bare.clone(), "x5c", json!(["A"]));
        bare.as_object_mut().unwrap().retain(|name, _| name != "use" && name != "alg");
        let (keys, _) = VerificationKeys::parse(&set(&[full])).unwrap();
        assert_eq!(keys.to_jwks(), json!({"keys": [bare]}), "{alg}");
    }
}
