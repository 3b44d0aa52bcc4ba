//! What the service was told: one struct, built from flags, `SELKIE_*` variables and one TOML file, in
//! that order of strength, and checked whole before anything starts.
//!
//! Holds values only; opens nothing but the file.

mod access;
mod accounts;
mod base_url;
mod environment;
mod layers;
mod media;
mod media_types;
mod setting;
mod store_address;
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

pub use self::access::AccessConfig;
#[cfg(test)]
pub(crate) use self::access::networks;
pub use self::accounts::{Account, ProjectAccounts};
pub use self::base_url::BaseUrl;
pub use self::environment::UnknownVariable;
pub use self::layers::{Found, Layers, Origin, Sources};
pub use self::media_types::MediaTypes;
pub use self::setting::{SETTINGS, Setting, Visibility, find_setting, sample_file};
pub use self::store_address::{Addressing, BucketAddress, StoreAddress, StoreName, endpoint};
pub use self::value::LogFormat;
use crate::address::DatabaseAddress;

/// The configuration in force. Every value has been checked; every path is absolute.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Config {
    /// Where the origin listens.
    pub listen: SocketAddr,
    /// Where the installation keeps its secret, its private MariaDB and its media.
    pub data_dir: PathBuf,
    /// The MariaDB to use; without one, the private one.
    pub database_url: Option<DatabaseAddress>,
    /// The installation's secret as text; without one, the file in `data_dir`.
    pub secret: Option<SecretString>,
    /// Connections per account.
    pub pool_size: usize,
    /// Connections of all accounts together.
    pub pool_total: usize,
    /// Requests that may wait for a connection, per account.
    pub pool_queue: usize,
    /// How long each of them waits.
    pub pool_wait_timeout: Duration,
    /// How long a connection to MariaDB may take to open.
    pub connect_timeout: Duration,
    /// How long one statement may run.
    pub query_timeout: Duration,
    /// How long a streamed answer of records may last in all.
    pub stream_timeout: Duration,
    /// How long a caller may leave bytes of an answer untaken.
    pub write_timeout: Duration,
    /// How long a caller may pause within a request's body.
    pub body_read_timeout: Duration,
    /// How long a connection may take for its next request's head, idle time included.
    pub keep_alive_timeout: Duration,
    /// How long running requests may take to end at a stop.
    pub shutdown_grace: Duration,
    /// Largest JSON body, in bytes.
    pub json_body_max_bytes: usize,
    /// Largest body of one upload, in bytes.
    pub upload_max_bytes: u64,
    /// Files of one upload.
    pub upload_max_items: usize,
    /// Largest file of one resumable upload, in bytes.
    pub tus_max_bytes: u64,
    /// How long a resumable upload lives after its last byte.
    pub tus_expiry: Duration,
    /// Types of files that may be uploaded.
    pub media_types: MediaTypes,
    /// Rows of one batch insert.
    pub rows_batch_max: usize,
    /// Which web origins browsers may call from.
    pub cors_origins: CorsOrigins,
    /// How often one key may call; without it, as often as it likes.
    pub rate_limit: Option<RateLimit>,
    /// Who may speak to the origin.
    pub access: AccessConfig,
    /// Whose word about a request counts, and who is let in where not everybody is.
    pub trusted_networks: Vec<IpNet>,
    /// Where media are kept.
    pub media_store: StoreAddress,
    /// Where callers reach the service, if requests don't tell.
    pub public_url: Option<BaseUrl>,
    /// What is logged.
    pub log_level: tracing::Level,
    /// The form of log lines.
    pub log_format: LogFormat,
    /// Where `selkie dev` lets the edge listen.
    pub edge_listen: SocketAddr,
    /// Most memory for pages of the private MariaDB, in bytes.
    pub mariadb_buffer_pool_bytes: usize,
    /// Ready-made accounts by project, where the admin account may not create users.
    pub accounts: BTreeMap<String, ProjectAccounts>,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
}

impl Config {
    /// Where files of callers arrive, and lie where no other store is named.
    #[must_use]
    pub fn media_dir(&self) -> PathBuf {
        media::directory(&self.data_dir)
    }

    /// Reads and checks everything.
    ///
    /// # Errors
    /// The first fault found; its message names the setting and how to spell it.
    pub fn load(sources: Sources) -> Result<Self, ConfigError> {
        Self::from_layers(&Layers::read(sources)?)
    }

    /// Checks what the layers hold.
    ///
    /// # Errors
    /// A value that its setting can't take.
    pub fn from_layers(layers: &Layers) -> Result<Self, ConfigError> {
        let time = |name| required(layers, name, value::time);
        let whole = |name, least, most| required(layers, name, |text: &str| value::whole(text, least, most));
        let data_dir = required(layers, "data_dir", |text| directory(text, &layers.directory))?;
        Ok(Self {
            listen: required(layers, "listen", value::address)?,
            database_url: optional(layers, "database_url", DatabaseAddress::parse)?,
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
            cors_origins: required(layers, "cors_origins", value::cors_origins)?,
            rate_limit: required(layers, "rate_limit", value::rate_limit)?,
            access: required(layers, "require_edge", access::require_edge)?,
            trusted_networks: optional(layers, "trusted_networks", access::networks)?.unwrap_or_default(),
            media_store: media::store(layers, &data_dir)?,
            public_url: optional(layers, "public_url", value::base_url)?,
            log_level: required(layers, "log_level", value::log_level)?,
            log_format: required(layers, "log_format", value::log_format)?,
            edge_listen: required(layers, "edge_listen", value::address)?,
            mariadb_buffer_pool_bytes: whole("mariadb_buffer_pool_bytes", 8 << 20, 1 << 40)?,
            accounts: layers.accounts.0.clone(),
            file: layers.file.clone(),
            data_dir,
        })
    }
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A value that its setting can't take.
    #[error("{name} must be {expected}; {given} (set it by {spellings})")]
    BadValue {
        /// The setting.
        name: &'static str,
        /// What it must be.
        expected: String,
        /// What stood where, without the value if that is secret.
        given: String,
        /// How it may be spelled.
        spellings: String,
    },
    /// A key of the file that is no setting.
    #[error("`{key}` in {path} is no setting{hint}", path = path.display())]
    UnknownKey {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// ``; did you mean `…`?``, or nothing.
        hint: String,
    },
    /// A variable of the environment that is a misspelt setting.
    #[error("{0}")]
    Misspelt(UnknownVariable),
    /// A variable of the environment that is no text.
    #[error("the value of {name} is not UTF-8")]
    NotUtf8 {
        /// The variable.
        name: String,
    },
    /// A key of the file whose value is neither text nor number.
    #[error("`{name}` in {path} must be a text or a number", path = path.display())]
    NotScalar {
        /// The setting.
        name: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The `accounts` table has another shape.
    #[error("[accounts] in {path}: {reason}", path = path.display())]
    BadAccounts {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file isn't TOML.
    #[error("{path}, line {line}: {reason}", path = path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file can't be read.
    #[error("the configuration file {path} can't be read: {source}", path = path.display())]
    UnreadableFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
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
    let empty = Found { text: String::new(), origin: Origin::Default };
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
    found: &Found,
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

/// The name most like `word`, if any is like it.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Jaro-Winkler similarity from which a name is worth offering; clap uses the same.
    const ALIKE: f64 = 0.7;
    names
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests;
