//! Authenticates requests, and caches the results. Every change of keys, roles or issuers increments a number in
//! MariaDB, which [`KeyRegistry::watch`] polls each second to begin a new *generation* of the changed project: results
//! of earlier generations are not used. A key's row that is changed by hand takes effect within a minute.

mod entry;
mod roles;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::key::{Grant, KeySet, Principal, Token, TokenDigest, UserToken};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::entry::{CachedCaller, EntryBytes, Generation, Generations, KeyUse};
use self::roles::Roles;
use super::caller::Credential;
use super::tokens::Issuers;
use super::{Caller, KeyError, Keys};
use crate::clock::now;
use crate::database::admin::{Admin, AdminError, CONNECTIONS_MAX_COUNT, IssuerRow, KeyStatus, KeyVersion};
use crate::database::single_flight::{LoadAborted, SingleFlight};
use crate::project_quota::{ProjectQuota, QuotaGuard};
use crate::query::plan::access::{CallerRole, Rights};
use crate::query::role::Claims as RuleClaims;

const TOKENS_EXPECTED_COUNT: usize = 10_000;

/// The maximum memory of all cached tokens. The claims of one token may take some kilobytes.
const TOKENS_MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The pause between polls: about the maximum delay until a revocation takes effect while MariaDB answers.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum time that a look-up of a key or role waits for other look-ups.
const LOOKUP_WAIT_MAX: Duration = Duration::from_secs(5);

/// The maximum number of changed projects whose issuers are read alone. For more, all issuers are read.
const CHANGED_PROJECTS_MAX_COUNT: usize = 20;

const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum number of recorded uses. Further uses are dropped, since uses are only shown to people.
const USES_MAX_COUNT: usize = 10_000;

#[derive(Debug)]
pub struct KeyRegistry {
    admin: Admin,
    keys: Keys,
    present: ArcSwap<Present>,
    generations: Generations,
    tokens: Cache<TokenDigest, Arc<CachedCaller>, EntryBytes>,
    roles: Roles,
    statuses: SingleFlight<(Uuid, u64), KeyStatus, Problem>,
    lookup_slots: ProjectQuota,
    /// The numbers of requests whose token was cached (`hits`), and was not cached (`lookups`), since the start.
    hits: AtomicU64,
    lookups: AtomicU64,
    uses: Mutex<HashMap<Uuid, u64>>,
    changes: watch::Sender<Arc<NoticedChange>>,
    /// The number of callers that wait in [`KeyRegistry::ended`], by key, with the key's project.
    awaited: Mutex<HashMap<Uuid, (ProjectName, usize)>>,
}

#[derive(Debug)]
struct NoticedChange {
    noticed_at: Instant,
    /// The statuses of the awaited keys, read once, so that not every waiting caller queries MariaDB.
    keys: HashMap<Uuid, KeyStatus>,
}

struct Awaited<'a> {
    registry: &'a KeyRegistry,
    id: Uuid,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let mut awaited = lock(&self.registry.awaited);
        if let Some((_, count)) = awaited.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                awaited.remove(&self.id);
            }
        }
    }
}

#[derive(Debug)]
struct Present {
    version: KeyVersion,
    keys: KeySet,
    issuers: Issuers,
}

impl KeyRegistry {
    pub async fn open(admin: Admin, keys: Keys) -> Result<Self, KeyError> {
        let (present, _) = read(&admin, &keys, None).await?;
        let lookup_slots = lookup_slots();
        Ok(Self {
            roles: Roles::new(admin.clone(), lookup_slots.clone()),
            statuses: SingleFlight::default(),
            lookup_slots,
            admin,
            keys,
            present: ArcSwap::from_pointee(present),
            generations: Generations::default(),
            tokens: Cache::with_weighter(TOKENS_EXPECTED_COUNT, TOKENS_MAX_BYTES, EntryBytes),
            hits: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            uses: Mutex::new(HashMap::new()),
            changes: watch::Sender::new(Arc::new(NoticedChange { noticed_at: Instant::now(), keys: HashMap::new() })),
            awaited: Mutex::new(HashMap::new()),
        })
    }

    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Caller, Problem> {
        self.authenticate_at(authorization, now()).await
    }

