//! The health check of the media store.

use super::Store;
use crate::recent::Recent;

#[derive(Debug)]
pub struct Watch {
    store: Store,
    last: Recent<bool>,
}

impl Watch {
    pub fn new(store: Store) -> Self {
        Self { store, last: Recent::default() }
    }

    /// Concurrent callers share one check, whose result is valid for a second.
    pub async fn answers(&self) -> bool {
        let check = async {
            let checked = self.store.check().await;
            if let Err(error) = &checked {
                tracing::warn!(cause = error.in_full(), "the media store does not answer");
            }
            checked.is_ok()
        };
        self.last.get(check).await
    }
}
