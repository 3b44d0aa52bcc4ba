//! Resolves an operation against the schema: each name becomes an existing column, each value a value of its column's
//! type. Does no I/O and writes no SQL. Code outside of `query` gets plans only from [`build`]: the fields of
//! [`Select`], [`Insert`], [`Update`] and [`Delete`] are private to `query`.

pub mod access;
mod arithmetic;
pub mod bind;
mod changes;
mod coalesced;
mod filter;
pub mod include;
mod join;
pub mod keyset;
mod output;
mod predicate;
mod read;
pub mod related;
mod returning;
pub mod scope;
mod write;

use crate::query::catalog::{CaseSensitivity, Layout};
pub use arithmetic::{Arithmetic, Operator};
pub use changes::{FollowedRead, follow};
pub use coalesced::{InsertOne, KeyShape, RowShape, SelectByKey};
use include::Included;
use keyset::Keyset;
pub use predicate::{LikePattern, Predicate};
use related::Reference;
pub use returning::{
    ChangeAnswer, KeyedReread, MaxAffected, Precondition, Reread, Returning, TransactionSteps, Verification,
};
use scope::Scope;
use shared::error::Problem;
use shared::operation::RecordOperation;
use shared::operation::filter::MatchMode;
use shared::operation::read::join::JoinKind;
use shared::operation::read::select::{Aggregate, DatePart};
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
    Insert(Insert, Option<&'a IdempotentRequest>),
    InsertOne(InsertOne),
    Update(Update, Option<Box<TransactionSteps>>),
    Delete(Delete, Option<Box<TransactionSteps>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    /// The index of the table in the [`Scope`]: 0 is the root table, 1 the first joined table.
    pub(super) source: usize,
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub struct Select {
    pub(super) output: Output,
    pub(super) layout: Arc<Layout>,
    /// One for each table of the [`Scope`] after the root, in order.
    pub(super) joins: Vec<Join>,
    pub(super) filter: Option<Predicate>,
    /// Columns and parts of dates.
    pub(super) group: Vec<Expression>,
    /// The condition for rows after the cursor; in `having` if the order has computed values. Counts of rows ignore it.
    pub(super) after: Option<Predicate>,
    pub(super) having: Option<Predicate>,
    pub(super) rows: Rows,
    pub(super) order: Vec<(Expression, Direction)>,
    pub(super) limit: Option<u64>,
    is_limited: bool,
    is_list: bool,
    is_head: bool,
    pub(super) offset: u64,
    keyset: Option<Keyset>,
    includes: Vec<Included>,
}

impl Select {
    /// Selects all records, without order.
    fn of(output: Output, layout: Arc<Layout>) -> Self {
        Self {
            output,
            layout,
            joins: Vec::new(),
            filter: None,
            group: Vec::new(),
            after: None,
            having: None,
            rows: Rows::All,
            order: Vec::new(),
            limit: None,
            is_limited: false,
            is_list: false,
            is_head: false,
            offset: 0,
            keyset: None,
            includes: Vec::new(),
        }
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Set for the read of a list with the option `after`, or with a limit above 0 if keyset pagination is possible.
    pub fn keyset(&self) -> Option<&Keyset> {
        self.keyset.as_ref()
    }

    pub fn includes(&self) -> &[Included] {
        &self.includes
    }

    pub fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// The statement's LIMIT: at most 1 for a response without a body, since one row shows that the statement succeeds.
    pub fn rows_read(&self) -> Option<u64> {
        match self.is_head {
            true => Some(self.limit.unwrap_or(1).min(1)),
            false => Some(self.limit?.saturating_add(u64::from(self.reads_one_more()))),
        }
    }

    /// Whether one row more than [`Select::limit`] is read, to see whether the limit cuts the list.
    pub fn reads_one_more(&self) -> bool {
        self.is_list && self.limit.is_some_and(|limit| limit > 0)
    }

    pub fn beyond(&self) -> Option<Self> {
        let limit = self.limit.filter(|_| self.reads_one_more())?;
        let offset = self.offset.saturating_add(limit);
        let (order, includes) = (Vec::new(), Vec::new());
        Some(Self { limit: Some(1), is_list: false, offset, order, keyset: None, includes, ..self.clone() })
    }
}

/// The cells of a row. Expressions that are not part of the response come last.
#[derive(Clone, Debug)]
pub enum Output {
    /// The [visible columns](crate::query::catalog::Table::visible_columns) of the only table.
    Whole,
    Cells(Vec<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Column(ColumnRef),
    /// The given number of leading characters (bytes for binary types) of a long column, by which alone MariaDB sorts.
    Beginning(ColumnRef, u16),
    /// The number of an ENUM or SET value, which MariaDB sorts by.
    Ordinal(ColumnRef),
    Aggregate(Aggregate, ColumnRef),
    Computed(Aggregate, Arithmetic),
    Part(DatePart, ColumnRef),
    CountAll,
    Score(Search),
    Number(usize),
    /// True if one of the columns is not NULL, otherwise NULL. Shows whether a joined table has a record in a row.
    Presence(Vec<ColumnRef>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    pub(super) columns: Vec<ColumnRef>,
    pub(super) mode: MatchMode,
    pub(super) term: Param,
}

#[derive(Clone, Debug)]
pub struct Join {
    pub(super) kind: JoinKind,
    pub(super) on: Predicate,
}

#[derive(Debug)]
pub struct Insert {
    pub(super) columns: Vec<usize>,
    pub(super) rows: Vec<Vec<Option<Operand>>>,
    pub(super) is_list: bool,
    /// The columns that the insert returns: the key's, or any column for a dry run on a table without a key. Empty if
    /// the response has no key, for a view, or if MariaDB reports the key as the last insert id.
    pub(super) returning: Vec<usize>,
    pub(super) records: Option<Returning>,
    answer: InsertAnswer,
    pub(super) on_conflict: OnConflict,
    pub(super) set_count: usize,
    pub(super) set_on_conflict: Vec<(usize, Operand)>,
    pub(super) check: Option<InsertCheck>,
}

/// The role's conditions for new records and for records that a conflict changes, before and after the change.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertCheck {
    inserted: Option<Predicate>,
    updated: Option<Predicate>,
    references: Vec<Reference>,
}

impl InsertCheck {
    pub fn inserted(&self) -> Option<&Predicate> {
        self.inserted.as_ref()
    }

    pub fn updated(&self) -> Option<&Predicate> {
        self.updated.as_ref()
    }

    pub fn references(&self) -> &[Reference] {
        &self.references
    }
}

impl Insert {
    pub fn answer(&self) -> InsertAnswer {
        self.answer
    }

    pub fn records(&self) -> Option<&Returning> {
        self.records.as_ref()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    Refuse,
    /// Changes the existing record. The column with index `anchor` is set to itself if no other column changes; the
    /// expression also checks the role's condition, if any, before the other columns change.
    Update {
        anchor: usize,
    },
    /// Keeps the existing record: ON DUPLICATE KEY UPDATE sets the column with index `anchor` to itself.
    Ignore {
        anchor: usize,
    },
    /// Keeps the existing record and runs no UPDATE trigger: each row has its own INSERT; duplicate keys are ignored.
    Skip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAnswer {
    /// The id; null if a conflict skipped the row, or if MariaDB reports no id, as for a table without a key.
    Id,
    /// An id per row of the request, null for a skipped row. No ids for a table without a key and for a view.
    Ids,
    /// No id, since the caller may not read the key.
    Hidden,
    HiddenList(usize),
    Record,
    Records,
    Count,
}

#[derive(Debug)]
pub struct Update {
    pub(super) changes: Vec<(usize, ColumnChange)>,
    pub(super) filter: Predicate,
    /// The condition of the caller's role, if a change could break it.
    pub(super) check: Option<Predicate>,
    pub(super) references: Vec<Reference>,
    /// One more than [`MaxAffected`], to detect that it is exceeded.
    pub(super) limit: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnChange {
    Set(Operand),
    Add(Operand),
}

#[derive(Debug)]
pub struct Delete {
    pub(super) filter: Predicate,
    /// One more than [`MaxAffected`], to detect that it is exceeded.
    pub(super) limit: Option<u64>,
    pub(super) records: Option<Returning>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Text(Box<str>),
    Bytes(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    pub(super) param: Param,
    pub(super) form: SqlConversion,
}

impl Operand {
    const NULL: Self = Self { param: Param::Null, form: SqlConversion::Plain };

    pub fn max_bytes(&self) -> usize {
        CELL_MAX_BYTES
            + match &self.param {
                Param::Text(text) => text.len(),
                Param::Bytes(bytes) => bytes.len(),
                _ => 0,
            }
    }
}

/// Maximum bytes that one value adds to a statement, without its text or binary data.
pub const CELL_MAX_BYTES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SqlConversion {
    Plain,
    /// `CAST(? AS DECIMAL(65, scale))`: exact, whereas a string would be compared as a double.
    Decimal {
        scale: u8,
    },
    GeoJson,
    /// Converts the column to utf8mb4 for the comparison, since its character set lacks characters of the text.
    Unicode(CaseSensitivity),
    /// `JSON_COMPACT(?)`, compared with the column's compact JSON, so that whitespace does not matter.
    Json,
}

#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    pub batch_max_rows: usize,
    /// Maximum number of records of one read or write, not counting included records.
    pub read_max_rows: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Page {
    /// The values of the option `after`, whose token must be checked before the plan runs.
    pub after: Option<Vec<Param>>,
    pub is_head: bool,
}

pub fn build<'a>(
    operation: &'a RecordOperation,
    scope: &Scope<'_>,
    limits: PlanLimits,
    page: Page,
) -> Result<Plan<'a>, Problem> {
    match operation {
        RecordOperation::Read(read) => Ok(Plan::Select(read::records(read, scope, limits.read_max_rows, page)?, read)),
        RecordOperation::ReadOne(read) => read::one(read, scope),
        RecordOperation::Insert(insert) => write::insert(insert, scope, limits),
        RecordOperation::Update(update) => write::update(update, scope, limits.read_max_rows),
        RecordOperation::Delete(delete) => write::delete(delete, scope, limits.read_max_rows),
    }
}