    /// Authenticates, also by the token of a log-in link, of which [`Keys::open_session`] checks that it was not used.
    pub async fn authenticate_creator(&self, authorization: Option<&str>) -> Result<Caller, Problem> {
        let token = Token::from_header(authorization)?;
        if !token.of_user().is_some_and(|token| token.is_of_link()) {
            return self.authenticate(authorization).await;
        }
        match token.verify_link(&self.present.load().keys, now()) {
            Ok(principal) => Ok(Caller::new(principal, Rights::Full, Credential::Link)),
            Err(problem) if problem.code() == ErrorCode::ExpiredKey => {
                Err(Problem::new(ErrorCode::ExpiredKey, "The link to the console is older than a minute.")
                    .with_hint("selkie console makes a new one."))
            }
            Err(problem) => Err(problem),
        }
    }

    /// The issuers whose users sign in to the console.
    pub fn sign_in_issuers(&self) -> Vec<IssuerRow> {
        self.present.load().issuers.with_client().cloned().collect()
    }

    pub fn issued(&self) -> &Keys {
        &self.keys
    }

    async fn authenticate_at(&self, authorization: Option<&str>, now: u64) -> Result<Caller, Problem> {
        let token = Token::from_header(authorization)?;
        let digest = token.digest();
        if let Some(entry) = self.tokens.get(&digest)
            && entry.holds(now)
        {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return self.used(&entry, now);
        }
        self.lookups.fetch_add(1, Ordering::Relaxed);
        // Boxed: every request's future would reserve space for the look-up, which seldom runs.
        let entry = Box::pin(self.look_up(token, now)).await?;
        self.tokens.insert(digest, Arc::clone(&entry));
        self.used(&entry, now)
    }

    fn used(&self, entry: &CachedCaller, now: u64) -> Result<Caller, Problem> {
        let caller = entry.verdict(now)?;
        self.note_use(entry, now);
        Ok(caller)
    }

    /// Returns the numbers of requests whose token was not cached, and was cached. Invalid signatures are never cached.
    pub fn lookups(&self) -> (u64, u64) {
        (self.lookups.load(Ordering::Relaxed), self.hits.load(Ordering::Relaxed))
    }

