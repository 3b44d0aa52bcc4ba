//! The requests of this process that have locked an upload, so that another request for the same upload can interrupt
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The cancellation tokens of the requests that have locked an upload, by the upload's id. Clones share the entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    tokens: Arc<Mutex<HashMap<Uuid, CancellationToken>>>,
}

impl Running {
    /// Adds an entry for the request that has locked the upload `id`. Dropping the returned value removes the entry.
    pub(super) fn register(&self, id: Uuid) -> RunningRequest {
        let token = CancellationToken::new();
        self.locked(|tokens| tokens.insert(id, token.clone()));
        RunningRequest { running: self.clone(), id, token }
    }

    /// Cancels the token of the request of this process that has locked the upload `id`, if there is such a request.
    pub(super) fn interrupt(&self, id: Uuid) {
        self.locked(|tokens| {
            if let Some(token) = tokens.get(&id) {
                token.cancel();
            }
        });
    }

    /// Returns the number of requests of this process that have locked an upload.
    pub(super) fn count(&self) -> usize {
        self.locked(|tokens| tokens.len())
    }

    fn locked<T>(&self, change: impl FnOnce(&mut HashMap<Uuid, CancellationToken>) -> T) -> T {
        change(&mut self.tokens.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The entry of a request in [`Running`]. Dropping this value removes the entry.
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
        // Only one request at a time locks an upload, so the entry belongs to this request.
        self.running.locked(|tokens| tokens.remove(&self.id));
    }
}
