//! A process between `selkie dev` and a program with child processes of its own (Miniflare starts workerd). The guard
//! ends them all when `selkie dev` ends for any reason, because the pipe to the guard's standard input is closed then.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, test_kill_process_group, waitpgid,
};
use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::process::{self, LastSignal};
use crate::signal;

/// The time between SIGTERM and SIGKILL.
const END_LIMIT: Duration = Duration::from_secs(5);

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs a program, then ends every process of its process group. Returns `None` if the guard ended the program.
pub async fn guard(program: &Path, arguments: &[OsString]) -> io::Result<Option<ExitStatus>> {
    // Makes orphaned descendants children of this process, so that this process can wait for their end.
    set_child_subreaper(Some(getpid()))?;
    let stop = signal::stop_token()?;
    let mut command = process::tied(program, LastSignal::Term);
    command.args(arguments).stdin(Stdio::null());
    let mut child = process::spawn(command).await?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let ended = tokio::select! {
        status = child.wait() => Some(status?),
        () = closed_input() => None,
        () = stop.cancelled() => None,
    };
    if let Some(group) = group {
        end(group, &mut child).await;
    }
    Ok(ended)
}

async fn closed_input() {
    let (sender, closed) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut spare = [0_u8; 64];
        while matches!(io::stdin().read(&mut spare), Ok(1..)) {}
        drop(sender);
    });
    // Nothing is ever sent: the thread drops `sender`, which closes the channel.
    let _ = closed.await;
}

async fn end(group: Pid, child: &mut Child) {
    let deadline = Instant::now() + END_LIMIT;
    let _ = kill_process_group(group, Signal::TERM);
    loop {
        let _ = child.try_wait();
        while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
        if test_kill_process_group(group).is_err() {
            return;
        }
        if Instant::now() > deadline {
            let _ = kill_process_group(group, Signal::KILL);
        }
        sleep(POLL_INTERVAL).await;
    }
}
