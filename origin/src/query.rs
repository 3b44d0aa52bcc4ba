//! From an operation to a statement, without I/O: what the schema holds, what is to be done in terms of its columns, the
//! SQL of that, and the cursors of pages. Knows neither connections nor HTTP.

pub mod catalog;
pub mod cursor;
pub mod plan;
pub mod sql;
