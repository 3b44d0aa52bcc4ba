//! Child processes that never outlive this process.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};

/// Number of tries to see a killed program's end.
const END_TRIES: u32 = 200;

/// A started program. Drop kills it and waits for its end.
#[derive(Debug)]
pub(crate) struct Started {
    child: Child,
    pid: u32,
}

impl Started {
    /// Starts `program`. The kernel kills it if this process is killed (`setpriv` replaces itself by the program, so
    /// the process id is the program's).
    pub(crate) fn new(program: &Path, configure: impl FnOnce(&mut Command)) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).kill_on_drop(true).stdin(Stdio::null());
        configure(&mut command);
        let child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
        let pid = child.id().context("the program has ended already")?;
        Ok(Self { child, pid })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the first line that the program prints. Its standard output must be piped.
    pub(crate) async fn first_line(&mut self) -> Result<String> {
        let output = self.child.stdout.take().context("standard output is not piped")?;
        let mut line = String::new();
        let mut reader = BufReader::new(output);
        timeout(Duration::from_secs(20), reader.read_line(&mut line)).await.context("the program prints nothing")??;
        if line.is_empty() {
            bail!("the program ended without a line");
        }
        Ok(line.trim().to_owned())
    }

    /// Returns an error if the program has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
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

/// Raises the limit of open files and sockets of this process and its children to `count`, or as far as allowed.
pub(crate) fn allow_open_files(count: u64) -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    let asked = limit.maximum.map_or(count, |maximum| count.min(maximum));
    // Without a soft limit there is nothing to raise.
    if limit.current.is_some_and(|current| current < asked) {
        limit.current = Some(asked);
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(())
}

/// Waits for a signal that asks this process to end.
pub(crate) async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
