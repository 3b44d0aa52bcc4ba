//! Resolves read operations to SELECT plans.

use super::access::{self, ReadRules};
use super::bind::{self, BindFor};
use super::filter::{IdPurpose, by_id, no_expansion, predicate, searchable};
use super::include;
use super::join::joins;
use super::keyset::Keyset;
use super::output::{self, Cells};
use super::scope::Scope;
use super::{
    ColumnRef, Expression, Operand, Output, Page, Param, Plan, Predicate, Search, Select, SelectByKey, SqlConversion,
};
use crate::query::catalog::Layout;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::json::Value;
use shared::operation::field::FieldRef;
use shared::operation::filter::MatchMode;
use shared::operation::read::{self as asked, Direction, Order, Read, ReadAnswer, ReadOne, Rows, Selection};
use std::sync::Arc;

const CODE: ErrorCode = ErrorCode::InvalidQueryOption;

pub(super) fn records(read: &Read, scope: &Scope<'_>, max_rows: Option<u64>, page: Page) -> Result<Select, Problem> {
    let mut joins = joins(&read.joins, scope)?;
    let rules = ReadRules::add_to_joins(&mut joins, scope)?;
    if !read.includes.is_empty() && output::aggregates(&read.select, &read.joins, &read.group) {
        return Err(Problem::new(
            CODE,
            "The option include does not go with aggregates, which are of no single record.",
        ));
    }
    let group = read.group.iter().map(|one| output::grouped(&one.what, 0, scope)).collect::<Result<Vec<_>, _>>()?;
    let search = read.search.as_ref().map(|search| searched(search, scope)).transpose()?;
    let cells = cells(read, &group, search.as_ref(), scope)?;
    let limited = max_rows.filter(|most| read.window.limit.is_none_or(|limit| limit > *most));
    let limit = limited.or(read.window.limit);
    let order = order(read, cells.as_ref(), search.as_ref(), scope)?;
    check(read, cells.as_ref(), &group, &order, scope)?;
    let (output, layout, keys) = finish(cells, scope);
    let filter = rules.restrict(filter(read, search, scope)?)?;
    let mut select = Select {
        joins,
        filter,
        group,
        rows: read.rows,
        order,
        limit,
        is_limited: limited.is_some(),
        is_list: true,
        is_head: page.is_head,
        offset: read.window.offset,
        includes: include::resolve(&read.includes, keys, scope)?,
        ..Select::of(output, layout)
    };
    Keyset::paginate(&mut select, (read, page.after), scope)?;
    Ok(select)
}

pub(super) fn one<'a>(read: &'a ReadOne, scope: &Scope<'_>) -> Result<Plan<'a>, Problem> {
    let rule = scope.access(0).reading()?;
    if output::aggregates(&read.select, &read.joins, &[]) {
        return Err(Problem::new(CODE, "The option selectFields takes no aggregate for a single record."));
    }
    let mut cells = match (&read.select, scope.is_single()) {
        (Selection::All, true) if read.includes.is_empty() => None,
        _ => Some(Cells::of_records(&read.select, &read.joins, scope)?),
    };
    if let Some(cells) = &mut cells {
        include::add(&read.includes, scope, cells)?;
    }
    if let Some(key) = integer_key(read, scope) {
        // With one table and no aggregates, every cell is a column.
        let columns = cells.as_ref().map(|cells| cells.columns().map(|column_ref| column_ref.column).collect());
        let (_, layout, _) = finish(cells, scope);
        let read = SelectByKey::new(scope.access(0), key, columns, rule, layout, read.format);
        return Ok(Plan::SelectByKey(read));
    }
    let (output, layout, keys) = finish(cells, scope);
    let unique = scope.is_single() && scope.root().key_is_unique();
    let mut joins = joins(&read.joins, scope)?;
    let rules = ReadRules::add_to_joins(&mut joins, scope)?;
    let select = Select {
        joins,
        filter: rules.restrict(Some(by_id(&read.id, scope.root(), IdPurpose::Read)?))?,
        limit: match (unique, scope.is_single()) {
            // A unique key finds at most one record without a LIMIT.
            (true, _) => None,
            (false, true) => Some(1),
            // A second row shows that several joined records match.
            (false, false) => Some(2),
        },
        includes: include::resolve(&read.includes, keys, scope)?,
        ..Select::of(output, layout)
    };
    Ok(Plan::SelectOne(select, read))
}

