//! The state that all requests share, such as connection pools and caches. Must not know HTTP.

mod stream_slots;

use crate::activity::Activity;
use crate::changes::Changes;
use crate::clock::now;
use crate::config::{BaseUrl, Config, ConsoleConfig, SignInClients};
use crate::database::admin::{Admin, LOG_MAX_BYTES};
use crate::database::coalesce::Coalescer;
use crate::database::hosts::{HostRole, Hosts, HostsGauge};
use crate::database::idempotency;
use crate::database::schema_cache::SchemaCache;
use crate::database::{PoolSettings, Pools};
use crate::embedded::MariadbHealth;
use crate::media::intake::Intake;
use crate::media::library::Library;
use crate::media::resumable::{ResumableUploads, UploadTerms};
use crate::media::sign::UrlSigner;
use crate::media::store::Watch;
use crate::metrics::{Metrics, Readings};
use crate::project_quota::{ProjectQuota, QuotaGuard};
use crate::query::cursor::PageTokens;
use crate::rates::Rates;
use crate::recent::Recent;
use crate::system::System;
use crate::system::edge_secret::EdgeSecret;
use crate::system::issuers::Issuers;
use crate::system::keys::{KeyError, KeyRegistry};
use crate::system::projects::{ProjectError, Projects};
use crate::system::roles::Roles;
use crate::traces::Tracer;
use crate::webhooks::{FAILING_TOLD_AFTER, Webhooks, WebhooksGauge};
use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, ProjectName, TableName};
use shared::limits::{
    HELD_ANSWERS_MAX_BYTES, HELD_ANSWERS_PER_PROJECT_MAX_BYTES, UPLOADS_MAX_COUNT, UPLOADS_PER_PROJECT_MAX_COUNT,
};
use shared::upload::UploadLimits;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use stream_slots::StreamSlots;

const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
const LOG_INTERVAL: Duration = Duration::from_secs(30);

