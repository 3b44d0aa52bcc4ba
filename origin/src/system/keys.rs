//! Issues, lists and revokes keys, and rotates the signing key. [`registry`] authenticates requests. Neither tokens nor
//! private keys are stored: the seed of a signing key is derived from the installation's secret.

mod caller;
mod error;
pub mod registry;
pub mod tokens;

use std::sync::Arc;
use std::time::Duration;

use shared::ident::ProjectName;
use shared::key::{Grant, KeyClaims, KeySet, RoleGrant, SigningKey};
use shared::limits::{DEAD_KEYS_PER_PROJECT_MAX_COUNT, KEY_CLAIMS_MAX_BYTES, KEYS_PER_PROJECT_MAX_COUNT};
use uuid::Uuid;

pub use self::caller::Caller;
pub use self::error::KeyError;
pub use self::registry::KeyRegistry;
use crate::clock::now;
use crate::database::admin::{Admin, Inserted, KeyRow, KeyStatus, NewKey, SigningKeyRow};
use crate::database::errno;
use crate::query::role::{self, Role};
use crate::secret::InstallationSecret;
use crate::system::projects::Projects;

/// The number of valid signing keys: the newest key signs and verifies, the key before it only verifies.
const LIVE_SIGNING_KEYS: usize = 2;

/// The maximum length of a key's name: the width of the column.
const NAME_MAX_CHARS: usize = 100;

/// The maximum lifetime of a key. A longer lifetime is probably a mistake in the unit.
const LIFETIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub const LINK_LIFETIME: Duration = Duration::from_secs(60);

/// The least time for which the row of a revoked or expired key is kept: the row keeps a request that the key sent just
/// before from creating another key, and a link from being used twice.
const DEAD_KEPT_SECONDS: u64 = 5 * 60;

/// The maximum number of rows that the creation of a key deletes.
const FORGOTTEN_MAX_COUNT: usize = 100;

/// The lifetime of the console's key: a working day. The browser forgets the key when its tab is closed.
const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
const SESSION_NAME: &str = "console";

/// A new key with its token, which is stored nowhere.
#[derive(Clone)]
pub struct IssuedKey {
    pub id: Uuid,
    pub token: String,
    /// The time of expiry, in seconds since 1970.
    pub expires_at: Option<u64>,
    pub missing_claims: Vec<String>,
}

impl IssuedKey {
    pub fn warning(&self) -> Option<String> {
        let names = self.missing_claims.join(", ");
        (!names.is_empty()).then(|| {
            format!("The role's rules use the claims {names}, which this key lacks: those rules allow it nothing.")
        })
    }
}

struct Wanted {
    id: Uuid,
    created_by: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    pub retired: Vec<String>,
    /// The keys that become invalid, because a retired signing key has signed them.
    pub lost: Vec<KeyRow>,
}

#[derive(Clone, Debug)]
pub struct Keys {
    admin: Admin,
    secret: Arc<InstallationSecret>,
    projects: Projects,
}

impl Keys {
    pub fn new(admin: Admin, secret: Arc<InstallationSecret>, projects: Projects) -> Self {
        Self { admin, secret, projects }
    }

    pub async fn prepare(&self) -> Result<(), KeyError> {
        if self.live_signing_keys().await?.is_empty() {
            let kid = Uuid::now_v7().to_string();
            self.admin.locked(self.admin.add_first_signing_key(&kid, now())).await?;
        }
        Ok(())
    }

