//! Uploads that can be resumed, by tus 1.0: every request of the protocol and every refusal, requests that break off or
//! meet, and a client that others wrote.

mod broken;
mod client;
mod refusals;
mod upload;
mod whole;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [whole::cases(), refusals::cases(), broken::cases(), client::cases()].into_iter().flatten().collect()
}
