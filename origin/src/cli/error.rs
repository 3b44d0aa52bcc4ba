//! How a command fails: one clear line, a hint, and the exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::config::ConfigError;
use crate::secret::SecretError;

/// The exit code of a failure.
const FAILURE: u8 = 1;

/// The exit code of wrong usage, which is also what clap gives.
pub(super) const USAGE: u8 = 2;

/// Why a command failed. `Display` is one line for a person, without secrets.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The configuration was refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no installation secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The answer couldn't be written.
    #[error("the answer couldn't be written: {0}")]
    Output(#[source] io::Error),
    /// The working directory is gone.
    #[error("the working directory can't be read: {0}")]
    WorkingDirectory(#[source] io::Error),
    /// The arguments were well-formed but make no sense together or for this installation.
    #[error("{message}")]
    Usage {
        /// One plain sentence.
        message: String,
        /// How to mend it.
        hint: Option<String>,
    },
    /// What was asked couldn't be done.
    #[error("{message}")]
    Failed {
        /// One plain sentence.
        message: String,
        /// How to mend it.
        hint: Option<String>,
    },
}

impl CliError {
    /// A failure with a hint.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// How to mend it, if that can be said.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Usage { hint, .. } | Self::Failed { hint, .. } => hint.as_deref(),
            Self::Config(_) => Some("`selkie serve --help` lists every setting"),
            _ => None,
        }
    }

    /// The process's exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Usage { .. } => ExitCode::from(USAGE),
            // The reader went away, as `head` does: nothing failed.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            _ => ExitCode::from(FAILURE),
        }
    }

    /// Writes itself to standard error.
    pub(super) fn report(&self) {
        let closed_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if matches!(self, Self::Output(error) if closed_pipe(error)) {
            return;
        }
        let mut stderr = io::stderr().lock();
        // Nothing is left to tell it to if standard error is closed.
        let _ = writeln!(stderr, "selkie: {self}");
        if let Some(hint) = self.hint() {
            let _ = writeln!(stderr, "  hint: {hint}");
        }
    }
}
