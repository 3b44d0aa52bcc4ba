//! Keys: issuing, listing and revoking them, and rotating the key that signs them.
//!
//! No token and no private key is stored: the signing key's seed is derived from the installation's
//! secret and its id. What a server asks at each request is in [`registry`].

mod error;
pub mod registry;

use std::sync::Arc;
use std::time::Duration;

use shared::ident::ProjectName;
use shared::key::{Access, Claims, KeySet, SigningKey};
use uuid::Uuid;

pub use self::error::KeyError;
pub use self::registry::KeyRegistry;
use crate::clock::now;
use crate::database::admin::{Admin, KeyRow, KeyStatus, NewKey, SigningKeyRow};
use crate::secret::InstallationSecret;
use crate::system::projects::Projects;

/// Signing keys that verify at once: the newest signs, the one before lets its tokens live on.
const LIVE_SIGNING_KEYS: usize = 2;

/// Characters of a key's name: the width of its column.
const NAME_MAX_CHARS: usize = 100;

/// The longest lifetime, a hundred years: more is a mistake in the unit.
const LIFETIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A key just issued: the only moment at which its token is known.
#[derive(Clone)]
pub struct IssuedKey {
    /// Its id.
    pub id: Uuid,
    /// The key itself.
    pub token: String,
    /// When it ends by itself, seconds since 1970.
    pub expires_at: Option<u64>,
}

/// What a rotation of the signing key does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Ids of signing keys that are retired.
    pub retired: Vec<String>,
    /// Keys that still work and were signed by those: they end with them.
    pub lost: Vec<KeyRow>,
}

/// The installation's keys. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Keys {
    admin: Admin,
    secret: Arc<InstallationSecret>,
    projects: Projects,
}

impl Keys {
    /// Keys under this administrator.
    #[must_use]
    pub fn new(admin: Admin, secret: Arc<InstallationSecret>, projects: Projects) -> Self {
        Self { admin, secret, projects }
    }

    /// What a start does: there is a signing key.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn prepare(&self) -> Result<(), KeyError> {
        if self.live_signing_keys().await?.is_empty() {
            let lock = self.admin.lock().await?;
            let kid = Uuid::now_v7().to_string();
            let outcome = self.admin.add_first_signing_key(&kid, now()).await;
            lock.release().await;
            outcome?;
        }
        Ok(())
    }

    /// Issues a key. `lifetime` counts from now.
    ///
    /// # Errors
    /// The project is not there, the name or the lifetime can't be; MariaDB failed.
    pub async fn issue(
        &self,
        project: &ProjectName,
        access: Access,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<IssuedKey, KeyError> {
        check_name(name)?;
        let issued_at = now();
        let expires_at = lifetime.map(|lifetime| expiry(issued_at, lifetime)).transpose()?;
        self.projects.require(project).await?;
        self.prepare().await?;
        let newest = self.live_signing_keys().await?.into_iter().next().ok_or(KeyError::NoSigningKey)?;
        let id = Uuid::now_v7();
        // Recorded first: a key that nobody could revoke must not exist.
        let row = NewKey { id, project, name, access, kid: &newest.kid, created_at: issued_at, expires_at };
        self.admin.insert_key(&row).await?;
        let claims = Claims::new(id, project, access, issued_at, expires_at);
        Ok(IssuedKey { id, token: self.signing_key(&newest.kid).sign(&claims)?, expires_at })
    }

    /// Keys, oldest first; of one project, or of all. Revoked and expired ones too.
    ///
    /// # Errors
    /// The project is not there; MariaDB failed.
    pub async fn list(&self, of: Option<&ProjectName>) -> Result<Vec<KeyRow>, KeyError> {
        if let Some(project) = of {
            self.projects.require(project).await?;
        }
        Ok(self.admin.keys(of).await?)
    }

    /// Revokes a key: every origin refuses it within a second or so. Again is no fault.
    ///
    /// # Errors
    /// There is no such key; MariaDB failed.
    pub async fn revoke(&self, id: Uuid) -> Result<KeyStatus, KeyError> {
        match self.admin.revoke_key(id, now()).await? {
            KeyStatus::Unknown => Err(KeyError::Unknown(id)),
            before => Ok(before),
        }
    }

    /// What [`Keys::rotate`] would do now.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn plan_rotation(&self) -> Result<Rotation, KeyError> {
        let live = self.live_signing_keys().await?;
        let retired: Vec<String> = live.into_iter().skip(LIVE_SIGNING_KEYS - 1).map(|row| row.kid).collect();
        let now = now();
        let mut lost = self.admin.keys(None).await?;
        lost.retain(|key| retired.contains(&key.kid) && is_live(key, now));
        Ok(Rotation { retired, lost })
    }

    /// Adds a signing key, with which keys are signed from now on, and retires what is beyond two.
    ///
    /// # Errors
    /// MariaDB failed.
    pub async fn rotate(&self) -> Result<Rotation, KeyError> {
        let lock = self.admin.lock().await?;
        let outcome = async {
            let rotation = self.plan_rotation().await?;
            self.admin.rotate_signing_keys(&Uuid::now_v7().to_string(), &rotation.retired, now()).await?;
            Ok(rotation)
        }
        .await;
        lock.release().await;
        outcome
    }

    /// The public keys that verify now, newest first: what the edge is given.
    ///
    /// # Errors
    /// There is none yet; MariaDB failed.
    pub async fn public_keys(&self) -> Result<KeySet, KeyError> {
        let live = self.live_signing_keys().await?;
        let keys = live.iter().map(|row| self.signing_key(&row.kid).public()).collect();
        KeySet::new(keys).map_err(|_| KeyError::NoSigningKey)
    }

    pub(crate) async fn live_signing_keys(&self) -> Result<Vec<SigningKeyRow>, KeyError> {
        let mut rows = self.admin.signing_keys().await?;
        rows.retain(|row| row.retired_at.is_none());
        rows.truncate(LIVE_SIGNING_KEYS);
        Ok(rows)
    }

    fn signing_key(&self, kid: &str) -> SigningKey {
        SigningKey::from_seed(kid, &self.secret.derive(&format!("signing-key:{kid}")))
    }
}

/// Whether a key still works at `now`, as far as its row says.
#[must_use]
pub fn is_live(key: &KeyRow, now: u64) -> bool {
    key.revoked_at.is_none() && key.expires_at.is_none_or(|end| now < end)
}

fn check_name(name: &str) -> Result<(), KeyError> {
    if name.chars().count() > NAME_MAX_CHARS || name.chars().any(char::is_control) {
        return Err(KeyError::Name);
    }
    Ok(())
}

fn expiry(issued_at: u64, lifetime: Duration) -> Result<u64, KeyError> {
    if lifetime < Duration::from_secs(1) || lifetime > LIFETIME_MAX {
        return Err(KeyError::Lifetime);
    }
    Ok(issued_at + lifetime.as_secs())
}
