//! Reads the descriptions of all tables of a database at once: the number of queries does not depend on the number of
//! tables.

use super::types::Types;
use super::{ColumnRow, TableRows, is_table, parse};
use crate::database::charset_coverage::CharsetCoverages;
use crate::database::connection::Connection;
use crate::database::description_budget::DescriptionBudget;
use crate::database::error::DbError;
use crate::database::pool::Lease;
use crate::database::run::SessionEffect;
use crate::query::catalog::Table;
use shared::ident::{DatabaseName, TableName};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

const TABLES: &str = concat!(
    "SELECT TABLE_NAME, TABLE_TYPE = 'VIEW', COALESCE(TRANSACTIONS = 'YES', FALSE), COALESCE(ENGINE = 'InnoDB', FALSE) \
     FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES USING (ENGINE) WHERE TABLE_SCHEMA = ? AND ",
    is_table!()
);
const VIEWS: &str = "SELECT TABLE_NAME, IS_UPDATABLE = 'NO', VIEW_DEFINITION FROM information_schema.VIEWS \
     WHERE TABLE_SCHEMA = ?";
const COLUMNS: &str = "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, \
     COLUMN_COMMENT, GENERATION_EXPRESSION IS NOT NULL, CHARACTER_SET_NAME, COLLATION_NAME \
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME, ORDINAL_POSITION";
const INDEXES: &str = "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, NON_UNIQUE = 0, INDEX_TYPE = 'FULLTEXT' \
     FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX";
const FOREIGN_KEYS: &str = "SELECT TABLE_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME \
     FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = ? AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA \
     ORDER BY BINARY CONSTRAINT_NAME";
const CHECKS: &str = "SELECT TABLE_NAME, IF(LEVEL = 'Table', CONSTRAINT_NAME, ''), CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
     WHERE CONSTRAINT_SCHEMA = ?";
const TRIGGERS: &str = "SELECT EVENT_OBJECT_TABLE, COUNT(*), COALESCE(SUM(EVENT_MANIPULATION = 'UPDATE'), 0) > 0 \
     FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ? GROUP BY EVENT_OBJECT_TABLE";

type TableColumnRow =
    (String, String, String, String, String, Option<String>, String, String, bool, Option<String>, Option<String>);

/// Returns the tables without Selkie's table of receipts, without names that the API can't serve, and without tables
/// that no request can use because their own descriptions are too large.
pub(in crate::database) async fn tables(
    lease: &mut Lease,
    coverages: &CharsetCoverages,
    database: &DatabaseName,
    limit: Duration,
) -> Result<Vec<Arc<Table>>, DbError> {
    let work = async |connection: &mut Connection| read(connection, coverages, database).await;
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

async fn read(
    connection: &mut Connection,
    coverages: &CharsetCoverages,
    database: &DatabaseName,
) -> Result<Vec<Arc<Table>>, DbError> {
    let budget = &mut DescriptionBudget::of_database(database);
    let mut rows = rows(connection, database, budget).await?;
    rows.retain(|name, _| !budget.is_exceeded_by(name));
    let charsets: BTreeSet<&str> =
        rows.values().flat_map(|rows| &rows.columns).filter_map(|row| row.8.as_deref()).collect();
    let mut limited = HashMap::new();
    for name in charsets {
        if let Some(coverage) = coverages.of(&mut connection.conn, name).await? {
            limited.insert(name.to_owned(), coverage);
        }
    }
    let database = database.clone();
    let tables = move || {
        let mut types = Types::default();
        let tables = rows.into_iter().filter_map(|(name, rows)| {
            let name = TableName::parse(&name).ok().filter(|name| !name.is_system())?;
            Some(Arc::new(rows.into_table(&database, name, &limited, &mut types)))
        });
        tables.collect()
    };
    parse(budget.used, tables).await
}

/// Reads the rows, without a table that is created in the meantime.
async fn rows(
    connection: &mut Connection,
    database: &DatabaseName,
    budget: &mut DescriptionBudget,
) -> Result<BTreeMap<String, TableRows>, DbError> {
    let place = (database.as_str(),);
    let mut tables: BTreeMap<String, TableRows> = BTreeMap::new();
    for (name, view, transactional, innodb) in
        connection.ask_within::<(String, bool, bool, bool)>(TABLES, place, budget).await?
    {
        tables.insert(name, TableRows { view, transactional, innodb, ..TableRows::default() });
    }
    for row in connection.ask_within::<TableColumnRow>(COLUMNS, place, budget).await? {
        let (table, name, data_type, type_text, nullable, default, extra, comment, generated, charset, collation) = row;
        if let Some(rows) = tables.get_mut(&table) {
            let row: ColumnRow =
                (name, data_type, type_text, nullable, default, extra, comment, generated, charset, collation);
            rows.columns.push(row);
        }
    }
    for (table, index, column, unique, full_text) in
        connection.ask_within::<(String, String, String, bool, bool)>(INDEXES, place, budget).await?
    {
        if let Some(rows) = tables.get_mut(&table) {
            rows.indexes.push((index, column, unique, full_text));
        }
    }
    for (table, column, target, field) in
        connection.ask_within::<(String, String, String, String)>(FOREIGN_KEYS, place, budget).await?
    {
        if let Some(rows) = tables.get_mut(&table) {
            rows.references.push((column, target, field));
        }
    }
    for (table, name, clause) in connection.ask_within::<(String, String, String)>(CHECKS, place, budget).await? {
        if let Some(rows) = tables.get_mut(&table) {
            rows.checks.push((name, clause));
        }
    }
    for (table, count, of_updates) in connection.ask_within::<(String, u64, bool)>(TRIGGERS, place, budget).await? {
        if let Some(rows) = tables.get_mut(&table) {
            (rows.triggers, rows.update_triggers) = (count, of_updates);
        }
    }
    for (view, read_only, definition) in
        connection.ask_within::<(String, bool, Option<String>)>(VIEWS, place, budget).await?
    {
        if let Some(rows) = tables.get_mut(&view) {
            (rows.read_only, rows.definition) = (read_only, definition);
        }
    }
    Ok(tables)
}
