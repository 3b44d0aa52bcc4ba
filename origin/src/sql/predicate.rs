//! Conditions.

use super::builder::Builder;
use crate::catalog::{Case, Kind, Table};
use crate::plan::{Form, LikePattern, Operand, Predicate};
use shared::operation::filter::{Comparison, MatchMode};

/// ` WHERE …`
pub(super) fn filter(sql: &mut Builder, table: &Table, predicate: Predicate) {
    sql.syntax(" WHERE ");
    write(sql, table, predicate);
}

fn write(sql: &mut Builder, table: &Table, predicate: Predicate) {
    match predicate {
        Predicate::Compare(at, comparison, operand) => compare(sql, table, at, comparison, operand),
        Predicate::In(_, operands) if operands.is_empty() => {
            sql.syntax("FALSE");
        }
        Predicate::In(at, operands) if table.columns()[at].kind == Kind::Geometry => {
            group(sql, " OR ", operands, |sql, operand| {
                compare(sql, table, at, Comparison::Equal, operand);
            });
        }
        Predicate::In(at, operands) => {
            subject(sql, table, at, &operands)
                .syntax(" IN (")
                .list(operands, |sql, operand| {
                    sql.operand(operand);
                });
            sql.syntax(")");
        }
        Predicate::Between(at, low, high) => {
            let bounds = [low, high];
            subject(sql, table, at, &bounds);
            let [low, high] = bounds;
            sql.syntax(" BETWEEN ")
                .operand(low)
                .syntax(" AND ")
                .operand(high);
        }
        Predicate::IsNull(at) => {
            sql.column(table, at).syntax(" IS NULL");
        }
        Predicate::Like(at, pattern, operand) => {
            text(sql, table, at, &operand)
                .syntax(" LIKE ")
                .operand(operand);
            if pattern == LikePattern::Literal {
                sql.syntax(" ESCAPE '|'");
            }
        }
        Predicate::Regexp(at, operand) => {
            text(sql, table, at, &operand)
                .syntax(" REGEXP ")
                .operand(operand);
        }
        Predicate::Match(at, mode, param) => {
            sql.syntax("MATCH (")
                .column(table, at)
                .syntax(") AGAINST (")
                .param(param);
            sql.syntax(match mode {
                MatchMode::Natural => " IN NATURAL LANGUAGE MODE)",
                MatchMode::Boolean => " IN BOOLEAN MODE)",
            });
        }
        Predicate::All(parts) if parts.is_empty() => {
            sql.syntax("TRUE");
        }
        Predicate::Any(parts) if parts.is_empty() => {
            sql.syntax("FALSE");
        }
        Predicate::All(parts) => group(sql, " AND ", parts, |sql, part| write(sql, table, part)),
        Predicate::Any(parts) => group(sql, " OR ", parts, |sql, part| write(sql, table, part)),
        Predicate::Not(inner) => {
            sql.syntax("NOT (");
            write(sql, table, *inner);
            sql.syntax(")");
        }
    }
}

fn group<T>(
    sql: &mut Builder,
    words: &'static str,
    parts: Vec<T>,
    write: impl FnMut(&mut Builder, T),
) {
    sql.syntax("(").joined(words, parts, write).syntax(")");
}

fn compare(sql: &mut Builder, table: &Table, at: usize, comparison: Comparison, operand: Operand) {
    if table.columns()[at].kind == Kind::Geometry {
        if comparison == Comparison::NotEqual {
            sql.syntax("NOT ");
        }
        sql.syntax("ST_Equals(")
            .column(table, at)
            .syntax(", ")
            .operand(operand)
            .syntax(")");
        return;
    }
    subject(sql, table, at, std::slice::from_ref(&operand))
        .syntax(operator(comparison))
        .operand(operand);
}

fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => " = ",
        Comparison::NotEqual => " <> ",
        Comparison::Greater => " > ",
        Comparison::GreaterOrEqual => " >= ",
        Comparison::Less => " < ",
        Comparison::LessOrEqual => " <= ",
        Comparison::NullSafeEqual => " <=> ",
    }
}

/// The column as it is compared with these.
fn subject<'a>(
    sql: &'a mut Builder,
    table: &Table,
    at: usize,
    operands: &[Operand],
) -> &'a mut Builder {
    if table.columns()[at].kind == Kind::Json {
        return sql.syntax("JSON_COMPACT(").column(table, at).syntax(")");
    }
    match operands
        .iter()
        .find(|operand| matches!(operand.form, Form::Unicode(_)))
    {
        Some(operand) => text(sql, table, at, operand),
        None => sql.column(table, at),
    }
}

/// The column as its text is compared with a pattern.
fn text<'a>(sql: &'a mut Builder, table: &Table, at: usize, operand: &Operand) -> &'a mut Builder {
    match operand.form {
        Form::Unicode(case) => {
            sql.syntax("CONVERT(")
                .column(table, at)
                .syntax(" USING utf8mb4)");
            match case {
                Case::Folded => sql,
                Case::Exact => sql.syntax(" COLLATE utf8mb4_bin"),
            }
        }
        _ => sql.column(table, at),
    }
}
