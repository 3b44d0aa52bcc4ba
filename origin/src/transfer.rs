//! Imports rows from a file into a table, and exports a table's rows, through the HTTP API of an origin or an edge. The
//! commands `import` and `export` use this module with a URL and a key, or with an origin that runs inside the
//! command's own process. The module does not connect to MariaDB or parse arguments, but its messages name options of
//! the commands.

mod api;
mod column_type;
mod columns;
mod create;
mod export;
mod import;
mod input;
mod journal;
mod records;
mod refusals;

pub use api::{Api, TableRef};
pub use columns::{Doubt, MappedColumn};
pub use export::{Export, Exported, export};
pub use import::{Conflict, Creation, ImportOptions, Imported, Job, Start};
pub use input::{Form, Input};

use std::io;

/// Why an import or export failed. Messages contain no API key.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// An argument or the file is wrong; this run of the command has written no row.
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    #[error("{message}")]
    Failed { message: String, hint: Option<String> },
    #[error("the answer couldn't be written: {0}")]
    Output(#[source] io::Error),
}

impl TransferError {
    fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns the error of a failed file operation. `what` is the participle that the message names, such as "read".
    fn file(path: &std::path::Path, what: &str, error: &io::Error) -> Self {
        let message = format!("{} can't be {what}: {error}", path.display());
        Self::Failed { message, hint: None }
    }
}
