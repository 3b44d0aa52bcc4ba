//! The settings `tls_certificate` and `tls_key`, which must be set together.

use std::path::PathBuf;

use super::{ConfigError, Layers, find_setting, optional, value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The file of the certificate and the intermediate certificates.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub(super) fn files(layers: &Layers) -> Result<Option<TlsFiles>, ConfigError> {
    let path = |text: &str| value::file(text, &layers.directory);
    match (optional(layers, "tls_certificate", path)?, optional(layers, "tls_key", path)?) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => Err(alone("tls_key", "tls_certificate")),
        (None, Some(_)) => Err(alone("tls_certificate", "tls_key")),
    }
}

fn alone(missing: &'static str, other: &'static str) -> ConfigError {
    ConfigError::BadValue {
        name: missing,
        expected: format!("set together with {other}"),
        given: "it has no value".to_owned(),
        spellings: find_setting(missing).map_or_else(String::new, super::Setting::spellings),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Config, Sources};

    fn read(flags: &[(&'static str, &str)]) -> Result<Option<TlsFiles>, String> {
        let flags = flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        let sources = Sources { flags, directory: Path::new("/etc/selkie").to_owned(), ..Sources::default() };
        Config::load(sources).map(|config| config.tls).map_err(|error| error.to_string())
    }

    #[test]
    fn a_certificate_and_its_key_are_set_together() {
        assert_eq!(read(&[]), Ok(None));
        let files = TlsFiles { certificate: "/etc/selkie/a.pem".into(), key: "/k.pem".into() };
        assert_eq!(read(&[("tls_certificate", "a.pem"), ("tls_key", "/k.pem")]), Ok(Some(files)));
        for (given, missing) in [("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")] {
            let message = read(&[(given, "a.pem")]).unwrap_err();
            assert!(
                message.starts_with(&format!("{missing} must be set together with {given}; it has no value")),
                "{message}"
            );
        }
    }
}
