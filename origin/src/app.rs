//! What every request needs, put together once at the start. Must not know HTTP.

mod stream_slots;

use crate::config::{BaseUrl, Config};
use crate::database::admin::Admin;
use crate::database::coalesce::Coalescer;
use crate::database::idempotency;
use crate::database::schema_cache::Catalog;
use crate::database::{PoolSettings, Pools};
use crate::embedded::Health;
use crate::media::intake::Intake;
use crate::media::library::Library;
use crate::media::resumable::{ResumableUploads, UploadTerms};
use crate::media::sign::Signer;
use crate::media::store::Watch;
use crate::metrics::{Metrics, Readings};
use crate::query::cursor::PageTokens;
use crate::rates::Rates;
use crate::shares::Shares;
use crate::system::System;
use crate::system::edge_secret::EdgeSecret;
use crate::system::keys::{KeyError, KeyRegistry};
use crate::system::projects::{ProjectError, Projects};
use shared::ident::{DatabaseName, ProjectName, TableName};
use shared::limits::{UPLOADS_MAX_COUNT, UPLOADS_PER_PROJECT_MAX_COUNT};
use shared::upload::UploadLimits;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use stream_slots::StreamSlots;

/// How often idle connections are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// How often receipts that are too old are looked for.
const RECEIPTS_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Bytes of all JSON bodies in memory at once, beyond what a body may have uncounted: sixteen of the largest, each of
/// which is parsed and bound in three or four copies. Keeps some hundred clients with a large body each from filling the
/// memory together.
pub(crate) const BODIES_MAX_BYTES: usize = 256 * 1024 * 1024;

/// The service's parts.
#[derive(Debug)]
pub struct App {
    /// Who may call.
    pub keys: Arc<KeyRegistry>,
    /// Connections.
    pub pools: Arc<Pools>,
    /// Statements that requests share.
    pub coalescer: Arc<Coalescer>,
    /// The schema.
    pub catalog: Arc<Catalog>,
    /// Tokens of pages.
    pub pages: PageTokens,
    /// What is counted.
    pub metrics: Metrics,
    /// Where callers reach the service, if requests don't tell.
    pub public_url: Option<BaseUrl>,
    /// Signatures of private files' URLs.
    pub signer: Signer,
    /// What the edge proves itself by.
    pub edge_secret: EdgeSecret,
    /// How often each key calls.
    pub rates: Rates,
    /// Bounds of one request.
    pub bounds: Bounds,
    /// Bytes of the JSON bodies that are held.
    pub bodies: Shares,
    /// The answers that are streamed.
    pub streams: StreamSlots,
    /// Files of callers.
    pub library: Library,
    /// What files go through before they are published.
    pub intake: Intake,
    /// The uploads that can be resumed.
    pub resumable: ResumableUploads,
    /// Whether their store answers.
    pub stored: Watch,
    /// The uploads that arrive or are examined.
    pub uploads: Shares,
    admin: Admin,
    projects: Projects,
    database: Option<watch::Receiver<Health>>,
}

/// Bounds of one request, as configured.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of a JSON body.
    pub body_max_bytes: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long a caller may leave an answer's bytes untaken.
    pub write_timeout: Duration,
    /// Rows of one batch.
    pub batch_max_rows: usize,
    /// What one upload may take.
    pub upload: UploadLimits,
    /// Bytes of one packet, as MariaDB said at the start.
    pub packet_max_bytes: usize,
}

