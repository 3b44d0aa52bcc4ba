//! Rows of `selkie.webhooks`, of their deliveries, and the lease of the origin that delivers. Times are seconds since
//! 1970, but for the lease, for which only MariaDB's clock counts.

use super::projects::project;
use super::{Admin, AdminError};
use crate::database::typed_rows;
use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{FromRowError, Params, Row};
use shared::ident::{DatabaseName, ProjectName, WebhookName};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Delivered deliveries of a webhook that stay listed.
const DELIVERED_MAX_COUNT: u64 = 100;

/// What came of an attempt to deliver.
#[derive(Debug)]
pub struct DeliveryOutcome {
    pub webhook: Uuid,
    /// The webhook's position before the attempt.
    pub token: String,
    pub delivery: DeliveryRow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRow {
    pub id: Uuid,
    pub project: ProjectName,
    pub name: WebhookName,
    pub url: String,
    pub subscriptions: String,
    pub is_paused: bool,
    /// Why the webhook was paused, unless by its project.
    pub pause_reason: Option<String>,
    /// Grows with each change of the definition.
    pub version: u64,
    pub secret_number: u32,
    pub secret_renewed_at: Option<u64>,
    /// The position up to which changes were delivered, or were not wanted.
    pub token: String,
    /// When the token was stored.
    pub token_at: u64,
    pub failing_since: Option<u64>,
    /// Why changes can't be read.
    pub fault: Option<String>,
    pub delivered_at: Option<u64>,
    pub created_at: u64,
    pub updated_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    Delivered,
    /// The last attempt has failed; there will be another one.
    Waiting,
    /// All attempts have failed.
    Failed,
}

impl DeliveryState {
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Waiting, Self::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

/// A delivery after its last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// 0 before the row is stored.
    pub id: u64,
    pub message: String,
    pub state: DeliveryState,
    pub changes: u32,
    /// `None` if it is too long to be stored.
    pub body: Option<String>,
    pub attempts: u32,
    pub status: Option<u16>,
    /// The beginning of the endpoint's answer, or why there was none.
    pub response: String,
    pub millis: u32,
    pub created_at: u64,
    pub attempted_at: u64,
    pub next_attempt_at: Option<u64>,
    /// The position before the delivery, and the one after it.
    pub since: String,
    pub next: String,
    /// When the changes were read: changes after that time may be missing if the log is then deleted.
    pub read_at: u64,
}

const WEBHOOK: &str = "SELECT id, project, name, url, subscriptions, paused, pause_reason, version, secret_number, \
     secret_renewed_at, token, token_at, failing_since, fault, delivered_at, created_at, updated_at \
     FROM selkie.webhooks JOIN selkie.webhook_positions ON webhook = id";
const DELIVERY: &str = "SELECT id, message, state, changes, body, attempts, status, response, millis, created_at, \
     attempted_at, next_attempt_at, since, next FROM selkie.webhook_deliveries \
     LEFT JOIN selkie.webhook_bodies ON delivery = id";
/// Without the body.
const LISTED_DELIVERY: &str = "SELECT id, message, state, changes, NULL, attempts, status, response, millis, created_at, \
     attempted_at, next_attempt_at, since, next FROM selkie.webhook_deliveries";
/// Maximum bytes of the body of a delivery that was delivered.
const DELIVERED_BODY_MAX_BYTES: usize = 32 * 1024;

impl FromRow for WebhookRow {
    fn from_row_opt(row: Row) -> Result<Self, FromRowError> {
        let mut row = row;
        let read = |row: &mut Row| {
            Some(Self {
                id: Uuid::try_parse(&text(row, 0)?).ok()?,
                project: project(&text(row, 1)?).ok()?,
                name: WebhookName::parse(&text(row, 2)?).ok()?,
                url: text(row, 3)?,
                subscriptions: text(row, 4)?,
                is_paused: row.take_opt::<bool, _>(5)?.ok()?,
                pause_reason: row.take_opt(6)?.ok()?,
                version: row.take_opt(7)?.ok()?,
                secret_number: row.take_opt(8)?.ok()?,
                secret_renewed_at: row.take_opt(9)?.ok()?,
                token: text(row, 10)?,
                token_at: row.take_opt(11)?.ok()?,
                failing_since: row.take_opt(12)?.ok()?,
                fault: row.take_opt(13)?.ok()?,
                delivered_at: row.take_opt(14)?.ok()?,
                created_at: row.take_opt(15)?.ok()?,
                updated_at: row.take_opt(16)?.ok()?,
            })
        };
        read(&mut row).ok_or(FromRowError(row))
    }
}

impl FromRow for DeliveryRow {
    fn from_row_opt(row: Row) -> Result<Self, FromRowError> {
        let mut row = row;
        let read = |row: &mut Row| {
            let state = text(row, 2)?;
            Some(Self {
                id: row.take_opt(0)?.ok()?,
                message: text(row, 1)?,
                state: DeliveryState::ALL.into_iter().find(|of| of.as_str() == state)?,
                changes: row.take_opt(3)?.ok()?,
                body: row.take_opt(4)?.ok()?,
                attempts: row.take_opt(5)?.ok()?,
                status: row.take_opt(6)?.ok()?,
                response: text(row, 7)?,
                millis: row.take_opt(8)?.ok()?,
                created_at: row.take_opt(9)?.ok()?,
                attempted_at: row.take_opt(10)?.ok()?,
                next_attempt_at: row.take_opt(11)?.ok()?,
                since: text(row, 12)?,
                next: text(row, 13)?,
                read_at: 0,
            })
        };
        read(&mut row).ok_or(FromRowError(row))
    }
}

fn text(row: &mut Row, at: usize) -> Option<String> {
    row.take_opt(at)?.ok()
}

impl Admin {
    /// Returns the numbers of webhooks of project `of` and of all projects.
    pub async fn webhook_counts(&self, of: &ProjectName) -> Result<(usize, usize), AdminError> {
        let mut conn = self.conn().await?;
        let count = "SELECT COALESCE(SUM(project = ?), 0), COUNT(*) FROM selkie.webhooks";
        let found = self.within(typed_rows::first(conn.exec_iter(count, (of.as_str(),)))).await?;
        Ok(found.unwrap_or_default())
    }

