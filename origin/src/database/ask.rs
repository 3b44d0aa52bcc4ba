//! Reads results as typed rows. The driver's own typed methods panic if a value has an unexpected type, so
//! `clippy.toml` forbids them; here that is an error.

use mysql_async::prelude::{FromRow, Protocol};
use mysql_async::{Error, QueryResult, Row};

#[derive(Debug, thiserror::Error)]
#[error("MariaDB answered with values of an unexpected type")]
pub(super) struct UnexpectedType;

/// Reads all rows of a result.
///
/// # Errors
/// The statement or the connection failed, or a row is not a `T` ([`UnexpectedType`]).
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

/// Reads the first row of a result and discards the other rows; `None` if there are no rows.
///
/// # Errors
/// The statement or the connection failed, or the row is not a `T` ([`UnexpectedType`]).
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
