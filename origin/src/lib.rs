//! The origin of Selkie: runs queries on MariaDB and answers over HTTP; its binary is `selkie`.
//!
//! A start runs through:
//!
//! ```text
//! cli → config → installation (secret, then embedded or the URL's address) → serve
//! ```

pub mod address;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod db;
pub mod demo;
pub mod embedded;
pub mod installation;
pub mod logging;
pub mod plan;
pub mod secret;
pub mod serve;
pub mod signal;
pub mod sql;

mod process;