/// The key column and id of a read that may share a statement: the id is an integer from 0 to `i64::MAX` in canonical
/// form, and the read has no joins, includes or EXPLAIN. `None` for other reads.
fn integer_key(read: &ReadOne, scope: &Scope<'_>) -> Option<(usize, i64)> {
    let rows_only = scope.is_single() && read.answer == ReadAnswer::Records && read.includes.is_empty();
    let at = scope.root().number().filter(|_| rows_only)?;
    let column = scope.root().column(at);
    let id = Value::Text(read.id.whole().into());
    match bind::value(column, &id, BindFor::Key) {
        Ok(Operand { param: Param::Int(key @ 0..), form: SqlConversion::Plain }) => Some((at, key)),
        _ => None,
    }
}

fn finish(cells: Option<Cells>, scope: &Scope<'_>) -> (Output, Arc<Layout>, Vec<Vec<usize>>) {
    match cells {
        Some(cells) => cells.finish(scope),
        None => (Output::Whole, scope.root().layout(), Vec::new()),
    }
}

fn cells(
    read: &Read,
    group: &[Expression],
    search: Option<&Search>,
    scope: &Scope<'_>,
) -> Result<Option<Cells>, Problem> {
    let score = read.search.as_ref().and_then(|s| s.score_alias.as_ref());
    let grouped = output::aggregates(&read.select, &read.joins, &read.group);
    let is_whole = scope.is_single() && read.select == Selection::All && read.includes.is_empty();
    if !grouped && is_whole && score.is_none() {
        return Ok(None);
    }
    let mut cells = match grouped {
        true => Cells::of_groups(&read.select, &read.joins, group, scope)?,
        false => Cells::of_records(&read.select, &read.joins, scope)?,
    };
    include::add(&read.includes, scope, &mut cells)?;
    match (score, search) {
        (Some(_), _) if grouped => {
            Err(Problem::new(CODE, "The option fullTextSearch.scoreAlias does not go with group and aggregates."))
        }
        (Some(name), Some(search)) => {
            cells.add_score(name, search)?;
            Ok(Some(cells))
        }
        _ => Ok(Some(cells)),
    }
}

fn column_refs(fields: &[FieldRef], scope: &Scope<'_>) -> Result<Vec<ColumnRef>, Problem> {
    fields.iter().map(|field| scope.resolve(field, CODE)).collect()
}

fn searched(search: &asked::FullTextSearch, scope: &Scope<'_>) -> Result<Search, Problem> {
    let columns = column_refs(&search.fields, scope)?;
    for column in &columns {
        searchable(scope.column(*column)).map_err(|problem| Problem::new(CODE, problem.message().to_owned()))?;
    }
    if let [first, rest @ ..] = columns.as_slice()
        && rest.iter().any(|column| column.source != first.source)
    {
        return Err(Problem::new(CODE, "The option fullTextSearch.fields names fields of several tables.")
            .with_hint("One FULLTEXT index, of one table, must hold all of them."));
    }
    let reads_some = columns.first().is_some_and(|first| access::read_rule(first.source, scope).is_some());
    if search.mode == MatchMode::Expansion && reads_some {
        return Err(no_expansion());
    }
    Ok(Search { columns, mode: search.mode, term: Param::Text(search.term.as_str().into()) })
}

