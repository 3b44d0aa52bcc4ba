//! The secret by which the edge proves its identity to the origin, derived from the installation's secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

use crate::secret::InstallationSecret;

const LABEL: &str = "edge:secret";

#[derive(Clone, Debug)]
pub struct EdgeSecret(SecretString);

impl EdgeSecret {
    pub fn new(secret: &InstallationSecret) -> Self {
        Self::of(secret.derive(LABEL))
    }

    pub(crate) fn of(bytes: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes).into())
    }

    pub fn text(&self) -> &str {
        self.0.expose_secret()
    }

    /// Returns whether `text` is the secret. The comparison takes the same time for all texts of the secret's length.
    pub fn is(&self, text: &[u8]) -> bool {
        self.text().as_bytes().ct_eq(text).into()
    }
}
