//! The origin of Selkie: runs queries on MariaDB and answers over HTTP; its binary is `selkie`.
//!
//! A start runs through:
//!
//! ```text
//! cli → config → installation (secret, then embedded or the URL's address) → serve
//! ```

pub mod cli;

pub mod config;

pub mod installation;

pub mod secret;

pub mod address;

pub mod embedded;

pub mod serve;

pub mod logging;

pub mod signal;

pub mod dev;

mod files;

mod process;
