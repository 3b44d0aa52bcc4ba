//! The installation's secret, from which all other secrets of Selkie are derived, so that none of them must be stored.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretBox, SecretString};
use sha2::Sha256;
use shared::fingerprint::hex;

use crate::files::{create_private, private_directory};

/// The minimum length of a secret: that of the derived keys.
const SECRET_MIN_BYTES: usize = 32;

/// The maximum length of a secret's text. A longer text means that the path or the setting is wrong.
const SECRET_TEXT_MAX_BYTES: usize = 4_096;

const FILE_NAME: &str = "secret";

#[derive(Debug)]
pub struct InstallationSecret(SecretBox<[u8]>);

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("the installation secret {path} can't be {deed}: {source}", path = path.display())]
    File {
        path: PathBuf,
        /// What failed: the file could not be `read` or `written`.
        deed: &'static str,
        source: io::Error,
    },
    #[error("the installation secret {path} must hold {expected}", path = path.display())]
    BadFile { path: PathBuf, expected: String },
    #[error("the installation secret must be {expected}")]
    BadText { expected: String },
    #[error("the system gave no random bytes: {0}")]
    Randomness(getrandom::Error),
}

impl InstallationSecret {
    /// Reads the secret. Changes the file's mode to 0600 if other users have any permission on the file.
    pub fn load(text: Option<&SecretString>, data_dir: &Path) -> Result<Option<Self>, SecretError> {
        if let Some(text) = text {
            let bytes = decode(text.expose_secret());
            return bytes.map(|bytes| Some(Self::new(bytes))).map_err(|expected| SecretError::BadText { expected });
        }
        match read(&Self::path(data_dir)) {
            Ok(secret) => Ok(Some(secret)),
            Err(SecretError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads or creates the secret. Processes that create it at the same time get the same secret.
    pub fn load_or_create(text: Option<&SecretString>, data_dir: &Path) -> Result<Self, SecretError> {
        if let Some(secret) = Self::load(text, data_dir)? {
            return Ok(secret);
        }
        let path = Self::path(data_dir);
        create(&path)?;
        read(&path)
    }

    pub fn temporary() -> Result<Self, SecretError> {
        random().map(|bytes| Self::new(bytes.to_vec()))
    }

    pub fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(FILE_NAME)
    }

    fn new(bytes: Vec<u8>) -> Self {
        Self(SecretBox::new(bytes.into_boxed_slice()))
    }

    pub fn to_hex(&self) -> SecretString {
        hex(self.0.expose_secret()).into()
    }

    pub fn adopt(text: &str, data_dir: &Path) -> Result<(), SecretError> {
        decode(text).map_err(|expected| SecretError::BadText { expected })?;
        let path = Self::path(data_dir);
        let written = private_directory(data_dir).and_then(|()| create_private(&path, text));
        written.map_err(|source| SecretError::File { path, deed: "written", source })
    }

    /// Derives a secret from a label of the form `kind:name`, such as `account:admin`.
    pub fn derive(&self, label: &str) -> [u8; 32] {
        let mut mac = self.keyed();
        mac.update(label.as_bytes());
        mac.finalize().into_bytes().into()
    }

    pub fn derive_password(&self, label: &str) -> SecretString {
        // Some servers require characters of each class in a password, which Base64 may lack.
        let text = URL_SAFE_NO_PAD.encode(self.derive(label)) + "-Aa1";
        SecretString::from(text)
    }

    #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
    fn keyed(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(self.0.expose_secret()).expect("HMAC takes a key of any length")
    }
}

pub(crate) fn check_text(text: &str) -> Result<SecretString, String> {
    decode(text).map(|_| SecretString::from(text.to_owned()))
}

fn decode(text: &str) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let bytes = if text.len() > SECRET_TEXT_MAX_BYTES { None } else { from_hex(text).or_else(|| from_base64(text)) };
    bytes.filter(|bytes| bytes.len() >= SECRET_MIN_BYTES).ok_or_else(|| {
        format!("{SECRET_MIN_BYTES} random bytes or more as hex or base64, such as `openssl rand -hex 32` prints")
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().find_map(|alphabet| alphabet.decode(text).ok())
}

fn read(path: &Path) -> Result<InstallationSecret, SecretError> {
    let fault = |source| SecretError::File { path: path.to_owned(), deed: "read", source };
    let text = std::fs::read_to_string(path).map_err(fault)?;
    // A copied file or a restored backup may have a mode other than 0600.
    let mode = std::fs::metadata(path).map_err(fault)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(fault)?;
    }
    decode(&text)
        .map(InstallationSecret::new)
        .map_err(|expected| SecretError::BadFile { path: path.to_owned(), expected })
}

/// Creates the file. Readers see a complete secret or none; of several processes, the first one wins.
fn create(path: &Path) -> Result<(), SecretError> {
    let bytes = random()?;
    let spare_name = getrandom::u64().map_err(SecretError::Randomness)?;
    let staged = path.with_file_name(format!(".{FILE_NAME}.{spare_name:016x}"));
    let outcome = stage(&staged, &bytes).and_then(|()| publish(&staged, path));
    let _ = std::fs::remove_file(&staged);
    outcome.map_err(|source| SecretError::File { path: path.to_owned(), deed: "written", source })
}

fn random() -> Result<[u8; SECRET_MIN_BYTES], SecretError> {
    let mut bytes = [0_u8; SECRET_MIN_BYTES];
    getrandom::fill(&mut bytes).map_err(SecretError::Randomness)?;
    Ok(bytes)
}

fn stage(staged: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = staged.parent() {
        private_directory(directory)?;
    }
    create_private(staged, &format!("{}\n", STANDARD.encode(bytes)))
}

fn publish(staged: &Path, path: &Path) -> io::Result<()> {
    match std::fs::hard_link(staged, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(directory: &Path) -> InstallationSecret {
        InstallationSecret::load_or_create(None, directory).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_secret_is_made_once_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("data");
        assert_eq!(made(&data_dir).derive("a:b"), made(&data_dir).derive("a:b"));
        assert_eq!(mode(&data_dir), 0o700);
        assert_eq!(mode(&data_dir.join("secret")), 0o600);
        let names: Vec<_> = std::fs::read_dir(&data_dir).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    /// MariaDB's `simple_password_check` requires by default 8 characters, with an upper-case and a lower-case letter,
    /// a digit and another character.
    #[test]
    fn derived_passwords_satisfy_servers_with_password_rules() {
        let secret = InstallationSecret::new(vec![7; SECRET_MIN_BYTES]);
        for label in ["account:a", "account:b", "account:c"] {
            let password = secret.derive_password(label);
            let password = password.expose_secret();
            assert!(password.len() >= 8);
            for rule in
                [char::is_ascii_uppercase, char::is_ascii_lowercase, char::is_ascii_digit, char::is_ascii_punctuation]
            {
                assert!(password.chars().any(|c| rule(&c)), "{password}");
            }
        }
    }

    #[test]
    fn threads_that_make_it_at_once_agree() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("data");
        let derived = || made(&data_dir).derive("x:y");
        let all: Vec<[u8; 32]> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(derived)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn a_mode_that_others_could_read_is_mended() {
        let directory = tempfile::tempdir().unwrap();
        made(directory.path());
        let path = directory.path().join("secret");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        made(directory.path());
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn hex_and_every_base64_of_the_same_bytes_derive_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let bytes = [0xfb_u8; 32];
        let texts = [hex(&bytes), STANDARD.encode(bytes), URL_SAFE_NO_PAD.encode(bytes)];
        let derived = texts.map(|text| {
            let text = SecretString::from(text);
            let secret = InstallationSecret::load_or_create(Some(&text), directory.path());
            secret.unwrap().derive("k:v")
        });
        assert!(derived.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn labels_and_secrets_separate_what_is_derived() {
        let one = InstallationSecret::new(vec![1; 32]);
        let two = InstallationSecret::new(vec![2; 32]);
        assert_ne!(one.derive("account:a"), one.derive("account:b"));
        assert_ne!(one.derive("account:a"), two.derive("account:a"));
        let password = one.derive_password("account:a");
        assert_eq!(password.expose_secret().len(), 47);
        assert!(!format!("{one:?} {password:?}").contains("Aa1"));
    }

    #[test]
    fn a_damaged_file_is_refused_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        std::fs::write(&path, "short").unwrap();
        let loaded = InstallationSecret::load_or_create(None, directory.path());
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains("must hold 32 random bytes"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short");
    }
}
