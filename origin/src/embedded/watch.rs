//! Keeps the private MariaDB running: starts it again when it dies, until told to stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::server::{self, Server};

/// Before the first restart; doubled at each further one.
const BACKOFF_FIRST: Duration = Duration::from_millis(100);

/// Longest wait before a restart.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// A server that ran this long was well: the next wait is the first again.
const WELL_AFTER: Duration = Duration::from_secs(30);

/// Whether the private MariaDB answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Up,
    /// It died and is being started again.
    Down,
}

/// Watches `child` until `stop` is called, then stops it.
pub(super) async fn watch(
    server: Arc<Server>,
    mut child: Child,
    health: watch::Sender<Health>,
    stop: CancellationToken,
) {
    let mut backoff = BACKOFF_FIRST;
    loop {
        let started = Instant::now();
        let status = tokio::select! {
            status = child.wait() => status,
            () = stop.cancelled() => return server::stop(&mut child).await,
        };
        health.send_replace(Health::Down);
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        tracing::error!(%status, "the private MariaDB died; starting it again");
        if started.elapsed() > WELL_AFTER {
            backoff = BACKOFF_FIRST;
        }
        let restarted = restart(&server, &mut backoff);
        child = tokio::select! {
            child = restarted => child,
            // A half-started one is killed as its handle is dropped; InnoDB's log makes that harmless.
            () = stop.cancelled() => return,
        };
        health.send_replace(Health::Up);
        tracing::info!("the private MariaDB answers again");
    }
}

async fn restart(server: &Server, backoff: &mut Duration) -> Child {
    loop {
        tokio::time::sleep(*backoff).await;
        *backoff = (*backoff * 2).min(BACKOFF_MAX);
        match server.start().await {
            Ok(child) => return child,
            Err(error) => tracing::error!(%error, "the private MariaDB doesn't start"),
        }
    }
}
