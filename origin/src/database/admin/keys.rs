//! Rows of `selkie.keys` and `selkie.signing_keys`. They record that a key was issued; neither private keys nor tokens
//! are stored.

use crate::database::ask;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, TxOpts, Value};
use shared::ident::{ProjectName, RoleName};
use shared::key::{Access, Grant};
use std::collections::HashMap;
use uuid::Uuid;

use super::projects::project;
use super::{Admin, AdminError};

/// The maximum number of ids in one statement.
const IDS_MAX_COUNT: usize = 500;

/// Increments the version that [`Admin::key_changes`] returns, which origins poll each second. Part of every
/// transaction that revokes keys, adds or retires signing keys, changes roles or issuers, or deletes a project.
pub(super) const CHANGED: &str = "UPDATE selkie.key_changes SET version = version + 1 WHERE id = 1";

/// An API key to record. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// The key's id, a UUIDv7.
    pub id: Uuid,
    pub project: &'a ProjectName,
    /// The key's label, shown to people.
    pub name: &'a str,
    pub grant: &'a Grant,
    /// The id of the signing key that signed the token.
    pub kid: &'a str,
    pub created_at: u64,
    /// `None` if the key never expires.
    pub expires_at: Option<u64>,
}

/// A row of `selkie.keys`: an API key. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub id: Uuid,
    pub project: ProjectName,
    /// The key's label, shown to people.
    pub name: String,
    pub grant: KeyGrant,
    /// The id of the signing key that signed the token.
    pub kid: String,
    pub created_at: u64,
    /// `None` if the key never expires.
    pub expires_at: Option<u64>,
    pub revoked_at: Option<u64>,
    /// The time of the key's last use, recorded with a delay of some seconds; `None` if no use is recorded.
    pub last_used_at: Option<u64>,
}

/// The rights of a recorded key, or of tokens with a certain role claim (see [`IssuerRow`](super::IssuerRow)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyGrant {
    Access(Access),
    Role(RoleName),
}

impl KeyGrant {
    /// Returns `"full"`, `"read"` or the role's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Access(access) => access.as_str(),
            Self::Role(name) => name.as_str(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    /// The key is recorded and not revoked. The status ignores expiry: the key may have expired.
    Live,
    Revoked,
    /// `selkie.keys` has no row for the key, or none of the requested project.
    Unknown,
}

/// A recorded signing key. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyRow {
    pub kid: String,
    pub created_at: u64,
    pub retired_at: Option<u64>,
}

type RawKey = (String, String, String, String, Option<String>, String, u64, Option<u64>, Option<u64>, Option<u64>);

