//! The servers that all curves share: a private MariaDB with the tables of `compare`, origins on
//! it, and the bare driver.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures_util::TryStreamExt as _;
use mysql_async::{
    Conn, Row,
    prelude::{Query as _, Queryable as _, WithParams as _},
};

use crate::{
    accounting, data,
    http::Connection,
    mariadb::{self, MariaDb},
    process::Started,
    selkie::{self, Endpoint},
};

pub(super) struct Ground {
    pub(super) mariadb: MariaDb,
    /// A connection with all rights and no selected database.
    pub(super) admin: Conn,
    pub(super) binary: PathBuf,
}

/// What MariaDB contains before the first point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    Posts,
    Nothing,
}

pub(super) struct Subject {
    pub(super) process: Started,
    pub(super) endpoint: Endpoint,
}

impl Ground {
    pub(super) async fn prepare(binary: &Path, contents: Contents) -> Result<Self> {
        let mariadb = MariaDb::start().await?;
        let mut admin = Conn::new(mariadb::options(&mariadb.socket(), None)).await?;
        if contents == Contents::Posts {
            data::fill(&mut admin).await?;
        }
        Ok(Self { mariadb, admin, binary: binary.to_owned() })
    }

    pub(super) async fn origin(&self) -> Result<Subject> {
        let (process, endpoint) = selkie::start(&self.binary, &self.mariadb).await?;
        Ok(Subject { process, endpoint })
    }

    pub(super) async fn command(&self, subject: &Subject, arguments: &[&str]) -> Result<Duration> {
        let began = Instant::now();
        selkie::printed(&self.binary, &self.mariadb, subject.endpoint.address, arguments).await?;
        Ok(began.elapsed())
    }

    pub(super) async fn sql(&mut self, statements: &[String]) -> Result<()> {
        for statement in statements {
            self.admin.query_drop(statement).await?;
        }
        Ok(())
    }

    pub(super) async fn status(&mut self, name: &str) -> Result<f64> {
        let row: Option<(String, String)> = self.admin.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'")).await?;
        Ok(row.context("no such status")?.1.parse()?)
    }

    /// Returns the median time in which the bare driver reads and drops the result of `text`, run for at least
    /// `duration`.
    pub(super) async fn bare(&mut self, text: &str, duration: Duration) -> Result<f64> {
        let mut times = Vec::new();
        let began = Instant::now();
        while began.elapsed() < duration || times.len() < 3 {
            let from = Instant::now();
            let mut rows = text.with(()).stream::<Row, _>(&mut self.admin).await?;
            while rows.try_next().await?.is_some() {}
            times.push(from.elapsed());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2].as_secs_f64() * 1e3)
    }
}

impl Subject {
    /// Returns the bytes of a GET of `path` with `key`.
    pub(super) fn get(&self, path: &str, key: &str) -> Vec<u8> {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nAccept: application/json\r\n\r\n",
            self.endpoint.address
        )
        .into_bytes()
    }

    /// Returns the bytes of a GET of `path` with the endpoint's own key.
    pub(super) fn read(&self, path: &str) -> Vec<u8> {
        self.get(path, &self.endpoint.requests.key)
    }

    /// Sends a request over a new connection; returns the milliseconds to the end of the answer, which must be a
    /// success.
    pub(super) async fn once(&self, request: &[u8]) -> Result<f64> {
        let mut connection = Connection::open(self.endpoint.address).await?;
        let began = Instant::now();
        let (status, body) = connection.fetch(request).await?;
        let took = began.elapsed();
        if status != 200 {
            let length = body.len().min(400);
            bail!("answered {status}: {}", String::from_utf8_lossy(&body[..length]));
        }
        Ok(took.as_secs_f64() * 1e3)
    }

    pub(super) fn resident(&self) -> Result<f64> {
        Ok(accounting::resident(self.process.pid())? as f64 / 1e6)
    }

    pub(super) fn files(&self) -> Result<f64> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.process.pid()))?.count() as f64)
    }
}
