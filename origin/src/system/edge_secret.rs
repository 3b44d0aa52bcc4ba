//! By what the edge proves to the origin that it is the edge: derived from the installation's secret, so that nobody
//! has to keep another one. Knows neither HTTP nor where the edge is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;

use crate::secret::InstallationSecret;

/// What it is derived for.
const LABEL: &str = "edge:secret";

/// The edge's secret. Shows itself only to who asks for its text.
#[derive(Clone)]
pub struct EdgeSecret(SecretString);

impl fmt::Debug for EdgeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EdgeSecret(…)")
    }
}

impl EdgeSecret {
    /// The one of this installation.
    #[must_use]
    pub fn new(secret: &InstallationSecret) -> Self {
        Self::of(secret.derive(LABEL))
    }

    pub(crate) fn of(bytes: [u8; 32]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(bytes).into())
    }

    /// What the edge is given: 43 URL-safe characters.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether that is it. Takes as long for any text of its length.
    #[must_use]
    pub fn is(&self, text: &[u8]) -> bool {
        self.text().as_bytes().ct_eq(text).into()
    }
}
