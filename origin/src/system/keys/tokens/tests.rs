//! Tests tokens of each algorithm, and attacks on their verification.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use shared::ident::ProjectName;
use shared::key::{Access, Token, UserIdentity, subject_id};
use shared::limits::USER_TOKEN_LEEWAY_SECONDS;

use super::*;

pub(super) const NOW: u64 = 1_790_000_000;
const ISS: &str = "https://id.example";

/// A 2,048-bit RSA key of these tests only, as `ring` can't generate one.
const RSA: &[u8] = include_bytes!("tests/rsa.der");

pub(super) enum Signer {
    EdDSA(Ed25519KeyPair),
    ES256(EcdsaKeyPair),
    RS256(Box<RsaKeyPair>),
}

impl Signer {
    pub(super) fn new(alg: &str) -> Self {
        let random = SystemRandom::new();
        match alg {
            "EdDSA" => {
                let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Self::EdDSA(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
            }
            "ES256" => {
                let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let document = EcdsaKeyPair::generate_pkcs8(curve, &random).unwrap();
                Self::ES256(EcdsaKeyPair::from_pkcs8(curve, document.as_ref(), &random).unwrap())
            }
            _ => Self::RS256(Box::new(RsaKeyPair::from_der(RSA).unwrap())),
        }
    }

    pub(super) fn alg(&self) -> &'static str {
        match self {
            Self::EdDSA(_) => "EdDSA",
            Self::ES256(_) => "ES256",
            Self::RS256(_) => "RS256",
        }
    }

    pub(super) fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut jwk = match self {
            Self::EdDSA(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref())}),
            Self::ES256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": text(x), "y": text(y)})
            }
            Self::RS256(pair) => {
                let RsaPublicKeyComponents::<Vec<u8>> { n, e } = pair.public().into();
                json!({"kty": "RSA", "n": text(&n), "e": text(&e)})
            }
        };
        jwk["kid"] = kid.into();
        jwk["use"] = "sig".into();
        jwk["alg"] = self.alg().into();
        jwk
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::EdDSA(pair) => pair.sign(message).as_ref().to_vec(),
            Self::ES256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::RS256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.signature(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn token(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": self.alg(), "kid": "k", "typ": "JWT"}), claims)
    }
}

fn message(header: &Value, claims: &Value) -> String {
    let [header, claims] = [header, claims].map(|json| URL_SAFE_NO_PAD.encode(json.to_string()));
    format!("{header}.{claims}")
}

pub(super) fn set(keys: &[Value]) -> String {
    json!({"keys": keys}).to_string()
}

fn claims() -> Value {
    json!({"iss": ISS, "aud": "shop", "sub": "7", "exp": NOW + 300, "role": "customer"})
}

fn with(mut object: Value, field: &str, value: impl Into<Value>) -> Value {
    object[field] = value.into();
    object
}

fn without(mut object: Value, field: &str) -> Value {
    object.as_object_mut().unwrap().remove(field);
    object
}

fn row(project: &str, audience: &str, keys: IssuerKeys) -> IssuerRow {
    IssuerRow {
        project: ProjectName::parse(project).unwrap(),
        issuer: ISS.to_owned(),
        audience: audience.to_owned(),
        keys,
        role_claim: Some("role".to_owned()),
        role: None,
        role_map: BTreeMap::new(),
        client_id: None,
        created_at: 1,
    }
}

pub(super) fn remote_row(url: &str) -> IssuerRow {
    row("shop", "shop", IssuerKeys::Url(url.to_owned()))
}

fn shop(signer: &Signer) -> Issuers {
    Issuers::new(vec![row("shop", "shop", IssuerKeys::Set(set(&[signer.jwk("k")])))], &Issuers::default())
}

/// Verifies a token as the registry does, and returns its project, subject and grant.
async fn verify(issuers: &Issuers, text: &str) -> Result<(String, UserIdentity, Grant), Problem> {
    let header = format!("Bearer {text}");
    let token = Token::from_header(Some(&header))?.of_user().ok_or_else(untrusted)?;
    let issuer = issuers.of(&token)?;
    issuer.check_signature(&token, NOW).await?;
    let identity = token.identify(NOW)?;
    Ok((issuer.row().project.to_string(), identity, issuer.grant(token.into_claims())?))
}

async fn code(issuers: &Issuers, text: &str) -> &'static str {
    verify(issuers, text).await.unwrap_err().code().as_str()
}

const ALGORITHMS: [&str; 3] = ["EdDSA", "ES256", "RS256"];

