//! Time limits for futures that wait for MariaDB ("steps").

use super::error::DbError;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::{Unconstrained, unconstrained};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

pin_project! {
    /// A step with a time limit, counted from `since`, or else from the first pending poll: a step that is ready at
    /// once never reads the clock.
    pub(super) struct Within<S> {
        #[pin]
        step: S,
        limit: Duration,
        since: Option<Instant>,
        #[pin]
        alarm: Option<Unconstrained<Sleep>>,
        #[pin]
        left: Option<WaitForCancellationFutureOwned>,
    }
}

/// The limit of a step, which is cancelled after `time`, or when the connection's host is left (see `hosts`).
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) time: Duration,
    pub(super) left: Option<CancellationToken>,
}

impl From<Duration> for Limit {
    fn from(time: Duration) -> Self {
        Self { time, left: None }
    }
}

pub(super) fn within<S: Future>(limit: impl Into<Limit>, step: S) -> Within<S> {
    let Limit { time, left } = limit.into();
    Within { step, limit: time, since: None, alarm: None, left: left.map(CancellationToken::cancelled_owned) }
}

/// Limits a step to a time that counts from `since`, so that several steps share one time limit.
pub(super) fn within_since<S: Future>(since: Instant, limit: impl Into<Limit>, step: S) -> Within<S> {
    Within { since: Some(since), ..within(limit, step) }
}

impl<T, E, S> Future for Within<S>
where
    E: Into<DbError>,
    S: Future<Output = Result<T, E>>,
{
    type Output = Result<T, DbError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(outcome) = this.step.poll(context) {
            return Poll::Ready(outcome.map_err(Into::into));
        }
        if let Some(left) = this.left.as_mut().as_pin_mut()
            && left.poll(context).is_ready()
        {
            return Poll::Ready(Err(DbError::Unavailable("the database host is lost".into())));
        }
        if this.alarm.is_none() {
            // Unconstrained, so that a step that used up its task's cooperative budget can't suppress the timer.
            let spent = this.since.map_or(Duration::ZERO, |since| since.elapsed());
            let alarm = unconstrained(tokio::time::sleep(this.limit.saturating_sub(spent)));
            this.alarm.set(Some(alarm));
        }
        match this.alarm.as_pin_mut() {
            Some(alarm) => alarm.poll(context).map(|()| Err(DbError::Timeout)),
            None => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    #[tokio::test]
    async fn a_step_that_is_done_needs_no_time() {
        let done = within(Duration::ZERO, ready(Ok::<_, DbError>(7))).await;
        assert!(matches!(done, Ok(7)));
    }

    #[tokio::test]
    async fn a_step_that_takes_too_long_is_given_up() {
        let outcome = within(Duration::from_millis(1), pending::<Result<(), DbError>>()).await;
        assert!(matches!(outcome, Err(DbError::Timeout)));
    }

    #[tokio::test]
    async fn steps_with_a_common_beginning_have_its_limit_together() {
        let (hour, step) = (Duration::from_secs(3600), pending::<Result<(), DbError>>);
        let Some(hour_ago) = Instant::now().checked_sub(hour) else {
            return;
        };
        let outcome = within_since(hour_ago, hour, step()).await;
        assert!(matches!(outcome, Err(DbError::Timeout)));
    }

    #[tokio::test]
    async fn a_step_that_waits_and_ends_in_time_has_its_outcome() {
        let step = async {
            tokio::task::yield_now().await;
            Ok::<_, DbError>(7)
        };
        assert!(matches!(within(Duration::from_secs(60), step).await, Ok(7)));
    }
}
