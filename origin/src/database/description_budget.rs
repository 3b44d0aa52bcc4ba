//! Limits the bytes that are read of the description of a table or of a database, and of each table of a database.

use super::error::DbError;
use mysql_async::{Row, Value};
use shared::error::{ErrorCode, Problem};
use shared::ident::{DatabaseName, TableName, shown};
use shared::limits::{DATABASE_DESCRIPTION_MAX_BYTES, TABLE_DESCRIPTION_MAX_BYTES};
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct DescriptionBudget {
    pub used: usize,
    limit: TooLarge,
    /// The bytes counted for each table. The first value of a row is the name of its table.
    tables: Option<HashMap<Box<[u8]>, usize>>,
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("the description of {what} has more than {max_bytes} bytes")]
pub struct TooLarge {
    what: String,
    parts: &'static str,
    max_bytes: usize,
    hint: &'static str,
}

const COLUMNS: &str = "names, types, defaults and comments of all columns";
const SMALLER_COLUMNS: &str =
    "ENUM and SET columns with fewer members, or fewer columns, make it smaller. /sql needs no description.";
const RELATIONS: &str = "all relations by foreign keys, also by link tables";
const FEWER_RELATIONS: &str = "Fewer foreign keys make it smaller. Requests without related records need no relations.";

impl DescriptionBudget {
    pub(super) fn of_table(database: &DatabaseName, table: &TableName) -> Self {
        let what = format!("{}.{}", shown(database.as_str()), shown(table.as_str()));
        let limit = TooLarge { what, parts: COLUMNS, max_bytes: TABLE_DESCRIPTION_MAX_BYTES, hint: SMALLER_COLUMNS };
        Self { used: 0, limit, tables: None }
    }

    pub(super) fn of_foreign_keys(database: &DatabaseName) -> Self {
        let what = format!("the database {}", shown(database.as_str()));
        let max_bytes = DATABASE_DESCRIPTION_MAX_BYTES;
        Self { used: 0, limit: TooLarge { what, parts: RELATIONS, max_bytes, hint: FEWER_RELATIONS }, tables: None }
    }

    pub(super) fn of_database(name: &DatabaseName) -> Self {
        let limit = Self::of_foreign_keys(name).limit;
        Self {
            used: 0,
            limit: TooLarge { parts: COLUMNS, hint: SMALLER_COLUMNS, ..limit },
            tables: Some(HashMap::new()),
        }
    }

    pub(super) fn exceeded(&self) -> DbError {
        DbError::DescriptionTooLarge(self.limit.clone())
    }

    /// Counts the row and returns true; returns false for a row beyond the limit of its table, which is to be dropped.
    pub(super) fn spend(&mut self, row: &Row) -> Result<bool, DbError> {
        let values = (0..row.len()).map(|at| match row.as_ref(at) {
            Some(Value::Bytes(bytes)) => bytes.as_slice(),
            _ => &[],
        });
        self.count(values)
    }

    fn count<'a>(&mut self, values: impl Iterator<Item = &'a [u8]>) -> Result<bool, DbError> {
        let mut values = values.peekable();
        let table = values.peek().copied().unwrap_or_default();
        let bytes = values.map(<[u8]>::len).sum::<usize>();
        if let Some(tables) = &mut self.tables {
            let of_table = tables.entry(table.into()).or_default();
            *of_table += bytes - table.len();
            if *of_table > TABLE_DESCRIPTION_MAX_BYTES {
                return Ok(false);
            }
        }
        self.used += bytes;
        match self.used <= self.limit.max_bytes {
            true => Ok(true),
            false => Err(self.exceeded()),
        }
    }

    /// Returns whether rows of the table were left out.
    pub(super) fn is_exceeded_by(&self, table: &str) -> bool {
        let bytes = self.tables.as_ref().and_then(|tables| tables.get(table.as_bytes()));
        bytes.is_some_and(|bytes| *bytes > TABLE_DESCRIPTION_MAX_BYTES)
    }
}

impl TooLarge {
    pub(super) fn into_problem(self) -> Problem {
        let mib = self.max_bytes / 1024 / 1024;
        let message =
            format!("The description of {} ({}) has more than {mib} MiB, the maximum.", self.what, self.parts);
        Problem::new(ErrorCode::SqlError, message).with_hint(self.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_large_is_left_out_of_its_database() {
        let database = DatabaseName::parse("shop").unwrap();
        let (half, mut budget) =
            (vec![b'x'; TABLE_DESCRIPTION_MAX_BYTES / 2], DescriptionBudget::of_database(&database));
        let mut count = |table: &'static str, bytes: &[u8]| budget.count([table.as_bytes(), bytes].into_iter());
        for (table, is_kept) in [("wide", true), ("wide", true), ("exact", true), ("exact", true)] {
            assert_eq!(count(table, &half).unwrap(), is_kept);
        }
        for _ in 0..100 {
            assert!(!count("wide", &half).unwrap());
        }
        assert!(budget.is_exceeded_by("wide") && !budget.is_exceeded_by("exact") && !budget.is_exceeded_by("other"));
        assert!(budget.used < DATABASE_DESCRIPTION_MAX_BYTES);
        let refused = (0..100).find_map(|n| budget.count([format!("t{n}").as_bytes(), &half].into_iter()).err());
        assert!(refused.unwrap().to_string().contains("the database \"shop\""));
    }
}