impl Admin {
    /// Records an issued key. Does not increment the version that [`Admin::key_changes`] returns.
    ///
    /// # Errors
    /// [`AdminError::Refused`] if the project or the signing key does not exist, or the id is already recorded; other
    /// errors of MariaDB.
    pub async fn insert_key(&self, key: &NewKey<'_>) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        // An older version of this program ignores the column `role`: it lists a key with a role as a read key, and
        // refuses its token.
        let (access, role) = match key.grant {
            Grant::Full => (Access::Full.as_str(), None),
            Grant::Read => (Access::Read.as_str(), None),
            Grant::Role(grant) => (Access::Read.as_str(), Some(grant.role.as_str())),
        };
        let values: Params =
            (key.id.to_string(), key.project.as_str(), key.name, access, role, key.kid, key.created_at, key.expires_at)
                .into();
        self.within(conn.exec_drop(
            "INSERT INTO selkie.`keys` (id, project, name, access, role, kid, created_at, expires_at)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        ))
        .await
    }

    /// Returns all recorded keys of project `of`, or of all projects if `of` is `None`, oldest first. Includes revoked
    /// and expired keys.
    pub async fn keys(&self, of: Option<&ProjectName>) -> Result<Vec<KeyRow>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<RawKey> = self
            .within(ask::all(conn.exec_iter(
                "SELECT id, project, name, access, role, kid, created_at, expires_at, revoked_at, last_used_at
                 FROM selkie.`keys` WHERE ? IS NULL OR project = ? ORDER BY created_at, id",
                (of.map(ProjectName::as_str), of.map(ProjectName::as_str)),
            )))
            .await?;
        rows.into_iter().map(key_row).collect()
    }

    /// Returns the status of a key of project `of`, or of any project if `of` is `None`. A key of another project is
    /// [`KeyStatus::Unknown`].
    pub async fn key_status(&self, id: Uuid, of: Option<&ProjectName>) -> Result<KeyStatus, AdminError> {
        let mut conn = self.conn().await?;
        let project = of.map(ProjectName::as_str);
        let found: Option<u8> = self
            .within(ask::first(conn.exec_iter(
                "SELECT revoked_at IS NOT NULL FROM selkie.`keys` WHERE id = ? AND (? IS NULL OR project = ?)",
                (id.to_string(), project, project),
            )))
            .await?;
        Ok(match found {
            Some(0) => KeyStatus::Live,
            Some(_) => KeyStatus::Revoked,
            None => KeyStatus::Unknown,
        })
    }

    /// Returns the status of each of `ids`, whichever project the keys belong to.
    pub async fn key_statuses(&self, ids: &[Uuid]) -> Result<HashMap<Uuid, KeyStatus>, AdminError> {
        let mut statuses: HashMap<Uuid, KeyStatus> = ids.iter().map(|id| (*id, KeyStatus::Unknown)).collect();
        for ids in ids.chunks(IDS_MAX_COUNT) {
            let mut conn = self.conn().await?;
            let query = format!(
                "SELECT id, revoked_at IS NOT NULL FROM selkie.`keys` WHERE id IN ({})",
                vec!["?"; ids.len()].join(", ")
            );
            let values: Vec<Value> = ids.iter().map(|id| id.to_string().into()).collect();
            let rows: Vec<(String, bool)> =
                self.within(ask::all(conn.exec_iter(query, Params::Positional(values)))).await?;
            for (id, is_revoked) in rows {
                let id = Uuid::try_parse(&id).map_err(|_| AdminError::Corrupt("key id"))?;
                statuses.insert(id, if is_revoked { KeyStatus::Revoked } else { KeyStatus::Live });
            }
        }
        Ok(statuses)
    }

    /// Revokes a key of project `of`, or of any project if `of` is `None`, as of `now`. Returns the key's status before
    /// the call; changes nothing unless that status is [`KeyStatus::Live`].
    pub async fn revoke_key(&self, id: Uuid, of: Option<&ProjectName>, now: u64) -> Result<KeyStatus, AdminError> {
        let before = self.key_status(id, of).await?;
        if before == KeyStatus::Live {
            let revoke = "UPDATE selkie.`keys` SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL";
            self.change_keys(vec![(revoke, (now, id.to_string()).into())]).await?;
        }
        Ok(before)
    }

    /// Revokes all keys of a project that are not revoked yet, as of `now`, and returns their number.
    pub async fn revoke_keys_of(&self, project: &ProjectName, now: u64) -> Result<usize, AdminError> {
        let mut rows = self.keys(Some(project)).await?;
        rows.retain(|row| row.revoked_at.is_none());
        let revoke = "UPDATE selkie.`keys` SET revoked_at = ? WHERE project = ? AND revoked_at IS NULL";
        self.change_keys(vec![(revoke, (now, project.as_str()).into())]).await?;
        Ok(rows.len())
    }

    /// Returns all recorded signing keys, retired ones too, newest first.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKeyRow>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(String, u64, Option<u64>)> = self
            .within(ask::all(conn.query_iter(
                // Ids are UUIDv7, so they sort keys that were made in the same second by their age.
                "SELECT kid, created_at, retired_at FROM selkie.signing_keys ORDER BY created_at DESC, kid DESC",
            )))
            .await?;
        Ok(rows
            .into_iter()
            .map(|(kid, created_at, retired_at)| SigningKeyRow { kid, created_at, retired_at })
            .collect())
    }

