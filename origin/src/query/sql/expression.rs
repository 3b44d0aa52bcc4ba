//! Renders expressions of the select list and of ORDER BY.

use super::builder::Builder;
use crate::query::catalog::Kind;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Expression, Search};
use shared::operation::filter::MatchMode;
use shared::operation::read::select::Aggregate;

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
            sql.syntax(match aggregate {
                Aggregate::Count => "COUNT(",
                Aggregate::CountDistinct => "COUNT(DISTINCT ",
                Aggregate::Sum => "SUM(",
                Aggregate::Avg => "AVG(",
                Aggregate::Min => "MIN(",
                Aggregate::Max => "MAX(",
            })
            .column_ref(scope, column_ref)
            // MIN and MAX of a BIT have the type BIT; `+ 0` makes them numbers.
            .syntax(match scope.column(column_ref).kind {
                Kind::Bit => " + 0)",
                _ => ")",
            });
        }
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
