//! The public keys of an issuer, and the verification of a signature with one of them. A key has one algorithm, which
//! its type and curve determine: the header of a token can't choose another. Performs no I/O.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use shared::ident::shown;
use shared::key::{UserToken, UserTokenHeader};
use shared::limits::{JWKS_KEYS_MAX_COUNT, JWKS_MAX_BYTES};

/// Bits of an RSA modulus that `ring` verifies with.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The algorithms that are accepted, by their names in `alg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    EdDSA,
    ES256,
    RS256,
}

impl Algorithm {
    const fn as_str(self) -> &'static str {
        match self {
            Self::EdDSA => "EdDSA",
            Self::ES256 => "ES256",
            Self::RS256 => "RS256",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Ed25519([u8; 32]),
    /// An uncompressed point of the curve P-256.
    P256([u8; 65]),
    /// Modulus and exponent, big-endian, without leading zeros.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

/// A public key of an issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VerificationKey {
    kid: Option<String>,
    material: Material,
}

impl VerificationKey {
    const fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::Ed25519(_) => Algorithm::EdDSA,
            Material::P256(_) => Algorithm::ES256,
            Material::Rsa { .. } => Algorithm::RS256,
        }
    }

    /// Returns whether the key signed the token.
    pub(super) fn has_signed(&self, token: &UserToken<'_>) -> bool {
        let (message, signature) = (token.signed_bytes(), token.signature());
        let verified = match &self.material {
            Material::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
            Material::P256(key) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature),
            Material::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
        };
        verified.is_ok()
    }
}

/// Why no key verifies a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// The issuer may have a new key.
    UnknownId,
    /// No key has the token's algorithm, or the token does not say which of several keys signed it.
    Unfit,
}

/// Why a text is no JWK set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwkSetFault {
    #[error("it is larger than {} KiB", JWKS_MAX_BYTES / 1024)]
    TooLarge,
    #[error("it is no JWK set: a JSON object with a list \"keys\" is expected")]
    NotAJwkSet,
    #[error("it holds {0} keys, and at most {JWKS_KEYS_MAX_COUNT} are allowed")]
    TooMany(usize),
}

/// A key of a JWK set that can't verify tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableKey {
    /// The key's id, or its position.
    pub name: String,
    pub fault: KeyFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    #[error("it is private or symmetric: whoever has it can sign tokens")]
    Secret,
    #[error("its type is none of RSA, EC with the curve P-256 and OKP with the curve Ed25519")]
    Type,
    #[error("its alg is another than its type is accepted with: RS256 for RSA, ES256 for P-256, EdDSA for Ed25519")]
    Algorithm,
    #[error("its use is not sig, or its key_ops do not contain verify")]
    Use,
    #[error("its RSA modulus has less than 2,048 or more than 8,192 bits")]
    Length,
    #[error("its values are missing or no base64url of the right length")]
    Malformed,
    #[error("a key with the same kid and type stands before it")]
    Repeated,
}

/// The keys of a JWK set that can verify tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerificationKeys(Vec<VerificationKey>);

impl VerificationKeys {
    /// Parses a JWK set (RFC 7517). Also returns the keys that can't verify tokens: sets in use have keys for encryption
    /// and other algorithms too.
    ///
    /// # Errors
    /// The text is no JWK set, or exceeds a limit.
    pub fn parse(text: &str) -> Result<(Self, Vec<UnusableKey>), JwkSetFault> {
        if text.len() > JWKS_MAX_BYTES {
            return Err(JwkSetFault::TooLarge);
        }
        let set: JwkSet<'_> = serde_json::from_str(text).map_err(|_| JwkSetFault::NotAJwkSet)?;
        if set.keys.len() > JWKS_KEYS_MAX_COUNT {
            return Err(JwkSetFault::TooMany(set.keys.len()));
        }
        let (mut keys, mut unusable) = (Vec::new(), Vec::new());
        for (number, text) in (1..).zip(set.keys) {
            let jwk: Option<Jwk> = serde_json::from_str(text.get()).ok();
            let kid = jwk.as_ref().and_then(|jwk| jwk.kid.clone());
            match jwk.ok_or(KeyFault::Malformed).and_then(|jwk| jwk.into_key(&keys)) {
                Ok(key) => keys.push(key),
                Err(fault) => {
                    let name = kid.map_or_else(|| format!("number {number}"), |kid| shown(&kid));
                    unusable.push(UnusableKey { name, fault });
                }
            }
        }
        Ok((Self(keys), unusable))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key that a token's header names: by `kid`, or the only key of its algorithm without one.
    pub(super) fn find(&self, header: &UserTokenHeader) -> Result<&VerificationKey, NoKey> {
        let named = |key: &&VerificationKey| header.kid.is_none() || key.kid == header.kid;
        if header.kid.is_some() && !self.0.iter().any(|key| named(&key)) {
            return Err(NoKey::UnknownId);
        }
        let mut fit = self.0.iter().filter(named).filter(|key| key.algorithm().as_str() == header.alg);
        match (fit.next(), fit.next()) {
            (Some(key), None) => Ok(key),
            _ => Err(NoKey::Unfit),
        }
    }
}

#[derive(Deserialize)]
struct JwkSet<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    crv: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// The private part of an asymmetric key, and a symmetric key: parsed only to refuse them.
    d: Option<serde::de::IgnoredAny>,
    k: Option<serde::de::IgnoredAny>,
}

impl Jwk {
    /// Converts the key, unless it can't verify tokens, or can't be told from one `before` it.
    fn into_key(self, before: &[VerificationKey]) -> Result<VerificationKey, KeyFault> {
        if self.d.is_some() || self.k.is_some() || self.kty == "oct" {
            return Err(KeyFault::Secret);
        }
        let verifies = self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if self.usage.as_deref().is_some_and(|usage| usage != "sig") || !verifies {
            return Err(KeyFault::Use);
        }
        let material = match (&*self.kty, self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => Material::Ed25519(exact(self.x.as_deref())?),
            ("EC", Some("P-256")) => {
                let (x, y): ([u8; 32], [u8; 32]) = (exact(self.x.as_deref())?, exact(self.y.as_deref())?);
                let mut point = [4; 65];
                point[1..33].copy_from_slice(&x);
                point[33..].copy_from_slice(&y);
                Material::P256(point)
            }
            ("RSA", _) => {
                let (n, e) = (number(self.n.as_deref())?, number(self.e.as_deref())?);
                let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
                if !RSA_BITS.contains(&bits) {
                    return Err(KeyFault::Length);
                }
                Material::Rsa { n, e }
            }
            _ => return Err(KeyFault::Type),
        };
        let key = VerificationKey { kid: self.kid, material };
        if self.alg.is_some_and(|alg| alg != key.algorithm().as_str()) {
            return Err(KeyFault::Algorithm);
        }
        if before.iter().any(|other| other.kid == key.kid && other.algorithm() == key.algorithm() && key.kid.is_some())
        {
            return Err(KeyFault::Repeated);
        }
        Ok(key)
    }
}

fn exact(text: Option<&str>) -> Result<[u8; 32], KeyFault> {
    let bytes = text.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(KeyFault::Malformed)
}

/// Decodes an unsigned number without its leading zeros, which some issuers write.
fn number(text: Option<&str>) -> Result<Vec<u8>, KeyFault> {
    let mut bytes = text.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok()).ok_or(KeyFault::Malformed)?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros);
    if bytes.is_empty() { Err(KeyFault::Malformed) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
