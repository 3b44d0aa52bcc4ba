//! Turns API operations into SQL statements, without I/O: schema catalogue, roles, plans, SQL text, page cursors. Also
//! describes tables to clients ([`interface`]). Knows neither connections nor HTTP.

pub mod alteration;
pub mod catalog;
pub mod cursor;
pub mod interface;
pub mod plan;
pub mod role;
pub mod sql;
pub mod unique_names;
