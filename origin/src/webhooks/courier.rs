//! Delivers the changes of one webhook, one delivery after another, so that the changes of a record arrive in order.

use super::recorder::Recorder;
use super::schedule::next_attempt;
use super::{Asked, ChangePage, ChangeSource, Resync, SourceError, Webhooks, take};
use crate::clock::{now, utc};
use crate::database::admin::{AdminError, DeliveryOutcome, DeliveryRow, DeliveryState, WebhookRow};
use sha2::{Digest as _, Sha256};
use shared::fingerprint::hex;
use shared::operation::webhook::stored_subscriptions;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A longer body is not stored: a further attempt reads its changes again.
const STORED_BODY_MAX_BYTES: usize = 4 * 1024 * 1024;
/// A longer body is not sent: the endpoint must read the records again.
const BODY_MAX_BYTES: usize = 16 * 1024 * 1024;
/// How often the position of a webhook without deliveries is stored. Each time adds to the binary log.
const STORE_POSITION_EVERY: Duration = Duration::from_secs(600);
/// The reason of a `resync` for changes of more than [`BODY_MAX_BYTES`].
const TOO_LONG: &str = "too_slow";
/// After how many deliveries the oldest ones are deleted.
const SWEEP_EVERY: u32 = 50;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

pub(super) struct Courier {
    webhooks: Webhooks,
    source: Arc<dyn ChangeSource>,
    recorder: Recorder,
    webhook: WebhookRow,
    asked: Asked,
    stop: CancellationToken,
    /// The position up to which changes were read. `webhook.token` is the stored one.
    position: String,
    stored_at: Instant,
    /// The delivery that is tried again.
    waiting: Option<DeliveryRow>,
    /// The number of deliveries since the last sweep.
    delivered: u32,
}

/// Why a courier ends.
pub(super) enum Ended {
    Stopped,
    /// Another origin delivers now, or the webhook was removed.
    Replaced,
    /// The endpoint wants no more deliveries.
    Refused,
}

enum Failure {
    Ended(Ended),
    Admin(AdminError),
    Source(shared::error::Problem),
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        Self::Admin(error)
    }
}

impl Courier {
    /// Returns `None` if there is no such webhook, or if its subscriptions can't be parsed.
    pub(super) async fn open(
        webhooks: &Webhooks,
        source: &Arc<dyn ChangeSource>,
        recorder: &Recorder,
        id: Uuid,
        stop: CancellationToken,
    ) -> Result<Option<Self>, AdminError> {
        let Some(webhook) = webhooks.0.admin.webhook_by_id(id).await? else {
            return Ok(None);
        };
        let Ok(subscriptions) = stored_subscriptions(&webhook.subscriptions) else {
            return Err(AdminError::Corrupt("webhook's subscriptions"));
        };
        let waiting = webhooks.0.admin.waiting_delivery(id, &webhook.token).await?;
        Ok(Some(Self {
            webhooks: webhooks.clone(),
            source: Arc::clone(source),
            recorder: recorder.clone(),
            asked: Asked { webhook: id, project: webhook.project.clone(), subscriptions: subscriptions.into() },
            position: webhook.token.clone(),
            stored_at: Instant::now(),
            webhook,
            stop,
            waiting,
            delivered: SWEEP_EVERY,
        }))
    }