    /// Stores a webhook. Returns false if the project has one of this name.
    pub async fn insert_webhook(&self, row: &WebhookRow) -> Result<bool, AdminError> {
        let insert = "INSERT IGNORE INTO selkie.webhooks (id, project, name, url, subscriptions, paused, version, \
             secret_number, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        let params: Params = (
            row.id.to_string(),
            row.project.as_str(),
            row.name.as_str(),
            &row.url,
            &row.subscriptions,
            row.is_paused,
            row.version,
            row.secret_number,
            row.created_at,
            row.updated_at,
        )
            .into();
        let position = "INSERT INTO selkie.webhook_positions (webhook, token, token_at) VALUES (?, ?, ?)";
        let mut conn = self.conn().await?;
        let inserting = async {
            let mut changes = conn.start_transaction(mysql_async::TxOpts::default()).await?;
            changes.exec_drop(insert, params).await?;
            let is_new = changes.affected_rows() == 1;
            if is_new {
                changes.exec_drop(position, (row.id.to_string(), &row.token, row.token_at)).await?;
            }
            changes.commit().await?;
            Ok(is_new)
        };
        self.within(inserting).await
    }

    /// Changes a webhook's definition, if its version is still that of `row`. Its changes go on from where they are.
    pub async fn update_webhook(&self, row: &WebhookRow) -> Result<bool, AdminError> {
        let update = "UPDATE selkie.webhooks SET url = ?, subscriptions = ?, paused = ?, pause_reason = ?, \
             updated_at = ?, version = version + 1 WHERE id = ? AND version = ?";
        let params: Params = (
            &row.url,
            &row.subscriptions,
            row.is_paused,
            &row.pause_reason,
            row.updated_at,
            row.id.to_string(),
            row.version,
        )
            .into();
        Ok(self.affected(update, params).await? == 1)
    }

    /// Gives the webhook a new secret. Returns its number; `None` if there is no such webhook.
    pub async fn renew_webhook_secret(&self, id: Uuid, now: u64) -> Result<Option<u32>, AdminError> {
        let renew = "UPDATE selkie.webhooks SET secret_number = LAST_INSERT_ID(secret_number + 1), \
             secret_renewed_at = ?, updated_at = ?, version = version + 1 WHERE id = ?";
        let mut conn = self.conn().await?;
        let renewing = async {
            conn.exec_drop(renew, (now, now, id.to_string())).await?;
            Ok((conn.affected_rows() == 1).then(|| conn.last_insert_id()).flatten())
        };
        Ok(self.within(renewing).await?.and_then(|number| u32::try_from(number).ok()))
    }

