//! From an operation to an SQL statement, without I/O: catalog of the schema, plan, SQL, page cursors. Knows neither
//! connections nor HTTP.

pub mod catalog;
pub mod cursor;
pub mod plan;
pub mod sql;
