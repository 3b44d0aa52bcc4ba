//! Keys: the claims of a token, and what a verified token proves.
//!
//! A key is a JWT that the installation signed with Ed25519. [`verify`] is the only maker of a
//! [`Principal`]; both hosts call it. It knows neither a clock (`now` is a parameter) nor whether a
//! key was revoked: that is a look-up, which only the origin can do.

mod cache;
mod crypto;
mod set;
#[cfg(test)]
mod tests;

pub use cache::TokenCache;
pub use set::{KeySet, KeySetError, PublicKey, SigningError, SigningKey};

use crate::error::{ErrorCode, Problem};
use crate::ident::ProjectName;
use crate::limits::{AUTHORIZATION_MAX_BYTES, CLOCK_SKEW_MAX_SECONDS};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use uuid::Uuid;

/// The `iss` of every key.
const ISSUER: &str = "selkie";

/// What a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Everything inside its project.
    Full,
    /// Reads only.
    Read,
}

impl Access {
    /// `"full"` or `"read"`, as the claim `acc` and the command line write it.
    #[must_use]
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

/// The text is neither `full` nor `read`.
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

/// What a token says. Proves nothing by itself: only [`verify`] makes a [`Principal`] of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    iss: String,
    sub: String,
    prj: String,
    acc: Access,
    iat: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exp: Option<u64>,
}

impl Claims {
    /// The claims of a key of this installation. `key_id` is a UUIDv7; times are seconds since 1970.
    #[must_use]
    pub fn new(key_id: Uuid, project: &ProjectName, access: Access, issued_at: u64, expires_at: Option<u64>) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            sub: key_id.hyphenated().to_string(),
            prj: project.as_str().to_owned(),
            acc: access,
            iat: issued_at,
            exp: expires_at,
        }
    }

    /// What the claims prove once their signature holds; `None` if they are not such as we issue.
    fn into_principal(self, now: u64) -> Option<Principal> {
        let key_id = Uuid::try_parse(&self.sub).ok().filter(|id| {
            // One spelling of an id only: it is compared as text elsewhere.
            id.get_version_num() == 7 && id.hyphenated().to_string() == self.sub
        })?;
        let from_the_future = self.iat > now.saturating_add(CLOCK_SKEW_MAX_SECONDS);
        if self.iss != ISSUER || from_the_future {
            return None;
        }
        let project = ProjectName::parse(&self.prj).ok()?;
        Some(Principal { key_id, project: Arc::new(project), access: self.acc, expires_at: self.exp })
    }
}

/// Who calls: proven by a signature. Cheap to clone. Does not promise that the key was not revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    key_id: Uuid,
    project: Arc<ProjectName>,
    access: Access,
    expires_at: Option<u64>,
}

impl Principal {
    /// The id of the key, a UUIDv7.
    #[must_use]
    pub fn key_id(&self) -> Uuid {
        self.key_id
    }

    /// The project that the key belongs to.
    #[must_use]
    pub fn project(&self) -> &ProjectName {
        &self.project
    }

    /// What the key may do.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// The first second since 1970 at which the key is no longer taken, if it was issued with a lifetime.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_at
    }

    /// Whether the key's lifetime still runs at `now`; for a principal that was kept.
    ///
    /// # Errors
    /// `expired_key` from the second of `exp` on.
    pub fn check_lifetime(&self, now: u64) -> Result<(), Problem> {
        match self.expires_at {
            Some(end) if now >= end => Err(Problem::new(ErrorCode::ExpiredKey, "The key's lifetime is over.")
                .with_hint("Ask for a new key: selkie key create.")),
            _ => Ok(()),
        }
    }
}

/// Verifies an `Authorization` header: `Bearer <key>` in any case, or the bare `<key>`. `now` is in
/// seconds since 1970.
///
/// # Errors
/// `missing_key` for none or an empty one; `expired_key` from the second of `exp` on; `invalid_key`
/// for anything else that this installation did not sign just so.
pub fn verify(authorization: Option<&str>, keys: &KeySet, now: u64) -> Result<Principal, Problem> {
    Token::from_header(authorization)?.verify(keys, now)
}

/// The token of an `Authorization` header, not verified yet; bounded in length.
#[derive(Clone, Copy)]
pub struct Token<'a>(&'a str);

impl<'a> Token<'a> {
    /// Takes the token out of the header.
    ///
    /// # Errors
    /// `missing_key`, or `invalid_key` for one that is too long or of another scheme.
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

    /// What a cache may keep in place of the token.
    #[must_use]
    pub fn digest(self) -> TokenDigest {
        TokenDigest(Sha256::digest(self.0.as_bytes()).into())
    }

    /// Verifies the token: about 0.1 ms, so keep the outcome under its [`Token::digest`].
    ///
    /// # Errors
    /// As of [`verify`], but `missing_key`.
    pub fn verify(self, keys: &KeySet, now: u64) -> Result<Principal, Problem> {
        let claims = keys.open(self.0).ok_or_else(foreign)?;
        let principal = claims.into_principal(now).ok_or_else(foreign)?;
        principal.check_lifetime(now)?;
        Ok(principal)
    }
}

/// The place of the first blank.
fn blank(text: &str) -> Option<usize> {
    memchr::memchr2(b' ', b'\t', text.as_bytes())
}

/// The SHA-256 of a token: names it in caches, from which no key can be read back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

fn invalid(message: &'static str) -> Problem {
    Problem::new(ErrorCode::InvalidKey, message)
}

/// One answer for every kind of forgery: nothing to learn from.
fn foreign() -> Problem {
    invalid("The key is malformed or was not signed by this installation.")
}
