//! Renders expressions of the select list and of ORDER BY.

use super::builder::Builder;
use crate::query::catalog::Kind;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Arithmetic, ColumnRef, Expression, Operator, Search};
use shared::operation::filter::MatchMode;
use shared::operation::read::select::{Aggregate, DatePart};

pub(super) fn write(sql: &mut Builder, scope: &Scope<'_>, expression: Expression) {
    match expression {
        Expression::Column(column_ref) => {
            sql.column_ref(scope, column_ref);
        }
        Expression::Beginning(column_ref, chars) => {
            sql.syntax("LEFT(").column_ref(scope, column_ref).numbered(", ", usize::from(chars)).syntax(")");
        }
        Expression::Ordinal(column_ref) => {
            sql.syntax("(").column_ref(scope, column_ref).syntax(" + 0)");
        }
        Expression::Aggregate(aggregate, column_ref) => {
            sql.syntax(function(aggregate))
                .column_ref(scope, column_ref)
                // MIN and MAX of a BIT have the type BIT; `+ 0` makes them numbers.
                .syntax(match scope.column(column_ref).kind {
                    Kind::Bit => " + 0)",
                    _ => ")",
                });
        }
        Expression::Computed(aggregate, computed) => {
            sql.syntax(function(aggregate));
            arithmetic(sql, scope, computed);
            sql.syntax(")");
        }
        Expression::Part(part, column_ref) => date_part(sql, scope, part, column_ref),
        Expression::CountAll => {
            sql.syntax("COUNT(*)");
        }
        Expression::Number(number) => {
            sql.numbered("", number);
        }
        Expression::Score(score) => search(sql, scope, score),
        Expression::Presence(column_refs) => {
            sql.syntax("(");
            for column_ref in column_refs {
                sql.column_ref(scope, column_ref).syntax(" IS NOT NULL OR ");
            }
            sql.syntax("NULL)");
        }
    }
}

fn function(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Count => "COUNT(",
        Aggregate::CountDistinct => "COUNT(DISTINCT ",
        Aggregate::Sum => "SUM(",
        Aggregate::Avg => "AVG(",
        Aggregate::Min => "MIN(",
        Aggregate::Max => "MAX(",
    }
}

fn date_part(sql: &mut Builder, scope: &Scope<'_>, part: DatePart, column_ref: ColumnRef) {
    sql.syntax(match part {
        DatePart::Year => "YEAR(",
        DatePart::Month => "MONTH(",
        DatePart::Day => "DAY(",
    })
    .column_ref(scope, column_ref)
    .syntax(")");
}

fn arithmetic(sql: &mut Builder, scope: &Scope<'_>, computed: Arithmetic) {
    match computed {
        Arithmetic::Column(at) if matches!(scope.column(at).kind, Kind::Integer | Kind::Bit) => {
            sql.syntax("CAST(").column_ref(scope, at).syntax(" AS DECIMAL(20, 0))");
        }
        Arithmetic::Column(at) => {
            sql.column_ref(scope, at);
        }
        Arithmetic::Part(part, at) => date_part(sql, scope, part, at),
        Arithmetic::Number(operand) => {
            sql.operand(operand);
        }
        Arithmetic::Binary(operator, parts) => {
            let [left, right] = *parts;
            sql.syntax("(");
            arithmetic(sql, scope, left);
            sql.syntax(match operator {
                Operator::Add => " + ",
                Operator::Subtract => " - ",
                Operator::Multiply => " * ",
                Operator::Divide => " / ",
            });
            arithmetic(sql, scope, right);
            sql.syntax(")");
        }
    }
}

pub(super) fn search(sql: &mut Builder, scope: &Scope<'_>, search: Search) {
    sql.syntax("MATCH (")
        .list(search.columns, |sql, column| {
            sql.column_ref(scope, column);
        })
        .syntax(") AGAINST (")
        .param(search.term)
        .syntax(match search.mode {
            MatchMode::Natural => " IN NATURAL LANGUAGE MODE)",
            MatchMode::Boolean => " IN BOOLEAN MODE)",
            MatchMode::Expansion => " WITH QUERY EXPANSION)",
        });
}
