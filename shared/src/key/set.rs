//! The installation's signing keys: public keys, with which edge and origin verify tokens, and private keys, with which
//! the origin and its command line sign. `key.rs` checks the tokens' claims.

use super::{KeyClaims, crypto};
use crate::fingerprint::Fingerprint;
use crate::limits::SIGNING_KEYS_MAX_COUNT;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::VerifyingKey;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use jsonwebtoken::errors::Error as SigningError;

/// Maximum characters of a key's id. Selkie's own ids are UUIDs.
const KID_MAX_CHARS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    #[error("this is no JWK set: a JSON object with a list \"keys\" is expected")]
    NotAJwkSet,
    #[error("a JWK set holds 1 to {SIGNING_KEYS_MAX_COUNT} keys, this one {0}")]
    Count(usize),
    #[error("a key's \"kid\" is missing, malformed or occurs twice")]
    KeyId,
    #[error("the key \"{0}\" is no Ed25519 key for signatures (kty OKP, crv Ed25519)")]
    Unsupported(String),
    #[error("the key \"{0}\" holds no usable Ed25519 public key in \"x\"")]
    Malformed(String),
    #[error("the key \"{0}\" is a private key: it must not be here")]
    Private(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kid: String,
    bytes: [u8; 32],
}

impl PublicKey {
    pub fn kid(&self) -> &str {
        &self.kid
    }
}

#[derive(Clone)]
pub struct KeySet {
    keys: Vec<(PublicKey, DecodingKey)>,
    validation: Validation,
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(key, _)| key.kid())).finish()
    }
}

impl PartialEq for KeySet {
    fn eq(&self, other: &Self) -> bool {
        self.keys.iter().map(|(key, _)| key).eq(other.keys.iter().map(|(key, _)| key))
    }
}

impl KeySet {
    pub fn new(keys: Vec<PublicKey>) -> Result<Self, KeySetError> {
        if keys.is_empty() || keys.len() > SIGNING_KEYS_MAX_COUNT {
            return Err(KeySetError::Count(keys.len()));
        }
        let mut checked: Vec<(PublicKey, DecodingKey)> = Vec::with_capacity(keys.len());
        for key in keys {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
            let well_formed = (1..=KID_MAX_CHARS).contains(&key.kid.len()) && key.kid.bytes().all(allowed);
            if !well_formed || checked.iter().any(|(other, _)| other.kid == key.kid) {
                return Err(KeySetError::KeyId);
            }
            match VerifyingKey::from_bytes(&key.bytes) {
                Ok(point) if !point.is_weak() => {}
                _ => return Err(KeySetError::Malformed(key.kid)),
            }
            let decoding = DecodingKey::from_ed_der(&key.bytes);
            checked.push((key, decoding));
        }
        crypto::install();
        Ok(Self { keys: checked, validation: validation() })
    }

    /// Parses the output of `selkie key jwks` (RFC 7517): 1 to [`SIGNING_KEYS_MAX_COUNT`] Ed25519 public keys.
    pub fn from_jwks(text: &str) -> Result<Self, KeySetError> {
        let set: JwkSet<Jwk> = serde_json::from_str(text).map_err(|_| KeySetError::NotAJwkSet)?;
        if set.keys.len() > SIGNING_KEYS_MAX_COUNT {
            return Err(KeySetError::Count(set.keys.len()));
        }
        Self::new(set.keys.into_iter().map(Jwk::into_public).collect::<Result<_, _>>()?)
    }

    pub fn to_jwks(&self) -> String {
        let keys = self.keys.iter().map(|(key, _)| Jwk::of(key)).collect();
        // Only strings: serialisation to memory can't fail.
        serde_json::to_string(&JwkSet { keys }).unwrap_or_default()
    }

    pub fn fingerprint(&self) -> Fingerprint {
        let keys: Vec<_> = self.keys.iter().map(|(key, _)| (&key.kid, &key.bytes)).collect();
        Fingerprint::of(&keys)
    }

    pub fn kids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(key, _)| key.kid())
    }

    /// Returns the unchecked claims of a token that a key of the set signed. `None` if the token is malformed, has a
    /// `crit` header or another signature.
    pub(super) fn open(&self, token: &str) -> Option<KeyClaims> {
        let header = decode_header(token).ok()?;
        // `crit` lists extensions that the verifier must understand (RFC 7515, 4.1.11); none is supported.
        if header.alg != Algorithm::EdDSA || header.crit.is_some() {
            return None;
        }
        let kid = header.kid?;
        let (_, key) = self.keys.iter().find(|(key, _)| key.kid == kid)?;
        decode::<KeyClaims>(token, key, &self.validation).ok().map(|data| data.claims)
    }
}

/// Makes the library check only the signature: for claims, it would read the system's clock.
fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::EdDSA);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.leeway = 0;
    validation
}

pub struct SigningKey {
    public: PublicKey,
    key: EncodingKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.public.kid).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// The seed must be secret and uniformly random.
    pub fn from_seed(kid: &str, seed: &[u8; 32]) -> Self {
        let public = ed25519_dalek::SigningKey::from_bytes(seed).verifying_key();
        Self {
            public: PublicKey { kid: kid.to_owned(), bytes: public.to_bytes() },
            key: EncodingKey::from_ed_der(seed),
        }
    }

    pub fn public(&self) -> PublicKey {
        self.public.clone()
    }

    /// Returns the signed token, which has about 350 characters if it grants no role.
    pub fn sign(&self, claims: &KeyClaims) -> Result<String, SigningError> {
        crypto::install();
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.public.kid.clone());
        encode(&header, claims, &self.key)
    }
}

#[derive(Serialize, Deserialize)]
struct JwkSet<K> {
    keys: Vec<K>,
}

#[derive(Serialize, Deserialize)]
struct Jwk {
    kid: Option<String>,
    kty: String,
    crv: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    x: Option<String>,
    /// The private part of a key, parsed only to refuse it.
    #[serde(default, skip_serializing)]
    d: Option<IgnoredAny>,
}

impl Jwk {
    fn of(key: &PublicKey) -> Self {
        Self {
            kid: Some(key.kid.clone()),
            kty: "OKP".to_owned(),
            crv: Some("Ed25519".to_owned()),
            alg: Some("EdDSA".to_owned()),
            usage: Some("sig".to_owned()),
            x: Some(URL_SAFE_NO_PAD.encode(key.bytes)),
            d: None,
        }
    }

    fn into_public(self) -> Result<PublicKey, KeySetError> {
        let kid = self.kid.ok_or(KeySetError::KeyId)?;
        let is = |field: Option<String>, expected: &str| field.as_deref().is_none_or(|text| text == expected);
        if self.d.is_some() {
            return Err(KeySetError::Private(kid));
        }
        let ed25519 = self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519");
        if !ed25519 || !is(self.alg, "EdDSA") || !is(self.usage, "sig") {
            return Err(KeySetError::Unsupported(kid));
        }
        let bytes = self.x.and_then(|x| URL_SAFE_NO_PAD.decode(x).ok()).and_then(|x| x.try_into().ok());
        match bytes {
            Some(bytes) => Ok(PublicKey { kid, bytes }),
            None => Err(KeySetError::Malformed(kid)),
        }
    }
}