const RECEIPTS_SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The maximum size of all bodies: sixteen of the default maximum. The first bytes of a body (`FREE_BYTES` in
/// `http::body`) are not counted. A body takes up to four times its size, because parsing and binding copy it.
pub(crate) const BODIES_MAX_BYTES: usize = 256 * 1024 * 1024;

pub struct ServiceState {
    pub keys: Arc<KeyRegistry>,
    pub pools: Arc<Pools>,
    pub coalescer: Arc<Coalescer>,
    pub schema_cache: Arc<SchemaCache>,
    pub cursors: PageTokens,
    pub changes: Changes,
    pub webhooks: Webhooks,
    pub metrics: Metrics,
    pub tracer: Option<Tracer>,
    pub public_url: Option<BaseUrl>,
    pub console: ConsoleConfig,
    pub signer: UrlSigner,
    pub edge_secret: EdgeSecret,
    pub rates: Rates,
    pub bounds: Bounds,
    pub bodies: ProjectQuota,
    /// The bytes of responses that are held in memory as a whole.
    pub answers: ProjectQuota,
    pub streams: StreamSlots,
    pub library: Library,
    pub intake: Intake,
    pub resumable: ResumableUploads,
    pub stored: Watch,
    pub descriptions: ProjectQuota,
    /// Slots for requests that read or change keys and roles, or drop databases: they share the few pooled connections
    /// of [`Admin`] with the key look-ups of all requests.
    management_slots: ProjectQuota,
    pub activity: Activity,
    pub uploads: ProjectQuota,
    admin: Admin,
    probes: Probes,
    hosts: Hosts,
    projects: Projects,
    database: Option<watch::Receiver<MariadbHealth>>,
}

/// Cached results of `/readyz` and `/metrics`: anybody may call them, so each result is used for a second. The probes
/// have a connection of their own, so that they neither wait for requests of projects nor delay these requests.
#[derive(Debug)]
struct Probes {
    admin: Admin,
    answers: Recent<bool>,
    prepared_xa: Recent<Option<usize>>,
    failing_webhooks: Recent<Option<usize>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub body_max_bytes: usize,
    pub body_timeout: Duration,
    pub write_timeout: Duration,
    pub batch_max_rows: usize,
    pub read_max_rows: Option<u64>,
    pub upload: UploadLimits,
    /// MariaDB's `max_allowed_packet`, read at the start.
    pub packet_max_bytes: usize,
    pub sign_in_clients: SignInClients,
}

impl ServiceState {
    pub async fn open(
        config: &Config,
        system: &System,
        library: Library,
        intake: Intake,
        tracer: Option<Tracer>,
        database: Option<watch::Receiver<MariadbHealth>>,
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
        let mut pools = Pools::new(settings, system.hosts.clone(), source);
        if let Some(address) = &config.replica_url {
            pools = pools.with_replicas(Hosts::new(address, HostRole::Reading));
        }
        let pools = Arc::new(pools);
        let schema_cache = SchemaCache::new(Arc::clone(&pools));
        let (store, table) = (library.store().clone(), library.table().clone());
        let terms = UploadTerms {
            max_bytes: config.tus_max_bytes,
            lifetime: config.tus_expiry,
            types: config.media_types.clone(),
        };
        Ok(Self {
            keys: Arc::new(keys),
            schema_cache: Arc::new(schema_cache),
            coalescer: Arc::new(Coalescer::new(Arc::clone(&pools))),
            pools,
            cursors: system.pages.clone(),
            changes: Changes::new(&system.hosts, config.changes),
            webhooks: Webhooks::new(&system.admin, &system.secret, config.webhook_allow.clone()),
            public_url: config.public_url.clone(),
            console: config.console,
            signer: system.signer.clone(),
            metrics: Metrics::new(),
            tracer,
            edge_secret: system.edge_secret.clone(),
            rates: Rates::new(config.rate_limit),
            bounds: Bounds {
                body_max_bytes: config.json_body_max_bytes,
                body_timeout: config.body_read_timeout,
                write_timeout: config.write_timeout,
                batch_max_rows: config.rows_batch_max,
                read_max_rows: config.max_rows,
                upload: UploadLimits { body_bytes: config.upload_max_bytes, items: config.upload_max_items },
                packet_max_bytes: system.admin.packet_max_bytes().await?,
                sign_in_clients: config.project_sign_in,
            },
            bodies: body_memory(config.json_body_max_bytes),
            answers: answer_memory(),
            streams: StreamSlots::new(settings, config.stream_timeout),
            resumable: ResumableUploads::new(store.clone(), table, terms),
            stored: Watch::new(store),
            library,
            intake,
            descriptions: descriptions(),
            management_slots: management_slots(),
            activity: Activity::default(),
            uploads: ProjectQuota::with_callers(UPLOADS_MAX_COUNT, UPLOADS_PER_PROJECT_MAX_COUNT),
            probes: Probes {
                admin: system.admin.apart(),
                answers: Recent::default(),
                prepared_xa: Recent::default(),
                failing_webhooks: Recent::default(),
            },
            admin: system.admin.clone(),
            hosts: system.hosts.clone(),
            projects: system.projects.clone(),
            database,
        })
    }

    /// Returns the databases that the project's keys may not drop. A project's requests for them run one after another.
    pub async fn undroppable(&self, project: &ProjectName) -> Result<Vec<DatabaseName>, Problem> {
        let _slot = self.management_slot(project).await?;
        self.projects.undroppable(project).await.map_err(ProjectError::into_problem)
    }

    pub async fn management_slot(&self, project: &ProjectName) -> Result<QuotaGuard, Problem> {
        let slot = tokio::time::timeout(self.pools.wait_timeout(), self.management_slots.take(project, 1)).await;
        slot.map_err(|_| {
            Problem::new(ErrorCode::Overloaded, "Too many requests manage keys, roles and databases already.")
        })
    }

    pub fn roles(&self) -> Roles {
        Roles::new(self.admin.clone(), self.projects.clone())
    }

    pub fn issuers(&self) -> Issuers {
        Issuers::new(self.admin.clone(), self.projects.clone())
    }

    pub fn start_background(self: &Arc<Self>, tasks: &TaskTracker, stop: &CancellationToken) {
        self.changes.feed.stop_by(stop.clone());
        tasks.spawn(Arc::clone(&self.keys).watch(stop.clone()));
        tasks.spawn(sweep_receipts(Arc::clone(self), stop.clone()));
        tasks.spawn(self.resumable.clone().sweep_always(stop.clone()));
        tasks.spawn(self.library.clone().sweep_always(stop.clone()));
        if self.database.is_some() && self.changes.is_on() {
            tasks.spawn(bound_log(self.probes.admin.clone(), stop.clone()));
        }
        let (app, stop) = (Arc::clone(self), stop.clone());
        tasks.spawn(async move {
            let mut tick = tokio::time::interval(SWEEP_INTERVAL);
            loop {
                tokio::select! {
                    () = stop.cancelled() => break,
                    _ = tick.tick() => {
                        app.pools.close_idle();
                        app.schema_cache.close_idle();
                    }
                }
            }
        });
    }

    /// Returns the figures for `/metrics`. Asks MariaDB for prepared XA transactions and failing webhooks.
    pub async fn readings(&self) -> Readings {
        let prepared_xa = async {
            let found = self.probes.admin.prepared_xa().await;
            found.inspect_err(|error| tracing::debug!(%error, "XA RECOVER failed")).ok()
        };
        let failing = async {
            let found = self.webhooks.admin().failing_webhooks(now().saturating_sub(FAILING_TOLD_AFTER)).await;
            found.inspect_err(|error| tracing::debug!(%error, "webhooks can't be read")).map(|found| found.len()).ok()
        };
        // At once, so that the figures come within one timeout while MariaDB does not answer.
        let (prepared_xa, failing) =
            tokio::join!(self.probes.prepared_xa.get(prepared_xa), self.probes.failing_webhooks.get(failing));
        let (images_waiting, images_running) = self.intake.load();
        let (shared_statements, shared_requests) = self.coalescer.shared();
        let (key_lookups, key_cache_hits) = self.keys.lookups();
        let (spans_sent, spans_dropped) = self.tracer.as_ref().map(Tracer::counts).unwrap_or_default();
        Readings {
            pools: self.pools.gauge(),
            hosts: self.hosts.gauge(),
            replicas: self.pools.replicas_gauge(),
            schema_loads: self.schema_cache.loads(),
            schema_cache_hits: self.schema_cache.hits(),
            key_lookups,
            key_cache_hits,
            shared_statements,
            shared_requests,
            images_waiting,
            images_running,
            tus_uploads: self.resumable.running(),
            spans_sent,
            spans_dropped,
            prepared_xa,
            changes: self.changes.gauge(),
            webhooks: WebhooksGauge { failing, ..self.webhooks.gauge() },
        }
    }

    pub fn hosts(&self) -> HostsGauge {
        self.hosts.gauge()
    }

    /// Returns whether MariaDB can be used; false while this process restarts a private MariaDB (see `embedded`).
    pub async fn is_ready(&self) -> bool {
        let healthy = self.database.as_ref().is_none_or(|health| *health.borrow() == MariadbHealth::Up);
        let answers = async { self.probes.admin.key_changes().await.is_ok() };
        healthy && self.probes.answers.get(answers).await
    }
}

/// Bounds the log of the private MariaDB that this process runs.
async fn bound_log(admin: Admin, stop: CancellationToken) {
    let mut tick = tokio::time::interval(LOG_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {
                if let Err(error) = admin.bound_log(LOG_MAX_BYTES).await {
                    tracing::warn!(%error, "old files of the binary log can't be deleted");
                }
            }
        }
    }
}

