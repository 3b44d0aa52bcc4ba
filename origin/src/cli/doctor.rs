//! `selkie doctor`: not there yet.

use clap::Args;

use super::{CliError, Context};

/// Arguments of `selkie doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

impl DoctorArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Always: it is not there yet.
    pub async fn run(self, _context: &Context) -> Result<(), CliError> {
        Err(CliError::failed(
            "`selkie doctor` is not there yet",
            "use a newer build",
        ))
    }
}
