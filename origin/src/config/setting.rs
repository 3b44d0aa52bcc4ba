//! The table of settings. Flags, environment variables, file keys, `--help`, `selkie config` and the sample file are
//! derived from the table. Knows neither where values come from (`layers`) nor their types (`Config`).

use super::layers::ValueOrigin;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    Plain,
    /// The value is never printed. The setting has no flag, since every user can read a process's arguments.
    Secret,
}

#[derive(Debug)]
pub struct Setting {
    /// The name in the file, from which the names of flag and variable are derived.
    pub name: &'static str,
    pub value_name: &'static str,
    pub help: &'static str,
    pub default: Option<&'static str>,
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

    pub fn has_flag(&self) -> bool {
        self.visibility == Visibility::Plain
    }

    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    pub fn variable(&self) -> String {
        format!("SELKIE_{}", self.name.to_uppercase())
    }

    /// Returns the name of the variable that names a file with the secret, such as `SELKIE_SECRET_FILE`.
    pub fn file_variable(&self) -> Option<String> {
        (self.visibility == Visibility::Secret).then(|| format!("{}_FILE", self.variable()))
    }

    /// Returns OpenTelemetry's variable, which counts only if no flag, other variable or file sets the setting.
    pub fn standard_variable(&self) -> Option<&'static str> {
        match self.name {
            "otlp_endpoint" => Some("OTEL_EXPORTER_OTLP_ENDPOINT"),
            "otlp_headers" => Some("OTEL_EXPORTER_OTLP_HEADERS"),
            _ => None,
        }
    }

    pub fn spellings(&self) -> String {
        let (variable, name) = (self.variable(), self.name);
        match self.file_variable() {
            Some(file_variable) => format!("{variable}, {file_variable}, or `{name}` in the file"),
            None => format!("--{}, {variable}, or `{name}` in the file", self.flag()),
        }
    }

    pub fn place(&self, origin: ValueOrigin) -> String {
        match origin {
            ValueOrigin::Flag => format!("--{}", self.flag()),
            ValueOrigin::Environment => self.variable(),
            ValueOrigin::SecretFile => format!("the file that {} names", self.file_variable().unwrap_or_default()),
            ValueOrigin::File => format!("`{}` in the file", self.name),
            ValueOrigin::Default => "the default".to_owned(),
        }
    }
}

pub fn sample_file() -> String {
    let mut file = "# Settings of Selkie: remove the # before those to change.\n".to_owned();
    for setting in SETTINGS {
        let default = setting.default.unwrap_or_default();
        let value = if default.parse::<u64>().is_ok() { default.to_owned() } else { format!("\"{default}\"") };
        file += &format!("\n# {}\n# {} = {value}\n", setting.help, setting.name);
    }
    file
}

