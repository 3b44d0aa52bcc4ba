//! Tokens that this installation did not sign, or not in the required way: both hosts must refuse them.

use crate::host::Host;
use crate::service::shared;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64};
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256, Sha512};
use shared::error::ErrorCode;

cases! {
    Both: [
        a_token_without_a_signature_is_refused,
        a_token_signed_with_the_public_key_as_a_secret_is_refused,
        a_token_of_another_installation_is_refused,
        a_token_whose_claims_were_changed_is_refused,
        a_token_whose_signature_was_changed_is_refused,
        a_token_that_carries_its_own_key_is_refused,
        what_is_no_token_is_refused,
    ],
}

/// Returns the claims of a token without verifying it.
pub(crate) fn claims(token: &str) -> Value {
    part(token, 1)
}

fn part(token: &str, index: usize) -> Value {
    let text = token.split('.').nth(index).expect("three parts");
    serde_json::from_slice(&BASE64.decode(text).expect("base64url")).expect("JSON")
}

fn encode(value: &Value) -> String {
    BASE64.encode(value.to_string())
}

async fn must_be_refused(host: Host, what: &str, token: &str) {
    for call in [host.get("/api/v1/crud/demo/posts?limit=1"), host.sql(&json!({"query": "SELECT 1"}))] {
        let answer = call.key(token).send().await;
        let code = answer.code();
        assert_eq!(code, "invalid_key", "{what}: {answer}");
        assert_eq!(answer.status, 401, "{what}: {answer}");
    }
}

async fn a_token_without_a_signature_is_refused(host: Host) {
    let (header, claims) = (part(&shared().full_key, 0), claims(&shared().full_key));
    for alg in ["none", "None", "NONE", "nOnE", ""] {
        let mut header = header.clone();
        header["alg"] = json!(alg);
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = shared().full_key.rsplit('.').next().unwrap();
        must_be_refused(host, "no signature", &format!("{signed}.")).await;
        must_be_refused(host, "no signature part", &signed).await;
        must_be_refused(host, "another token's signature", &format!("{signed}.{signature}")).await;
    }
}

async fn a_token_signed_with_the_public_key_as_a_secret_is_refused(host: Host) {
    let claims = claims(&shared().full_key);
    for alg in ["HS256", "HS512", "EdDSA"] {
        let mut header = part(&shared().full_key, 0);
        header["alg"] = json!(alg);
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        for secret in public_key_texts() {
            let short = hmac_sha256(&secret, signed.as_bytes());
            must_be_refused(host, alg, &format!("{signed}.{}", BASE64.encode(short))).await;
            let mut long = Hmac::<Sha512>::new_from_slice(&secret).unwrap();
            long.update(signed.as_bytes());
            must_be_refused(host, alg, &format!("{signed}.{}", BASE64.encode(long.finalize().into_bytes()))).await;
        }
    }
}

pub(crate) fn hmac_sha256(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

/// Returns the installation's public key in every form that an attacker might try as an HMAC secret.
fn public_key_texts() -> Vec<Vec<u8>> {
    let set: Value = serde_json::from_str(&shared().cli_ok(&["key", "jwks"])).expect("a JWK set");
    let keys = set["keys"].as_array().expect("keys");
    let found: Vec<String> = keys.iter().map(|key| key["x"].as_str().expect("an x").to_owned()).collect();
    let mut texts = Vec::new();
    for key in &found {
        let raw = BASE64.decode(key).unwrap_or_default();
        let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        der.extend_from_slice(&raw);
        texts.push(
            format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(&der)).into_bytes(),
        );
        texts.push(key.clone().into_bytes());
        texts.extend([raw, der]);
    }
    texts.push(set.to_string().into_bytes());
    texts.extend(keys.iter().map(|key| key.to_string().into_bytes()));
    texts.extend([Vec::new(), b"selkie".to_vec()]);
    texts
}

