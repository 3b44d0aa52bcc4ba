//! Handles `/api/v1/webhooks`, by which a caller with full access manages the webhooks of its project.

use super::changes::FeedOfWebhooks;
use super::management::{ManagementAnswer, sentence};
use super::media::payload::text;
use crate::clock::{now, utc};
use crate::database::admin::{AdminError, DeliveryRow, WebhookRow};
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use crate::webhooks::{Asked, Attempt, ChangeSource as _, SourceError};
use serde::Serialize;
use serde_json::value::RawValue;
use shared::error::{ErrorCode, Problem};
use shared::ident::{WebhookName, shown};
use shared::limits::{WEBHOOKS_MAX_COUNT, WEBHOOKS_PER_PROJECT_MAX_COUNT};
use shared::operation::management::{Page, WebhookCall, WebhookDeed, no_delivery};
use shared::operation::webhook::WebhookDefinition;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// Maximum time for which a request sends a delivery, with the wait for a slot.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
const SET_TRIES_MAX_COUNT: usize = 10;

/// Starts the deliveries of this origin.
pub fn start(app: &Arc<ServiceState>, tasks: &TaskTracker, stop: &CancellationToken) {
    if app.changes.is_on() {
        tasks.spawn(app.webhooks.clone().run(Arc::new(FeedOfWebhooks(Arc::clone(app))), stop.clone()));
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    name: &'a str,
    url: &'a str,
    subscriptions: &'a RawValue,
    paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_reason: Option<&'a str>,
    created_at: String,
    updated_at: String,
    delivered_at: Option<String>,
    failing_since: Option<String>,
    /// Why changes can't be read now.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'a str>,
    /// Only in the response that makes or renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedDelivery<'a> {
    id: u64,
    message_id: &'a str,
    state: &'static str,
    changes: u32,
    attempts: u32,
    status: Option<u16>,
    response: &'a str,
    millis: u32,
    created_at: String,
    attempted_at: String,
    next_attempt_at: Option<String>,
    /// The body of the request, in the response for one delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tested<'a> {
    delivered: bool,
    status: Option<u16>,
    response: &'a str,
    millis: u32,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

pub(super) struct Manager<'a> {
    pub(super) app: &'a Arc<ServiceState>,
    pub(super) caller: &'a Caller,
}

impl Manager<'_> {
    pub(super) async fn list(&self, page: &Page<WebhookName>) -> Result<ManagementAnswer, Problem> {
        let _slot = self.app.management_slot(self.caller.project()).await?;
        let rows = self.app.webhooks.admin().webhooks(self.caller.project(), page.after.as_ref(), page.limit + 1).await;
        let rows = rows.map_err(|error| of_admin(&error))?;
        let subscriptions = rows.iter().map(subscriptions).collect::<Result<Vec<_>, _>>()?;
        let rows: Vec<_> = rows.iter().zip(&subscriptions).collect();
        ManagementAnswer::of_list(
            &rows,
            page.limit,
            |(row, _)| row.name.to_string(),
            |(row, subscriptions)| listed(row, subscriptions, None),
        )
    }

    pub(super) async fn create(&self, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let definition = WebhookDefinition::parse(None, body)?;
        let (id, project, time) = (Uuid::now_v7(), self.caller.project(), now());
        let token = self.check(id, &definition).await?;
        let _slot = self.app.management_slot(project).await?;
        let admin = self.app.webhooks.admin();
        let (of_project, all) = admin.webhook_counts(project).await.map_err(|error| of_admin(&error))?;
        if of_project >= WEBHOOKS_PER_PROJECT_MAX_COUNT || all >= WEBHOOKS_MAX_COUNT {
            let message =
                format!("The project has {of_project} webhooks, of {WEBHOOKS_PER_PROJECT_MAX_COUNT} at most.");
            return Err(Problem::new(ErrorCode::PermissionDenied, message).with_hint("Delete one first."));
        }
        let row = WebhookRow {
            id,
            project: project.clone(),
            name: definition.name,
            url: definition.url.into(),
            subscriptions: definition.subscriptions_json.into(),
            is_paused: definition.is_paused,
            pause_reason: None,
            version: 1,
            secret_number: 1,
            secret_renewed_at: None,
            token,
            token_at: time,
            failing_since: None,
            fault: None,
            delivered_at: None,
            created_at: time,
            updated_at: time,
        };
        if !admin.insert_webhook(&row).await.map_err(|error| of_admin(&error))? {
            let message = format!("The project has a webhook {} already.", shown(row.name.as_str()));
            return Err(
                Problem::new(ErrorCode::DuplicateKey, message).with_hint("Change it by PUT, or take another name.")
            );
        }
        self.changed("a webhook was made", &row);
        self.shown(&row, Some(self.app.webhooks.secret(&row)))
    }

    pub(super) async fn run(&self, call: WebhookCall, body: &[u8]) -> Result<ManagementAnswer, Problem> {
        let row = self.find(&call.name).await?;
        let answer = match call.deed {
            WebhookDeed::Show => self.shown(&row, None)?,
            WebhookDeed::Set => self.set(row, WebhookDefinition::parse(Some(call.name), body)?).await?,
            WebhookDeed::Remove => {
                let _slot = self.app.management_slot(self.caller.project()).await?;
                self.app
                    .webhooks
                    .admin()
                    .remove_webhook(&row.project, &row.name)
                    .await
                    .map_err(|error| of_admin(&error))?;
                self.changed("a webhook was deleted", &row);
                text(&Named { name: row.name.as_str() })?
            }
            WebhookDeed::RenewSecret => {
                let time = now();
                let _slot = self.app.management_slot(self.caller.project()).await?;
                let number = self.app.webhooks.admin().renew_webhook_secret(row.id, time).await;
                let number = number.map_err(|error| of_admin(&error))?.ok_or_else(|| no_webhook(&row.name))?;
                let renewed =
                    WebhookRow { secret_number: number, secret_renewed_at: Some(time), updated_at: time, ..row };
                self.changed("the secret of a webhook was renewed", &renewed);
                self.shown(&renewed, Some(self.app.webhooks.secret(&renewed)))?
            }
            WebhookDeed::SendTest => {
                let attempt = in_time(self.app.webhooks.send_test(&row)).await?;
                tested(&attempt)?
            }
            WebhookDeed::ListDeliveries(page) => return self.deliveries(&row, &page).await,
            WebhookDeed::ShowDelivery(id) => delivery_text(&self.delivery(&row, id).await?)?,
            WebhookDeed::SendAgain(id) => {
                let delivery = self.delivery(&row, id).await?;
                if delivery.body.is_none() {
                    return Err(Problem::new(ErrorCode::PermissionDenied, "The delivery was too long to be kept.")
                        .with_hint("Read the records of the tables again."));
                }
                delivery_text(
                    &in_time(self.app.webhooks.send_again(&row, delivery)).await?.map_err(|error| of_admin(&error))?,
                )?
            }
        };
        Ok(answer.into())
    }

    /// Checks the URL, and the subscriptions against the schema. Returns the present position.
    async fn check(&self, webhook: Uuid, definition: &WebhookDefinition) -> Result<String, Problem> {
        self.app.webhooks.check_url(&definition.url).map_err(|fault| {
            Problem::new(ErrorCode::InvalidQueryOption, fault.to_string())
                .with_hint("The operator can allow networks by the setting webhook_allow.")
        })?;
        let asked = Asked {
            webhook,
            project: self.caller.project().clone(),
            subscriptions: definition.subscriptions.clone().into(),
        };
        let position = FeedOfWebhooks(Arc::clone(self.app)).position(asked).await;
        position.map_err(|error| match error {
            SourceError::Problem(problem) => problem,
            SourceError::Resync(_) => Problem::new(ErrorCode::ResyncRequired, "A table was changed meanwhile.")
                .with_hint("Send the request again."),
        })
    }

    /// Replaces the definition that was read as `row`. If another request or the courier changes it meanwhile, tries
    /// again with what they have made of it.
    async fn set(&self, mut row: WebhookRow, definition: WebhookDefinition) -> Result<Vec<u8>, Problem> {
        for _ in 0..SET_TRIES_MAX_COUNT {
            // So a webhook can be paused whose table was dropped.
            if *row.url != *definition.url || *row.subscriptions != *definition.subscriptions_json {
                self.check(row.id, &definition).await?;
            }
            let changed = WebhookRow {
                url: definition.url.to_string(),
                subscriptions: definition.subscriptions_json.to_string(),
                pause_reason: row.pause_reason.filter(|_| definition.is_paused),
                is_paused: definition.is_paused,
                updated_at: now(),
                ..row
            };
            if self.store(&changed).await? {
                self.changed("a webhook was changed", &changed);
                return self.shown(&changed, None);
            }
            row = self.find(&changed.name).await?;
        }
        Err(Problem::new(ErrorCode::Overloaded, "The webhook is being changed by other requests."))
    }

    /// Returns false if the webhook has another version than `row`.
    async fn store(&self, row: &WebhookRow) -> Result<bool, Problem> {
        let _slot = self.app.management_slot(self.caller.project()).await?;
        self.app.webhooks.admin().update_webhook(row).await.map_err(|error| of_admin(&error))
    }

    async fn find(&self, name: &WebhookName) -> Result<WebhookRow, Problem> {
        let _slot = self.app.management_slot(self.caller.project()).await?;
        let found =
            self.app.webhooks.admin().webhook(self.caller.project(), name).await.map_err(|error| of_admin(&error))?;
        found.ok_or_else(|| no_webhook(name))
    }

    async fn deliveries(&self, row: &WebhookRow, page: &Page<u64>) -> Result<ManagementAnswer, Problem> {
        let _slot = self.app.management_slot(self.caller.project()).await?;
        let rows = self
            .app
            .webhooks
            .admin()
            .deliveries(row.id, page.after, page.limit + 1)
            .await
            .map_err(|error| of_admin(&error))?;
        ManagementAnswer::of_list(&rows, page.limit, |row| row.id.to_string(), |row| listed_delivery(row, None))
    }

    async fn delivery(&self, row: &WebhookRow, id: u64) -> Result<DeliveryRow, Problem> {
        let _slot = self.app.management_slot(self.caller.project()).await?;
        let found = self.app.webhooks.admin().delivery(row.id, id).await.map_err(|error| of_admin(&error))?;
        found.ok_or_else(|| no_delivery(&id.to_string()))
    }

    fn shown(&self, row: &WebhookRow, secret: Option<String>) -> Result<Vec<u8>, Problem> {
        text(&listed(row, &subscriptions(row)?, secret))
    }

    fn changed(&self, what: &'static str, row: &WebhookRow) {
        let (by, project) = (self.caller.key_id(), self.caller.project().as_str());
        tracing::info!(key = %by, project, webhook = %row.id, "{what}");
        self.app.webhooks.changed();
    }
}

