//! The code that edge and origin share. A request passes through it in this order:
//!
//! ```text
//! request::check_url, check_headers → ok | Problem
//! request::RequestHead::read → RequestHead
//! admission::admit           → Principal + Pending      operation::parse_head, the host's authentication, policy::permit
//! Pending::finish(body)      → Operation
//! envelope::Encoder(row, row, …) → body chunks
//!
//! an upload's body             upload::Parser (push bytes, pull events) → UploadForm
//! ```
//!
//! No clock, randomness, environment, async runtime or I/O: `now` and ids are parameters. Both hosts parse with the
//! same functions, so that they agree; the edge refuses early, and the origin checks everything again.

pub mod admission;
pub mod conditional;
pub mod cors;
pub mod envelope;
pub mod error;
pub mod fingerprint;
pub mod format;
pub mod ident;
pub mod json;
pub mod key;
pub mod limits;
pub mod media;
pub mod operation;
pub mod policy;
pub mod range;
pub mod rate;
pub mod request;
pub mod request_id;
pub mod request_log;
pub mod security;
pub mod upload;
