//! Handles `/api/v1/issuers`: the issuers whose tokens a project accepts from its users.

use super::{ManagementAnswer, Manager, Problem, invalid, no_system, sentence, text};
use crate::clock::{now, utc};
use crate::config::SignInClients;
use crate::database::admin::{IssuerKeys, IssuerRow, KeyGrant};
use crate::system::issuers::IssuerError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::error::ErrorCode;
use shared::ident::RoleName;
use std::collections::BTreeMap;

/// The body of a request for an issuer. Exactly one of `jwksUrl` and `jwks` must be given.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedIssuer<'a> {
    audience: String,
    jwks_url: Option<String>,
    #[serde(borrow)]
    jwks: Option<&'a RawValue>,
    role_claim: Option<String>,
    role: Option<String>,
    #[serde(default)]
    map: BTreeMap<String, String>,
    client_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedIssuer<'a> {
    issuer: &'a str,
    audience: &'a str,
    jwks_url: Option<&'a str>,
    jwks: Option<Box<RawValue>>,
    role_claim: Option<&'a str>,
    role: Option<&'a str>,
    map: BTreeMap<&'a str, &'a str>,
    client_id: Option<&'a str>,
    created_at: String,
}

#[derive(Serialize)]
struct NamedIssuer<'a> {
    issuer: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Manager<'_> {
    pub(super) async fn list_issuers(&self) -> Result<ManagementAnswer, Problem> {
        let rows = self.app.issuers().list(Some(self.caller.project())).await.map_err(|error| of_issuer(&error))?;
        Ok(text(&rows.iter().map(ListedIssuer::of).collect::<Vec<_>>())?.into())
    }

    pub(super) async fn show_issuer(&self, issuer: &str) -> Result<Vec<u8>, Problem> {
        let project = self.caller.project();
        let rows = self.app.issuers().list(Some(project)).await.map_err(|error| of_issuer(&error))?;
        let row = rows.iter().find(|row| row.issuer == issuer);
        row.map_or_else(
            || Err(of_issuer(&IssuerError::Unknown(project.clone(), issuer.to_owned()))),
            |row| text(&ListedIssuer::of(row)),
        )
    }

    pub(super) async fn set_issuer(&self, issuer: &str, body: &[u8]) -> Result<Vec<u8>, Problem> {
        let wanted: WantedIssuer<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => invalid(format!("The body describes no issuer: {error}.")).with_hint(
                "Use {\"audience\", \"jwksUrl\" or \"jwks\", \"role\" or \"roleClaim\", \"map\"?, \"clientId\"?}.",
            ),
            _ => Problem::new(ErrorCode::InvalidJson, format!("The body is not JSON: {error}.")),
        })?;
        let row = self.row(issuer, wanted)?;
        if let (Some(id), SignInClients::OfOperator) = (&row.client_id, self.app.bounds.sign_in_clients) {
            let rows = self.app.issuers().list(Some(&row.project)).await.map_err(|error| of_issuer(&error))?;
            if !rows.iter().any(|known| known.issuer == issuer && known.client_id.as_ref() == Some(id)) {
                return Err(Problem::new(
                    ErrorCode::PermissionDenied,
                    "Only the operator may set the client id of an issuer: its sign-in is on the page of all projects.",
                )
                .with_hint("Use selkie issuer add --client-id, or the setting project_sign_in."));
            }
        }
        let unusable =
            self.app.issuers().set_for(row, self.caller.expires_at()).await.map_err(|error| of_issuer(&error))?;
        self.changed("an issuer was set", issuer).await;
        let told = |key: &shared::key::UnusableKey| format!("The key {} can't verify tokens: {}.", key.name, key.fault);
        text(&NamedIssuer { issuer, warnings: unusable.iter().map(told).collect() })
    }

    fn row(&self, issuer: &str, wanted: WantedIssuer<'_>) -> Result<IssuerRow, Problem> {
        let keys = match (wanted.jwks_url, wanted.jwks) {
            (Some(url), None) => IssuerKeys::Url(url),
            (None, Some(set)) => IssuerKeys::Set(set.get().to_owned()),
            _ => return Err(invalid("An issuer has a jwksUrl or a jwks: give one of them.")),
        };
        let grant = |name: &str| match name.parse() {
            Ok(access) => Ok(KeyGrant::Access(access)),
            Err(_) => RoleName::parse(name).map(KeyGrant::Role),
        };
        Ok(IssuerRow {
            project: self.caller.project().clone(),
            issuer: issuer.to_owned(),
            audience: wanted.audience,
            keys,
            role_claim: wanted.role_claim,
            role: wanted.role.as_deref().map(RoleName::parse).transpose()?,
            role_map: wanted
                .map
                .into_iter()
                .map(|(value, name)| Ok((value, grant(&name)?)))
                .collect::<Result<_, Problem>>()?,
            client_id: wanted.client_id,
            created_at: now(),
        })
    }

    pub(super) async fn remove_issuer(&self, issuer: &str) -> Result<Vec<u8>, Problem> {
        self.app.issuers().remove(self.caller.project(), issuer).await.map_err(|error| of_issuer(&error))?;
        self.changed("an issuer was removed", issuer).await;
        text(&NamedIssuer { issuer, warnings: Vec::new() })
    }
}

impl<'a> ListedIssuer<'a> {
    fn of(row: &'a IssuerRow) -> Self {
        let (jwks_url, jwks) = match &row.keys {
            IssuerKeys::Url(url) | IssuerKeys::PublicUrl(url) => (Some(url.as_str()), None),
            IssuerKeys::Set(set) => (None, RawValue::from_string(set.clone()).ok()),
        };
        Self {
            issuer: &row.issuer,
            audience: &row.audience,
            jwks_url,
            jwks,
            role_claim: row.role_claim.as_deref(),
            role: row.role.as_ref().map(RoleName::as_str),
            map: row.role_map.iter().map(|(value, grant)| (value.as_str(), grant.as_str())).collect(),
            client_id: row.client_id.as_deref(),
            created_at: utc(row.created_at),
        }
    }
}

fn of_issuer(error: &IssuerError) -> Problem {
    let code = match error {
        IssuerError::Admin(_) | IssuerError::Project(_) => return no_system(error),
        IssuerError::Unknown(..) => ErrorCode::RecordNotFound,
        // The message names the other project.
        IssuerError::Taken(_) => return of_issuer(&IssuerError::Elsewhere),
        IssuerError::NoRoles => return invalid(sentence(error)).with_hint("Give role, roleClaim, or both."),
        IssuerError::Elsewhere | IssuerError::Outlives | IssuerError::TooMany | IssuerError::TooManyClients => {
            ErrorCode::PermissionDenied
        }
        _ => ErrorCode::InvalidBody,
    };
    Problem::new(code, sentence(error)).with_hint_if(error.hint().map(|hint| sentence(&hint)))
}
