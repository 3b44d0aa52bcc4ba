//! `selkie serve`: not there yet.

use clap::Args;

use super::{CliError, Context};

/// Arguments of `selkie serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {}

impl ServeArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Always: it is not there yet.
    pub async fn run(self, _context: &Context) -> Result<(), CliError> {
        Err(CliError::failed(
            "`selkie serve` is not there yet",
            "use a newer build",
        ))
    }
}
