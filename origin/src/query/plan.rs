//! An operation, resolved against the schema: every name is a column that exists, every value is of
//! that column's type. Pure; knows no SQL.
//!
//! Only [`build`] makes a [`Plan`]: the structs that its variants hold have private fields. `sql` reads them.

pub mod bind;
mod filter;
mod insert_one;
mod join;
pub mod keyset;
mod output;
mod read;
pub mod scope;
mod select_by_key;
mod write;

use crate::query::catalog::{Case, Layout};
pub use insert_one::{InsertOne, RowShape};
use keyset::Keyset;
use scope::Scope;
pub use select_by_key::{KeyShape, SelectByKey};
use shared::error::Problem;
use shared::operation::RecordOperation;
use shared::operation::filter::{Comparison, MatchMode};
use shared::operation::read::join::JoinKind;
use shared::operation::read::select::Aggregate;
use shared::operation::read::{Direction, Read, ReadOne, Rows};
use shared::operation::write::Once;
use std::sync::Arc;

/// What is to be done, in terms of columns.
#[derive(Debug)]
pub enum Plan<'a> {
    /// Read records.
    Select(Select, &'a Read),
    /// Read one record.
    SelectOne(Select, &'a ReadOne),
    /// Read the record with an integer key.
    SelectByKey(SelectByKey),
    /// Insert records, once for each key if the caller sent one.
    Insert(Insert, Option<&'a Once>),
    /// Insert one record whose statement others may share.
    InsertOne(InsertOne),
    /// Change records.
    Update(Update),
    /// Delete records.
    Delete(Delete),
}

/// A column of one of a statement's tables, which its [`Scope`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    /// The index of the table: 0 is the root.
    pub(super) source: usize,
    /// The index of the column in its table.
    pub(super) column: usize,
}

/// Read records.
#[derive(Clone, Debug)]
pub struct Select {
    /// What comes out.
    pub(super) output: Output,
    /// How a row of it looks.
    pub(super) layout: Arc<Layout>,
    /// How the scope's further tables are joined, in their order.
    pub(super) joins: Vec<Join>,
    /// Which records.
    pub(super) filter: Option<Predicate>,
    /// The fields by which they are put together.
    pub(super) group: Vec<ColumnRef>,
    /// Whether equal rows come out once.
    pub(super) rows: Rows,
    /// In what order.
    pub(super) order: Vec<(Expression, Direction)>,
    /// How many at most.
    pub(super) limit: Option<u64>,
    /// How many are skipped first.
    pub(super) offset: u64,
    /// How the next page is found, if it can be.
    keyset: Option<Keyset>,
}

impl Select {
    /// Returns how a row looks.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Returns the most rows that come out, if they are limited.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns how many rows are skipped first.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how the next page is found, if it can be.
    #[must_use]
    pub fn keyset(&self) -> Option<&Keyset> {
        self.keyset.as_ref()
    }

    /// Makes it the last page: no row is read to see whether another page follows.
    pub fn end_paging(&mut self) {
        self.keyset = None;
    }

    /// Reads one row at most.
    pub fn limit_to_one(&mut self) {
        self.limit = Some(self.limit.unwrap_or(1).min(1));
    }
}

/// What comes out of a read. Columns that only the service needs stand behind those of the layout.
#[derive(Clone, Debug)]
pub enum Output {
    /// All columns of the only table.
    Whole,
    /// These.
    Cells(Vec<Expression>),
}

/// What a cell holds, or an order follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A column's value.
    Column(ColumnRef),
    /// So many of the first characters of a long text, or of many bytes, by which they are ordered.
    Beginning(ColumnRef, u16),
    /// The number of a member of an ENUM or SET, by which they are ordered.
    Ordinal(ColumnRef),
    /// An aggregate over a column.
    Aggregate(Aggregate, ColumnRef),
    /// The number of records.
    CountAll,
    /// How well a record matches a full-text search.
    Score(Search),
    /// True if any of these has a value, else NULL: whether a joined table has a record here.
    Presence(Vec<ColumnRef>),
}

/// A full-text search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The columns, of one table.
    pub(super) columns: Vec<ColumnRef>,
    /// How the term is read.
    pub(super) mode: MatchMode,
    /// The term.
    pub(super) term: Param,
}

