//! Runs the origin's server, from an open listener to the last response. Does not know how MariaDB was started.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::database::media::MediaTable;
use crate::embedded::MariadbHealth;
use crate::http;
use crate::media::intake::Intake;
use crate::media::library::Library;
use crate::media::store::StoreError;
use crate::process;
use crate::service_state::ServiceState;
use crate::system::System;
use crate::system::keys::KeyError;
use crate::systemd;
use crate::tls::Tls;
use crate::traces::{Tracer, TracerError};

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error("the media store can't be opened: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Traces(#[from] TracerError),
    #[error("the origin stopped: {0}")]
    Server(#[source] std::io::Error),
}

/// Whether an origin may deliver webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deliveries {
    WithLease,
    /// An origin within a command neither has the network of the others nor lasts.
    Never,
}

/// Runs the server until it is stopped. `system` must be prepared.
pub async fn run(
    config: &Config,
    system: &System,
    database: Option<watch::Receiver<MariadbHealth>>,
    (listener, tls): (TcpListener, Option<Tls>),
    deliveries: Deliveries,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    process::allow_all_open_files();
    let table = MediaTable::new(&system.hosts, config.connect_timeout);
    let library = Library::open(config, table)?;
    let intake = Intake::new(config);
    let (tracer, sender) = config.otlp.as_ref().map(Tracer::open).transpose()?.unzip();
    let app = Arc::new(ServiceState::open(config, system, library, intake, tracer, database).await?);
    let endpoints: Vec<String> = system.hosts.address().endpoints().map(ToString::to_string).collect();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = listener.local_addr().ok().map(tracing::field::display),
        database = endpoints.join(","),
        media = config.media_store.kind(),
        "the origin serves"
    );
    let tasks = TaskTracker::new();
    // Stops the background tasks if the server fails, without cancelling the caller's token.
    let stop = stop.child_token();
    app.start_background(&tasks, &stop);
    if deliveries == Deliveries::WithLease {
        http::webhooks::start(&app, &tasks, &stop);
    }
    if let Some(tls) = &tls {
        tasks.spawn(tls.clone().watch(stop.clone()));
    }
    if let Some(sender) = sender {
        tasks.spawn(sender.run(stop.clone()));
    }
    // `listener` queues connections already, and `ServiceState::open` has read the keys from MariaDB.
    systemd::ready();
    let served = http::server::serve(listener, tls, app, config, &stop).await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    served.map_err(ServeError::Server)
}
