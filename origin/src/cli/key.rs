//! `selkie key`: not there yet.

use clap::Args;

use super::{CliError, Context};

/// Arguments of `selkie key`.
#[derive(Debug, Args)]
pub struct KeyArgs {}

impl KeyArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Always: it is not there yet.
    pub async fn run(self, _context: &Context) -> Result<(), CliError> {
        Err(CliError::failed(
            "`selkie key` is not there yet",
            "use a newer build",
        ))
    }
}
