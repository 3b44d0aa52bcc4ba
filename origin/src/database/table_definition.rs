//! Reads the definition of a table or view, and the names of what else a database has, under the caller's account.

use super::connection::Connection;
use super::description_budget::DescriptionBudget;
use super::error::DbError;
use super::pool::Lease;
use super::run::SessionEffect;
use super::typed_rows;
use crate::query::catalog::definition::{
    DefinedColumn, DefinedDefault, DefinedExpression, DefinedForeignKey, DefinedIndex, DefinedIndexPart,
    DefinedReference, DefinedTrigger, RowFormat, Storage, TableDefinition,
};
use crate::query::sql;
use mysql_async::Params;
use mysql_async::prelude::Queryable as _;
use serde::Serialize;
use shared::ident::DatabaseName;
use shared::operation::TablePath;
use std::time::Duration;

const TABLE: &str = "SELECT TABLE_TYPE = 'VIEW', COALESCE(ENGINE, ''), COALESCE(ROW_FORMAT, ''), \
     CAST(COALESCE(TABLE_ROWS, 0) AS UNSIGNED), CAST(COALESCE(DATA_LENGTH + INDEX_LENGTH, 0) AS UNSIGNED), \
     COALESCE(CHARACTER_SET_NAME, ''), COALESCE(TABLE_COLLATION, ''), IF(TABLE_TYPE = 'VIEW', '', TABLE_COMMENT), VERSION() \
     FROM information_schema.TABLES \
     LEFT JOIN information_schema.COLLATION_CHARACTER_SET_APPLICABILITY ON FULL_COLLATION_NAME = TABLE_COLLATION \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? LIMIT 1";
const COLUMNS: &str = "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE = 'YES', COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT, \
     GENERATION_EXPRESSION, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
const CHECKS: &str = "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
     WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ? AND LEVEL = 'Column'";
const INDEXES: &str = "SELECT INDEX_NAME, NON_UNIQUE = 0, INDEX_TYPE, COLUMN_NAME, CAST(SUB_PART AS UNSIGNED), \
     COALESCE(COLLATION = 'D', FALSE) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX";
const FOREIGN_KEYS: &str = "SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, \
     k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE FROM information_schema.KEY_COLUMN_USAGE k \
     JOIN information_schema.REFERENTIAL_CONSTRAINTS r ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA \
     AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND r.TABLE_NAME = k.TABLE_NAME \
     WHERE k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ? AND k.REFERENCED_TABLE_NAME IS NOT NULL \
     ORDER BY k.CONSTRAINT_NAME, k.ORDINAL_POSITION";
const TRIGGERS: &str = "SELECT TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT \
     FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ? \
     ORDER BY EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER";

type TableRow = (bool, String, String, u64, u64, String, String, String, String);
type ColumnRow = (String, String, bool, Option<String>, String, String, Option<String>, Option<String>, Option<String>);
type IndexRow = (String, bool, String, String, Option<u64>, bool);
type ForeignKeyRow = (String, String, String, String, String, String, String);

/// Returns the definition of a table that exists; an empty one if it was dropped meanwhile.
pub async fn read(lease: &mut Lease, path: &TablePath, limit: Duration) -> Result<TableDefinition, DbError> {
    lease.run(SessionEffect::Nothing, limit, None, async |connection| definition(connection, path).await).await
}