pub fn find_setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// All settings except `accounts`, a table that only the configuration file can have.
pub static SETTINGS: &[Setting] = &[
    Setting::new("listen", "ADDRESS", "Address on which the origin listens").or("127.0.0.1:8080"),
    Setting::new("tls_certificate", "FILE", "PEM file of the origin's certificate and its intermediates. With it and `tls_key` the origin speaks HTTPS; both are read again when they change"),
    Setting::new("tls_key", "FILE", "PEM file of the certificate's private key"),
    Setting::new("data_dir", "DIR", "Directory of the installation's secret, its private MariaDB and its media").or(".selkie"),
    Setting::new("database_url", "URL", "MariaDB to use instead of a private one: `mysql://user:password@host:port`, with `?socket=PATH` or `?require_ssl=true`; several hosts of a cluster with commas: `mysql://user:password@a,b:3307`")
        .hidden(),
    Setting::new("replica_url", "URL", "Replicas of `database_url` that answer the reads of read keys, in the form of `database_url`; several with commas")
        .hidden(),
    Setting::new("secret", "TEXT", "The installation's secret, 32 bytes or more as hex or base64; without it, the file `secret` in `data_dir`")
        .hidden(),
    Setting::new("pool_size", "N", "Connections to MariaDB per account. More connections than MariaDB has processors only add latency").or("8"),
    Setting::new("pool_total", "N", "Connections of all accounts together; beyond, the connection that was idle longest is closed. `max_connections` of MariaDB must be at least 9/8 of it + 32, summed over all origins").or("100"),
    Setting::new("pool_queue", "N", "Requests that may wait for a connection, per account; beyond: 503 `overloaded`").or("1024"),
    Setting::new("pool_wait_timeout", "TIME", "Longest wait for a connection").or("5s"),
    Setting::new("connect_timeout", "TIME", "Longest time to open a connection to MariaDB").or("5s"),
    Setting::new("query_timeout", "TIME", "Longest run of one statement").or("30s"),
    Setting::new("stream_timeout", "TIME", "Longest streamed response of records").or("10m"),
    Setting::new("write_timeout", "TIME", "Longest stall while a client reads a response").or("30s"),
    Setting::new("body_read_timeout", "TIME", "Longest pause within a request's body, which must bring 1,024 bytes a second on average over that time").or("30s"),
    Setting::new("keep_alive_timeout", "TIME", "Longest wait for a connection's next request; must be longer than that of a proxy in front, or requests are lost").or("75s"),
    Setting::new("shutdown_grace", "TIME", "Time for running requests to end at a stop").or("10s"),
    Setting::new("json_body_max_bytes", "BYTES", "Largest JSON body").or("16777216"),
    Setting::new("upload_max_bytes", "BYTES", "Largest body of one upload").or("268435456"),
    Setting::new("upload_max_items", "N", "Files of one upload").or("64"),
    Setting::new("tus_max_bytes", "BYTES", "Largest resumable upload").or("17179869184"),
    Setting::new("tus_expiry", "TIME", "A resumable upload is removed this long after its last byte").or("24h"),
    Setting::new("media_types", "LIST", "Media types that may be uploaded: a list such as `image/*,application/pdf`").or("*/*"),
    Setting::new("rows_batch_max", "N", "Rows of one `batchData`; 10,000 at most").or("10000"),
    Setting::new("max_rows", "ROWS", "Records that one read returns at most; the response says if there are more. `off`: all").or("off"),
    Setting::new("cors_origins", "LIST", "Web origins that browsers may call from, separated by commas").or("*"),
    Setting::new("rate_limit", "LIMIT", "Requests of one key, as `100/1s` or `6000/1m`; `off`: any number").or("off"),
    Setting::new("require_edge", "ON", "`on`: only the edge and `trusted_networks` may call the origin").or("off"),
    Setting::new("trusted_networks", "LIST", "Networks, as `10.0.0.0/8,fd00::/8`, that `require_edge` admits and whose `X-Forwarded-…` headers are used"),
    Setting::new("media_store", "URL", "Where media are stored: `file:///absolute/path` or `s3://bucket/prefix`; without it, under `data_dir`"),
    Setting::new("media_s3_endpoint", "URL", "URL of the S3 service; without it, Amazon's of the region"),
    Setting::new("media_s3_region", "NAME", "Region of the bucket; `auto` for R2").or("us-east-1"),
    Setting::new("media_s3_access_key", "TEXT", "Id of the access key").hidden(),
    Setting::new("media_s3_secret_key", "TEXT", "Secret of the access key").hidden(),
    Setting::new("media_s3_path_style", "ON", "`on`: `https://host/bucket/key`; `off`: `https://bucket.host/key`").or("on"),
    Setting::new("public_url", "URL", "Base of file URLs in responses, as `https://api.example.com`. Without it: `X-Forwarded-Proto` and `X-Forwarded-Host`, else `Host`"),
    Setting::new("console", "ON", "`on`: serve the console, a page for people, at `/console`").or("on"),
    Setting::new("project_sign_in", "ON", "`on`: full keys may set the client id of an issuer, which puts a sign-in of their project on everybody's `/console`").or("off"),
    Setting::new("changes", "ON", "`on`: serve the feed of changes, for which a private MariaDB keeps a binary log").or("on"),
    Setting::new("webhook_allow", "LIST", "Networks of private, loopback and link-local addresses, as `10.1.0.0/16`, to which webhooks may be delivered; there also by plain HTTP"),
    Setting::new("log_level", "LEVEL", "`error`, `warn`, `info`, `debug` or `trace`").or("info"),
    Setting::new("log_format", "FORMAT", "`json`, `pretty`, or `auto`: pretty on a terminal").or("auto"),
    Setting::new("otlp_endpoint", "URL", "Collector to which traces are sent by OTLP (HTTP, protobuf), as `http://127.0.0.1:4318`; without it, `OTEL_EXPORTER_OTLP_ENDPOINT`; without both, no traces"),
    Setting::new("otlp_headers", "LIST", "Headers for the collector, as `name=value,other=value`; without it, `OTEL_EXPORTER_OTLP_HEADERS`").hidden(),
    Setting::new("otlp_share", "SHARE", "Share of the requests without `traceparent` that are traced, 0 to 1; a request with `traceparent` follows its sampled flag").or("1"),
    Setting::new("edge_listen", "ADDRESS", "Address of the edge that `selkie dev` starts").or("127.0.0.1:8787"),
    Setting::new("mariadb_buffer_pool_bytes", "BYTES", "InnoDB buffer pool of the private MariaDB").or("268435456"),
];
