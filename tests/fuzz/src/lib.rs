//! The invariants that must hold for any request, checked without database or network:
//!
//! ```text
//! bytes → Request → parse_head → finish → plan::build → sql::… → Outcome       requests
//! structure → its three spellings → three Outcomes that must be equal          spellings
//! bytes → a body of an upload → Parser, in any pieces → what serde_json says   uploads
//! bytes → Role::parse → what the role allows                                    roles
//! bytes → Decoder::read → every row and value of a binary log                   binlog
//! ```
//!
//! The programs in `targets/` pass the fuzzer's inputs to this crate, `tests/replay.rs` passes known inputs. The crate
//! uses only public functions of the stages, and reports a broken invariant by a panic, which the fuzzer looks for.
#![allow(clippy::expect_used, clippy::panic, reason = "a breach is told by a panic")]

pub mod catalogue;
pub mod check;
pub mod log;
pub mod outcome;
pub mod request;
pub mod role;
pub mod seeds;
pub mod spelling;
pub mod statement;
pub mod structure;
pub mod upload;

use peak_alloc::PeakAlloc;

/// Counts allocated bytes, for the limits on a request's memory.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;
