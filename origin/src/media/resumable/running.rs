//! The requests of this process that have locked an upload, and a way to interrupt them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The running requests by upload, one entry for each. Clones share the entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    tokens: Arc<Mutex<HashMap<Uuid, CancellationToken>>>,
}

impl Running {
    /// Registers the request that has locked an upload, until the returned value is dropped.
    pub(super) fn register(&self, id: Uuid) -> RunningRequest {
        let token = CancellationToken::new();
        self.locked(|tokens| tokens.insert(id, token.clone()));
        RunningRequest { running: self.clone(), id, token }
    }

    /// Asks the request of this process that has locked the upload, if there is one, to release it.
    pub(super) fn interrupt(&self, id: Uuid) {
        self.locked(|tokens| {
            if let Some(token) = tokens.get(&id) {
                token.cancel();
            }
        });
    }

    fn locked<T>(&self, change: impl FnOnce(&mut HashMap<Uuid, CancellationToken>) -> T) -> T {
        change(&mut self.tokens.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The entry of a running request. Dropping it removes the entry.
#[derive(Debug)]
pub(super) struct RunningRequest {
    running: Running,
    id: Uuid,
    token: CancellationToken,
}

impl RunningRequest {
    /// Returns the token that is cancelled when the request should release the upload.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        // Only one request at a time locks an upload, so the entry is this one's.
        self.running.locked(|tokens| tokens.remove(&self.id));
    }
}
