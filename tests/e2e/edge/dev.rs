//! A worker of a case's own as `wrangler dev` runs it, with what plain workerd lacks: the Cache API. Starts within
//! some seconds.

use crate::service::{binary, clear_settings, free_port, is_alive, kill, shared, workspace};
use rustix::process::Signal;
use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// It builds the worker first, where its sources changed.
const START_MAX: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(50);

/// One running wrangler; ended when it is dropped, or this process is.
pub(crate) struct DevEdge {
    guard: Child,
    directory: TempDir,
    /// `http://127.0.0.1:port`.
    pub(crate) url: String,
}

impl DevEdge {
    /// Starts one before these origins, with these variables besides.
    pub(crate) fn start(origins: &str, variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("selkie-edge-").tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let jwks = shared().cli_ok(&["key", "jwks"]);
        let mut file = format!("ORIGINS={origins}\nJWKS='{}'\n", jwks.trim());
        for (name, value) in variables {
            file.push_str(&format!("{name}={value}\n"));
        }
        fs::write(path("vars"), file).expect("a file");
        let log = File::create(path("log")).expect("a log");
        let port = free_port();
        let mut command = Command::new(binary().expect("selkie"));
        clear_settings(&mut command);
        let guard = command
            .args(["guard", "--", "node", "tools/edge-dev.mjs"])
            .args(["--port", &port.to_string()])
            .arg("--env-file")
            .arg(path("vars"))
            .arg("--persist-to")
            .arg(path("wrangler"))
            .current_dir(workspace())
            // The guard lives until this pipe's other end, which we hold, is closed.
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("selkie");
        let mut edge = Self { guard, directory, url: format!("http://127.0.0.1:{port}") };
        edge.wait_until_alive();
        edge
    }

    fn wait_until_alive(&mut self) {
        let deadline = Instant::now() + START_MAX;
        while !is_alive(&self.url) {
            let ended = self.guard.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "the edge does not answer: {}", self.log());
            std::thread::sleep(PAUSE);
        }
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.directory.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for DevEdge {
    fn drop(&mut self) {
        kill(i32::try_from(self.guard.id()).expect("a process id"), Signal::TERM);
        let _ = self.guard.wait();
    }
}