async fn definition(connection: &mut Connection, path: &TablePath) -> Result<TableDefinition, DbError> {
    let place = (path.database.as_str(), path.table.as_str());
    let budget = &mut DescriptionBudget::of_table(&path.database, &path.table);
    let Some(table) = connection.ask::<TableRow>(TABLE, place).await?.pop() else {
        return Ok(TableDefinition::default());
    };
    let columns = connection.ask_within::<ColumnRow>(COLUMNS, place, budget).await?;
    let checks = connection.ask_within::<(String, String)>(CHECKS, place, budget).await?;
    let indexes = connection.ask_within::<IndexRow>(INDEXES, place, budget).await?;
    let foreign_keys = connection.ask_within::<ForeignKeyRow>(FOREIGN_KEYS, place, budget).await?;
    let triggers = connection.ask_within::<(String, String, String, String)>(TRIGGERS, place, budget).await?;
    let (text, _) = sql::table_change::show_create(path).into_parts();
    let created = typed_rows::first::<mysql_async::Row, _>(connection.conn.query_iter(text)).await?;
    let (view, engine, row_format, rows, bytes, charset, collation, comment, version) = table;
    let storage = Storage {
        innodb: engine.eq_ignore_ascii_case("InnoDB"),
        row_format: match row_format.as_str() {
            "Redundant" => RowFormat::Redundant,
            "Compressed" => RowFormat::Compressed,
            _ => RowFormat::Other,
        },
        version: major_and_minor(&version),
    };
    let (primary, indexes): (Vec<_>, Vec<_>) = indexed(indexes).into_iter().partition(|index| index.name == "PRIMARY");
    Ok(TableDefinition {
        kind: if view { "view" } else { "table" },
        create: created.and_then(|row| mysql_async::from_value_opt(row.as_ref(1)?.clone()).ok()).unwrap_or_default(),
        columns: columns.into_iter().map(|row| column(row, &checks)).collect(),
        primary_key: primary.into_iter().flat_map(|index| index.columns).map(|part| part.column).collect(),
        indexes,
        foreign_keys: referencing(foreign_keys, &path.database),
        triggers: triggers
            .into_iter()
            .map(|(name, timing, event, statement)| DefinedTrigger {
                name,
                timing: timing.to_lowercase(),
                event: event.to_lowercase(),
                statement,
            })
            .collect(),
        comment,
        charset,
        collation,
        rows,
        bytes,
        storage,
    })
}

