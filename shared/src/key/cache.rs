//! Verified tokens, kept by hash in bounded memory, for a host that runs on one thread.
//!
//! A signature takes about 0.1 ms to check, a hash a ten-thousandth of it. Only principals are kept,
//! never refusals: a stranger's noise can't push a caller's key out.

use super::{KeySet, Principal, Token, TokenDigest};
use crate::error::Problem;
use std::collections::HashMap;
use std::fmt;
use std::mem;

/// A key set with the principals that it verified lately. Holds two generations of at most
/// `capacity` tokens each: what was not asked for while one filled up is forgotten.
pub struct TokenCache {
    keys: KeySet,
    capacity: usize,
    young: HashMap<TokenDigest, Principal>,
    old: HashMap<TokenDigest, Principal>,
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").field("keys", &self.keys).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl TokenCache {
    /// An empty cache over `keys`; it belongs to them, so that a retired key takes its tokens along.
    #[must_use]
    pub fn new(keys: KeySet, capacity: usize) -> Self {
        Self { keys, capacity: capacity.max(1), young: HashMap::new(), old: HashMap::new() }
    }

    /// [`super::verify`], from memory if this token was verified before.
    ///
    /// # Errors
    /// As of [`super::verify`].
    pub fn verify(&mut self, authorization: Option<&str>, now: u64) -> Result<Principal, Problem> {
        let token = Token::from_header(authorization)?;
        let digest = token.digest();
        if let Some(principal) = self.young.get(&digest) {
            let lifetime = principal.check_lifetime(now);
            return lifetime.map(|()| principal.clone());
        }
        let principal = match self.old.remove(&digest) {
            Some(principal) => {
                principal.check_lifetime(now)?;
                principal
            }
            None => token.verify(&self.keys, now)?,
        };
        if self.young.len() >= self.capacity {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(digest, principal.clone());
        Ok(principal)
    }

    /// How many tokens are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether no token is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
