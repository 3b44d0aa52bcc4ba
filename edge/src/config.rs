//! The worker's variables, checked once an isolate.
//!
//! Where they come from (wrangler.toml, secrets, a file for `wrangler dev`) is not known here:
//! [`Config::read`] asks a function for each by name.

use shared::cors::CorsOrigins;
use shared::error::Problem;
use shared::key::{KeySet, KeySetError};
use shared::upload::UploadLimits;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Milliseconds until the origin's head must be there. Its statements may run for 30 s; it then
/// answers by itself.
const ORIGIN_TIMEOUT_DEFAULT_MS: u32 = 35_000;

/// The longest that can be asked for, in milliseconds: an hour.
const ORIGIN_TIMEOUT_MAX_MS: u32 = 3_600_000;

/// What `UPLOAD_MAX_BYTES` may be: what the origin's `upload_max_bytes` may be.
const UPLOAD_BYTES: RangeInclusive<u64> = 1_024..=1 << 40;

/// What `UPLOAD_MAX_ITEMS` may be: what the origin's `upload_max_items` may be.
const UPLOAD_ITEMS: RangeInclusive<u64> = 1..=10_000;

/// Everything that the worker is told.
#[derive(Debug)]
pub struct Config {
    /// Scheme, host and port of the origin, without a path or a trailing slash.
    pub origin_url: String,
    /// How long to wait for the head of the origin's answer.
    pub origin_timeout: Duration,
    /// The installation's public keys.
    pub keys: KeySet,
    /// Which web origins browsers may call from.
    pub cors: CorsOrigins,
    /// Whether each request gets a line in the log.
    pub logs_requests: bool,
    /// What one upload may take.
    pub upload_limits: UploadLimits,
}

