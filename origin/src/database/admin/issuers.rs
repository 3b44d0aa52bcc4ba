//! Rows of `selkie.issuers`: the issuers whose tokens are accepted for a project. Each change increments the version
//! that origins poll each second, [`Admin::key_changes`].

use std::collections::BTreeMap;

use crate::database::typed_rows;
use mysql_async::Params;
use mysql_async::prelude::Queryable;
use shared::ident::{ProjectName, RoleName};

use super::keys::KeyGrant;
use super::projects::project;
use super::{Admin, AdminError};

/// An issuer of users' tokens. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerRow {
    pub project: ProjectName,
    pub issuer: String,
    /// The value that the claim `aud` of the issuer's tokens must contain to be accepted for the project.
    pub audience: String,
    pub keys: IssuerKeys,
    /// The claim that names the role; `None` if all tokens of the issuer get `role`.
    pub role_claim: Option<String>,
    /// The role of a token that lacks the claim `role_claim`, or whose claim is a list without a key of `role_map`;
    /// `None` if such a token is refused.
    pub role: Option<RoleName>,
    /// The grant for each value of the claim `role_claim`. If the claim is a text that is no key of this map, the text
    /// is itself the name of a role. Of a list, only items that are keys of this map count.
    pub role_map: BTreeMap<String, KeyGrant>,
    /// The OAuth client id of the console at this issuer; `None` if the issuer's users can't sign in to the console.
    pub client_id: Option<String>,
    pub created_at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssuerKeys {
    Url(String),
    /// Set over HTTP, so fetched from public addresses only.
    PublicUrl(String),
    Set(String),
}

impl IssuerKeys {
    fn columns(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Url(url) | Self::PublicUrl(url) => (Some(url), None),
            Self::Set(text) => (None, Some(text)),
        }
    }
}

type RawIssuer = (
    String,
    String,
    String,
    Option<String>,
    bool,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    Option<String>,
    u64,
);

impl Admin {
    /// Stores an issuer. If the project has an issuer with the same URL, replaces all its columns but `created_at`.
    pub async fn set_issuer(&self, row: &IssuerRow) -> Result<(), AdminError> {
        let set = "INSERT INTO selkie.issuers
            (project, issuer, audience, jwks_url, public_only, jwks, role_claim, role, role_map, client_id, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE
            audience = VALUE(audience), jwks_url = VALUE(jwks_url), public_only = VALUE(public_only),
            jwks = VALUE(jwks), role_claim = VALUE(role_claim), role = VALUE(role), role_map = VALUE(role_map),
            client_id = VALUE(client_id)";
        let (url, jwks) = row.keys.columns();
        let map: serde_json::Map<_, _> =
            row.role_map.iter().map(|(value, grant)| (value.clone(), grant.as_str().into())).collect();
        let values = (
            row.project.as_str(),
            &row.issuer,
            &row.audience,
            url,
            matches!(row.keys, IssuerKeys::PublicUrl(_)),
            jwks,
            row.role_claim.as_deref(),
            row.role.as_ref().map(RoleName::as_str),
            serde_json::Value::Object(map).to_string(),
            row.client_id.as_deref(),
            row.created_at,
        );
        self.change_keys(Some(&row.project), vec![(set, values.into())]).await
    }

    /// Deletes the issuer with the URL `issuer` from project `of`, if it exists.
    pub async fn remove_issuer(&self, of: &ProjectName, issuer: &str) -> Result<(), AdminError> {
        let remove = "DELETE FROM selkie.issuers WHERE project = ? AND issuer = ?";
        self.change_keys(Some(of), vec![(remove, (of.as_str(), issuer).into())]).await
    }

    /// Returns the issuers of project `of`, or of all projects if `of` is `None`, sorted by project and URL.
    pub async fn issuers(&self, of: Option<&ProjectName>) -> Result<Vec<IssuerRow>, AdminError> {
        let mut conn = self.conn().await?;
        let of = of.map(ProjectName::as_str);
        let values: Params = (of, of).into();
        let rows: Vec<RawIssuer> = self
            .within(typed_rows::all(conn.exec_iter(
                "SELECT project, issuer, audience, jwks_url, public_only, jwks, role_claim, role, role_map, client_id,
                    created_at
                 FROM selkie.issuers WHERE ? IS NULL OR project = ? ORDER BY project, issuer",
                values,
            )))
            .await?;
        rows.into_iter().map(issuer_row).collect()
    }
}

fn issuer_row(raw: RawIssuer) -> Result<IssuerRow, AdminError> {
    let (of, issuer, audience, url, public_only, jwks, role_claim, role, map, client_id, created_at) = raw;
    let role_name = |name: &str| RoleName::parse(name).map_err(|_| AdminError::Corrupt("issuer's role"));
    let keys = match (url, jwks) {
        (Some(url), None) if public_only => IssuerKeys::PublicUrl(url),
        (Some(url), None) => IssuerKeys::Url(url),
        (None, Some(text)) => IssuerKeys::Set(text),
        _ => return Err(AdminError::Corrupt("issuer's keys")),
    };
    let map: BTreeMap<String, String> =
        serde_json::from_str(&map).map_err(|_| AdminError::Corrupt("issuer's map of roles"))?;
    let grant = |name: &str| match name.parse() {
        Ok(access) => Ok(KeyGrant::Access(access)),
        Err(_) => role_name(name).map(KeyGrant::Role),
    };
    Ok(IssuerRow {
        project: project(&of)?,
        issuer,
        audience,
        keys,
        role_claim,
        role: role.as_deref().map(role_name).transpose()?,
        role_map: map.into_iter().map(|(value, name)| Ok((value, grant(&name)?))).collect::<Result<_, AdminError>>()?,
        client_id,
        created_at,
    })
}
