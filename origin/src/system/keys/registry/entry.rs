//! A cached token: its caller or error, how long the entry may be used, and its memory. An entry counts only in the
//! *generation* of its project in which it was looked up: the number of changes to the project's keys, roles and
//! issuers that this origin has noticed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use quick_cache::Weighter;
use serde_json::Value;
use shared::error::{ErrorCode, Problem};
use shared::ident::ProjectName;
use shared::key::{Grant, Principal, TokenDigest};
use uuid::Uuid;

use crate::database::admin::KeyStatus;
use crate::system::keys::Caller;

/// The approximate memory of a token without its claims.
const TOKEN_BYTES: usize = 512;

/// The capacity of a `BTreeMap` node, which has at least 5 entries unless it is the only one.
const NODE_ENTRIES: usize = 11;

/// The memory of a node besides its entries.
const NODE_BYTES: usize = 16;

/// The age at which a key's status or a user's token is looked up again, if the generation doesn't change.
const RECHECK_SECONDS: u64 = 60;

/// The age at which an unknown key is looked up again. Forged tokens are never looked up, so they cause no queries.
const RECHECK_UNKNOWN_SECONDS: u64 = 1;

const USE_GRANULARITY_SECONDS: u64 = 60;

#[derive(Debug)]
pub(super) struct CachedCaller {
    generation: Generation,
    looked_up_at: u64,
    caller: Result<Caller, Problem>,
    key: Option<KeyUse>,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct KeyUse {
    id: Uuid,
    status: KeyStatus,
    noted_at: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EntryBytes;

impl Weighter<TokenDigest, Arc<CachedCaller>> for EntryBytes {
    fn weight(&self, _: &TokenDigest, entry: &Arc<CachedCaller>) -> u64 {
        entry.bytes
    }
}

impl KeyUse {
    pub(super) fn new(id: Uuid, status: KeyStatus) -> Self {
        Self { id, status, noted_at: AtomicU64::new(0) }
    }
}

impl CachedCaller {
    /// Makes an entry. `looked_up_at` is in seconds since 1970.
    pub(super) fn new(
        generation: Generation,
        looked_up_at: u64,
        caller: Result<Caller, Problem>,
        key: Option<KeyUse>,
    ) -> Self {
        let claims = caller.as_ref().ok().map_or(0, |caller| claims_bytes(caller.principal()));
        Self { generation, looked_up_at, caller, key, bytes: (TOKEN_BYTES + claims) as u64 }
    }

    fn status(&self) -> KeyStatus {
        self.key.as_ref().map_or(KeyStatus::Live, |key| key.status)
    }

    pub(super) fn holds(&self, now: u64) -> bool {
        let seconds = match self.status() {
            KeyStatus::Unknown => RECHECK_UNKNOWN_SECONDS,
            KeyStatus::Live | KeyStatus::Revoked => RECHECK_SECONDS,
        };
        self.generation.is_present() && now < self.looked_up_at.saturating_add(seconds)
    }

    pub(super) fn verdict(&self, now: u64) -> Result<Caller, Problem> {
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

    /// Returns the id of the key whose use is to be recorded; `None` if no use is to be recorded.
    pub(super) fn to_note(&self, now: u64) -> Option<Uuid> {
        let key = self.key.as_ref()?;
        let noted_at = key.noted_at.load(Ordering::Relaxed);
        if key.status != KeyStatus::Live || now < noted_at.saturating_add(USE_GRANULARITY_SECONDS) {
            return None;
        }
        key.noted_at.store(now, Ordering::Relaxed);
        Some(key.id)
    }
}

fn claims_bytes(principal: &Principal) -> usize {
    let Grant::Role(grant) = principal.grant() else {
        return 0;
    };
    let claims = &grant.claims;
    let heap: usize = claims.iter().map(|(name, value)| 2 * (name.len() + heap_bytes(value))).sum();
    map_bytes::<Value>(claims.len()) + map_bytes::<String>(claims.len()) + heap
}

fn heap_bytes(value: &Value) -> usize {
    match value {
        // A number itself has no heap memory; its text for the role's rules has some bytes.
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len(),
        Value::Array(items) => items.capacity() * size_of::<Value>() + items.iter().map(heap_bytes).sum::<usize>(),
        Value::Object(members) => {
            let heap: usize = members.iter().map(|(name, value)| name.len() + heap_bytes(value)).sum();
            map_bytes::<Value>(members.len()) + heap
        }
    }
}

fn map_bytes<V>(len: usize) -> usize {
    let nodes = len.div_ceil(NODE_ENTRIES.div_ceil(2));
    nodes * (NODE_ENTRIES * size_of::<(String, V)>() + NODE_BYTES)
}

/// The present generation of each project. [`Generations::begin`] ends it, so that entries of earlier look-ups are no
/// longer used. Unbounded, but only an administrator creates projects.
#[derive(Debug, Default)]
pub(super) struct Generations(RwLock<HashMap<ProjectName, Arc<AtomicU64>>>);

#[derive(Debug)]
pub(super) struct Generation {
    number: u64,
    present: Arc<AtomicU64>,
}

impl Generation {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_present(&self) -> bool {
        self.number == self.present.load(Ordering::Acquire)
    }

    pub(super) fn ended(self) -> Self {
        Self { number: self.number.wrapping_sub(1), ..self }
    }
}

impl Generations {
    pub(super) fn of(&self, project: &ProjectName) -> Generation {
        // The map is valid after every step, so a poisoned lock can be used.
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(project).cloned();
        let present = known.unwrap_or_else(|| {
            let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(project.clone()).or_default())
        });
        Generation { number: present.load(Ordering::Acquire), present }
    }

    pub(super) fn begin(&self, concerns: impl Fn(&ProjectName) -> bool) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (_, present) in all.iter().filter(|(project, _)| concerns(project)) {
            present.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::ident::{ProjectName, RoleName};
    use shared::key::RoleGrant;

    fn bytes(claims: &Value) -> usize {
        let claims = claims.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let grant = Grant::Role(Arc::new(RoleGrant { role: RoleName::parse("author").unwrap(), claims }));
        let project = ProjectName::parse("default").unwrap();
        claims_bytes(&Principal::of_user(project, Uuid::from_bytes([7; 16]), grant, 1))
    }

    #[test]
    fn a_token_weighs_what_its_claims_need() {
        let map = |count: usize| {
            let numbers = (0..count).map(|at| (format!("c{at}"), json!(at)));
            Value::Object(numbers.collect())
        };
        assert_eq!(bytes(&json!({})), 0);
        // Even a single claim takes one node in each of the two maps.
        assert!(bytes(&json!({"sub": 7})) >= NODE_ENTRIES * size_of::<(String, Value)>());
        // Many small claims need much more memory than their texts.
        assert!(bytes(&map(100)) >= 100 * (size_of::<(String, Value)>() + size_of::<(String, String)>()));
        assert!(bytes(&map(100)) < 100 * 500);
        for long in [json!("x".repeat(1_000)), json!({"a": {"b": "x".repeat(1_000)}}), json!(vec!["x"; 1_000])] {
            let more = bytes(&json!({"c": long})) - bytes(&json!({"c": ""}));
            assert!((2_000..200_000).contains(&more), "{more}");
        }
    }

    #[test]
    fn a_generation_ends_when_its_project_changes() {
        let [one, other] = ["one", "other"].map(|name| ProjectName::parse(name).unwrap());
        let generations = Generations::default();
        let (before, of_other) = (generations.of(&one), generations.of(&other));
        generations.begin(|project| *project == one);
        assert!(!before.is_present() && of_other.is_present() && generations.of(&one).is_present());
        assert!(!generations.of(&one).ended().is_present());
    }
}
