//! Resolves the records that a write returns, and the further steps of an update's or delete's transaction: to compare
//! the entity tag, to count, to read the changed records again, and to roll back.

use super::access::and;
use super::bind::{self, BindFor};
use super::filter::{IdPurpose, by_id};
use super::keyset::stored;
use super::output::Cells;
use super::scope::Scope;
use super::{ColumnChange, ColumnRef, Expression, Operand, Output, Param, Predicate, Select, Update};
use crate::query::catalog::{Column, Kind, Layout, Table};
use shared::envelope::ColumnLabels;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::json::Value;
use shared::limits::BATCH_ANSWER_MAX_ROWS;
use shared::operation::RecordId;
use shared::operation::filter::Comparison;
use shared::operation::read::{Direction, Selection};
use shared::operation::write::{WriteOptions, WriteTarget};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Returning {
    output: Output,
    layout: Arc<Layout>,
    /// The role's rule for reads: other records are returned as null, or left out of the list of an update or delete.
    rule: Option<Arc<Predicate>>,
}

#[derive(Debug, Default)]
pub struct TransactionSteps {
    pub precondition: Option<Precondition>,
    pub max_affected: Option<MaxAffected>,
    pub is_dry_run: bool,
    pub reread: Option<Reread>,
    pub verifications: Vec<Verification>,
    pub answer: ChangeAnswer,
}

/// A rule that changed records must meet, read again after the update. Within some statements, MariaDB would judge the rule by
/// the old values.
#[derive(Debug)]
pub struct Verification {
    reread: Reread,
    /// The foreign key that must point to a readable record; `None` for the condition of the caller's role.
    field: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxAffected {
    pub records: u64,
    /// True if `records` limits how many records the response returns, by the role or a setting. False if it is the
    /// option `maxAffected`, which limits how many records the request changes.
    limits_response: bool,
}

impl MaxAffected {
    pub(super) fn of(options: &WriteOptions, target: &WriteTarget, max_rows: Option<u64>) -> Option<Self> {
        let asked = options.max_affected.map(|records| Self { records, limits_response: false });
        let returns_list =
            options.returning.is_some() && !options.is_dry_run && matches!(target, WriteTarget::Matching(_));
        let of_answer = max_rows.filter(|_| returns_list).map(Self::of_response);
        asked.into_iter().chain(of_answer).min_by_key(|most| most.records)
    }

    pub(super) fn of_response(records: u64) -> Self {
        Self { records, limits_response: true }
    }

