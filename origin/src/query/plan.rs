//! Resolves an operation against the schema: each name becomes an existing column, each value a value of its column's
//! type. Does no I/O and writes no SQL.
//!
//! Code outside of `query` gets plans only from [`build`]: the fields of [`Select`], [`Insert`], [`Update`] and
//! [`Delete`] are private to `query`.

pub mod access;
pub mod bind;
mod filter;
pub mod include;
mod insert_one;
mod join;
pub mod keyset;
mod output;
mod read;
pub mod related;
mod returning;
pub mod scope;
mod select_by_key;
mod write;

use crate::query::catalog::{Case, Layout};
use include::Included;
pub use insert_one::{InsertOne, RowShape};
use keyset::Keyset;
use related::Exists;
pub use returning::{ChangeAnswer, KeyedReread, MaxAffected, Precondition, Reread, Returning, TransactionSteps};
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
pub(in crate::query) use write::is_key;
pub use write::may_set;

#[derive(Debug)]
pub enum Plan<'a> {
    Select(Select, &'a Read),
    SelectOne(Select, &'a ReadOne),
    SelectByKey(SelectByKey),
    /// Inserts one or more records, at most once per idempotency key if the caller sent one.
    Insert(Insert, Option<&'a IdempotentRequest>),
    /// Inserts one record, with a statement that requests can share.
    InsertOne(InsertOne),
    /// An update, and the other steps of its transaction; `None` if there are no other steps.
    Update(Update, Option<Box<TransactionSteps>>),
    /// A delete, and the other steps of its transaction; `None` if there are no other steps.
    Delete(Delete, Option<Box<TransactionSteps>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    /// The index of the column's table in the [`Scope`]: 0 is the root table, 1 the first joined table.
    pub(super) source: usize,
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub struct Select {
    pub(super) output: Output,
    pub(super) layout: Arc<Layout>,
    /// The joins, one for each table of the [`Scope`] after the root, in order.
    pub(super) joins: Vec<Join>,
    pub(super) filter: Option<Predicate>,
    pub(super) group: Vec<ColumnRef>,
    pub(super) having: Option<Predicate>,
    pub(super) rows: Rows,
    pub(super) order: Vec<(Expression, Direction)>,
    pub(super) limit: Option<u64>,
    is_limited: bool,
    is_list: bool,
    pub(super) offset: u64,
    keyset: Option<Keyset>,
    includes: Vec<Included>,
}

impl Select {
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the total order for keyset pagination. `None` unless this is the read of a list with a limit above 0 or
    /// the option `after`; also `None` if the read can't be paginated by keyset.
    pub fn keyset(&self) -> Option<&Keyset> {
        self.keyset.as_ref()
    }

    pub fn includes(&self) -> &[Included] {
        &self.includes
    }

    /// Returns whether [`Select::limit`] is [`PlanLimits::read_max_rows`], since the request has no limit or a greater
    /// one.
    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Returns whether the read reads one row more than [`Select::limit`], to see whether the limit cuts the list.
    pub fn reads_one_more(&self) -> bool {
        self.is_list && self.limit.is_some_and(|limit| limit > 0)
    }

    /// Returns a read of the first row beyond [`Select::limit`]; `None` unless [`Select::reads_one_more`].
    pub fn beyond(&self) -> Option<Self> {
        let limit = self.limit.filter(|_| self.reads_one_more())?;
        let offset = self.offset.saturating_add(limit);
        let (order, includes) = (Vec::new(), Vec::new());
        Some(Self { limit: Some(1), is_list: false, offset, order, keyset: None, includes, ..self.clone() })
    }

    pub fn limit_to_one(&mut self) {
        self.limit = Some(self.limit.unwrap_or(1).min(1));
        self.is_list = false;
    }
}

/// The select list of a read, or the columns of the records that a write returns. Expressions that are not part of the
/// response follow those of the response.
#[derive(Clone, Debug)]
pub enum Output {
    /// The [visible columns](crate::query::catalog::Table::visible_columns) of the only table.
    Whole,
    Cells(Vec<Expression>),
}

/// An expression of the select list, of ORDER BY or of the condition for the next page.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Column(ColumnRef),
    /// The given number of leading characters (bytes for binary types) of a long column, since MariaDB does not sort by
    /// its whole value.
    Beginning(ColumnRef, u16),
    /// The numeric value of an ENUM or SET column, which MariaDB sorts by.
    Ordinal(ColumnRef),
    Aggregate(Aggregate, ColumnRef),
    CountAll,
    Score(Search),
    Number(usize),
    /// True if at least one of the columns is not NULL, otherwise NULL: shows whether a joined table has a record in a
    /// row.
    Presence(Vec<ColumnRef>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub(super) columns: Vec<ColumnRef>,
    pub(super) mode: MatchMode,
    pub(super) term: Param,
}

/// A JOIN of one table to the tables before it.
#[derive(Clone, Debug)]
pub struct Join {
    pub(super) kind: JoinKind,
    pub(super) on: Predicate,
}

#[derive(Debug)]
pub struct Insert {
    pub(super) columns: Vec<usize>,
    /// The rows, each with one value per entry of `columns`; `None` stands for the column's default.
    pub(super) rows: Vec<Vec<Option<Operand>>>,
    /// Whether the body is a list of rows: `batchData`, CSV or lines of JSON.
    pub(super) is_list: bool,
    /// The indexes of the columns to return of the new rows: the key's columns, or any column for a dry run on a table
    /// without a key. Empty if there is no key, for a view, if the answer must not have the key, or if MariaDB reports
    /// the key as the last insert id.
    pub(super) returning: Vec<usize>,
    /// The columns to return of the new records, after their keys; `None` if the records are not returned.
    pub(super) records: Option<Returning>,
    answer: InsertAnswer,
    pub(super) on_conflict: OnConflict,
    /// The number of columns, at the end of `columns`, that the caller's role sets in new records. An existing record
    /// that a conflict changes does not get these values, but those of `set_on_conflict`.
    pub(super) set_count: usize,
    /// The values that the caller's role sets in an existing record that a conflict changes, with the columns' indexes.
    pub(super) set_on_conflict: Vec<(usize, Operand)>,
    /// The conditions of the caller's role on the written records; `None` if the role has none.
    pub(super) check: Option<InsertCheck>,
}

/// A role's conditions on the records of an insert: `inserted` on new records, `updated` on existing records that a
/// conflict changes, both before and after the change. `None`: no condition.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertCheck {
    inserted: Option<Predicate>,
    updated: Option<Predicate>,
}

impl InsertCheck {
    pub fn inserted(&self) -> Option<&Predicate> {
        self.inserted.as_ref()
    }

    pub fn updated(&self) -> Option<&Predicate> {
        self.updated.as_ref()
    }
}

impl Insert {
    pub fn answer(&self) -> InsertAnswer {
        self.answer
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    Refuse,
    /// The existing record gets the row's values, except for key columns and for columns that the caller's role sets in
    /// new records. It also gets the values that the role sets in updated records. If that leaves no column to change,
    /// or to check the role's condition, the column with index `anchor` is set to itself.
    Update {
        anchor: usize,
    },
    /// The existing record is not changed: ON DUPLICATE KEY UPDATE sets the column with index `anchor` to itself.
    Ignore {
        anchor: usize,
    },
    /// The existing record is not changed, and no UPDATE trigger runs: each row has its own INSERT, and duplicate-key
    /// errors are ignored.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAnswer {
    /// The id of the one inserted record; null if a conflict skipped the row, or if MariaDB reports no id, as for a
    /// table without a key.
    Id,
    /// A list of ids, one per row of the request (null for a row that a conflict skipped). For a table without a key
    /// and for a view, the list has no ids.
    Ids,
    /// Null, since the caller may not read the key.
    Hidden,
    /// A list of this many nulls, one per row of the request, since the caller may not read the key.
    HiddenList(usize),
    /// The one inserted record, or null.
    Record,
    /// A list of records or nulls, one per row of the request.
    Records,
    /// The number of records that the insert inserts or, on a conflict, updates, for a dry run, which is rolled back.
    Count,
}

#[derive(Debug)]
pub struct Update {
    pub(super) changes: Vec<(usize, Change)>,
    pub(super) filter: Predicate,
    /// The condition of the caller's role on the changed records, if a change could break it.
    pub(super) check: Option<Predicate>,
    /// The LIMIT of the UPDATE: one more than [`MaxAffected`], to detect that it is exceeded; `None` without a maximum.
    pub(super) limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Set(Operand),
    Add(Operand),
}

#[derive(Debug)]
pub struct Delete {
    pub(super) filter: Predicate,
    /// The LIMIT of the DELETE: one more than [`MaxAffected`], to detect that it is exceeded; `None` without a maximum.
    pub(super) limit: Option<u64>,
    /// What to return of the deleted records; `None` if they are not returned.
    pub(super) records: Option<Returning>,
}

/// A condition of a WHERE or ON clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    Compare(ColumnRef, Comparison, Operand),
    Same(ColumnRef, ColumnRef),
    /// The column equals one of the values; false if the list is empty.
    In(ColumnRef, Vec<Operand>),
    Between(ColumnRef, Operand, Operand),
    IsNull(ColumnRef),
    Like(ColumnRef, LikePattern, Operand),
    Regexp(ColumnRef, Operand),
    Match(Search),
    Ordered(Expression, Comparison, Operand),
    OrderedNull(Expression),
    /// All conditions hold; true if the list is empty.
    All(Vec<Predicate>),
    /// At least one condition holds; false if the list is empty.
    Any(Vec<Predicate>),
    Not(Box<Predicate>),
    /// The value of the second condition for records that meet the first; NULL for other records, on which the second
    /// condition is not evaluated.
    Guarded(Box<Predicate>, Box<Predicate>),
    /// The condition is false or NULL.
    Untrue(Box<Predicate>),
    Exists(Box<Exists>),
}

impl Predicate {
    /// Returns the number of values that the condition binds, without those in the join of a [`Predicate::Exists`] and
    /// the search terms of scores by which a read is sorted.
    fn values(&self) -> usize {
        let all = |parts: &[Self]| parts.iter().map(Self::values).sum();
        match self {
            Self::Same(..) | Self::IsNull(_) | Self::OrderedNull(_) => 0,
            Self::Compare(..) | Self::Like(..) | Self::Regexp(..) | Self::Match(_) | Self::Ordered(..) => 1,
            Self::Between(..) => 2,
            Self::In(_, operands) => operands.len(),
            Self::All(parts) | Self::Any(parts) => all(parts),
            Self::Not(part) | Self::Untrue(part) => part.values(),
            Self::Guarded(guard, part) => guard.values() + part.values(),
            Self::Exists(exists) => exists.filter.as_ref().map_or(0, Self::values),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikePattern {
    Raw,
    /// The caller's text is literal, with its wildcards escaped by `|`; only this program adds `%`.
    Literal,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Null,
    Int(i64),
    /// An unsigned integer, which may be above `i64::MAX`.
    UInt(u64),
    Float(f32),
    Double(f64),
    Text(Box<str>),
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    pub(super) param: Param,
    pub(super) form: Form,
}

impl Operand {
    const NULL: Self = Self { param: Param::Null, form: Form::Plain };

    /// Returns the maximum number of bytes that the value takes in a statement's text and parameters.
    pub fn max_bytes(&self) -> usize {
        CELL_MAX_BYTES
            + match &self.param {
                Param::Text(text) => text.len(),
                Param::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
    }
}

/// The maximum number of bytes that one value of a row adds to a statement, without the bytes of text or binary data.
pub const CELL_MAX_BYTES: usize = 40;

/// The SQL conversion of a bound value, so that MariaDB compares or stores it as a value of the column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `?`, without a conversion.
    Plain,
    /// `CAST(? AS DECIMAL(65, scale))`: exact, whereas a string would be compared as a double.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    GeoJson,
    /// `?`, compared with the column converted to utf8mb4, in the given case-sensitivity: the column's character set
    /// lacks characters of the text.
    Unicode(Case),
    /// `JSON_COMPACT(?)`, compared with the compact JSON of the column, so that whitespace does not matter.
    Json,
}

#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    pub batch_max_rows: usize,
    /// The maximum number of records that one read or write returns, not counting included records; `None` for no limit.
    pub read_max_rows: Option<u64>,
}

pub fn build<'a>(operation: &'a RecordOperation, scope: &Scope<'_>, limits: PlanLimits) -> Result<Plan<'a>, Problem> {
    match operation {
        RecordOperation::Read(read) => Ok(Plan::Select(read::records(read, scope, limits.read_max_rows)?, read)),
        RecordOperation::ReadOne(read) => read::one(read, scope),
        RecordOperation::Insert(insert) => write::insert(insert, scope.access(0), limits),
        RecordOperation::Update(update) => write::update(update, scope, limits.read_max_rows),
        RecordOperation::Delete(delete) => write::delete(delete, scope, limits.read_max_rows),
    }
}
