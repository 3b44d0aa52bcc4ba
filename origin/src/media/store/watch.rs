//! Caches the result of the store's health check, so that frequent checks reach the store at most once a second.

use super::Store;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

const CHECK_TTL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Watch {
    store: Store,
    last: Mutex<Option<Checked>>,
}

#[derive(Clone, Copy, Debug)]
struct Checked {
    at: Instant,
    answers: bool,
}

impl Watch {
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, last: Mutex::new(None) }
    }

    /// Returns whether [`Store::check`] succeeded, now or within the last second. Concurrent callers share one check.
    pub async fn answers(&self) -> bool {
        let mut last = self.last.lock().await;
        if let Some(checked) = last.filter(|checked| checked.at.elapsed() < CHECK_TTL) {
            return checked.answers;
        }
        let checked = self.store.check().await;
        if let Err(error) = &checked {
            tracing::warn!(cause = error.in_full(), "the media store does not answer");
        }
        let checked = Checked { at: Instant::now(), answers: checked.is_ok() };
        *last = Some(checked);
        checked.answers
    }
}
