//! The directories of services: one for each, and the template that they are copies of.

use crate::service::{Edge, Service};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

pub(crate) fn service_directory() -> Result<TempDir, String> {
    let directory = tempfile::Builder::new().prefix("selkie-e2e-").tempdir();
    directory.map_err(|error| error.to_string())
}

/// Returns the directory of a service that was started once and stopped. It already has a MariaDB and the demo, so that
/// a service on a copy of it starts much faster.
pub(crate) fn template() -> Result<&'static Path, String> {
    static TEMPLATE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let service = Service::start_in(service_directory()?, Edge::Without, &[])?;
        let directory = service.stop_and_keep()?.keep();
        fs::remove_file(directory.join("data/dev.env")).map_err(|error| error.to_string())?;
        Ok(directory)
    });
    made.as_deref().map_err(Clone::clone)
}
