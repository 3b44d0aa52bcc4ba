//! Handles `/api/v1/keys`, `/api/v1/roles`, `/api/v1/issuers`, `/api/v1/status` and `/api/v1/requests`, and passes on
//! what is for webhooks, by which a caller with full access manages its own project. Each change is logged with the id
//! of the caller.

mod issuers;

use super::media::payload::text;
use super::request_context::RequestContext;
use super::respond;
use super::webhooks;
use crate::activity::{ActivityFigure, PERIOD_SECONDS};
use crate::clock::{now, utc};
use crate::database::admin::{KeyGrant, KeyRow, ListedRole};
use crate::database::pool::PoolGauge;
use crate::service_state::ServiceState;
use crate::system::keys::{Caller, IssuedKey, KeyError, state};
use crate::system::roles::RoleError;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use shared::envelope::{self, Trailer};
use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, RoleName, shown};
use shared::key::{Access, Grant, KeySet, RoleClaims, RoleGrant};
use shared::operation::management::{Made, Management, Page, Revocable, no_key};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

pub(super) async fn run(
    app: &Arc<ServiceState>,
    caller: &Caller,
    call: Management,
    body: &[u8],
    record: &RequestContext,
) -> Result<Response, Problem> {
    let project = caller.project();
    let answer = match call {
        Management::Status => text(&Status::of(app, project))?.into(),
        Management::ListRequests => text(&app.activity.requests(project.as_str()))?.into(),
        Management::ListWebhooks(page) => webhooks::Manager { app, caller }.list(&page).await?,
        Management::CreateWebhook => webhooks::Manager { app, caller }.create(body).await?.into(),
        Management::Webhook(call) => webhooks::Manager { app, caller }.run(call, body).await?,
        call => Manager { app, caller, record }.run(call, body).await?,
    };
    let trailer = Trailer { next: answer.next, ..Trailer::default() };
    Ok(respond::list(respond::json(envelope::success_with(&answer.payload, &trailer))))
}

pub(super) struct ManagementAnswer {
    payload: Vec<u8>,
    next: Option<String>,
}

impl From<Vec<u8>> for ManagementAnswer {
    fn from(payload: Vec<u8>) -> Self {
        Self { payload, next: None }
    }
}

impl ManagementAnswer {
    /// Makes a page of at most `limit` rows. A further row in `rows` shows that there is a next page.
    pub(super) fn of_list<'a, R, E: Serialize>(
        rows: &'a [R],
        limit: u64,
        cursor: impl FnOnce(&R) -> String,
        entry: impl FnMut(&'a R) -> E,
    ) -> Result<Self, Problem> {
        let page = &rows[..rows.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
        let next = page.last().filter(|_| page.len() < rows.len()).map(cursor);
        Ok(Self { payload: text(&page.iter().map(entry).collect::<Vec<_>>())?, next })
    }
}

struct Manager<'a> {
    app: &'a Arc<ServiceState>,
    caller: &'a Caller,
    record: &'a RequestContext,
}

/// The body of a request for a key. Exactly one of `access` and `role` must be given; `claims` only with `role`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedKey {
    access: Option<Access>,
    role: Option<String>,
    claims: Option<RoleClaims>,
    #[serde(default)]
    name: String,
    expires: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CreatedKey<'a> {
    id: Uuid,
    /// The token, which no other response contains and which is stored nowhere.
    key: &'a str,
    access: Option<Access>,
    role: Option<&'a str>,
    name: &'a str,
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<[String; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedKey<'a> {
    id: Uuid,
    name: &'a str,
    access: Option<Access>,
    role: Option<&'a str>,
    state: &'static str,
    own: bool,
    created_at: String,
    last_used_at: Option<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    created_by: Option<Uuid>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RoleEntry<'a> {
    name: &'a str,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct SetRole<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct RevokedKey<'a> {
    id: Uuid,
    /// The keys that the revoked key had created, directly or indirectly, and that were not yet revoked or expired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    created: Vec<MadeKey<'a>>,
}

#[derive(Serialize)]
struct MadeKey<'a> {
    id: Uuid,
    name: &'a str,
    access: Option<Access>,
    role: Option<&'a str>,
    state: &'static str,
}

