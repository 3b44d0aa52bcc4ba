//! Resumable uploads by tus 1.0: every request of the protocol and every refusal, interrupted and concurrent requests,
//! and an existing client.

mod broken;
mod client;
mod refusals;
mod upload;
mod whole;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [whole::cases(), refusals::cases(), broken::cases(), client::cases()].into_iter().flatten().collect()
}
