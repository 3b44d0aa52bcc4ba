//! Signed URLs, which can't be revoked. The signature covers the file's id and path, not its content: it stays valid
//! when the file is replaced, and is invalid for a later file at the path.

use crate::secret::InstallationSecret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use shared::media::FilePath;
use shared::operation::media::{MediaId, SignedFor};
use std::fmt;

const LABEL: &str = "media:signatures";

#[derive(Clone)]
pub struct UrlSigner {
    key: [u8; 32],
}

impl fmt::Debug for UrlSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(…)")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The second since 1970 from which the signature is invalid.
    pub expires_at: u64,
    text: String,
}

impl Signature {
    pub fn query(&self) -> String {
        format!("expires={}&signature={}", self.expires_at, self.text)
    }
}

impl UrlSigner {
    pub fn new(secret: &InstallationSecret) -> Self {
        Self { key: secret.derive(LABEL) }
    }

    /// Signs a file. `now` is in seconds since 1970.
    pub fn sign(&self, file: (MediaId, &FilePath), now: u64, signed_for: SignedFor) -> Signature {
        let expires_at = now.saturating_add(signed_for.seconds());
        let mac = self.mac(file, expires_at).finalize().into_bytes();
        Signature { expires_at, text: URL_SAFE_NO_PAD.encode(mac) }
    }

    /// Checks a signature in constant time. `expires_at` and `now` are in seconds since 1970.
    pub fn verify(&self, file: (MediaId, &FilePath), expires_at: u64, signature: &str, now: u64) -> bool {
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else {
            return false;
        };
        let is_right = self.mac(file, expires_at).verify_slice(&signature).is_ok();
        is_right && now < expires_at
    }

    fn mac(&self, (id, file): (MediaId, &FilePath), expires_at: u64) -> Hmac<Sha256> {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length");
        // Each part is preceded by its length, so that different paths never give the same input.
        for part in [file.project.as_str(), file.folder.as_str(), file.name.as_str()] {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(&id.get().to_le_bytes());
        mac.update(&expires_at.to_le_bytes());
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::ident::ProjectName;
    use shared::media::{FolderPath, MediaName};

    const NOW: u64 = 1_790_000_000;

    fn id(number: u64) -> MediaId {
        MediaId::from(number)
    }

    fn file(project: &str, folder: &str, name: &str) -> FilePath {
        FilePath {
            project: ProjectName::parse(project).unwrap(),
            folder: FolderPath::parse(folder).unwrap(),
            name: MediaName::parse(name).unwrap(),
        }
    }

    fn signer(key: u8) -> UrlSigner {
        UrlSigner { key: [key; 32] }
    }

    #[test]
    fn a_signature_is_valid_for_its_file_until_its_end() {
        let (signer, file) = (signer(1), file("p", "a/b", "c.png"));
        let signed = signer.sign((id(1), &file), NOW, SignedFor::new(60).unwrap());
        assert_eq!(signed.expires_at, NOW + 60);
        let valid = |now| signer.verify((id(1), &file), signed.expires_at, &signed.text, now);
        assert!(valid(NOW) && valid(NOW + 59));
        assert!(!valid(NOW + 60) && !valid(u64::MAX));
        assert_eq!(signed.query(), format!("expires={}&signature={}", NOW + 60, signed.text));
        assert_eq!(signed.text.len(), 43);
    }

    #[test]
    fn it_is_valid_for_no_other_file_end_key_or_text() {
        let place = file("p", "a/b", "c.png");
        let signed = signer(1).sign((id(1), &place), NOW, SignedFor::new(60).unwrap());
        let (expires_at, text) = (signed.expires_at, signed.text.as_str());
        for other in [
            file("q", "a/b", "c.png"),
            file("p", "a", "c.png"),
            file("p", "", "c.png"),
            file("p", "a/b", "c.jpg"),
            file("p", "a/b", "C.png"),
            file("p", "a", "bc.png"),
            file("p", "a/bc", ".png"),
            file("pa", "b", "c.png"),
        ] {
            assert!(!signer(1).verify((id(1), &other), expires_at, text, NOW), "{other:?}");
        }
        assert!(!signer(1).verify((id(2), &place), expires_at, text, NOW));
        assert!(!signer(2).verify((id(1), &place), expires_at, text, NOW));
        assert!(!signer(1).verify((id(1), &place), expires_at + 1, text, NOW));
        let mut flipped = text.to_owned();
        flipped.replace_range(0..1, if text.starts_with('A') { "B" } else { "A" });
        for altered in ["", "A", &text[1..], &text[..42], &flipped, &format!("{text}="), &format!("{text}A"), "é"] {
            assert!(!signer(1).verify((id(1), &place), expires_at, altered, NOW), "{altered}");
        }
        assert!(signer(1).verify((id(1), &place), expires_at, text, NOW));
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{:?}", signer(7)), "Signer(…)");
    }
}
