//! Retries a request's work once, if the error allows that. Retries work that conflicts with concurrent work with
//! exponential back-off and jitter.

use super::schema_cache::SchemaAge;
use std::time::Duration;

/// What to do after a failed statement, and what is known about its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    None,
    /// The cached schema that the statement was planned with may be out of date; nothing was written.
    Schema,
    /// MariaDB has rolled the transaction back.
    Again,
    /// The host ran no part of the statement, and another host may serve by now.
    OtherHost,
    /// The statement may have run.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeatable {
    /// The work writes nothing.
    Read,
    /// The work is one statement or one transaction, planned with the cached schema.
    Write,
    /// The caller wrote the only statement, so a name that MariaDB does not know is the caller's error.
    UserSql,
    /// A part of the work may be committed although the work failed.
    No,
}

impl Recovery {
    /// Returns the age of schemas for a repetition; `None` if the work must not be repeated or would fail again.
    fn repeats_with(self, work: Repeatable) -> Option<SchemaAge> {
        match (self, work) {
            (Self::None, _)
            | (_, Repeatable::No)
            | (Self::Schema, Repeatable::UserSql)
            | (Self::Lost, Repeatable::Write | Repeatable::UserSql) => None,
            (Self::Schema, _) => Some(SchemaAge::Fresh),
            (Self::Again | Self::OtherHost | Self::Lost, _) => Some(SchemaAge::Cached),
        }
    }
}

/// Runs `again` if the error of `outcome` allows. `again` gets the error, and the age of the schemas to plan with.
pub(crate) async fn retry_once<T, E, F>(
    work: Repeatable,
    outcome: Result<T, E>,
    again: impl FnOnce(E, SchemaAge) -> F,
) -> Result<T, E>
where
    for<'e> Recovery: From<&'e E>,
    F: Future<Output = Result<T, E>>,
{
    match outcome {
        Err(error) => match Recovery::from(&error).repeats_with(work) {
            // Boxed, because the future of every request would reserve space for a second attempt.
            Some(age) => Box::pin(again(error, age)).await,
            None => Err(error),
        },
        done => done,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_can_not_happen_twice_is_repeated() {
        let (fresh, cached) = (Some(SchemaAge::Fresh), Some(SchemaAge::Cached));
        for (recovery, read, write, user_sql) in [
            (Recovery::None, None, None, None),
            (Recovery::Schema, fresh, fresh, None),
            (Recovery::Again, cached, cached, cached),
            (Recovery::OtherHost, cached, cached, cached),
            (Recovery::Lost, cached, None, None),
        ] {
            let works = [Repeatable::Read, Repeatable::Write, Repeatable::UserSql, Repeatable::No];
            let repeats = works.map(|work| recovery.repeats_with(work));
            assert_eq!(repeats, [read, write, user_sql, None], "{recovery:?}");
        }
    }

    impl From<&Recovery> for Recovery {
        fn from(recovery: &Recovery) -> Self {
            *recovery
        }
    }

    #[tokio::test]
    async fn work_is_repeated_once() {
        let mut runs = 0;
        let outcome = retry_once(Repeatable::Write, Err::<(), _>(Recovery::Again), async |error, _| {
            runs += 1;
            Err(error)
        });
        assert_eq!(outcome.await, Err(Recovery::Again));
        assert_eq!(runs, 1);
    }
}
