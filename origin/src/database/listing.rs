//! Lists databases and their tables, under an account of the requesting project: MariaDB leaves out what the account
//! may not see. Has no cache. Does not know roles: the calling code decides which tables are listed.

use super::connection::Connection;
use super::error::DbError;
use super::pool::Lease;
use super::run::{CHUNK_BYTES, CHUNK_ROOM_BYTES, Chunks, SessionEffect, StatementStats, within_since};
use super::schema_reader::is_table;
use crate::query::catalog::Traits;
use bytes::Bytes;
use mysql_async::Params;
use mysql_async::prelude::FromRow;
use shared::envelope::{ColumnLabels, Encoder, Shape, write_string};
use shared::ident::{DatabaseName, TableName};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

const DATABASES: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA";
const DATABASE: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?";
const ALL_TABLES: &str = concat!("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE ", is_table!());
/// Selects the tables. For a view, `TABLE_COMMENT` is the word VIEW, and is left out.
const TABLES: &str = concat!(
    "SELECT TABLE_NAME, TABLE_TYPE = 'VIEW', IF(TABLE_TYPE = 'VIEW', '', TABLE_COMMENT) FROM information_schema.TABLES \
     WHERE TABLE_SCHEMA = ? AND ",
    is_table!(),
    " ORDER BY TABLE_NAME COLLATE utf8mb3_bin"
);
/// Selects views that can't be written. `IS_UPDATABLE` is empty if something that the view reads is gone.
const LIMITED_VIEWS: &str = "SELECT TABLE_NAME, IS_UPDATABLE = '' FROM information_schema.VIEWS \
     WHERE TABLE_SCHEMA = ? AND IS_UPDATABLE <> 'YES'";

pub async fn databases(mut lease: Lease, limit: Duration) -> Result<BTreeSet<DatabaseName>, DbError> {
    let names: Vec<String> = ask(&mut lease, DATABASES, (), limit).await?;
    Ok(names.iter().filter_map(|name| served(name)).collect())
}

pub async fn databases_with(
    mut lease: Lease,
    is_visible: impl Fn(&DatabaseName, &TableName) -> bool,
    limit: Duration,
) -> Result<BTreeSet<DatabaseName>, DbError> {
    let work = async |connection: &mut Connection| {
        let mut found = BTreeSet::new();
        let mut rows = connection.run(ALL_TABLES, Params::Empty).await?;
        while let Some(row) = rows.next().await? {
            let (database, table) = <(String, String)>::from_row_opt(row).map_err(|_| DbError::Misread)?;
            let names = served(&database).zip(listed(&table));
            if let Some((database, table)) = names
                && !found.contains(&database)
                && is_visible(&database, &table)
            {
                found.insert(database);
            }
        }
        Ok(found)
    };
    lease.run(SessionEffect::Nothing, limit, None, work).await
}

pub async fn has_database(lease: &mut Lease, name: &DatabaseName, limit: Duration) -> Result<bool, DbError> {
    let names: Vec<String> = ask(lease, DATABASE, (name.as_str(),), limit).await?;
    Ok(!names.is_empty())
}

/// Lists the tables of a database. `methods` returns the HTTP methods that the caller may use on a table; `None` leaves
/// the table out. `limit` is the time limit for each chunk.
pub fn tables(
    mut lease: Lease,
    database: DatabaseName,
    methods: impl Fn(&TableName, Traits) -> Option<Vec<&'static str>> + Send + 'static,
    limit: Duration,
    progress: Arc<StatementStats>,
) -> Chunks {
    Box::pin(async_stream::try_stream! {
        let mut started = Instant::now();
        let bound = lease.limit(limit);
        let limited = ask::<(String, bool)>(&mut lease, LIMITED_VIEWS, (database.as_str(),), limit).await?;
        let limited: HashMap<String, bool> = limited.into_iter().collect();
        lease.begin();
        let connection = lease.connection()?;
        let began = within_since(started, bound.clone(), connection.run(TABLES, (database.as_str(),).into())).await;
        let mut rows = match began {
            Ok(rows) => rows,
            Err(error) => Err(lease.failed(error))?,
        };
        let keys = ColumnLabels::new(["name", "kind", "comment", "methods"]);
        let mut encoder = Encoder::begin(Shape::Rows, CHUNK_ROOM_BYTES);
        loop {
            let row = match within_since(started, bound.clone(), rows.next()).await {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    drop(rows);
                    Err(lease.failed(error))?;
                    return;
                }
            };
            let (name, view, comment) = <(String, bool, String)>::from_row_opt(row).map_err(|_| DbError::Misread)?;
            let is_broken = limited.get(&name);
            let traits = Traits { view, read_only: is_broken.is_some(), ..Traits::default() };
            if let Some(methods) = listed(&name).and_then(|name| methods(&name, traits)) {
                let methods = if is_broken == Some(&true) { Vec::new() } else { methods };
                // A comment is part of the schema, which is only shown to callers who may read the table.
                let comment = if methods.contains(&"GET") { comment.as_str() } else { "" };
                encoder.row(&keys, |_| false, |at, out| match at {
                    0 => write_string(out, &name),
                    1 => write_string(out, if view { "view" } else { "table" }),
                    2 => write_string(out, comment),
                    _ => write_list(out, &methods),
                });
            }
            if encoder.len() >= CHUNK_BYTES {
                progress.add_time(started);
                progress.add_rows(encoder.rows() - progress.rows());
                yield Bytes::from(encoder.take());
                started = Instant::now();
            }
        }
        progress.add_time(started);
        progress.add_rows(encoder.rows() - progress.rows());
        lease.end();
        drop(lease);
        yield Bytes::from(encoder.finish());
    })
}

fn write_list(out: &mut Vec<u8>, words: &[&str]) {
    out.push(b'[');
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, word);
    }
    out.push(b']');
}

fn served(name: &str) -> Option<DatabaseName> {
    DatabaseName::parse(name).ok().filter(|name| !name.is_system())
}

fn listed(name: &str) -> Option<TableName> {
    TableName::parse(name).ok().filter(|name| !name.is_system())
}

async fn ask<T: FromRow + Send + 'static>(
    lease: &mut Lease,
    query: &'static str,
    params: impl Into<Params> + Send,
    limit: Duration,
) -> Result<Vec<T>, DbError> {
    let work = async |connection: &mut Connection| connection.ask(query, params).await;
    lease.run(SessionEffect::Nothing, limit, None, work).await
}
