//! MariaDB: connections by account, statements run, rows turned into JSON, the schema read, errors
//! mapped. The only folder that knows the driver.
//!
//! [`admin`] is for the system's own needs (accounts, grants, keys), [`media`] for the rows of files; callers' statements run in
//! [`run`], [`transaction`] and [`user_sql`], under the accounts of their projects.

mod account_source;
pub mod admin;
mod ask;
mod charset_coverage;
pub mod coalesce;
mod connect;
mod connection;
mod deadline;
pub mod error;
pub mod explain;
mod geojson;
pub mod idempotency;
mod json;
pub mod media;
pub mod pool;
mod prepared_statements;
pub(crate) mod retry;
pub mod run;
#[cfg(feature = "bench")]
pub mod sample;
pub mod schema_cache;
mod schema_reader;
mod text;
pub mod transaction;
pub mod user_sql;

pub use account_source::{AccountSource, Repaired};
#[cfg(test)]
pub(crate) use connection::KILLS_PER_ACCOUNT_MAX_COUNT;
pub use error::DbError;
#[cfg(test)]
pub(crate) use pool::KILLS_MAX_COUNT;
pub use pool::{Lease, PoolSettings, Pools};
