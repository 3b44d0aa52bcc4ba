//! The contenders of a comparison, started and ready for requests.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use mysql_async::Opts;
use tokio::time::timeout;

use crate::{
    accounting,
    arguments::{Compare, Contender},
    edge::worker::{Kind as WorkerKind, Setting, Worker},
    handwritten,
    http::Connection,
    mariadb::MariaDb,
    peers,
    process::Started,
    request::Requests,
    role::Role,
    selkie::{self, Endpoint},
    workload::{Random, Workload},
};

pub(super) struct Subject {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) kind: Kind,
    /// Process id of the server that queries MariaDB, if known.
    pub(super) server: Option<u32>,
    /// Process id of the workerd in front of the server, if there is one.
    pub(super) worker: Option<u32>,
    /// Resident memory, in bytes, of the process that is called, before its first request; `None` for the floor, which
    /// runs in this process.
    pub(super) idle_bytes: Option<u64>,
}

pub(super) enum Kind {
    Floor { options: Opts, connections: u16 },
    Server(Endpoint),
}

impl Subject {
    /// Returns the id of the process that is called, whose memory is measured; `None` for the floor.
    pub(super) fn called(&self) -> Option<u32> {
        self.worker.or(self.server)
    }
}

#[derive(Default)]
pub(super) struct Subjects {
    pub(super) measured: Vec<Subject>,
    servers: Vec<Started>,
    workers: Vec<Worker>,
}

impl Subjects {
    pub(super) async fn start(compare: &Compare, mariadb: &MariaDb, options: &Opts) -> Result<Self> {
        let mut subjects = Self::default();
        let wanted = |contender: Contender| contender.is_wanted(&compare.contenders);
        if wanted(Contender::Floor) {
            subjects.floors(compare, options);
        }
        if wanted(Contender::Hello) {
            let started = handwritten::start(|command| {
                command.arg("serve-hello");
            });
            subjects.add(Role::Hello, "axum, no database", started.await?)?;
        }
        let pool = compare.pool;
        for (contender, role, style) in
            [(Contender::Values, Role::Values, "values"), (Contender::Streamed, Role::Streamed, "streamed")]
        {
            if wanted(contender) {
                let started = handwritten::start(|command| {
                    command
                        .args(["serve-handwritten", "--style", style, "--socket"])
                        .arg(mariadb.socket())
                        .args(["--pool", &pool.to_string()]);
                });
                subjects.add(role, &format!("axum, {style} ({pool})"), started.await?)?;
            }
        }
        for (contender, name) in [(Contender::Fastify, "fastify + mysql2"), (Contender::Xmysql, "xmysql")] {
            if wanted(contender) {
                subjects.add(Role::Peer, name, peers::start(contender, mariadb, pool).await?)?;
            }
        }
        let own = [Contender::Selkie, Contender::PassThrough, Contender::Edge];
        if own.into_iter().any(wanted) {
            subjects.own(compare, mariadb).await?;
        }
        if let Some(dev_env) = &compare.running {
            for (name, endpoint) in selkie::running(dev_env).await? {
                subjects.measured.push(Subject {
                    name: name.to_owned(),
                    role: Role::Running,
                    kind: Kind::Server(endpoint),
                    server: None,
                    worker: None,
                    idle_bytes: None,
                });
            }
        }
        if subjects.measured.is_empty() {
            bail!("nothing to measure");
        }
        Ok(subjects)
    }

    fn floors(&mut self, compare: &Compare, options: &Opts) {
        let mut floor = |role, connections| {
            self.measured.push(Subject {
                name: format!("floor ({connections})"),
                role,
                kind: Kind::Floor { options: options.clone(), connections },
                server: Some(std::process::id()),
                worker: None,
                idle_bytes: None,
            });
        };
        floor(Role::Floor, compare.pool);
        if compare.connections != compare.pool {
            floor(Role::WideFloor, compare.connections);
        }
    }

    fn add(&mut self, role: Role, name: &str, (process, endpoint): (Started, Endpoint)) -> Result<()> {
        let server = process.pid();
        self.measured.push(Subject {
            name: name.to_owned(),
            role,
            kind: Kind::Server(endpoint),
            server: Some(server),
            worker: None,
            idle_bytes: Some(accounting::resident(server)?),
        });
        self.servers.push(process);
        Ok(())
    }

    async fn own(&mut self, compare: &Compare, mariadb: &MariaDb) -> Result<()> {
        let Some(binary) = selkie::binary(compare.selkie.as_deref())? else {
            bail!(
                "no `selkie` beside this program; build it (cargo build --release -p selkie-origin) or name it with --selkie"
            );
        };
        let wanted = |contender: Contender| contender.is_wanted(&compare.contenders);
        let (process, endpoint) = selkie::start(&binary, mariadb).await?;
        let (server, requests) = (process.pid(), endpoint.requests.clone());
        let setting = Setting {
            origin: endpoint.address,
            jwks: selkie::jwks(&binary, mariadb, &endpoint).await?,
            // The pass-through worker writes no log.
            log_requests: "off",
            directory: mariadb.directory().to_owned(),
        };
        if wanted(Contender::Selkie) {
            self.add(Role::Origin, "selkie origin", (process, endpoint))?;
        } else {
            self.servers.push(process);
        }
        for (contender, role, kind, name) in [
            (Contender::PassThrough, Role::PassThrough, WorkerKind::PassThrough, "pass-through"),
            (Contender::Edge, Role::Edge, WorkerKind::Edge, "selkie edge"),
        ] {
            if wanted(contender) {
                self.worker(role, kind, name, server, &requests, &setting).await?;
            }
        }
        Ok(())
    }

    async fn worker(
        &mut self,
        role: Role,
        kind: WorkerKind,
        name: &str,
        server: u32,
        requests: &Requests,
        setting: &Setting,
    ) -> Result<()> {
        let worker = Worker::start(kind, setting, &one(requests, Workload::W1)).await?;
        let requests = Requests { host: worker.address.to_string(), ..requests.clone() };
        self.measured.push(Subject {
            name: name.to_owned(),
            role,
            kind: Kind::Server(Endpoint { address: worker.address, requests }),
            server: Some(server),
            worker: Some(worker.pid()),
            idle_bytes: Some(accounting::resident(worker.pid())?),
        });
        self.workers.push(worker);
        Ok(())
    }
}

fn one(requests: &Requests, workload: Workload) -> Vec<u8> {
    let mut request = Vec::new();
    requests.write(workload, &mut Random::new(0), &mut request);
    request
}

pub(super) async fn ask(endpoint: &Endpoint, workload: Workload) -> Result<(u16, Vec<u8>)> {
    let request = one(&endpoint.requests, workload);
    let mut connection = Connection::open(endpoint.address).await?;
    Ok(timeout(Duration::from_secs(60), connection.fetch(&request)).await.context("no answer in time")??)
}
