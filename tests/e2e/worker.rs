//! A worker for one case, in plain workerd, with the case's variables and origin. It starts within a fraction of a
//! second. [`Worker::in_miniflare`] starts one with the features that plain workerd lacks (the Cache API, rate
//! limiters), which takes some seconds.

use crate::service::{free_port, is_alive, kill, shared, workspace};
use rustix::process::Signal;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum time of a start. The script of Miniflare builds the worker first if its sources changed.
const START_MAX: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum time in which Miniflare ends its workerd.
const STOP_MAX: Duration = Duration::from_secs(10);

pub(crate) struct Worker {
    child: Child,
    directory: TempDir,
    /// Base URL of the worker, such as `http://127.0.0.1:8080`.
    pub(crate) url: String,
}

impl Worker {
    /// Starts a worker with these variables. If `JWKS` is not among them, it gets the `JWKS` of the shared service.
    pub(crate) fn start(variables: &[(&str, &str)]) -> Self {
        Self::serve("edge/workerd.capnp", variables)
    }

    pub(crate) fn serve(configuration: &str, variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("selkie-worker-").tempdir().expect("a directory");
        let log = File::create(directory.path().join("log")).expect("a log");
        let port = free_port();
        let mut command = Command::new(workerd());
        command
            .env_clear()
            .arg("serve")
            .arg(format!("--socket-addr=http=127.0.0.1:{port}"))
            .arg(configuration)
            .current_dir(workspace())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        if !variables.iter().any(|(name, _)| *name == "JWKS") {
            command.env("JWKS", shared().cli_ok(&["key", "jwks"]).trim());
        }
        command.envs(variables.iter().copied());
        Self::run(command, directory, port)
    }

    /// Starts a worker like `selkie dev`: in Miniflare, with its Cache API and rate limiter.
    pub(crate) fn in_miniflare(variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::Builder::new().prefix("selkie-worker-").tempdir().expect("a directory");
        let log = File::create(directory.path().join("log")).expect("a log");
        let port = free_port();
        let jwks = shared().cli_ok(&["key", "jwks"]);
        let file: String = [("JWKS", jwks.trim())]
            .iter()
            .chain(variables)
            .map(|(name, value)| format!("{name}='{value}'\n"))
            .collect();
        let vars = directory.path().join("vars");
        fs::write(&vars, file).expect("a file");
        let mut command = Command::new("node");
        command
            .arg("tools/edge-dev.mjs")
            .args(["--ip", "127.0.0.1", "--port", &port.to_string()])
            .arg("--env-file")
            .arg(vars)
            .arg("--persist-to")
            .arg(directory.path().join("state"))
            .env("CI", "1")
            .current_dir(workspace())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        Self::run(command, directory, port)
    }

    fn run(mut command: Command, directory: TempDir, port: u16) -> Self {
        let child = command.spawn().expect("workerd and node, which `make setup` installs");
        let mut worker = Self { child, directory, url: format!("http://127.0.0.1:{port}") };
        worker.wait_until_alive();
        worker
    }

    fn wait_until_alive(&mut self) {
        let deadline = Instant::now() + START_MAX;
        while !is_alive(&self.url) {
            let ended = self.child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "workerd does not answer: {}", self.log());
            std::thread::sleep(PAUSE);
        }
    }

    pub(crate) fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a process's state, as Linux tells it");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let amount = line.and_then(|line| line.trim().strip_suffix(" kB"));
        amount.and_then(|kib| kib.parse().ok()).expect("an amount")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(i32::try_from(self.child.id()).expect("a process id"), signal);
    }

    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("a process's descriptors").count()
    }

    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.directory.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SIGTERM rather than SIGKILL, because Miniflare must be able to end its workerd.
        self.signal(Signal::TERM);
        let deadline = Instant::now() + STOP_MAX;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                self.signal(Signal::KILL);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns the path of workerd. npm installs it in a package for each platform.
fn workerd() -> PathBuf {
    let packages = workspace().join("node_modules/@cloudflare");
    let entries = std::fs::read_dir(&packages).expect("node_modules, which `make setup` fills");
    entries
        .flatten()
        .map(|entry| entry.path().join("bin/workerd"))
        .find(|program| program.is_file())
        .expect("workerd, which `make setup` installs")
}
