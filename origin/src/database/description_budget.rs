//! Limits the bytes that are read of the description of a table or of a database.

use super::error::DbError;
use mysql_async::{Row, Value};
use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, TableName, shown};
use shared::limits::{DATABASE_DESCRIPTION_MAX_BYTES, TABLE_DESCRIPTION_MAX_BYTES};

#[derive(Debug)]
pub(super) struct DescriptionBudget {
    pub used: usize,
    limit: TooLarge,
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("the description of {what} has more than {max_bytes} bytes")]
pub struct TooLarge {
    what: String,
    max_bytes: usize,
}

impl DescriptionBudget {
    pub(super) fn of_table(database: &DatabaseName, table: &TableName) -> Self {
        let what = format!("{}.{}", shown(database.as_str()), shown(table.as_str()));
        Self { used: 0, limit: TooLarge { what, max_bytes: TABLE_DESCRIPTION_MAX_BYTES } }
    }

    pub(super) fn of_database(name: &DatabaseName) -> Self {
        let what = format!("the database {}", shown(name.as_str()));
        Self { used: 0, limit: TooLarge { what, max_bytes: DATABASE_DESCRIPTION_MAX_BYTES } }
    }

    pub(super) fn spend(&mut self, row: &Row) -> Result<(), DbError> {
        let bytes = |at| match row.as_ref(at) {
            Some(Value::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        self.used += (0..row.len()).map(bytes).sum::<usize>();
        match self.used <= self.limit.max_bytes {
            true => Ok(()),
            false => Err(DbError::DescriptionTooLarge(self.limit.clone())),
        }
    }
}

impl TooLarge {
    pub(super) fn into_problem(self) -> Problem {
        let mib = self.max_bytes / 1024 / 1024;
        let message = format!(
            "The description of {} (names, types, defaults and comments of all columns) has more than {mib} MiB, the maximum.",
            self.what
        );
        Problem::new(ErrorCode::SqlError, message).with_hint(
            "ENUM and SET columns with fewer members, or fewer columns, make it smaller. /sql needs no description.",
        )
    }
}
