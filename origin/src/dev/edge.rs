//! The edge on this machine: Miniflare with Cloudflare's runtime workerd. A guard process ends both when `selkie dev`
//! ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Child;

use super::{EdgePlan, environment, probe};
use crate::config::Config;
use crate::process::{self, LastSignal};

/// The time limit of a start, which includes the time to build the worker.
const START_LIMIT: Duration = Duration::from_secs(600);

/// The time limit of a stop. The guard kills the edge after half of this time.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const LOG_TAIL_LINES: usize = 12;

/// Runs the edge like `wrangler dev`, but without its proxy and debugger. The script explains why.
const RUNNER: &str = "tools/edge-dev.mjs";

const WRANGLER: &str = "node_modules/wrangler/package.json";

#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    #[error("there is no wrangler.toml in {0}")]
    NoConfiguration(PathBuf),
    #[error("wrangler is not installed in {0}")]
    NoWrangler(PathBuf),
    #[error("the edge couldn't be started: {0}")]
    Start(#[source] io::Error),
    #[error("the edge ended; the last lines of {log}:\n{tail}", log = log.display())]
    Ended { log: PathBuf, tail: String },
    #[error("the edge doesn't answer on {address}; the last lines of {log}:\n{tail}", log = log.display())]
    Silent { address: SocketAddr, log: PathBuf, tail: String },
}

impl EdgeError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoConfiguration(_) => Some(
                "run it where Selkie's sources are, name that directory with --edge-root, or leave the edge out with --no-edge",
            ),
            Self::NoWrangler(_) => Some("`make setup` installs it; --no-edge leaves the edge out"),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct EdgeProcess {
    guard: Child,
    listen: SocketAddr,
    log: PathBuf,
}

pub(super) fn check(root: &Path) -> Result<(), EdgeError> {
    if !root.join("wrangler.toml").is_file() {
        return Err(EdgeError::NoConfiguration(root.to_owned()));
    }
    if !root.join(WRANGLER).is_file() {
        return Err(EdgeError::NoWrangler(root.to_owned()));
    }
    Ok(())
}

impl EdgeProcess {
    pub(super) async fn start(config: &Config, plan: &EdgePlan) -> Result<Self, EdgeError> {
        let log = config.data_dir.join("edge.log");
        let output = log_file(&log).map_err(EdgeError::Start)?;
        let errors = output.try_clone().map_err(EdgeError::Start)?;
        let this = std::env::current_exe().map_err(EdgeError::Start)?;
        let mut command = process::tied(&this, LastSignal::Term);
        command
            .args(["guard", "--", "node"])
            .arg(plan.root.join(RUNNER))
            .args(["--ip", &plan.listen.ip().to_string()])
            .args(["--port", &plan.listen.port().to_string()])
            .arg("--env-file")
            .arg(environment::vars_path(&config.data_dir))
            .arg("--persist-to")
            .arg(config.data_dir.join("wrangler"))
            .envs(variables(&config.data_dir))
            .current_dir(&plan.root)
            // The guard ends the edge when this pipe is closed: by this process, or because this process ends.
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors);
        tracing::info!(log = %log.display(), "starting the edge; it is built first where it changed");
        let guard = process::spawn(command).await.map_err(EdgeError::Start)?;
        Ok(Self { guard, listen: plan.listen, log })
    }

    /// Runs until the edge ends or doesn't answer in time. Returns only with an error.
    pub(super) async fn run(&mut self, ready: impl FnOnce()) -> Result<(), EdgeError> {
        // Taken out and kept, because `wait` would close the pipe, which ends the guard.
        let held = self.guard.stdin.take();
        let answering = probe::answers_within(self.listen, START_LIMIT);
        tokio::select! {
            answered = answering => if !answered {
                return Err(EdgeError::Silent { address: self.listen, log: self.log.clone(), tail: tail(&self.log) });
            },
            _ = self.guard.wait() => return Err(self.ended()),
        }
        ready();
        let _ = self.guard.wait().await;
        drop(held);
        Err(self.ended())
    }

    fn ended(&self) -> EdgeError {
        EdgeError::Ended { log: self.log.clone(), tail: tail(&self.log) }
    }

    pub(super) async fn stop(mut self) {
        process::stop(&mut self.guard, STOP_LIMIT).await;
    }
}

/// Returns variables that turn off metrics and questions, and let two edges run at the same time.
fn variables(data_dir: &Path) -> [(&'static str, std::ffi::OsString); 5] {
    let registry = data_dir.join("wrangler/registry").into_os_string();
    let logs = data_dir.join("wrangler/logs").into_os_string();
    [
        ("WRANGLER_SEND_METRICS", "false".into()),
        ("WRANGLER_HIDE_BANNER", "true".into()),
        ("CI", "1".into()),
        ("WRANGLER_REGISTRY_PATH", registry),
        ("WRANGLER_LOG_PATH", logs),
    ]
}

fn log_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn tail(path: &Path) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
}
