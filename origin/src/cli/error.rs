//! How a command fails: one clear line, a hint, and the exit code.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use crate::config::{ConfigError, find_setting};
use crate::dev::{DevError, EdgeError};
use crate::serve::ServeError;
use crate::system::installation::InstallationError;

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
    /// The installation can't be opened.
    #[error(transparent)]
    Installation(#[from] InstallationError),
    /// An address can't be listened on.
    #[error("{address} can't be listened on: {}", taken(source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The setting that names it.
        setting: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The server failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A part of `selkie dev` failed.
    #[error(transparent)]
    Dev(#[from] DevError),
    /// A guarded program couldn't be started.
    #[error("the program couldn't be started: {0}")]
    Guard(#[source] io::Error),
    /// A guarded program failed.
    #[error("the program ended with {0}")]
    GuardedFailed(std::process::ExitStatus),
    /// Signals can't be listened to.
    #[error("signals can't be listened to: {0}")]
    Signals(#[source] io::Error),
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

impl From<EdgeError> for CliError {
    fn from(error: EdgeError) -> Self {
        Self::Dev(error.into())
    }
}

impl CliError {
    /// A failure with a hint.
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: Some(hint.into()) }
    }

    /// How to mend it, if that can be said.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } | Self::Failed { hint, .. } => hint.clone(),
            Self::Config(_) => Some("`selkie serve --help` lists every setting".to_owned()),
            Self::Installation(error) | Self::Dev(DevError::Installation(error)) => error.hint(),
            Self::Dev(DevError::System(error)) => error.hint(),
            Self::Dev(DevError::Edge(error)) => error.hint().map(str::to_owned),
            Self::Listen { setting, .. } => {
                find_setting(setting).map(|setting| format!("set another address by {}", setting.spellings()))
            }
            _ => None,
        }
    }

    /// The process's exit code.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Usage { .. } => ExitCode::from(USAGE),
            Self::Installation(error) | Self::Dev(DevError::Installation(error)) if error.is_misconfiguration() => {
                ExitCode::from(USAGE)
            }
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

fn taken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "its port is in use".to_owned(),
        _ => error.to_string(),
    }
}
