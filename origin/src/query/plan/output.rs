//! Resolves the select list of a read, and the names of its values in the response.

use super::scope::Scope;
use super::{Arithmetic, ColumnRef, Expression, Output, Search};
use crate::query::catalog::{Kind, Layout};
use foldhash::fast::RandomState;
use shared::envelope::{ColumnLabels, Label};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, shown};
use shared::operation::field::FieldRef;
use shared::operation::read::join::{Join, JoinForm};
use shared::operation::read::select::{Selected, Selection, What};
use std::collections::HashSet;
use std::sync::Arc;

/// MariaDB's protocol counts at most 65,535 columns, and a read has some more columns than fields, such as keys.
const RECORD_MAX_FIELDS: usize = 65_000;

#[derive(Debug)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    nests: Vec<Nest>,
    includes: Vec<Member>,
    pub(super) aggregated: bool,
}

#[derive(Debug)]
struct Cell {
    expression: Expression,
    name: String,
    /// True for an alias or a computed value: ORDER BY then prefers this cell to a column of the same name.
    given: bool,
}

#[derive(Debug)]
struct Nest {
    name: String,
    source: usize,
    first: usize,
    end: usize,
}

#[derive(Debug)]
struct Member {
    name: String,
    /// The columns of the relation's key, which are read even if they are not part of the response.
    key: Vec<ColumnRef>,
}

fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, message)
}

fn whole(selection: &Selection, source: usize, scope: &Scope<'_>) -> Result<Option<Vec<ColumnRef>>, Problem> {
    let all = || (0..scope.table(source).visible_columns().len()).map(|column| ColumnRef { source, column });
    match selection {
        Selection::Only(_) => Ok(None),
        Selection::All => Ok(Some(all().collect())),
        Selection::Except(fields) => {
            let omitted = fields
                .iter()
                .map(|field| scope.resolve_from(source, field, ErrorCode::InvalidQueryOption))
                .collect::<Result<Vec<_>, _>>()?;
            if let Some(other) = omitted.iter().find(|column_ref| column_ref.source != source) {
                return Err(invalid(format!(
                    "The option omitFields names {}, which is a field of {}.",
                    shown(scope.column(*other).name.as_str()),
                    shown(scope.name(other.source).as_str())
                ))
                .with_hint("Omit a joined table's fields in its own join."));
            }
            let kept: Vec<_> = all().filter(|column_ref| !omitted.contains(column_ref)).collect();
            if kept.is_empty() {
                return Err(invalid("The option omitFields leaves no field.".to_owned()));
            }
            Ok(Some(kept))
        }
    }
}

pub(super) fn aggregates(select: &Selection, joins: &[Join], group: &[Selected]) -> bool {
    let any = |selection: &Selection| match selection {
        Selection::Only(chosen) => chosen.iter().any(|one| !matches!(one.what, What::Field(_))),
        Selection::All | Selection::Except(_) => false,
    };
    !group.is_empty() || any(select) || joins.iter().any(|join| any(&join.select))
}

impl Cells {
    pub(super) fn of_records(select: &Selection, joins: &[Join], scope: &Scope<'_>) -> Result<Self, Problem> {
        let mut builder = Builder::new(scope);
        builder.table(select, 0)?;
        for (at, join) in joins.iter().enumerate() {
            match join.form {
                JoinForm::Flat => builder.table(&join.select, at + 1)?,
                JoinForm::Nested => builder.nest(&join.select, at + 1)?,
            }
        }
        Ok(builder.cells)
    }

    pub(super) fn of_groups(
        select: &Selection,
        joins: &[Join],
        group: &[Expression],
        scope: &Scope<'_>,
    ) -> Result<Self, Problem> {
        let mut builder = Builder::new(scope);
        builder.cells.aggregated = true;
        match select {
            Selection::Only(_) => builder.table(select, 0)?,
            Selection::All => {
                for expression in group {
                    builder.flat(expression.clone(), None, source(expression))?;
                }
            }
            Selection::Except(_) => return Err(no_omission()),
        }
        for (at, join) in joins.iter().enumerate() {
            match (&join.select, join.form) {
                (Selection::Only(_), JoinForm::Flat) => builder.table(&join.select, at + 1)?,
                (Selection::All, JoinForm::Flat) => {}
                (Selection::Except(_), _) => return Err(no_omission()),
                (_, JoinForm::Nested) => {
                    return Err(invalid("The option join.nest does not go with group and aggregates.".to_owned()));
                }
            }
        }
        if builder.cells.cells.is_empty() {
            return Err(invalid("The option selectFields names nothing that comes out.".to_owned()));
        }
        Ok(builder.cells)
    }

