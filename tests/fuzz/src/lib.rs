//! What must hold whatever a caller sends, checked without database or network:
//!
//! ```text
//! bytes → Request → parse_head → finish → plan::build → sql::… → Outcome       requests
//! structure → its three spellings → three Outcomes that must be equal          spellings
//! bytes → a body of an upload → Parser, in any pieces → what serde_json says   uploads
//! bytes → Role::parse → what the role allows                                    roles
//! ```
//!
//! The programs in `targets/` hand it the fuzzer's inputs, `tests/replay.rs` those that are known. It knows
//! the stages' public functions only, and says what is wrong by panicking, which is what a fuzzer looks for.
#![allow(clippy::expect_used, clippy::panic, reason = "a breach is told by a panic")]

pub mod catalogue;
pub mod check;
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
