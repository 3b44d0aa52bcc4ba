//! Authenticates requests: verifies keys, and checks that they are recorded and not revoked; verifies users' tokens by
//! their issuers. Outcomes are cached for the current *generation* of keys, without a lock across an await. Every change
//! of keys, roles or issuers, by any process, increments the generation in MariaDB; [`KeyRegistry::watch`] polls it each
//! second, and after a change each token is looked up again. A row deleted by hand takes effect within a minute.

mod entry;
mod roles;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem};
use shared::key::{Grant, KeySet, Principal, Token, TokenDigest, UserToken};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::entry::{Entry, EntryBytes, KeyUse};
use self::roles::Roles;
use super::tokens::Issuers;
use super::{Caller, KeyError, Keys};
use crate::clock::now;
use crate::database::admin::{Admin, AdminError, KeyStatus};
use crate::database::single_flight::LoadAborted;
use crate::query::plan::access::{CallerRole, Rights};
use crate::query::role::Claims as RuleClaims;

/// Number of tokens for which the cache is laid out. Their memory is what limits them.
const TOKENS_EXPECTED_COUNT: usize = 10_000;

/// Maximum memory of all cached tokens: their claims may take some kilobytes each.
const TOKENS_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Interval of polling the generation: the maximum delay until a revocation takes effect.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of uses waiting to be written. More are dropped, since uses are only shown to people.
const USES_MAX_COUNT: usize = 10_000;

#[derive(Debug)]
pub struct KeyRegistry {
    admin: Admin,
    keys: Keys,
    present: ArcSwap<Present>,
    tokens: Cache<TokenDigest, Arc<Entry>, EntryBytes>,
    roles: Roles,
    uses: Mutex<HashMap<Uuid, u64>>,
    /// The latest change of keys that this origin noticed.
    changes: watch::Sender<Arc<Change>>,
    /// The keys of the callers that wait in [`KeyRegistry::ended`], with the number of those callers.
    awaited: Mutex<HashMap<Uuid, usize>>,
}

/// A change of keys, roles or issuers.
#[derive(Debug)]
struct Change {
    noticed_at: Instant,
    /// The status of the awaited keys after the change, so that not each of their callers asks MariaDB.
    keys: HashMap<Uuid, KeyStatus>,
}

/// A caller that waits in [`KeyRegistry::ended`].
struct Awaited<'a> {
    registry: &'a KeyRegistry,
    id: Uuid,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut awaited = lock(&self.registry.awaited);
        if let Some(count) = awaited.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                awaited.remove(&self.id);
            }
        }
    }
}

/// The public signing keys and the issuers, and the generation in which they were read.
#[derive(Debug)]
struct Present {
    generation: u64,
    keys: KeySet,
    issuers: Issuers,
}

impl KeyRegistry {
    /// Creates the registry and reads the signing keys from MariaDB. [`Keys::prepare`] must have created one.
    ///
    /// # Errors
    /// There is no signing key; MariaDB failed.
    pub async fn open(admin: Admin, keys: Keys) -> Result<Self, KeyError> {
        let present = read(&admin, &keys, &Issuers::default()).await?;
        Ok(Self {
            roles: Roles::new(admin.clone()),
            admin,
            keys,
            present: ArcSwap::from_pointee(present),
            tokens: Cache::with_weighter(TOKENS_EXPECTED_COUNT, TOKENS_MAX_BYTES, EntryBytes),
            uses: Mutex::new(HashMap::new()),
            changes: watch::Sender::new(Arc::new(Change { noticed_at: Instant::now(), keys: HashMap::new() })),
            awaited: Mutex::new(HashMap::new()),
        })
    }

    /// Verifies the token in an `Authorization` header: a key, which must be recorded and not revoked, or a token of a
    /// project's issuer.
    ///
    /// # Errors
    /// `missing_key`, `invalid_key`, `expired_key`, `revoked_key`; `role_forbids` if its role does not exist or its
    /// claims give it none; `database_unavailable` or `issuer_unavailable` if what is needed is not cached and can't be
    /// read.
    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Caller, Problem> {
        self.authenticate_at(authorization, now()).await
    }

