//! Issuers of users' tokens: their keys, their registration, and the tokens that they sign.

use crate::service::shared;
use crate::test_db::unique;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// A 2,048-bit RSA key that only tests use, as `ring` can't generate one.
const RSA: &[u8] = include_bytes!("../../origin/src/system/keys/tokens/tests/rsa.der");

/// The algorithms that Selkie accepts.
pub(crate) const ALGORITHMS: [&str; 3] = ["EdDSA", "ES256", "RS256"];

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs()
}

pub(crate) enum Signer {
    EdDSA(Ed25519KeyPair),
    ES256(EcdsaKeyPair),
    RS256(Box<RsaKeyPair>),
}

impl Signer {
    /// Generates a key for the algorithm. For RS256, it is always the same key.
    pub(crate) fn new(alg: &str) -> Self {
        let random = SystemRandom::new();
        match alg {
            "EdDSA" => {
                let document = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
                Self::EdDSA(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
            }
            "ES256" => {
                let curve = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let document = EcdsaKeyPair::generate_pkcs8(curve, &random).expect("a key");
                Self::ES256(EcdsaKeyPair::from_pkcs8(curve, document.as_ref(), &random).expect("a key"))
            }
            _ => Self::RS256(Box::new(RsaKeyPair::from_der(RSA).expect("a key"))),
        }
    }

    pub(crate) fn alg(&self) -> &'static str {
        match self {
            Self::EdDSA(_) => "EdDSA",
            Self::ES256(_) => "ES256",
            Self::RS256(_) => "RS256",
        }
    }

    pub(crate) fn jwk(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| BASE64.encode(bytes);
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
        jwk
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::EdDSA(pair) => pair.sign(message).as_ref().to_vec(),
            Self::ES256(pair) => pair.sign(&random, message).expect("a signature").as_ref().to_vec(),
            Self::RS256(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("a signature");
                signature
            }
        }
    }

    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |json: &Value| BASE64.encode(json.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = BASE64.encode(self.signature(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

pub(crate) struct Issuer {
    project: String,
    pub(crate) url: String,
    pub(crate) key: Signer,
}

impl Issuer {
    /// Creates an issuer that is not registered yet.
    pub(crate) fn new(project: &str, alg: &str) -> Self {
        let url = format!("https://id.example/{}", unique("issuer"));
        Self { project: project.to_owned(), url, key: Signer::new(alg) }
    }

    /// Registers the issuer, or replaces its settings. `arguments` are the CLI arguments for its keys and roles.
    pub(crate) fn register(&self, arguments: &[&str]) {
        let first = ["issuer", "add", "--project", &self.project, "--issuer", &self.url, "--audience", "app"];
        shared().cli_ok(&[&first, arguments].concat());
    }

    pub(crate) fn publish(&self, keys: &[Value], arguments: &[&str]) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(json!({"keys": keys}).to_string().as_bytes()).expect("a file");
        let path = file.path().to_str().expect("a path");
        self.register(&[&["--jwks", path, "--role-claim", "role"], arguments].concat());
    }

    pub(crate) fn claims(&self, sub: &str) -> Value {
        json!({"iss": self.url, "aud": "app", "sub": sub, "exp": now() + 600})
    }

    pub(crate) fn header(&self) -> Value {
        json!({"alg": self.key.alg(), "kid": "a", "typ": "JWT"})
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.key.sign(&self.header(), claims)
    }
}
