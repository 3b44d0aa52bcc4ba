//! Selkie as a contender: a `selkie serve` on the private MariaDB, or a running installation that a `dev.env` names.

use std::{
    collections::HashMap,
    fs::{self, File},
    net::{SocketAddr, TcpListener, ToSocketAddrs as _},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{process::Command, time::sleep};

use crate::{
    data,
    http::Connection,
    mariadb::MariaDb,
    process::Started,
    request::{Dialect, Requests},
};

/// Number of tries, 10 ms apart, until the service must be ready.
const START_TRIES: u32 = 6_000;

#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Requests,
}

/// Returns the path of the `selkie` binary: the given path, or else the binary beside this program; `None` if it is
/// missing.
pub(crate) fn binary(asked: Option<&Path>) -> Result<Option<PathBuf>> {
    if let Some(path) = asked {
        return Ok(Some(path.canonicalize().with_context(|| path.display().to_string())?));
    }
    let beside = std::env::current_exe()?.with_file_name("selkie");
    Ok(beside.is_file().then_some(beside))
}

pub(crate) async fn start(binary: &Path, mariadb: &MariaDb) -> Result<(Started, Endpoint)> {
    start_with(binary, mariadb, &[]).await
}

pub(crate) async fn start_with(
    binary: &Path,
    mariadb: &MariaDb,
    settings: &[(&str, &str)],
) -> Result<(Started, Endpoint)> {
    let (started, address) = serve(binary, mariadb, settings).await?;
    let text = printed(binary, mariadb, address, &["key", "create", "--access", "full"]).await?;
    let key = text.split(|c: char| c.is_whitespace() || c == '"').find(|word| word.starts_with("eyJ"));
    let key = key.context("no key was printed")?;
    let endpoint = Endpoint { address, requests: requests(address, key, data::DATABASE) };
    Ok((started, endpoint))
}

/// Starts an origin without a key for requests; returns when it is ready.
pub(crate) async fn serve(
    binary: &Path,
    mariadb: &MariaDb,
    settings: &[(&str, &str)],
) -> Result<(Started, SocketAddr)> {
    let address = free_address()?;
    let environment = environment(mariadb, address);
    let log = File::create(mariadb.directory().join("selkie.log"))?;
    let started = Started::new(binary, |command| {
        command.arg("serve").envs(environment.clone()).envs(settings.iter().copied()).current_dir(mariadb.directory());
        // The log is written to a file, since writing it is part of the service's cost.
        if let Ok(other) = log.try_clone() {
            command.stdout(other);
        }
        command.stderr(log);
    })?;
    wait_until_ready(address).await.with_context(|| last_lines(mariadb))?;
    Ok((started, address))
}

pub(crate) async fn jwks(binary: &Path, mariadb: &MariaDb, endpoint: &Endpoint) -> Result<String> {
    printed(binary, mariadb, endpoint.address, &["key", "jwks"]).await
}

/// Returns the settings of every origin and command on `mariadb`.
fn environment(mariadb: &MariaDb, address: SocketAddr) -> [(&'static str, String); 4] {
    let socket = mariadb.socket();
    [
        ("SELKIE_DATABASE_URL", format!("mysql://root@localhost?socket={}", socket.display())),
        ("SELKIE_DATA_DIR", mariadb.directory().join("selkie").display().to_string()),
        ("SELKIE_LISTEN", address.to_string()),
        ("SELKIE_LOG_FORMAT", "json".to_owned()),
    ]
}

pub(crate) async fn printed(
    binary: &Path,
    mariadb: &MariaDb,
    address: SocketAddr,
    arguments: &[&str],
) -> Result<String> {
    let output = Command::new(binary)
        .args(arguments)
        .envs(environment(mariadb, address))
        .current_dir(mariadb.directory())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the endpoints of a running installation, after filling its project's `<project>_bench` by SQL calls.
pub(crate) async fn running(dev_env: &Path) -> Result<Vec<(&'static str, Endpoint)>> {
    let text = fs::read_to_string(dev_env).with_context(|| dev_env.display().to_string())?;
    let values: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("export ").split_once('='))
        .map(|(name, value)| (name, value.trim_matches(['"', '\''])))
        .collect();
    let value = |name| values.get(name).copied().filter(|value| !value.is_empty());
    let key = value("SELKIE_FULL_KEY").context("no SELKIE_FULL_KEY in that file")?;
    let database = format!("{}_bench", value("SELKIE_PROJECT").unwrap_or("default"));
    let mut endpoints = Vec::new();
    for (name, variable) in [("running origin", "SELKIE_ORIGIN_URL"), ("running edge", "SELKIE_EDGE_URL")] {
        if let Some(url) = value(variable) {
            let address = loopback(url)?;
            endpoints.push((name, Endpoint { address, requests: requests(address, key, &database) }));
        }
    }
    let (_, endpoint) = endpoints.first().context("no address in that file")?;
    fill(endpoint).await?;
    Ok(endpoints)
}

pub(crate) async fn sql(endpoint: &Endpoint, query: &str) -> Result<(u16, String)> {
    let mut request = Vec::new();
    endpoint.requests.sql(query, &mut request);
    let (status, body) = Connection::open(endpoint.address).await?.fetch(&request).await?;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn fill(endpoint: &Endpoint) -> Result<()> {
    let database = &endpoint.requests.database;
    let (status, _) = sql(endpoint, "SELECT 1 FROM million LIMIT 1").await?;
    if status == 200 {
        return Ok(());
    }
    let mut request = Vec::new();
    endpoint.requests.create_database(&mut request);
    // Ignores the status of the answer, since the database may exist already. The statements below
    // then fill it again.
    Connection::open(endpoint.address).await?.fetch(&request).await?;
    for statement in data::STATEMENTS {
        let (status, body) = sql(endpoint, statement).await?;
        if status != 200 {
            bail!("filling {database}: {body}");
        }
    }
    Ok(())
}

fn requests(address: SocketAddr, key: &str, database: &str) -> Requests {
    Requests { dialect: Dialect::Selkie, host: address.to_string(), key: key.to_owned(), database: database.to_owned() }
}

async fn wait_until_ready(address: SocketAddr) -> Result<()> {
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    for _ in 0..START_TRIES {
        if let Ok(mut connection) = Connection::open(address).await
            && let Ok(answer) = connection.call(request.as_bytes()).await
            && answer.status == 200
        {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!("selkie is not ready within {} s", START_TRIES / 100)
}

pub(crate) fn last_lines(mariadb: &MariaDb) -> String {
    let text = fs::read_to_string(mariadb.directory().join("selkie.log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

fn loopback(url: &str) -> Result<SocketAddr> {
    let authority = url.strip_prefix("http://").context("only plain http on this machine")?.trim_end_matches('/');
    let address = authority.to_socket_addrs()?.find(|address| address.ip().is_loopback());
    address.with_context(|| format!("{authority} is not on this machine"))
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
