//! Authenticates requests: verifies keys, and checks that they are recorded and not revoked; verifies users' tokens by
//! their issuers. Outcomes are cached for the current *generation* of keys, without a lock across an await. Every change
//! of keys, roles or issuers, by any process, increments the generation in MariaDB; [`KeyRegistry::watch`] polls it each
//! second, and after a change each token is looked up again. A row deleted by hand takes effect within a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem};
use shared::ident::{ProjectName, RoleName};
use shared::key::{Grant, KeySet, Principal, Token, TokenDigest, UserToken};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::tokens::Issuers;
use super::{Caller, KeyError, Keys};
use crate::clock::now;
use crate::database::admin::{Admin, AdminError, KeyStatus};
use crate::query::plan::access::{CallerRole, ProjectRole, Rights};
use crate::query::role::{Claims as RuleClaims, Role};

/// Maximum number of cached tokens of the usual size.
const TOKENS_MAX_COUNT: usize = 10_000;

/// Maximum memory of all cached tokens: users' tokens may have some kilobytes of claims.
const TOKENS_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Memory of a cached token without its claims.
const TOKEN_BYTES: u64 = 512;

/// Memory of a token's claims, parsed and as the values of rules, per byte of the token.
const CLAIMS_FACTOR: u64 = 4;

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
    tokens: Cache<TokenDigest, Arc<Entry>, EntryBytes>,
    /// Roles, with the generation in which they were read.
    roles: Cache<(ProjectName, RoleName), (u64, Arc<ProjectRole>)>,
    uses: Mutex<HashMap<Uuid, u64>>,
    /// Time at which this origin last noticed a change of keys.
    changed_at: watch::Sender<Instant>,
}

/// The public signing keys and the issuers, and the generation in which they were read.
#[derive(Debug)]
struct Present {
    generation: u64,
    keys: KeySet,
    issuers: Issuers,
}

/// A cached token. Only tokens with a valid signature are cached.
#[derive(Debug)]
struct Entry {
    generation: u64,
    looked_up_at: u64,
    caller: Result<Caller, Problem>,
    /// The key's row; `None` for a user's token, which has none.
    key: Option<KeyUse>,
    bytes: u64,
}

/// A recorded key and its last use.
#[derive(Debug)]
struct KeyUse {
    id: Uuid,
    status: KeyStatus,
    noted_at: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct EntryBytes;

impl Weighter<TokenDigest, Arc<Entry>> for EntryBytes {
    fn weight(&self, _: &TokenDigest, entry: &Arc<Entry>) -> u64 {
        entry.bytes
    }
}

impl Entry {
    fn status(&self) -> KeyStatus {
        self.key.as_ref().map_or(KeyStatus::Live, |key| key.status)
    }

    fn holds(&self, generation: u64, now: u64) -> bool {
        let seconds = match self.status() {
            KeyStatus::Unknown => RECHECK_UNKNOWN_SECONDS,
            KeyStatus::Live | KeyStatus::Revoked => RECHECK_SECONDS,
        };
        self.generation == generation && now < self.looked_up_at.saturating_add(seconds)
    }

    fn verdict(&self, now: u64) -> Result<Caller, Problem> {
        match self.status() {
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
        let present = read(&admin, &keys, &Issuers::default()).await?;
        Ok(Self {
            admin,
            keys,
            present: ArcSwap::from_pointee(present),
            tokens: Cache::with_weighter(TOKENS_MAX_COUNT, TOKENS_MAX_BYTES, EntryBytes),
            roles: Cache::new(ROLES_MAX_COUNT),
            uses: Mutex::new(HashMap::new()),
            changed_at: watch::Sender::new(Instant::now()),
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
        let entry = |caller, key, bytes| {
            Arc::new(Entry { generation: present.generation, looked_up_at: now, caller, key, bytes })
        };
        if let Some(token) = token.of_user() {
            let bytes = TOKEN_BYTES + CLAIMS_FACTOR * token.signed_bytes().len() as u64;
            return Ok(entry(self.verify_user(token, &present, now).await?, None, bytes));
        }
        let principal = token.verify(&present.keys, now)?;
        let id = principal.key_id();
        let status = self.admin.key_status(id).await.map_err(|error| unavailable(&error))?;
        let caller = match self.rights(&principal, present.generation).await? {
            Some(rights) => Ok(Caller::new(principal, rights, None)),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The key's role does not exist any more.")
                .with_hint("Ask for a new key: selkie key create.")),
        };
        Ok(entry(caller, Some(KeyUse { id, status, noted_at: AtomicU64::new(0) }), TOKEN_BYTES))
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
        let Some(key) = &entry.key else {
            return;
        };
        let noted_at = key.noted_at.load(Ordering::Relaxed);
        if key.status != KeyStatus::Live || now < noted_at.saturating_add(USE_GRANULARITY_SECONDS) {
            return;
        }
        key.noted_at.store(now, Ordering::Relaxed);
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < USES_MAX_COUNT {
            uses.insert(key.id, now);
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
            self.present.store(Arc::new(read(&self.admin, &self.keys, &present.issuers).await?));
            self.changed_at.send_replace(Instant::now());
        }
        Ok(())
    }

    /// Waits until a caller that was valid at `since` is so no longer: its key is revoked or deleted, its issuer removed or
    /// changed, or its role changed or removed. Checks that only after a change of keys.
    pub async fn ended(self: Arc<Self>, caller: Caller, since: Instant) {
        let mut changes = self.changed_at.subscribe();
        let mut has_changed = *changes.borrow_and_update() >= since;
        loop {
            // The channel is never closed: this registry owns the sender.
            if !has_changed && changes.changed().await.is_err() {
                return;
            }
            has_changed = match self.is_live(&caller).await {
                Ok(true) => false,
                Ok(false) => return,
                Err(_) => {
                    // The caller counts as valid until that can be read.
                    tokio::time::sleep(POLL_INTERVAL).await;
                    true
                }
            };
        }
    }

    async fn is_live(&self, caller: &Caller) -> Result<bool, Problem> {
        let present = self.present.load_full();
        let is_trusted = match caller.issuer() {
            Some(issuer) => present.issuers.has(issuer),
            None => {
                let status = self.admin.key_status(caller.key_id()).await;
                status.map_err(|error| unavailable(&error))? == KeyStatus::Live
            }
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
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
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

fn unavailable(error: &AdminError) -> Problem {
    tracing::warn!(%error, "a key could not be looked up");
    Problem::new(ErrorCode::DatabaseUnavailable, "The key can't be checked at the moment.")
}