/// A variable that the worker can't work with. Names it; shows none of its value.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A variable without a default is not set.
    #[error("the variable {0} is not set")]
    Missing(&'static str),
    /// `ORIGIN_URL` is no address of a server.
    #[error("the variable ORIGIN_URL is not of the form https://host[:port]")]
    OriginUrl,
    /// `ORIGIN_TIMEOUT_MS` is no time.
    #[error("the variable ORIGIN_TIMEOUT_MS is not a number from 1 to {ORIGIN_TIMEOUT_MAX_MS}")]
    OriginTimeout,
    /// `LOG_REQUESTS` is neither.
    #[error("the variable LOG_REQUESTS is neither on nor off")]
    LogRequests,
    /// `UPLOAD_MAX_BYTES` or `UPLOAD_MAX_ITEMS` is no limit.
    #[error("the variable {0} is not a number from {1} to {2}")]
    UploadLimit(&'static str, u64, u64),
    /// `JWKS` is no set of public keys.
    #[error("the variable JWKS can't be used: {0}")]
    Jwks(#[source] KeySetError),
    /// `CORS_ORIGINS` is no list of origins.
    #[error("the variable CORS_ORIGINS can't be used: {}", .0.message())]
    Cors(Problem),
}

impl Config {
    /// Reads the variables `ORIGIN_URL`, `ORIGIN_TIMEOUT_MS`, `JWKS`, `CORS_ORIGINS`, `LOG_REQUESTS`,
    /// `UPLOAD_MAX_BYTES` and `UPLOAD_MAX_ITEMS`.
    ///
    /// # Errors
    /// The first variable that is missing or can't be used.
    pub fn read(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let required = |name| set(variable(name)).ok_or(ConfigError::Missing(name));
        let origin_timeout = match set(variable("ORIGIN_TIMEOUT_MS")) {
            Some(text) => parse_timeout(&text)?,
            None => Duration::from_millis(ORIGIN_TIMEOUT_DEFAULT_MS.into()),
        };
        let cors = match set(variable("CORS_ORIGINS")) {
            Some(text) => CorsOrigins::parse(&text).map_err(ConfigError::Cors)?,
            None => CorsOrigins::any(),
        };
        let logs_requests = match set(variable("LOG_REQUESTS")).as_deref() {
            Some("off") => false,
            None | Some("on") => true,
            Some(_) => return Err(ConfigError::LogRequests),
        };
        let mut upload_limits = UploadLimits::default();
        if let Some(text) = set(variable("UPLOAD_MAX_BYTES")) {
            upload_limits.body_bytes = parse_limit("UPLOAD_MAX_BYTES", &text, UPLOAD_BYTES)?;
        }
        if let Some(text) = set(variable("UPLOAD_MAX_ITEMS")) {
            upload_limits.items = parse_limit("UPLOAD_MAX_ITEMS", &text, UPLOAD_ITEMS)? as usize;
        }
        Ok(Self {
            origin_url: parse_origin(&required("ORIGIN_URL")?)?,
            origin_timeout,
            keys: KeySet::from_jwks(&required("JWKS")?).map_err(ConfigError::Jwks)?,
            cors,
            logs_requests,
            upload_limits,
        })
    }
}

/// An empty variable counts as one that is not set.
fn set(value: Option<String>) -> Option<String> {
    value
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn parse_origin(text: &str) -> Result<String, ConfigError> {
    let url = text.strip_suffix('/').unwrap_or(text);
    let host = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    // Callers' paths are appended to it, and an `@` would send them, keys and all, somewhere else.
    let well_formed = host.is_some_and(|host| {
        !host.is_empty()
            && host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
    });
    if well_formed {
        Ok(url.to_owned())
    } else {
        Err(ConfigError::OriginUrl)
    }
}

fn parse_timeout(text: &str) -> Result<Duration, ConfigError> {
    match text.parse::<u32>() {
        Ok(millis @ 1..=ORIGIN_TIMEOUT_MAX_MS) => Ok(Duration::from_millis(millis.into())),
        _ => Err(ConfigError::OriginTimeout),
    }
}

fn parse_limit(
    name: &'static str,
    text: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, ConfigError> {
    let limit = text.parse().ok().filter(|limit| range.contains(limit));
    limit.ok_or(ConfigError::UploadLimit(name, *range.start(), *range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::key::SigningKey;

    fn read(overrides: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let jwks = KeySet::new(vec![SigningKey::from_seed("k1", &[7; 32]).public()])
            .unwrap()
            .to_jwks();
        Config::read(|name| {
            let given = overrides
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value);
            given
                .or(match name {
                    "ORIGIN_URL" => Some("http://127.0.0.1:8080/"),
                    "JWKS" => Some(&jwks),
                    _ => None,
                })
                .map(str::to_owned)
        })
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let config = read(&[]).unwrap();
        assert_eq!(config.origin_url, "http://127.0.0.1:8080");
        assert_eq!(config.origin_timeout, Duration::from_secs(35));
        assert_eq!(config.cors, CorsOrigins::any());
        assert!(config.logs_requests);
        assert_eq!(config.upload_limits, UploadLimits::default());
    }

    #[test]
    fn the_limits_of_uploads_can_be_set() {
        let config = read(&[("UPLOAD_MAX_BYTES", "2048"), ("UPLOAD_MAX_ITEMS", "3")]).unwrap();
        let expected = UploadLimits {
            body_bytes: 2048,
            items: 3,
        };
        assert_eq!(config.upload_limits, expected);
    }

    #[test]
    fn the_variable_at_fault_is_named_and_its_value_is_not() {
        for (name, value) in [
            ("ORIGIN_URL", ""),
            ("ORIGIN_URL", "origin.example"),
            ("ORIGIN_URL", "https://user@secret.example"),
            ("ORIGIN_URL", "https://origin.example/secret"),
            ("ORIGIN_URL", "ftp://origin.secret"),
            ("ORIGIN_TIMEOUT_MS", "0"),
            ("ORIGIN_TIMEOUT_MS", "secret"),
            ("JWKS", ""),
            ("JWKS", "secret"),
            ("JWKS", r#"{"keys":[]}"#),
            ("CORS_ORIGINS", "https://*"),
            ("LOG_REQUESTS", "secret"),
            ("UPLOAD_MAX_BYTES", "1023"),
            ("UPLOAD_MAX_BYTES", "secret"),
            ("UPLOAD_MAX_ITEMS", "0"),
            ("UPLOAD_MAX_ITEMS", "10001"),
        ] {
            let message = read(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name), "{name}={value}: {message}");
            assert!(!message.contains("secret"), "{name}={value}: {message}");
        }
    }
}
