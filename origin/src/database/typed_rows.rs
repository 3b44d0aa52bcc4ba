//! Reads results as typed rows. If a value has an unexpected type, the driver's own typed methods panic, so
//! `clippy.toml` forbids them; the functions here return [`UnexpectedType`].

use super::description_budget::DescriptionBudget;
use super::error::DbError;
use mysql_async::prelude::{FromRow, Protocol};
use mysql_async::{Error, QueryResult, Row};

#[derive(Debug, thiserror::Error)]
#[error("MariaDB answered with values of an unexpected type")]
pub(super) struct UnexpectedType;

pub(super) async fn all<'a, 't: 'a, T, P>(
    answer: impl Future<Output = Result<QueryResult<'a, 't, P>, Error>>,
) -> Result<Vec<T>, Error>
where
    T: FromRow,
    P: Protocol,
{
    let mut answer = answer.await?;
    let mut rows = Vec::new();
    while let Some(row) = answer.next().await? {
        rows.push(typed(row));
    }
    // Conversion errors are returned only after all rows are read: otherwise the connection's next user would read the
    // rest of this result.
    rows.into_iter().collect()
}

/// Returns all rows. After [`DbError::DescriptionTooLarge`], rows are unread: the connection must be closed.
pub(super) async fn all_within<'a, 't: 'a, T, P>(
    answer: impl Future<Output = Result<QueryResult<'a, 't, P>, Error>>,
    budget: &mut DescriptionBudget,
) -> Result<Vec<T>, DbError>
where
    T: FromRow,
    P: Protocol,
{
    let mut answer = answer.await?;
    let mut rows = Vec::new();
    while let Some(row) = answer.next().await? {
        if budget.spend(&row)? {
            rows.push(typed(row));
        }
    }
    Ok(rows.into_iter().collect::<Result<_, _>>()?)
}

/// Returns the first row and discards the others.
pub(super) async fn first<'a, 't: 'a, T, P>(
    answer: impl Future<Output = Result<QueryResult<'a, 't, P>, Error>>,
) -> Result<Option<T>, Error>
where
    T: FromRow,
    P: Protocol,
{
    let mut answer = answer.await?;
    let row = answer.next().await?;
    answer.drop_result().await?;
    row.map(typed).transpose()
}

fn typed<T: FromRow>(row: Row) -> Result<T, Error> {
    T::from_row_opt(row).map_err(|_| Error::Other(Box::new(UnexpectedType)))
}
