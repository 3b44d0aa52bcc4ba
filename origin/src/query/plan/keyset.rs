//! Keyset pagination: a page begins after the sort values of the previous page's last row. Rows with equal sort values
//! are ordered by the keys of all tables, in the direction of the last step, so that MariaDB can use an index. Groups
//! have the fields of `group` as their key, DISTINCT rows all their fields. NULL sorts first in ascending order.

use super::join::may_be_absent;
use super::scope::Scope;
use super::{Arithmetic, ColumnRef, Expression, Operand, Output, Param, Predicate, Select, SqlConversion};
use crate::query::catalog::{Column, Kind};
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::limits::ORDER_MAX_STEPS;
use shared::operation::filter::Comparison;
use shared::operation::read::join::JoinKind;
use shared::operation::read::select::Aggregate;
use shared::operation::read::{Direction, Read, Rows};

#[derive(Clone, Debug, PartialEq)]
pub struct Keyset {
    terms: Vec<Term>,
    cells: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    expression: Expression,
    /// The expression in ORDER BY, which gives the same order as `expression` but can use an index.
    order: Expression,
    direction: Direction,
    nullable: bool,
    kind: Kind,
}

impl Keyset {
    /// Adds keyset pagination or, if the read can't have it, completes ORDER BY, so that pages by offset don't overlap.
    pub(super) fn paginate(
        select: &mut Select,
        (read, values): (&Read, Option<Vec<Param>>),
        scope: &Scope<'_>,
    ) -> Result<(), Problem> {
        let after = read.window.after.is_some();
        if !after && select.offset == 0 && !select.reads_one_more() {
            return Ok(());
        }
        let terms = match terms(select, scope) {
            Ok(terms) => terms,
            Err(reason) if after => {
                let message = format!("The option after can't be used here: {reason}.");
                return Err(
                    Problem::new(ErrorCode::InvalidQueryOption, message).with_hint("Use page or offset instead.")
                );
            }
            Err(_) => {
                settle(select, scope);
                return Ok(());
            }
        };
        select.order = terms.iter().map(|term| (term.order.clone(), term.direction)).collect();
        if !after && !select.reads_one_more() {
            return Ok(());
        }
        let is_computed = terms.iter().any(Term::is_computed);
        if after {
            let in_having: Vec<_> = terms.iter().filter(|_| is_computed).cloned().map(Term::in_having).collect();
            let compared = if is_computed { &in_having } else { &terms };
            let beyond = values.and_then(|values| after_row(compared, values)).ok_or_else(foreign_cursor)?;
            // Whole groups meet a condition on their fields, so it can choose the records.
            *if is_computed { &mut select.having } else { &mut select.after } = Some(beyond);
        }
        if is_computed {
            // HAVING can name only the columns of GROUP BY and of the select list.
            for column in terms.iter().filter_map(Term::underlying_column) {
                cell(&mut select.output, &Expression::Column(column), scope);
            }
        }
        let cells = terms.iter().map(|term| cell(&mut select.output, &term.expression, scope)).collect();
        select.keyset = Some(Self { terms, cells });
        Ok(())
    }

    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    pub fn cells(&self) -> &[usize] {
        &self.cells
    }
}

pub(in crate::query) fn foreign_cursor() -> Problem {
    Problem::new(ErrorCode::InvalidQueryOption, "The option after is not a cursor of this query.")
        .with_hint("Send next as it came, with the same query, order, join, group and fullTextSearch as before (with distinct, also the same selectFields); to change these, begin at the first page.")
}

/// The condition for rows after `values`, as the driver returned them, one for each term. `None` if a value is unfit.
fn after_row(terms: &[Term], values: Vec<Param>) -> Option<Predicate> {
    let steps = terms.iter().zip(values).map(|(term, value)| Some((term, term.operand(value)?)));
    let steps = steps.collect::<Option<Vec<_>>>()?;
    let beyond = beyond(&steps);
    // A plain bound on the first step lets MariaDB use an index range.
    Some(match steps.first().and_then(|(term, value)| term.bound(value)) {
        Some(bound) if steps.len() > 1 => Predicate::All(vec![bound, beyond]),
        _ => beyond,
    })
}