async fn in_time<T>(sending: impl Future<Output = T>) -> Result<T, Problem> {
    let sent = tokio::time::timeout(SEND_TIMEOUT, sending).await;
    sent.map_err(|_| Problem::new(ErrorCode::Overloaded, "Too many deliveries are under way."))
}

fn subscriptions(row: &WebhookRow) -> Result<Box<RawValue>, Problem> {
    RawValue::from_string(row.subscriptions.clone())
        .map_err(|error| Problem::internal("A webhook can't be read.", error.to_string()))
}

fn listed<'a>(row: &'a WebhookRow, subscriptions: &'a RawValue, secret: Option<String>) -> Listed<'a> {
    Listed {
        name: row.name.as_str(),
        url: &row.url,
        subscriptions,
        paused: row.is_paused,
        pause_reason: row.pause_reason.as_deref(),
        created_at: utc(row.created_at),
        updated_at: utc(row.updated_at),
        delivered_at: row.delivered_at.map(utc),
        failing_since: row.failing_since.map(utc),
        fault: row.fault.as_deref(),
        secret,
    }
}

fn delivery_text(row: &DeliveryRow) -> Result<Vec<u8>, Problem> {
    let request = row.body.clone().and_then(|body| RawValue::from_string(body).ok());
    text(&listed_delivery(row, request.as_deref()))
}

