//! Turns an API operation into an SQL statement, without I/O: schema catalogue, plan, SQL text, page cursors. Knows
//! neither connections nor HTTP.

pub mod catalog;
pub mod cursor;
pub mod interface;
pub mod plan;
pub mod role;
pub mod sql;
