//! `selkie dev`: runs a private MariaDB unless another is configured, the origin in this process, and the edge in
//! Miniflare (Cloudflare's local runtime). This file starts and stops them in order; `dev/` contains the parts.

mod edge;
mod environment;
mod guard;
mod prepare;
mod probe;
mod welcome;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::edge::EdgeError;
use self::edge::EdgeProcess;
use self::environment::{EdgeKeys, Environment};
pub use self::guard::guard;
use self::prepare::DevSetup;
pub use self::welcome::welcome;
use crate::config::Config;
use crate::serve::{self, Deliveries, ServeError};
use crate::system::installation::{Installation, InstallationError, Purpose};
use crate::system::{System, SystemSchemaError};

const ORIGIN_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct EdgePlan {
    pub root: PathBuf,
    pub listen: SocketAddr,
}

impl EdgePlan {
    pub fn check(&self) -> Result<(), EdgeError> {
        edge::check(&self.root)
    }
}

#[derive(Debug, Clone, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DevAddresses {
    pub origin_url: String,
    pub edge_url: Option<String>,
    pub full_key: String,
    pub read_key: String,
    pub project: String,
    pub database: String,
    pub environment_file: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum DevError {
    #[error(transparent)]
    Installation(#[from] InstallationError),
    #[error(transparent)]
    System(#[from] SystemSchemaError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("the origin doesn't answer on {0}")]
    Silent(SocketAddr),
    #[error(transparent)]
    Edge(#[from] EdgeError),
    #[error("{path} can't be written: {source}", path = path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Runs all services until they are stopped. Calls `ready` once all of them answer.
pub async fn run(
    config: &Config,
    edge: Option<&EdgePlan>,
    listener: TcpListener,
    stop: &CancellationToken,
    ready: impl FnOnce(&DevAddresses),
) -> Result<(), DevError> {
    let opening = Installation::open(config, Purpose::Serve);
    let installation = tokio::select! {
        opened = opening => opened?,
        () = stop.cancelled() => return Ok(()),
    };
    let secret = Arc::clone(&installation.secret);
    let service = DevService {
        config,
        system: System::new(&installation.database, secret, config),
        installation: &installation,
        edge,
        stop,
    };
    let outcome = service.run(listener, ready).await;
    service.system.close().await;
    installation.close().await;
    outcome
}

struct DevService<'a> {
    config: &'a Config,
    system: System,
    installation: &'a Installation,
    edge: Option<&'a EdgePlan>,
    stop: &'a CancellationToken,
}

impl DevService<'_> {
    async fn run(&self, listener: TcpListener, ready: impl FnOnce(&DevAddresses)) -> Result<(), DevError> {
        let address = listener.local_addr().unwrap_or(self.config.listen);
        let remembered = Environment::read(&self.config.data_dir);
        let prepared = tokio::select! {
            prepared = prepare::prepare(&self.system, &remembered) => prepared?,
            () = self.stop.cancelled() => return Ok(()),
        };
        let running = self.running(address, &prepared);
        // A client that gets an answer must find this start's `dev.env`.
        let issuers = match self.edge {
            Some(_) => tokio::select! {
                issuers = prepare::issuers(&self.system) => issuers?,
                () = self.stop.cancelled() => return Ok(()),
            },
            None => None,
        };
        let edge_keys = EdgeKeys { jwks: &prepared.jwks, issuers: issuers.as_deref() };
        environment::write(self.config, &running, &edge_keys, &self.system.edge_secret)?;
        let ending = CancellationToken::new();
        let health = self.installation.database_health();
        let deliveries = Deliveries::WithLease;
        let serving = serve::run(self.config, &self.system, health, (listener, None), deliveries, ending.clone());
        tokio::pin!(serving);
        let outcome = tokio::select! {
            served = &mut serving => return Ok(served?),
            outcome = self.run_edge(address, || ready(&running)) => outcome,
        };
        ending.cancel();
        let served = serving.await;
        outcome?;
        Ok(served?)
    }

    async fn run_edge(&self, address: SocketAddr, ready: impl FnOnce()) -> Result<(), DevError> {
        tokio::select! {
            answered = probe::answers_within(address, ORIGIN_LIMIT) => {
                answered.then_some(()).ok_or(DevError::Silent(address))?;
            }
            () = self.stop.cancelled() => return Ok(()),
        }
        let Some(plan) = self.edge else {
            ready();
            self.stop.cancelled().await;
            return Ok(());
        };
        let mut edge = EdgeProcess::start(self.config, plan).await?;
        let outcome = tokio::select! {
            outcome = edge.run(ready) => outcome.map_err(DevError::from),
            () = self.stop.cancelled() => Ok(()),
        };
        edge.stop().await;
        outcome
    }

    fn running(&self, address: SocketAddr, prepared: &DevSetup) -> DevAddresses {
        DevAddresses {
            origin_url: probe::url(address),
            edge_url: self.edge.map(|edge| probe::url(edge.listen)),
            full_key: prepared.full_key.clone(),
            read_key: prepared.read_key.clone(),
            project: prepared.project.to_string(),
            database: prepared.database.to_string(),
            environment_file: environment::path(&self.config.data_dir),
        }
    }
}
