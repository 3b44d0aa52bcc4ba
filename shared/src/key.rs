//! API keys: JWTs that the installation signed with Ed25519, and the [`Principal`] that a verified key proves. Doesn't
//! check whether a key is revoked, which only the origin knows. [`UserToken`] is a JWT of another issuer.

mod cache;
mod crypto;
mod issuers;
mod jwks;
mod set;
#[cfg(test)]
mod tests;
mod user_token;

pub use cache::{TokenCache, VerifiedTokens};
pub use issuers::{EdgeIssuer, EdgeIssuers, EdgeIssuersFault};
pub use jwks::{
    JwkSetFault, KeyFault, KeyMaterial, NoKey, UnusableKey, UserTokenAlgorithm, VerificationKey, VerificationKeys,
};
pub use set::{KeySet, KeySetError, PublicKey, SigningError, SigningKey};
pub use user_token::{UserIdentity, UserToken, UserTokenHeader, subject_id, untrusted};

use crate::error::{ErrorCode, Problem};
use crate::ident::{ProjectName, RoleName};
use crate::limits::{AUTHORIZATION_MAX_BYTES, CLOCK_SKEW_MAX_SECONDS};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use uuid::Uuid;

const ISSUER: &str = "selkie";

/// The claim `iss` of log-in links to the console. It differs from that of API keys, so that a link is no key.
const LINK_ISSUER: &str = "selkie-console";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    Full,
    Read,
}

impl Access {
    pub const fn as_str(self) -> &'static str {
        match self {
            Access::Full => "full",
            Access::Read => "read",
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("access is \"full\" or \"read\"")]
pub struct UnknownAccess;

impl FromStr for Access {
    type Err = UnknownAccess;

