//! A small process between us and a program that starts programs of its own (wrangler starts workerd):
//! when we end, however we end, it ends them all.
//!
//! It holds the reading end of a pipe whose other end only we hold. The kernel closes that with us.

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

/// How long the programs may take to end by themselves.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Between two looks at whether they have.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Runs `program` in a process group of its own until it ends, standard input is closed, or a signal
/// says to stop; then ends every process of the group. Answers with the program's status, where it
/// ended by itself.
///
/// # Errors
/// The program can't be started.
pub async fn guard(program: &Path, arguments: &[OsString]) -> io::Result<Option<ExitStatus>> {
    // Those whose parent ends before them become our children, so that we can wait for them too.
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
        // A fault ends it as the end does.
        while matches!(io::stdin().read(&mut spare), Ok(1..)) {}
        drop(sender);
    });
    // It is never sent to: the end of the thread is the message.
    let _ = closed.await;
}

async fn end(group: Pid, child: &mut Child) {
    let deadline = Instant::now() + END_LIMIT;
    // Failures here mean that nobody is left.
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
        sleep(LOOK_AGAIN).await;
    }
}
