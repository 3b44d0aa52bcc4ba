//! Retries with exponential back-off and jitter, for work that conflicts with concurrent work.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Retries {
    pub(crate) tries: u32,
    /// The pause doubles with each attempt, plus up to 100 % at random, so that conflicting requests don't meet again.
    pub(crate) pause: Duration,
}

impl Retries {
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
