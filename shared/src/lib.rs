//! The code shared by the edge (a Cloudflare worker) and the origin (the server). A request passes in this order:
//!
//! ```text
//! request::check_url, check_headers → ok | Problem
//! request::RequestHead::read → RequestHead
//! admission::admit           → Principal + Pending      operation::parse_head, authentication, policy::permit
//! Pending::finish(body)      → Operation
//! envelope::Encoder(row, row, …) → body chunks
//!
//! an upload's body             upload::Parser (push bytes, pull events) → UploadForm
//! ```
//!
//! The crate uses no clock, randomness, environment, async runtime or I/O: callers pass the time and ids as parameters.
//! Edge and origin parse with the same functions, so that they agree: the edge refuses invalid requests early, and the
//! origin checks everything again.

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
pub mod trace;
pub mod upload;