#[tokio::test]
async fn a_token_of_each_algorithm_is_accepted_with_its_claims() {
    for signer in ALGORITHMS.map(Signer::new) {
        let (project, identity, grant) = verify(&shop(&signer), &signer.token(&claims())).await.unwrap();
        assert_eq!((&*project, identity.expires_at), ("shop", NOW + 300 + USER_TOKEN_LEEWAY_SECONDS));
        assert_eq!(identity.subject, subject_id(ISS, "7"));
        let Grant::Role(grant) = grant else { panic!("{grant:?}") };
        assert_eq!((grant.role.as_str(), &grant.claims["sub"]), ("customer", &json!("7")));
    }
}

#[tokio::test]
async fn a_changed_or_foreign_signature_is_refused() {
    for (signer, other) in [("EdDSA", "ES256"), ("ES256", "EdDSA"), ("RS256", "EdDSA")] {
        let (signer, other) = (Signer::new(signer), Signer::new(other));
        let issuers = shop(&signer);
        let good = signer.token(&claims());
        let (message, signature) = good.rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        bytes[10] ^= 1;
        let changed = format!("{message}.{}", URL_SAFE_NO_PAD.encode(&bytes));
        let header = json!({"alg": signer.alg(), "kid": "k"});
        let admin = message_with(&good, &with(claims(), "role", "admin"));
        for token in [changed, format!("{message}.AA"), other.sign(&header, &claims()), admin] {
            assert_eq!(code(&issuers, &token).await, "invalid_key", "{token}");
        }
    }
    // Another key of the same type.
    for alg in ["EdDSA", "ES256"] {
        let issuers = shop(&Signer::new(alg));
        assert_eq!(code(&issuers, &Signer::new(alg).token(&claims())).await, "invalid_key");
    }
}

/// Returns the token with other claims but its old signature.
fn message_with(token: &str, claims: &Value) -> String {
    let parts: Vec<_> = token.split('.').collect();
    format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(claims.to_string()), parts[2])
}

#[tokio::test]
async fn the_header_can_not_choose_the_algorithm() {
    for signer in ALGORITHMS.map(Signer::new) {
        let issuers = shop(&signer);
        let good = signer.token(&claims());
        let (_, signature) = good.rsplit_once('.').unwrap();
        for alg in ["none", "None", "", "HS256", "HS512", "RS256", "ES256", "EdDSA", "PS256", "RS512", "ES384"] {
            let header = json!({"alg": alg, "kid": "k"});
            let unsigned = message(&header, &claims());
            let others = [format!("{unsigned}.{signature}"), format!("{unsigned}."), unsigned];
            for token in others {
                assert_eq!(code(&issuers, &token).await, "invalid_key", "{alg} for {}", signer.alg());
            }
            // The key decides the algorithm, even if the signature over this header is good.
            let outcome = verify(&issuers, &signer.sign(&header, &claims())).await;
            assert_eq!(outcome.is_ok(), alg == signer.alg(), "{alg} for {}", signer.alg());
        }
    }
}

#[tokio::test]
async fn hs256_with_the_public_key_as_its_secret_is_refused() {
    for signer in ALGORITHMS.map(Signer::new) {
        let jwk = signer.jwk("k");
        let decoded = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap_or_default()).unwrap();
        let secrets =
            [decoded("x"), decoded("n"), jwk.to_string().into_bytes(), set(std::slice::from_ref(&jwk)).into_bytes()];
        for secret in secrets {
            let unsigned = message(&json!({"alg": "HS256", "kid": "k"}), &claims());
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
            let tag = ring::hmac::sign(&key, unsigned.as_bytes());
            let token = format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
            assert_eq!(code(&shop(&signer), &token).await, "invalid_key");
        }
    }
}

#[tokio::test]
async fn a_key_in_the_header_is_not_used() {
    let (signer, forger) = (Signer::new("EdDSA"), Signer::new("EdDSA"));
    for (name, value) in [("jwk", forger.jwk("k")), ("jku", json!("https://forger.example")), ("x5c", json!(["A"]))] {
        let header = with(json!({"alg": "EdDSA", "kid": "k"}), name, value);
        assert_eq!(code(&shop(&signer), &forger.sign(&header, &claims())).await, "invalid_key", "{name}");
    }
}

