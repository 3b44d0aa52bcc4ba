//! Values of prepared statements, and a cache of a connection's statements by SQL text. Unlike the driver's own cache,
//! this cache does not parse texts for named parameters, and it closes the statements that it drops.

use super::json;
use crate::query::plan::Param;
use lru::LruCache;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Params, Row, Statement, Value};
use std::num::NonZeroUsize;

/// The maximum number of statements in a connection's cache. MariaDB uses about 10 KB for each statement.
const KEPT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(127);
/// The maximum length of a cached text. Longer texts are batches and long lists, which seldom recur.
const KEPT_TEXT_MAX_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct PreparedStatements {
    kept: LruCache<Box<str>, Statement>,
    /// The last statement whose text was too long to cache: the statements of one batch often have the same text.
    passing: Option<(Box<str>, Statement)>,
    /// Statements to close before the next one runs.
    failed: Vec<Statement>,
}

impl PreparedStatements {
    pub(super) fn new() -> Self {
        Self { kept: LruCache::new(KEPT), passing: None, failed: Vec::new() }
    }

    pub(super) async fn get(&mut self, conn: &mut Conn, text: &str) -> Result<Statement, mysql_async::Error> {
        while let Some(statement) = self.failed.pop() {
            conn.close(statement).await?;
        }
        if let Some(statement) = self.kept.get(text) {
            return Ok(statement.clone());
        }
        match self.passing.take() {
            Some((same, statement)) if *same == *text => {
                self.passing = Some((same, statement.clone()));
                return Ok(statement);
            }
            Some((_, statement)) => conn.close(statement).await?,
            None => {}
        }
        let statement = conn.prep(text).await?;
        if text.len() > KEPT_TEXT_MAX_BYTES {
            self.passing = Some((text.into(), statement.clone()));
        } else if let Some((_, oldest)) = self.kept.push(text.into(), statement.clone()) {
            conn.close(oldest).await?;
        }
        Ok(statement)
    }

    /// Drops a statement whose execution failed: MariaDB crashes if it executes some statements again after an error, such
    /// as one with a subquery and a search in fields without a FULLTEXT index.
    pub(super) fn drop_failed(&mut self, failed: &Statement) {
        let text = self.kept.iter().find(|(_, kept)| kept.id() == failed.id()).map(|(text, _)| text.clone());
        let kept = text.and_then(|text| self.kept.pop(&text));
        let passing = self.passing.take_if(|(_, statement)| statement.id() == failed.id());
        self.failed.extend(kept.or(passing.map(|(_, statement)| statement)));
    }

    /// Empties the cache without closing the statements: the reset of the session closes them in MariaDB.
    pub(super) fn forget(&mut self) {
        self.kept.clear();
        self.passing = None;
        self.failed.clear();
    }
}

pub(super) fn bind(params: Vec<Param>) -> Params {
    if params.is_empty() {
        return Params::Empty;
    }
    Params::Positional(
        params
            .into_iter()
            .map(|param| match param {
                Param::Null => Value::NULL,
                Param::Int(number) => Value::Int(number),
                Param::UInt(number) => Value::UInt(number),
                Param::Float(number) => Value::Float(number),
                Param::Double(number) => Value::Double(number),
                Param::Text(text) => Value::Bytes(String::from(text).into_bytes()),
                Param::Bytes(bytes) => Value::Bytes(bytes),
            })
            .collect(),
    )
}

pub(super) fn values(row: &Row, cells: &[usize]) -> Vec<Param> {
    let value = |at: &usize| match row.as_ref(*at) {
        None | Some(Value::NULL) => Param::Null,
        Some(Value::Int(number)) => Param::Int(*number),
        Some(Value::UInt(number)) => Param::UInt(*number),
        Some(Value::Float(number)) => Param::Float(*number),
        Some(Value::Double(number)) => Param::Double(*number),
        Some(Value::Bytes(bytes)) => match row.columns_ref().get(*at).and_then(|column| json::bit(column, bytes)) {
            Some(number) => Param::UInt(number),
            None => Param::Bytes(bytes.clone()),
        },
        Some(Value::Date(year, month, day, 0, 0, 0, 0)) => Param::Text(format!("{year:04}-{month:02}-{day:02}").into()),
        Some(Value::Date(year, month, day, hour, minute, second, micros)) => {
            Param::Text(format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}").into())
        }
        Some(Value::Time(negative, days, hours, minute, second, micros)) => Param::Text(
            format!(
                "{}{:02}:{minute:02}:{second:02}.{micros:06}",
                if *negative { "-" } else { "" },
                days * 24 + u32::from(*hours)
            )
            .into(),
        ),
    };
    cells.iter().map(value).collect()
}
