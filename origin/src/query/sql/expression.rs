//! What a cell holds, or an order follows.

use super::builder::Builder;
use crate::query::catalog::Kind;
use crate::query::plan::scope::Scope;
use crate::query::plan::{Expression, Search};
use shared::operation::filter::MatchMode;
use shared::operation::read::select::Aggregate;

pub(super) fn write(sql: &mut Builder, scope: &Scope<'_>, expression: Expression) {
    match expression {
        Expression::Column(place) => {
            sql.place(scope, place);
        }
        Expression::Beginning(place, chars) => {
            sql.syntax("LEFT(").place(scope, place).numbered(", ", usize::from(chars)).syntax(")");
        }
        Expression::Ordinal(place) => {
            sql.syntax("(").place(scope, place).syntax(" + 0)");
        }
        Expression::Aggregate(aggregate, place) => {
            sql.syntax(match aggregate {
                Aggregate::Count => "COUNT(",
                Aggregate::CountDistinct => "COUNT(DISTINCT ",
                Aggregate::Sum => "SUM(",
                Aggregate::Avg => "AVG(",
                Aggregate::Min => "MIN(",
                Aggregate::Max => "MAX(",
            })
            .place(scope, place)
            // The greatest of some bits comes as digits that say they were bits.
            .syntax(match scope.column(place).kind {
                Kind::Bit => " + 0)",
                _ => ")",
            });
        }
        Expression::CountAll => {
            sql.syntax("COUNT(*)");
        }
        Expression::Score(score) => search(sql, scope, score),
        Expression::Presence(places) => {
            sql.syntax("(");
            for place in places {
                sql.place(scope, place).syntax(" IS NOT NULL OR ");
            }
            sql.syntax("NULL)");
        }
    }
}

pub(super) fn search(sql: &mut Builder, scope: &Scope<'_>, search: Search) {
    sql.syntax("MATCH (")
        .list(search.places, |sql, place| {
            sql.place(scope, place);
        })
        .syntax(") AGAINST (")
        .param(search.term)
        .syntax(match search.mode {
            MatchMode::Natural => " IN NATURAL LANGUAGE MODE)",
            MatchMode::Boolean => " IN BOOLEAN MODE)",
            MatchMode::Expansion => " WITH QUERY EXPANSION)",
        });
}
