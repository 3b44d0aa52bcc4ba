//! MariaDB: connection pools by account, statements, rows as JSON, schemas, errors. Only this folder uses the driver.
//!
//! [`admin`] is for Selkie's own data (projects, accounts, keys), [`media`] for the rows of files; both use MariaDB's
//! admin account. The statements of API requests run under their project's accounts, for example in [`run`],
//! [`coalesce`], [`transaction`] and [`user_sql`].

mod account_source;
pub mod admin;
mod charset_coverage;
pub mod coalesce;
mod connect;
mod connection;
mod csv;
mod deadline;
mod description_budget;
pub(crate) mod errno;
pub mod error;
pub mod explain;
mod geojson;
pub mod hosts;
pub mod idempotency;
mod json;
pub mod listing;
pub mod log_position;
pub mod log_reader;
pub mod long_rows;
pub mod media;
pub mod pool;
pub mod position;
mod prepared_statements;
pub(crate) mod retry;
pub mod run;
#[cfg(feature = "bench")]
pub mod sample;
pub mod schema_cache;
pub mod schema_change;
mod schema_reader;
pub(crate) mod single_flight;
pub mod table_definition;
pub mod table_loader;
pub mod transaction;
mod typed_rows;
pub mod user_sql;
mod view_columns;

pub use account_source::{AccountSource, Repaired};
#[cfg(test)]
pub(crate) use connection::KILLS_PER_ACCOUNT_MAX_COUNT;
pub use error::DbError;
pub use hosts::Hosts;
pub(crate) use pool::KILLS_MAX_COUNT;
pub use pool::{Lease, Lessee, PoolSettings, Pools, ReadFrom};
pub use position::Position;
