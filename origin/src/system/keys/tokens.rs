//! Verifies tokens of other issuers: finds the issuer that a project trusts, checks signature and claims, and determines
//! the role. Does not know what a role allows.

pub mod jwks;
pub mod remote;

use std::sync::Arc;

use serde_json::Value;
use shared::error::{ErrorCode, Problem};
use shared::ident::RoleName;
use shared::key::{Grant, RoleClaims, RoleGrant, UserToken, subject_id};
use shared::limits::USER_TOKEN_LEEWAY_SECONDS;
use uuid::Uuid;

use self::jwks::{NoKey, VerificationKeys};
use self::remote::{RemoteKeys, parse_url};
use crate::database::admin::{IssuerKeys, IssuerRow, KeyGrant};

/// The `typ` of tokens that give access (RFC 7519, RFC 9068), in lower case. Others, such as `logout+jwt`, are issued
/// for other purposes with the same keys.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// The issuers of all projects.
#[derive(Debug, Default)]
pub(super) struct Issuers(Vec<Arc<Issuer>>);

/// An issuer whose tokens are accepted for one project.
#[derive(Debug)]
pub struct Issuer {
    row: IssuerRow,
    keys: Keys,
}

#[derive(Debug)]
enum Keys {
    Fixed(Arc<VerificationKeys>),
    /// Issuers of several projects with the same URL share their keys.
    Remote(Arc<RemoteKeys>),
}

/// The claims that every token must have, after their check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) subject: Uuid,
    /// The second since 1970 from which on the token is refused.
    pub(super) expires_at: u64,
}

impl Issuers {
    /// Creates the issuers of these rows, with the keys that `before` has fetched.
    pub(super) fn new(rows: Vec<IssuerRow>, before: &Self) -> Self {
        let mut issuers: Vec<Arc<Issuer>> = Vec::with_capacity(rows.len());
        for row in rows {
            let known = before.0.iter().find(|issuer| issuer.row == row);
            let issuer = known.cloned().or_else(|| {
                let keys = Keys::of(&row, || {
                    let remotes = issuers.iter().chain(&before.0).filter_map(|issuer| issuer.remote());
                    remotes.cloned().collect()
                })?;
                Some(Arc::new(Issuer { row, keys }))
            });
            issuers.extend(issuer);
        }
        Self(issuers)
    }

    /// Returns whether the issuer is still trusted under the same conditions.
    pub(super) fn has(&self, issuer: &Issuer) -> bool {
        self.0.iter().any(|other| other.row == issuer.row)
    }

    /// Returns the issuer that may have issued the token.
    ///
    /// # Errors
    /// `invalid_key` if no issuer has the token's `iss` and one of its audiences, or the token has audiences of several
    /// projects.
    pub(super) fn of(&self, token: &UserToken<'_>) -> Result<&Arc<Issuer>, Problem> {
        let audiences: &[Value] = match token.claims().get("aud") {
            Some(Value::Array(several)) => several,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let is_meant = |issuer: &&Arc<Issuer>| {
            issuer.row.issuer == token.issuer()
                && audiences.iter().any(|audience| audience.as_str() == Some(&issuer.row.audience))
        };
        let mut meant = self.0.iter().filter(is_meant);
        match (meant.next(), meant.next()) {
            (Some(issuer), None) => Ok(issuer),
            _ => Err(foreign()),
        }
    }
}

impl Keys {
    /// Returns the keys of a row, one of `remotes` if it has the same URL. `None` if the row is malformed, which is
    /// logged.
    fn of(row: &IssuerRow, remotes: impl FnOnce() -> Vec<Arc<RemoteKeys>>) -> Option<Self> {
        let malformed = |error: &dyn std::fmt::Display| {
            let (project, issuer) = (row.project.as_str(), &*row.issuer);
            tracing::warn!(project, issuer, %error, "the keys of an issuer can't be read; its tokens are refused");
        };
        match &row.keys {
            IssuerKeys::Url(url) => {
                let url = parse_url(url).inspect_err(|error| malformed(error)).ok()?;
                let known = remotes().into_iter().find(|remote| *remote.url() == url);
                Some(Self::Remote(known.unwrap_or_else(|| Arc::new(RemoteKeys::new(url)))))
            }
            IssuerKeys::Set(text) => {
                let (keys, _) = VerificationKeys::parse(text).inspect_err(|error| malformed(error)).ok()?;
                Some(Self::Fixed(Arc::new(keys)))
            }
        }
    }
}

impl Issuer {
    #[must_use]
    pub fn row(&self) -> &IssuerRow {
        &self.row
    }

    fn remote(&self) -> Option<&Arc<RemoteKeys>> {
        match &self.keys {
            Keys::Remote(remote) => Some(remote),
            Keys::Fixed(_) => None,
        }
    }

