//! `selkie guard` (hidden): the process that `selkie dev` starts, to run Miniflare and to end it with all its child
//! processes.

use std::ffi::OsString;

use clap::Args;

use super::CliError;
use crate::dev;

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
