//! An operation, resolved against the schema: every name is a column that exists, every value is of
//! that column's type. Pure; knows no SQL.

pub mod bind;
mod read;
mod write;

use crate::catalog::{Columns, Table};
use shared::error::{ErrorCode, Problem};
use shared::operation::Operation;
use shared::operation::filter::{Comparison, MatchMode};
use shared::operation::read::Direction;

/// What is to be done, in terms of columns. Fields of a table are named by their place in it.
#[derive(Debug, PartialEq)]
pub enum Plan {
    /// Read records.
    Select(Select),
    /// Insert records.
    Insert(Insert),
    /// Change records.
    Update(Update),
    /// Delete records.
    Delete(Delete),
}

/// Read records.
#[derive(Debug, PartialEq)]
pub struct Select {
    /// Columns that come out.
    pub columns: Columns,
    /// Which records.
    pub filter: Option<Predicate>,
    /// In what order.
    pub order: Vec<(usize, Direction)>,
    /// How many at most.
    pub limit: Option<u64>,
    /// How many are skipped first.
    pub offset: u64,
}

/// Insert records.
#[derive(Debug, PartialEq)]
pub struct Insert {
    /// Columns that the rows name.
    pub columns: Vec<usize>,
    /// A cell for each of them; `None` is the column's default.
    pub rows: Vec<Vec<Option<Operand>>>,
    /// Columns whose new values are the answer; empty if the table has no key, or if the answer is the
    /// value that MariaDB counted.
    pub returning: Vec<usize>,
    /// Whether the answer is a list.
    pub batch: Batch,
    /// What becomes of rows whose key is taken.
    pub on_conflict: OnConflict,
}

/// What becomes of a row when a unique key already holds one of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The insert fails.
    Refuse,
    /// The record that is there takes the values that the row gives, but for those of its key. A row
    /// that gives no others sets this column to itself.
    Update {
        /// A column to set to itself.
        anchor: usize,
    },
    /// The record that is there stays as it is: this column is set to itself, which changes nothing.
    Ignore {
        /// A column to set to itself.
        anchor: usize,
    },
    /// The same where even that would run a trigger: the row's own statement fails, and is passed over.
    PassOver,
}

/// Whether an insert was sent as a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// One record, answered by its id.
    No,
    /// A batch, answered by the list of ids.
    Yes,
}

/// Change records.
#[derive(Debug, PartialEq)]
pub struct Update {
    /// Columns and their new values.
    pub changes: Vec<(usize, Operand)>,
    /// Which records.
    pub filter: Predicate,
}

/// Delete records.
#[derive(Debug, PartialEq)]
pub struct Delete {
    /// Which records.
    pub filter: Predicate,
}

/// A condition over columns.
#[derive(Debug, PartialEq)]
pub enum Predicate {
    /// A column compared to a value.
    Compare(usize, Comparison, Operand),
    /// A column among values; of none, false.
    In(usize, Vec<Operand>),
    /// A column between two values.
    Between(usize, Operand, Operand),
    /// A column is NULL.
    IsNull(usize),
    /// A column matches an SQL pattern.
    Like(usize, LikePattern, Operand),
    /// A column matches a regular expression.
    Regexp(usize, Operand),
    /// Full-text search.
    Match(usize, MatchMode, Param),
    /// All hold.
    All(Vec<Predicate>),
    /// One holds.
    Any(Vec<Predicate>),
    /// It does not hold.
    Not(Box<Predicate>),
}

/// What in a pattern stands for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikePattern {
    /// As the caller wrote it; `\` escapes.
    Raw,
    /// Literal text between our own `%`; `|` escapes.
    Literal,
}

/// A value that is bound to a `?`.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer beyond `i64`.
    UInt(u64),
    /// A FLOAT's value.
    Float(f32),
    /// A DOUBLE's value.
    Double(f64),
    /// Text.
    Text(Box<str>),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A value and what SQL makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The value.
    pub param: Param,
    /// What is wrapped around it.
    pub form: Form,
}

/// What SQL makes of a bound value, so that it is compared as the column's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Taken as it is.
    Plain,
    /// `CAST(? AS DECIMAL(65, scale))`: exact where a bare string would be compared as a double.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// `ST_GeomFromGeoJSON(?)`
    GeoJson,
    /// Taken as it is, but compared with the column converted to utf8mb4: the text may hold
    /// characters that the column's character set lacks.
    Unicode,
    /// Compared as compact JSON, so that white space does not matter.
    Json,
}

/// Resolves an operation on a table; a batch may have so many rows.
///
/// # Errors
/// `unknown_field`, `invalid_value`, `invalid_filter`, `invalid_body`: the first fault found, naming
/// its field.
pub fn build(operation: &Operation, table: &Table, batch_max_rows: usize) -> Result<Plan, Problem> {
    match operation {
        Operation::Read(operation) => read::records(operation, table).map(Plan::Select),
        Operation::ReadOne(operation) => read::one(operation, table).map(Plan::Select),
        Operation::Insert(operation) => {
            write::insert(operation, table, batch_max_rows).map(Plan::Insert)
        }
        Operation::Update(operation) => write::update(operation, table).map(Plan::Update),
        Operation::Delete(operation) => write::delete(operation, table).map(Plan::Delete),
        // These have no plan: metadata is the catalogue itself, SQL is the caller's own, and of a batch
        // each operation has one.
        Operation::Describe(_) | Operation::Sql(_) | Operation::Batch(_) => Err(Problem::new(
            ErrorCode::Internal,
            "The request was planned as something it is not.",
        )),
    }
}
