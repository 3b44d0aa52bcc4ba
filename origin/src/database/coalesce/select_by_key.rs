//! Reads by key that share a statement; each request gets the row of its key.

use super::{CoalescedStatement, Coalescer, RequestQueue};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::pool::Lease;
use crate::database::run::{bind, first_two_rows, value};
use crate::query::plan::KeyShape;
use crate::query::sql;
use mysql_async::{Row, Value};
use shared::limits::COALESCED_READ_MAX_RECORDS;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Reads;

impl CoalescedStatement for Reads {
    type Shape = KeyShape;
    type Item = i64;
    type Output = Option<Arc<Row>>;

    const IN_FLIGHT_MAX: usize = 2;

    fn queue(coalescer: &Coalescer) -> &RequestQueue<Self> {
        &coalescer.reads
    }

    fn share(_: &KeyShape, waiting: usize) -> usize {
        waiting.min(COALESCED_READ_MAX_RECORDS)
    }

    fn may_run_alone(error: &DbError, _: Duration) -> bool {
        !matches!(error, DbError::Timeout)
    }

    async fn run_one(connection: &mut Connection, shape: &KeyShape, key: i64) -> Result<Option<Arc<Row>>, DbError> {
        let (row, _) = first_two_rows(connection, sql::select_by_key(shape, key)).await?;
        Ok(row.map(Arc::new))
    }

    async fn run_several(
        connection: &mut Connection,
        shape: &KeyShape,
        keys: Vec<i64>,
    ) -> Result<Vec<Option<Arc<Row>>>, DbError> {
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let (text, params) = sql::select_by_keys(shape, &distinct).into_parts();
        let mut result = connection.run(&text, bind(params)).await?;
        let mut rows = Vec::with_capacity(distinct.len());
        while let Some(row) = result.next().await? {
            rows.push(row);
        }
        Ok(assign(rows, shape.key_cell(), &keys))
    }

    async fn note_position(_: &mut Lease, _: &mut [Option<Arc<Row>>]) {}
}

/// Returns the row of each key; an empty list if a row has a key that was not requested: the table has changed.
fn assign(rows: Vec<Row>, key_cell: usize, keys: &[i64]) -> Vec<Option<Arc<Row>>> {
    let mut outputs = vec![None; keys.len()];
    for row in rows {
        let key = match value(&row, key_cell) {
            Value::Int(key) => Some(*key),
            Value::UInt(key) => i64::try_from(*key).ok(),
            _ => None,
        };
        // A linear search: for so few keys it is cheaper than an index.
        let asked = |at: &usize| Some(keys[*at]) == key;
        let Some(last) = (0..keys.len()).rfind(asked) else {
            return Vec::new();
        };
        let row = Arc::new(row);
        for at in (0..=last).filter(asked) {
            outputs[at] = Some(Arc::clone(&row));
        }
    }
    outputs
}
