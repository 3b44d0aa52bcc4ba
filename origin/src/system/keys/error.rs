//! Errors of key management, for operators. No message contains a token.

use shared::ident::{ProjectName, RoleName};
use shared::key::SigningError;
use shared::limits::KEYS_PER_PROJECT_MAX_COUNT;

use crate::clock::utc;
use crate::database::admin::AdminError;
use crate::system::projects::ProjectError;

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error("there is no key {0}")]
    Unknown(String),
    #[error("the ids of several keys begin with {0}")]
    Ambiguous(String),
    #[error("a key's name has at most 100 characters and no control characters")]
    Name,
    #[error("a key lives for at least a second and at most 100 years")]
    Lifetime,
    #[error("the claims of a key take at most 1,024 bytes")]
    Claims,
    #[error("the project {0} has no role {1}")]
    NoRole(ProjectName, RoleName),
    #[error("the link was used before")]
    UsedLink,
    #[error("the key would outlive the key that creates it, which expires at {}", utc(*.0))]
    Outlives(u64),
    #[error("the project {0} has {KEYS_PER_PROJECT_MAX_COUNT} keys that are neither revoked nor expired, the maximum")]
    TooMany(ProjectName),
    #[error("the key that creates the key was revoked")]
    RevokedCreator,
    #[error("the key could not be signed")]
    Signing(#[from] SigningError),
    #[error("there is no signing key")]
    NoSigningKey,
}

impl KeyError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Admin(error) => error.hint().map(str::to_owned),
            Self::Project(error) => error.hint(),
            Self::Unknown(_) | Self::Ambiguous(_) => Some("`selkie key list` shows the ids".to_owned()),
            Self::Name | Self::Claims | Self::RevokedCreator | Self::Signing(_) => None,
            Self::TooMany(_) => Some("revoke keys, or give your users tokens of an issuer".to_owned()),
            Self::NoRole(project, _) => Some(format!("`selkie role list --project {project}` shows the roles")),
            Self::Lifetime => Some("write it as 90d, 12h or 1y".to_owned()),
            Self::UsedLink => Some("`selkie console` makes a new one".to_owned()),
            Self::Outlives(_) => Some("give expires, or create it with a key that lives longer".to_owned()),
            Self::NoSigningKey => Some("start the origin once, or run `selkie init`: either makes one".to_owned()),
        }
    }
}
