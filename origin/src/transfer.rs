//! Imports and exports a table's rows, follows their changes, and manages webhooks, through the HTTP API of an origin or
//! an edge. Does not connect to MariaDB or parse arguments, but its messages name options of the commands.

mod api;
mod changes;
mod column_type;
mod columns;
mod export;
mod import;
mod input;
mod journal;
mod records;
mod refusals;
mod webhooks;

pub use api::{Api, TableRef};
pub use changes::Follower;
pub use columns::{Doubt, MappedColumn};
pub use export::{Export, Exported, export};
pub use import::{Conflict, Creation, ImportOptions, ImportStart, Imported, Job};
pub use input::{Form, Input};
pub use webhooks::{Delivery, Tested, Webhook};

use std::io;

/// An error of a call of the API, or of what is read or written with it. Messages contain no API key.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Wrong options or input. This run of the command has written no row.
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

    fn file(path: &std::path::Path, what: &str, error: &io::Error) -> Self {
        let message = format!("{} can't be {what}: {error}", path.display());
        Self::Failed { message, hint: None }
    }
}
