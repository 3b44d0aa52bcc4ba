//! Conditions of statements, and what their parts mean for locks, caches and the time that they take.

use super::related::Exists;
use super::{ColumnRef, Expression, Operand, Param, Search, SqlConversion};
use crate::query::catalog::Table;
use shared::operation::filter::{Comparison, MatchMode};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    Compare(ColumnRef, Comparison, Operand),
    Same(ColumnRef, ColumnRef),
    /// An empty list is false.
    In(ColumnRef, Vec<Operand>),
    Between(ColumnRef, Operand, Operand),
    IsNull(ColumnRef),
    Like(ColumnRef, LikePattern, Operand),
    Regexp(ColumnRef, Operand),
    Match(Search),
    Ordered(Expression, Comparison, Operand),
    OrderedNull(Expression),
    /// An empty list is true.
    All(Vec<Predicate>),
    /// An empty list is false.
    Any(Vec<Predicate>),
    Not(Box<Predicate>),
    /// The slow tests of the second condition run only on records that meet the first. For other records, the part of the
    /// condition that contains these tests is NULL.
    SlowOnlyWhere(Arc<Predicate>, Box<Predicate>),
    Untrue(Box<Predicate>),
    Exists(Box<Exists>),
}

impl Predicate {
    pub(in crate::query::plan) fn values(&self) -> usize {
        let all = |parts: &[Self]| parts.iter().map(Self::values).sum();
        match self {
            Self::Same(..) | Self::IsNull(_) | Self::OrderedNull(_) => 0,
            Self::Compare(..) | Self::Like(..) | Self::Regexp(..) | Self::Match(_) | Self::Ordered(..) => 1,
            Self::Between(..) => 2,
            Self::In(_, operands) => operands.len(),
            Self::All(parts) | Self::Any(parts) => all(parts),
            Self::Not(part) | Self::Untrue(part) => part.values(),
            // The first condition is written again in each subquery.
            Self::SlowOnlyWhere(limit, part) => {
                let subqueries = part.count(&|part| matches!(part, Self::Exists(_)));
                limit.values() * (1 + subqueries) + part.values()
            }
            Self::Exists(exists) => exists.filter.as_ref().map_or(0, Self::values),
        }
    }

    /// The number of conditions in this one, itself and those of subqueries included, that meet the test.
    pub(in crate::query::plan) fn count(&self, test: &impl Fn(&Self) -> bool) -> usize {
        let inner = match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().map(|part| part.count(test)).sum(),
            Self::Not(part) | Self::Untrue(part) => part.count(test),
            Self::SlowOnlyWhere(limit, part) => limit.count(test) + part.count(test),
            Self::Exists(exists) => exists.filter.as_ref().map_or(0, |filter| filter.count(test)),
            Self::Compare(..)
            | Self::Same(..)
            | Self::In(..)
            | Self::Between(..)
            | Self::IsNull(_)
            | Self::Like(..)
            | Self::Regexp(..)
            | Self::Match(_)
            | Self::Ordered(..)
            | Self::OrderedNull(_) => 0,
        };
        inner + usize::from(test(self))
    }

    pub(in crate::query::plan) fn has(&self, test: &impl Fn(&Self) -> bool) -> bool {
        self.count(test) > 0
    }

    /// Whether the condition is a test that may take long: a pattern, or a comparison that converts the column. A pattern
    /// whose only wildcards are `%` at its end is matched in one pass, and an index can serve it. A search for a text inside
    /// of another is fast, but not a thousand of them.
    pub(in crate::query::plan) fn is_slow_test(&self) -> bool {
        let converts = |operand: &Operand| {
            matches!(operand.form, SqlConversion::Unicode(_) | SqlConversion::Json | SqlConversion::GeoJson)
        };
        match self {
            Self::Regexp(..) => true,
            Self::Like(_, pattern, operand) => {
                let Param::Text(text) = &operand.param else {
                    return false;
                };
                let begins_anywhere = match pattern {
                    LikePattern::Raw => text.trim_end_matches('%').contains(['%', '_']),
                    LikePattern::Literal => text.starts_with('%'),
                };
                begins_anywhere || converts(operand)
            }
            Self::Compare(.., operand) => converts(operand),
            Self::In(_, operands) => operands.iter().any(converts),
            Self::Between(_, low, high) => converts(low) || converts(high),
            _ => false,
        }
    }

    pub(in crate::query::plan) fn has_slow_test(&self) -> bool {
        self.has(&Self::is_slow_test)
    }

    /// Whether the condition has a slow test outside of its subqueries.
    pub fn has_slow_test_outside_subqueries(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::has_slow_test_outside_subqueries),
            Self::Not(part) | Self::Untrue(part) | Self::SlowOnlyWhere(_, part) => {
                part.has_slow_test_outside_subqueries()
            }
            Self::Exists(_) => false,
            test => test.is_slow_test(),
        }
    }

    pub(in crate::query::plan) fn is_search(&self) -> bool {
        matches!(self, Self::Match(_))
    }

    /// The tables that the condition searches, without those of its subqueries.
    pub(in crate::query::plan) fn searched(&self) -> Vec<usize> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::searched).collect(),
            Self::Not(part) | Self::Untrue(part) | Self::SlowOnlyWhere(_, part) => part.searched(),
            Self::Match(search) => search.columns.iter().map(|column_ref| column_ref.source).collect(),
            _ => Vec::new(),
        }
    }

    pub(in crate::query::plan) fn has_search(&self) -> bool {
        self.has(&|part| matches!(part, Self::Match(_) | Self::Ordered(..) | Self::OrderedNull(_) | Self::Exists(_)))
    }

    /// Returns the subqueries, without those in them.
    pub(in crate::query::plan) fn subqueries(&self) -> Vec<&Exists> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::subqueries).collect(),
            Self::Not(part) | Self::Untrue(part) => part.subqueries(),
            Self::SlowOnlyWhere(limit, part) => {
                [limit.as_ref(), &**part].into_iter().flat_map(Self::subqueries).collect()
            }
            Self::Exists(exists) => vec![exists],
            Self::Compare(..)
            | Self::Same(..)
            | Self::In(..)
            | Self::Between(..)
            | Self::IsNull(_)
            | Self::Like(..)
            | Self::Regexp(..)
            | Self::Match(_)
            | Self::Ordered(..)
            | Self::OrderedNull(_) => Vec::new(),
        }
    }

    /// Whether a subquery reads the table.
    pub(in crate::query::plan) fn reads(&self, table: &Table) -> bool {
        self.subqueries().into_iter().any(|subquery| subquery.reads(table, &|_| true))
    }

    /// Whether MariaDB parses a part of the condition, a regular expression or a boolean search, and may refuse it.
    pub(in crate::query::plan) fn has_parsed_pattern(&self) -> bool {
        self.has(&|part| matches!(part, Self::Regexp(..) | Self::Match(Search { mode: MatchMode::Boolean, .. })))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikePattern {
    Raw,
    /// Finds the text as it is: its wildcards are escaped by `|`, and only this program adds `%`.
    Literal,
}
