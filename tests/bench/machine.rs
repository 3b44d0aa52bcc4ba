//! The machine and software on which figures were measured.

use std::fs;

use anyhow::{Context as _, Result};
use mysql_async::{Conn, prelude::Queryable as _};
use serde::Serialize;

#[derive(Debug, Default, Serialize)]
pub(crate) struct Machine {
    pub(crate) date: String,
    pub(crate) processor: String,
    /// Number of processor cores that may be used.
    pub(crate) cores: usize,
    pub(crate) kernel: String,
    pub(crate) mariadb: String,
}

impl Machine {
    pub(crate) async fn of(connection: &mut Conn) -> Result<Self> {
        let asked: Option<(String, String)> =
            connection.query_first("SELECT VERSION(), CAST(CURDATE() AS CHAR)").await?;
        let (mariadb, date) = asked.context("MariaDB without a version")?;
        let processors = fs::read_to_string("/proc/cpuinfo")?;
        let processor = processors
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned());
        Ok(Self {
            date,
            processor,
            cores: std::thread::available_parallelism()?.get(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            mariadb,
        })
    }
}
