//! Who is compared, started and ready to be asked.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail};
use mysql_async::Opts;
use tokio::time::timeout;

use crate::{
    accounting,
    arguments::{Compare, Contender, Style},
    data::DATABASE,
    http::Connection,
    mariadb::MariaDb,
    process::Started,
    request::{Dialect, Requests},
    selkie::{self, Door},
    workload::{Random, Workload},
};

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// The process whose time and memory count, if it is known.
    pub(super) pid: Option<u32>,
    /// Its resident memory before the first request, in bytes; none for the floor, which lives in this process.
    pub(super) idle_bytes: Option<u64>,
}

pub(super) enum Kind {
    Floor {
        options: Opts,
        connections: u16,
    },
    Server {
        door: Door,
        /// Kept so that it runs; none for an installation that was not started here.
        _process: Option<Box<Started>>,
    },
}

impl Subject {
    fn floor(options: Opts, connections: u16) -> Self {
        let kind = Kind::Floor {
            options,
            connections,
        };
        Self {
            name: format!("floor ({connections})"),
            kind,
            pid: Some(std::process::id()),
            idle_bytes: None,
        }
    }

    fn started(name: String, process: Started, door: Door) -> Result<Self> {
        let pid = process.pid();
        let kind = Kind::Server {
            door,
            _process: Some(Box::new(process)),
        };
        Ok(Self {
            name,
            kind,
            pid: Some(pid),
            idle_bytes: Some(accounting::resident(pid)?),
        })
    }

    fn running(name: &str, door: Door) -> Self {
        let kind = Kind::Server {
            door,
            _process: None,
        };
        Self {
            name: name.to_owned(),
            kind,
            pid: None,
            idle_bytes: None,
        }
    }
}

/// Start all that were asked for, in the order in which they are then measured.
pub(super) async fn start(
    compare: &Compare,
    mariadb: &MariaDb,
    options: &Opts,
) -> Result<Vec<Subject>> {
    let wanted =
        |contender| compare.contenders.is_empty() || compare.contenders.contains(&contender);
    let mut subjects = Vec::new();
    if wanted(Contender::Floor) {
        subjects.push(Subject::floor(options.clone(), compare.pool));
    }
    for (contender, style) in [
        (Contender::Values, Style::Values),
        (Contender::Streamed, Style::Streamed),
    ] {
        if wanted(contender) {
            subjects.push(handwritten(style, compare.pool, mariadb).await?);
        }
    }
    if wanted(Contender::Selkie) {
        match selkie::binary(compare.selkie.as_deref())? {
            Some(binary) => subjects.push(origin(&binary, mariadb).await?),
            None if compare.contenders.is_empty() => {}
            None => bail!(
                "no `selkie` beside this program; build it (cargo build --release -p origin) or name it with --selkie"
            ),
        }
    }
    if let Some(dev_env) = &compare.running {
        for (name, door) in selkie::running(dev_env).await? {
            subjects.push(Subject::running(name, door));
        }
    }
    if subjects.is_empty() {
        bail!("nothing to measure");
    }
    Ok(subjects)
}

async fn handwritten(style: Style, pool: u16, mariadb: &MariaDb) -> Result<Subject> {
    let style_name = match style {
        Style::Values => "values",
        Style::Streamed => "streamed",
    };
    let mut process = Started::new(&std::env::current_exe()?, |command| {
        command
            .args([
                "serve-handwritten",
                "--style",
                style_name,
                "--pool",
                &pool.to_string(),
                "--socket",
            ])
            .arg(mariadb.socket())
            .stdout(Stdio::piped());
    })?;
    let address = process
        .first_line()
        .await?
        .parse()
        .context("the hand-written server's address")?;
    let requests = Requests {
        dialect: Dialect::Handwritten,
        host: format!("{address}"),
        // As long as a key is, so that both read the same number of bytes.
        key: "x".repeat(300),
        database: DATABASE.to_owned(),
    };
    let name = format!("axum, {style_name} ({pool})");
    Subject::started(name, process, Door { address, requests })
}

async fn origin(binary: &Path, mariadb: &MariaDb) -> Result<Subject> {
    let (process, door) = selkie::start(binary, mariadb).await?;
    Subject::started("selkie origin".to_owned(), process, door)
}

/// One request of `workload`, with its whole answer.
pub(super) async fn ask(door: &Door, workload: Workload) -> Result<(u16, Vec<u8>)> {
    let mut request = Vec::new();
    door.requests
        .write(workload, &mut Random::new(0), &mut request);
    let mut connection = Connection::open(door.address).await?;
    Ok(timeout(Duration::from_secs(60), connection.fetch(&request))
        .await
        .context("no answer in time")??)
}
