//! The two files that `selkie dev` writes, both of mode 0600: `dev.env` for users, tests and the next start, and
//! `dev.vars` for the worker.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{DevAddresses, DevError};
use crate::config::Config;
use crate::files::replace_private;
use crate::system::edge_secret::EdgeSecret;

/// The edge's timeout beyond `query_timeout`, so that the origin's own timeout error reaches the edge first.
const EDGE_EXTRA_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Environment {
    pub(super) full_key: Option<String>,
    pub(super) read_key: Option<String>,
}

impl Environment {
    pub(super) fn read(data_dir: &Path) -> Self {
        let text = std::fs::read_to_string(path(data_dir)).unwrap_or_default();
        Self { full_key: value(&text, "SELKIE_FULL_KEY"), read_key: value(&text, "SELKIE_READ_KEY") }
    }
}

fn value(text: &str, name: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = values.find(|(key, _)| *key == name)?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

pub(super) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("dev.env")
}

pub(super) fn vars_path(data_dir: &Path) -> PathBuf {
    data_dir.join("dev.vars")
}

pub(super) struct EdgeKeys<'a> {
    pub(super) jwks: &'a str,
    pub(super) issuers: Option<&'a str>,
}

/// Writes both files. No value except JSON needs escaping for a shell or for wrangler.
pub(super) fn write(
    config: &Config,
    running: &DevAddresses,
    keys: &EdgeKeys<'_>,
    secret: &EdgeSecret,
) -> Result<(), DevError> {
    let timeout = (config.query_timeout + EDGE_EXTRA_TIMEOUT).as_millis();
    let vars = [
        ("ORIGINS", running.origin_url.clone()),
        ("JWKS", quoted_json(keys.jwks)),
        ("EDGE_SECRET", secret.text().to_owned()),
        ("ORIGIN_TIMEOUT_MS", timeout.to_string()),
        ("CORS_ORIGINS", config.cors_origins.to_string()),
        ("UPLOAD_MAX_BYTES", config.upload_max_bytes.to_string()),
    ];
    let issuers = keys.issuers.map(|issuers| ("ISSUERS", quoted_json(issuers)));
    put(&vars_path(&config.data_dir), &lines(vars.into_iter().chain(issuers)))?;
    let edge_url = running.edge_url.clone();
    let env = [
        ("SELKIE_ORIGIN_URL", Some(running.origin_url.clone())),
        ("SELKIE_EDGE_URL", edge_url),
        ("SELKIE_FULL_KEY", Some(running.full_key.clone())),
        ("SELKIE_READ_KEY", Some(running.read_key.clone())),
        ("SELKIE_DATABASE", Some(running.database.clone())),
        ("SELKIE_PROJECT", Some(running.project.clone())),
    ];
    let env = env.into_iter().filter_map(|(name, value)| Some((name, value?)));
    put(&running.environment_file, &lines(env))
}

fn lines(values: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let lines = values.into_iter().map(|(name, value)| format!("{name}={value}\n"));
    lines.collect()
}

fn quoted_json(json: &str) -> String {
    format!("'{}'", json.replace('\'', "\\u0027"))
}

fn put(path: &Path, text: &str) -> Result<(), DevError> {
    replace_private(path, text).map_err(|source| DevError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_their_whole_name() {
        let text = "X_SELKIE_FULL_KEY=no\nSELKIE_FULL_KEY=a.b.c\nSELKIE_READ_KEY=\n";
        assert_eq!(value(text, "SELKIE_FULL_KEY").as_deref(), Some("a.b.c"));
        assert_eq!(value(text, "SELKIE_READ_KEY"), None);
    }

    #[test]
    fn quoted_json_has_no_quote_within_and_means_the_same() {
        let json = r#"[{"audience":"Ann's \"app\""}]"#;
        let quoted = quoted_json(json);
        let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).unwrap();
        assert!(!inner.contains('\''));
        let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(parsed(inner), parsed(json));
    }
}