#[tokio::test]
async fn a_header_for_another_purpose_is_refused() {
    let signer = Signer::new("ES256");
    let header = json!({"alg": "ES256", "kid": "k"});
    let changed = [("crit", json!(["exp"])), ("typ", json!("logout+jwt")), ("kid", json!("other"))];
    for (name, value) in changed {
        let token = signer.sign(&with(header.clone(), name, value), &claims());
        assert_eq!(code(&shop(&signer), &token).await, "invalid_key", "{name}");
    }
    for typ in ["JWT", "jwt", "at+jwt", "application/at+JWT"] {
        let token = signer.sign(&with(header.clone(), "typ", typ), &claims());
        assert!(verify(&shop(&signer), &token).await.is_ok(), "{typ}");
    }
    // A token without `kid` is accepted if the issuer has only one key of the algorithm.
    assert!(verify(&shop(&signer), &signer.sign(&without(header, "kid"), &claims())).await.is_ok());
}

#[tokio::test]
async fn issuer_and_audience_must_be_those_of_a_project() {
    let signer = Signer::new("EdDSA");
    let issuers = shop(&signer);
    for audience in [json!(["x", "shop"]), json!(["shop"])] {
        assert!(verify(&issuers, &signer.token(&with(claims(), "aud", audience))).await.is_ok());
    }
    for (name, value) in [
        ("aud", json!("Shop")),
        ("aud", json!("shop ")),
        ("aud", json!([])),
        ("aud", json!(["x", ["shop"]])),
        ("aud", json!(null)),
        ("iss", json!("https://id.example/")),
        ("iss", json!("https://other.example")),
        ("iss", json!("selkie")),
    ] {
        let token = signer.token(&with(claims(), name, value.clone()));
        assert_eq!(code(&issuers, &token).await, "invalid_key", "{name} {value}");
    }
    for name in ["aud", "iss"] {
        assert_eq!(code(&issuers, &signer.token(&without(claims(), name))).await, "invalid_key", "{name}");
    }
}

#[tokio::test]
async fn a_token_of_one_projects_issuer_is_nothing_in_another_project() {
    let (shop, blog) = (Signer::new("EdDSA"), Signer::new("EdDSA"));
    let key = |signer: &Signer| IssuerKeys::Set(set(&[signer.jwk("k")]));
    let rows = vec![row("blog", "blog", key(&blog)), row("shop", "shop", key(&shop))];
    let issuers = Issuers::new(rows, &Issuers::default());
    let of = |audience: Value| with(claims(), "aud", audience);
    assert_eq!(verify(&issuers, &shop.token(&of(json!("shop")))).await.unwrap().0, "shop");
    assert_eq!(verify(&issuers, &blog.token(&of(json!("blog")))).await.unwrap().0, "blog");
    for token in [shop.token(&of(json!("blog"))), blog.token(&of(json!("shop")))] {
        assert_eq!(code(&issuers, &token).await, "invalid_key");
    }
    // A token with the audiences of both projects is refused, since either project could be meant.
    assert_eq!(code(&issuers, &shop.token(&of(json!(["shop", "blog"])))).await, "invalid_key");
    let twins = vec![row("blog", "shop", key(&shop)), row("shop", "shop", key(&shop))];
    let twins = Issuers::new(twins, &Issuers::default());
    assert_eq!(code(&twins, &shop.token(&claims())).await, "invalid_key");
}

#[tokio::test]
async fn the_times_of_a_token_have_a_minutes_leeway() {
    let signer = Signer::new("EdDSA");
    let issuers = shop(&signer);
    let cases = [
        ("exp", json!(NOW - 59), Ok(())),
        ("exp", json!(NOW - 60), Err("expired_key")),
        ("exp", json!(0), Err("expired_key")),
        ("exp", json!(NOW as f64 + 0.5), Ok(())),
        ("exp", json!(u64::MAX), Ok(())),
        ("exp", json!(1e300), Ok(())),
        ("exp", json!(-1), Err("invalid_key")),
        ("exp", json!(format!("{NOW}0")), Err("invalid_key")),
        ("exp", json!(null), Err("invalid_key")),
        ("nbf", json!(NOW + 60), Ok(())),
        ("nbf", json!(NOW + 61), Err("invalid_key")),
        ("nbf", json!("0"), Err("invalid_key")),
        ("sub", json!(7), Ok(())),
        ("sub", json!(""), Err("invalid_key")),
        ("sub", json!(["7"]), Err("invalid_key")),
    ];
    for (name, value, expected) in cases {
        let outcome = verify(&issuers, &signer.token(&with(claims(), name, value.clone()))).await;
        let outcome = outcome.map(|_| ()).map_err(|problem| problem.code().as_str());
        assert_eq!(outcome, expected, "{name} {value}");
    }
    for name in ["exp", "sub"] {
        assert_eq!(code(&issuers, &signer.token(&without(claims(), name))).await, "invalid_key", "no {name}");
    }
}