    pub async fn remove_webhook(&self, of: &ProjectName, name: &WebhookName) -> Result<bool, AdminError> {
        let remove = "DELETE FROM selkie.webhooks WHERE project = ? AND name = ?";
        Ok(self.affected(remove, (of.as_str(), name.as_str()).into()).await? == 1)
    }

    /// Pauses all webhooks.
    pub async fn pause_webhooks(&self, reason: &str) -> Result<(), AdminError> {
        let pause =
            "UPDATE selkie.webhooks SET paused = TRUE, pause_reason = ?, version = version + 1 WHERE NOT paused";
        self.affected(pause, (reason,).into()).await.map(drop)
    }

    pub async fn webhook(&self, of: &ProjectName, name: &WebhookName) -> Result<Option<WebhookRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!("{WEBHOOK} WHERE project = ? AND name = ?");
        self.within(typed_rows::first(conn.exec_iter(query, (of.as_str(), name.as_str())))).await
    }

    /// Returns at most `limit` webhooks of project `of`, sorted by name, from the one that follows the webhook `after`.
    pub async fn webhooks(
        &self,
        of: &ProjectName,
        after: Option<&WebhookName>,
        limit: u64,
    ) -> Result<Vec<WebhookRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!("{WEBHOOK} WHERE project = ? AND name > ? ORDER BY name LIMIT ?");
        let after = after.map(WebhookName::as_str).unwrap_or_default();
        self.within(typed_rows::all(conn.exec_iter(query, (of.as_str(), after, limit)))).await
    }

    /// Returns the ids and versions of the webhooks of all projects that are not paused.
    pub async fn running_webhooks(&self) -> Result<Vec<(String, u64)>, AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT id, version FROM selkie.webhooks WHERE NOT paused";
        self.within(typed_rows::all(conn.query_iter(query))).await
    }

    /// Returns projects and names of the webhooks, of those that are not paused, whose endpoints have failed since before
    /// `time`.
    pub async fn failing_webhooks(&self, time: u64) -> Result<Vec<(String, String)>, AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT project, name FROM selkie.webhooks JOIN selkie.webhook_positions ON webhook = id \
             WHERE failing_since <= ? AND NOT paused ORDER BY project, name";
        self.within(typed_rows::all(conn.exec_iter(query, (time,)))).await
    }

    /// Whether the webhook still has this version and is not paused, and whether the project still has the databases. `None`
    /// if there is no such webhook.
    pub async fn webhook_standing(
        &self,
        (id, version): (Uuid, u64),
        project: &ProjectName,
        databases: &BTreeSet<&DatabaseName>,
    ) -> Result<Option<(bool, bool)>, AdminError> {
        // A project loses only databases that it was given, not those that are named after it.
        let own = format!("{project}_");
        let given: Vec<&str> =
            databases.iter().map(|name| name.as_str()).filter(|name| !name.starts_with(&own)).collect();
        let mut conn = self.conn().await?;
        let query = format!(
            "SELECT version = ? AND NOT paused, \
             (SELECT COUNT(*) FROM selkie.`databases` WHERE project = ? AND name IN (NULL{})) = ? \
             FROM selkie.webhooks WHERE id = ?",
            ", ?".repeat(given.len())
        );
        let mut params: Vec<mysql_async::Value> = vec![version.into(), project.as_str().into()];
        params.extend(given.iter().map(|name| (*name).into()));
        params.extend([given.len().into(), id.to_string().into()]);
        self.within(typed_rows::first(conn.exec_iter(query, params))).await
    }

    pub async fn webhook_by_id(&self, id: Uuid) -> Result<Option<WebhookRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!("{WEBHOOK} WHERE id = ?");
        self.within(typed_rows::first(conn.exec_iter(query, (id.to_string(),)))).await
    }

    /// Returns at most `limit` deliveries of the webhook with numbers below `before`, the newest first, without bodies.
    pub async fn deliveries(&self, of: Uuid, before: Option<u64>, limit: u64) -> Result<Vec<DeliveryRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!("{LISTED_DELIVERY} WHERE webhook = ? AND id < ? ORDER BY id DESC LIMIT ?");
        let params = (of.to_string(), before.unwrap_or(u64::MAX), limit);
        self.within(typed_rows::all(conn.exec_iter(query, params))).await
    }

    pub async fn delivery(&self, of: Uuid, id: u64) -> Result<Option<DeliveryRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!("{DELIVERY} WHERE webhook = ? AND id = ?");
        self.within(typed_rows::first(conn.exec_iter(query, (of.to_string(), id)))).await
    }

    /// Returns the delivery that the webhook tries again from its position `token`, before it goes on. Deletes others: they
    /// are of couriers that were replaced, and what they had was delivered since.
    pub async fn waiting_delivery(&self, of: Uuid, token: &str) -> Result<Option<DeliveryRow>, AdminError> {
        let delete = "DELETE FROM selkie.webhook_deliveries WHERE webhook = ? AND state = 'waiting' AND since <> ?";
        self.affected(delete, (of.to_string(), token).into()).await?;
        let mut conn = self.conn().await?;
        let query = format!("{DELIVERY} WHERE webhook = ? AND state = 'waiting' ORDER BY id LIMIT 1");
        self.within(typed_rows::first(conn.exec_iter(query, (of.to_string(),)))).await
    }

    /// Moves the webhook's position from `token` to `next`. Returns false if the position is another one, because another
    /// origin has delivered.
    pub async fn advance_webhook(&self, of: Uuid, (token, next): (&str, &str), now: u64) -> Result<bool, AdminError> {
        let advance = "UPDATE selkie.webhook_positions SET token = ?, token_at = ? WHERE webhook = ? AND token = ?";
        Ok(self.affected(advance, (next, now, of.to_string(), token).into()).await? == 1)
    }

    /// Notes why the webhook's changes can't be read, or that they can.
    pub async fn note_fault(&self, of: Uuid, fault: Option<&str>, now: u64) -> Result<(), AdminError> {
        let note = "UPDATE selkie.webhook_positions SET fault = LEFT(?, 300), \
             failing_since = IF(? IS NULL, NULL, COALESCE(failing_since, ?)) WHERE webhook = ?";
        self.affected(note, (fault, fault, now, of.to_string()).into()).await.map(drop)
    }

    pub async fn pause_webhook(&self, of: Uuid, reason: &str) -> Result<(), AdminError> {
        let pause = "UPDATE selkie.webhooks SET paused = TRUE, pause_reason = ?, version = version + 1 WHERE id = ?";
        self.affected(pause, (reason, of.to_string()).into()).await.map(drop)
    }

    /// Stores the outcomes of attempts and, of deliveries that are over, the webhook's new position. Returns the numbers of
    /// the deliveries; `None` for a webhook whose position is another one, because another origin has delivered.
    pub async fn record_deliveries(&self, outcomes: &[DeliveryOutcome]) -> Result<Vec<Option<u64>>, AdminError> {
        let mut conn = self.conn().await?;
        let recording = async {
            let mut changes = conn.start_transaction(mysql_async::TxOpts::default()).await?;
            let mut ids = Vec::with_capacity(outcomes.len());
            for outcome in outcomes {
                ids.push(record_delivery(&mut changes, outcome).await?);
            }
            changes.commit().await?;
            Ok(ids)
        };
        self.within(recording).await
    }

    /// Makes the next attempt of a waiting delivery due at `time`.
    pub async fn retry_delivery(&self, of: Uuid, delivery: u64, time: u64) -> Result<(), AdminError> {
        let retry = "UPDATE selkie.webhooks w JOIN selkie.webhook_deliveries d ON d.webhook = w.id \
             SET d.next_attempt_at = ?, w.version = w.version + 1 WHERE w.id = ? AND d.id = ? AND d.state = 'waiting'";
        self.affected(retry, (time, of.to_string(), delivery).into()).await.map(drop)
    }

    /// Deletes the oldest deliveries that were delivered.
    pub async fn sweep_deliveries(&self, of: Uuid) -> Result<(), AdminError> {
        let sweep = "DELETE FROM selkie.webhook_deliveries WHERE webhook = ? AND state = 'delivered' AND id <= \
             (SELECT id FROM (SELECT id FROM selkie.webhook_deliveries WHERE webhook = ? AND state = 'delivered' \
             ORDER BY id DESC LIMIT 1 OFFSET ?) AS oldest)";
        self.affected(sweep, (of.to_string(), of.to_string(), DELIVERED_MAX_COUNT).into()).await.map(drop)
    }

    /// Stores the outcome of sending a delivery once more.
    pub async fn update_delivery(&self, of: Uuid, delivery: &DeliveryRow) -> Result<(), AdminError> {
        let update = "UPDATE selkie.webhook_deliveries SET state = ?, attempts = ?, status = ?, response = ?, millis = ?, \
             attempted_at = ? WHERE webhook = ? AND id = ?";
        let params: Params = (
            delivery.state.as_str(),
            delivery.attempts,
            delivery.status,
            &delivery.response,
            delivery.millis,
            delivery.attempted_at,
            of.to_string(),
            delivery.id,
        )
            .into();
        self.affected(update, params).await.map(drop)
    }

    /// Takes or prolongs the lease for `seconds`. Returns false if another origin has it.
    pub async fn hold_webhook_lease(&self, holder: Uuid, seconds: u64) -> Result<bool, AdminError> {
        let hold = "UPDATE selkie.webhook_lease SET holder = ?, until = NOW(6) + INTERVAL ? SECOND \
             WHERE holder = ? OR until < NOW(6)";
        let holder = holder.to_string();
        Ok(self.affected(hold, (&holder, seconds, &holder).into()).await? == 1)
    }

    pub async fn release_webhook_lease(&self, holder: Uuid) -> Result<(), AdminError> {
        let release = "UPDATE selkie.webhook_lease SET until = NOW(6) WHERE holder = ?";
        self.affected(release, (holder.to_string(),).into()).await.map(drop)
    }

    async fn affected(&self, statement: &str, params: Params) -> Result<u64, AdminError> {
        let mut conn = self.conn().await?;
        let changed = async {
            conn.exec_drop(statement, params).await?;
            Ok(conn.affected_rows())
        };
        self.within(changed).await
    }
}

