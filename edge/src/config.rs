//! The worker's variables, parsed once per isolate. Does not use the worker's API: the caller passes a function that
//! returns the value of a variable.

mod access;
mod origins;

pub use access::{AccessConfig, EdgeSecret};
pub use origins::{Origin, Region};

use shared::cors::CorsOrigins;
use shared::error::Problem;
use shared::key::{EdgeIssuers, EdgeIssuersFault, KeySet, KeySetError};
use shared::limits::{ORIGINS_MAX_COUNT, UPLOAD_BODY_MAX_BYTES};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Default of `ORIGIN_TIMEOUT_MS`: longer than the 30 s after which the origin itself ends a statement by default.
const ORIGIN_TIMEOUT_DEFAULT_MS: u32 = 35_000;

/// Default of `ORIGIN_CONNECT_TIMEOUT_MS`: ten round trips around the world.
const ORIGIN_CONNECT_TIMEOUT_DEFAULT_MS: u32 = 2_000;

/// Maximum of `ORIGIN_TIMEOUT_MS` and `ORIGIN_CONNECT_TIMEOUT_MS`: an hour.
const ORIGIN_TIMEOUT_MAX_MS: u32 = 3_600_000;

/// Range of `UPLOAD_MAX_BYTES`, the same as for the origin's `upload_max_bytes`.
const UPLOAD_BYTES: RangeInclusive<u64> = 1_024..=1 << 40;

const MEDIA_REVALIDATE_DEFAULT_SECONDS: u64 = 60;

/// Range of `MEDIA_REVALIDATE_SECONDS`: at most an hour, since a deleted file may still be served for this long, and
/// for longer while no origin answers.
const MEDIA_REVALIDATE_SECONDS: RangeInclusive<u64> = 1..=3_600;

/// Range of `READ_CACHE_MAX_SECONDS`: at most a day.
const READ_CACHE_SECONDS: RangeInclusive<u64> = 0..=86_400;

#[derive(Debug)]
pub struct Config {
    /// The origin servers, in the order of the environment variable `ORIGINS`. Never empty.
    pub origins: Vec<Origin>,
    /// Timeout for the head of an origin's response, for all attempts of a request together. For a streamed body, it
    /// starts when the body has been sent. Also the timeout for reading a response into memory to cache it.
    pub origin_timeout: Duration,
    /// How long an origin may be silent before the edge checks its health; also the timeout of that check.
    pub origin_connect_timeout: Duration,
    pub keys: KeySet,
    /// The issuers whose tokens the edge verifies. Tokens of other issuers are forwarded unverified.
    pub issuers: EdgeIssuers,
    pub cors: CorsOrigins,
    pub logs_requests: bool,
    /// Maximum age of cached reads in seconds; 0 disables the cache of reads.
    pub read_cache_max_seconds: u32,
    pub upload_max_bytes: u64,
    /// Seconds for which a cached public file is served without a revalidation.
    pub media_revalidate_seconds: u64,
    pub access: AccessConfig,
}

