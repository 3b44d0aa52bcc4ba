//! Reads descriptions of tables, foreign keys, and names of databases and views, from `information_schema`. Uses the
//! project's own account: a table or column that the account may not see counts as missing.

mod kinds;
mod types;
mod whole_database;

pub(super) use whole_database::tables;

use super::charset_coverage::CharsetCoverages;
use super::connection::Connection;
use super::description_budget::DescriptionBudget;
use super::error::DbError;
use super::pool::Lease;
use super::run::SessionEffect;
use super::view_columns;
use crate::query::catalog::relations::{ForeignKey, Relations};
use crate::query::catalog::{
    CaseSensitivity, Charset, CharsetCoverage, Column, InsertTraits, Kind, Reference, Table, Traits,
};
use kinds::kind;
use shared::ident::{DatabaseName, FieldName, TableName};
use shared::limits::DATABASE_DESCRIPTION_MAX_BYTES;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use types::Types;

/// Matches tables and views, without sequences and names such as `seq_1_to_9`, which the SEQUENCE engine creates.
macro_rules! is_table {
    () => {
        "TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW') AND COALESCE(ENGINE, '') <> 'SEQUENCE'"
    };
}
pub(super) use is_table;

const TABLE: &str = concat!(
    "SELECT TABLE_TYPE, COALESCE(TRANSACTIONS = 'YES', FALSE), COALESCE(ENGINE = 'InnoDB', FALSE) \
     FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES USING (ENGINE) \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND ",
    is_table!()
);
const VIEW: &str = "SELECT IS_UPDATABLE = 'NO', VIEW_DEFINITION FROM information_schema.VIEWS \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";
const COLUMNS: &str = "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT, \
     GENERATION_EXPRESSION IS NOT NULL, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
const INDEXES: &str = "SELECT INDEX_NAME, COLUMN_NAME, NON_UNIQUE = 0, INDEX_TYPE = 'FULLTEXT' \
     FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? \
     ORDER BY INDEX_NAME, SEQ_IN_INDEX";
const FOREIGN_KEYS: &str = "SELECT COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME \
     FROM information_schema.KEY_COLUMN_USAGE \
     WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA ORDER BY BINARY CONSTRAINT_NAME";
const RELATIONS: &str = "SELECT CONSTRAINT_NAME, TABLE_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME \
     FROM information_schema.KEY_COLUMN_USAGE \
     WHERE TABLE_SCHEMA = ? AND (CONSTRAINT_NAME = 'PRIMARY' OR REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA) \
     ORDER BY BINARY TABLE_NAME, BINARY CONSTRAINT_NAME, ORDINAL_POSITION";
const CHECKS: &str = "SELECT IF(LEVEL = 'Table', CONSTRAINT_NAME, ''), CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
     WHERE CONSTRAINT_SCHEMA = ? AND TABLE_NAME = ?";
const TRIGGERS: &str = "SELECT COUNT(*), COALESCE(SUM(EVENT_MANIPULATION = 'UPDATE'), 0) > 0 FROM information_schema.TRIGGERS \
     WHERE EVENT_OBJECT_SCHEMA = ? AND EVENT_OBJECT_TABLE = ?";
const TABLES: &str =
    concat!("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND ", is_table!(), " LIMIT 2000");
const DATABASES: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA LIMIT 2000";

const VIEWS: &str = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'VIEW'";

/// The size above which a description is parsed on a thread for blocking work.
const PARSED_AT_ONCE_MAX_BYTES: usize = 256 * 1024;

type ColumnRow = (String, String, String, String, Option<String>, String, String, bool, Option<String>, Option<String>);

type RelationRow = (String, String, String, Option<String>, Option<String>);
/// The names of index and column, and whether the index is unique or a full-text index.
type IndexRow = (String, String, bool, bool);