    fn from_str(text: &str) -> Result<Self, UnknownAccess> {
        match text {
            "full" => Ok(Access::Full),
            "read" => Ok(Access::Read),
            _ => Err(UnknownAccess),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Grant {
    Full,
    Read,
    Role(Arc<RoleGrant>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoleGrant {
    pub role: RoleName,
    pub claims: RoleClaims,
}

pub type RoleClaims = BTreeMap<String, serde_json::Value>;

impl Grant {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Full => "full",
            Self::Read => "read",
            Self::Role(grant) => grant.role.as_str(),
        }
    }
}

impl From<Access> for Grant {
    fn from(access: Access) -> Self {
        match access {
            Access::Full => Self::Full,
            Access::Read => Self::Read,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AccessClaim {
    Full,
    Read,
    Role,
}

/// The claims of an API key or console link. They are unchecked: [`verify`] checks them and returns a [`Principal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyClaims {
    iss: String,
    sub: String,
    prj: String,
    acc: AccessClaim,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(default, skip_serializing_if = "RoleClaims::is_empty")]
    clm: RoleClaims,
    iat: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<u64>,
}

impl KeyClaims {
    /// `key_id` must be a UUIDv7; times are seconds since 1970.
    pub fn new(
        key_id: Uuid,
        project: &ProjectName,
        grant: impl Into<Grant>,
        issued_at: u64,
        expires_at: Option<u64>,
    ) -> Self {
        let (acc, role, clm) = match grant.into() {
            Grant::Full => (AccessClaim::Full, None, RoleClaims::new()),
            Grant::Read => (AccessClaim::Read, None, RoleClaims::new()),
            Grant::Role(grant) => (AccessClaim::Role, Some(grant.role.as_str().to_owned()), grant.claims.clone()),
        };
        Self {
            iss: ISSUER.to_owned(),
            sub: key_id.hyphenated().to_string(),
            prj: project.as_str().to_owned(),
            acc,
            role,
            clm,
            iat: issued_at,
            exp: expires_at,
        }
    }

    pub fn of_link(mut self) -> Self {
        LINK_ISSUER.clone_into(&mut self.iss);
        self
    }

    /// Checks the claims except the expiry; the signature must have been verified. Returns `None` for invalid claims,
    /// also if the role does not fit `acc` or `iat` is more than [`CLOCK_SKEW_MAX_SECONDS`] after `now`.
    fn into_principal(self, issuer: &str, now: u64) -> Option<Principal> {
        let key_id = Uuid::try_parse(&self.sub).ok().filter(|id| {
            // Other code compares ids as text, so only one spelling is accepted.
            id.get_version_num() == 7 && id.hyphenated().to_string() == self.sub
        })?;
        let from_the_future = self.iat > now.saturating_add(CLOCK_SKEW_MAX_SECONDS);
        if self.iss != issuer || from_the_future {
            return None;
        }
        let project = ProjectName::parse(&self.prj).ok()?;
        let grant = match (self.acc, self.role) {
            (AccessClaim::Full, None) => Grant::Full,
            (AccessClaim::Read, None) => Grant::Read,
            (AccessClaim::Role, Some(name)) => {
                Grant::Role(Arc::new(RoleGrant { role: RoleName::parse(&name).ok()?, claims: self.clm }))
            }
            _ => return None,
        };
        Some(Principal { key_id, project: Arc::new(project), grant, expires_at: self.exp })
    }
}

/// The version of the UUIDs that stand for users.
const USER_UUID_VERSION: usize = 8;

/// A caller, proven by the signature of an API key, a console link or a user's token. The key may be revoked by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    key_id: Uuid,
    project: Arc<ProjectName>,
    grant: Grant,
    expires_at: Option<u64>,
}

impl Principal {
    /// Creates a user's principal. `subject` is the result of [`subject_id`]; `expires_at` is in seconds since 1970.
    pub fn of_user(project: ProjectName, subject: Uuid, grant: Grant, expires_at: u64) -> Self {
        Self { key_id: subject, project: Arc::new(project), grant, expires_at: Some(expires_at) }
    }

    /// Creates the principal of a webhook, which never expires.
    pub fn of_webhook(project: ProjectName, id: Uuid) -> Self {
        Self { key_id: id, project: Arc::new(project), grant: Grant::Full, expires_at: None }
    }

    /// Returns the UUIDv7 of an API key or link, or the UUIDv8 of a user.
    pub fn key_id(&self) -> Uuid {
        self.key_id
    }

    /// Returns the id of an API key, link or webhook; `None` for a user.
    pub fn api_key_id(&self) -> Option<Uuid> {
        (self.key_id.get_version_num() != USER_UUID_VERSION).then_some(self.key_id)
    }

    pub fn project(&self) -> &ProjectName {
        &self.project
    }

    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    fn without_claims(mut self) -> Self {
        if let Grant::Role(grant) = &mut self.grant {
            *grant = Arc::new(RoleGrant { role: grant.role.clone(), claims: RoleClaims::new() });
        }
        self
    }

    /// Returns the second since 1970 from which on the key is invalid; `None` if it never expires.
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// Fails with `expired_key` if `now` (seconds since 1970) is at or after [`Principal::expires_at`].
    pub fn check_lifetime(&self, now: u64) -> Result<(), Problem> {
        match self.expires_at {
            Some(end) if now >= end => Err(Problem::new(ErrorCode::ExpiredKey, "The key's lifetime is over.")
                .with_hint("Ask for a new key: selkie key create.")),
            _ => Ok(()),
        }
    }
}

/// Verifies an API key in the form `Bearer <key>` or `<key>`; `now` is in seconds since 1970. Fails with `missing_key`;
/// with `expired_key` from `exp` on; with `invalid_key` if the key is malformed, was not signed by this installation or
/// was issued in the future.
pub fn verify(authorization: Option<&str>, keys: &KeySet, now: u64) -> Result<Principal, Problem> {
    Token::from_header(authorization)?.verify(keys, now)
}

/// An unverified token of at most [`AUTHORIZATION_MAX_BYTES`] bytes.
#[derive(Clone, Copy)]
pub struct Token<'a>(&'a str);

impl<'a> Token<'a> {
    /// Fails with `missing_key` without a token; with `invalid_key` if the header is too long, has another scheme than
    /// `Bearer`, or has white space within the token.
    pub fn from_header(authorization: Option<&'a str>) -> Result<Self, Problem> {
        let header = authorization.unwrap_or_default();
        if header.len() > AUTHORIZATION_MAX_BYTES {
            return Err(invalid("The Authorization header is too long to be a key."));
        }
        let header = header.trim();
        let (scheme, rest) = match blank(header) {
            Some(at) => (Some(&header[..at]), header[at + 1..].trim()),
            None => (None, header),
        };
        let is_bearer = |word: &str| word.eq_ignore_ascii_case("bearer");
        if rest.is_empty() || (scheme.is_none() && is_bearer(rest)) {
            return Err(Problem::new(ErrorCode::MissingKey, "The request carries no key.")
                .with_hint("Send it as the header Authorization: Bearer <key>."));
        }
        if !scheme.is_none_or(is_bearer) || blank(rest).is_some() {
            return Err(invalid("The Authorization header is not of the form Bearer <key>."));
        }
        Ok(Self(rest))
    }

    pub fn digest(self) -> TokenDigest {
        TokenDigest(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Verifies as [`verify`] does. Takes about 0.1 ms: callers should cache the principal by [`Token::digest`].
    pub fn verify(self, keys: &KeySet, now: u64) -> Result<Principal, Problem> {
        self.verify_of(ISSUER, keys, now)
    }

    /// Verifies the token of a log-in link to the console. Doesn't check whether the link was used before.
    pub fn verify_link(self, keys: &KeySet, now: u64) -> Result<Principal, Problem> {
        self.verify_of(LINK_ISSUER, keys, now)
    }

    fn verify_of(self, issuer: &str, keys: &KeySet, now: u64) -> Result<Principal, Problem> {
        let claims = keys.open(self.0).ok_or_else(foreign)?;
        let principal = claims.into_principal(issuer, now).ok_or_else(foreign)?;
        principal.check_lifetime(now)?;
        Ok(principal)
    }
}

fn blank(text: &str) -> Option<usize> {
    memchr::memchr2(b' ', b'\t', text.as_bytes())
}

/// The SHA-256 of a token: a cache key that does not reveal the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::fingerprint::hex(&self.0))
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidKey, message)
}

/// Returns the same problem for every kind of forgery, so that a forger learns nothing.
fn foreign() -> Problem {
    invalid("The key is malformed or was not signed by this installation.")
}
