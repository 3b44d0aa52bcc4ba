//! Renders INSERT statements. RETURNING returns keys or records in the order of the rows; an insert without it reports
//! its key as the last insert id, or no key. Conflicts are never handled by IGNORE, which would also accept invalid
//! values and broken foreign keys.

use super::builder::Builder;
use super::returning::{self, rule};
use super::{ResultColumns, Statement};
use crate::query::catalog::Table;
use crate::query::plan::scope::Scope;
use crate::query::plan::{CELL_MAX_BYTES, Insert, InsertCheck, OnConflict, Operand, is_key};

/// Maximum for the rows. MariaDB allows 65,535; the rest is for conditions and values of the caller's role.
const PLACEHOLDERS_MAX: usize = 65_000;
/// Maximum bytes of a statement's text and values together: far below MariaDB's default `max_allowed_packet`, 16 MiB. A
/// statement with a single row may be larger.
const STATEMENT_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Maximum rows of a statement: more rows are no faster.
const STATEMENT_MAX_ROWS: usize = 1_000;

type Row = Vec<Option<Operand>>;

/// Renders INSERTs, which must run in one transaction. `packet_max_bytes` is `max_allowed_packet`.
pub fn insert(mut insert: Insert, scope: &Scope<'_>, packet_max_bytes: usize) -> Vec<Statement> {
    let most_rows = match insert.on_conflict {
        OnConflict::Skip => 1,
        _ => (PLACEHOLDERS_MAX / insert.columns.len().max(1)).clamp(1, STATEMENT_MAX_ROWS),
    };
    // Leaves room for the statement's own text.
    let most_bytes = STATEMENT_MAX_BYTES.min(packet_max_bytes / 2);
    let rows = std::mem::take(&mut insert.rows);
    let mut statements = Vec::new();
    let mut first = 0;
    let mut chunk: Vec<Row> = Vec::new();
    let mut bytes = 0;
    for row in rows {
        let cell_bytes = |cell: &Option<Operand>| cell.as_ref().map_or(CELL_MAX_BYTES, Operand::max_bytes);
        let row_bytes: usize = row.iter().map(cell_bytes).sum();
        let fits = chunk.last().is_none_or(|last| {
            chunk.len() < most_rows && bytes + row_bytes <= most_bytes && insert.may_share(last, &row)
        });
        if !fits {
            let rows = std::mem::take(&mut chunk);
            let count = rows.len();
            statements.push(insert.statement(rows, first, scope));
            (first, bytes) = (first + count, 0);
        }
        bytes += row_bytes;
        chunk.push(row);
    }
    statements.push(insert.statement(chunk, first, scope));
    statements
}

impl Insert {
    /// Whether two rows may share a statement. All rows of an upsert must give the same fields, since fields that a row
    /// lacks must not change. Rows are never reordered: a later row may conflict with an earlier one.
    fn may_share(&self, one: &Row, other: &Row) -> bool {
        let gives = |row: &Row, at: usize| row.get(at).is_some_and(Option::is_some);
        match self.on_conflict {
            OnConflict::Update { .. } => (0..self.columns.len()).all(|at| gives(one, at) == gives(other, at)),
            _ => true,
        }
    }

    fn statement(&self, mut rows: Vec<Row>, first: usize, scope: &Scope<'_>) -> Statement {
        let table = scope.root();
        let given = self.given(&mut rows);
        let columns = given.as_deref().unwrap_or(&self.columns);
        let mut sql = Builder::new();
        sql.syntax("INSERT INTO ").table(table).syntax(" (").columns(table, columns).syntax(") VALUES ");
        sql.list(rows, |sql, row| {
            sql.syntax("(").list(row, |sql, cell| {
                match cell {
                    Some(operand) => sql.operand(operand),
                    None => sql.syntax("DEFAULT"),
                };
            });
            sql.syntax(")");
        });
        match self.on_conflict {
            OnConflict::Refuse | OnConflict::Skip => {}
            OnConflict::Update { anchor } => {
                sql.syntax(" ON DUPLICATE KEY UPDATE ");
                if let Some(check) = &self.check {
                    mark(&mut sql, check, anchor, scope);
                }
                self.update(&mut sql, columns, anchor, table);
            }
            OnConflict::Ignore { anchor } => self.ignore(&mut sql, anchor, table),
        }
        let mut separator = " RETURNING ";
        if self.returns() && matches!(self.on_conflict, OnConflict::Ignore { .. }) {
            sql.syntax(separator).syntax("@selkie_conflict, @selkie_conflict := NULL");
            sql.returned.skipped = Some(0);
            sql.returned.key = 2..2;
            sql.sets_variables = true;
            separator = ", ";
        }
        if !self.returning.is_empty() {
            sql.syntax(separator).returned_key(table, &self.returning);
            separator = ", ";
        }
        if let Some(records) = &self.records {
            sql.syntax(separator);
            returning::records(&mut sql, records, scope);
            separator = ", ";
        }
        if let Some(check) = &self.check {
            sql.syntax(separator);
            self.verdict(&mut sql, check, scope);
        }
        sql.batch_offset = self.is_list.then_some(first);
        sql.skips_duplicates = self.on_conflict == OnConflict::Skip;
        sql.finish()
    }