impl Manager<'_> {
    async fn set_role(&self, name: &RoleName, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let (roles, project) = (self.app.roles(), self.caller.project());
        let definition =
            std::str::from_utf8(body).map_err(|_| Problem::new(ErrorCode::InvalidJson, "The role is not UTF-8."))?;
        // Checked without a slot: MariaDB may take long to describe the tables.
        let checked = roles.check(project, definition, &self.app.schema_cache).await.map_err(of_role)?;
        let _slot = self.app.management_slot(self.caller.project()).await?;
        roles.store(project, name, &checked).await.map_err(of_role)?;
        self.changed("a role was set", name.as_str()).await;
        text(&SetRole { name: name.as_str(), warnings: checked.warnings })
    }

    async fn run(self, call: Management, body: &[u8]) -> Result<ManagementAnswer, Problem> {
        if let Management::SetRole(name) = &call {
            return self.set_role(name, body).await.map(ManagementAnswer::from);
        }
        let _slot = self.app.management_slot(self.caller.project()).await?;
        let (keys, roles, project) = (self.app.keys.issued(), self.app.roles(), self.caller.project());
        let payload = match call {
            Management::ListKeys(Page { limit, after }) => {
                let rows = keys.page(Some(project), after, limit + 1).await.map_err(|error| of_key(&error))?;
                let signing = keys.public_keys().await.map_err(|error| of_key(&error))?;
                return ManagementAnswer::of_list(
                    &rows,
                    limit,
                    |row| row.id.to_string(),
                    |row| self.listed(row, &signing),
                );
            }
            Management::CreateKey if self.caller.has_link() => self.open_session().await,
            Management::CreateKey => self.create(body).await,
            Management::RevokeKey(id, whose, made) => self.revoke(id, whose, made).await,
            Management::ListRoles(Page { limit, after }) => {
                let after = after.as_ref().map(|name| (project, name));
                let rows = roles.page(Some(project), after, limit + 1).await.map_err(of_role)?;
                return ManagementAnswer::of_list(&rows, limit, |row| row.name.to_string(), listed);
            }
            Management::ShowRole(name) => Ok(roles.get(project, &name).await.map_err(of_role)?.definition.into_bytes()),
            Management::RemoveRole(name) => {
                roles.remove(project, &name).await.map_err(of_role)?;
                self.changed("a role was removed", name.as_str()).await;
                text(&Named { name: name.as_str() })
            }
            Management::ListIssuers => return self.list_issuers().await,
            Management::ShowIssuer(issuer) => self.show_issuer(&issuer).await,
            Management::SetIssuer(issuer) => self.set_issuer(&issuer, body).await,
            Management::RemoveIssuer(issuer) => self.remove_issuer(&issuer).await,
            Management::Status
            | Management::ListRequests
            | Management::SetRole(_)
            | Management::ListWebhooks(_)
            | Management::CreateWebhook
            | Management::Webhook(_) => {
                Err(Problem::internal("The request can't be answered.", "another function answers it"))
            }
        };
        payload.map(ManagementAnswer::from)
    }

    async fn revoke(&self, id: Uuid, whose: Revocable, made: Made) -> Result<Vec<u8>, Problem> {
        let (keys, project, own) = (self.app.keys.issued(), self.caller.project(), self.caller.key_id());
        let is_own = async || match made {
            _ if id == own => Ok(true),
            Made::Kept => Ok(false),
            Made::Revoked => Ok::<_, KeyError>(keys.made_by(id).await?.iter().any(|key| key.id == own)),
        };
        if whose == Revocable::Others && is_own().await.map_err(|error| of_key(&error))? {
            return Err(Problem::new(
                ErrorCode::PermissionDenied,
                "The request would revoke the key that it was sent with.",
            )
            .with_hint("Revoke it with another key, or add ?own=true if you mean it."));
        }
        keys.revoke(id, Some(project)).await.map_err(|error| of_key(&error))?;
        let (rows, state) = match made {
            Made::Kept => (keys.made_by(id).await, "live"),
            Made::Revoked => (keys.revoke_made_by(id).await, "revoked"),
        };
        self.changed("a key was revoked", &id.to_string()).await;
        let rows = rows.map_err(|error| of_key(&error))?;
        for row in rows.iter().filter(|_| made == Made::Revoked) {
            self.log("a key was revoked", &row.id.to_string());
        }
        let entry = |row| {
            let (access, role) = grant_of(row);
            MadeKey { id: row.id, name: &row.name, access, role, state }
        };
        text(&RevokedKey { id, created: rows.iter().map(entry).collect() })
    }

    fn listed<'a>(&self, row: &'a KeyRow, signing: &KeySet) -> ListedKey<'a> {
        let (access, role) = grant_of(row);
        ListedKey {
            id: row.id,
            name: &row.name,
            access,
            role,
            state: state(row, signing, now()),
            own: row.id == self.caller.key_id(),
            created_at: utc(row.created_at),
            last_used_at: row.last_used_at.map(utc),
            expires_at: row.expires_at.map(utc),
            revoked_at: row.revoked_at.map(utc),
            created_by: row.created_by,
        }
    }

    async fn create(&self, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let wanted: WantedKey = serde_json::from_slice(body).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => invalid(format!("The body describes no key: {error}."))
                .with_hint("Use {\"access\": \"read\", \"name\"?, \"expires\"?: \"90d\"}, or \"role\" and \"claims\"."),
            _ => Problem::new(ErrorCode::InvalidJson, format!("The body is not JSON: {error}.")),
        })?;
        let grant = wanted.grant()?;
        let lifetime = wanted.expires.as_deref().map(lifetime).transpose()?;
        let issued = self.app.keys.issued().issue_for(self.caller, grant, &wanted.name, lifetime);
        self.created(
            &issued.await.map_err(|error| of_key(&error))?,
            wanted.access,
            wanted.role.as_deref(),
            &wanted.name,
        )
        .await
    }

    async fn open_session(&self) -> Result<Vec<u8>, Problem> {
        let issued = self.app.keys.issued().open_session(self.caller.key_id(), self.caller.project()).await;
        self.created(&issued.map_err(|error| of_key(&error))?, Some(Access::Full), None, "console").await
    }

    async fn created(
        &self,
        issued: &IssuedKey,
        access: Option<Access>,
        role: Option<&str>,
        name: &str,
    ) -> Result<Vec<u8>, Problem> {
        self.changed("a key was created", &issued.id.to_string()).await;
        let expires_at = issued.expires_at.map(utc);
        let warnings = issued.warning().map(|warning| [warning]);
        text(&CreatedKey { id: issued.id, key: &issued.token, access, role, name, expires_at, warnings })
    }

    /// Logs the change, and reloads the keys, so that the change has effect at once. A failed reload is ignored, since
    /// the origin also polls.
    async fn changed(&self, what: &'static str, which: &str) {
        self.log(what, which);
        let _ = self.app.keys.refresh().await;
    }

    fn log(&self, what: &'static str, which: &str) {
        let (by, project) = (self.caller.key_id(), self.caller.project().as_str());
        tracing::info!(id = self.record.id(), key = %by, project, which, "{what}");
    }
}

