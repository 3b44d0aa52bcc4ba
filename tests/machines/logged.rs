//! One server whose binary log has all that it can tell of rows, for tests of the decoder.

use std::{fs, path::PathBuf};

use anyhow::Result;
use tempfile::TempDir;

use crate::server::{Server, Site, install};

#[derive(Debug)]
pub struct Logged {
    // Fields are dropped in this order, so the server ends before its directory is removed.
    server: Server,
    _directory: TempDir,
}

impl Logged {
    /// Starts a server with these additional arguments, and waits until it answers.
    pub async fn start(more: &[&str]) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("selkie-logged-").tempdir()?;
        let template = directory.path().join("template");
        install(&template).await?;
        let arguments = ["--server-id=7", "--log-bin=binlog", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL"];
        let arguments = arguments.iter().chain(more).map(|argument| (*argument).to_owned()).collect();
        let mut server = Server::new(&directory.path().join("server"), Site::on_loopback(), &template, arguments)?;
        fs::remove_dir_all(template)?;
        server.launch(&[])?;
        server.wait_for("SELECT 1", "1").await?;
        Ok(Self { server, _directory: directory })
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the path of the log that the server writes now.
    pub fn log(&self) -> Result<PathBuf> {
        let index = fs::read_to_string(self.server.data().join("binlog.index"))?;
        let last = index.lines().last().unwrap_or_default();
        Ok(self.server.data().join(last))
    }
}