    /// Records the signing key `kid`, unless a signing key that is not retired is recorded already.
    pub async fn add_first_signing_key(&self, kid: &str, now: u64) -> Result<(), AdminError> {
        let add = "INSERT INTO selkie.signing_keys (kid, created_at) SELECT ?, ? FROM DUAL
            WHERE NOT EXISTS (SELECT 1 FROM selkie.signing_keys WHERE retired_at IS NULL)";
        self.change_keys(vec![(add, (kid, now).into())]).await
    }

    /// Records the signing key `added` and retires the signing keys `retired`, in one transaction. Keys that were
    /// retired before keep their time.
    pub async fn rotate_signing_keys(&self, added: &str, retired: &[String], now: u64) -> Result<(), AdminError> {
        let add = "INSERT INTO selkie.signing_keys (kid, created_at) VALUES (?, ?)";
        let retire = "UPDATE selkie.signing_keys SET retired_at = ? WHERE kid = ? AND retired_at IS NULL";
        let mut changes: Vec<(&str, Params)> = vec![(add, (added, now).into())];
        changes.extend(retired.iter().map(|kid| (retire, (now, kid).into())));
        self.change_keys(changes).await
    }

    /// Returns a number that grows with every revocation of keys, every change of signing keys, roles or issuers, and
    /// every deletion of a project. Recording a new key or a use of a key leaves the number as it is.
    pub async fn key_changes(&self) -> Result<u64, AdminError> {
        let mut conn = self.conn().await?;
        let version =
            self.within(ask::first(conn.query_iter("SELECT version FROM selkie.key_changes WHERE id = 1"))).await?;
        version.ok_or(AdminError::Corrupt("state of keys"))
    }

    /// Sets the time of last use of the keys `ids` to `now`, unless a later time is recorded.
    ///
    /// # Errors
    /// MariaDB failed. The times of some keys may have been set.
    pub async fn touch_keys(&self, ids: &[Uuid], now: u64) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        for ids in ids.chunks(IDS_MAX_COUNT) {
            let marks = vec!["?"; ids.len()].join(", ");
            let values: Vec<Value> =
                std::iter::once(now.into()).chain(ids.iter().map(|id| id.to_string().into())).collect();
            self.within(conn.exec_drop(
                format!(
                    "UPDATE selkie.`keys` SET last_used_at = GREATEST(COALESCE(last_used_at, 0), ?)
                     WHERE id IN ({marks})"
                ),
                Params::Positional(values),
            ))
            .await?;
        }
        Ok(())
    }

    /// Runs `changes` in one transaction that begins with [`CHANGED`], whose row lock makes concurrent calls wait for
    /// each other. In a cluster, whose nodes share no locks, only one of several concurrent transactions commits, and
    /// the other calls fail with [`AdminError::Contended`].
    pub(super) async fn change_keys(&self, changes: Vec<(&str, Params)>) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(async {
            let mut transaction = conn.start_transaction(TxOpts::default()).await?;
            transaction.query_drop(CHANGED).await?;
            for (statement, values) in changes {
                transaction.exec_drop(statement, values).await?;
            }
            transaction.commit().await
        })
        .await
    }
}

fn key_row(raw: RawKey) -> Result<KeyRow, AdminError> {
    let (id, owner, name, access, role, kid, created_at, expires_at, revoked_at, last_used_at) = raw;
    Ok(KeyRow {
        id: Uuid::try_parse(&id).map_err(|_| AdminError::Corrupt("key id"))?,
        project: project(&owner)?,
        name,
        grant: match role {
            Some(role) => KeyGrant::Role(RoleName::parse(&role).map_err(|_| AdminError::Corrupt("key's role"))?),
            None => KeyGrant::Access(access.parse().map_err(|_| AdminError::Corrupt("key's access"))?),
        },
        kid,
        created_at,
        expires_at,
        revoked_at,
        last_used_at,
    })
}