/// A missing or invalid variable. Messages name the variable and show no secret.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the variable {0} is not set")]
    Missing(&'static str),
    /// An entry of `ORIGINS` is malformed. Contains the entry's number, from 1.
    #[error("the variable ORIGINS: entry {0} is not of the form https://host[:port][;near=EU|AF]")]
    Origin(usize),
    /// Two entries of `ORIGINS` have the same URL. Contains the number of the second, from 1.
    #[error("the variable ORIGINS: entry {0} is there already")]
    OriginTwice(usize),
    #[error("the variable ORIGINS lists more than {ORIGINS_MAX_COUNT} addresses")]
    TooManyOrigins,
    #[error("the variable {0} is not a number from 1 to {ORIGIN_TIMEOUT_MAX_MS}")]
    Timeout(&'static str),
    #[error("the variable {0} is neither on nor off")]
    Switch(&'static str),
    #[error("the variable {0} is not a number from {1} to {2}")]
    Limit(&'static str, u64, u64),
    /// The name of a variable with an invalid value, and the expected form.
    #[error("the variable {0} is not {1}")]
    Form(&'static str, &'static str),
    #[error("the variable JWKS can't be used: {0}")]
    Jwks(#[source] KeySetError),
    #[error("the variable ISSUERS can't be used: {0}")]
    Issuers(#[source] EdgeIssuersFault),
    #[error("the variable CORS_ORIGINS can't be used: {}", .0.message())]
    Cors(Problem),
}

impl Config {
    /// Parses the configuration. `variable` returns the value of a variable.
    pub fn read(variable: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let required = |name| non_blank(variable(name)).ok_or(ConfigError::Missing(name));
        let timeout = |name, default| match non_blank(variable(name)) {
            Some(text) => parse_timeout(name, &text),
            None => Ok(Duration::from_millis(u64::from(default))),
        };
        let cors = match non_blank(variable("CORS_ORIGINS")) {
            Some(text) => CorsOrigins::parse(&text).map_err(ConfigError::Cors)?,
            None => CorsOrigins::any(),
        };
        let issuers = match non_blank(variable("ISSUERS")) {
            Some(text) => EdgeIssuers::parse(&text).map_err(ConfigError::Issuers)?,
            None => EdgeIssuers::default(),
        };
        let read_cache_max_seconds = match non_blank(variable("READ_CACHE_MAX_SECONDS")) {
            Some(text) => parse_limit("READ_CACHE_MAX_SECONDS", &text, READ_CACHE_SECONDS)? as u32,
            None => 0,
        };
        let upload_max_bytes = match non_blank(variable("UPLOAD_MAX_BYTES")) {
            Some(text) => parse_limit("UPLOAD_MAX_BYTES", &text, UPLOAD_BYTES)?,
            None => UPLOAD_BODY_MAX_BYTES,
        };
        const SECONDS: &str = "MEDIA_REVALIDATE_SECONDS";
        let media_revalidate_seconds = match non_blank(variable(SECONDS)) {
            Some(text) => parse_limit(SECONDS, &text, MEDIA_REVALIDATE_SECONDS)?,
            None => MEDIA_REVALIDATE_DEFAULT_SECONDS,
        };
        Ok(Self {
            origins: origins::parse(&required("ORIGINS")?)?,
            origin_timeout: timeout("ORIGIN_TIMEOUT_MS", ORIGIN_TIMEOUT_DEFAULT_MS)?,
            origin_connect_timeout: timeout("ORIGIN_CONNECT_TIMEOUT_MS", ORIGIN_CONNECT_TIMEOUT_DEFAULT_MS)?,
            keys: KeySet::from_jwks(&required("JWKS")?).map_err(ConfigError::Jwks)?,
            issuers,
            cors,
            logs_requests: switch("LOG_REQUESTS", &variable)?.unwrap_or(true),
            read_cache_max_seconds,
            upload_max_bytes,
            media_revalidate_seconds,
            access: AccessConfig::read(variable)?,
        })
    }
}

/// Returns a variable's value, trimmed; `None` if the variable is unset or blank.
fn non_blank(value: Option<String>) -> Option<String> {
    value.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Parses `on`, `off`, `true` or `false`; `None` if the variable is unset or blank. Fails with [`ConfigError::Switch`].
fn switch(name: &'static str, variable: impl Fn(&'static str) -> Option<String>) -> Result<Option<bool>, ConfigError> {
    match non_blank(variable(name)).as_deref() {
        None => Ok(None),
        Some("on" | "true") => Ok(Some(true)),
        Some("off" | "false") => Ok(Some(false)),
        Some(_) => Err(ConfigError::Switch(name)),
    }
}

fn parse_timeout(name: &'static str, text: &str) -> Result<Duration, ConfigError> {
    match text.parse::<u32>() {
        Ok(millis @ 1..=ORIGIN_TIMEOUT_MAX_MS) => Ok(Duration::from_millis(millis.into())),
        _ => Err(ConfigError::Timeout(name)),
    }
}

fn parse_limit(name: &'static str, text: &str, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    let limit = text.parse().ok().filter(|limit| range.contains(limit));
    limit.ok_or(ConfigError::Limit(name, *range.start(), *range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::key::SigningKey;

    fn read(overrides: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let jwks = KeySet::new(vec![SigningKey::from_seed("k1", &[7; 32]).public()]).unwrap().to_jwks();
        Config::read(|name| {
            let given = overrides.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            given
                .or(match name {
                    "ORIGINS" => Some("http://127.0.0.1:8080/"),
                    "JWKS" => Some(&jwks),
                    _ => None,
                })
                .map(str::to_owned)
        })
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let config = read(&[]).unwrap();
        assert_eq!(config.origins.len(), 1);
        assert_eq!(config.origins[0].url(), "http://127.0.0.1:8080");
        assert_eq!(config.origin_timeout, Duration::from_secs(35));
        assert_eq!(config.origin_connect_timeout, Duration::from_secs(2));
        assert_eq!(config.issuers, EdgeIssuers::default());
        assert_eq!(config.cors, CorsOrigins::any());
        assert!(config.logs_requests);
        assert_eq!(config.read_cache_max_seconds, 0);
        assert_eq!(config.upload_max_bytes, UPLOAD_BODY_MAX_BYTES);
        assert_eq!(config.media_revalidate_seconds, 60);
    }

    #[test]
    fn the_limit_of_uploads_can_be_set() {
        let config = read(&[("UPLOAD_MAX_BYTES", "2048")]).unwrap();
        assert_eq!(config.upload_max_bytes, 2048);
    }

    #[test]
    fn a_switch_is_on_or_off_or_true_or_false() {
        for (text, expected) in [("on", true), ("true", true), ("off", false), ("false", false)] {
            let config = read(&[("LOG_REQUESTS", text)]).unwrap();
            assert_eq!(config.logs_requests, expected, "{text}");
        }
    }

    #[test]
    fn the_variable_at_fault_is_named_and_its_value_is_not() {
        for (name, value) in [
            ("ORIGINS", ""),
            ("ORIGINS", ","),
            ("ORIGINS", "origin.example"),
            ("ORIGINS", "https://user@secret.example"),
            ("ORIGINS", "https://origin.example/secret"),
            ("ORIGINS", "ftp://origin.secret"),
            ("ORIGINS", "https://origin.example,https://secret/x"),
            ("ORIGINS", "https://secret.example;near="),
            ("ORIGINS", "https://secret.example;near=EU|"),
            ("ORIGINS", "https://secret.example;near=Europe"),
            ("ORIGINS", "https://secret.example;far=EU"),
            ("ORIGINS", "https://secret.example;near=EU;near=AF"),
            ("ORIGINS", "https://secret.example,https://Secret.example/"),
            ("ORIGIN_TIMEOUT_MS", "0"),
            ("ORIGIN_TIMEOUT_MS", "secret"),
            ("ORIGIN_CONNECT_TIMEOUT_MS", "3600001"),
            ("JWKS", ""),
            ("JWKS", "secret"),
            ("JWKS", r#"{"keys":[]}"#),
            ("ISSUERS", "secret"),
            ("ISSUERS", r#"[{"issuer":"https://secret","audience":"secret","jwks":{"keys":[]}}]"#),
            ("ISSUERS", r#"[{"issuer":"x","audience":"x","jwks":{"keys":[{"kty":"oct","k":"secret"}]}}]"#),
            ("CORS_ORIGINS", "https://*"),
            ("LOG_REQUESTS", "secret"),
            ("READ_CACHE_MAX_SECONDS", "86401"),
            ("READ_CACHE_MAX_SECONDS", "secret"),
            ("UPLOAD_MAX_BYTES", "1023"),
            ("UPLOAD_MAX_BYTES", "secret"),
            ("MEDIA_REVALIDATE_SECONDS", "0"),
        ] {
            let message = read(&[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name), "{name}={value}: {message}");
            assert!(!message.contains("secret"), "{name}={value}: {message}");
        }
    }
}