    pub(super) fn add_score(&mut self, name: &FieldName, search: &Search) -> Result<(), Problem> {
        if self.is_taken(name.as_str()) {
            return Err(taken("fullTextSearch.scoreAlias", name.as_str()));
        }
        self.cells.push(Cell {
            expression: Expression::Score(search.clone()),
            name: name.as_str().to_owned(),
            given: true,
        });
        Ok(())
    }

    /// Adds a member of included records. `key` has the columns of the root table that are the relation's key.
    pub(super) fn add_include(&mut self, name: &str, key: Vec<ColumnRef>) -> Result<(), Problem> {
        if self.is_taken(name) {
            return Err(invalid(format!(
                "The option include would have two things come out under the name {}.",
                shown(name)
            ))
            .with_hint("Give the included records another name: {\"relation\": …, \"as\": …}."));
        }
        self.includes.push(Member { name: name.to_owned(), key });
        Ok(())
    }

    fn flat(&self) -> impl Iterator<Item = &Cell> {
        let nested = |at: usize| self.nests.iter().any(|nest| (nest.first..nest.end).contains(&at));
        self.cells.iter().enumerate().filter_map(move |(at, cell)| (!nested(at)).then_some(cell))
    }

    fn is_taken(&self, name: &str) -> bool {
        self.nests.iter().any(|nest| nest.name == name)
            || self.includes.iter().any(|member| member.name == name)
            || self.flat().any(|cell| cell.name == name)
    }

    pub(super) fn given(&self, name: &str) -> Option<&Expression> {
        let found = |cell: &&Cell| cell.given && cell.name == name;
        self.flat().find(found).map(|cell| &cell.expression)
    }

    pub(super) fn named(&self, name: &str) -> Option<&Expression> {
        let found = |cell: &&Cell| cell.name == name;
        self.flat().find(found).map(|cell| &cell.expression)
    }

    pub(super) fn holds(&self, expression: &Expression) -> bool {
        self.cells.iter().any(|cell| cell.expression == *expression)
    }

    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.cells.iter().map(|cell| &cell.expression)
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = ColumnRef> + '_ {
        self.cells.iter().filter_map(|cell| match cell.expression {
            Expression::Column(column_ref) => Some(column_ref),
            _ => None,
        })
    }

    /// Returns the select list, the layout of the answer and, for each include, where a row of the result has the columns
    /// of this table by which the related records are found. Appends to the select list columns that the caller did not
    /// ask for: those, and one for each nested object that shows whether it has a record.
    pub(super) fn finish(self, scope: &Scope<'_>) -> (Output, Arc<Layout>, Vec<Vec<usize>>) {
        let mut expressions: Vec<_> = self.cells.iter().map(|cell| cell.expression.clone()).collect();
        let presences: Vec<_> = self.nests.iter().map(|nest| presence(nest, scope, &mut expressions)).collect();
        let mut parts = Vec::new();
        let mut at = 0;
        for (nest, presence) in self.nests.iter().zip(presences) {
            parts.extend(self.cells[at..nest.first].iter().map(Cell::part));
            parts.push(Label::Object {
                name: &nest.name,
                fields: self.cells[nest.first..nest.end].iter().map(|cell| cell.name.as_str()).collect(),
                presence,
            });
            at = nest.end;
        }
        parts.extend(self.cells[at..].iter().map(Cell::part));
        parts.extend(self.includes.iter().map(|member| Label::Field(&member.name)));
        let mut position = |column_ref: &ColumnRef| {
            let wanted = Expression::Column(*column_ref);
            expressions.iter().position(|known| *known == wanted).unwrap_or_else(|| {
                expressions.push(wanted);
                expressions.len() - 1
            })
        };
        let keys = self.includes.iter().map(|member| member.key.iter().map(&mut position).collect()).collect();
        let layout = Layout {
            kinds: expressions.iter().map(|expression| kind(expression, scope)).collect(),
            keys: ColumnLabels::nested(parts),
        };
        (Output::Cells(expressions), Arc::new(layout), keys)
    }
}