    /// Checks that this issuer has signed the token. Fetches keys that are not known yet.
    ///
    /// # Errors
    /// `invalid_key` if not; `issuer_unavailable` if its keys could not be fetched.
    pub(super) async fn check_signature(&self, token: &UserToken<'_>, now: u64) -> Result<(), Problem> {
        let header = token.header();
        let is_access = header.typ.as_ref().is_none_or(|typ| TYPES.contains(&&*typ.to_ascii_lowercase()));
        // No extension is known that a verifier would have to understand.
        if header.crit.is_some() || !is_access {
            return Err(foreign());
        }
        let keys = match &self.keys {
            Keys::Fixed(keys) => Arc::clone(keys),
            Keys::Remote(remote) => remote.keys(now).await.ok_or_else(unavailable)?,
        };
        let outcome = keys.find(header).map(|key| key.has_signed(token));
        let is_signed = match (outcome, &self.keys) {
            (Ok(is_signed), _) => is_signed,
            (Err(NoKey::UnknownId), Keys::Remote(remote)) => match remote.newer(now).await {
                Some(keys) => keys.find(header).is_ok_and(|key| key.has_signed(token)),
                None => false,
            },
            (Err(_), _) => false,
        };
        if is_signed { Ok(()) } else { Err(foreign()) }
    }

    /// Checks `exp`, `nbf` and `sub` of a token whose signature was verified. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// `expired_key` after `exp`; `invalid_key` before `nbf`, without `exp` or without `sub`.
    pub(super) fn identify(&self, claims: &RoleClaims, now: u64) -> Result<Identity, Problem> {
        let expiry = seconds(claims, "exp")?
            .ok_or_else(|| invalid("The token has no exp, the second since 1970 at which it expires."))?;
        let expires_at = expiry.saturating_add(USER_TOKEN_LEEWAY_SECONDS);
        if now >= expires_at {
            return Err(Problem::new(ErrorCode::ExpiredKey, "The token's lifetime is over.")
                .with_hint("Ask its issuer for a new one."));
        }
        if seconds(claims, "nbf")?.is_some_and(|start| start > now.saturating_add(USER_TOKEN_LEEWAY_SECONDS)) {
            return Err(invalid("The token is not valid yet: its nbf is in the future.")
                .with_hint("Compare the clocks of the issuer and of the origin."));
        }
        let subject = match claims.get("sub") {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(invalid("The token has no sub, which names its user.")),
        };
        Ok(Identity { subject: subject_id(&self.row.issuer, &subject), expires_at })
    }

    /// Returns what a verified token's claims allow.
    ///
    /// # Errors
    /// `role_forbids` if they give no role.
    pub(super) fn grant(&self, claims: RoleClaims) -> Result<Grant, Problem> {
        match self.role_of(&claims) {
            Some(KeyGrant::Access(access)) => Ok(access.into()),
            Some(KeyGrant::Role(role)) => Ok(Grant::Role(Arc::new(RoleGrant { role, claims }))),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The token's claims give it no role.").with_hint(
                "selkie issuer list shows the claim that names the role; full and read must be mapped explicitly.",
            )),
        }
    }

    /// Returns the role that the claim names: a text by the map or, if it is not mapped, the role of that name; of a
    /// list the first that is mapped. The fixed role if the claim is missing or nothing of its list is mapped.
    fn role_of(&self, claims: &RoleClaims) -> Option<KeyGrant> {
        let fixed = || self.row.role.clone().map(KeyGrant::Role);
        let Some(name) = &self.row.role_claim else {
            return fixed();
        };
        match claim(claims, name) {
            None | Some(Value::Null) => fixed(),
            Some(Value::String(text)) => {
                // A name that is not mapped can't be `full` or `read`: no role has these names.
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

/// Returns the claim of this name, or the member of an object that a name such as `app_metadata.role` leads to.
fn claim<'a>(claims: &'a RoleClaims, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        rest.split('.').try_fold(claims.get(first)?, |value, part| value.get(part))
    })
}

/// Returns a claim that is a time in whole seconds since 1970; `None` without it.
fn seconds(claims: &RoleClaims, name: &str) -> Result<Option<u64>, Problem> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    // Fractions are allowed (RFC 7519, 2), and rounded down. The cast saturates.
    let whole = value.as_u64().or_else(|| value.as_f64().filter(|time| *time >= 0.0).map(|time| time as u64));
    match whole {
        Some(whole) => Ok(Some(whole)),
        None => Err(invalid(format!("The token's {name} is no number of seconds since 1970."))),
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidKey, message)
}

/// Returns the same problem for every token that no trusted issuer has signed, so that a forger learns nothing.
fn foreign() -> Problem {
    invalid("The token was not signed by an issuer that this installation trusts for its audience.")
        .with_hint("Compare iss, aud, kid and alg of the token with selkie issuer list and the issuer's keys.")
}

fn unavailable() -> Problem {
    Problem::new(ErrorCode::IssuerUnavailable, "The keys of the token's issuer can't be fetched at the moment.")
}

#[cfg(test)]
mod tests;