    pub(super) async fn run(mut self) -> Ended {
        let mut pause = PAUSE_MIN;
        loop {
            match self.step().await {
                Ok(()) => {
                    pause = PAUSE_MIN;
                    continue;
                }
                Err(Failure::Ended(ended)) => return ended,
                Err(Failure::Admin(error)) => {
                    tracing::warn!(%error, webhook = %self.webhook.id, "a delivery could not be recorded");
                }
                Err(Failure::Source(problem)) => {
                    self.note_fault(Some(problem.message())).await;
                    let (webhook, project) = (self.webhook.id, &self.webhook.project);
                    tracing::warn!(error = problem.message(), %webhook, %project, "changes can't be read for a webhook");
                }
            }
            if self.stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return Ended::Stopped;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn step(&mut self) -> Result<(), Failure> {
        if let Some(mut waiting) = self.waiting.take() {
            let due = Duration::from_secs(waiting.next_attempt_at.unwrap_or_default().saturating_sub(now()));
            let waited = self.stop.run_until_cancelled(tokio::time::sleep(due)).await;
            waited.ok_or(Failure::Ended(Ended::Stopped))?;
            if let Some(body) = waiting.body.clone() {
                let _slot = self.webhooks.slot(&self.webhook).await;
                waiting.read_at = waiting.created_at;
                let attempted = self.attempt(&mut waiting, body).await;
                if attempted.is_err() || waiting.state == DeliveryState::Waiting {
                    self.waiting = Some(waiting);
                }
                return attempted;
            }
            let read = self.read(Some(waiting.clone())).await;
            if matches!(read, Err(Failure::Source(_) | Failure::Admin(_))) {
                self.waiting.get_or_insert(waiting);
            }
            return read;
        }
        self.read(None).await
    }

    /// Reads the changes after the position, and delivers them. `before` is a failed delivery of these changes, whose body
    /// was not stored.
    async fn read(&mut self, before: Option<DeliveryRow>) -> Result<(), Failure> {
        let read_at = now();
        let slots = self.webhooks.0.in_flight.clone();
        let reading = self.source.changes(self.asked.clone(), self.position.clone(), slots);
        let page = self.stop.run_until_cancelled(reading).await.ok_or(Failure::Ended(Ended::Stopped))?;
        if self.webhook.fault.is_some() && !matches!(page, Err(SourceError::Problem(_))) {
            self.note_fault(None).await;
        }
        let (body, count, next, _slot) = match page {
            Ok(ChangePage { changes, next, .. }) if changes.is_empty() => return self.skip_to(next, read_at).await,
            Ok(ChangePage { changes, next, slot }) if changes.iter().map(Vec::len).sum::<usize>() > BODY_MAX_BYTES => {
                (self.resync(TOO_LONG), 0, next, slot)
            }
            Ok(ChangePage { changes, next, slot }) => (body(&changes), changes.len(), next, slot),
            Err(SourceError::Problem(problem)) => return Err(Failure::Source(problem)),
            Err(SourceError::Resync(reason)) => {
                let next = self.source.position(self.asked.clone()).await;
                let next = next.map_err(|error| match error {
                    SourceError::Problem(problem) => Failure::Source(problem),
                    SourceError::Resync(reason) => Failure::Source(shared::error::Problem::internal(reason, reason)),
                })?;
                (self.resync(reason), 0, next, Some(self.webhooks.slot(&self.webhook).await))
            }
        };
        let mut delivery = before.unwrap_or_else(|| DeliveryRow {
            id: 0,
            message: String::new(),
            state: DeliveryState::Waiting,
            changes: 0,
            body: None,
            attempts: 0,
            status: None,
            response: String::new(),
            millis: 0,
            created_at: now(),
            attempted_at: 0,
            next_attempt_at: None,
            since: String::new(),
            next: String::new(),
            read_at,
        });
        delivery.message = message(self.webhook.id, &body);
        delivery.since.clone_from(&self.webhook.token);
        delivery.read_at = read_at;
        delivery.changes = u32::try_from(count).unwrap_or(u32::MAX);
        delivery.body = (body.len() <= STORED_BODY_MAX_BYTES).then(|| body.clone());
        delivery.next = next;
        let attempted = self.attempt(&mut delivery, body).await;
        if delivery.state == DeliveryState::Waiting && delivery.id != 0 {
            self.waiting = Some(delivery);
        }
        attempted
    }

    /// Goes on after changes of which none is wanted.
    async fn skip_to(&mut self, next: String, read_at: u64) -> Result<(), Failure> {
        self.position = next;
        if self.position == self.webhook.token || self.stored_at.elapsed() < STORE_POSITION_EVERY {
            return Ok(());
        }
        let tokens = (&*self.webhook.token, &*self.position);
        if !self.webhooks.0.admin.advance_webhook(self.webhook.id, tokens, read_at).await? {
            return Err(Failure::Ended(Ended::Replaced));
        }
        self.webhook.token.clone_from(&self.position);
        self.webhook.token_at = read_at;
        self.stored_at = Instant::now();
        Ok(())
    }

    /// Returns the body that tells that changes are missing.
    fn resync(&self, reason: &str) -> String {
        let resync = Resync { reason, since: utc(self.webhook.token_at) };
        format!(r#"{{"changes":[],"resync":{}}}"#, serde_json::to_string(&resync).unwrap_or_default())
    }

    /// Stores why changes can't be read, or that they can. An error is ignored: the next turn stores it again.
    async fn note_fault(&mut self, fault: Option<&str>) {
        if self.webhook.fault.as_deref() == fault {
            return;
        }
        let noted = self.webhooks.0.admin.note_fault(self.webhook.id, fault, now()).await;
        self.webhook.fault = fault.map(str::to_owned).filter(|_| noted.is_ok());
    }

    /// Makes one attempt, and records what came of it.
    async fn attempt(&mut self, delivery: &mut DeliveryRow, body: String) -> Result<(), Failure> {
        // So that a change of the definition, a pause, or the loss of a database has effect for every delivery after it.
        let databases = self.asked.subscriptions.iter().map(|of| &of.subscription.read.table.database).collect();
        let standing = (self.webhook.id, self.webhook.version);
        match self.webhooks.0.admin.webhook_standing(standing, &self.webhook.project, &databases).await? {
            Some((true, true)) => {}
            // The slower check says what is wrong.
            Some((true, false)) => self.source.check(self.asked.clone()).await.map_err(Failure::Source)?,
            Some((false, _)) | None => return Err(Failure::Ended(Ended::Replaced)),
        }
        let attempt = self.webhooks.send(&self.webhook, &delivery.message, body).await;
        take(delivery, &attempt);
        let times = (delivery.created_at, delivery.attempted_at);
        let next = next_attempt(delivery.attempts, times, attempt.retry_after, chance());
        (delivery.state, delivery.next_attempt_at) = match next {
            _ if attempt.has_succeeded() => (DeliveryState::Delivered, None),
            Some(time) => (DeliveryState::Waiting, Some(time)),
            None => (DeliveryState::Failed, None),
        };
        self.webhooks.count(delivery.state);
        let admin = &self.webhooks.0.admin;
        let (webhook, token) = (self.webhook.id, self.webhook.token.clone());
        let outcome = DeliveryOutcome { webhook, token, delivery: delivery.clone() };
        delivery.id = self.recorder.record(outcome).await?.ok_or(Failure::Ended(Ended::Replaced))?;
        if attempt.is_refused_for_ever() {
            admin.pause_webhook(self.webhook.id, "The endpoint has answered 410: it wants no more deliveries.").await?;
            return Err(Failure::Ended(Ended::Refused));
        }
        if delivery.state != DeliveryState::Waiting {
            self.position.clone_from(&delivery.next);
            self.webhook.token.clone_from(&delivery.next);
            self.webhook.token_at = delivery.read_at;
            self.stored_at = Instant::now();
            self.delivered += 1;
        }
        if self.delivered >= SWEEP_EVERY {
            admin.sweep_deliveries(self.webhook.id).await?;
            self.delivered = 0;
        }
        Ok(())
    }
}

fn body(changes: &[Vec<u8>]) -> String {
    let mut body = br#"{"changes":["#.to_vec();
    for (at, change) in changes.iter().enumerate() {
        body.extend_from_slice(if at == 0 { b"" } else { b"," });
        body.extend_from_slice(change);
    }
    body.extend_from_slice(b"]}");
    String::from_utf8_lossy(&body).into_owned()
}

/// The same for every attempt to deliver the same changes, also by another origin.
fn message(webhook: Uuid, body: &str) -> String {
    let digest = Sha256::digest(format!("{webhook} {body}"));
    format!("msg_{}", hex(&digest[..16]))
}

/// A random number from 0 to 1.
fn chance() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
