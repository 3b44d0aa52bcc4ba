//! A crypto provider for the JWT library that supports only Ed25519, so that a token can't choose another algorithm.
//! The library's own providers would add RSA and the NIST curves, which would make up half of the worker's size.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use std::sync::OnceLock;

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Installs the provider. Must run before the library's first use.
pub(super) fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // Fails only if a test installed another provider before.
        let _ = PROVIDER.install_default();
    });
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if *algorithm != Algorithm::EdDSA || key.family() != Algorithm::EdDSA.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let seed = <&[u8; 32]>::try_from(key.as_bytes()).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Private(SigningKey::from_bytes(seed))))
}

struct Private(SigningKey);

impl Signer<Vec<u8>> for Private {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        Ok(self.0.try_sign(message).map_err(|_| Error::new())?.to_vec())
    }
}

impl JwtSigner for Private {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if *algorithm != Algorithm::EdDSA || key.family() != Algorithm::EdDSA.family() {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let bytes = <&[u8; 32]>::try_from(key.try_get_as_bytes()?).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Public(key)))
}

struct Public(VerifyingKey);

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let signature = Signature::from_slice(signature).map_err(|_| Error::new())?;
        // `verify_strict` also refuses weak keys, and signatures that only some verifiers accept.
        self.0.verify_strict(message, &signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}
