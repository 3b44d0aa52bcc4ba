//! Authenticates requests: verifies keys, and checks that they are recorded and not revoked. Outcomes are cached for
//! the current *generation* of keys, without a lock across an await. Every change of keys, by any process, increments
//! the generation in MariaDB; [`KeyRegistry::watch`] polls it each second, and after a change each token is looked up
//! again. A row deleted by hand takes effect within a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, RoleName};
use shared::key::{Grant, KeySet, Principal, Token, TokenDigest};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Caller, KeyError, Keys};
use crate::clock::now;
use crate::database::admin::{Admin, AdminError, KeyStatus};
use crate::query::plan::access::{CallerRole, ProjectRole, Rights};
use crate::query::role::{Claims as RuleClaims, Role};

/// Maximum number of cached tokens, of about 200 bytes each.
const TOKENS_MAX_COUNT: usize = 10_000;

/// Cached roles, each of which may have its own view of [`ROLE_TABLES_MAX_COUNT`] tables.
///
/// [`ROLE_TABLES_MAX_COUNT`]: shared::limits::ROLE_TABLES_MAX_COUNT
const ROLES_MAX_COUNT: usize = 1_000;

/// Seconds for which the status of a key is cached if the generation doesn't change.
const RECHECK_SECONDS: u64 = 60;

/// Seconds for which the absence of a key's row is cached. Only tokens with a valid signature are looked up.
const RECHECK_UNKNOWN_SECONDS: u64 = 1;

/// Interval of polling the generation: the maximum delay until a revocation takes effect.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum seconds between two recorded uses of a key.
const USE_GRANULARITY_SECONDS: u64 = 60;

/// Maximum number of uses waiting to be written. More are dropped, since uses are only shown to people.
const USES_MAX_COUNT: usize = 10_000;

#[derive(Debug)]
pub struct KeyRegistry {
    admin: Admin,
    keys: Keys,
    present: ArcSwap<Present>,
    tokens: Cache<TokenDigest, Arc<Entry>>,
    /// Roles, with the generation in which they were read.
    roles: Cache<(ProjectName, RoleName), (u64, Arc<ProjectRole>)>,
    uses: Mutex<HashMap<Uuid, u64>>,
    /// Time at which this origin last noticed a change of keys.
    changed_at: watch::Sender<Instant>,
}

/// The public signing keys, and the generation in which they were read.
#[derive(Debug)]
struct Present {
    generation: u64,
    keys: KeySet,
}

/// A cached token with its key's status. Only tokens with a valid signature are cached.
#[derive(Debug)]
struct Entry {
    generation: u64,
    looked_up_at: u64,
    caller: Result<Caller, Problem>,
    id: Uuid,
    status: KeyStatus,
    noted_at: AtomicU64,
}

impl Entry {
    fn holds(&self, generation: u64, now: u64) -> bool {
        let seconds = match self.status {
            KeyStatus::Unknown => RECHECK_UNKNOWN_SECONDS,
            KeyStatus::Live | KeyStatus::Revoked => RECHECK_SECONDS,
        };
        self.generation == generation && now < self.looked_up_at.saturating_add(seconds)
    }

    fn verdict(&self, now: u64) -> Result<Caller, Problem> {
        match self.status {
            KeyStatus::Live => {
                let caller = self.caller.clone()?;
                caller.principal().check_lifetime(now).map(|()| caller)
            }
            KeyStatus::Revoked => Err(Problem::new(ErrorCode::RevokedKey, "The key was revoked.")
                .with_hint("Ask for a new key: selkie key create.")),
            KeyStatus::Unknown => {
                Err(Problem::new(ErrorCode::InvalidKey, "The key is not known to this installation."))
            }
        }
    }
}

impl KeyRegistry {
    /// Creates the registry and reads the signing keys from MariaDB. [`Keys::prepare`] must have created one.
    ///
    /// # Errors
    /// There is no signing key; MariaDB failed.
    pub async fn open(admin: Admin, keys: Keys) -> Result<Self, KeyError> {
        let present = read(&admin, &keys).await?;
        Ok(Self {
            admin,
            keys,
            present: ArcSwap::from_pointee(present),
            tokens: Cache::new(TOKENS_MAX_COUNT),
            roles: Cache::new(ROLES_MAX_COUNT),
            uses: Mutex::new(HashMap::new()),
            changed_at: watch::Sender::new(Instant::now()),
        })
    }