#[derive(Debug)]
pub(super) enum FoundTable {
    Table(Arc<Table>),
    /// The names of at most 2,000 tables of the database.
    OtherTables(Vec<String>),
    /// The names of at most 2,000 databases that the account sees.
    OtherDatabases(Vec<String>),
}

pub(super) async fn load(
    lease: &mut Lease,
    coverages: &CharsetCoverages,
    database: &DatabaseName,
    table: &TableName,
    limit: Duration,
) -> Result<FoundTable, DbError> {
    let work = async |connection: &mut Connection| read(connection, coverages, database, table).await;
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

pub(super) async fn databases(lease: &mut Lease, limit: Duration) -> Result<Vec<String>, DbError> {
    let names = names(lease, DATABASES, limit).await?;
    Ok(names.into_iter().filter(|name| !is_system(name)).collect())
}

pub(super) async fn views(lease: &mut Lease, limit: Duration) -> Result<Vec<String>, DbError> {
    names(lease, VIEWS, limit).await
}

pub(super) async fn relations(
    lease: &mut Lease,
    database: &DatabaseName,
    limit: Duration,
) -> Result<(Relations, usize), DbError> {
    let work = async |connection: &mut Connection| {
        let budget = &mut DescriptionBudget::of_foreign_keys(database);
        let rows = connection.ask_within::<RelationRow>(RELATIONS, (database.as_str(),), budget).await?;
        let related = parse(budget.used, move || related(rows)).await?;
        related.ok_or_else(|| budget.exceeded())
    };
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

fn related(rows: Vec<RelationRow>) -> Option<(Relations, usize)> {
    let (mut keys, mut primary): (Vec<ForeignKey>, HashMap<TableName, Vec<FieldName>>) = Default::default();
    for (name, table, column, target, target_column) in rows {
        let (Ok(table), Ok(column)) = (TableName::parse(&table), FieldName::parse(&column)) else {
            continue;
        };
        let Some((target, target_column)) = target.zip(target_column) else {
            primary.entry(table).or_default().push(column);
            continue;
        };
        let (Ok(target), Ok(target_column)) = (TableName::parse(&target), FieldName::parse(&target_column)) else {
            continue;
        };
        match keys.last_mut().filter(|key| key.name == name && key.table == table) {
            Some(key) => {
                key.columns.push(column);
                key.target_columns.push(target_column);
            }
            None => {
                let (columns, target_columns) = (vec![column], vec![target_column]);
                keys.push(ForeignKey { name, table, columns, target, target_columns });
            }
        }
    }
    Relations::new(&keys, &primary, DATABASE_DESCRIPTION_MAX_BYTES)
}

async fn names(lease: &mut Lease, query: &'static str, limit: Duration) -> Result<Vec<String>, DbError> {
    let work = async |connection: &mut Connection| connection.ask(query, ()).await;
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

fn is_system(name: &str) -> bool {
    DatabaseName::parse(name).is_ok_and(|name| name.is_system())
}

async fn read(
    connection: &mut Connection,
    coverages: &CharsetCoverages,
    database: &DatabaseName,
    table: &TableName,
) -> Result<FoundTable, DbError> {
    let place = (database.as_str(), table.as_str());
    if table.is_system() {
        return missing(connection, database).await;
    }
    let found = connection.ask::<(String, bool, bool)>(TABLE, place).await?.pop();
    let Some((table_type, transactional, innodb)) = found else {
        return missing(connection, database).await;
    };
    let budget = &mut DescriptionBudget::of_table(database, table);
    let mut rows = TableRows {
        view: table_type == "VIEW",
        transactional,
        innodb,
        columns: connection.ask_within(COLUMNS, place, budget).await?,
        indexes: connection.ask_within(INDEXES, place, budget).await?,
        references: connection.ask_within(FOREIGN_KEYS, place, budget).await?,
        checks: connection.ask_within(CHECKS, place, budget).await?,
        ..TableRows::default()
    };
    (rows.triggers, rows.update_triggers) = (connection.ask(TRIGGERS, place).await?.pop()).unwrap_or_default();
    if rows.view {
        let view = connection.ask_within(VIEW, place, budget).await?.pop();
        (rows.read_only, rows.definition) = view.unwrap_or_default();
    }
    let mut limited = HashMap::new();
    for name in rows.columns.iter().filter_map(|row| row.8.as_deref()) {
        if let Some(coverage) = coverages.of(&mut connection.conn, name).await? {
            limited.insert(name.to_owned(), coverage);
        }
    }
    let (database, table) = (database.clone(), table.clone());
    let parse_table = move || rows.into_table(&database, table, &limited, &mut Types::default());
    let parsed = parse(budget.used, parse_table).await?;
    Ok(FoundTable::Table(Arc::new(parsed)))
}

async fn parse<T: Send + 'static>(bytes: usize, parse: impl FnOnce() -> T + Send + 'static) -> Result<T, DbError> {
    if bytes < PARSED_AT_ONCE_MAX_BYTES {
        return Ok(parse());
    }
    let parsed = tokio::task::spawn_blocking(parse).await;
    parsed.map_err(|error| DbError::Unavailable(error.to_string().into()))
}

#[derive(Default)]
struct TableRows {
    view: bool,
    transactional: bool,
    innodb: bool,
    columns: Vec<ColumnRow>,
    indexes: Vec<IndexRow>,
    /// Column, referenced table and referenced column, for each column of a foreign key.
    references: Vec<(String, String, String)>,
    /// Name and condition of each CHECK. A column's own CHECK has no name here.
    checks: Vec<(String, String)>,
    triggers: u64,
    update_triggers: bool,
    read_only: bool,
    definition: Option<String>,
}

impl TableRows {
    fn into_table(
        self,
        database: &DatabaseName,
        name: TableName,
        limited: &HashMap<String, Arc<CharsetCoverage>>,
        types: &mut Types,
    ) -> Table {
        let facts = Facts::gather(&self.indexes, self.references, &self.checks);
        let computed = self.definition.as_deref().and_then(view_columns::computed);
        let computed = computed.filter(|computed| computed.len() == self.columns.len()).unwrap_or_default();
        let columns = self.columns.into_iter().enumerate().filter_map(|(at, row)| {
            let column = column(row, &facts, limited, types)?;
            Some(Column { generated: column.generated || computed.get(at) == Some(&true), ..column })
        });
        let mut columns: Vec<Column> = columns.collect();
        columns.sort_by_key(|column| column.invisible);
        let position = |name: &String| columns.iter().position(|column| column.name.as_str() == name);
        let primary = facts.primary.iter().filter_map(position).collect();
        // A key of a column that the API can't name is no key here.
        let unique = facts.keys.iter().filter_map(|names| names.iter().map(position).collect()).collect();
        let traits = Traits {
            view: self.view,
            read_only: self.read_only,
            // A view may call functions, reach triggers of other databases, also through other views, and take a lock.
            stored_code: self.triggers > 0 || self.view,
            inserts: InsertTraits {
                unique_key: self.indexes.iter().any(|(_, _, unique, _)| *unique),
                update_triggers: self.update_triggers,
                transactional: self.transactional,
                innodb: self.innodb,
            },
        };
        Table::new(database.clone(), name, columns, primary, unique, traits)
    }
}

async fn missing(connection: &mut Connection, database: &DatabaseName) -> Result<FoundTable, DbError> {
    let databases: Vec<String> = connection.ask(DATABASES, ()).await?;
    if databases.iter().any(|name| name == database.as_str()) {
        let tables: Vec<String> = connection.ask(TABLES, (database.as_str(),)).await?;
        let ours = |name: &String| TableName::parse(name).is_ok_and(|name| name.is_system());
        return Ok(FoundTable::OtherTables(tables.into_iter().filter(|name| !ours(name)).collect()));
    }
    Ok(FoundTable::OtherDatabases(databases.into_iter().filter(|name| !is_system(name)).collect()))
}

struct Facts {
    primary: Vec<String>,
    keys: Vec<Vec<String>>,
    /// For each column, the names of the unique keys over this column alone.
    unique: HashMap<String, Vec<String>>,
    /// For each column, the names of the table's CHECK constraints over this column alone.
    checks: HashMap<String, Vec<String>>,
    /// For each column, the names of its full-text indexes.
    full_text: HashMap<String, Vec<String>>,
    indexed: HashSet<String>,
    json: HashSet<String>,
    references: HashMap<String, Reference>,
}

impl Facts {
    fn gather(indexes: &[IndexRow], references: Vec<(String, String, String)>, checks: &[(String, String)]) -> Self {
        // Sorted by name, so that every origin pages by the same key.
        let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let (mut unique, mut full_text): (HashMap<String, Vec<String>>, HashMap<String, Vec<String>>) =
            Default::default();
        let mut indexed = HashSet::new();
        for (index, column, is_unique, is_full_text) in indexes {
            if *is_full_text {
                full_text.entry(column.clone()).or_default().push(index.clone());
                continue;
            }
            indexed.insert(column.clone());
            if *is_unique {
                members.entry(index).or_default().push(column);
            }
        }
        for (index, columns) in &members {
            if let [column] = columns[..] {
                unique.entry(column.to_owned()).or_default().push((*index).to_owned());
            }
        }
        let mut checked: HashMap<String, Vec<String>> = HashMap::new();
        for (name, clause) in checks.iter().filter(|(name, _)| !name.is_empty()) {
            if let Some(column) = only_column(clause) {
                checked.entry(column).or_default().push(name.clone());
            }
        }
        Self {
            unique,
            checks: checked,
            full_text,
            indexed,
            primary: members.get("PRIMARY").into_iter().flatten().map(|name| (*name).to_owned()).collect(),
            keys: members
                .iter()
                .filter(|(index, _)| **index != "PRIMARY")
                .map(|(_, columns)| columns.iter().map(|name| (*name).to_owned()).collect())
                .collect(),
            // A JSON column is a LONGTEXT with exactly this check.
            json: checks.iter().filter_map(|(_, clause)| json_checked(clause)).collect(),
            references: references
                .into_iter()
                .map(|(column, table, field)| (column, Reference { table, field }))
                .collect(),
        }
    }
}

fn json_checked(clause: &str) -> Option<String> {
    let name = clause.strip_prefix("json_valid(`")?.strip_suffix("`)")?;
    let plain = name.replace("``", "");
    (!plain.contains('`')).then(|| name.replace("``", "`"))
}

/// Returns the only column that a CHECK's condition names; `None` if there are several. Columns are in backticks.
fn only_column(clause: &str) -> Option<String> {
    let (mut found, mut rest) = (None, clause);
    while let Some(at) = rest.find(['`', '\'']) {
        let (name, behind) = quoted_part(&rest[at..])?;
        match rest.as_bytes()[at] {
            b'`' if found.as_ref().is_some_and(|found| *found != name) => return None,
            b'`' => found = Some(name),
            _ => {}
        }
        rest = behind;
    }
    found
}

/// Splits a text after the quoted part that it begins with. A quote within is doubled, or in a string also escaped.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut chars = text.char_indices();
    let (_, quote) = chars.next()?;
    let mut part = String::new();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' if quote == '\'' => part.extend(chars.next().map(|(_, char)| char)),
            _ if char != quote => part.push(char),
            _ if text[at + 1..].starts_with(quote) => part.extend(chars.next().map(|(_, char)| char)),
            _ => return Some((part, &text[at + 1..])),
        }
    }
    None
}

