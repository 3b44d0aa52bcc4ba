//! The places of uploads: so many at once, and so many of one key. Knows nothing of what arrives in them.

use shared::error::{ErrorCode, Problem};
use shared::limits::UPLOADS_PER_KEY_MAX_COUNT;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

/// Uploads that arrive or are examined at once. Each holds two pieces of a file of 256 KiB and a parser of
/// 64: 150 MB at most.
const UPLOADS_MAX_COUNT: usize = 256;

/// Counts the uploads: all, and those of each key, so that one that lets its bytes drip can't hold every place.
#[derive(Debug)]
pub struct Uploads {
    places: Semaphore,
    by_key: Mutex<HashMap<Uuid, usize>>,
}

/// One upload's place, until it is dropped.
#[derive(Debug)]
pub(in crate::http) struct Place<'a> {
    uploads: &'a Uploads,
    key: Uuid,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut by_key = self.uploads.by_key();
        // Only keys with an upload under way have an entry: no more than there are places.
        match by_key.get_mut(&self.key) {
            Some(count @ 2..) => *count -= 1,
            _ => drop(by_key.remove(&self.key)),
        }
    }
}

impl Default for Uploads {
    fn default() -> Self {
        Self {
            places: Semaphore::new(UPLOADS_MAX_COUNT),
            by_key: Mutex::default(),
        }
    }
}

impl Uploads {
    /// Lets one of a key in, until what this gives is dropped.
    pub(in crate::http) fn enter(&self, key: Uuid) -> Result<Place<'_>, Problem> {
        let permit = self.places.try_acquire().map_err(|_| {
            Problem::new(ErrorCode::Overloaded, "Too many uploads are on their way.")
        })?;
        let mut by_key = self.by_key();
        let count = by_key.entry(key).or_default();
        if *count >= UPLOADS_PER_KEY_MAX_COUNT {
            let message = format!(
                "{UPLOADS_PER_KEY_MAX_COUNT} uploads of this key are on their way already."
            );
            return Err(Problem::new(ErrorCode::RateLimited, message)
                .with_hint("Begin the next when one of them has ended."));
        }
        *count += 1;
        Ok(Place {
            uploads: self,
            key,
            _permit: permit,
        })
    }

    fn by_key(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_can_not_hold_every_place() {
        let uploads = Uploads::default();
        let (greedy, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let enter = |key| uploads.enter(key).map_err(|problem| problem.code());
        let mut held: Vec<_> = (0..UPLOADS_PER_KEY_MAX_COUNT)
            .map(|_| enter(greedy).unwrap())
            .collect();
        assert_eq!(enter(greedy).err(), Some(ErrorCode::RateLimited));
        assert!(enter(other).is_ok());
        held.pop();
        held.push(enter(greedy).unwrap());
        assert_eq!(enter(greedy).err(), Some(ErrorCode::RateLimited));
        drop(held);
        assert!(uploads.by_key().is_empty());
        assert_eq!(uploads.places.available_permits(), UPLOADS_MAX_COUNT);
    }

    #[test]
    fn all_keys_together_have_so_many_places() {
        let uploads = Uploads::default();
        let held: Vec<_> = (0..UPLOADS_MAX_COUNT as u128)
            .map(|key| uploads.enter(Uuid::from_u128(key)).unwrap())
            .collect();
        let refused = uploads.enter(Uuid::max()).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Overloaded);
        drop(held);
        assert!(uploads.by_key().is_empty());
    }
}