fn listed_delivery<'a>(row: &'a DeliveryRow, request: Option<&'a RawValue>) -> ListedDelivery<'a> {
    ListedDelivery {
        id: row.id,
        message_id: &row.message,
        state: row.state.as_str(),
        changes: row.changes,
        attempts: row.attempts,
        status: row.status,
        response: &row.response,
        millis: row.millis,
        created_at: utc(row.created_at),
        attempted_at: utc(row.attempted_at),
        next_attempt_at: row.next_attempt_at.map(utc),
        request,
    }
}

fn tested(attempt: &Attempt) -> Result<Vec<u8>, Problem> {
    let Attempt { status, response, millis, .. } = attempt;
    text(&Tested { delivered: attempt.has_succeeded(), status: *status, response, millis: *millis })
}

fn no_webhook(name: &WebhookName) -> Problem {
    Problem::new(ErrorCode::RecordNotFound, format!("The project has no webhook {}.", shown(name.as_str())))
        .with_hint("GET /api/v1/webhooks lists them.")
}

fn of_admin(error: &AdminError) -> Problem {
    tracing::warn!(%error, "webhooks could not be managed");
    Problem::new(ErrorCode::DatabaseUnavailable, "Webhooks can't be read or changed at the moment.")
        .with_hint_if(error.hint().map(|hint| sentence(&hint)))
}