impl Cell {
    fn part(&self) -> Label<'_> {
        Label::Field(&self.name)
    }
}

/// Returns the cell that shows whether a nested object has a record: a NOT NULL column in it, or else a new
/// [`Expression::Presence`], which can't make equal rows distinct. If all columns are nullable, NULLs mean no record.
fn presence(nest: &Nest, scope: &Scope<'_>, expressions: &mut Vec<Expression>) -> usize {
    let source = nest.source;
    let columns = scope.table(source).columns();
    let column_ref = |column| ColumnRef { source, column };
    let never_null = |column: &usize| columns.get(*column).is_some_and(|column| !column.nullable);
    let is_sure = |cell: &Expression| match cell {
        Expression::Column(found) => found.source == source && never_null(&found.column),
        _ => false,
    };
    let known = expressions[nest.first..nest.end].iter().position(is_sure).map(|at| nest.first + at);
    known.unwrap_or_else(|| {
        let column_refs = match (0..columns.len()).find(never_null) {
            Some(sure) => vec![column_ref(sure)],
            None => (0..columns.len()).map(column_ref).collect(),
        };
        expressions.push(Expression::Presence(column_refs));
        expressions.len() - 1
    })
}

fn kind(expression: &Expression, scope: &Scope<'_>) -> Option<Kind> {
    use shared::operation::read::select::Aggregate::{Max, Min};
    match expression {
        Expression::Column(column_ref) => Some(scope.column(*column_ref).kind),
        // MIN and MAX of a BIT are numbers.
        Expression::Aggregate(Min | Max, column_ref) => {
            Some(scope.column(*column_ref).kind).filter(|kind| *kind != Kind::Bit)
        }
        Expression::Part(..) => Some(Kind::Integer),
        _ => None,
    }
}

fn source(expression: &Expression) -> usize {
    match expression {
        Expression::Column(at) | Expression::Part(_, at) | Expression::Aggregate(_, at) => at.source,
        _ => 0,
    }
}

fn no_omission() -> Problem {
    invalid("The option omitFields does not go with group and aggregates.".to_owned())
        .with_hint("Name what comes out in selectFields.")
}

fn taken(option: &str, name: &str) -> Problem {
    invalid(format!("The option {option} would have two things come out under the name {}.", shown(name)))
        .with_hint("Give one of them an alias.")
}

struct Builder<'a> {
    scope: &'a Scope<'a>,
    cells: Cells,
    names: HashSet<String, RandomState>,
}

impl<'a> Builder<'a> {
    fn new(scope: &'a Scope<'a>) -> Self {
        Self {
            scope,
            cells: Cells { cells: Vec::new(), nests: Vec::new(), includes: Vec::new(), aggregated: false },
            names: HashSet::default(),
        }
    }

    fn table(&mut self, selection: &Selection, source: usize) -> Result<(), Problem> {
        if let Some(column_refs) = whole(selection, source, self.scope)? {
            for column_ref in column_refs {
                self.flat(Expression::Column(column_ref), None, column_ref.source)?;
            }
        }
        if let Selection::Only(chosen) = selection {
            for one in chosen {
                let (expression, of) = self.expression(one, source)?;
                self.flat(expression, one.alias.as_ref(), of)?;
            }
        }
        Ok(())
    }

    fn nest(&mut self, selection: &Selection, source: usize) -> Result<(), Problem> {
        let name = self.scope.name(source).as_str().to_owned();
        if !self.names.insert(name.clone()) {
            return Err(taken("join.nest", &name));
        }
        let outer = std::mem::take(&mut self.names);
        let first = self.cells.cells.len();
        self.table(selection, source)?;
        self.names = outer;
        self.cells.nests.push(Nest { name, source, first, end: self.cells.cells.len() });
        Ok(())
    }

