//! Facts about followed tables that the log does not contain: foreign keys, system versioning, generated columns and
//! collations. One connection asks for all tables of a database.

use super::source::{fault, in_time};
use super::{Ancestors, CascadingKey, CascadingKeys, LogError, LogSource, followed};
use crate::database::typed_rows;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Params, Value};
use shared::ident::{DatabaseName, TableName};
use shared::operation::TablePath;
use std::collections::{HashMap, HashSet};

/// Maximum number of databases through which foreign keys are followed.
const DATABASES_MAX_COUNT: usize = 32;

pub type CollationNames = (Box<str>, Box<str>);

#[derive(Clone, Debug, Default)]
pub struct TableFacts {
    pub ancestors: Ancestors,
    /// The column of a system-versioned table that has the end of a row's period. Past rows have a time in it, present
    /// rows the maximum.
    pub row_end: Option<Box<str>>,
    /// The names and expressions of generated columns: MariaDB 11 leaves them out of the row before a change.
    pub generated: Vec<(Box<str>, Box<str>)>,
    /// Why the log lacks changes of the table, if it does.
    pub gap: Option<&'static str>,
}

const MERGED: &str = "A change of a MERGE table, or of a MyISAM table in it, is logged under the name of one of them \
     only: use partitions instead.";
const BY_TRANSACTIONS: &str = "MariaDB does not log all changes of a table that is versioned by transactions: give its \
     columns ROW START and ROW END the type TIMESTAMP(6).";

impl LogSource {
    pub async fn table_facts(
        &self,
        database: &DatabaseName,
        tables: HashSet<TableName>,
    ) -> Result<HashMap<TableName, TableFacts>, LogError> {
        let asking = async {
            let mut conn = self.connect().await?;
            let keys = cascading_keys(&mut conn, database).await?;
            let columns = columns(&mut conn, database, tables).await?;
            if self.collations.get().is_none() {
                let collations = collations(&mut conn).await?;
                self.collations.get_or_init(|| collations);
            }
            conn.disconnect().await.map_err(|error| fault(&error))?;
            Ok::<_, LogError>((keys, columns))
        };
        let (keys, mut facts) = in_time(asking).await?;
        for (table, facts) in &mut facts {
            facts.ancestors = Ancestors::of(&TablePath { database: database.clone(), table: table.clone() }, &keys);
        }
        Ok(facts)
    }

    /// Returns the names of the character set and of the collation; `None` before the first [`Self::table_facts`].
    pub fn collation(&self, number: u16) -> Option<&CollationNames> {
        self.collations.get()?.get(&number)
    }
}

async fn cascading_keys(conn: &mut Conn, database: &DatabaseName) -> Result<CascadingKeys, LogError> {
    const KEYS: &str = "SELECT constraint_schema, table_name, unique_constraint_schema, referenced_table_name, \
         delete_rule, update_rule FROM information_schema.referential_constraints WHERE constraint_schema = ?";
    type Key = (String, String, String, String, String, String);
    let acts = |rule: &str| !matches!(rule, "RESTRICT" | "NO ACTION");
    let mut keys = CascadingKeys::default();
    // A chain of foreign keys may go through other databases.
    let mut databases = vec![database.as_str().to_owned()];
    for at in 0..DATABASES_MAX_COUNT {
        let Some(database) = databases.get(at) else {
            break;
        };
        let asked = conn.exec_iter(KEYS, (database.as_str(),));
        let found: Vec<Key> = typed_rows::all(asked).await.map_err(|error| fault(&error))?;
        for (schema, table, parent_schema, parent, on_delete, on_update) in found {
            let (on_delete, on_update) = (acts(&on_delete), acts(&on_update));
            if let (Some(child), Some(parent)) =
                (followed::path(&schema, &table), followed::path(&parent_schema, &parent))
                && (on_delete || on_update)
            {
                keys.insert(CascadingKey { child, parent, on_delete, on_update });
            }
            if !databases.contains(&parent_schema) {
                databases.push(parent_schema);
            }
        }
    }
    Ok(keys)
}

async fn columns(
    conn: &mut Conn,
    database: &DatabaseName,
    tables: HashSet<TableName>,
) -> Result<HashMap<TableName, TableFacts>, LogError> {
    const TYPES: &str = "SELECT table_name, table_type, IFNULL(engine, '') FROM information_schema.tables \
         WHERE table_schema = ? AND table_name IN ";
    const UNIONS: &str =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND engine = 'MRG_MyISAM'";
    const GENERATED: &str = "SELECT ordinal_position, table_name, column_name, generation_expression, data_type \
         FROM information_schema.columns \
         WHERE generation_expression IS NOT NULL AND table_schema = ? AND table_name IN ";
    let list = format!("({})", vec!["?"; tables.len()].join(","));
    let names = tables.iter().map(TableName::as_str);
    let params: Vec<Value> = [database.as_str()].into_iter().chain(names).map(Value::from).collect();
    let params = Params::Positional(params);
    let asked = conn.exec_iter(format!("{TYPES}{list}"), params.clone());
    let types: Vec<(String, String, String)> = typed_rows::all(asked).await.map_err(|error| fault(&error))?;
    let mut has_unions = false;
    if types.iter().any(|(_, _, engine)| engine == "MyISAM") {
        let asked = typed_rows::first(conn.exec_iter(UNIONS, (database.as_str(),)));
        let count: Option<u64> = asked.await.map_err(|error| fault(&error))?;
        has_unions = count.is_some_and(|count| count > 0);
    }
    let asked = conn.exec_iter(format!("{GENERATED}{list}"), params);
    let mut generated: Vec<(u64, String, String, String, String)> =
        typed_rows::all(asked).await.map_err(|error| fault(&error))?;
    generated.sort_unstable_by_key(|(position, ..)| *position);
    let mut facts: HashMap<_, _> = tables.into_iter().map(|table| (table, TableFacts::default())).collect();
    for (table, table_type, engine) in types {
        let Some(facts) = of(&mut facts, &table) else {
            continue;
        };
        // The column has this name if the table does not show it.
        facts.row_end = (table_type == "SYSTEM VERSIONED").then(|| "row_end".into());
        facts.gap = (engine == "MRG_MyISAM" || engine == "MyISAM" && has_unions).then_some(MERGED);
    }
    for (_, table, column, expression, data_type) in generated {
        match (of(&mut facts, &table), expression.as_str()) {
            (None, _) | (_, "ROW START") => {}
            (Some(facts), "ROW END") => {
                facts.row_end = Some(column.into());
                facts.gap = facts.gap.or((data_type == "bigint").then_some(BY_TRANSACTIONS));
            }
            (Some(facts), _) => facts.generated.push((column.into(), expression.into())),
        }
    }
    Ok(facts)
}

fn of<'a>(facts: &'a mut HashMap<TableName, TableFacts>, table: &str) -> Option<&'a mut TableFacts> {
    facts.get_mut(&TableName::parse(table).ok()?)
}

async fn collations(conn: &mut Conn) -> Result<HashMap<u16, CollationNames>, LogError> {
    const COLLATIONS: &str = "SELECT id, character_set_name, IFNULL(full_collation_name, collation_name) \
         FROM information_schema.collation_character_set_applicability";
    let named: Vec<(u16, String, String)> =
        typed_rows::all(conn.query_iter(COLLATIONS)).await.map_err(|error| fault(&error))?;
    Ok(named.into_iter().map(|(id, charset, name)| (id, (charset.into(), name.into()))).collect())
}
