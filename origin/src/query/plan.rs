//! Resolves an operation against the schema: every name becomes an existing column, every value one of its column's
//! type. Does no I/O and knows no SQL.
//!
//! Only [`build`] makes a [`Plan`]: the structs that its variants hold have private fields, which `sql` reads.

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
use shared::operation::write::IdempotentRequest;
use std::sync::Arc;

/// An operation in terms of columns.
#[derive(Debug)]
pub enum Plan<'a> {
    Select(Select, &'a Read),
    SelectOne(Select, &'a ReadOne),
    /// Read one record by an integer key.
    SelectByKey(SelectByKey),
    /// Insert records, once per idempotency key if the caller sent one.
    Insert(Insert, Option<&'a IdempotentRequest>),
    /// Insert one record, by a statement that requests can share.
    InsertOne(InsertOne),
    Update(Update),
    Delete(Delete),
}

/// A column of one of the tables in a statement's [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    /// The table's index in the scope: 0 is the root.
    pub(super) source: usize,
    /// The column's index in its table.
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub struct Select {
    pub(super) output: Output,
    pub(super) layout: Arc<Layout>,
    /// One join for each further table of the scope, in order.
    pub(super) joins: Vec<Join>,
    pub(super) filter: Option<Predicate>,
    /// The columns of GROUP BY.
    pub(super) group: Vec<ColumnRef>,
    /// Whether duplicate rows are removed.
    pub(super) rows: Rows,
    pub(super) order: Vec<(Expression, Direction)>,
    pub(super) limit: Option<u64>,
    /// The number of rows to skip.
    pub(super) offset: u64,
    /// How to find the next page; `None` if the read has no pages.
    keyset: Option<Keyset>,
}

impl Select {
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Returns the maximum number of rows; `None` if there is no limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns the number of rows to skip.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how to find the next page; `None` if the read has no pages.
    #[must_use]
    pub fn keyset(&self) -> Option<&Keyset> {
        self.keyset.as_ref()
    }

    /// Turns paging off: no extra row is read to see whether another page follows.
    pub fn end_paging(&mut self) {
        self.keyset = None;
    }

    /// Limits the read to one row.
    pub fn limit_to_one(&mut self) {
        self.limit = Some(self.limit.unwrap_or(1).min(1));
    }
}

/// What a read selects. Cells that only the program needs follow those of the layout.
#[derive(Clone, Debug)]
pub enum Output {
    /// All columns of the only table.
    Whole,
    Cells(Vec<Expression>),
}

/// An expression of the select list or of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Column(ColumnRef),
    /// The first characters (or bytes) of a long column, as many as the number says: MariaDB sorts by them.
    Beginning(ColumnRef, u16),
    /// The index of an ENUM or SET value, which MariaDB sorts by.
    Ordinal(ColumnRef),
    Aggregate(Aggregate, ColumnRef),
    /// `COUNT(*)`
    CountAll,
    /// The score of a record in a full-text search.
    Score(Search),
    /// True if any of these columns has a value, else NULL: whether a joined table has a record in this row.
    Presence(Vec<ColumnRef>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Columns of one table.
    pub(super) columns: Vec<ColumnRef>,
    pub(super) mode: MatchMode,
    pub(super) term: Param,
}

/// The join of the next table of the scope.
#[derive(Clone, Debug)]
pub struct Join {
    pub(super) kind: JoinKind,
    /// The join condition.
    pub(super) on: Predicate,
}

#[derive(Debug, PartialEq)]
pub struct Insert {
    /// The columns that the rows give.
    pub(super) columns: Vec<usize>,
    /// One cell per column; `None` is the column's default.
    pub(super) rows: Vec<Vec<Option<Operand>>>,
    /// The columns to return from the new rows; empty if the table has no key, or if MariaDB reports the key as the
    /// last insert id.
    pub(super) returning: Vec<usize>,
    answer: InsertAnswer,
    pub(super) on_conflict: OnConflict,
}

impl Insert {
    #[must_use]
    pub fn answer(&self) -> InsertAnswer {
        self.answer
    }
}

/// What happens to a row if a unique key already has one of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// The insert fails.
    Refuse,
    /// The existing record takes the row's values, except for its key. If the row gives no others, `anchor` is set to
    /// itself.
    Update { anchor: usize },
    /// The existing record stays as it is: `anchor` is set to itself, which changes nothing.
    Ignore { anchor: usize },
    /// The existing record stays as it is, and no update trigger runs: each row has its own statement, whose
    /// duplicate-key error is ignored.
    Skip,
}

/// The shape of an insert's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAnswer {
    /// The id of the only record.
    Id,
    /// A list of ids, one per row of `batchData`.
    Ids,
}

#[derive(Debug, PartialEq)]
pub struct Update {
    changes: Vec<(usize, Operand)>,
    filter: Predicate,
}

impl Update {
    /// Returns the columns with their new values, and the condition.
    #[must_use]
    pub fn into_parts(self) -> (Vec<(usize, Operand)>, Predicate) {
        (self.changes, self.filter)
    }
}

#[derive(Debug, PartialEq)]
pub struct Delete {
    filter: Predicate,
}

impl Delete {
    /// Returns the condition.
    #[must_use]
    pub fn into_filter(self) -> Predicate {
        self.filter
    }
}

/// A condition on columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    Compare(ColumnRef, Comparison, Operand),
    /// Two columns are equal.
    Same(ColumnRef, ColumnRef),
    /// A column is one of the values; false without any.
    In(ColumnRef, Vec<Operand>),
    Between(ColumnRef, Operand, Operand),
    IsNull(ColumnRef),
    Like(ColumnRef, LikePattern, Operand),
    Regexp(ColumnRef, Operand),
    Match(Search),
    /// An expression of the order, compared with its value in another row.
    Ordered(Expression, Comparison, Operand),
    /// An expression of the order is NULL.
    OrderedNull(Expression),
    /// All conditions hold.
    All(Vec<Predicate>),
    /// At least one condition holds; false without any.
    Any(Vec<Predicate>),
    Not(Box<Predicate>),
}

/// Which characters of a LIKE pattern are special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikePattern {
    /// The caller's pattern; `\` escapes.
    Raw,
    /// Literal text, with `%` added only by this program; `|` escapes.
    Literal,
}

/// A value that is bound to a `?`.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Null,
    Int(i64),
    /// An unsigned integer beyond `i64`.
    UInt(u64),
    Float(f32),
    Double(f64),
    Text(Box<str>),
    Bytes(Vec<u8>),
}

/// A bound value and how SQL converts it.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    pub(super) param: Param,
    pub(super) form: Form,
}

impl Operand {
    /// Returns the maximum number of bytes that the value takes in a statement's text and parameters.
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

/// The maximum number of bytes of a cell, without those of its text or bytes.
pub const CELL_MAX_BYTES: usize = 40;

/// How SQL converts a bound value, so that it is compared as the column's own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// As it is.
    Plain,
    /// `CAST(? AS DECIMAL(65, scale))`: exact, whereas a string would be compared as a double.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// `ST_GeomFromGeoJSON(?)`
    GeoJson,
    /// As it is, but compared with the column converted to utf8mb4: the text has characters that the column's character
    /// set lacks.
    Unicode(Case),
    /// Compared as compact JSON, so that whitespace does not matter.
    Json,
}

/// Resolves an operation on the tables of `scope`; only reads may have several. A batch may have `batch_max_rows` rows
/// at most.
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
