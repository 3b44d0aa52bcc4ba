//! Resolves joins.

use super::bind::{self, BindFor};
use super::filter::member;
use super::scope::Scope;
use super::{ColumnRef, Join, Predicate};
use shared::error::{ErrorCode, Problem};
use shared::json::{self, Value};
use shared::limits::LIST_MAX_VALUES;
use shared::operation::filter::{Comparison, Joiner};
use shared::operation::read::join::{self as asked, JoinKind, JoinTarget, Match};

pub(super) fn joins(joins: &[asked::Join], scope: &Scope<'_>) -> Result<Vec<Join>, Problem> {
    joins
        .iter()
        .enumerate()
        .map(|(at, join)| {
            let source = at + 1;
            let mut on = join
                .matches
                .iter()
                .map(|one| condition(one, source, &scope.up_to(source)))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Join {
                kind: join.kind,
                on: match (on.len(), join.joiner) {
                    (1, _) => on.remove(0),
                    (_, Joiner::And) => Predicate::All(on),
                    (_, Joiner::Or) => Predicate::Any(on),
                },
            })
        })
        .collect()
}

fn condition(one: &Match, joined: usize, scope: &Scope<'_>) -> Result<Predicate, Problem> {
    const CODE: ErrorCode = ErrorCode::InvalidQueryOption;
    let source = scope.resolve(&one.source, CODE).map_err(|problem| unmatched(problem, scope))?;
    match &one.target {
        JoinTarget::Field(field) => {
            let target = scope.resolve_from(joined, field, CODE).map_err(|problem| unmatched(problem, scope))?;
            Ok(Predicate::Same(source, target))
        }
        JoinTarget::Literal(value) => literal(source, value, scope).map_err(|problem| {
            // The error of `literal` does not name the option at fault.
            Problem::new(CODE, format!("The option join.match.targetLiteral is wrong: {}", problem.message()))
        }),
    }
}

fn unmatched(problem: Problem, scope: &Scope<'_>) -> Problem {
    if problem.code() != ErrorCode::InvalidQueryOption {
        return problem;
    }
    let names: Vec<_> = (0..scope.size()).map(|at| scope.name(at).as_str()).collect();
    Problem::new(problem.code(), format!("The option join.match is wrong: {}", problem.message()))
        .with_hint(format!("It may name the fields of the tables so far: {}.", names.join(", ")))
}

/// The condition that a column equals a value: any item of a list, or IS NULL for null.
fn literal(column_ref: ColumnRef, value: &Value, scope: &Scope<'_>) -> Result<Predicate, Problem> {
    let column = scope.column(column_ref);
    match value {
        Value::Null => Ok(Predicate::IsNull(column_ref)),
        Value::List(text) => {
            let values = json::items(text, LIST_MAX_VALUES)
                .ok()
                .filter(|values| values.len() <= LIST_MAX_VALUES)
                .ok_or_else(|| {
                    Problem::new(
                        ErrorCode::InvalidQueryOption,
                        format!("The list of a targetLiteral holds more than {LIST_MAX_VALUES} values."),
                    )
                })?;
            member(column_ref, &values, column)
        }
        value => {
            bind::comparable(column, Comparison::Equal)?;
            let operand = bind::value(column, value, BindFor::Filter)?;
            Ok(Predicate::Compare(column_ref, Comparison::Equal, operand))
        }
    }
}

pub(super) fn may_be_absent(source: usize, joins: &[Join]) -> bool {
    let own = source.checked_sub(1).and_then(|at| joins.get(at));
    own.is_some_and(|join| join.kind == JoinKind::Left)
        || joins.iter().skip(source).any(|join| join.kind == JoinKind::Right)
}
