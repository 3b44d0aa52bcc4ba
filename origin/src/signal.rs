//! Stops the process on SIGTERM, SIGINT and SIGHUP, and optionally when its parent process ends.

use std::io;
use std::time::Duration;

use rustix::process::getppid;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

const PARENT_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The exit code that shells use for a program ended by SIGINT.
const INTERRUPTED: i32 = 130;

/// Returns a token that the first stop signal cancels. The second stop signal ends the process at once.
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
        crate::systemd::stopping();
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

/// Cancels the token when the parent ends. The kernel's parent-death signal comes when the starting *thread* ends.
pub fn stop_with_parent(token: &CancellationToken) {
    let token = token.clone();
    let parent = getppid();
    tokio::spawn(async move {
        while getppid() == parent {
            tokio::time::sleep(PARENT_POLL_INTERVAL).await;
        }
        tracing::info!("stopping: the process that started this one is gone");
        token.cancel();
    });
}
