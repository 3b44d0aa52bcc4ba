//! How work on keys fails. For operators; no message holds a token.

use shared::key::SigningError;
use uuid::Uuid;

use crate::database::admin::AdminError;
use crate::system::projects::ProjectError;

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// MariaDB, or the way to it.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The project is not there.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// No such key.
    #[error("there is no key {0}")]
    Unknown(Uuid),
    /// The name can't be.
    #[error("a key's name has at most 100 characters and no control characters")]
    Name,
    /// The lifetime can't be.
    #[error("a key lives for at least a second and at most 100 years")]
    Lifetime,
    /// The JWT library refused to sign.
    #[error("the key could not be signed")]
    Signing(#[from] SigningError),
    /// Nothing to sign or verify with.
    #[error("there is no signing key")]
    NoSigningKey,
}

impl KeyError {
    /// How to mend it, if that can be said.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::Project(error) => error.hint(),
            Self::Unknown(_) => Some("`selkie key list` shows the ids".to_owned()),
            Self::Name | Self::Signing(_) => None,
            Self::Lifetime => Some("write it as 90d, 12h or 1y".to_owned()),
            Self::NoSigningKey => Some("start the origin once, or run `selkie init`: either makes one".to_owned()),
        }
    }
}
