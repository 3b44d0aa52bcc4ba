//! The code shared by the edge (a Cloudflare worker) and the origin. A request passes `request::RequestHead::read`,
//! `admission::admit`, `Pending::finish` and `envelope::Encoder`; an upload's body passes `upload::Parser`. Uses no
//! clock, randomness, environment, async runtime or I/O. The edge refuses invalid requests early, and the origin checks
//! everything again.

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
#[cfg(test)]
mod tests;
pub mod trace;
pub mod upload;