fn filter(read: &Read, search: Option<Search>, scope: &Scope<'_>) -> Result<Option<Predicate>, Problem> {
    let filter = read.filter.as_ref().map(|condition| predicate(condition, scope)).transpose()?;
    Ok(match (search.map(Predicate::Match), filter) {
        (Some(search), Some(filter)) => Some(Predicate::All(vec![search, filter])),
        (one, other) => one.or(other),
    })
}

/// Resolves the order. Without the option `order`, an ungrouped full-text search is ordered by descending score.
fn order(
    read: &Read,
    cells: Option<&Cells>,
    search: Option<&Search>,
    scope: &Scope<'_>,
) -> Result<Vec<(Expression, Direction)>, Problem> {
    if !read.order.is_empty() {
        return read.order.iter().map(|step| Ok((ordered(step, cells, scope)?, step.direction))).collect();
    }
    if output::aggregates(&read.select, &read.joins, &read.group) {
        return Ok(Vec::new());
    }
    let score = search.map(|search| Expression::Score(search.clone()));
    // DISTINCT rows can only be ordered by selected cells.
    let usable = |score: &Expression| read.rows == Rows::All || cells.is_some_and(|cells| cells.holds(score));
    Ok(score.filter(usable).map(|score| (score, Direction::Descending)).into_iter().collect())
}

