//! `selkie serve`: the origin, and its private MariaDB where none is named.

use std::net::SocketAddr;

use clap::Args;
use tokio::net::TcpListener;

use super::{CliError, Context};
use crate::embedded::Role;
use crate::installation::Installation;
use crate::{logging, serve, signal};

/// Arguments of `selkie serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {}

impl ServeArgs {
    /// Serves until a signal to stop.
    ///
    /// # Errors
    /// The address is taken, the installation can't be opened, or the server fails.
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let config = &context.config;
        let _log = logging::init(config);
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        let listener = listen(config.listen, "listen").await?;
        let opening = Installation::open(config, Role::Service);
        let installation = tokio::select! {
            opened = opening => opened?,
            () = stop.cancelled() => return Ok(()),
        };
        let served = serve::run(config, &installation, listener, stop).await;
        installation.close().await;
        Ok(served?)
    }
}

/// Listens on `address`, which the setting `setting` names; a taken one is told by both.
pub(super) async fn listen(
    address: SocketAddr,
    setting: &'static str,
) -> Result<TcpListener, CliError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| CliError::Listen {
            address,
            setting,
            source,
        })
}
