//! `selkie dev`: not there yet.

use clap::Args;

use super::{CliError, Context};

/// Arguments of `selkie dev`.
#[derive(Debug, Args)]
pub struct DevArgs {}

impl DevArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Always: it is not there yet.
    pub async fn run(self, _context: &Context) -> Result<(), CliError> {
        Err(CliError::failed(
            "`selkie dev` is not there yet",
            "use a newer build",
        ))
    }
}
