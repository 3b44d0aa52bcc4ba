//! What a request is asked at the door: is this key ours, and does it still hold?
//!
//! A token that was seen lately is answered from memory, without a lock held across a wait: its
//! signature was checked, and its row was there, in the present *generation*. Every change of keys,
//! made by whichever origin or command, moves the generation on, which [`KeyRegistry::watch`] notices
//! within a second; then each token is looked up once more. A row that somebody deletes by hand is
//! noticed after a minute.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use quick_cache::sync::Cache;
use shared::error::{ErrorCode, Problem};
use shared::key::{KeySet, Principal, Token, TokenDigest};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{KeyError, Keys};
use crate::clock::now;
use crate::database::admin::{Admin, AdminError, KeyStatus};

/// Tokens kept: about 200 bytes each.
const TOKENS_MAX_COUNT: usize = 10_000;

/// How long a look-up holds while nothing is known to have changed.
const RECHECK_SECONDS: u64 = 60;

/// How long "no such key" holds. Its owner must sign properly to get there, so this is no stranger.
const RECHECK_UNKNOWN_SECONDS: u64 = 1;

/// How often the generation is asked for: what a revocation takes to act.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often uses are written down.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// A key's use is written down at most this often.
const USE_GRANULARITY_SECONDS: u64 = 60;

/// Uses waiting to be written down; beyond, they are forgotten: they are for people's information.
const USES_MAX_COUNT: usize = 10_000;

/// The keys of a running origin.
#[derive(Debug)]
pub struct KeyRegistry {
    admin: Admin,
    keys: Keys,
    present: ArcSwap<Present>,
    tokens: Cache<TokenDigest, Arc<Entry>>,
    uses: Mutex<HashMap<Uuid, u64>>,
    /// When this origin last learned that keys have changed.
    changed_at: watch::Sender<Instant>,
}

/// The public keys, and the generation in which they were read.
#[derive(Debug)]
struct Present {
    generation: u64,
    keys: KeySet,
}

/// The outcome of a look-up. Refusals of strangers are not kept: only what we signed gets here.
#[derive(Debug)]
struct Entry {
    generation: u64,
    looked_up_at: u64,
    principal: Arc<Principal>,
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

    fn verdict(&self, now: u64) -> Result<Arc<Principal>, Problem> {
        match self.status {
            KeyStatus::Live => self.principal.check_lifetime(now).map(|()| Arc::clone(&self.principal)),
            KeyStatus::Revoked => Err(Problem::new(ErrorCode::RevokedKey, "The key was revoked.")
                .with_hint("Ask for a new key: selkie key create.")),
            KeyStatus::Unknown => {
                Err(Problem::new(ErrorCode::InvalidKey, "The key is not known to this installation."))
            }
        }
    }
}

impl KeyRegistry {
    /// Reads the signing keys; there must be one (see [`Keys::prepare`]).
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
            uses: Mutex::new(HashMap::new()),
            changed_at: watch::Sender::new(Instant::now()),
        })
    }

    /// Verifies an `Authorization` header, and that the key was neither revoked nor forgotten.
    ///
    /// # Errors
    /// `missing_key`, `invalid_key`, `expired_key`, `revoked_key`; `database_unavailable` if a token
    /// that is not in memory could not be looked up.
    pub async fn authenticate(&self, authorization: Option<&str>) -> Result<Arc<Principal>, Problem> {
        self.authenticate_at(authorization, now()).await
    }

    async fn authenticate_at(&self, authorization: Option<&str>, now: u64) -> Result<Arc<Principal>, Problem> {
        let token = Token::from_header(authorization)?;
        let digest = token.digest();
        if let Some(entry) = self.tokens.get(&digest)
            && entry.holds(self.present.load().generation, now)
        {
            self.note_use(&entry, now);
            return entry.verdict(now);
        }
        // Boxed, so that a known token does not carry room for it.
        let entry = Box::pin(self.look_up(token, now)).await?;
        self.tokens.insert(digest, Arc::clone(&entry));
        self.note_use(&entry, now);
        entry.verdict(now)
    }

    async fn look_up(&self, token: Token<'_>, now: u64) -> Result<Arc<Entry>, Problem> {
        // Read before the row is: a change after that makes the outcome stale at once.
        let present = self.present.load_full();
        let principal = token.verify(&present.keys, now)?;
        let status = self.admin.key_status(principal.key_id()).await.map_err(|error| unavailable(&error))?;
        Ok(Arc::new(Entry {
            generation: present.generation,
            looked_up_at: now,
            principal: Arc::new(principal),
            status,
            noted_at: AtomicU64::new(0),
        }))
    }

    fn note_use(&self, entry: &Entry, now: u64) {
        let noted_at = entry.noted_at.load(Ordering::Relaxed);
        if entry.status != KeyStatus::Live || now < noted_at.saturating_add(USE_GRANULARITY_SECONDS) {
            return;
        }
        entry.noted_at.store(now, Ordering::Relaxed);
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.len() < USES_MAX_COUNT {
            uses.insert(entry.principal.key_id(), now);
        }
    }

    /// Follows changes and writes uses down, until `stop`. Faults are logged when they begin; meanwhile
    /// what is known keeps its force.
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
                Err(error) if healthy => tracing::warn!(%error, "keys can't be followed"),
                Ok(()) if !healthy => tracing::info!("keys are followed again"),
                _ => {}
            }
            healthy = outcome.is_ok();
        }
        // The last uses; a stop does not wait for them to succeed.
        let _ = self.flush().await;
    }

    /// Reads the signing keys anew if anything changed.
    ///
    /// # Errors
    /// MariaDB failed; what was known stays.
    pub async fn refresh(&self) -> Result<(), KeyError> {
        if self.admin.key_changes().await? != self.present.load().generation {
            self.present.store(Arc::new(read(&self.admin, &self.keys).await?));
            self.changed_at.send_replace(Instant::now());
        }
        Ok(())
    }

    /// Resolves when a key, which held at `since` or later, was revoked or forgotten. Looks the key up only after a
    /// change of keys.
    pub async fn ended(self: Arc<Self>, id: Uuid, since: Instant) {
        let mut changes = self.changed_at.subscribe();
        let mut has_changed = *changes.borrow_and_update() >= since;
        loop {
            // The channel is never closed: the sender is this registry's own.
            if !has_changed && changes.changed().await.is_err() {
                return;
            }
            has_changed = match self.admin.key_status(id).await {
                Ok(KeyStatus::Live) => false,
                Ok(KeyStatus::Revoked | KeyStatus::Unknown) => return,
                Err(_) => {
                    // The key counts as live until MariaDB answers.
                    tokio::time::sleep(POLL_INTERVAL).await;
                    true
                }
            };
        }
    }

    /// Writes down which keys were used since the last time.
    ///
    /// # Errors
    /// MariaDB failed; those uses are forgotten.
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
    // The generation first: a change in between is then seen at the next look.
    let generation = admin.key_changes().await?;
    Ok(Present { generation, keys: keys.public_keys().await? })
}

fn unavailable(error: &AdminError) -> Problem {
    tracing::warn!(%error, "a key could not be looked up");
    Problem::new(ErrorCode::DatabaseUnavailable, "The key can't be checked at the moment.")
}