/// The maximum number of API descriptions in memory. One takes 15 MB for 1,000 tables.
const DESCRIPTIONS_MAX_COUNT: u64 = 8;
const DESCRIPTIONS_PER_PROJECT_MAX_COUNT: u64 = 4;

pub fn descriptions() -> ProjectQuota {
    ProjectQuota::with_callers(DESCRIPTIONS_MAX_COUNT, DESCRIPTIONS_PER_PROJECT_MAX_COUNT)
}

/// The maximum number of slots: one less than the connections of [`Admin`], so that one is left for looking up keys.
const MANAGERS_MAX_COUNT: u64 = 2;
const MANAGERS_PER_PROJECT_MAX_COUNT: u64 = 1;

pub fn management_slots() -> ProjectQuota {
    ProjectQuota::new(MANAGERS_MAX_COUNT, MANAGERS_PER_PROJECT_MAX_COUNT)
}

/// Returns the limit of the bodies' memory: at least two of the maximum size. A project may use half.
pub fn body_memory(body_max_bytes: usize) -> ProjectQuota {
    let whole = BODIES_MAX_BYTES.max(body_max_bytes.saturating_mul(2)) as u64;
    ProjectQuota::with_callers(whole, whole / 2)
}

pub fn answer_memory() -> ProjectQuota {
    ProjectQuota::with_callers(HELD_ANSWERS_MAX_BYTES, HELD_ANSWERS_PER_PROJECT_MAX_BYTES)
}

/// Deletes expired receipts periodically. Several origins may run this at the same time.
async fn sweep_receipts(app: Arc<ServiceState>, stop: CancellationToken) {
    let mut tick = tokio::time::interval(RECEIPTS_SWEEP_INTERVAL);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        let sweep = async {
            // Each sweep takes a connection of the project.
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