fn major_and_minor(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn column(row: ColumnRow, checks: &[(String, String)]) -> DefinedColumn {
    let (name, type_text, nullable, default, extra, comment, generated, charset, collation) = row;
    let mut check = checks.iter().find(|(column, _)| *column == name).map(|(_, clause)| clause.as_str());
    // MariaDB's type JSON is a text with this check.
    let is_json = check.is_some_and(|clause| clause == format!("json_valid(`{}`)", name.replace('`', "``")));
    if is_json {
        check = None;
    }
    let has = |words: &str| extra.to_ascii_lowercase().contains(words);
    let expression = |text: &str, stored| DefinedExpression { expression: text.to_owned(), stored };
    DefinedColumn {
        data_type: if is_json { "json".to_owned() } else { plain_type(&type_text) },
        charset: charset.filter(|_| !is_json),
        collation: collation.filter(|_| !is_json),
        nullable,
        default: default.filter(|_| generated.is_none()).and_then(|text| DefinedDefault::parse(&text)),
        on_update: has("on update").then(|| {
            let lower = extra.to_ascii_lowercase();
            let text = lower.split("on update ").nth(1).unwrap_or_default();
            text.split([',', ' ']).next().unwrap_or_default().to_owned()
        }),
        auto_increment: has("auto_increment"),
        generated: generated.map(|text| expression(&text, Some(has("stored")))),
        check: check.map(|clause| expression(clause, None)),
        invisible: has("invisible"),
        comment,
        name,
    }
}

/// Returns the type without comments: an executable one for COMPRESSED, another one for old temporal types.
fn plain_type(text: &str) -> String {
    let (start, rest) = text.split_once(" /*").unwrap_or((text, ""));
    let is_compressed = rest.contains("COMPRESSED");
    if is_compressed { format!("{start} compressed") } else { start.to_owned() }
}

fn indexed(rows: Vec<IndexRow>) -> Vec<DefinedIndex> {
    let mut indexes: Vec<DefinedIndex> = Vec::new();
    for (name, unique, kind, column, length, descending) in rows {
        let kind = match kind.as_str() {
            "BTREE" | "HASH" if unique => "unique".to_owned(),
            "BTREE" | "HASH" => "index".to_owned(),
            other => other.to_lowercase(),
        };
        let length = length.filter(|_| kind != "fulltext" && kind != "spatial");
        let part = DefinedIndexPart { column, length, descending };
        match indexes.last_mut().filter(|index| index.name == name) {
            Some(index) => index.columns.push(part),
            None => indexes.push(DefinedIndex { name, kind, columns: vec![part] }),
        }
    }
    indexes
}

fn referencing(rows: Vec<ForeignKeyRow>, database: &DatabaseName) -> Vec<DefinedForeignKey> {
    let mut keys: Vec<DefinedForeignKey> = Vec::new();
    for (name, column, target_database, table, target_column, on_delete, on_update) in rows {
        match keys.last_mut().filter(|key| key.name == name) {
            Some(key) => {
                key.columns.push(column);
                key.references.columns.push(target_column);
            }
            None => keys.push(DefinedForeignKey {
                name,
                columns: vec![column],
                references: DefinedReference {
                    database: Some(target_database).filter(|name| !name.eq_ignore_ascii_case(database.as_str())),
                    table,
                    columns: vec![target_column],
                },
                on_delete: on_delete.to_lowercase(),
                on_update: on_update.to_lowercase(),
            }),
        }
    }
    keys
}

#[derive(Debug, Default, Serialize)]
pub struct DatabaseObjects {
    pub routines: Vec<Routine>,
    pub triggers: Vec<Trigger>,
    pub views: Vec<Named>,
    pub events: Vec<Event>,
}

#[derive(Debug, Serialize)]
pub struct Named {
    pub name: String,
}

#[derive(Debug, Serialize)]
pub struct Routine {
    pub name: String,
    pub kind: String,
}

#[derive(Debug, Serialize)]
pub struct Trigger {
    pub name: String,
    pub table: String,
}

#[derive(Debug, Serialize)]
pub struct Event {
    pub name: String,
    pub enabled: bool,
}

pub async fn objects(lease: &mut Lease, database: &DatabaseName, limit: Duration) -> Result<DatabaseObjects, DbError> {
    const ROUTINES: &str = "SELECT ROUTINE_NAME, LOWER(ROUTINE_TYPE) FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = ? ORDER BY ROUTINE_NAME, ROUTINE_TYPE";
    const TRIGGERS: &str = "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS \
         WHERE TRIGGER_SCHEMA = ? ORDER BY TRIGGER_NAME";
    const VIEWS: &str = "SELECT TABLE_NAME FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = ? AND TABLE_TYPE = 'VIEW' ORDER BY TABLE_NAME";
    const EVENTS: &str = "SELECT EVENT_NAME, STATUS = 'ENABLED' FROM information_schema.EVENTS \
         WHERE EVENT_SCHEMA = ? ORDER BY EVENT_NAME";
    let work = async |connection: &mut Connection| {
        let budget = &mut DescriptionBudget::of_foreign_keys(database);
        let place = || Params::from((database.as_str(),));
        let routines = connection.ask_within::<(String, String)>(ROUTINES, place(), budget).await?;
        let triggers = connection.ask_within::<(String, String)>(TRIGGERS, place(), budget).await?;
        let views = connection.ask_within::<(String,)>(VIEWS, place(), budget).await?;
        let events = connection.ask_within::<(String, bool)>(EVENTS, place(), budget).await?;
        Ok(DatabaseObjects {
            routines: routines.into_iter().map(|(name, kind)| Routine { name, kind }).collect(),
            triggers: triggers.into_iter().map(|(name, table)| Trigger { name, table }).collect(),
            views: views.into_iter().map(|(name,)| Named { name }).collect(),
            events: events.into_iter().map(|(name, enabled)| Event { name, enabled }).collect(),
        })
    };
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_types_are_read_as_mariadb_writes_them() {
        assert_eq!(major_and_minor("10.11.19-MariaDB-0+deb12u1"), (10, 11));
        assert_eq!(major_and_minor("11.8.9-MariaDB"), (11, 8));
        for (written, plain) in [
            ("varchar(20)", "varchar(20)"),
            ("text /*M!100301 COMPRESSED*/", "text compressed"),
            ("datetime /* mariadb-5.3 */", "datetime"),
        ] {
            assert_eq!(plain_type(written), plain);
        }
    }
}
