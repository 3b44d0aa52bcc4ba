//! The two workers that are compared, each in its own workerd, so that the time and memory of each can be measured.

use std::{
    fs::File,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use tokio::time::sleep;

use crate::{http::Connection, process::Started};

const START_MAX: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    PassThrough,
    Edge,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::PassThrough, Self::Edge];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::PassThrough => "pass-through",
            Self::Edge => "edge",
        }
    }

    const fn configuration(self) -> &'static str {
        match self {
            Self::PassThrough => "tests/bench/edge/pass-through.capnp",
            Self::Edge => "edge/workerd.capnp",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) origin: SocketAddr,
    pub(crate) jwks: String,
    /// The worker's variable for its request log: `on` or `off`.
    pub(crate) log_requests: &'static str,
    pub(crate) directory: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Worker {
    process: Started,
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    /// Time from starting workerd to the end of its first answer.
    pub(crate) first_answer: Duration,
}

impl Worker {
    /// Starts a worker and sends it `request` until it answers 200.
    pub(crate) async fn start(kind: Kind, setting: &Setting, request: &[u8]) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workerd = workerd(&root)?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = File::create(setting.directory.join(kind.title()))?;
        let origin = format!("http://{}", setting.origin);
        let began = Instant::now();
        let process = Started::new(&workerd, |command| {
            command
                .env_clear()
                .args(["serve", kind.configuration()])
                .arg(format!("--socket-addr=http={address}"))
                .env("ORIGINS", &origin)
                .env("ORIGIN_URL", &origin)
                .env("JWKS", &setting.jwks)
                .env("LOG_REQUESTS", setting.log_requests)
                .current_dir(&root);
            if let Ok(other) = log.try_clone() {
                command.stdout(other);
            }
            command.stderr(log);
        })?;
        let mut worker = Self { process, kind, address, first_answer: Duration::ZERO };
        worker.wait(request, setting).await?;
        worker.first_answer = began.elapsed();
        Ok(worker)
    }

    async fn wait(&mut self, request: &[u8], setting: &Setting) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        let log = || {
            let log = std::fs::read_to_string(setting.directory.join(self.kind.title()));
            log.unwrap_or_default()
        };
        loop {
            if let Ok(mut connection) = Connection::open(self.address).await {
                let (status, body) = connection.fetch(request).await?;
                if status == 200 {
                    return Ok(());
                }
                let body = String::from_utf8_lossy(&body).into_owned();
                bail!("{} answers {status}: {body}\n{}", self.kind.title(), log());
            }
            if Instant::now() > deadline {
                bail!("{} does not answer: {}", self.kind.title(), log());
            }
            self.process.check().with_context(log)?;
            sleep(PAUSE).await;
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Returns the path of workerd, which npm installs in a package for each platform.
fn workerd(root: &Path) -> Result<PathBuf> {
    let packages = root.join("node_modules/@cloudflare");
    let entries = std::fs::read_dir(packages).context("node_modules, which `make setup` fills")?;
    entries
        .flatten()
        .map(|entry| entry.path().join("bin/workerd"))
        .find(|program| program.is_file())
        .context("workerd, which `make setup` installs")
}
