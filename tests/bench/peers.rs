//! Servers of other projects, for `make bench ARGS=peers`: fastify with mysql2, written by hand for the requests of the
//! comparison, and xmysql, which serves every table of a database. Each is one Node process, as is usual.

use std::{
    fs::{self, File},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use tokio::{process::Command, time::sleep};

use crate::{
    arguments::Contender,
    data::DATABASE,
    http::Connection,
    mariadb::MariaDb,
    process::Started,
    request::{Dialect, Requests},
    selkie::Endpoint,
    workload::{Random, Workload},
};

/// Number of tries, 50 ms apart, until a server must answer.
const START_TRIES: u32 = 400;

/// The workloads that all of these servers support.
pub(crate) const WORKLOADS: [Workload; 4] = [Workload::W1, Workload::Lone, Workload::W2, Workload::W3];

/// Starts a server of another project.
///
/// # Errors
/// npm can't install the server, or it doesn't answer.
pub(crate) async fn start(peer: Contender, mariadb: &MariaDb, pool: u16) -> Result<(Started, Endpoint)> {
    let directory = install().await?;
    let (process, address, dialect) = match peer {
        Contender::Xmysql => xmysql(&directory, mariadb)?,
        _ => fastify(&directory, mariadb, pool).await?,
    };
    // A key as long as Selkie's, so that all servers read the same number of bytes; these servers ignore it.
    let (key, database) = ("x".repeat(300), DATABASE.to_owned());
    let endpoint = Endpoint { address, requests: Requests { dialect, host: address.to_string(), key, database } };
    wait_until_it_answers(&endpoint).await?;
    Ok((process, endpoint))
}

async fn fastify(directory: &Path, mariadb: &MariaDb, pool: u16) -> Result<(Started, SocketAddr, Dialect)> {
    let mut process = Started::new(Path::new("node"), |command| {
        command.arg("fastify.mjs").arg(mariadb.socket()).args([DATABASE, &pool.to_string()]);
        command.env("NODE_ENV", "production").current_dir(directory).stdout(Stdio::piped());
    })?;
    let address = process.first_line().await?.parse().context("the address of fastify")?;
    Ok((process, address, Dialect::Handwritten))
}

fn xmysql(directory: &Path, mariadb: &MariaDb) -> Result<(Started, SocketAddr, Dialect)> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let log = File::create(mariadb.directory().join("xmysql.log"))?;
    let process = Started::new(Path::new("node"), |command| {
        command
            .args(["node_modules/xmysql/bin/index.js", "-u", "root", "-d", DATABASE, "-r", "127.0.0.1"])
            .args(["-n", &address.port().to_string(), "-S"])
            .arg(mariadb.socket())
            .env("NODE_ENV", "production")
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(log);
    })?;
    Ok((process, address, Dialect::Xmysql))
}

async fn install() -> Result<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = tests.join("../target/bench/peers");
    fs::create_dir_all(&directory)?;
    for file in ["package.json", "package-lock.json", "fastify.mjs"] {
        fs::copy(tests.join("bench/peers").join(file), directory.join(file))?;
    }
    let installed = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])
        .current_dir(&directory)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await?;
    if !installed.success() {
        bail!("npm could not install the packages of tests/bench/peers/package-lock.json");
    }
    Ok(directory)
}

async fn wait_until_it_answers(endpoint: &Endpoint) -> Result<()> {
    let mut request = Vec::new();
    endpoint.requests.write(Workload::W1, &mut Random::new(0), &mut request);
    for _ in 0..START_TRIES {
        if let Ok(mut connection) = Connection::open(endpoint.address).await
            && let Ok(answer) = connection.call(&request).await
            && answer.status == 200
        {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    bail!("{} does not answer within {} s", endpoint.address, START_TRIES / 20)
}
