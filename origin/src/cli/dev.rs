//! `selkie dev`: runs the private MariaDB, the origin and the edge on this machine.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::serve::listen;
use super::system::note;
use super::{CliError, Context};
use crate::dev::{self, DevAddresses, EdgePlan};
use crate::{logging, signal};

#[derive(Debug, Args)]
pub struct DevArgs {
    /// Don't run the edge
    #[arg(long)]
    no_edge: bool,
    /// Where wrangler.toml, node_modules and the built worker are
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with = "no_edge")]
    edge_root: PathBuf,
    /// Keep running when the program that started this one ends
    #[arg(long)]
    outlive_parent: bool,
}

impl DevArgs {
    pub async fn run(self, context: &Context) -> Result<(), CliError> {
        let config = &context.config;
        let _log = logging::init(config);
        if config.tls.is_some() {
            note("selkie: warning: `selkie dev` speaks plain HTTP; tls_certificate and tls_key are for `selkie serve`");
        }
        let stop = signal::stop_token().map_err(CliError::Signals)?;
        if !self.outlive_parent {
            signal::stop_with_parent(&stop);
        }
        let listener = listen(config.listen, "listen").await?;
        let edge = self.edge(config.edge_listen).await?;
        let mut printed = Ok(());
        let ready = |running: &DevAddresses| printed = context.output.answer(running, dev::welcome);
        dev::run(config, edge.as_ref(), listener, &stop, ready).await?;
        printed
    }

    async fn edge(self, address: SocketAddr) -> Result<Option<EdgePlan>, CliError> {
        if self.no_edge {
            return Ok(None);
        }
        let plan = EdgePlan {
            root: std::path::absolute(self.edge_root).map_err(CliError::WorkingDirectory)?,
            listen: listen(address, "edge_listen").await?.local_addr().unwrap_or(address),
        };
        plan.check()?;
        Ok(Some(plan))
    }
}

/// `selkie guard` (hidden): the process that `selkie dev` starts, to run Miniflare and to end it with all its child
/// processes.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl GuardArgs {
    pub(super) async fn run(self) -> Result<(), CliError> {
        let Some((program, arguments)) = self.command.split_first() else {
            return Ok(());
        };
        let ended = dev::guard(program.as_ref(), arguments).await;
        match ended.map_err(CliError::Guard)? {
            Some(status) if !status.success() => Err(CliError::GuardedFailed(status)),
            _ => Ok(()),
        }
    }
}
