//! Child processes that end with this process at the latest.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Number of checks, 10 ms apart, whether a killed program has ended.
const END_TRIES: u32 = 200;

#[derive(Debug)]
pub struct Started {
    child: Child,
    pid: u32,
}

impl Started {
    /// Starts `program`. The kernel kills it when the calling thread ends. The program is started
    /// through `setpriv`, which replaces itself by it, so the process id is the program's own.
    pub fn new(program: &Path, configure: impl FnOnce(&mut Command)) -> Result<Self> {
        Self::within(None, program, configure)
    }

    /// Starts `program` in the network namespace of the process `namespace`; `None` is this
    /// process's namespace.
    pub fn within(namespace: Option<u32>, program: &Path, configure: impl FnOnce(&mut Command)) -> Result<Self> {
        let mut command = match namespace {
            None => Command::new("setpriv"),
            Some(pid) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net=/proc/{pid}/ns/net")).args(["--", "setpriv"]);
                command
            }
        };
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).kill_on_drop(true).stdin(Stdio::null());
        configure(&mut command);
        let child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        let pid = child.id().context("the program has ended already")?;
        Ok(Self { child, pid })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the first line that the program prints within 20 s. `configure` must have piped its
    /// standard output.
    pub async fn first_line(&mut self) -> Result<String> {
        let output = self.child.stdout.take().context("standard output is not piped")?;
        let mut line = String::new();
        let mut reader = BufReader::new(output);
        timeout(Duration::from_secs(20), reader.read_line(&mut line)).await.context("the program prints nothing")??;
        if line.is_empty() {
            bail!("the program ended without a line");
        }
        Ok(line.trim().to_owned())
    }

    /// Sends a signal. Does nothing if the program has ended.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Sends SIGTERM and waits until the program has ended. Returns an error after `limit`.
    pub async fn terminate(mut self, limit: Duration) -> Result<()> {
        self.signal(Signal::TERM);
        timeout(limit, self.child.wait()).await.context("the program does not end after SIGTERM")??;
        Ok(())
    }

    /// Returns whether the program still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns an error if the program has ended.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the program ended: {status}"),
            None => Ok(()),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Fails if the program has already ended.
        let _ = self.child.start_kill();
        for _ in 0..END_TRIES {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Raises the limit of open files and sockets for this process and its children to `count`, or to
/// the hard limit if that is lower.
pub fn allow_open_files(count: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    let asked = limit.maximum.map_or(count, |maximum| count.min(maximum));
    // Without a soft limit there is nothing to raise.
    if limit.current.is_some_and(|current| current < asked) {
        limit.current = Some(asked);
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(())
}

/// Waits for SIGINT or SIGTERM.
pub async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
