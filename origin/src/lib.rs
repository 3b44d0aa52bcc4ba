//! The origin of Selkie: runs queries on MariaDB and answers over HTTP; its binary is `selkie`.
//!
//! The modules stand in the order in which a start meets them:
//!
//! ```text
//! cli::main → Config → logging → InstallationSecret → DatabaseAddress (a URL's, or embedded's) → serve
//! ```

pub mod address;
pub mod cli;
pub mod config;
pub mod secret;
