//! `selkie database`: not there yet.

use clap::Args;

use super::{CliError, Context};

/// Arguments of `selkie database`.
#[derive(Debug, Args)]
pub struct DatabaseArgs {}

impl DatabaseArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Always: it is not there yet.
    pub async fn run(self, _context: &Context) -> Result<(), CliError> {
        Err(CliError::failed(
            "`selkie database` is not there yet",
            "use a newer build",
        ))
    }
}
