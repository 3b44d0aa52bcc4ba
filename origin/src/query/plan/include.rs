//! Resolves the option `include`: one read for each relation, which runs for the keys of many records at once.

use super::access::and;
use super::filter::predicate;
use super::keyset::{is_exact, stored};
use super::output::{self, Cells};
use super::related::RelatedTable;
use super::scope::Scope;
use super::{ColumnRef, Expression, Operand, Output, Param, Predicate, Select};
use crate::query::catalog::relations::RelationKind;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::limits::INCLUDE_BATCH_MAX_RECORDS;
use shared::operation::filter::Comparison;
use shared::operation::read::{Direction, Include};

const BRANCHES_MAX_COUNT: usize = 64;

/// Maximum key values in a UNION. MariaDB allows 65,535; the rest is for the ON conditions, which have rules of roles.
const UNION_MAX_VALUES: usize = 16_384;

#[derive(Clone, Debug)]
pub struct Included {
    table: RelatedTable,
    parent_cells: Vec<usize>,
    /// The columns of the link table, or of the related table without a link, that equal `parent_cells`, in that order.
    key: Vec<ColumnRef>,
    batch: Batch,
    limit: Option<u64>,
    select: Select,
    includes: Vec<Included>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// One SELECT with a list of keys; the last cell of a row is its key. The statement's LIMIT is the include's limit
    /// times the number of keys, so that the result may omit records of the last returned key and of later keys.
    List,
    /// One SELECT for each key; the last cell of a row is the number of its SELECT. MariaDB compares the keys, since
    /// texts may be equal under a collation without being identical.
    Union,
}

impl Included {
    pub fn kind(&self) -> RelationKind {
        self.table.relation().kind
    }

    pub fn parent_cells(&self) -> &[usize] {
        &self.parent_cells
    }

    /// How the records are first read. Keys whose records the LIMIT of that read cuts are read by [`Batch::Union`].
    pub fn batch(&self) -> Batch {
        self.batch
    }

    pub fn limit(&self) -> Option<u64> {
        self.limit
    }

    pub fn select(&self) -> &Select {
        &self.select
    }

    pub fn table(&self) -> &RelatedTable {
        &self.table
    }

    pub fn includes(&self) -> &[Self] {
        &self.includes
    }

    pub fn keys_max(&self, batch: Batch) -> usize {
        match batch {
            Batch::List => INCLUDE_BATCH_MAX_RECORDS,
            Batch::Union => {
                let values = self.key.len() + 1 + self.select.filter.as_ref().map_or(0, Predicate::values);
                (UNION_MAX_VALUES / values).clamp(1, BRANCHES_MAX_COUNT)
            }
        }
    }

    pub fn list_limit(&self, keys: usize) -> Option<u64> {
        Some(self.limit?.saturating_mul(keys as u64))
    }

    /// Returns the SELECTs for the keys, which are padded to a rounded number, so that few statements are prepared.
    pub fn selects_for(&self, batch: Batch, keys: &[&[Param]]) -> Vec<Select> {
        let scope = self.table.scope();
        let operand = |column_ref: &ColumnRef, value: &Param| stored(scope.column(*column_ref).kind, value.clone());
        match batch {
            Batch::List => {
                let column_ref = self.key[0];
                let known = keys.iter().filter_map(|key| operand(&column_ref, key.first()?));
                let mut operands: Vec<Operand> = known.collect();
                if let Some(last) = operands.last().cloned() {
                    operands.resize(keys.len().next_power_of_two(), last);
                }
                let mut select = self.select_where(Predicate::In(column_ref, operands));
                if self.kind() == RelationKind::Many {
                    // The key has the direction of the order, so that MariaDB can read one index for both.
                    let direction = select.order.first().map_or(Direction::Ascending, |(_, direction)| *direction);
                    select.order.retain(|(by, _)| *by != Expression::Column(column_ref));
                    select.order.insert(0, (Expression::Column(column_ref), direction));
                }
                select.limit = self.list_limit(keys.len());
                if let Output::Cells(cells) = &mut select.output {
                    cells.push(Expression::Column(column_ref));
                }
                vec![select]
            }
            Batch::Union => {
                let count = match keys.len() {
                    few @ ..4 => few,
                    more => more.next_multiple_of(4).min(self.keys_max(batch)),
                };
                let select = |at: usize| {
                    let equals = self.key.iter().enumerate().map(|(part, column_ref)| {
                        let value = keys.get(at).and_then(|key| operand(column_ref, key.get(part)?));
                        // Padding, and a value that the column can't hold, become NULL: `= NULL` matches no record.
                        let value = value.unwrap_or(Operand::NULL);
                        Predicate::Compare(*column_ref, Comparison::Equal, value)
                    });
                    let mut select = self.select_where(Predicate::All(equals.collect()));
                    select.limit = match self.kind() {
                        RelationKind::One => Some(1),
                        RelationKind::Many => self.limit,
                    };
                    if count > 1 {
                        // MariaDB ignores the ORDER BY of a UNION's SELECT that has no LIMIT.
                        select.limit.get_or_insert(u64::MAX);
                    }
                    if let Output::Cells(cells) = &mut select.output {
                        cells.push(Expression::Number(at));
                    }
                    select
                };
                (0..count).map(select).collect()
            }
        }
    }