    async fn authenticate_at(&self, authorization: Option<&str>, now: u64) -> Result<Caller, Problem> {
        let token = Token::from_header(authorization)?;
        let digest = token.digest();
        if let Some(entry) = self.tokens.get(&digest)
            && entry.holds(self.present.load().generation, now)
        {
            self.note_use(&entry, now);
            return entry.verdict(now);
        }
        // Boxed, so that the future stays small in the usual case of a cached token.
        let entry = Box::pin(self.look_up(token, now)).await?;
        self.tokens.insert(digest, Arc::clone(&entry));
        self.note_use(&entry, now);
        entry.verdict(now)
    }

    async fn look_up(&self, token: Token<'_>, now: u64) -> Result<Arc<Entry>, Problem> {
        // Read before the key's row: if keys change in between, the entry is stale.
        let present = self.present.load_full();
        let entry = |caller, key| Arc::new(Entry::new(present.generation, now, caller, key));
        if let Some(token) = token.of_user() {
            return Ok(entry(self.verify_user(token, &present, now).await?, None));
        }
        let principal = token.verify(&present.keys, now)?;
        let id = principal.key_id();
        let status = self.status(id).await?;
        let caller = match self.rights(&principal, present.generation).await? {
            Some(rights) => Ok(Caller::new(principal, rights, None)),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The key's role does not exist any more.")
                .with_hint("Ask for a new key: selkie key create.")),
        };
        Ok(entry(caller, Some(KeyUse::new(id, status))))
    }

    /// Verifies a user's token. The inner error is that of a verified token without a role, which may be cached.
    async fn verify_user(
        &self,
        token: UserToken<'_>,
        present: &Present,
        now: u64,
    ) -> Result<Result<Caller, Problem>, Problem> {
        let issuer = Arc::clone(present.issuers.of(&token)?);
        issuer.check_signature(&token, now).await?;
        let identity = token.identify(now)?;
        let grant = match issuer.grant(token.into_claims()) {
            Ok(grant) => grant,
            Err(problem) => return Ok(Err(problem)),
        };
        let project = issuer.row().project.clone();
        let principal = Principal::of_user(project, identity.subject, grant, identity.expires_at);
        Ok(match self.rights(&principal, present.generation).await? {
            Some(rights) => Ok(Caller::new(principal, rights, Some(issuer))),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The token's role does not exist.")
                .with_hint("selkie issuer list shows how roles are named, selkie role list which exist.")),
        })
    }

    async fn status(&self, id: Uuid) -> Result<KeyStatus, Problem> {
        self.admin.key_status(id).await.map_err(|error| unavailable(&error))
    }

    /// Returns what a principal may do; `None` if its role does not exist.
    async fn rights(&self, principal: &Principal, generation: u64) -> Result<Option<Rights>, Problem> {
        let grant = match principal.grant() {
            Grant::Full => return Ok(Some(Rights::Full)),
            Grant::Read => return Ok(Some(Rights::Read)),
            Grant::Role(grant) => grant,
        };
        let role = self.roles.role(principal.project(), &grant.role, generation).await?;
        Ok(role.map(|role| Rights::Role(Arc::new(CallerRole::new(role, RuleClaims::new(&grant.claims))))))
    }

    fn note_use(&self, entry: &Entry, now: u64) {
        let Some(id) = entry.to_note(now) else {
            return;
        };
        let mut uses = lock(&self.uses);
        if uses.len() < USES_MAX_COUNT {
            uses.insert(id, now);
        }
    }

    /// Polls changes of keys and writes uses of keys until `stop` is cancelled. If MariaDB fails, the known keys stay
    /// in use and the first error is logged.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        let mut flush = tokio::time::interval(FLUSH_INTERVAL);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        flush.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut healthy = true;
        loop {
            let outcome = tokio::select! {
                () = stop.cancelled() => break,
                _ = poll.tick() => self.refresh().await,
                _ = flush.tick() => self.flush().await,
            };
            match &outcome {
                Err(error) if healthy => tracing::warn!(%error, "changes of keys can't be read"),
                Ok(()) if !healthy => tracing::info!("changes of keys can be read again"),
                _ => {}
            }
            healthy = outcome.is_ok();
        }
        // The last uses are lost if MariaDB fails.
        let _ = self.flush().await;
    }

    /// Reads the signing keys and issuers again if the generation of keys in MariaDB has changed.
    ///
    /// # Errors
    /// MariaDB failed; the known keys stay in use.
    pub async fn refresh(&self) -> Result<(), KeyError> {
        let present = self.present.load_full();
        if self.admin.key_changes().await? != present.generation {
            let present = read(&self.admin, &self.keys, &present.issuers).await?;
            // Read after the generation. A caller that begins to wait meanwhile looks its key up itself.
            let ids: Vec<Uuid> = lock(&self.awaited).keys().copied().collect();
            let keys = self.admin.key_statuses(&ids).await?;
            self.present.store(Arc::new(present));
            self.changes.send_replace(Arc::new(Change { noticed_at: Instant::now(), keys }));
        }
        Ok(())
    }

    /// Waits until a caller that was valid at `since` is so no longer: its key is revoked or deleted, its issuer removed or
    /// changed, or its role changed or removed. Checks that only after a change of keys, for which [`KeyRegistry::refresh`]
    /// looks the keys of all waiting callers up at once.
    pub async fn ended(self: Arc<Self>, caller: Caller, since: Instant) {
        let mut changes = self.changes.subscribe();
        let _awaited = caller.issuer().is_none().then(|| self.await_key(caller.key_id()));
        let mut change = Some(changes.borrow_and_update().clone()).filter(|change| change.noticed_at >= since);
        loop {
            if change.is_none() {
                // The channel is never closed: this registry owns the sender.
                if changes.changed().await.is_err() {
                    return;
                }
                change = Some(changes.borrow_and_update().clone());
            }
            let known = change.as_ref().and_then(|change| change.keys.get(&caller.key_id()).copied());
            match self.is_live(&caller, known).await {
                Ok(true) => change = None,
                Ok(false) => return,
                // The caller counts as valid until that can be read.
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    fn await_key(&self, id: Uuid) -> Awaited<'_> {
        *lock(&self.awaited).entry(id).or_default() += 1;
        Awaited { registry: self, id }
    }

    /// Returns whether a caller's key or issuer and its role are as they were. `known` is the status of its key, which is
    /// looked up otherwise.
    async fn is_live(&self, caller: &Caller, known: Option<KeyStatus>) -> Result<bool, Problem> {
        let present = self.present.load_full();
        let is_trusted = match (caller.issuer(), known) {
            (Some(issuer), _) => present.issuers.has(issuer),
            (None, Some(status)) => status == KeyStatus::Live,
            (None, None) => self.status(caller.key_id()).await? == KeyStatus::Live,
        };
        if !is_trusted {
            return Ok(false);
        }
        let rights = self.rights(caller.principal(), present.generation).await?;
        // A role that allows less must not go on with what it allowed before.
        let is_same = match (caller.rights().role(), rights.as_ref().and_then(Rights::role)) {
            (Some(before), Some(role)) => before.role() == role.role(),
            (before, role) => before.is_none() && role.is_none() && rights.is_some(),
        };
        Ok(is_same)
    }

    /// Writes the uses of keys noted since the last call to MariaDB.
    ///
    /// # Errors
    /// MariaDB failed. The uses are lost.
    pub async fn flush(&self) -> Result<(), KeyError> {
        let uses = std::mem::take(&mut *lock(&self.uses));
        let Some(latest) = uses.values().copied().max() else {
            return Ok(());
        };
        let ids: Vec<Uuid> = uses.into_keys().collect();
        Ok(self.admin.touch_keys(&ids, latest).await?)
    }
}

/// Reads what [`Present`] holds. Issuers keep the keys that were fetched for `before`.
async fn read(admin: &Admin, keys: &Keys, before: &Issuers) -> Result<Present, KeyError> {
    // The generation is read first: the next poll notices a change between the reads.
    let generation = admin.key_changes().await?;
    let rows = match admin.issuers(None).await {
        // Revocations must take effect even if somebody has changed an issuer's row by hand.
        Err(error @ AdminError::Corrupt(_)) => {
            tracing::warn!(%error, "the issuers can't be read; all users' tokens are refused");
            Vec::new()
        }
        rows => rows?,
    };
    Ok(Present { generation, keys: keys.public_keys().await?, issuers: Issuers::new(rows, before) })
}

impl From<LoadAborted> for Problem {
    fn from(_: LoadAborted) -> Self {
        Self::internal("The key can't be checked.", "reading its role was aborted")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are valid after every step, so a poisoned lock can be used.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(error: &AdminError) -> Problem {
    tracing::warn!(%error, "a key could not be looked up");
    Problem::new(ErrorCode::DatabaseUnavailable, "The key can't be checked at the moment.")
}
