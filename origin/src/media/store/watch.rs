//! Whether the store answers, for those who ask often.
//!
//! Knows nothing of who asks. However many ask at once, the store is asked once a second.

use super::Store;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long an answer is good for: probes of several machines together ask a bucket no more often.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Looks after a store.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    last: Mutex<Option<Look>>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    at: Instant,
    answers: bool,
}

impl Watch {
    /// Looks after this store; nothing is asked yet.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, last: Mutex::new(None) }
    }

    /// Whether the store answers, or did a moment ago. Takes as long as [`Store::check`] at most, for all who ask meanwhile.
    pub async fn answers(&self) -> bool {
        let mut last = self.last.lock().await;
        if let Some(look) = last.filter(|look| look.at.elapsed() < GOOD_FOR) {
            return look.answers;
        }
        let checked = self.store.check().await;
        if let Err(error) = &checked {
            tracing::warn!(cause = error.in_full(), "the media store does not answer");
        }
        let look = Look { at: Instant::now(), answers: checked.is_ok() };
        *last = Some(look);
        look.answers
    }
}