async fn a_token_of_another_installation_is_refused(host: Host) {
    let foreign = SigningKey::from_bytes(&Sha256::digest(b"another installation").into());
    let claims = claims(&shared().full_key);
    let own = part(&shared().full_key, 0);
    let mut other_kid = own.clone();
    other_kid["kid"] = json!("another");
    let mut no_kid = own.clone();
    no_kid.as_object_mut().unwrap().remove("kid");
    for header in [own, other_kid, no_kid] {
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = foreign.sign(signed.as_bytes()).to_bytes();
        must_be_refused(host, "foreign", &format!("{signed}.{}", BASE64.encode(signature))).await;
    }
}

async fn a_token_whose_claims_were_changed_is_refused(host: Host) {
    let parts: Vec<&str> = shared().read_key.split('.').collect();
    let mut claims = claims(&shared().read_key);
    claims["acc"] = json!("full");
    must_be_refused(host, "promoted", &format!("{}.{}.{}", parts[0], encode(&claims), parts[2])).await;
    let full: Vec<&str> = shared().full_key.split('.').collect();
    must_be_refused(host, "mixed", &format!("{}.{}.{}", parts[0], full[1], parts[2])).await;
}

async fn a_token_whose_signature_was_changed_is_refused(host: Host) {
    let (signed, signature) = shared().full_key.rsplit_once('.').unwrap();
    let bytes = BASE64.decode(signature).unwrap();
    for index in [0, 31, 32, 63] {
        let mut changed = bytes.clone();
        changed[index] ^= 1;
        must_be_refused(host, "a bit", &format!("{signed}.{}", BASE64.encode(&changed))).await;
    }
    must_be_refused(host, "cut", &format!("{signed}.{}", BASE64.encode(&bytes[..63]))).await;
    must_be_refused(host, "zeros", &format!("{signed}.{}", BASE64.encode([0_u8; 64]))).await;
    must_be_refused(host, "padded", &format!("{signed}.{signature}==")).await;
    must_be_refused(host, "four parts", &format!("{signed}.{signature}.{signature}")).await;
}

async fn a_token_that_carries_its_own_key_is_refused(host: Host) {
    let own = SigningKey::from_bytes(&Sha256::digest(b"brought along").into());
    let x = BASE64.encode(own.verifying_key().to_bytes());
    let claims = claims(&shared().full_key);
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "mine", "alg": "EdDSA", "use": "sig"});
    let urls = json!({"alg": "EdDSA", "typ": "JWT", "kid": "mine", "jku": "http://127.0.0.1:1/jwks"});
    for header in [json!({"alg": "EdDSA", "typ": "JWT", "kid": "mine", "jwk": jwk}), urls] {
        let signed = format!("{}.{}", encode(&header), encode(&claims));
        let signature = own.sign(signed.as_bytes()).to_bytes();
        must_be_refused(host, "own key", &format!("{signed}.{}", BASE64.encode(signature))).await;
    }
}

async fn what_is_no_token_is_refused(host: Host) {
    let long = "a".repeat(5_000);
    let many_dots = "a.".repeat(500);
    for token in
        ["x", "a.b.c", "..", "...", "eyJ.eyJ.eyJ", "Bearer", "null", &long, &many_dots, "a b c", "%00", "\"x\""]
    {
        let answer = host.get("/api/v1/crud/demo/posts").authorization(&format!("Bearer {token}")).send().await;
        answer.refused(ErrorCode::InvalidKey);
        let answer = host.get("/api/v1/crud/demo/posts").authorization(token).send().await;
        // "Bearer" without a token counts as a missing key.
        answer.refused(if token == "Bearer" { ErrorCode::MissingKey } else { ErrorCode::InvalidKey });
    }
    let other_scheme = host.get("/api/v1/crud/demo/posts").authorization("Basic dXNlcjpwYXNz").send().await;
    other_scheme.refused(ErrorCode::InvalidKey);
}
