//! Rows of `selkie.keys` and `selkie.signing_keys`. They record that a key was issued; neither private keys nor tokens
//! are stored.

use crate::database::typed_rows;
use mysql_async::prelude::Queryable;
use mysql_async::{Params, TxOpts, Value};
use shared::ident::{ProjectName, RoleName};
use shared::key::{Access, Grant};
use std::collections::HashMap;
use uuid::Uuid;

use super::projects::{Inserted, project};
use super::{Admin, AdminError};

const IDS_MAX_COUNT: usize = 500;

/// Increments the version that [`Admin::key_changes`] returns, which origins poll each second. Part of every
/// transaction that revokes keys, adds or retires signing keys, changes roles or issuers, or deletes a project.
pub(super) const CHANGED: &str = "UPDATE selkie.key_changes SET version = version + 1 WHERE id = 1";
/// Like [`CHANGED`], but for a change of one project, which [`PROJECT_CHANGED`] records in the same transaction.
const ONE_CHANGED: &str =
    "UPDATE selkie.key_changes SET version = version + 1, of_projects = of_projects + 1 WHERE id = 1";
const PROJECT_CHANGED: &str = "REPLACE INTO selkie.project_key_changes (project, version) \
     SELECT ?, version FROM selkie.key_changes WHERE id = 1";

/// An API key to record. Times are seconds since 1970.
#[derive(Clone, Debug)]
pub struct NewKey<'a> {
    /// The key's id, a UUIDv7.
    pub id: Uuid,
    pub project: &'a ProjectName,
    /// The key's label, shown to people.
    pub name: &'a str,
    pub grant: &'a Grant,
    pub kid: &'a str,
    pub created_at: u64,
    /// `None` if the key never expires.
    pub expires_at: Option<u64>,
    /// The id of the key or user whose HTTP request creates the key; `None` if the command line or a link to the console
    /// creates the key.
    pub created_by: Option<Uuid>,
}

/// The version of the keys, roles and issuers of all projects: see [`Admin::key_changes`]. If the version differs from
/// the one last read, some of them have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyVersion {
    /// The number of all changes.
    pub all: u64,
    /// The number of changes that each concerned a single project.
    pub of_projects: u64,
}

/// A row of `selkie.keys`: an API key. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    pub id: Uuid,
    pub project: ProjectName,
    /// The key's label, shown to people.
    pub name: String,
    pub grant: KeyGrant,
    pub kid: String,
    pub created_at: u64,
    /// `None` if the key never expires.
    pub expires_at: Option<u64>,
    pub revoked_at: Option<u64>,
    /// The time of the key's last use, recorded with a delay of some seconds; `None` if no use is recorded.
    pub last_used_at: Option<u64>,
    /// See [`NewKey::created_by`].
    pub created_by: Option<Uuid>,
}

/// The rights of a recorded key, or of tokens with a certain role claim (see [`IssuerRow`](super::IssuerRow)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyGrant {
    Access(Access),
    Role(RoleName),
}

impl KeyGrant {
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
    /// `selkie.keys` has no row for the key, or the key belongs to another project.
    Unknown,
}

/// A recorded signing key. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyRow {
    pub kid: String,
    pub created_at: u64,
    pub retired_at: Option<u64>,
}

type RawKey = (
    String,
    String,
    String,
    String,
    Option<String>,
    String,
    u64,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<String>,
);

const COLUMNS: &str =
    "id, project, name, access, role, kid, created_at, expires_at, revoked_at, last_used_at, created_by";

