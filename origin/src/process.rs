//! Child processes that end with this process, however it ends (needs `setpriv` of util-linux). The kernel signals a
//! child when the *thread* that spawned it ends, so [`spawn`] uses one permanent thread.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Variables that children don't get: secrets, and the service manager's socket, to which MariaDB would report.
const WITHHELD_VARIABLES: [&str; 11] = [
    "SELKIE_SECRET",
    "SELKIE_DATABASE_URL",
    "SELKIE_REPLICA_URL",
    "SELKIE_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "SELKIE_MEDIA_S3_ACCESS_KEY",
    "SELKIE_MEDIA_S3_SECRET_KEY",
    "SELKIE_KEY",
    "SELKIE_FULL_KEY",
    "SELKIE_READ_KEY",
    "NOTIFY_SOCKET",
];

/// The directories that are searched after `PATH`, which often lacks the `sbin` directories.
const PROGRAM_DIRECTORIES: [&str; 6] =
    ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin"];

/// Allows this process as many open files and connections as the system lets it have. Most systems allow far fewer at
/// first, for old programs.
pub(crate) fn allow_all_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
}

pub(crate) fn find_program(names: &[&str]) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> =
        std::env::split_paths(&path).chain(PROGRAM_DIRECTORIES.map(PathBuf::from)).collect();
    let runs = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name))).find(runs)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastSignal {
    /// SIGTERM, for a program that cleans up before it ends.
    Term,
    /// SIGKILL, for a program that may ignore SIGTERM.
    Kill,
}

/// Returns a command to start with [`spawn`]. Ctrl-C reaches only this process, which then stops its children in order.
pub(crate) fn tied(program: &Path, last: LastSignal) -> Command {
    let signal = match last {
        LastSignal::Term => "TERM",
        LastSignal::Kill => "KILL",
    };
    let mut command = match find_program(&["setpriv"]) {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", signal, "--"]).arg(program);
            command
        }
        // Without `setpriv` (util-linux), the child outlives this process if this process is killed.
        None => Command::new(program),
    };
    withhold_secrets(command.as_std_mut());
    command.process_group(0).kill_on_drop(true);
    command
}

pub(crate) fn withhold_secrets(command: &mut std::process::Command) {
    for variable in WITHHELD_VARIABLES {
        command.env_remove(variable);
    }
}

type SpawnRequest = (Command, Handle, oneshot::Sender<io::Result<Child>>);

pub(crate) async fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<SpawnRequest>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, queue) = channel::<SpawnRequest>();
        std::thread::spawn(move || {
            for (mut command, runtime, answer) in queue {
                let _inside = runtime.enter();
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let gone = || io::Error::other("the thread that starts programs is gone");
    let (answer, child) = oneshot::channel();
    spawner.send((command, Handle::current(), answer)).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}

pub(crate) async fn stop(child: &mut Child, limit: Duration) {
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let Some(pid) = pid else {
        return; // It has ended and been waited for.
    };
    let _ = kill_process(pid, Signal::TERM);
    if tokio::time::timeout(limit, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// Returns whether process `pid` has this argument, since another process may have got the same id later.
pub(crate) fn runs_with(pid: Pid, argument: &OsStr) -> bool {
    let path = format!("/proc/{}/cmdline", pid.as_raw_nonzero());
    std::fs::read(path).is_ok_and(|line| line.split(|byte| *byte == 0).any(|part| part == argument.as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_no_secret_setting() {
        let command = tied(Path::new("mariadbd"), LastSignal::Kill);
        let removed: Vec<_> =
            command.as_std().get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for variable in [
            "SELKIE_SECRET",
            "SELKIE_DATABASE_URL",
            "SELKIE_REPLICA_URL",
            "SELKIE_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ] {
            assert!(removed.contains(&OsStr::new(variable)), "{variable}");
        }
        assert!(!removed.contains(&OsStr::new("SELKIE_LISTEN")));
    }
}