    pub async fn issue(
        &self,
        project: &ProjectName,
        grant: impl Into<Grant>,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<IssuedKey, KeyError> {
        let wanted = Wanted { id: Uuid::now_v7(), created_by: None };
        self.issue_as(wanted, project, grant.into(), name, lifetime).await
    }

    /// Issues a key for a caller. The key must not outlive the caller: access for a limited time stays limited.
    pub async fn issue_for(
        &self,
        creator: &Caller,
        grant: Grant,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<IssuedKey, KeyError> {
        let ends = lifetime.map(|lifetime| expiry(now(), lifetime)).transpose()?;
        match creator.expires_at() {
            Some(limit) if ends.is_none_or(|end| end > limit) => Err(KeyError::Outlives(limit)),
            _ => {
                let wanted = Wanted { id: Uuid::now_v7(), created_by: Some(creator.key_id()) };
                self.issue_as(wanted, creator.project(), grant, name, lifetime).await
            }
        }
    }

    /// Returns the token of a log-in link, which can be exchanged for a full key, once and within [`LINK_LIFETIME`].
    pub async fn link(&self, project: &ProjectName) -> Result<String, KeyError> {
        self.projects.require(project).await?;
        self.prepare().await?;
        let newest = self.live_signing_keys().await?.into_iter().next().ok_or(KeyError::NoSigningKey)?;
        let issued_at = now();
        let ends = expiry(issued_at, LINK_LIFETIME)?;
        let claims = KeyClaims::new(Uuid::now_v7(), project, Grant::Full, issued_at, Some(ends)).of_link();
        Ok(self.signing_key(&newest.kid).sign(&claims)?)
    }

    /// Issues the key for a link. The key gets the link's id: the unique index refuses a second key for the same link.
    pub async fn open_session(&self, link: Uuid, project: &ProjectName) -> Result<IssuedKey, KeyError> {
        let wanted = Wanted { id: link, created_by: None };
        match self.issue_as(wanted, project, Grant::Full, SESSION_NAME, Some(SESSION_LIFETIME)).await {
            Err(KeyError::Admin(error)) if error.errno() == Some(errno::DUP_ENTRY) => Err(KeyError::UsedLink),
            outcome => outcome,
        }
    }

    async fn issue_as(
        &self,
        Wanted { id, created_by }: Wanted,
        project: &ProjectName,
        grant: Grant,
        name: &str,
        lifetime: Option<Duration>,
    ) -> Result<IssuedKey, KeyError> {
        check_name(name)?;
        let missing_claims = match &grant {
            Grant::Role(grant) => self.check_role(project, grant).await?,
            Grant::Full | Grant::Read => Vec::new(),
        };
        let issued_at = now();
        let expires_at = lifetime.map(|lifetime| expiry(issued_at, lifetime)).transpose()?;
        self.projects.require(project).await?;
        let (live, dead) = self.admin.count_keys(project, issued_at).await?;
        if live >= KEYS_PER_PROJECT_MAX_COUNT {
            return Err(KeyError::TooMany(project.clone()));
        }
        if dead > DEAD_KEYS_PER_PROJECT_MAX_COUNT {
            let before = issued_at.saturating_sub(DEAD_KEPT_SECONDS);
            self.admin.forget_dead_keys(project, before, FORGOTTEN_MAX_COUNT).await?;
        }
        self.prepare().await?;
        let newest = self.live_signing_keys().await?.into_iter().next().ok_or(KeyError::NoSigningKey)?;
        // The key is recorded before it is signed, because a key without a row could not be revoked.
        let (grant_of, kid, created_at) = (&grant, &newest.kid, issued_at);
        let row = NewKey { id, project, name, grant: grant_of, kid, created_at, expires_at, created_by };
        if self.admin.insert_key(&row).await? == Inserted::Existing {
            return Err(KeyError::RevokedCreator);
        }
        let claims = KeyClaims::new(id, project, grant, issued_at, expires_at);
        Ok(IssuedKey { id, token: self.signing_key(&newest.kid).sign(&claims)?, expires_at, missing_claims })
    }

    /// Checks the role and the claims, and returns the claims that the role uses but the grant lacks.
    async fn check_role(&self, project: &ProjectName, grant: &RoleGrant) -> Result<Vec<String>, KeyError> {
        let bytes = serde_json::to_string(&grant.claims).map_or(usize::MAX, |text| text.len());
        if bytes > KEY_CLAIMS_MAX_BYTES {
            return Err(KeyError::Claims);
        }
        self.projects.require(project).await?;
        match self.admin.role(project, &grant.role).await? {
            Some(row) => {
                let role = Role::parse(&row.definition).unwrap_or_default();
                let given = role::Claims::new(&grant.claims);
                let missing = role.claims().into_iter().filter(|name| given.get(name).is_none());
                Ok(missing.map(str::to_owned).collect())
            }
            None => Err(KeyError::NoRole(project.clone(), grant.role.clone())),
        }
    }

    pub async fn page(
        &self,
        of: Option<&ProjectName>,
        after: Option<Uuid>,
        limit: u64,
    ) -> Result<Vec<KeyRow>, KeyError> {
        if let Some(project) = of {
            self.projects.require(project).await?;
        }
        Ok(self.admin.some_keys(of, after, limit).await?)
    }

    pub async fn list(&self, of: Option<&ProjectName>) -> Result<Vec<KeyRow>, KeyError> {
        self.page(of, None, u64::MAX).await
    }

    /// Returns the keys that the key has created, directly or indirectly.
    pub async fn made_by(&self, id: Uuid) -> Result<Vec<KeyRow>, KeyError> {
        Ok(self.admin.keys_made_by(id, now()).await?)
    }

    /// Revokes the keys that the key has created, directly or indirectly.
    pub async fn revoke_made_by(&self, id: Uuid) -> Result<Vec<KeyRow>, KeyError> {
        let mut revoked = Vec::new();
        loop {
            let made = self.made_by(id).await?;
            let Some(of) = made.first().map(|key| key.project.clone()) else {
                return Ok(revoked);
            };
            let ids: Vec<Uuid> = made.iter().map(|key| key.id).collect();
            self.admin.revoke_all(&ids, &of, now()).await?;
            // One of these keys may have created another key just before. A revoked key creates none.
            revoked.extend(made);
        }
    }

    pub async fn id_beginning_with(&self, text: &str) -> Result<Uuid, KeyError> {
        match self.admin.key_ids_beginning_with(text).await?.as_slice() {
            [] => Err(KeyError::Unknown(text.to_owned())),
            [id] => Ok(*id),
            _ => Err(KeyError::Ambiguous(text.to_owned())),
        }
    }

    /// Revokes a key, or does nothing if it was revoked before. Origins refuse the key within about a second.
    pub async fn revoke(&self, id: Uuid, of: Option<&ProjectName>) -> Result<KeyStatus, KeyError> {
        match self.admin.revoke_key(id, of, now()).await? {
            KeyStatus::Unknown => Err(KeyError::Unknown(id.to_string())),
            before => Ok(before),
        }
    }

    pub async fn plan_rotation(&self) -> Result<Rotation, KeyError> {
        let live = self.live_signing_keys().await?;
        let retired: Vec<String> = live.into_iter().skip(LIVE_SIGNING_KEYS - 1).map(|row| row.kid).collect();
        let now = now();
        let mut lost = self.admin.keys(None).await?;
        lost.retain(|key| retired.contains(&key.kid) && is_live(key, now));
        Ok(Rotation { retired, lost })
    }

    pub async fn rotate(&self) -> Result<Rotation, KeyError> {
        let rotation = async {
            let rotation = self.plan_rotation().await?;
            self.admin.rotate_signing_keys(&Uuid::now_v7().to_string(), &rotation.retired, now()).await?;
            Ok(rotation)
        };
        self.admin.locked(rotation).await
    }

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

/// Returns the key's state as a word. `now` is in seconds since 1970.
pub fn state(key: &KeyRow, signing: &KeySet, now: u64) -> &'static str {
    match key {
        _ if key.revoked_at.is_some() => "revoked",
        _ if !is_live(key, now) => "expired",
        _ if signing.kids().any(|kid| kid == key.kid) => "live",
        _ => "retired",
    }
}

/// Returns whether the key is valid. `now` is in seconds since 1970.
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
