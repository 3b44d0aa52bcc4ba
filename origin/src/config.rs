//! The configuration: built from flags, `SELKIE_*` variables and one TOML file (in this precedence; see [`Layers`]),
//! and checked completely before anything starts. Opens only the configuration file and the files of secret settings
//! (`SELKIE_…_FILE`).

mod access;
mod base_url;
mod environment;
mod layers;
mod media;
mod media_types;
mod otlp;
mod setting;
mod store_address;
mod tls;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use secrecy::SecretString;
use shared::cors::CorsOrigins;
use shared::limits;
use shared::rate::RateLimit;

#[cfg(test)]
pub(crate) use self::access::networks;
pub use self::access::{AccessConfig, ChangesConfig, ConsoleConfig, SignInClients};
pub use self::base_url::BaseUrl;
pub use self::environment::UnknownVariable;
pub use self::layers::{Account, FoundValue, Layers, ProjectAccounts, Sources, ValueOrigin};
pub use self::media_types::MediaTypes;
pub use self::otlp::OtlpConfig;
pub use self::setting::{SETTINGS, Setting, Visibility, find_setting, sample_file};
pub use self::store_address::{Addressing, BucketAddress, StoreAddress, StoreName, endpoint};
pub use self::tls::TlsFiles;
pub use self::value::LogFormat;
use crate::address::DatabaseAddress;

/// The checked settings. Paths are absolute, except perhaps those of TLS files in `database_url` and `replica_url`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    pub listen: SocketAddr,
    pub tls: Option<TlsFiles>,
    pub data_dir: PathBuf,
    /// `None` if Selkie runs a private MariaDB.
    pub database_url: Option<DatabaseAddress>,
    /// Replicas serve the reads of read keys and of roles that may not write to tables.
    pub replica_url: Option<DatabaseAddress>,
    /// `None` if the secret is in the file `secret` in `data_dir`.
    pub secret: Option<SecretString>,
    /// The maximum number of connections per account; connections to replicas are counted apart.
    pub pool_size: usize,
    pub pool_total: usize,
    pub pool_queue: usize,
    pub pool_wait_timeout: Duration,
    pub connect_timeout: Duration,
    pub query_timeout: Duration,
    pub stream_timeout: Duration,
    /// The maximum wait for a client to read the next bytes of a streamed response.
    pub write_timeout: Duration,
    pub body_read_timeout: Duration,
    /// HTTP/1: the maximum idle time until the next request's head. HTTP/2: the interval of pings.
    pub keep_alive_timeout: Duration,
    pub shutdown_grace: Duration,
    pub json_body_max_bytes: usize,
    pub upload_max_bytes: u64,
    pub upload_max_items: usize,
    pub tus_max_bytes: u64,
    /// The lifetime of an unfinished upload, counted from the last received byte.
    pub tus_expiry: Duration,
    pub media_types: MediaTypes,
    pub rows_batch_max: usize,
    pub max_rows: Option<u64>,
    pub cors_origins: CorsOrigins,
    pub rate_limit: Option<RateLimit>,
    pub access: AccessConfig,
    /// Networks whose `X-Forwarded-…` headers are trusted. If there are none and access is open, the headers of all
    /// peers are trusted.
    pub trusted_networks: Vec<IpNet>,
    pub media_store: StoreAddress,
    /// The bucket name is empty; [`BucketAddress::at`] sets it.
    pub s3: BucketAddress,
    /// `None` to derive the base of URLs from each request's headers.
    pub public_url: Option<BaseUrl>,
    pub console: ConsoleConfig,
    pub project_sign_in: SignInClients,
    pub changes: ChangesConfig,
    /// Networks to which webhooks may be delivered, beside public addresses.
    pub webhook_allow: Vec<IpNet>,
    pub log_level: tracing::Level,
    pub log_format: LogFormat,
    pub otlp: Option<OtlpConfig>,
    pub edge_listen: SocketAddr,
    pub mariadb_buffer_pool_bytes: usize,
    /// Accounts that the operator has created, for an admin account that may not create users.
    pub accounts: BTreeMap<String, ProjectAccounts>,
    pub file: Option<PathBuf>,
}

impl Config {
    /// Returns the default media store, which is also the directory of staged uploads for a bucket.
    pub fn media_dir(&self) -> PathBuf {
        media::directory(&self.data_dir)
    }

    pub fn load(sources: Sources) -> Result<Self, ConfigError> {
        Self::from_layers(&Layers::read(sources)?)
    }