    /// Adds a cell. Without an alias, a taken name gets the table's name as a prefix, and then a number.
    fn flat(&mut self, expression: Expression, alias: Option<&FieldName>, source: usize) -> Result<(), Problem> {
        let given = alias.is_some() || !matches!(expression, Expression::Column(_));
        let name = match alias {
            Some(alias) => alias.as_str().to_owned(),
            None => self.free_name(own_name(&expression, self.scope), source),
        };
        if !self.names.insert(name.clone()) {
            return Err(taken("selectFields", &name));
        }
        if self.cells.cells.len() == RECORD_MAX_FIELDS {
            return Err(invalid(format!("A record would have more than {RECORD_MAX_FIELDS} fields, the maximum."))
                .with_hint("Name the fields in selectFields, also of the joined tables."));
        }
        self.cells.cells.push(Cell { expression, name, given });
        Ok(())
    }

    fn free_name(&self, own: String, source: usize) -> String {
        if !self.names.contains(&own) {
            return own;
        }
        let longer = format!("{}_{own}", self.scope.name(source));
        if !self.names.contains(&longer) {
            return longer;
        }
        // One candidate is free: there are more candidates than names in use.
        (2..=self.names.len() + 2)
            .map(|number| format!("{longer}_{number}"))
            .find(|name| !self.names.contains(name))
            .unwrap_or(longer)
    }

    fn expression(&self, one: &Selected, home: usize) -> Result<(Expression, usize), Problem> {
        let column_ref = |field: &FieldRef| self.scope.resolve_from(home, field, ErrorCode::InvalidQueryOption);
        Ok(match &one.what {
            What::Field(_) | What::Part(..) => {
                let expression = grouped(&one.what, home, self.scope)?;
                let source = source(&expression);
                (expression, source)
            }
            What::Computed(aggregate, expression) => {
                (Expression::Computed(*aggregate, Arithmetic::resolve(expression, self.scope, home)?), home)
            }
            What::Aggregate(aggregate, field) => {
                let column_ref = column_ref(field)?;
                super::bind::aggregable(*aggregate, self.scope.column(column_ref))?;
                (Expression::Aggregate(*aggregate, column_ref), column_ref.source)
            }
            What::CountAll => (Expression::CountAll, home),
        })
    }
}

/// Resolves a field or a part of a date.
pub(super) fn grouped(what: &What, home: usize, scope: &Scope<'_>) -> Result<Expression, Problem> {
    let column_ref = |field: &FieldRef| scope.resolve_from(home, field, ErrorCode::InvalidQueryOption);
    match what {
        What::Field(field) => Ok(Expression::Column(column_ref(field)?)),
        What::Part(part, field) => {
            let column_ref = column_ref(field)?;
            let column = scope.column(column_ref);
            match column.kind {
                Kind::Date | Kind::DateTime => Ok(Expression::Part(*part, column_ref)),
                _ => Err(invalid(format!(
                    "The field {} ({}) has no {}: it is no date.",
                    shown(column.name.as_str()),
                    column.type_text,
                    part.name()
                ))),
            }
        }
        What::Aggregate(..) | What::Computed(..) | What::CountAll => {
            Err(invalid("The option group takes no aggregate.".to_owned()))
        }
    }
}

fn own_name(expression: &Expression, scope: &Scope<'_>) -> String {
    let field = |column_ref: &ColumnRef| scope.column(*column_ref).name.as_str();
    match expression {
        Expression::Column(column_ref) | Expression::Beginning(column_ref, _) | Expression::Ordinal(column_ref) => {
            field(column_ref).to_owned()
        }
        Expression::Aggregate(aggregate, column_ref) => {
            format!("{}_{}", aggregate.prefix(), field(column_ref))
        }
        Expression::Part(part, column_ref) => format!("{}_{}", part.name(), field(column_ref)),
        // It has an alias.
        Expression::Computed(..) => String::new(),
        Expression::CountAll => "count".to_owned(),
        Expression::Score(_) => "score".to_owned(),
        Expression::Presence(_) | Expression::Number(_) => String::new(),
    }
}
