//! Secrets and signatures of webhooks, as the specification Standard Webhooks demands. A secret is derived from the
//! installation's, so that MariaDB has none.

use crate::secret::InstallationSecret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::sync::Arc;
use uuid::Uuid;

/// For how many seconds after a renewal deliveries are signed with the earlier secret too.
pub(super) const OVERLAP_SECONDS: u64 = 24 * 60 * 60;

#[derive(Clone, Debug)]
pub(super) struct Secrets(pub(super) Arc<InstallationSecret>);

impl Secrets {
    /// Returns a webhook's secret as its receiver needs it.
    pub(super) fn text(&self, webhook: Uuid, number: u32) -> String {
        format!("whsec_{}", STANDARD.encode(self.secret(webhook, number)))
    }

    fn secret(&self, webhook: Uuid, number: u32) -> [u8; 32] {
        self.0.derive(&format!("webhook:{webhook}:{number}"))
    }

    /// Returns the header `webhook-signature`, with a signature for each secret.
    pub(super) fn sign(
        &self,
        webhook: Uuid,
        numbers: impl Iterator<Item = u32>,
        (message, time): (&str, u64),
        body: &str,
    ) -> String {
        let sign = |number| sign(&self.secret(webhook, number), message, time, body);
        numbers.map(sign).collect::<Vec<_>>().join(" ")
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
fn sign(secret: &[u8], message: &str, time: u64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    for part in [message, ".", &time.to_string(), ".", body] {
        mac.update(part.as_bytes());
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
