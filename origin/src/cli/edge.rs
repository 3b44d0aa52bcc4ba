//! `selkie edge`: what the edge must be given, beside the public keys that `selkie key jwks` prints.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::system::note;
use super::{CliError, Context};
use crate::secret::InstallationSecret;
use crate::system::edge_secret::EdgeSecret;
use crate::system::installation::InstallationError;

/// Arguments of `selkie edge`.
#[derive(Debug, Args)]
pub struct EdgeArgs {
    #[command(subcommand)]
    command: EdgeCommand,
}

#[derive(Debug, Subcommand)]
enum EdgeCommand {
    /// Print the secret by which the edge proves itself to the origin: the worker's EDGE_SECRET
    Secret,
}

#[derive(Serialize)]
struct SecretAnswer<'a> {
    secret: &'a str,
}

impl EdgeArgs {
    /// Runs the command. Needs no database.
    ///
    /// # Errors
    /// There is no installation secret.
    pub fn run(&self, context: &Context) -> Result<(), CliError> {
        let EdgeCommand::Secret = self.command;
        let config = &context.config;
        let installation = InstallationSecret::load(config.secret.as_ref(), &config.data_dir)
            .map_err(InstallationError::from)?
            .ok_or_else(|| InstallationError::NoSecret { path: InstallationSecret::path(&config.data_dir) })?;
        let secret = EdgeSecret::new(&installation);
        note("who has it passes for the edge: give it to the worker as a secret, never in a file that is shared");
        let answer = SecretAnswer { secret: secret.text() };
        context.output.answer(&answer, |answer| answer.secret.to_owned())
    }
}