    fn select_where(&self, keys: Predicate) -> Select {
        let mut select = self.select.clone();
        select.filter = and(select.filter.take(), Some(keys));
        select
    }
}

pub(super) fn add(includes: &[Include], scope: &Scope<'_>, cells: &mut Cells) -> Result<(), Problem> {
    for include in includes {
        let table = table_of(include, scope)?;
        let name = include.alias.as_ref().map_or(table.relation().name.as_str(), |alias| alias.as_str());
        cells.add_include(name, table.own_columns(scope)?)?;
    }
    Ok(())
}

/// `parents` has, for each include, the indexes of its relation's key in the rows of the parent records.
pub(super) fn resolve(
    includes: &[Include],
    parents: Vec<Vec<usize>>,
    scope: &Scope<'_>,
) -> Result<Vec<Included>, Problem> {
    let each = includes.iter().zip(parents);
    each.map(|(include, parent_cells)| resolve_one(include, table_of(include, scope)?, parent_cells, scope)).collect()
}

fn table_of<'a>(include: &Include, scope: &Scope<'a>) -> Result<&'a RelatedTable, Problem> {
    scope.find_related(&include.relation).ok_or_else(|| {
        Problem::internal("The related table was not loaded.", format!("include {}", shown(&include.relation)))
    })
}

fn resolve_one(
    include: &Include,
    table: &RelatedTable,
    parent_cells: Vec<usize>,
    parent: &Scope<'_>,
) -> Result<Included, Problem> {
    let scope = table.scope();
    let is_one = table.relation().kind == RelationKind::One;
    if is_one && (include.limit.is_some() || !include.order.is_empty()) {
        return Err(invalid(include, "is one record, which takes neither limit nor order"));
    }
    if output::aggregates(&include.select, &[], &[]) {
        return Err(invalid(include, "takes no aggregate"));
    }
    let mut cells = Cells::of_records(&include.select, &[], &scope)?;
    add(&include.includes, &scope, &mut cells)?;
    let (output, layout, parents) = cells.finish(&scope);
    let includes = resolve(&include.includes, parents, &scope)?;
    let key = table.matches(&scope)?;
    let own = table.own_columns(parent)?;
    let batch = match (key.as_slice(), own.as_slice()) {
        ([key], [own]) if is_exact(scope.column(*key), parent.column(*own)) => Batch::List,
        _ => Batch::Union,
    };
    let (joins, rules) = table.link(&scope)?;
    let filter = include.filter.as_ref().map(|condition| predicate(condition, &scope)).transpose()?;
    let mut order = Vec::new();
    if !is_one {
        for step in &include.order {
            let column_ref = scope.resolve(&step.field, ErrorCode::InvalidQueryOption)?;
            order.push((Expression::Column(column_ref), step.direction));
        }
        let direction = include.order.last().map_or(Direction::Ascending, |step| step.direction);
        for column in scope.root().identity() {
            let by = Expression::Column(ColumnRef { source: 0, column: *column });
            if !order.iter().any(|(known, _)| *known == by) {
                order.push((by, direction));
            }
        }
    }
    let select = Select { joins, filter: rules.restrict(filter)?, order, ..Select::of(output, layout) };
    Ok(Included { table: table.clone(), parent_cells, key, batch, limit: include.limit, select, includes })
}

fn invalid(include: &Include, what: &str) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, format!("The relation {} in include {what}.", shown(&include.relation)))
}
