//! `selkie edge`: prints the secret that the edge must be configured with.

use clap::Subcommand;
use serde::Serialize;

use super::system::note;
use super::{CliError, Context};
use crate::secret::InstallationSecret;
use crate::system::edge_secret::EdgeSecret;
use crate::system::installation::InstallationError;

#[derive(Debug, Subcommand)]
pub enum EdgeCommand {
    /// Print the secret by which the edge proves itself to the origin: the worker's EDGE_SECRET
    Secret,
}

#[derive(Serialize)]
struct SecretAnswer<'a> {
    secret: &'a str,
}

impl EdgeCommand {
    pub fn run(&self, context: &Context) -> Result<(), CliError> {
        let Self::Secret = self;
        let config = &context.config;
        let installation = InstallationSecret::load(config.secret.as_ref(), &config.data_dir)
            .map_err(InstallationError::from)?
            .ok_or_else(|| InstallationError::NoSecret { path: InstallationSecret::path(&config.data_dir) })?;
        let secret = EdgeSecret::new(&installation);
        note("whoever has this secret can pass for the edge: set it as a secret of the worker, never in a shared file");
        let answer = SecretAnswer { secret: secret.text() };
        context.output.answer(&answer, |answer| answer.secret.to_owned())
    }
}