/// A join of the next table of the scope.
#[derive(Clone, Debug)]
pub struct Join {
    /// Which records stay that have no partner.
    pub(super) kind: JoinKind,
    /// What partners have in common.
    pub(super) on: Predicate,
}

/// Insert records.
#[derive(Debug, PartialEq)]
pub struct Insert {
    /// Columns that the rows name.
    pub(super) columns: Vec<usize>,
    /// A cell for each of them; `None` is the column's default.
    pub(super) rows: Vec<Vec<Option<Operand>>>,
    /// Columns whose new values are the answer; empty if the table has no key, or if the answer is the
    /// value that MariaDB counted.
    pub(super) returning: Vec<usize>,
    /// The form of the answer.
    answer: InsertAnswer,
    /// What becomes of rows whose key is taken.
    pub(super) on_conflict: OnConflict,
}

impl Insert {
    /// Returns the form of the answer.
    #[must_use]
    pub fn answer(&self) -> InsertAnswer {
        self.answer
    }
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

/// The form of an insert's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAnswer {
    /// The id of the one record.
    Id,
    /// The list of the ids of `batchData`.
    Ids,
}

/// Change records.
#[derive(Debug, PartialEq)]
pub struct Update {
    /// Columns and their new values.
    changes: Vec<(usize, Operand)>,
    /// Which records.
    filter: Predicate,
}

impl Update {
    /// Returns the columns with their new values, and the condition.
    #[must_use]
    pub fn into_parts(self) -> (Vec<(usize, Operand)>, Predicate) {
        (self.changes, self.filter)
    }
}

/// Delete records.
#[derive(Debug, PartialEq)]
pub struct Delete {
    /// Which records.
    filter: Predicate,
}

impl Delete {
    /// Returns the condition.
    #[must_use]
    pub fn into_filter(self) -> Predicate {
        self.filter
    }
}

/// A condition over columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// A column compared to a value.
    Compare(ColumnRef, Comparison, Operand),
    /// A column equal to another.
    Same(ColumnRef, ColumnRef),
    /// A column among values; of none, false.
    In(ColumnRef, Vec<Operand>),
    /// A column between two values.
    Between(ColumnRef, Operand, Operand),
    /// A column is NULL.
    IsNull(ColumnRef),
    /// A column matches an SQL pattern.
    Like(ColumnRef, LikePattern, Operand),
    /// A column matches a regular expression.
    Regexp(ColumnRef, Operand),
    /// Full-text search.
    Match(Search),
    /// What an order follows, compared to its value in another row.
    Ordered(Expression, Comparison, Operand),
    /// What an order follows is NULL.
    OrderedNull(Expression),
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
    pub(super) param: Param,
    /// What is wrapped around it.
    pub(super) form: Form,
}

impl Operand {
    /// Bytes that the value takes in a statement's text and among its values, at most.
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        CELL_MAX_BYTES
            + match &self.param {
                Param::Text(text) => text.len(),
                Param::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
    }
}

/// Bytes of a cell beside those of its text or bytes, at most.
pub const CELL_MAX_BYTES: usize = 40;

/// What SQL makes of a bound value, so that it is compared as the column's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Taken as it is, but compared with the column converted to utf8mb4: the text holds characters
    /// that the column's character set lacks.
    Unicode(Case),
    /// Compared as compact JSON, so that white space does not matter.
    Json,
}

/// Resolves an operation on the tables of a scope, of which only reads have several; a batch may have
/// so many rows.
///
/// # Errors
/// `unknown_field`, `invalid_value`, `invalid_filter`, `invalid_body`, `invalid_query_option`: the
/// first fault found, naming its field.
pub fn build<'a>(
    operation: &'a RecordOperation,
    scope: &Scope<'_>,
    batch_max_rows: usize,
) -> Result<Plan<'a>, Problem> {
    match operation {
        RecordOperation::Read(read) => Ok(Plan::Select(read::records(read, scope)?, read)),
        RecordOperation::ReadOne(read) => read::one(read, scope),
        RecordOperation::Insert(insert) => write::insert(insert, scope.root(), batch_max_rows),
        RecordOperation::Update(update) => write::update(update, scope).map(Plan::Update),
        RecordOperation::Delete(delete) => write::delete(delete, scope).map(Plan::Delete),
    }
}