impl WantedKey {
    fn grant(&self) -> Result<Grant, Problem> {
        match (self.access, &self.role) {
            (Some(access), None) if self.claims.is_none() => Ok(access.into()),
            (None, Some(role)) => {
                let claims = self.claims.clone().unwrap_or_default();
                Ok(Grant::Role(Arc::new(RoleGrant { role: RoleName::parse(role)?, claims })))
            }
            (Some(_), None) => Err(invalid("claims are for the rules of a role.")),
            _ => Err(invalid("A key has an access or a role: give one of them.")),
        }
    }
}

fn lifetime(text: &str) -> Result<Duration, Problem> {
    let parsed = humantime::parse_duration(text);
    parsed.map_err(|error| {
        invalid(format!("expires {} is not a duration: {error}.", shown(text))).with_hint("Write 90d or 12h.")
    })
}

fn grant_of(row: &KeyRow) -> (Option<Access>, Option<&str>) {
    match &row.grant {
        KeyGrant::Access(access) => (Some(*access), None),
        KeyGrant::Role(role) => (None, Some(role.as_str())),
    }
}

fn listed(row: &ListedRole) -> RoleEntry<'_> {
    RoleEntry { name: row.name.as_str(), created_at: utc(row.created_at), updated_at: utc(row.updated_at) }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}

pub(super) fn sentence(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", chars.as_str())
}

fn of_key(error: &KeyError) -> Problem {
    let code = match error {
        KeyError::Admin(_) | KeyError::Project(_) | KeyError::NoSigningKey | KeyError::Signing(_) => {
            return no_system(error);
        }
        KeyError::Unknown(id) | KeyError::Ambiguous(id) => return no_key(id),
        KeyError::Name | KeyError::Lifetime | KeyError::Claims | KeyError::NoRole(..) => ErrorCode::InvalidBody,
        KeyError::TooMany(_) => ErrorCode::PermissionDenied,
        KeyError::UsedLink | KeyError::RevokedCreator => ErrorCode::RevokedKey,
        KeyError::Outlives(_) => ErrorCode::PermissionDenied,
    };
    Problem::new(code, sentence(error)).with_hint_if(error.hint().map(|hint| sentence(&hint)))
}

fn of_role(error: RoleError) -> Problem {
    match error {
        RoleError::Admin(_) | RoleError::Project(_) => no_system(&error),
        RoleError::Unknown(..) => Problem::new(ErrorCode::RecordNotFound, sentence(&error)),
        RoleError::TooMany(_) | RoleError::TooLarge(_) => {
            let hint = error.hint().map(|hint| sentence(&hint));
            Problem::new(ErrorCode::PermissionDenied, sentence(&error)).with_hint_if(hint)
        }
        RoleError::Fault(_) => {
            invalid(sentence(&error)).with_hint("Nothing was changed; docs/roles.md describes the file.")
        }
        RoleError::Schema(problem) => problem,
    }
}

fn no_system(error: &impl std::fmt::Display) -> Problem {
    tracing::warn!(%error, "the project could not be managed");
    Problem::new(ErrorCode::DatabaseUnavailable, "Keys and roles can't be read or changed at the moment.")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    version: &'static str,
    period_seconds: u64,
    figures: Vec<ActivityFigure>,
    connections: Connections,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Connections {
    open: usize,
    in_use: usize,
    waiting: usize,
}

impl Status {
    fn of(app: &ServiceState, project: &ProjectName) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let PoolGauge { open, in_use, waiting, .. } = app.pools.gauge_of(project);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            period_seconds: PERIOD_SECONDS,
            figures: app.activity.figures(project.as_str(), now),
            connections: Connections { open, in_use, waiting },
        }
    }
}
