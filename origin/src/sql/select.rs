//! SELECT.

use super::Statement;
use super::builder::Builder;
use super::predicate::filter;
use crate::catalog::{Columns, Table};
use crate::plan::{Param, Select};
use shared::operation::read::Direction;

pub(super) fn render(select: Select, table: &Table) -> Statement {
    let mut sql = Builder::new();
    sql.syntax("SELECT ");
    match &select.columns {
        Columns::All => sql.all_columns(table),
        Columns::Some(places) => sql.columns(table, places),
    };
    sql.syntax(" FROM ").table(table);
    if let Some(predicate) = select.filter {
        filter(&mut sql, table, predicate);
    }
    if !select.order.is_empty() {
        sql.syntax(" ORDER BY ")
            .list(select.order, |sql, (at, direction)| {
                sql.column(table, at);
                if direction == Direction::Descending {
                    sql.syntax(" DESC");
                }
            });
    }
    paging(&mut sql, select.limit, select.offset);
    sql.finish()
}

fn paging(sql: &mut Builder, limit: Option<u64>, offset: u64) {
    // MariaDB has no OFFSET without LIMIT; its manual names this number for "all".
    let limit = limit.or((offset > 0).then_some(u64::MAX));
    if let Some(limit) = limit {
        sql.syntax(" LIMIT ").param(Param::UInt(limit));
    }
    if offset > 0 {
        sql.syntax(" OFFSET ").param(Param::UInt(offset));
    }
}
