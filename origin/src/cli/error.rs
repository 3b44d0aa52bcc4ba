//! Errors of commands: a message, a hint, and the exit code.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::{ConfigError, find_setting};
use crate::dev::{DevError, EdgeError};
use crate::serve::ServeError;
use crate::system::installation::InstallationError;
use crate::tls::TlsError;
use crate::transfer::TransferError;

const FAILURE: u8 = 1;

/// The exit code of wrong arguments, which clap uses too.
pub(super) const USAGE: u8 = 2;

const ROWS_REFUSED: u8 = 3;

/// An error of a command. Messages contain no secrets.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Installation(#[from] InstallationError),
    #[error("{address} can't be listened on: {}", taken(source))]
    Listen {
        address: SocketAddr,
        /// The setting that gave the address.
        setting: &'static str,
        source: io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Dev(#[from] DevError),
    #[error("the program couldn't be started: {0}")]
    Guard(#[source] io::Error),
    #[error("the program ended with {0}")]
    GuardedFailed(std::process::ExitStatus),
    #[error("signals can't be listened to: {0}")]
    Signals(#[source] io::Error),
    #[error("the answer couldn't be written: {0}")]
    Output(#[source] io::Error),
    #[error("the working directory can't be read: {0}")]
    WorkingDirectory(#[source] io::Error),
    /// Wrong arguments, or a confirmation is needed but standard input is no terminal.
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    #[error("{message}")]
    Failed { message: String, hint: Option<String> },
    #[error("rows refused: {count}; {} has them, with their lines and reasons", file.display())]
    RowsRefused { count: u64, file: PathBuf },
}

impl From<TransferError> for CliError {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Usage { message, hint } => Self::Usage { message, hint },
            TransferError::Failed { message, hint } => Self::Failed { message, hint },
            TransferError::Output(error) => Self::Output(error),
        }
    }
}

impl From<EdgeError> for CliError {
    fn from(error: EdgeError) -> Self {
        Self::Dev(error.into())
    }
}

impl CliError {
    pub fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: Some(hint.into()) }
    }

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

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Tls(_) | Self::Usage { .. } => ExitCode::from(USAGE),
            Self::Installation(error) | Self::Dev(DevError::Installation(error)) if error.is_misconfiguration() => {
                ExitCode::from(USAGE)
            }
            // The program that reads standard output, such as `head`, ended early.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Self::RowsRefused { .. } => ExitCode::from(ROWS_REFUSED),
            _ => ExitCode::from(FAILURE),
        }
    }

    pub(super) fn report(&self) {
        let closed_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        if matches!(self, Self::Output(error) if closed_pipe(error)) {
            return;
        }
        let mut stderr = io::stderr().lock();
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
