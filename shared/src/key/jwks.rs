//! The public keys of an issuer of users' tokens. A key's type and curve determine its only algorithm, so that the
//! header of a token can't choose another. Origin and edge verify signatures, each with its platform's library.

use super::UserTokenHeader;
use crate::ident::shown;
use crate::limits::{JWKS_KEYS_MAX_COUNT, JWKS_MAX_BYTES};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

/// The accepted sizes of RSA moduli, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserTokenAlgorithm {
    EdDSA,
    ES256,
    RS256,
}

impl UserTokenAlgorithm {
    const ALL: [Self; 3] = [Self::EdDSA, Self::ES256, Self::RS256];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EdDSA => "EdDSA",
            Self::ES256 => "ES256",
            Self::RS256 => "RS256",
        }
    }

    pub(super) fn allows(alg: &str, signature_bytes: usize) -> bool {
        Self::ALL.iter().any(|known| {
            known.as_str() == alg
                && match known {
                    Self::EdDSA | Self::ES256 => signature_bytes == 64,
                    Self::RS256 => (RSA_BITS.start() / 8..=RSA_BITS.end() / 8).contains(&signature_bytes),
                }
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyMaterial {
    Ed25519([u8; 32]),
    P256([u8; 65]),
    /// Modulus and exponent, big-endian, without leading zeros.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VerificationKey {
    kid: Option<String>,
    material: KeyMaterial,
}

impl VerificationKey {
    pub const fn algorithm(&self) -> UserTokenAlgorithm {
        match self.material {
            KeyMaterial::Ed25519(_) => UserTokenAlgorithm::EdDSA,
            KeyMaterial::P256(_) => UserTokenAlgorithm::ES256,
            KeyMaterial::Rsa { .. } => UserTokenAlgorithm::RS256,
        }
    }

    pub fn material(&self) -> &KeyMaterial {
        &self.material
    }

    /// Returns the length of this key's signatures.
    pub fn signature_bytes(&self) -> usize {
        match &self.material {
            KeyMaterial::Ed25519(_) | KeyMaterial::P256(_) => 64,
            KeyMaterial::Rsa { n, .. } => n.len(),
        }
    }

    pub fn public_members(&self) -> Vec<(&'static str, String)> {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let word = str::to_owned;
        match &self.material {
            KeyMaterial::Ed25519(key) => vec![("kty", word("OKP")), ("crv", word("Ed25519")), ("x", text(key))],
            KeyMaterial::P256(point) => {
                let (x, y) = point[1..].split_at(32);
                vec![("kty", word("EC")), ("crv", word("P-256")), ("x", text(x)), ("y", text(y))]
            }
            KeyMaterial::Rsa { n, e } => vec![("kty", word("RSA")), ("n", text(n)), ("e", text(e))],
        }
    }

    fn to_jwk(&self) -> Value {
        let kid = self.kid.iter().map(|kid| ("kid", kid.clone()));
        let members = self.public_members().into_iter().chain(kid);
        members.map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>().into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    /// No key has the token's `kid`. The issuer may have published a newer key.
    UnknownId,
    /// No key, or more than one, has the token's algorithm and, if the token names one, its `kid`.
    Unfit,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwkSetFault {
    #[error("it is larger than {} KiB", JWKS_MAX_BYTES / 1024)]
    TooLarge,
    #[error("it is no JWK set: a JSON object with a list \"keys\" is expected")]
    NotAJwkSet,
    #[error("it holds {0} keys, and at most {JWKS_KEYS_MAX_COUNT} are allowed")]
    TooMany(usize),
}

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
    #[error("its alg does not fit its type: it must be RS256 for RSA, ES256 for P-256, EdDSA for Ed25519")]
    Algorithm,
    #[error("its use is not sig, or its key_ops do not contain verify")]
    Use,
    #[error("its RSA modulus has less than 2,048 or more than 8,192 bits")]
    Length,
    #[error("its values are missing or no base64url of the right length")]
    Malformed,
    #[error("an earlier key of the set has the same kid and type")]
    Repeated,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerificationKeys(Vec<VerificationKey>);

impl VerificationKeys {
    /// Parses a JWK set (RFC 7517). Also returns unusable keys: many sets have keys for encryption or other algorithms.
    pub fn parse(text: &str) -> Result<(Self, Vec<UnusableKey>), JwkSetFault> {
        if text.len() > JWKS_MAX_BYTES {
            return Err(JwkSetFault::TooLarge);
        }
        Self::of(&serde_json::from_str(text).map_err(|_| JwkSetFault::NotAJwkSet)?)
    }

    pub(super) fn of(set: &Value) -> Result<(Self, Vec<UnusableKey>), JwkSetFault> {
        let jwks = set.get("keys").and_then(Value::as_array).ok_or(JwkSetFault::NotAJwkSet)?;
        if jwks.len() > JWKS_KEYS_MAX_COUNT {
            return Err(JwkSetFault::TooMany(jwks.len()));
        }
        let (mut keys, mut unusable) = (Vec::new(), Vec::new());
        for (number, jwk) in (1..).zip(jwks) {
            match Jwk(jwk).to_key(&keys) {
                Ok(key) => keys.push(key),
                Err(fault) => {
                    let kid = jwk.get("kid").and_then(Value::as_str);
                    let name = kid.map_or_else(|| format!("number {number}"), shown);
                    unusable.push(UnusableKey { name, fault });
                }
            }
        }
        Ok((Self(keys), unusable))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn to_jwks(&self) -> Value {
        json!({"keys": self.0.iter().map(VerificationKey::to_jwk).collect::<Vec<_>>()})
    }

    /// Returns the only key that has the header's `alg` and, if the header has one, its `kid`.
    pub fn find(&self, header: &UserTokenHeader) -> Result<&VerificationKey, NoKey> {
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

struct Jwk<'a>(&'a Value);

impl Jwk<'_> {
    /// Fails if the key can't verify tokens, or a key in `before` has the same `kid` and type.
    fn to_key(&self, before: &[VerificationKey]) -> Result<VerificationKey, KeyFault> {
        let (kty, kid) = (self.text("kty")?.ok_or(KeyFault::Malformed)?, self.text("kid")?);
        if self.has("d") || self.has("k") || kty == "oct" {
            return Err(KeyFault::Secret);
        }
        let verifies = match self.0.get("key_ops") {
            None | Some(Value::Null) => true,
            Some(Value::Array(operations)) => operations.iter().any(|operation| operation == "verify"),
            Some(_) => return Err(KeyFault::Malformed),
        };
        if self.text("use")?.is_some_and(|usage| usage != "sig") || !verifies {
            return Err(KeyFault::Use);
        }
        let material = match (kty, self.text("crv")?) {
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(self.coordinate("x")?),
            ("EC", Some("P-256")) => {
                let mut point = [4; 65];
                point[1..33].copy_from_slice(&self.coordinate("x")?);
                point[33..].copy_from_slice(&self.coordinate("y")?);
                KeyMaterial::P256(point)
            }
            ("RSA", _) => {
                let (n, e) = (self.number("n")?, self.number("e")?);
                let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
                if !RSA_BITS.contains(&bits) {
                    return Err(KeyFault::Length);
                }
                KeyMaterial::Rsa { n, e }
            }
            _ => return Err(KeyFault::Type),
        };
        let key = VerificationKey { kid: kid.map(str::to_owned), material };
        if self.text("alg")?.is_some_and(|alg| alg != key.algorithm().as_str()) {
            return Err(KeyFault::Algorithm);
        }
        if before.iter().any(|other| other.kid == key.kid && other.algorithm() == key.algorithm() && key.kid.is_some())
        {
            return Err(KeyFault::Repeated);
        }
        Ok(key)
    }

    fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<&str>, KeyFault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(KeyFault::Malformed),
        }
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>, KeyFault> {
        let text = self.text(name)?.ok_or(KeyFault::Malformed)?;
        URL_SAFE_NO_PAD.decode(text).map_err(|_| KeyFault::Malformed)
    }

    fn coordinate(&self, name: &str) -> Result<[u8; 32], KeyFault> {
        self.bytes(name)?.try_into().map_err(|_| KeyFault::Malformed)
    }

    /// Decodes a number and drops leading zeros, which some issuers write.
    fn number(&self, name: &str) -> Result<Vec<u8>, KeyFault> {
        let mut bytes = self.bytes(name)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.drain(..zeros);
        if bytes.is_empty() { Err(KeyFault::Malformed) } else { Ok(bytes) }
    }
}

#[cfg(test)]
mod tests;
