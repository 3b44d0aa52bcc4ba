//! The origin of Selkie: runs queries on MariaDB and answers over HTTP. Its binary is `selkie`. A start runs through
//! `cli`, `config`, `system::installation`, `system` and `serve`; a request through `http`, `shared::admission`,
//! `query`, `database` and `shared::envelope`.

pub mod activity;
pub mod address;
pub mod backup;
pub mod changes;
pub mod cli;
pub mod clock;
pub mod config;
pub mod crash_points;
pub mod database;
pub mod demo;
pub mod dev;
pub mod doctor;
pub mod embedded;
pub mod histogram;
pub mod http;
pub mod logging;
pub mod media;
pub mod metrics;
pub mod networks;
pub mod project_quota;
pub mod query;
pub mod rates;
pub mod recent;
pub mod secret;
pub mod serve;
pub mod service_state;
pub mod signal;
pub mod system;
pub mod systemd;
pub mod tls;
pub mod traces;
pub mod transfer;
pub mod webhooks;

mod files;
mod process;