impl App {
    /// Puts the parts together over a prepared system.
    ///
    /// # Errors
    /// The signing keys can't be read.
    pub async fn open(
        config: &Config,
        system: &System,
        library: Library,
        intake: Intake,
        database: Option<watch::Receiver<Health>>,
    ) -> Result<Self, KeyError> {
        let keys = KeyRegistry::open(system.admin.clone(), system.keys.clone()).await?;
        let settings = PoolSettings {
            size: config.pool_size,
            total: config.pool_total,
            queue: config.pool_queue,
            wait_timeout: config.pool_wait_timeout,
            connect_timeout: config.connect_timeout,
            query_timeout: config.query_timeout,
        };
        let source = system.projects.account_source();
        let pools = Arc::new(Pools::new(settings, system.address.clone(), source));
        let catalog = Catalog::new(Arc::clone(&pools));
        let (store, table) = (library.store().clone(), library.table().clone());
        let terms = UploadTerms {
            max_bytes: config.tus_max_bytes,
            lifetime: config.tus_expiry,
            types: config.media_types.clone(),
        };
        Ok(Self {
            keys: Arc::new(keys),
            catalog: Arc::new(catalog),
            coalescer: Arc::new(Coalescer::new(Arc::clone(&pools))),
            pools,
            pages: system.pages.clone(),
            public_url: config.public_url.clone(),
            signer: system.signer.clone(),
            metrics: Metrics::new(),
            edge_secret: system.edge_secret.clone(),
            rates: Rates::new(config.rate_limit),
            bounds: Bounds {
                body_max_bytes: config.json_body_max_bytes,
                body_timeout: config.body_read_timeout,
                write_timeout: config.write_timeout,
                batch_max_rows: config.rows_batch_max,
                upload: UploadLimits { body_bytes: config.upload_max_bytes, items: config.upload_max_items },
                packet_max_bytes: system.admin.packet_max_bytes().await?,
            },
            bodies: body_memory(config.json_body_max_bytes),
            streams: StreamSlots::new(settings, config.stream_timeout),
            resumable: ResumableUploads::new(store.clone(), table, terms),
            stored: Watch::new(store),
            library,
            intake,
            uploads: Shares::new(UPLOADS_MAX_COUNT, UPLOADS_PER_PROJECT_MAX_COUNT),
            admin: system.admin.clone(),
            projects: system.projects.clone(),
            database,
        })
    }

    /// The databases of a project that no key may drop, as they are recorded now.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn undroppable(&self, project: &ProjectName) -> Result<Vec<DatabaseName>, ProjectError> {
        self.projects.undroppable(project).await
    }

    /// Starts what runs beside requests, until `stop`.
    pub fn start_background(self: &Arc<Self>, tasks: &TaskTracker, stop: &CancellationToken) {
        tasks.spawn(Arc::clone(&self.keys).watch(stop.clone()));
        tasks.spawn(sweep_receipts(Arc::clone(self), stop.clone()));
        tasks.spawn(self.resumable.clone().sweep_always(stop.clone()));
        tasks.spawn(self.library.clone().sweep_always(stop.clone()));
        let (app, stop) = (Arc::clone(self), stop.clone());
        tasks.spawn(async move {
            let mut tick = tokio::time::interval(SWEEP_INTERVAL);
            loop {
                tokio::select! {
                    () = stop.cancelled() => break,
                    _ = tick.tick() => {
                        app.pools.close_idle();
                        app.catalog.close_idle();
                    }
                }
            }
        });
    }

    /// Reads the values that metrics do not keep themselves: pool gauges, schema loads, prepared XA transactions.
    pub async fn readings(&self) -> Readings {
        let prepared_xa = self.admin.prepared_xa().await;
        Readings {
            pools: self.pools.gauge(),
            schema_loads: self.catalog.loads(),
            prepared_xa: prepared_xa.inspect_err(|error| tracing::debug!(%error, "XA RECOVER failed")).ok(),
        }
    }

    /// Whether MariaDB answers.
    pub async fn is_ready(&self) -> bool {
        let healthy = self.database.as_ref().is_none_or(|health| *health.borrow() == Health::Up);
        healthy && self.admin.key_changes().await.is_ok()
    }
}

/// Returns the memory for JSON bodies: [`BODIES_MAX_BYTES`] or two of the largest bodies, whichever is more, and half of that for one
/// project.
#[must_use]
pub fn body_memory(body_max_bytes: usize) -> Shares {
    let whole = BODIES_MAX_BYTES.max(body_max_bytes.saturating_mul(2)) as u64;
    Shares::new(whole, whole / 2)
}

/// Deletes receipts that are too old, again and again until `stop`. Several origins may do so at once.
async fn sweep_receipts(app: Arc<App>, stop: CancellationToken) {
    let mut tick = tokio::time::interval(RECEIPTS_SWEEP_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        let sweep = async {
            // Each takes a connection of its own: only where there is something to sweep.
            for project in app.projects.with_table(TableName::RECEIPTS).await? {
                if let Err(error) = idempotency::sweep(&app.pools, &project).await {
                    tracing::debug!(%error, %project, "receipts could not be swept");
                }
            }
            Ok::<_, ProjectError>(())
        };
        tokio::select! {
            () = stop.cancelled() => return,
            swept = sweep => if let Err(error) = swept {
                tracing::warn!(%error, "receipts could not be swept");
            }
        }
    }
}