fn column(
    row: ColumnRow,
    facts: &Facts,
    limited: &HashMap<String, Arc<CharsetCoverage>>,
    types: &mut Types,
) -> Option<Column> {
    let (name, data_type, type_text, nullable, default, extra, comment, generated, ..) = row;
    let (charset, collation) = (row.8.unwrap_or_default(), row.9.unwrap_or_default());
    let field = FieldName::parse(&name).ok()?;
    let nullable = nullable == "YES";
    let sorted_chars = sorted_chars(&data_type, &type_text, &collation);
    let (type_text, values) = types.share(&data_type, type_text);
    Some(Column {
        kind: if facts.json.contains(&name) { Kind::Json } else { kind(&data_type) },
        values,
        name: field,
        sorted_chars,
        charset: match limited.get(&charset) {
            Some(coverage) => Charset::Limited(Arc::clone(coverage)),
            None => Charset::Unicode,
        },
        case_sensitivity: case_sensitivity(&collation),
        type_text,
        nullable,
        default: default.filter(|text| text != "NULL").map(|text| unquoted(&text)),
        auto_increment: extra.contains("auto_increment"),
        on_update: extra.to_ascii_lowercase().contains("on update"),
        invisible: extra.contains("INVISIBLE"),
        generated,
        primary: facts.primary.contains(&name),
        unique: facts.unique.get(&name).cloned().unwrap_or_default(),
        checks: facts.checks.get(&name).cloned().unwrap_or_default(),
        full_text: facts.full_text.get(&name).cloned().unwrap_or_default(),
        indexed: facts.indexed.contains(&name),
        references: facts.references.get(&name).cloned(),
        comment,
    })
}