impl Admin {
    /// Records an issued key, unless its creator is revoked. Does not increment the version that [`Admin::key_changes`]
    /// returns. Returns [`AdminError::Refused`] if the project or the signing key does not exist, or the id is already
    /// recorded.
    pub async fn insert_key(&self, key: &NewKey<'_>) -> Result<Inserted, AdminError> {
        let mut conn = self.conn().await?;
        // An older version of this program ignores the column `role`: it lists a key with a role as a read key, and
        // refuses its token.
        let (access, role) = match key.grant {
            Grant::Full => (Access::Full.as_str(), None),
            Grant::Read => (Access::Read.as_str(), None),
            Grant::Role(grant) => (Access::Read.as_str(), Some(grant.role.as_str())),
        };
        let creator = key.created_by.map(|id| id.to_string());
        let (id, project, created_at, expires_at) =
            (key.id.to_string(), key.project.as_str(), key.created_at, key.expires_at);
        let values: Params =
            (id, project, key.name, access, role, key.kid, created_at, expires_at, &creator, &creator).into();
        self.within(conn.exec_drop(
            "INSERT INTO selkie.`keys` (id, project, name, access, role, kid, created_at, expires_at, created_by)
             SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? FROM DUAL
             WHERE NOT EXISTS (SELECT 1 FROM selkie.`keys` WHERE id = ? AND revoked_at IS NOT NULL)",
            values,
        ))
        .await?;
        Ok(Inserted::of(conn.affected_rows()))
    }

