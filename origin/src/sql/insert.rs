//! INSERT … RETURNING: the answer's ids come from the same statement, in the order of the rows.

use super::Statement;
use super::builder::Builder;
use crate::catalog::Table;
use crate::plan::{Insert, Operand, Param};

/// Placeholders of one statement: MariaDB counts them in 16 bits.
const PLACEHOLDERS_MAX: usize = 65_000;
/// Bytes of values of one statement: a fourth of MariaDB's default `max_allowed_packet` (16 MiB).
const STATEMENT_VALUES_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Rows of one statement: more do not make it faster.
const STATEMENT_MAX_ROWS: usize = 1_000;

pub(super) fn render(insert: Insert, table: &Table) -> Vec<Statement> {
    let width = insert.columns.len().max(1);
    let most_rows = (PLACEHOLDERS_MAX / width).clamp(1, STATEMENT_MAX_ROWS);
    let mut statements = Vec::new();
    let mut chunk = Vec::new();
    let mut bytes = 0;
    for row in insert.rows {
        let row_bytes: usize = row.iter().map(size).sum();
        if !chunk.is_empty()
            && (chunk.len() == most_rows || bytes + row_bytes > STATEMENT_VALUES_MAX_BYTES)
        {
            statements.push(statement(
                &insert.columns,
                std::mem::take(&mut chunk),
                &insert.returning,
                table,
            ));
            bytes = 0;
        }
        bytes += row_bytes;
        chunk.push(row);
    }
    statements.push(statement(&insert.columns, chunk, &insert.returning, table));
    statements
}

fn statement(
    columns: &[usize],
    rows: Vec<Vec<Option<Operand>>>,
    returning: &[usize],
    table: &Table,
) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("INSERT INTO ")
        .table(table)
        .syntax(" (")
        .columns(table, columns)
        .syntax(") VALUES ");
    sql.list(rows, |sql, row| {
        sql.syntax("(").list(row, |sql, cell| {
            match cell {
                Some(operand) => sql.operand(operand),
                None => sql.syntax("DEFAULT"),
            };
        });
        sql.syntax(")");
    });
    if !returning.is_empty() {
        sql.syntax(" RETURNING ").columns(table, returning);
    }
    sql.finish()
}

fn size(cell: &Option<Operand>) -> usize {
    const FIXED_BYTES: usize = 9;
    match cell.as_ref().map(|operand| &operand.param) {
        Some(Param::Text(text)) => text.len() + FIXED_BYTES,
        Some(Param::Bytes(bytes)) => bytes.len() + FIXED_BYTES,
        _ => FIXED_BYTES,
    }
}