/// Returns the number of leading characters (or bytes) to sort by; `None` if whole values can be compared. MariaDB
/// compares only the first `max_sort_length` bytes of a value's sort key, which each session sets to 1,024 or more.
fn sorted_chars(data_type: &str, type_text: &str, collation: &str) -> Option<u16> {
    const SORTED_BYTES: u16 = 1_024;
    const BEGINNING_CHARS: u16 = 256;
    let bytes_a_char = match collation {
        "" => 1,
        // Two bytes per weight, at each of three levels: letters, accents, case.
        name if name.ends_with("_as_cs") => 6,
        name if ["_ai_ci", "_general_ci", "_unicode_ci", "_unicode_520_ci"].iter().any(|end| name.ends_with(end)) => 2,
        _ => 4,
    };
    let length = || -> Option<u16> { type_text.split(['(', ')']).nth(1)?.parse().ok() };
    let may_be_cut = match data_type {
        "char" | "varchar" | "tinytext" => u32::from(length().unwrap_or(255)) * bytes_a_char > u32::from(SORTED_BYTES),
        // The sort key ends with the length, in four bytes.
        "binary" | "varbinary" => length().is_none_or(|bytes| bytes > SORTED_BYTES - 4),
        "text" | "mediumtext" | "longtext" | "blob" | "mediumblob" | "longblob" | "vector" => true,
        _ => false,
    };
    let most = u32::from(SORTED_BYTES) / bytes_a_char;
    may_be_cut.then(|| BEGINNING_CHARS.min(u16::try_from(most).unwrap_or(BEGINNING_CHARS)))
}

fn case_sensitivity(collation: &str) -> CaseSensitivity {
    if collation.ends_with("_bin") || collation.ends_with("_cs") {
        CaseSensitivity::Sensitive
    } else {
        CaseSensitivity::Insensitive
    }
}

fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(inner) => inner.replace("''", "'").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_over_one_column_names_it() {
        for (clause, column) in [
            ("`n` > 0", Some("n")),
            (r"`a``b` <> '`c` ''it''s''' and `a``b` <> '\'`d`'", Some("a`b")),
            ("`n` > 0 or `m` > 0", None),
            ("1 = 1", None),
        ] {
            assert_eq!(only_column(clause).as_deref(), column, "{clause}");
        }
    }

    #[test]
    fn a_json_column_is_known_by_its_check() {
        assert_eq!(json_checked("json_valid(`a``b`)").as_deref(), Some("a`b"));
        assert_eq!(json_checked("json_valid(`a`) and `b` > 0"), None);
        assert_eq!(json_checked("`a` > json_valid(`b`)"), None);
    }
}
