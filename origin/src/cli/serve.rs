//! `selkie serve`: runs the origin, and a private MariaDB unless `database_url` is set.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{CliError, Context};
use crate::config::Config;
use crate::serve::Deliveries;
use crate::system::System;
use crate::system::installation::{Installation, Purpose};
use crate::tls::Tls;
use crate::{logging, serve, signal};

#[derive(Debug, Args)]
pub struct ServeArgs {}

impl ServeArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let config = &context.config;
        let _log = logging::init(config);
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        let tls = config.tls.as_ref().map(Tls::open).transpose()?;
        let listener = listen(config.listen, "listen").await?;
        let opening = Installation::open(config, Purpose::Serve);
        let installation = tokio::select! {
            opened = opening => opened?,
            () = stop.cancelled() => return Ok(()),
        };
        let secret = Arc::clone(&installation.secret);
        let system = System::new(&installation.database, secret, config);
        let outcome = run(config, &system, &installation, (listener, tls), stop).await;
        system.close().await;
        installation.close().await;
        outcome
    }
}

async fn run(
    config: &Config,
    system: &System,
    installation: &Installation,
    (listener, tls): (TcpListener, Option<Tls>),
    stop: CancellationToken,
) -> Result<(), CliError> {
    tokio::select! {
        prepared = system.prepare() => prepared?,
        () = stop.cancelled() => return Ok(()),
    }
    let health = installation.database_health();
    Ok(serve::run(config, system, health, (listener, tls), Deliveries::WithLease, stop).await?)
}

pub(super) async fn listen(address: SocketAddr, setting: &'static str) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|source| CliError::Listen { address, setting, source })
}
