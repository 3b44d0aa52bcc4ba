//! Work that is tried again while others stand against it.

use std::time::Duration;

/// How often, and after what pauses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    /// Tries in all.
    pub(crate) tries: u32,
    /// The pause before the second try. It doubles with each, and up to as much again is added by chance,
    /// so that those who met once do not meet again.
    pub(crate) pause: Duration,
}

impl Retries {
    /// Runs `work` until it succeeds, fails for a reason that is not worth another try, or was tried often enough.
    ///
    /// # Errors
    /// That of the last try.
    pub(crate) async fn run<T, E, F>(
        self,
        is_worth_retrying: impl Fn(&E) -> bool,
        mut work: impl FnMut() -> F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        let mut pause = self.pause;
        for _ in 1..self.tries {
            match work().await {
                Err(error) if is_worth_retrying(&error) => {}
                outcome => return outcome,
            }
            let chance = getrandom::u32().map_or(0.5, |chance| f64::from(chance) / f64::from(u32::MAX));
            tokio::time::sleep(pause.mul_f64(1.0 + chance)).await;
            pause *= 2;
        }
        work().await
    }
}
