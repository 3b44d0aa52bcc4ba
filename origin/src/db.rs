//! MariaDB: the only folder that knows the driver.
//!
//! [`admin`] is for the system's own needs (accounts, grants, keys); callers' statements run elsewhere,
//! under the accounts of their projects.

pub mod admin;
pub(crate) mod connect;