async fn record_delivery(
    changes: &mut mysql_async::Transaction<'_>,
    DeliveryOutcome { webhook, token, delivery }: &DeliveryOutcome,
) -> Result<Option<u64>, mysql_async::Error> {
    let is_over = delivery.state != DeliveryState::Waiting;
    let next = if is_over { &delivery.next } else { token };
    let (delivered_at, failing_since) = match delivery.state {
        DeliveryState::Delivered => (Some(delivery.attempted_at), None),
        DeliveryState::Waiting | DeliveryState::Failed => (None, Some(delivery.created_at)),
    };
    let advance = "UPDATE selkie.webhook_positions SET token_at = IF(token = ?, token_at, ?), token = ?, \
         delivered_at = COALESCE(?, delivered_at), failing_since = IF(? IS NULL, NULL, COALESCE(failing_since, ?)), \
         attempts = attempts + 1 WHERE webhook = ? AND token = ?";
    let times = (delivered_at, failing_since, failing_since);
    let params = (next, delivery.read_at, next, times.0, times.1, times.2, webhook.to_string(), token);
    changes.exec_drop(advance, params).await?;
    if changes.affected_rows() == 0 {
        return Ok(None);
    }
    let keep = "INSERT INTO selkie.webhook_deliveries (id, webhook, message, state, changes, attempts, status, response, \
         millis, created_at, attempted_at, next_attempt_at, since, next) \
         VALUES (NULLIF(?, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE \
         message = VALUE(message), state = VALUE(state), changes = VALUE(changes), attempts = VALUE(attempts), \
         status = VALUE(status), response = VALUE(response), millis = VALUE(millis), \
         attempted_at = VALUE(attempted_at), next_attempt_at = VALUE(next_attempt_at), next = VALUE(next)";
    changes.exec_drop(keep, delivery_params(*webhook, delivery)).await?;
    let id = changes.last_insert_id().filter(|_| delivery.id == 0).unwrap_or(delivery.id);
    match &delivery.body {
        Some(body) if delivery.state == DeliveryState::Delivered && body.len() > DELIVERED_BODY_MAX_BYTES => {
            changes.exec_drop("DELETE FROM selkie.webhook_bodies WHERE delivery = ?", (id,)).await?;
        }
        Some(body) if delivery.id == 0 => {
            let keep = "INSERT INTO selkie.webhook_bodies (delivery, body) VALUES (?, ?)";
            changes.exec_drop(keep, (id, body)).await?;
        }
        _ => {}
    }
    Ok(Some(id))
}

fn delivery_params(of: Uuid, delivery: &DeliveryRow) -> Params {
    Params::Positional(vec![
        delivery.id.into(),
        of.to_string().into(),
        (&delivery.message).into(),
        delivery.state.as_str().into(),
        delivery.changes.into(),
        delivery.attempts.into(),
        delivery.status.into(),
        (&delivery.response).into(),
        delivery.millis.into(),
        delivery.created_at.into(),
        delivery.attempted_at.into(),
        delivery.next_attempt_at.into(),
        (&delivery.since).into(),
        (&delivery.next).into(),
    ])
}
