//! Resumable uploads by tus 1.0: every request of the protocol and every refusal, interrupted and concurrent requests,
//! and an existing client.

mod broken;
mod client;
mod refusals;
mod upload;
mod users;
mod whole;
