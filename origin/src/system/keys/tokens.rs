//! Verifies tokens of other issuers: finds the issuer that a project trusts, checks the token's signature, and
//! determines its role. Does not know what the role allows.

pub mod remote;

use std::sync::Arc;

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::Value;
use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, RoleName};
use shared::key::{Grant, KeyMaterial, RoleClaims, RoleGrant, UserToken, VerificationKey, VerificationKeys, untrusted};

use self::remote::{Reach, RemoteKeys, parse_url};
use crate::database::admin::{IssuerKeys, IssuerRow, KeyGrant};

#[derive(Debug, Default)]
pub(super) struct Issuers(Vec<Arc<Issuer>>);

#[derive(Debug)]
pub struct Issuer {
    row: IssuerRow,
    keys: IssuerKeySource,
}

#[derive(Debug)]
enum IssuerKeySource {
    Fixed(Arc<VerificationKeys>),
    /// The keys under a URL, shared by the issuers of all projects with this URL.
    Remote(Arc<RemoteKeys>),
}

impl Issuers {
    /// Makes the issuers of `rows`. Keys that were fetched from a URL for an issuer in `before` are kept.
    pub(super) fn new(rows: Vec<IssuerRow>, before: &Self) -> Self {
        let mut issuers: Vec<Arc<Issuer>> = Vec::with_capacity(rows.len());
        for row in rows {
            let known = before.0.iter().find(|issuer| issuer.row == row);
            let issuer = known.cloned().or_else(|| {
                let keys = IssuerKeySource::of(&row, || {
                    let remotes = issuers.iter().chain(&before.0).filter_map(|issuer| issuer.remote());
                    remotes.cloned().collect()
                })?;
                Some(Arc::new(Issuer { row, keys }))
            });
            issuers.extend(issuer);
        }
        Self(issuers)
    }

    pub(super) fn rows_without(&self, projects: &[ProjectName]) -> Vec<IssuerRow> {
        let others = self.0.iter().filter(|issuer| !projects.contains(&issuer.row.project));
        others.map(|issuer| issuer.row.clone()).collect()
    }

    /// The issuers whose users sign in to the console, by project.
    pub(super) fn with_client(&self) -> impl Iterator<Item = &IssuerRow> {
        self.0.iter().map(|issuer| &issuer.row).filter(|row| row.client_id.is_some())
    }

    pub(super) fn has(&self, issuer: &Issuer) -> bool {
        self.0.iter().any(|other| other.row == issuer.row)
    }

    pub(super) fn of(&self, token: &UserToken<'_>) -> Result<&Arc<Issuer>, Problem> {
        let is_meant =
            |issuer: &&Arc<Issuer>| issuer.row.issuer == token.issuer() && token.has_audience(&issuer.row.audience);
        let mut meant = self.0.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(issuer), None) => Ok(issuer),
            _ => Err(untrusted()),
        }
    }
}

impl IssuerKeySource {
    /// Makes an issuer. A URL shares the fetched keys of an entry of `remotes` with that URL. Returns `None`, after
    /// logging, if the URL or JWK set is malformed.
    fn of(row: &IssuerRow, remotes: impl FnOnce() -> Vec<Arc<RemoteKeys>>) -> Option<Self> {
        let malformed = |error: &dyn std::fmt::Display| {
            let (project, issuer) = (row.project.as_str(), &*row.issuer);
            tracing::warn!(project, issuer, %error, "the keys of an issuer can't be read; its tokens are refused");
        };
        match &row.keys {
            IssuerKeys::Url(url) | IssuerKeys::PublicUrl(url) => {
                let reach = if matches!(row.keys, IssuerKeys::Url(_)) { Reach::Any } else { Reach::Public };
                let url = parse_url(url).inspect_err(|error| malformed(error)).ok()?;
                let known = remotes().into_iter().find(|remote| remote.is_of(&url, reach));
                Some(Self::Remote(known.unwrap_or_else(|| Arc::new(RemoteKeys::new(url, reach)))))
            }
            IssuerKeys::Set(text) => {
                let (keys, _) = VerificationKeys::parse(text).inspect_err(|error| malformed(error)).ok()?;
                Some(Self::Fixed(Arc::new(keys)))
            }
        }
    }
}

