//! Bounded caches of verified tokens for the edge, which runs on one thread. Verifying a signature takes about 0.1 ms,
//! hashing a token far less. Refused tokens are not cached, so that they can't displace valid ones.

use super::{KeySet, Principal, Token, TokenDigest};
use crate::error::Problem;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Arc;

/// A cache of the values that verified tokens stand for. Has two generations of at most `capacity` tokens each: when
/// the young generation is full, it becomes the old one, and the old one is dropped.
pub struct VerifiedTokens<V> {
    capacity: usize,
    young: HashMap<TokenDigest, V>,
    old: HashMap<TokenDigest, V>,
}

impl<V> fmt::Debug for VerifiedTokens<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedTokens").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<V: Clone> VerifiedTokens<V> {
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), young: HashMap::new(), old: HashMap::new() }
    }

    /// Returns the value for a token, which may have expired since it was verified; `None` if the token is not cached.
    pub fn get(&mut self, token: &TokenDigest) -> Option<V> {
        if let Some(value) = self.young.get(token) {
            return Some(value.clone());
        }
        let value = self.old.remove(token)?;
        self.insert(*token, value.clone());
        Some(value)
    }

    pub fn insert(&mut self, token: TokenDigest, value: V) {
        if self.young.len() >= self.capacity {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(token, value);
    }
}

impl<V> VerifiedTokens<V> {
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

/// A set of public keys, and a cache of the principals that it verified. The principals have no claims for the rules of
/// roles, which only the origin applies.
#[derive(Debug)]
pub struct TokenCache {
    keys: KeySet,
    tokens: VerifiedTokens<Arc<Principal>>,
}

impl TokenCache {
    /// Creates an empty cache for up to twice `capacity` tokens. The cache owns `keys`: a new key set needs a new
    /// cache, so that all cached tokens are dropped.
    pub fn new(keys: KeySet, capacity: usize) -> Self {
        Self { keys, tokens: VerifiedTokens::new(capacity) }
    }

    /// Verifies an `Authorization` header as [`super::verify`] does, without checking a cached token's signature again.
    /// The principal has no claims for the rules of a role.
    ///
    /// # Errors
    /// `missing_key`, `invalid_key` or `expired_key`, as [`super::verify`] does.
    pub fn verify(&mut self, authorization: Option<&str>, now: u64) -> Result<Arc<Principal>, Problem> {
        let token = Token::from_header(authorization)?;
        let digest = token.digest();
        if let Some(principal) = self.tokens.get(&digest) {
            return principal.check_lifetime(now).map(|()| principal);
        }
        let principal = Arc::new(token.verify(&self.keys, now)?.without_claims());
        self.tokens.insert(digest, Arc::clone(&principal));
        Ok(principal)
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
