//! When to stop: on SIGTERM, SIGINT and SIGHUP, and, for what a person started by another program, when
//! that program is gone.

use std::io;
use std::time::Duration;

use rustix::process::getppid;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Between two looks at the parent. A look costs a microsecond.
const PARENT_LOOK: Duration = Duration::from_millis(250);

/// What a shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// A token that is cancelled by the first signal to stop. The second one ends the process at once.
///
/// # Errors
/// The signals can't be listened to.
pub fn stop_token() -> io::Result<CancellationToken> {
    let token = CancellationToken::new();
    let mut signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hang_up: signal(SignalKind::hangup())?,
    };
    let cancelled = token.clone();
    tokio::spawn(async move {
        let name = signals.next().await;
        tracing::info!(signal = name, "stopping");
        cancelled.cancel();
        signals.next().await;
        tracing::warn!("stopping at once");
        crate::logging::flush();
        std::process::exit(INTERRUPTED);
    });
    Ok(token)
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hang_up.recv() => "SIGHUP",
        }
    }
}

/// Cancels `token` when the process that started this one ends. Looked at rather than asked of the
/// kernel, whose signal comes already when the parent's *thread* ends.
pub fn stop_with_parent(token: &CancellationToken) {
    let token = token.clone();
    let parent = getppid();
    tokio::spawn(async move {
        while getppid() == parent {
            tokio::time::sleep(PARENT_LOOK).await;
        }
        tracing::info!("stopping: the process that started this one is gone");
        token.cancel();
    });
}