    pub fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let time = |name| required(layers, name, value::time);
        let whole = |name, least, most| required(layers, name, |text: &str| value::whole(text, least, most));
        let data_dir = required(layers, "data_dir", |text| directory(text, &layers.directory))?;
        let s3 = media::access(layers)?;
        Ok(Self {
            listen: required(layers, "listen", value::address)?,
            tls: tls::files(layers)?,
            database_url: optional(layers, "database_url", DatabaseAddress::parse)?,
            replica_url: optional(layers, "replica_url", DatabaseAddress::parse)?,
            secret: optional(layers, "secret", crate::secret::check_text)?,
            pool_size: whole("pool_size", 1, 1_000)?,
            pool_total: whole("pool_total", 1, 10_000)?,
            pool_queue: whole("pool_queue", 0, 1_000_000)?,
            pool_wait_timeout: time("pool_wait_timeout")?,
            connect_timeout: time("connect_timeout")?,
            query_timeout: time("query_timeout")?,
            stream_timeout: time("stream_timeout")?,
            write_timeout: time("write_timeout")?,
            body_read_timeout: time("body_read_timeout")?,
            keep_alive_timeout: time("keep_alive_timeout")?,
            shutdown_grace: time("shutdown_grace")?,
            json_body_max_bytes: whole("json_body_max_bytes", 1_024, 1 << 30)?,
            upload_max_bytes: whole("upload_max_bytes", 1_024, 1 << 40)? as u64,
            upload_max_items: whole("upload_max_items", 1, 10_000)?,
            tus_max_bytes: whole("tus_max_bytes", 1_024, 1 << 50)? as u64,
            tus_expiry: required(layers, "tus_expiry", value::lifetime)?,
            media_types: required(layers, "media_types", MediaTypes::parse)?,
            rows_batch_max: whole("rows_batch_max", 1, limits::BATCH_MAX_ROWS)?,
            max_rows: required(layers, "max_rows", value::max_rows)?,
            cors_origins: required(layers, "cors_origins", value::cors_origins)?,
            rate_limit: required(layers, "rate_limit", value::rate_limit)?,
            access: required(layers, "require_edge", access::require_edge)?,
            trusted_networks: optional(layers, "trusted_networks", access::networks)?.unwrap_or_default(),
            media_store: media::store(layers, &data_dir, &s3)?,
            s3,
            public_url: optional(layers, "public_url", value::base_url)?,
            console: required(layers, "console", access::console)?,
            project_sign_in: required(layers, "project_sign_in", access::project_sign_in)?,
            changes: required(layers, "changes", access::changes)?,
            webhook_allow: optional(layers, "webhook_allow", access::networks)?.unwrap_or_default(),
            log_level: required(layers, "log_level", value::log_level)?,
            log_format: required(layers, "log_format", value::log_format)?,
            otlp: otlp::read(layers)?,
            edge_listen: required(layers, "edge_listen", value::address)?,
            mariadb_buffer_pool_bytes: whole("mariadb_buffer_pool_bytes", 8 << 20, 1 << 40)?,
            accounts: layers.accounts.0.clone(),
            file: layers.file.clone(),
            data_dir,
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{name} must be {expected}; {given} (set it by {spellings})")]
    BadValue {
        name: &'static str,
        /// Completes the sentence "`name` must be …".
        expected: String,
        /// The value that was given; without its text if it is secret.
        given: String,
        spellings: String,
    },
    #[error("`{key}` in {path} is no setting{hint}", path = path.display())]
    UnknownKey {
        key: String,
        path: PathBuf,
        /// `; did you mean …?`, or empty.
        hint: String,
    },
    #[error("{0}")]
    Misspelt(UnknownVariable),
    #[error("{variable} and {file_variable} are both set; set one of them")]
    SetTwice { variable: String, file_variable: String },
    #[error("the file {path}, which {file_variable} names, can't be read: {source}", path = path.display())]
    UnreadableSecret { file_variable: String, path: PathBuf, source: std::io::Error },
    #[error("the value of {name} is not UTF-8")]
    NotUtf8 { name: String },
    #[error("`{name}` in {path} must be a text, a number or a list of texts", path = path.display())]
    NotScalar { name: &'static str, path: PathBuf },
    #[error("[accounts] in {path}: {reason}", path = path.display())]
    BadAccounts { path: PathBuf, reason: String },
    #[error("{path}, line {line}: {reason}", path = path.display())]
    NotToml {
        path: PathBuf,
        /// The line in the file, counted from 1.
        line: usize,
        reason: String,
    },
    #[error("the configuration file {path} can't be read: {source}", path = path.display())]
    UnreadableFile { path: PathBuf, source: std::io::Error },
}

impl ConfigError {
    fn unknown_key(key: &str, path: &Path) -> Self {
        let names = SETTINGS.iter().map(|setting| setting.name);
        let hint = nearest(key, names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        Self::UnknownKey { key: key.to_owned(), path: path.to_owned(), hint }
    }
}

fn required<T>(
    layers: &Layers,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, ConfigError> {
    let empty = FoundValue { text: String::new(), origin: ValueOrigin::Default };
    checked(name, layers.get(name).unwrap_or(&empty), parse)
}

fn optional<T>(
    layers: &Layers,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, ConfigError> {
    layers.get(name).map(|found| checked(name, found, parse)).transpose()
}

fn checked<T>(
    name: &'static str,
    found: &FoundValue,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, ConfigError> {
    parse(&found.text).map_err(|expected| {
        let setting = find_setting(name);
        let is_secret = setting.is_some_and(|setting| setting.visibility == Visibility::Secret);
        let value = if is_secret { "another value".to_owned() } else { format!("{:?}", found.text) };
        let place = setting.map_or_else(String::new, |setting| setting.place(found.origin));
        ConfigError::BadValue {
            name,
            expected,
            given: format!("{place} says {value}"),
            spellings: setting.map_or_else(String::new, Setting::spellings),
        }
    })
}

fn directory(text: &str, base: &Path) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("a directory".to_owned());
    }
    Ok(base.join(text))
}

fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// The minimum Jaro-Winkler similarity of a proposed name; clap uses the same value.
    const ALIKE: f64 = 0.7;
    names
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