impl Issuer {
    pub fn row(&self) -> &IssuerRow {
        &self.row
    }

    fn remote(&self) -> Option<&Arc<RemoteKeys>> {
        match &self.keys {
            IssuerKeySource::Remote(remote) => Some(remote),
            IssuerKeySource::Fixed(_) => None,
        }
    }

    /// Checks a token's signature. If no cached key fits, fetches the issuer's keys again, at most once a minute.
    pub(super) async fn check_signature(&self, token: &UserToken<'_>, now: u64) -> Result<(), Problem> {
        token.check_form()?;
        let keys = match &self.keys {
            IssuerKeySource::Fixed(keys) => Arc::clone(keys),
            IssuerKeySource::Remote(remote) => remote.keys(now).await.ok_or_else(unavailable)?,
        };
        let has_signed = |keys: &VerificationKeys| keys.find(token.header()).is_ok_and(|key| has_signed(key, token));
        let is_signed = match &self.keys {
            _ if has_signed(&keys) => true,
            // The issuer may have published a new key, or replaced one under its id.
            IssuerKeySource::Remote(remote) => remote.newer(now).await.is_some_and(|keys| has_signed(&keys)),
            IssuerKeySource::Fixed(_) => false,
        };
        if is_signed { Ok(()) } else { Err(untrusted()) }
    }

    pub(super) fn grant(&self, claims: RoleClaims) -> Result<Grant, Problem> {
        match self.role_of(&claims) {
            Some(KeyGrant::Access(access)) => Ok(access.into()),
            Some(KeyGrant::Role(role)) => Ok(Grant::Role(Arc::new(RoleGrant { role, claims }))),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The token's claims give it no role.").with_hint(
                "selkie issuer list shows the claim that names the role; full and read must be mapped explicitly.",
            )),
        }
    }

    /// Returns the role of a token. A text that is not in the issuer's map is itself the role's name. Without a claim
    /// that gives a role, the issuer's fixed role counts.
    fn role_of(&self, claims: &RoleClaims) -> Option<KeyGrant> {
        let fixed = || self.row.role.clone().map(KeyGrant::Role);
        let Some(name) = &self.row.role_claim else {
            return fixed();
        };
        match claim(claims, name) {
            None | Some(Value::Null) => fixed(),
            Some(Value::String(text)) => {
                // A text that is not in the map can't mean `full` or `read` access: no role can have these names.
                let named = || RoleName::parse(text).ok().map(KeyGrant::Role);
                self.row.role_map.get(text).cloned().or_else(named)
            }
            Some(Value::Array(items)) => {
                let mapped = items.iter().filter_map(Value::as_str).find_map(|text| self.row.role_map.get(text));
                mapped.cloned().or_else(fixed)
            }
            Some(_) => None,
        }
    }
}

/// Returns a claim. The dots in `name`, as in `app_metadata.role`, lead into objects, except in a URL.
fn claim<'a>(claims: &'a RoleClaims, name: &str) -> Option<&'a Value> {
    match name.split_once('.') {
        Some((first, rest)) if !name.contains("://") => {
            rest.split('.').try_fold(claims.get(first)?, |value, part| value.get(part))
        }
        _ => claims.get(name),
    }
}

fn has_signed(key: &VerificationKey, token: &UserToken<'_>) -> bool {
    let (message, signature) = (token.signed_bytes(), token.signature());
    let verified = match key.material() {
        KeyMaterial::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        KeyMaterial::P256(key) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key).verify(message, signature),
        KeyMaterial::Rsa { n, e } => {
            RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
        }
    };
    verified.is_ok()
}

fn unavailable() -> Problem {
    Problem::new(ErrorCode::IssuerUnavailable, "The keys of the token's issuer can't be fetched at the moment.")
}

#[cfg(test)]
mod tests;
