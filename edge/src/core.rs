//! The edge's decisions: whether to answer, serve from the cache or forward a request, to which origin, and which
//! responses come from Selkie. Must not use the worker's API or a clock, or read a body: callers pass the bytes that
//! must be parsed.

mod answer;
mod attempts;
mod bodies;
pub mod cache;
mod caller;
mod drains;
mod failed_attempt;
mod gateway;
mod groups;
mod headers;
mod in_flight;
mod incoming_request;
mod origin_answer;
mod origin_health;
pub mod polls;
mod request_log;
mod silence;
mod user_tokens;

pub use answer::Answer;
pub use attempts::{Attempts, Timeouts, Todo};
pub use bodies::{Bodies, ReadBody};
pub use caller::{Caller, address_group};
pub use drains::{Drain, Drains};
pub use failed_attempt::{FailedAttempt, FailureCause, Repeat};
pub use gateway::{BodyPlan, Decision, Gateway};
pub use headers::{
    HeaderChange, Headers, NOT_ANSWERED, NOT_FORWARDED, RequestHeaders, RequestParts, answer_changes, client_address,
    forwarded, may_be_of_connection, server_timing,
};
pub use in_flight::{InFlight, Slot};
pub use incoming_request::{BodyLength, IncomingRequest};
pub use origin_answer::{Form, NoAnswer, OriginHead, judge, lacks_database, passes_check};
pub use origin_health::{CallerLocation, HEALTH_PATH, Origins, Pick, READINESS_PATH};
pub use request_log::{RefusalLines, RequestOutcome};
pub use shared::request_log::RequestLog;
pub use silence::{CheckResult, Silence};