    async fn look_up(&self, token: Token<'_>, now: u64) -> Result<Arc<CachedCaller>, Problem> {
        let present = self.present.load_full();
        if let Some(token) = token.of_user() {
            return self.verify_user(token, &present, now).await;
        }
        let principal = token.verify(&present.keys, now)?;
        // The generation is read before the key's row: if keys change in between, the entry is not used.
        let generation = self.generation(principal.project(), &present);
        let id = principal.key_id();
        let status = self.shared_status(&principal, &generation).await?;
        let caller = match self.rights(&principal, &generation).await? {
            Some(rights) => Ok(Caller::new(principal, rights, Credential::Key)),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The key's role does not exist any more.")
                .with_hint("Ask for a new key: selkie key create.")),
        };
        Ok(Arc::new(CachedCaller::new(generation, now, caller, Some(KeyUse::new(id, status)))))
    }

    fn generation(&self, project: &ProjectName, present: &Arc<Present>) -> Generation {
        let generation = self.generations.of(project);
        // `refresh` replaces `present` before it begins a generation.
        if Arc::ptr_eq(&self.present.load(), present) { generation } else { generation.ended() }
    }

    async fn verify_user(
        &self,
        token: UserToken<'_>,
        present: &Arc<Present>,
        now: u64,
    ) -> Result<Arc<CachedCaller>, Problem> {
        let issuer = Arc::clone(present.issuers.of(&token)?);
        let generation = self.generation(&issuer.row().project, present);
        issuer.check_signature(&token, now).await?;
        let identity = token.identify(now)?;
        let grant = match issuer.grant(token.into_claims()) {
            Ok(grant) => grant,
            Err(problem) => return Ok(Arc::new(CachedCaller::new(generation, now, Err(problem), None))),
        };
        let project = issuer.row().project.clone();
        let principal = Principal::of_user(project, identity.subject, grant, identity.expires_at);
        let caller = match self.rights(&principal, &generation).await? {
            Some(rights) => Ok(Caller::new(principal, rights, Credential::UserToken(issuer))),
            None => Err(Problem::new(ErrorCode::RoleForbids, "The token's role does not exist.")
                .with_hint("selkie issuer list shows how roles are named, selkie role list which exist.")),
        };
        Ok(Arc::new(CachedCaller::new(generation, now, caller, None)))
    }

    /// Returns a key's status. Concurrent requests by a key share a query; a project has a share of the connections.
    async fn shared_status(&self, principal: &Principal, generation: &Generation) -> Result<KeyStatus, Problem> {
        let (admin, slots) = (self.admin.clone(), self.lookup_slots.clone());
        let (id, project) = (principal.key_id(), principal.project().clone());
        let read = async move {
            let _slot = lookup_slot(&slots, &project).await?;
            admin.key_status(id, None).await.map_err(|error| unavailable(&error))
        };
        self.statuses.run((id, generation.number()), read).await
    }

    async fn status(&self, id: Uuid) -> Result<KeyStatus, Problem> {
        self.admin.key_status(id, None).await.map_err(|error| unavailable(&error))
    }

    async fn rights(&self, principal: &Principal, generation: &Generation) -> Result<Option<Rights>, Problem> {
        let grant = match principal.grant() {
            Grant::Full => return Ok(Some(Rights::Full)),
            Grant::Read => return Ok(Some(Rights::Read)),
            Grant::Role(grant) => grant,
        };
        let role = self.roles.role(principal.project(), &grant.role, generation.number()).await?;
        Ok(role.map(|role| Rights::Role(Arc::new(CallerRole::new(role, RuleClaims::new(&grant.claims))))))
    }

    fn note_use(&self, entry: &CachedCaller, now: u64) {
        let Some(id) = entry.to_note(now) else {
            return;
        };
        let mut uses = lock(&self.uses);
        if uses.len() < USES_MAX_COUNT {
            uses.insert(id, now);
        }
    }

    /// Polls MariaDB for changes. While MariaDB fails, the cached data stay in use, and only the first error is logged.
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
        let _ = self.flush().await;
    }

    pub async fn refresh(&self) -> Result<(), KeyError> {
        let before = self.present.load_full();
        if self.admin.key_changes().await? != before.version {
            let (present, projects) = read(&self.admin, &self.keys, Some(&before)).await?;
            let concerns = |of: &ProjectName| projects.as_ref().is_none_or(|projects| projects.contains(of));
            // A caller that begins to wait after this queries its key's status itself.
            let ids: Vec<Uuid> =
                lock(&self.awaited).iter().filter(|(_, (of, _))| concerns(of)).map(|(id, _)| *id).collect();
            let keys = self.admin.key_statuses(&ids).await?;
            self.present.store(Arc::new(present));
            self.generations.begin(concerns);
            self.changes.send_replace(Arc::new(NoticedChange { noticed_at: Instant::now(), keys }));
        }
        Ok(())
    }

    /// Waits until the caller's key, issuer or role is changed or revoked; expiry is not noticed. Checks only after the
    /// generation has changed: [`KeyRegistry::refresh`] then reads the keys of all waiting callers at once.
    pub async fn ended(self: Arc<Self>, caller: Caller, since: Instant) {
        if caller.is_webhook() {
            return std::future::pending().await;
        }
        let mut changes = self.changes.subscribe();
        let _awaited = caller.issuer().is_none().then(|| self.await_key(&caller));
        let mut checked_in: Option<Generation> = None;
        let mut change = Some(changes.borrow_and_update().clone()).filter(|change| change.noticed_at >= since);
        loop {
            if change.is_none() {
                if changes.changed().await.is_err() {
                    return;
                }
                if checked_in.as_ref().is_some_and(Generation::is_present) {
                    continue;
                }
                change = Some(changes.borrow_and_update().clone());
            }
            let generation = self.generations.of(caller.project());
            let known = change.as_ref().and_then(|change| change.keys.get(&caller.key_id()).copied());
            // Boxed: thousands of requests wait here, and few of them check at the same time.
            match Box::pin(self.is_live(&caller, known, &generation)).await {
                Ok(true) => (change, checked_in) = (None, Some(generation)),
                Ok(false) => return,
                // As long as the status can't be read, the caller counts as valid.
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    fn await_key(&self, caller: &Caller) -> Awaited<'_> {
        let id = caller.key_id();
        lock(&self.awaited).entry(id).or_insert_with(|| (caller.project().clone(), 0)).1 += 1;
        Awaited { registry: self, id }
    }

    /// Returns whether the caller is still valid. If `known` is `None`, the key's status is read from MariaDB.
    async fn is_live(
        &self,
        caller: &Caller,
        known: Option<KeyStatus>,
        generation: &Generation,
    ) -> Result<bool, Problem> {
        let present = self.present.load_full();
        let is_trusted = match (caller.issuer(), known) {
            (Some(issuer), _) => present.issuers.has(issuer),
            (None, Some(status)) => status == KeyStatus::Live,
            (None, None) => self.status(caller.key_id()).await? == KeyStatus::Live,
        };
        if !is_trusted {
            return Ok(false);
        }
        let rights = self.rights(caller.principal(), generation).await?;
        // If the role has changed, it may allow less than the running request was checked for.
        let is_same = match (caller.rights().role(), rights.as_ref().and_then(Rights::role)) {
            (Some(before), Some(role)) => before.role() == role.role(),
            (before, role) => before.is_none() && role.is_none() && rights.is_some(),
        };
        Ok(is_same)
    }

    /// Records the last uses of keys, all at the time of the latest use.
    pub async fn flush(&self) -> Result<(), KeyError> {
        let uses = std::mem::take(&mut *lock(&self.uses));
        let Some(latest) = uses.values().copied().max() else {
            return Ok(());
        };
        let ids: Vec<Uuid> = uses.into_keys().collect();
        Ok(self.admin.touch_keys(&ids, latest).await?)
    }
}

/// Reads roles and issuers, and the projects that have changed since `before`; `None` for all projects.
async fn read(
    admin: &Admin,
    keys: &Keys,
    before: Option<&Present>,
) -> Result<(Present, Option<Vec<ProjectName>>), KeyError> {
    // The version is read first, so that the next poll notices a change made between the two reads.
    let version = admin.key_changes().await?;
    let changed = match before {
        Some(before) => admin.changed_projects(before.version, version).await?,
        None => None,
    };
    let known = match before {
        Some(before) => &before.issuers,
        None => &Issuers::default(),
    };
    let rows = match changed.as_deref() {
        Some(projects @ [..]) if projects.len() <= CHANGED_PROJECTS_MAX_COUNT => {
            let mut rows = known.rows_without(projects);
            for project in projects {
                rows.extend(issuers(admin, Some(project)).await?);
            }
            rows
        }
        _ => issuers(admin, None).await?,
    };
    let present = Present { version, keys: keys.public_keys().await?, issuers: Issuers::new(rows, known) };
    Ok((present, changed))
}

async fn issuers(admin: &Admin, of: Option<&ProjectName>) -> Result<Vec<IssuerRow>, AdminError> {
    match admin.issuers(of).await {
        // Revocations of keys must take effect even if somebody has damaged an issuer's row by hand.
        Err(error @ AdminError::Corrupt(_)) => {
            tracing::warn!(%error, "the issuers can't be read; the tokens of their users are refused");
            Ok(Vec::new())
        }
        rows => rows,
    }
}

async fn lookup_slot(slots: &ProjectQuota, project: &ProjectName) -> Result<QuotaGuard, Problem> {
    let slot = tokio::time::timeout(LOOKUP_WAIT_MAX, slots.take(project, 1)).await;
    slot.map_err(|_| Problem::new(ErrorCode::Overloaded, "Too many keys are looked up already."))
}

/// Returns the slots for look-ups: a project may have all connections of [`Admin`] but one.
pub fn lookup_slots() -> ProjectQuota {
    let connections = CONNECTIONS_MAX_COUNT as u64;
    ProjectQuota::new(connections, connections - 1)
}

impl From<LoadAborted> for Problem {
    fn from(_: LoadAborted) -> Self {
        Self::internal("The key can't be checked.", "reading its status or role was aborted")
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
