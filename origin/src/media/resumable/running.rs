//! The requests of this process that have an upload, and how one is asked to let go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Which requests run. Clones share it. Holds an entry for each running request, so requests bound it.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    tokens: Arc<Mutex<HashMap<Uuid, CancellationToken>>>,
}

impl Running {
    /// Enters a request that holds the upload, until its place is dropped.
    pub(super) fn enter(&self, id: Uuid) -> Place {
        let token = CancellationToken::new();
        self.locked(|tokens| tokens.insert(id, token.clone()));
        Place { running: self.clone(), id, token }
    }

    /// Asks the request that has the upload to let go, if one of this process has.
    pub(super) fn interrupt(&self, id: Uuid) {
        self.locked(|tokens| {
            if let Some(token) = tokens.get(&id) {
                token.cancel();
            }
        });
    }

    fn locked<T>(&self, deed: impl FnOnce(&mut HashMap<Uuid, CancellationToken>) -> T) -> T {
        deed(&mut self.tokens.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A running request's place.
#[derive(Debug)]
pub(super) struct Place {
    running: Running,
    id: Uuid,
    token: CancellationToken,
}

impl Place {
    /// Is cancelled when the request should let go.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Only one request at a time holds an upload, so the entry is this one's.
        self.running.locked(|tokens| tokens.remove(&self.id));
    }
}
