//! `selkie project`: not there yet.

use clap::Args;

use super::{CliError, Context};

/// Arguments of `selkie project`.
#[derive(Debug, Args)]
pub struct ProjectArgs {}

impl ProjectArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Always: it is not there yet.
    pub async fn run(self, _context: &Context) -> Result<(), CliError> {
        Err(CliError::failed(
            "`selkie project` is not there yet",
            "use a newer build",
        ))
    }
}
