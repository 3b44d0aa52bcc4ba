//! Webhooks: sends the changes of tables to endpoints of projects. The log of changes is the queue: a webhook has a
//! position in it, which moves on after each delivery. Knows neither HTTP requests of callers nor how changes are read.
//!
//! ```text
//! dispatch: the lease in MariaDB → a courier for each webhook that is not paused
//! Courier: the changes after the position → one delivery at a time → Recorder: its outcome, the position after it
//! Sender: one attempt, to allowed addresses only
//! ```

mod courier;
mod dispatch;
mod recorder;
mod schedule;
mod sender;
mod signature;

use crate::clock::now;
use crate::database::admin::{Admin, AdminError, DeliveryRow, DeliveryState, WEBHOOK_CONNECTIONS, WebhookRow};
use crate::networks::Networks;
use crate::project_quota::{ProjectQuota, QuotaGuard};
use crate::secret::InstallationSecret;
use futures_util::future::BoxFuture;
use ipnet::IpNet;
use sender::Sender;
pub use sender::{Attempt, UrlFault};
use serde::Serialize;
use shared::error::Problem;
use shared::ident::ProjectName;
use shared::operation::webhook::WebhookSubscription;
use signature::{OVERLAP_SECONDS, Secrets};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;
use uuid::Uuid;

/// Maximum number of deliveries that are under way. A project may have half of them.
const IN_FLIGHT_MAX_COUNT: u64 = 32;
const IN_FLIGHT_PER_PROJECT_MAX_COUNT: u64 = IN_FLIGHT_MAX_COUNT / 2;
/// The number of an endpoint's failing seconds after which the operator is told.
pub const FAILING_TOLD_AFTER: u64 = 24 * 60 * 60;

/// The webhooks of an installation. Clones share their state.
#[derive(Clone, Debug)]
pub struct Webhooks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    admin: Admin,
    secrets: Secrets,
    sender: Sender,
    in_flight: ProjectQuota,
    /// The attempts, by the state in [`DeliveryState::ALL`].
    attempted: [AtomicU64; DeliveryState::ALL.len()],
    changed: Notify,
}

/// Reads changes as a caller with full access to the project.
pub trait ChangeSource: Send + Sync {
    /// Returns the changes after the position `since`. If there are none, waits for some time. Takes one of `slots` before
    /// it reads changes, so that few are in memory at the same time.
    fn changes(
        &self,
        asked: Asked,
        since: String,
        slots: ProjectQuota,
    ) -> BoxFuture<'static, Result<ChangePage, SourceError>>;
    /// Fails if the project may not read the databases of the subscriptions now.
    fn check(&self, asked: Asked) -> BoxFuture<'static, Result<(), Problem>>;
    /// Returns the present position. Fails if the subscriptions can't be followed.
    fn position(&self, asked: Asked) -> BoxFuture<'static, Result<String, SourceError>>;
}

/// A webhook, and the subscriptions whose changes are read for it.
#[derive(Clone, Debug)]
pub struct Asked {
    pub webhook: Uuid,
    pub project: ProjectName,
    pub subscriptions: Arc<[WebhookSubscription]>,
}

#[derive(Debug)]
pub struct ChangePage {
    /// The changes of wanted types, as JSON.
    pub changes: Vec<Vec<u8>>,
    pub next: String,
    /// Missing if there are no changes.
    pub slot: Option<QuotaGuard>,
}

#[derive(Debug)]
pub enum SourceError {
    /// Changes may be missing after the position, for this reason.
    Resync(&'static str),
    Problem(Problem),
}

#[derive(Clone, Debug, Default)]
pub struct WebhooksGauge {
    /// The attempts of this origin by what they have made of their delivery.
    pub attempted: Vec<(DeliveryState, u64)>,
    pub under_way: u64,
    /// The webhooks of the installation whose endpoints have failed for [`FAILING_TOLD_AFTER`]; `None` if unknown.
    pub failing: Option<usize>,
}

#[derive(Serialize)]
struct Resync<'a> {
    reason: &'a str,
    /// Changes since then may be missing.
    since: String,
}

/// The limit of deliveries that are under way.
pub fn in_flight() -> ProjectQuota {
    ProjectQuota::with_callers(IN_FLIGHT_MAX_COUNT, IN_FLIGHT_PER_PROJECT_MAX_COUNT)
}

