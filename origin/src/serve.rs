//! The origin's service, from an open listener to its last answer.
//!
//! Knows neither where MariaDB came from nor who else runs in this process.

use crate::app::App;
use crate::config::Config;
use crate::http;
use crate::installation::Installation;
use crate::system::SystemError;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Why the service can't go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// MariaDB can't be used.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The server ended by itself.
    #[error("the origin stopped: {0}")]
    Server(#[source] std::io::Error),
}

/// Serves on `listener` until `stop` is cancelled, then drains for as long as `shutdown_grace` allows.
///
/// # Errors
/// The service can't begin, or ends by itself.
pub async fn run(
    config: &Config,
    installation: &Installation,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let app = Arc::new(App::open(config, installation).await?);
    let tasks = TaskTracker::new();
    app.start_background(&tasks, &stop);
    let router = http::router(Arc::clone(&app));
    let served = http::server::serve(listener, router, config, &stop).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    served.map_err(ServeError::Server)
}