    pub fn exceeded(self) -> Problem {
        let most = self.records;
        let (message, hint) = match self.limits_response {
            false => (
                format!("The request would affect more records than the {most} that maxAffected allows."),
                "Nothing was changed. Narrow the conditions, or raise maxAffected; dryRun=true counts the records.",
            ),
            true => (
                format!(
                    "The option returning would return more records than the {most} that the role's maxRows or the setting \
                     max_rows allows in one answer."
                ),
                "Nothing was changed. Write fewer records at once, or leave returning out.",
            ),
        };
        Problem::new(ErrorCode::TooManyAffected, message).with_hint(hint)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeAnswer {
    #[default]
    Count,
    Record,
    Records,
}

/// `If-Match`: the record must have one of the entity tags.
#[derive(Debug)]
pub struct Precondition {
    pub read: Select,
    pub tags: Box<str>,
}

#[derive(Debug)]
pub enum Reread {
    /// For an `{id}` that identifies one record and that the update does not change.
    ById(Box<Select>),
    /// For other updates: the keys are read, and locked, before the update.
    ByKeys(Box<KeyedReread>),
}

#[derive(Debug)]
pub struct KeyedReread {
    keys: Select,
    returning: Returning,
    /// Holds for each key column its index, its kind, and its new value if the update changes the column.
    columns: Vec<(usize, Kind, Option<Operand>)>,
}

impl Returning {
    pub(super) fn of(selection: &Selection, scope: &Scope<'_>) -> Result<Self, Problem> {
        let (table, rule) = (scope.root(), scope.access(0).reading()?);
        if table.traits().view {
            return Err(unfit(table, "a view can't return what was written"));
        }
        let (output, layout) = match selection {
            Selection::All => (Output::Whole, table.layout()),
            _ => {
                let (output, layout, _) = Cells::of_records(selection, &[], scope)?.finish(scope);
                (output, layout)
            }
        };
        Ok(Self { output, layout, rule })
    }

    pub fn output(&self) -> &Output {
        &self.output
    }

    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    pub fn rule(&self) -> Option<&Predicate> {
        self.rule.as_deref()
    }

    fn select(&self, filter: Predicate, order: &[usize]) -> Select {
        let filter = and(Some(filter), self.rule.as_deref().cloned());
        select(self.output.clone(), Arc::clone(&self.layout), filter, order)
    }
}

fn select(output: Output, layout: Arc<Layout>, filter: Option<Predicate>, order: &[usize]) -> Select {
    let order = order.iter().map(|at| (column(*at), Direction::Ascending)).collect();
    Select { filter, order, ..Select::of(output, layout) }
}

fn column(column: usize) -> Expression {
    Expression::Column(ColumnRef { source: 0, column })
}

fn unfit(table: &Table, why: &str) -> Problem {
    let name = shown(table.name().as_str());
    Problem::new(ErrorCode::InvalidQueryOption, format!("The option returning is not available for {name}: {why}."))
        .with_hint("Leave returning out, and read the records afterwards.")
}

pub(super) fn check_engine(options: &WriteOptions, table: &Table) -> Result<(), Problem> {
    match options.needs_transaction() {
        Some(what) if !table.traits().inserts.transactional => Err(Problem::new(
            ErrorCode::InvalidQueryOption,
            format!("{what} is not available for {}: {}.", shown(table.name().as_str()), without_transactions(table)),
        )
        .with_hint("Leave it out; nothing was done.")),
        _ => Ok(()),
    }
}

pub(super) fn without_transactions(table: &Table) -> &'static str {
    match table.traits().view {
        true => "it is a view, and its tables may have no transactions",
        false => "its engine has no transactions",
    }
}

impl TransactionSteps {
    /// Returns the steps; `None` if no option needs any. The caller sets [`TransactionSteps::reread`].
    pub(super) fn of(
        options: &WriteOptions,
        target: &WriteTarget,
        (max_affected, scope): (Option<MaxAffected>, &Scope<'_>),
    ) -> Result<Option<Box<Self>>, Problem> {
        if options.is_plain() {
            return Ok(None);
        }
        check_engine(options, scope.root())?;
        let needs_one = options.if_match.is_some() || options.returning.is_some();
        if needs_one && matches!(target, WriteTarget::Record(_)) && !scope.root().key_is_unique() {
            let name = shown(scope.root().name().as_str());
            return Err(Problem::new(
                ErrorCode::InvalidQueryOption,
                format!("returning and If-Match need an id of one record; in {name} several may have the same."),
            )
            .with_hint("Name the records by the option query instead."));
        }
        let precondition = match (&options.if_match, target) {
            (Some(tags), WriteTarget::Record(id)) => {
                Some(Precondition { read: read_one(id, scope)?, tags: tags.clone() })
            }
            _ => None,
        };
        Ok(Some(Box::new(Self {
            precondition,
            max_affected,
            is_dry_run: options.is_dry_run,
            reread: None,
            verifications: Vec::new(),
            answer: match (&options.returning, target) {
                (None, _) => ChangeAnswer::Count,
                (Some(_), WriteTarget::Record(_)) => ChangeAnswer::Record,
                (Some(_), WriteTarget::Matching(_)) => ChangeAnswer::Records,
            },
        })))
    }
}

fn read_one(id: &RecordId, scope: &Scope<'_>) -> Result<Select, Problem> {
    let (table, rule) = (scope.root(), scope.access(0).reading()?);
    let filter = and(Some(by_id(id, table, IdPurpose::Read)?), rule.map(|rule| Predicate::clone(&rule)));
    Ok(select(Output::Whole, table.layout(), filter, &[]))
}

impl Reread {
    pub(super) fn of(
        returning: Returning,
        (target, filter): (&WriteTarget, &Predicate),
        (changes, max_affected): (&[(usize, ColumnChange)], Option<MaxAffected>),
        table: &Table,
    ) -> Result<Self, Problem> {
        let changes_key = |key: &[usize]| changes.iter().any(|(at, _)| key.contains(at));
        if let WriteTarget::Record(id) = target
            && table.key_is_unique()
            && !changes_key(table.key())
        {
            let filter = by_id(id, table, IdPurpose::Write)?;
            return Ok(Self::ById(Box::new(returning.select(filter, &[]))));
        }
        let key = table.row_key();
        if key.is_empty() {
            return Err(unfit(table, "without a primary key, changed records can't be found again"));
        }
        let columns = key.iter().map(|at| {
            let column = table.column(*at);
            let new = match changes.iter().find(|(changed, _)| changed == at) {
                None => None,
                Some((_, ColumnChange::Set(_))) if bind::rounds(column) => {
                    return Err(unfit(
                        table,
                        "the update sets a floating number with a fixed number of digits in the key of the records",
                    ));
                }
                Some((_, ColumnChange::Set(operand))) => Some(bind::as_stored(column, operand.clone())),
                Some((_, ColumnChange::Add(_))) => return Err(unfit(table, "$add changes the key of the records")),
            };
            Ok((*at, column.kind, new))
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let layout = Layout {
            kinds: key.iter().map(|at| Some(table.column(*at).kind)).collect(),
            keys: ColumnLabels::new(key.iter().map(|at| table.column(*at).name.as_str())),
        };
        let cells = Output::Cells(key.iter().map(|at| column(*at)).collect());
        let mut keys = select(cells, Arc::new(layout), Some(filter.clone()), key);
        // Reading one record more than allowed shows whether there are too many.
        let most = max_affected.map_or(u64::MAX, |most| most.records).min(BATCH_ANSWER_MAX_ROWS as u64);
        keys.limit = Some(most.saturating_add(1));
        Ok(Self::ByKeys(Box::new(KeyedReread { keys, returning, columns })))
    }
}

impl Verification {
    pub(super) fn of(
        (rule, field): (Predicate, Option<Box<str>>),
        (target, filter): (&WriteTarget, &Predicate),
        (changes, max_affected): (&[(usize, ColumnChange)], Option<MaxAffected>),
        table: &Table,
    ) -> Result<Self, Problem> {
        let layout = Layout { kinds: vec![Some(Kind::Integer)], keys: ColumnLabels::new(["n"]) };
        let returning = Returning {
            output: Output::Cells(vec![Expression::Number(1)]),
            layout: Arc::new(layout),
            rule: Some(Arc::new(Predicate::Untrue(Box::new(rule)))),
        };
        let reread = Reread::of(returning, (target, filter), (changes, max_affected), table)?;
        Ok(Self { reread, field })
    }

    pub fn keyed(&self) -> Option<&KeyedReread> {
        match &self.reread {
            Reread::ById(_) => None,
            Reread::ByKeys(reread) => Some(reread),
        }
    }

    /// Selects a changed record that breaks the rule. `keys` are as for [`KeyedReread::select`].
    pub fn broken(&self, keys: &[Vec<Param>]) -> Select {
        let select = match &self.reread {
            Reread::ById(select) => Select::clone(select),
            Reread::ByKeys(reread) => reread.select(keys.to_vec()),
        };
        Select { limit: Some(1), ..select }
    }

    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}

impl Update {
    /// Limits the update to these records.
    pub fn among(mut self, records: Option<Predicate>) -> Self {
        self.filter = and(Some(self.filter), records).unwrap_or(Predicate::Any(Vec::new()));
        self
    }
}

impl Select {
    /// Limits the select to these records.
    pub fn among(self, records: Predicate) -> Self {
        Self { filter: and(self.filter, Some(records)), ..self }
    }
}

impl KeyedReread {
    /// Selects the keys, one more than a response or `maxAffected` allows, to show that there are too many.
    pub fn keys(&self) -> Select {
        self.keys.clone()
    }

    pub fn key_width(&self) -> usize {
        self.columns.len()
    }

    pub fn layout(&self) -> &Arc<Layout> {
        self.returning.layout()
    }

    /// Selects the changed records. `keys` are as read before the update; changed key columns have their new values.
    pub fn select(&self, keys: Vec<Vec<Param>>) -> Select {
        let order: Vec<_> = self.columns.iter().map(|(at, ..)| *at).collect();
        let of_key = |key: Vec<Param>| {
            let parts = self
                .columns
                .iter()
                .zip(key)
                .map(|((at, kind, new), old)| equal(*at, new.clone().or_else(|| stored(*kind, old))));
            Predicate::All(parts.collect())
        };
        self.returning.select(Predicate::Any(keys.into_iter().map(of_key).collect()), &order)
    }

    /// The condition for the records of these keys, before the update.
    pub fn among(&self, keys: &[Vec<Param>]) -> Predicate {
        if let [(at, kind, _)] = self.columns.as_slice() {
            let operands = keys.iter().flatten().filter_map(|key| stored(*kind, key.clone()));
            return Predicate::In(ColumnRef { source: 0, column: *at }, operands.collect());
        }
        let of_key = |key: &Vec<Param>| {
            let parts = self.columns.iter().zip(key);
            Predicate::All(parts.map(|((at, kind, _), part)| equal(*at, stored(*kind, part.clone()))).collect())
        };
        Predicate::Any(keys.iter().map(of_key).collect())
    }
}

fn equal(column: usize, operand: Option<Operand>) -> Predicate {
    match operand {
        Some(operand) => Predicate::Compare(ColumnRef { source: 0, column }, Comparison::Equal, operand),
        None => Predicate::Any(Vec::new()),
    }
}

pub(super) fn change(column: &Column, value: &Value) -> Result<ColumnChange, Problem> {
    match bind::addend(column, value)? {
        Some(operand) => Ok(ColumnChange::Add(operand)),
        None => bind::value(column, value, BindFor::Store).map(ColumnChange::Set),
    }
}