/// Resolves a step of `order`. A name without a table means an alias or computed value of the response first, then a
/// field of the statement's tables, then any cell of the response. Cells in nested objects are ignored.
fn ordered(step: &Order, cells: Option<&Cells>, scope: &Scope<'_>) -> Result<Expression, Problem> {
    let bare = step.field.table().is_none().then(|| step.field.field().as_str());
    let find =
        |find: fn(&'_ Cells, &str) -> Option<Expression>| cells.zip(bare).and_then(|(cells, name)| find(cells, name));
    if let Some(given) = find(|cells, name| cells.given(name).cloned()) {
        return Ok(given);
    }
    match scope.resolve(&step.field, CODE) {
        Ok(column_ref) => Ok(Expression::Column(column_ref)),
        Err(problem) => find(|cells, name| cells.named(name).cloned()).ok_or(problem),
    }
}

/// Refuses a grouped read in which SQL would take a value from an arbitrary record of the group, and a DISTINCT read
/// that is ordered by an unselected expression.
fn check(
    read: &Read,
    cells: Option<&Cells>,
    group: &[Expression],
    order: &[(Expression, Direction)],
    scope: &Scope<'_>,
) -> Result<(), Problem> {
    let Some(cells) = cells.filter(|cells| cells.aggregated) else {
        return check_distinct(read, cells, order, scope);
    };
    let steps = order.iter().map(|(expression, _)| expression);
    match cells.expressions().chain(steps).find_map(|expression| unsettled(expression, group, scope)) {
        None => check_distinct(read, Some(cells), order, scope),
        Some(column_ref) => Err(Problem::new(
            CODE,
            format!(
                "The field {} has many values in a group: it is neither in group nor aggregated.",
                shown(scope.column(column_ref).name.as_str())
            ),
        )
        .with_hint("Add it to group, or give it an aggregate such as MIN.")),
    }
}

/// The column of the expression, unless GROUP BY has the expression, the column, or all columns that identify a record
/// of the column's table.
fn unsettled(expression: &Expression, group: &[Expression], scope: &Scope<'_>) -> Option<ColumnRef> {
    let (Expression::Column(at) | Expression::Part(_, at)) = expression else {
        return None;
    };
    let has = |column: usize| group.contains(&Expression::Column(ColumnRef { source: at.source, column }));
    let identity = scope.table(at.source).identity();
    let keyed = !identity.is_empty() && identity.iter().all(|column| has(*column));
    (!group.contains(expression) && !has(at.column) && !keyed).then_some(*at)
}

fn check_distinct(
    read: &Read,
    cells: Option<&Cells>,
    order: &[(Expression, Direction)],
    scope: &Scope<'_>,
) -> Result<(), Problem> {
    let hidden = |expression: &Expression| cells.is_some_and(|cells| !cells.holds(expression));
    let wrong = order.iter().find(|(expression, _)| hidden(expression));
    match (read.rows, wrong) {
        (Rows::Distinct, Some((expression, _))) => {
            let name = match expression {
                Expression::Column(column_ref) => shown(scope.column(*column_ref).name.as_str()),
                _ => "something".to_owned(),
            };
            Err(Problem::new(CODE, format!("With distinct, the order follows {name}, which does not come out."))
                .with_hint("Add it to selectFields."))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::access::Rights;
    use crate::query::plan::{self, PlanLimits};
    use crate::query::sql::{self, golden};
    use shared::operation::{Operation, parse_head};
    use shared::request::RequestHead;

    /// Returns the statement's text after the table's name, with all parameters, for the read that `of` returns; `None`
    /// if `of` returns no read. `read_max_rows` is the maximum number of rows of any read.
    fn paging(query: &str, read_max_rows: Option<u64>, of: fn(&Select) -> Option<Select>) -> Option<String> {
        let path = "/api/v1/crud/demo/posts";
        let head = RequestHead { method: "GET", path, query: Some(query), ..RequestHead::default() };
        let Operation::Records(operation) = parse_head(&head).unwrap().finish(b"").unwrap() else {
            panic!("a list is read from records");
        };
        let access = Rights::Full.of(&golden::posts()).unwrap();
        let scope = Scope::of(&access);
        let limits = PlanLimits { batch_max_rows: 1, read_max_rows };
        let Plan::Select(select, _) = plan::build(&operation, &scope, limits, Page::default()).unwrap() else {
            panic!("a list is read by a Select");
        };
        let statement = sql::select(of(&select)?, &scope);
        let (_, end) = statement.text().split_once("`posts`").unwrap();
        Some(format!("{end} {:?}", statement.params()))
    }

    #[test]
    fn a_read_with_a_limit_reads_one_row_more_in_an_order_that_pages_share() {
        let whole = |select: &Select| Some(select.clone());
        for (query, most, end) in [
            ("", None, " []"),
            ("", Some(5), " ORDER BY `id` LIMIT ? [UInt(6)]"),
            ("limit=6", Some(5), " ORDER BY `id` LIMIT ? [UInt(6)]"),
            ("limit=9&page=3", Some(5), " ORDER BY `id` LIMIT ? OFFSET ? [UInt(6), UInt(18)]"),
            ("limit=5", Some(5), " ORDER BY `id` LIMIT ? [UInt(6)]"),
            ("limit=0", Some(5), " LIMIT ? [UInt(0)]"),
            ("offset=2", None, " ORDER BY `id` LIMIT ? OFFSET ? [UInt(18446744073709551615), UInt(2)]"),
            ("distinct=true&selectFields=title", None, " []"),
            ("distinct=true&selectFields=title", Some(5), " ORDER BY `title` LIMIT ? [UInt(6)]"),
            ("distinct=true&selectFields=title&limit=5", Some(5), " ORDER BY `title` LIMIT ? [UInt(6)]"),
            ("group=title&selectFields=title", Some(5), " GROUP BY `title` ORDER BY `title` LIMIT ? [UInt(6)]"),
        ] {
            assert_eq!(paging(query, most, whole).as_deref(), Some(end), "{query} {most:?}");
        }
    }

    #[test]
    fn rows_beyond_are_looked_for_only_where_there_is_a_limit() {
        for (query, most, end) in [
            ("", Some(5), Some(" LIMIT ? OFFSET ? [UInt(1), UInt(5)]")),
            ("limit=9&offset=2", Some(5), Some(" LIMIT ? OFFSET ? [UInt(1), UInt(7)]")),
            ("limit=5", None, Some(" LIMIT ? OFFSET ? [UInt(1), UInt(5)]")),
            ("limit=0", None, None),
            ("", None, None),
        ] {
            assert_eq!(paging(query, most, Select::beyond).as_deref(), end, "{query} {most:?}");
        }
    }
}