    fn returns(&self) -> bool {
        !self.returning.is_empty() || self.records.is_some() || self.check.is_some()
    }

    /// Appends a column that is 1 if the row meets the role's rules. `database::run` ignores the value of a skipped row
    /// ([`OnConflict::Ignore`]).
    fn verdict(&self, sql: &mut Builder, check: &InsertCheck, scope: &Scope<'_>) {
        sql.returned.rule = Some(sql.returned.next());
        let references = check.references();
        sql.returned.references = references.iter().map(|reference| reference.field.clone()).collect();
        for reference in references {
            sql.syntax("IF(");
            rule(sql, Some(&reference.is_readable), scope);
            sql.syntax(", ");
        }
        self.rules(sql, check, scope);
        for number in (0..references.len()).rev() {
            sql.numbered(", ", ResultColumns::FIRST_REFERENCE + number).syntax(")");
        }
    }

    fn rules(&self, sql: &mut Builder, check: &InsertCheck, scope: &Scope<'_>) {
        let OnConflict::Update { .. } = self.on_conflict else {
            rule(sql, check.inserted(), scope);
            return;
        };
        sql.syntax("CAST(CASE @selkie_conflict WHEN 1 THEN ");
        rule(sql, check.updated(), scope);
        sql.syntax(" WHEN 2 THEN FALSE ELSE ");
        rule(sql, check.inserted(), scope);
        // Clears the mark of this row's conflict before the next row.
        sql.syntax(" END + COALESCE(@selkie_conflict := NULL, 0) AS SIGNED)");
    }

    /// Drops missing cells, and returns the columns of an upsert. All rows must give the same columns.
    fn given(&self, rows: &mut [Row]) -> Option<Vec<usize>> {
        let OnConflict::Update { .. } = self.on_conflict else {
            return None;
        };
        let first = rows.first()?;
        let columns = self.columns.iter().zip(first);
        let given = columns.filter(|(_, cell)| cell.is_some()).map(|(at, _)| *at);
        let given = given.collect();
        for row in rows {
            row.retain(Option::is_some);
        }
        Some(given)
    }

    /// Appends the changes of an upsert. Sets column `anchor` to itself if nothing changes.
    fn update(&self, sql: &mut Builder, given: &[usize], anchor: usize, table: &Table) {
        // Fields that the role sets in new records are not changed in an existing record.
        let kept = &self.columns[self.columns.len() - self.set_count..];
        let changes = |at: &usize| !is_key(*at, table) && !kept.contains(at);
        let changed: Vec<usize> = given.iter().copied().filter(changes).collect();
        if changed.is_empty() && self.set_on_conflict.is_empty() {
            sql.column(table, anchor).syntax(" = ").column(table, anchor);
            return;
        }
        sql.list(&changed, |sql, at| {
            sql.column(table, *at).syntax(" = VALUE(").column(table, *at).syntax(")");
        });
        sql.syntax(if changed.is_empty() || self.set_on_conflict.is_empty() { "" } else { ", " });
        sql.list(&self.set_on_conflict, |sql, (at, operand)| {
            sql.column(table, *at).syntax(" = ").operand(operand.clone());
        });
    }

    fn ignore(&self, sql: &mut Builder, anchor: usize, table: &Table) {
        sql.syntax(" ON DUPLICATE KEY UPDATE ").column(table, anchor).syntax(" = ");
        if self.returns() {
            sql.syntax("IF(@selkie_conflict := 1, ")
                .column(table, anchor)
                .syntax(", ")
                .column(table, anchor)
                .syntax(")");
        } else {
            sql.column(table, anchor);
        }
    }
}

/// Sets `@selkie_conflict` before the record changes: 1 if the record meets the role's rule, else 2.
fn mark(sql: &mut Builder, check: &InsertCheck, anchor: usize, scope: &Scope<'_>) {
    let table = scope.root();
    sql.sets_variables = true;
    sql.column(table, anchor).syntax(" = IF(@selkie_conflict := IF(");
    rule(sql, check.updated(), scope);
    sql.syntax(", 1, 2), ").column(table, anchor).syntax(", ").column(table, anchor).syntax("), ");
}
