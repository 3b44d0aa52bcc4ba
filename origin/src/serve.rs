//! The origin's service, from an open listener to its last answer.
//!
//! Knows neither where MariaDB came from nor who else runs in this process.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::config::Config;
use crate::database::media::MediaTable;
use crate::embedded::Health;
use crate::http;
use crate::media::intake::Intake;
use crate::media::library::Library;
use crate::media::store::StoreError;
use crate::system::System;
use crate::system::keys::KeyError;

/// Why it ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The signing keys can't be read.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The store of media can't be opened.
    #[error("the media store can't be opened: {0}")]
    Store(#[from] StoreError),
    /// The system gives no threads to decode pictures on.
    #[error("no threads for pictures: {0}")]
    Threads(#[source] std::io::Error),
    /// The server couldn't go on.
    #[error("the origin stopped: {0}")]
    Server(#[source] std::io::Error),
}

/// Serves on `listener` until `stop` is cancelled, then lets running requests end, for
/// `shutdown_grace` at most. The system must have been prepared. `database` tells whether a private
/// MariaDB answers; without it, only asking can tell.
///
/// # Errors
/// The signing keys can't be read, the store can't be opened, or the listener fails.
pub async fn run(
    config: &Config,
    system: &System,
    database: Option<watch::Receiver<Health>>,
    listener: TcpListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let table = MediaTable::new(&system.address, config.connect_timeout);
    let library = Library::open(config, table)?;
    let intake = Intake::start(config).map_err(ServeError::Threads)?;
    let app = Arc::new(App::open(config, system, library, intake, database).await?);
    let tasks = TaskTracker::new();
    // Ends also where the server fails by itself.
    let stop = stop.child_token();
    app.start_background(&tasks, &stop);
    let served = http::server::serve(listener, app, config, &stop).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    served.map_err(ServeError::Server)
}