fn terms(select: &Select, scope: &Scope<'_>) -> Result<Vec<Term>, String> {
    let mut terms = Vec::with_capacity(select.order.len() + 1);
    for (expression, direction) in &select.order {
        let term = Term::new(expression, *direction, select, scope)?;
        if !terms.iter().any(|known: &Term| known.expression == term.expression) {
            terms.push(term);
        }
    }
    let direction = terms.last().map_or(Direction::Ascending, |term| term.direction);
    for expression in key(select, scope)? {
        let term = Term::new(&expression, direction, select, scope)?;
        if matches!(term.expression, Expression::Beginning(..)) {
            return Err("a field that tells its records apart is too long to sort by its whole value".to_owned());
        }
        if !terms.iter().any(|known| known.expression == term.expression) {
            terms.push(term);
        }
    }
    if terms.len() > ORDER_MAX_STEPS {
        // MariaDB's time for the condition grows faster than the number of steps: 160 steps take seconds.
        return Err(format!("with the keys of all its tables, the order has more than {ORDER_MAX_STEPS} steps"));
    }
    Ok(terms)
}

/// Whether the join condition matches a unique key of integers or UUIDs. The joined table's key would then be a
/// needless step of ORDER BY, and keep MariaDB from using an index of the root table.
fn is_determined(source: usize, select: &Select, scope: &Scope<'_>) -> bool {
    let Some(join) = source.checked_sub(1).and_then(|at| select.joins.get(at)) else {
        return false;
    };
    let matches = match &join.on {
        Predicate::All(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let is_matched = |column: usize| {
        let target = ColumnRef { source, column };
        matches.iter().any(|part| match part {
            Predicate::Same(one, other) => {
                let partner = if *one == target { other } else { one };
                (*one == target || *other == target)
                    && partner.source < source
                    && is_exact(scope.column(target), scope.column(*partner))
            }
            _ => false,
        })
    };
    let table = scope.table(source);
    let key = table.identity();
    let by_key = !key.is_empty() && key.iter().all(|column| is_matched(*column));
    let by_column = || (0..table.columns().len()).any(|at| !table.columns()[at].unique.is_empty() && is_matched(at));
    join.kind != JoinKind::Right && (by_key || by_column())
}

/// Whether a value of one column equals at most one value of the other. A comparison of texts may be looser than the
/// collation of a unique key, and so find several values.
pub(super) fn is_exact(one: &Column, other: &Column) -> bool {
    one.kind == other.kind && matches!(one.kind, Kind::Integer | Kind::Uuid)
}

fn is_aggregated(select: &Select) -> bool {
    let aggregate = |expression: &Expression| {
        matches!(expression, Expression::Aggregate(..) | Expression::Computed(..) | Expression::CountAll)
    };
    !select.group.is_empty()
        || match &select.output {
            Output::Whole => false,
            Output::Cells(cells) => cells.iter().any(aggregate),
        }
}

fn key(select: &Select, scope: &Scope<'_>) -> Result<Vec<Expression>, String> {
    if select.rows == Rows::Distinct {
        return Ok(cells(select, scope));
    }
    if is_aggregated(select) {
        return Ok(select.group.clone());
    }
    let of_table = |source| match scope.table(source) {
        table if table.identity().is_empty() => {
            Err(format!("{} has no unique key that would order its records", shown(table.name().as_str())))
        }
        table => Ok(columns(source, table.identity())),
    };
    let sources = (0..scope.size()).filter(|source| !is_determined(*source, select, scope));
    Ok(sources.map(of_table).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn columns(source: usize, at: &[usize]) -> Vec<Expression> {
    at.iter().map(|column| Expression::Column(ColumnRef { source, column: *column })).collect()
}

fn cells(select: &Select, scope: &Scope<'_>) -> Vec<Expression> {
    match &select.output {
        Output::Whole => columns(0, &(0..scope.root().visible_columns().len()).collect::<Vec<_>>()),
        Output::Cells(cells) => cells.clone(),
    }
}

/// Completes ORDER BY: MariaDB returns rows of equal sort values in any order, which may depend on the LIMIT, so that
/// pages would overlap. Without ORDER BY, it reads in the same order each time.
fn settle(select: &mut Select, scope: &Scope<'_>) {
    // The caller may lack the right to read these keys, but the response does not contain them.
    let keys = || (0..scope.size()).map(|source| columns(source, scope.table(source).row_key()));
    let mut ties = match select.rows {
        Rows::All if is_aggregated(select) => select.group.clone(),
        Rows::All if keys().all(|key| !key.is_empty()) => keys().flatten().collect(),
        _ if select.order.is_empty() => Vec::new(),
        _ => cells(select, scope),
    };
    ties.retain(|by| match by {
        Expression::Column(column_ref) => scope.column(*column_ref).kind != Kind::Geometry,
        Expression::Number(_) | Expression::Presence(_) => false,
        _ => true,
    });
    let direction = select.order.last().map_or(Direction::Ascending, |(_, direction)| *direction);
    for by in ties {
        if select.order.len() < ORDER_MAX_STEPS && !select.order.iter().any(|(known, _)| *known == by) {
            select.order.push((by, direction));
        }
    }
}

fn cell(output: &mut Output, expression: &Expression, scope: &Scope<'_>) -> usize {
    let visible = scope.root().visible_columns().len();
    if let (Output::Whole, Expression::Column(column_ref)) = (&*output, expression)
        && column_ref.column < visible
    {
        return column_ref.column;
    }
    if matches!(output, Output::Whole) {
        let all = (0..visible).map(|column| Expression::Column(ColumnRef { source: 0, column }));
        *output = Output::Cells(all.collect());
    }
    let Output::Cells(cells) = output else {
        return 0;
    };
    let known = cells.iter().position(|cell| cell == expression);
    known.unwrap_or_else(|| {
        cells.push(expression.clone());
        cells.len() - 1
    })
}

impl Term {
    fn new(expression: &Expression, direction: Direction, select: &Select, scope: &Scope<'_>) -> Result<Self, String> {
        let (expression, kind, nullable) = match expression {
            Expression::Column(column_ref) => {
                let column = scope.column(*column_ref);
                let absent = may_be_absent(column_ref.source, &select.joins);
                (sorted(*column_ref, column)?, column.kind, column.nullable || absent)
            }
            Expression::Score(search) => {
                let source = search.columns.first().map_or(0, |column| column.source);
                let absent = may_be_absent(source, &select.joins);
                (expression.clone(), Kind::Double, absent)
            }
            Expression::CountAll | Expression::Aggregate(Aggregate::Count | Aggregate::CountDistinct, _) => {
                (expression.clone(), Kind::Integer, false)
            }
            Expression::Aggregate(aggregate, column_ref) => {
                (expression.clone(), exact(*aggregate, scope.column(*column_ref))?, true)
            }
            Expression::Computed(aggregate, computed) => {
                if *aggregate == Aggregate::Avg || !computed.is_exact(scope) {
                    return Err("its order follows an expression that may differ when it is computed again".to_owned());
                }
                (expression.clone(), Kind::Decimal, true)
            }
            Expression::Part(..) => (expression.clone(), Kind::Integer, true),
            _ => return Err("a nested object may be null, which has no order".to_owned()),
        };
        let order = match &expression {
            // ORDER BY on the column itself can use an index.
            Expression::Ordinal(column_ref) => Expression::Column(*column_ref),
            other => other.clone(),
        };
        Ok(Self { expression, order, direction, nullable, kind })
    }

    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    fn is_computed(&self) -> bool {
        matches!(self.expression, Expression::Aggregate(..) | Expression::Computed(..) | Expression::CountAll)
    }

    /// HAVING can't name the column of a part by which the records are grouped, but can aggregate the part.
    fn in_having(self) -> Self {
        match self.expression {
            Expression::Part(part, at) => {
                Self { expression: Expression::Computed(Aggregate::Min, Arithmetic::Part(part, at)), ..self }
            }
            _ => self,
        }
    }

    /// The column, if the expression is the ordinal or the beginning of its value.
    fn underlying_column(&self) -> Option<ColumnRef> {
        match self.expression {
            Expression::Ordinal(column_ref) | Expression::Beginning(column_ref, _) => Some(column_ref),
            _ => None,
        }
    }

    fn operand(&self, value: Param) -> Option<Operand> {
        match self.expression {
            Expression::Ordinal(_) if value != Param::Null => number(value),
            _ => stored(self.kind, value),
        }
    }

    /// The range from `value` on; `None` if `value` is NULL, or if the step is descending and may be NULL.
    fn bound(&self, value: &Operand) -> Option<Predicate> {
        let comparison = match (self.direction, self.nullable) {
            _ if value.param == Param::Null => return None,
            (Direction::Ascending, _) => Comparison::GreaterOrEqual,
            (Direction::Descending, false) => Comparison::LessOrEqual,
            // NULLs sort last, outside of the range of the other values.
            (Direction::Descending, true) => return None,
        };
        Some(self.compared(comparison, value))
    }

    fn compared(&self, comparison: Comparison, value: &Operand) -> Predicate {
        Predicate::Ordered(self.expression.clone(), comparison, value.clone())
    }

    fn is_null(&self) -> Predicate {
        Predicate::OrderedNull(self.expression.clone())
    }

    fn equals(&self, value: &Operand) -> Predicate {
        match value.param {
            Param::Null => self.is_null(),
            _ => self.compared(Comparison::Equal, value),
        }
    }

    fn behind(&self, value: &Operand) -> Option<Predicate> {
        match (self.direction, &value.param) {
            (Direction::Ascending, Param::Null) => Some(Predicate::Not(Box::new(self.is_null()))),
            (Direction::Ascending, _) => Some(self.compared(Comparison::Greater, value)),
            (Direction::Descending, Param::Null) => None,
            (Direction::Descending, _) if self.nullable => {
                Some(Predicate::Any(vec![self.compared(Comparison::Less, value), self.is_null()]))
            }
            (Direction::Descending, _) => Some(self.compared(Comparison::Less, value)),
        }
    }
}

/// Binds a cell that was read, also a BIT as bytes, as in old cursors. `None` if a text's bytes are not UTF-8.
pub(super) fn stored(kind: Kind, value: Param) -> Option<Operand> {
    let param = match (kind, value) {
        (_, Param::Null) => Param::Null,
        (Kind::Bytes, value @ Param::Bytes(_)) => value,
        (Kind::Bit, Param::Bytes(bytes)) => {
            Param::UInt(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
        }
        (_, Param::Bytes(bytes)) => Param::Text(String::from_utf8(bytes).ok()?.into()),
        (_, value) => value,
    };
    let form = match (&param, kind) {
        (Param::Text(digits), Kind::Decimal) => SqlConversion::Decimal {
            scale: digits.split_once('.').map_or(0, |(_, fraction)| u8::try_from(fraction.len()).unwrap_or(0)),
        },
        _ => SqlConversion::Plain,
    };
    Some(Operand { param, form })
}

/// Accepts aggregates that compare equal when they are computed again: sums of floating numbers depend on the order of
/// the records, and averages have more digits than are returned.
fn exact(aggregate: Aggregate, column: &Column) -> Result<Kind, String> {
    match (aggregate, column.kind) {
        (Aggregate::Sum, Kind::Integer | Kind::Decimal) => Ok(Kind::Decimal),
        (
            Aggregate::Min | Aggregate::Max,
            kind @ (Kind::Integer | Kind::Decimal | Kind::Date | Kind::DateTime | Kind::Time),
        ) => Ok(kind),
        (Aggregate::Min | Aggregate::Max, Kind::Text) if column.sorted_chars.is_none() => Ok(Kind::Text),
        _ => Err(format!(
            "its order follows {} of {}, which may differ when it is computed again",
            aggregate.prefix().to_uppercase(),
            shown(column.name.as_str())
        )),
    }
}

fn number(value: Param) -> Option<Operand> {
    let param = match value {
        Param::Int(_) | Param::UInt(_) | Param::Double(_) => value,
        Param::Bytes(digits) => Param::Double(std::str::from_utf8(&digits).ok()?.parse().ok()?),
        _ => return None,
    };
    Some(Operand { param, form: SqlConversion::Plain })
}

fn beyond(steps: &[(&Term, Operand)]) -> Predicate {
    let Some(((term, value), rest)) = steps.split_first() else {
        return Predicate::Any(Vec::new());
    };
    let mut ways: Vec<_> = term.behind(value).into_iter().collect();
    if !rest.is_empty() {
        ways.push(Predicate::All(vec![term.equals(value), beyond(rest)]));
    }
    match ways.len() {
        1 => ways.remove(0),
        _ => Predicate::Any(ways),
    }
}

fn sorted(column_ref: ColumnRef, column: &Column) -> Result<Expression, String> {
    Ok(match (column.kind, column.sorted_chars) {
        (Kind::Geometry, _) => {
            return Err(format!("{} holds geometry, which has no order", shown(column.name.as_str())));
        }
        // MariaDB sorts ENUM and SET values by number, but compares their text.
        (Kind::Enum | Kind::Set, _) => Expression::Ordinal(column_ref),
        (Kind::Text | Kind::Bytes | Kind::Json, Some(chars)) => Expression::Beginning(column_ref, chars),
        _ => Expression::Column(column_ref),
    })
}