impl Webhooks {
    pub fn new(admin: &Admin, secret: &Arc<InstallationSecret>, allowed: Vec<IpNet>) -> Self {
        Self(Arc::new(Inner {
            admin: admin.with_connections(WEBHOOK_CONNECTIONS),
            secrets: Secrets(Arc::clone(secret)),
            sender: Sender::new(Networks::new(allowed)),
            in_flight: in_flight(),
            attempted: Default::default(),
            changed: Notify::new(),
        }))
    }

    pub fn admin(&self) -> &Admin {
        &self.0.admin
    }

    pub fn check_url(&self, url: &str) -> Result<(), UrlFault> {
        self.0.sender.parse(url).map(drop)
    }

    /// Returns the secret by which the webhook's receiver verifies deliveries.
    pub fn secret(&self, webhook: &WebhookRow) -> String {
        self.0.secrets.text(webhook.id, webhook.secret_number)
    }

    /// Makes this origin read the definitions again, if it delivers. Other origins notice a change within seconds.
    pub fn changed(&self) {
        self.0.changed.notify_one();
    }

    /// Returns the figures of this origin, without those of all origins, which are in MariaDB.
    pub fn gauge(&self) -> WebhooksGauge {
        let counts = self.0.attempted.iter().map(|count| count.load(Ordering::Relaxed));
        WebhooksGauge {
            attempted: DeliveryState::ALL.into_iter().zip(counts).collect(),
            under_way: self.0.in_flight.taken(),
            failing: None,
        }
    }

    pub async fn send_test(&self, webhook: &WebhookRow) -> Attempt {
        let _slot = self.slot(webhook).await;
        let message = format!("msg_{}", Uuid::now_v7().simple());
        let attempt = self.send(webhook, &message, r#"{"changes":[],"test":true}"#.to_owned()).await;
        self.count(outcome(&attempt));
        attempt
    }

    /// Sends a stored delivery once more, and stores what came of it. If the delivery waits for another attempt, its
    /// courier makes that attempt at once.
    pub async fn send_again(&self, webhook: &WebhookRow, mut delivery: DeliveryRow) -> Result<DeliveryRow, AdminError> {
        if delivery.state == DeliveryState::Waiting {
            let time = now();
            self.0.admin.retry_delivery(webhook.id, delivery.id, time).await?;
            self.changed();
            return Ok(DeliveryRow { next_attempt_at: Some(time), ..delivery });
        }
        let Some(body) = delivery.body.clone() else {
            return Ok(delivery);
        };
        let _slot = self.slot(webhook).await;
        let attempt = self.send(webhook, &delivery.message, body).await;
        self.count(outcome(&attempt));
        if attempt.has_succeeded() {
            delivery.state = DeliveryState::Delivered;
        }
        take(&mut delivery, &attempt);
        self.0.admin.update_delivery(webhook.id, &delivery).await?;
        Ok(delivery)
    }

    fn count(&self, state: DeliveryState) {
        if let Some(at) = DeliveryState::ALL.iter().position(|of| *of == state) {
            self.0.attempted[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn slot(&self, webhook: &WebhookRow) -> QuotaGuard {
        self.0.in_flight.take_as(&webhook.project, webhook.id, 1).await
    }

    /// Makes one attempt. The caller must have a slot.
    async fn send(&self, webhook: &WebhookRow, message: &str, body: String) -> Attempt {
        let time = now();
        let is_overlap = webhook.secret_renewed_at.is_some_and(|at| time.saturating_sub(at) < OVERLAP_SECONDS);
        let number = webhook.secret_number;
        let numbers = [Some(number), number.checked_sub(1).filter(|_| is_overlap)].into_iter().flatten();
        let headers = [
            ("webhook-id", message.to_owned()),
            ("webhook-timestamp", time.to_string()),
            ("webhook-signature", self.0.secrets.sign(webhook.id, numbers, (message, time), &body)),
        ];
        self.0.sender.send(&webhook.url, headers, body).await
    }
}

/// The outcome of an attempt after which no other one follows.
fn outcome(attempt: &Attempt) -> DeliveryState {
    if attempt.has_succeeded() { DeliveryState::Delivered } else { DeliveryState::Failed }
}

/// Takes the outcome of an attempt into the delivery, but for its state.
fn take(delivery: &mut DeliveryRow, attempt: &Attempt) {
    delivery.attempts += 1;
    delivery.status = attempt.status;
    delivery.response.clone_from(&attempt.response);
    delivery.millis = attempt.millis;
    delivery.attempted_at = now();
}
