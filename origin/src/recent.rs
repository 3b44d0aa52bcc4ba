//! A value that is read anew when it is older than a second. Knows nothing of the value.

use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

const LIFETIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Recent<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> Recent<T> {
    pub async fn get(&self, read: impl Future<Output = T>) -> T {
        let mut last = self.0.lock().await;
        if let Some((at, value)) = last.as_ref()
            && at.elapsed() < LIFETIME
        {
            return value.clone();
        }
        let value = read.await;
        *last = Some((Instant::now(), value.clone()));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn callers_within_a_second_share_a_read() {
        let (recent, reads) = (Recent::default(), AtomicU32::new(0));
        let get = || recent.get(async { reads.fetch_add(1, Ordering::Relaxed) });
        let (one, other) = tokio::join!(get(), get());
        assert_eq!((one, other, get().await), (0, 0, 0));
        tokio::time::advance(LIFETIME).await;
        assert_eq!(get().await, 1);
    }
}