    /// Returns the number of a project's keys that are valid at `now`, and of those that are revoked or expired.
    pub async fn count_keys(&self, of: &ProjectName, now: u64) -> Result<(usize, usize), AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT COUNT(IF(revoked_at IS NULL AND COALESCE(expires_at > ?, TRUE), 1, NULL)), COUNT(*) \
             FROM selkie.`keys` WHERE project = ?";
        let counts = self.within(typed_rows::first(conn.exec_iter(query, (now, of.as_str())))).await?;
        let (live, all): (usize, usize) = counts.unwrap_or_default();
        Ok((live, all - live))
    }

    /// Deletes at most `most` of a project's keys that were revoked or expired before the time `before`, oldest first.
    /// The keys that a deleted key has created then count as created by the deleted key's creator.
    pub async fn forget_dead_keys(&self, of: &ProjectName, before: u64, most: usize) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT id FROM selkie.`keys` WHERE project = ? AND (revoked_at < ? OR expires_at < ?) \
             ORDER BY LEAST(COALESCE(revoked_at, expires_at), COALESCE(expires_at, revoked_at)), id LIMIT ?";
        let values = (of.as_str(), before, before, most);
        let ids: Vec<String> = self.within(typed_rows::all(conn.exec_iter(query, values))).await?;
        self.within(async {
            let mut transaction = conn.start_transaction(TxOpts::default()).await?;
            for id in &ids {
                let inherit = "UPDATE selkie.`keys` AS made JOIN selkie.`keys` AS dead ON dead.id = made.created_by \
                     SET made.created_by = dead.created_by WHERE dead.id = ?";
                transaction.exec_drop(inherit, (id,)).await?;
                transaction.exec_drop("DELETE FROM selkie.`keys` WHERE id = ?", (id,)).await?;
            }
            transaction.commit().await
        })
        .await
    }

    /// Returns all recorded keys of project `of`, or of all projects if `of` is `None`, oldest first. Includes revoked
    /// and expired keys.
    pub async fn keys(&self, of: Option<&ProjectName>) -> Result<Vec<KeyRow>, AdminError> {
        self.some_keys(of, None, u64::MAX).await
    }

    /// Returns at most `limit` of [`Admin::keys`], beginning with the key that follows `after`.
    pub async fn some_keys(
        &self,
        of: Option<&ProjectName>,
        after: Option<Uuid>,
        limit: u64,
    ) -> Result<Vec<KeyRow>, AdminError> {
        let of = of.map(ProjectName::as_str);
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        // Ids are UUIDv7, so they sort keys by their age.
        let condition = "(? IS NULL OR project = ?) AND id > ? ORDER BY id LIMIT ?";
        self.key_rows("", condition, (of, of, after, limit).into()).await
    }

    /// Returns the keys created by the key `id`, by the keys created by that key, and so on, that are neither revoked
    /// nor expired at `now`; oldest first.
    pub async fn keys_made_by(&self, id: Uuid, now: u64) -> Result<Vec<KeyRow>, AdminError> {
        // MariaDB ends a recursion silently after 1,000 steps by default. Each step has another key at least, so this one
        // ends.
        let made = "SET STATEMENT max_recursive_iterations = 4294967295 FOR WITH RECURSIVE made (made) AS (SELECT id FROM selkie.`keys` WHERE created_by = ? \
             UNION SELECT id FROM selkie.`keys` JOIN made ON created_by = made) ";
        let condition = "id IN (SELECT made FROM made) AND id <> ? AND revoked_at IS NULL \
             AND (expires_at IS NULL OR expires_at > ?) ORDER BY id";
        self.key_rows(made, condition, (id.to_string(), id.to_string(), now).into()).await
    }

    async fn key_rows(&self, with: &str, condition: &str, values: Params) -> Result<Vec<KeyRow>, AdminError> {
        let mut conn = self.conn().await?;
        let query = format!("{with}SELECT {COLUMNS} FROM selkie.`keys` WHERE {condition}");
        let rows: Vec<RawKey> = self.within(typed_rows::all(conn.exec_iter(query, values))).await?;
        rows.into_iter().map(key_row).collect()
    }

    /// Returns the status of a key of project `of`, or of any project if `of` is `None`. A key of another project is
    /// [`KeyStatus::Unknown`].
    pub async fn key_status(&self, id: Uuid, of: Option<&ProjectName>) -> Result<KeyStatus, AdminError> {
        let mut conn = self.conn().await?;
        let project = of.map(ProjectName::as_str);
        let found: Option<u8> = self
            .within(typed_rows::first(conn.exec_iter(
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
                self.within(typed_rows::all(conn.exec_iter(query, Params::Positional(values)))).await?;
            for (id, is_revoked) in rows {
                let id = Uuid::try_parse(&id).map_err(|_| AdminError::Corrupt("key id"))?;
                statuses.insert(id, if is_revoked { KeyStatus::Revoked } else { KeyStatus::Live });
            }
        }
        Ok(statuses)
    }

    /// Returns the first two ids of keys that begin with `text`, which has no `%` or `_`.
    pub async fn key_ids_beginning_with(&self, text: &str) -> Result<Vec<Uuid>, AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT id FROM selkie.`keys` WHERE id LIKE ? ORDER BY id LIMIT 2";
        let ids: Vec<String> = self.within(typed_rows::all(conn.exec_iter(query, (format!("{text}%"),)))).await?;
        ids.iter().map(|id| Uuid::try_parse(id).map_err(|_| AdminError::Corrupt("key id"))).collect()
    }

    /// Revokes a key of project `of`, or of any project if `of` is `None`, as of `now`. Returns the key's status before
    /// the call; changes nothing unless that status is [`KeyStatus::Live`].
    pub async fn revoke_key(&self, id: Uuid, of: Option<&ProjectName>, now: u64) -> Result<KeyStatus, AdminError> {
        let before = self.key_status(id, of).await?;
        if before == KeyStatus::Live {
            let revoke = "UPDATE selkie.`keys` SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL";
            let owner = match of {
                Some(project) => Some(project.clone()),
                None => self.key_rows("", "id = ?", (id.to_string(),).into()).await?.pop().map(|row| row.project),
            };
            self.change_keys(owner.as_ref(), vec![(revoke, (now, id.to_string()).into())]).await?;
        }
        Ok(before)
    }

    /// Revokes keys of project `of` that are not revoked yet, as of `now`.
    pub async fn revoke_all(&self, ids: &[Uuid], of: &ProjectName, now: u64) -> Result<(), AdminError> {
        let revoke = "UPDATE selkie.`keys` SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL";
        let changes = ids.iter().map(|id| (revoke, (now, id.to_string()).into())).collect();
        self.change_keys(Some(of), changes).await
    }

    /// Revokes all keys of a project that are not revoked yet, as of `now`, and returns their number.
    pub async fn revoke_keys_of(&self, project: &ProjectName, now: u64) -> Result<usize, AdminError> {
        let mut rows = self.keys(Some(project)).await?;
        rows.retain(|row| row.revoked_at.is_none());
        let revoke = "UPDATE selkie.`keys` SET revoked_at = ? WHERE project = ? AND revoked_at IS NULL";
        self.change_keys(Some(project), vec![(revoke, (now, project.as_str()).into())]).await?;
        Ok(rows.len())
    }

    /// Returns all recorded signing keys, retired ones too, newest first.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKeyRow>, AdminError> {
        let mut conn = self.conn().await?;
        let rows: Vec<(String, u64, Option<u64>)> = self
            .within(typed_rows::all(conn.query_iter(
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
        self.change_keys(None, vec![(add, (kid, now).into())]).await
    }

    /// Records the signing key `added` and retires the signing keys `retired`, in one transaction. Keys that were
    /// retired before keep their time.
    pub async fn rotate_signing_keys(&self, added: &str, retired: &[String], now: u64) -> Result<(), AdminError> {
        let add = "INSERT INTO selkie.signing_keys (kid, created_at) VALUES (?, ?)";
        let retire = "UPDATE selkie.signing_keys SET retired_at = ? WHERE kid = ? AND retired_at IS NULL";
        let mut changes: Vec<(&str, Params)> = vec![(add, (added, now).into())];
        changes.extend(retired.iter().map(|kid| (retire, (now, kid).into())));
        self.change_keys(None, changes).await
    }

    /// Returns a version that grows with every revocation of keys, every change of signing keys, roles or issuers, and
    /// every deletion of a project. Recording a new key or a use of a key leaves the version as it is.
    pub async fn key_changes(&self) -> Result<KeyVersion, AdminError> {
        let mut conn = self.conn().await?;
        let query = "SELECT version, of_projects FROM selkie.key_changes WHERE id = 1";
        let found: Option<(u64, u64)> = self.within(typed_rows::first(conn.query_iter(query))).await?;
        let (all, of_projects) = found.ok_or(AdminError::Corrupt("state of keys"))?;
        Ok(KeyVersion { all, of_projects })
    }

    /// Returns the projects whose keys, roles or issuers have changed since a version; `None` for all projects.
    /// `version` is the present one.
    pub async fn changed_projects(
        &self,
        since: KeyVersion,
        version: KeyVersion,
    ) -> Result<Option<Vec<ProjectName>>, AdminError> {
        // The version of a restored database may be smaller.
        let all = version.all.checked_sub(since.all);
        if all.is_none() || all != version.of_projects.checked_sub(since.of_projects) {
            return Ok(None);
        }
        let mut conn = self.conn().await?;
        let query = "SELECT project FROM selkie.project_key_changes WHERE version > ?";
        let names: Vec<String> = self.within(typed_rows::all(conn.exec_iter(query, (since.all,)))).await?;
        names.iter().map(|name| project(name)).collect::<Result<_, _>>().map(Some)
    }

    /// Sets the time of last use of the keys `ids` to `now`, unless a later time is recorded.
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

    /// Runs `changes` of project `of`, or of all projects if `of` is `None`, in one transaction that begins with
    /// [`CHANGED`] or [`ONE_CHANGED`], so that a row lock makes concurrent calls wait. Nodes of a cluster share no
    /// locks: of concurrent transactions only one commits, and the other calls fail with [`AdminError::Contended`].
    pub(super) async fn change_keys(
        &self,
        of: Option<&ProjectName>,
        changes: Vec<(&str, Params)>,
    ) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        self.within(async {
            let mut transaction = conn.start_transaction(TxOpts::default()).await?;
            match of {
                None => transaction.query_drop(CHANGED).await?,
                Some(project) => {
                    transaction.query_drop(ONE_CHANGED).await?;
                    transaction.exec_drop(PROJECT_CHANGED, (project.as_str(),)).await?;
                }
            }
            for (statement, values) in changes {
                transaction.exec_drop(statement, values).await?;
            }
            transaction.commit().await
        })
        .await
    }
}

fn key_row(raw: RawKey) -> Result<KeyRow, AdminError> {
    let (id, owner, name, access, role, kid, created_at, expires_at, revoked_at, last_used_at, creator) = raw;
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
        created_by: match creator {
            Some(id) => Some(Uuid::try_parse(&id).map_err(|_| AdminError::Corrupt("key's creator"))?),
            None => None,
        },
    })
}