#[test]
fn the_role_comes_from_the_claim_by_the_map_or_is_fixed() {
    let role = |name: &str| KeyGrant::Role(RoleName::parse(name).unwrap());
    let issuer = |claim: Option<&str>, fixed: Option<&str>, map: &[(&str, KeyGrant)]| {
        let keys = IssuerKeySource::Fixed(Arc::default());
        let mut row = row("shop", "shop", IssuerKeys::Set(String::new()));
        row.role_claim = claim.map(str::to_owned);
        row.role = fixed.map(|name| RoleName::parse(name).unwrap());
        row.role_map = map.iter().map(|(value, grant)| ((*value).to_owned(), grant.clone())).collect();
        Issuer { row, keys }
    };
    let plain = issuer(Some("role"), None, &[]);
    let fixed = issuer(None, Some("customer"), &[]);
    let either = issuer(Some("role"), Some("customer"), &[("admin", role("editor"))]);
    let mapped = issuer(
        Some("role"),
        None,
        &[("boss", KeyGrant::Access(Access::Full)), ("eye", KeyGrant::Access(Access::Read))],
    );
    let nested = issuer(Some("app_metadata.role"), None, &[]);
    let of_url = issuer(Some("https://example.com/role"), None, &[]);
    let cases = [
        (&plain, json!({"role": "customer"}), Some("customer")),
        // `full` and `read` are only reached through the map.
        (&plain, json!({"role": "full"}), None),
        (&plain, json!({"role": "read"}), None),
        (&plain, json!({"role": "Full"}), None),
        (&plain, json!({"role": ["full"]}), None),
        (&plain, json!({"role": ["customer"]}), None),
        (&plain, json!({"role": 7}), None),
        (&plain, json!({"role": {"a": "customer"}}), None),
        (&plain, json!({}), None),
        (&mapped, json!({"role": "boss"}), Some("full")),
        (&mapped, json!({"role": "eye"}), Some("read")),
        (&mapped, json!({"role": "full"}), None),
        (&mapped, json!({"role": ["x", "eye", "boss"]}), Some("read")),
        (&fixed, json!({"role": "full"}), Some("customer")),
        (&either, json!({}), Some("customer")),
        (&either, json!({"role": null}), Some("customer")),
        (&either, json!({"role": "admin"}), Some("editor")),
        (&either, json!({"role": "full"}), None),
        (&either, json!({"role": ["x", "full"]}), Some("customer")),
        (&either, json!({"role": ["x", "admin"]}), Some("editor")),
        (&nested, json!({"app_metadata": {"role": "customer"}}), Some("customer")),
        (&nested, json!({"app_metadata.role": "author", "app_metadata": {"role": "x"}}), Some("x")),
        (&nested, json!({"app_metadata.role": "author"}), None),
        (&of_url, json!({"https://example.com/role": "author"}), Some("author")),
        (&nested, json!({"app_metadata": "customer"}), None),
    ];
    for (issuer, claims, expected) in cases {
        let granted = issuer.grant(serde_json::from_value(claims.clone()).unwrap());
        let granted = granted.map(|grant| grant.as_str().to_owned());
        match expected {
            Some(name) => assert_eq!(granted.unwrap(), name, "{claims}"),
            None => assert_eq!(granted.unwrap_err().code(), ErrorCode::RoleForbids, "{claims}"),
        }
    }
}

#[test]
fn an_issuer_that_did_not_change_keeps_its_keys() {
    let url = |path: &str| IssuerKeys::Url(format!("https://id.example/{path}"));
    let before = Issuers::new(vec![row("a", "a", url("1")), row("b", "b", url("1"))], &Issuers::default());
    let remote = |issuers: &Issuers, at: usize| Arc::clone(issuers.0[at].remote().unwrap());
    assert!(Arc::ptr_eq(&remote(&before, 0), &remote(&before, 1)));
    let after = Issuers::new(vec![row("a", "other", url("1")), row("b", "b", url("2"))], &before);
    assert!(Arc::ptr_eq(&remote(&before, 0), &remote(&after, 0)));
    assert!(!Arc::ptr_eq(&remote(&before, 1), &remote(&after, 1)));
    assert!(before.0.iter().all(|issuer| before.has(issuer) && !after.has(issuer)));
    // A row that somebody has damaged by hand is left out.
    let broken = vec![row("a", "a", IssuerKeys::Set("{".to_owned())), row("b", "b", url("2"))];
    assert_eq!(Issuers::new(broken, &after).0.len(), 1);
}
