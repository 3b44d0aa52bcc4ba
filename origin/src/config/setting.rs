//! The one table of settings: its names, what it means, its default. Flags, environment names, the
//! keys of the file, `--help` and `selkie config` are all read off it.
//!
//! Knows nothing of where values come from (`layers`) or what they become (`Config`).

use super::layers::Origin;

/// Who may see a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Printed by `selkie config` and in messages.
    Plain,
    /// Never printed, never in a message, and not given by a flag: every user of the machine could
    /// read it in the list of processes.
    Secret,
}

/// One row of [`SETTINGS`].
#[derive(Debug)]
pub struct Setting {
    /// Name in the file; the flag and the environment name derive from it.
    pub name: &'static str,
    /// What stands for the value in `--help`.
    pub value_name: &'static str,
    /// One line for `--help`.
    pub help: &'static str,
    /// The value where nobody sets one; without one, the setting is optional.
    pub default: Option<&'static str>,
    /// Who may see its value.
    pub visibility: Visibility,
}

impl Setting {
    const fn new(name: &'static str, value_name: &'static str, help: &'static str) -> Self {
        Self { name, value_name, help, default: None, visibility: Visibility::Plain }
    }

    const fn or(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    const fn hidden(self) -> Self {
        Self { visibility: Visibility::Secret, ..self }
    }

    /// Whether a flag may give it. The environment and the file may give every setting.
    #[must_use]
    pub fn has_flag(&self) -> bool {
        self.visibility == Visibility::Plain
    }

    /// The flag, without dashes in front: `pool-size`.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment name: `SELKIE_POOL_SIZE`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("SELKIE_{}", self.name.to_uppercase())
    }

    /// All its spellings, for messages: ``--pool-size, SELKIE_POOL_SIZE, or `pool_size` in the file``.
    #[must_use]
    pub fn spellings(&self) -> String {
        let rest = format!("{}, or `{}` in the file", self.variable(), self.name);
        if self.has_flag() { format!("--{}, {rest}", self.flag()) } else { rest }
    }

    /// The one spelling that was used, for messages.
    #[must_use]
    pub fn place(&self, origin: Origin) -> String {
        match origin {
            Origin::Flag => format!("--{}", self.flag()),
            Origin::Environment => self.variable(),
            Origin::File => format!("`{}` in the file", self.name),
            Origin::Default => "the default".to_owned(),
        }
    }
}

/// The row named `name`.
#[must_use]
pub fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Every setting but `accounts`, a table that only the file can hold.
pub static SETTINGS: &[Setting] = &[
    Setting::new("listen", "ADDRESS", "Where the origin listens").or("127.0.0.1:8080"),
    Setting::new("data_dir", "DIR", "Where the installation keeps its secret, its private MariaDB and its media").or(".selkie"),
    Setting::new("database_url", "URL", "MariaDB to use instead of the private one: mysql://user:password@host:port, with ?socket=PATH or ?require_ssl=true")
        .hidden(),
    Setting::new("secret", "TEXT", "The installation's secret, 32 bytes or more as hex or base64; made once in the data directory if absent")
        .hidden(),
    Setting::new("pool_size", "N", "Connections to MariaDB per account").or("8"),
    Setting::new("pool_total", "N", "Connections to MariaDB of all accounts together").or("100"),
    Setting::new("pool_queue", "N", "Requests that may wait for a connection, per account").or("1024"),
    Setting::new("pool_wait_timeout", "TIME", "How long a request waits for a connection").or("5s"),
    Setting::new("connect_timeout", "TIME", "How long a connection to MariaDB may take to open").or("5s"),
    Setting::new("query_timeout", "TIME", "How long one statement may run").or("30s"),
    Setting::new("stream_timeout", "TIME", "How long a streamed answer of records may last in all").or("10m"),
    Setting::new("write_timeout", "TIME", "How long a caller may leave an answer's bytes untaken").or("30s"),
    Setting::new("header_read_timeout", "TIME", "How long a new connection may stay silent").or("10s"),
    Setting::new("body_read_timeout", "TIME", "How long a caller may pause within a request's body").or("30s"),
    Setting::new("keep_alive_timeout", "TIME", "How long a connection may take for its next request's head; idle ones end then").or("75s"),
    Setting::new("shutdown_grace", "TIME", "How long running requests may take to end when the service stops").or("10s"),
    Setting::new("json_body_max_bytes", "BYTES", "Largest JSON body").or("16777216"),
    Setting::new("upload_max_bytes", "BYTES", "Largest body of one upload").or("268435456"),
    Setting::new("upload_max_items", "N", "Files of one upload").or("64"),
    Setting::new("tus_max_bytes", "BYTES", "Largest file of one resumable upload").or("17179869184"),
    Setting::new("tus_expiry", "TIME", "How long a resumable upload waits for its next byte").or("24h"),
    Setting::new("media_types", "LIST", "Types of files that may be uploaded, separated by commas, such as image/*,application/pdf").or("*/*"),
    Setting::new("rows_batch_max", "N", "Rows of one batch insert").or("10000"),
    Setting::new("cors_origins", "LIST", "Web origins that browsers may call from, separated by commas; * for any").or("*"),
    Setting::new("rate_limit", "LIMIT", "Requests of one key in a time, such as 100/1s or 6000/1m; off: any number").or("off"),
    Setting::new("require_edge", "ON", "on: only the edge and trusted_networks may speak to the origin; off: everybody with a key").or("off"),
    Setting::new("trusted_networks", "LIST", "Networks, separated by commas, whose X-Forwarded headers are believed and who are let in where require_edge is on"),
    Setting::new("media_store", "URL", "Where media are kept: file:///absolute/path or s3://bucket/prefix; without it, in the data directory"),
    Setting::new("media_s3_endpoint", "URL", "Where the S3 service of media_store is; without it, Amazon's of the region"),
    Setting::new("media_s3_region", "NAME", "The region of the bucket of media_store; auto for R2").or("us-east-1"),
    Setting::new("media_s3_access_key", "TEXT", "The id of the access key to the bucket of media_store").hidden(),
    Setting::new("media_s3_secret_key", "TEXT", "The secret of that access key").hidden(),
    Setting::new("media_s3_path_style", "ON", "on: https://host/bucket/key; off: https://bucket.host/key").or("on"),
    Setting::new("media_fsync", "ON", "on: media are written through to the disk before they count as stored; off: for measurements").or("on"),
    Setting::new("public_url", "URL", "Where callers reach the service, for the URLs of files in answers; told by each request if absent"),
    Setting::new("log_level", "LEVEL", "error, warn, info, debug or trace").or("info"),
    Setting::new("log_format", "FORMAT", "json, pretty, or auto: pretty on a terminal").or("auto"),
    Setting::new("edge_listen", "ADDRESS", "Where `selkie dev` lets the edge listen").or("127.0.0.1:8787"),
    Setting::new("mariadb_buffer_pool_bytes", "BYTES", "Most memory for pages of the private MariaDB").or("268435456"),
];
