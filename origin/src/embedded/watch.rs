//! Restarts the private MariaDB whenever its process ends, until it is stopped on purpose.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::server::{self, MariadbServer};

/// The wait before the first restart. It doubles with each further restart, up to [`BACKOFF_MAX`].
const BACKOFF_FIRST: Duration = Duration::from_millis(100);

const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The running time after which the wait before the next restart is [`BACKOFF_FIRST`] again.
const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MariadbHealth {
    Up,
    Down,
}

/// Restarts MariaDB whenever `child` ends. Stops it when `stop` is cancelled.
pub(super) async fn watch(
    server: Arc<MariadbServer>,
    mut child: Child,
    health: watch::Sender<MariadbHealth>,
    stop: CancellationToken,
) {
    let mut backoff = BACKOFF_FIRST;
    loop {
        let started = Instant::now();
        let status = tokio::select! {
            status = child.wait() => status,
            () = stop.cancelled() => return server::stop(&mut child).await,
        };
        health.send_replace(MariadbHealth::Down);
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        tracing::error!(%status, "the private MariaDB died; starting it again");
        if started.elapsed() > BACKOFF_RESET_AFTER {
            backoff = BACKOFF_FIRST;
        }
        let restarted = restart(&server, &mut backoff);
        child = tokio::select! {
            child = restarted => child,
            // Dropping the handle of a starting server kills the server, which does no harm thanks to InnoDB's log.
            () = stop.cancelled() => return,
        };
        health.send_replace(MariadbHealth::Up);
        tracing::info!("the private MariaDB answers again");
    }
}

async fn restart(server: &MariadbServer, backoff: &mut Duration) -> Child {
    loop {
        tokio::time::sleep(*backoff).await;
        *backoff = (*backoff * 2).min(BACKOFF_MAX);
        match server.start().await {
            Ok(child) => return child,
            Err(error) => tracing::error!(%error, "the private MariaDB doesn't start"),
        }
    }
}