    /// Verifies the token in an `Authorization` header, and that its key is recorded and not revoked.
    ///
    /// # Errors
    /// `missing_key`, `invalid_key`, `expired_key`, `revoked_key`; `database_unavailable` if the key's status is not
    /// cached and can't be read.
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
        let principal = token.verify(&present.keys, now)?;
        let status = self.admin.key_status(principal.key_id()).await.map_err(|error| unavailable(&error))?;
        let id = principal.key_id();
        let caller = match self.rights(&principal, present.generation).await? {
            Some(rights) => Ok(Caller::new(Arc::new(principal), rights)),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The key's role does not exist any more.")
                .with_hint("Ask for a new key: selkie key create.")),
        };
        Ok(Arc::new(Entry {
            generation: present.generation,
            looked_up_at: now,
            caller,
            id,
            status,
            noted_at: AtomicU64::new(0),
        }))
    }

    /// Returns what a principal may do; `None` if its role does not exist.
    async fn rights(&self, principal: &Principal, generation: u64) -> Result<Option<Rights>, Problem> {
        let grant = match principal.grant() {
            Grant::Full => return Ok(Some(Rights::Full)),
            Grant::Read => return Ok(Some(Rights::Read)),
            Grant::Role(grant) => grant,
        };
        let role = self.role(principal.project(), &grant.role, generation).await?;
        Ok(role.map(|role| Rights::Role(Arc::new(CallerRole::new(role, RuleClaims::new(&grant.claims))))))
    }

    /// Returns a role as it was in a generation or later; `None` if it does not exist.
    async fn role(
        &self,
        project: &ProjectName,
        name: &RoleName,
        generation: u64,
    ) -> Result<Option<Arc<ProjectRole>>, Problem> {
        let key = (project.clone(), name.clone());
        if let Some((read_in, role)) = self.roles.get(&key)
            && read_in == generation
        {
            return Ok(Some(role));
        }
        let row = self.admin.role(project, name).await.map_err(|error| unavailable(&error))?;
        let Some(row) = row else {
            return Ok(None);
        };
        let role = Role::parse(&row.definition).map_err(|fault| {
            Problem::internal("The key's role can't be read.", format!("role {name} of project {project}: {fault}"))
        })?;
        let role = Arc::new(ProjectRole::new(name.clone(), role));
        self.roles.insert(key, (generation, Arc::clone(&role)));
        Ok(Some(role))
    }

    fn note_use(&self, entry: &Entry, now: u64) {
        let noted_at = entry.noted_at.load(Ordering::Relaxed);
        if entry.status != KeyStatus::Live || now < noted_at.saturating_add(USE_GRANULARITY_SECONDS) {
            return;
        }
        entry.noted_at.store(now, Ordering::Relaxed);
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < USES_MAX_COUNT {
            uses.insert(entry.id, now);
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

    /// Reads the signing keys again if the generation of keys in MariaDB has changed.
    ///
    /// # Errors
    /// MariaDB failed; the known keys stay in use.
    pub async fn refresh(&self) -> Result<(), KeyError> {
        if self.admin.key_changes().await? != self.present.load().generation {
            self.present.store(Arc::new(read(&self.admin, &self.keys).await?));
            self.changed_at.send_replace(Instant::now());
        }
        Ok(())
    }

    /// Waits until a key that was valid at `since` is revoked or deleted. Reads its status only after a change of keys.
    pub async fn ended(self: Arc<Self>, id: Uuid, since: Instant) {
        let mut changes = self.changed_at.subscribe();
        let mut has_changed = *changes.borrow_and_update() >= since;
        loop {
            // The channel is never closed: this registry owns the sender.
            if !has_changed && changes.changed().await.is_err() {
                return;
            }
            has_changed = match self.admin.key_status(id).await {
                Ok(KeyStatus::Live) => false,
                Ok(KeyStatus::Revoked | KeyStatus::Unknown) => return,
                Err(_) => {
                    // The key counts as valid until its status can be read.
                    tokio::time::sleep(POLL_INTERVAL).await;
                    true
                }
            };
        }
    }

    /// Writes the uses of keys noted since the last call to MariaDB.
    ///
    /// # Errors
    /// MariaDB failed. The uses are lost.
    pub async fn flush(&self) -> Result<(), KeyError> {
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        let Some(latest) = uses.values().copied().max() else {
            return Ok(());
        };
        let ids: Vec<Uuid> = uses.into_keys().collect();
        Ok(self.admin.touch_keys(&ids, latest).await?)
    }
}

async fn read(admin: &Admin, keys: &Keys) -> Result<Present, KeyError> {
    // The generation is read first: the next poll notices a change between the two reads.
    let generation = admin.key_changes().await?;
    Ok(Present { generation, keys: keys.public_keys().await? })
}

fn unavailable(error: &AdminError) -> Problem {
    tracing::warn!(%error, "a key could not be looked up");
    Problem::new(ErrorCode::DatabaseUnavailable, "The key can't be checked at the moment.")
}
