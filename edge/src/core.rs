//! What the edge decides: answer by itself, from the cache, or forward; which origin is asked, and which of its answers
//! are believed. Tested natively: knows neither the worker's API nor a clock, and bodies by their length only.

mod answer;
mod failed_attempt;
pub mod file_cache;
mod gateway;
mod head;
mod headers;
mod incoming_request;
mod origin_answer;
mod origin_health;
mod read_cache;
mod request_log;

pub use answer::Answer;
pub use failed_attempt::{FailedAttempt, FailureCause, Repeat};
pub use gateway::{BodyPlan, Decision, Gateway};
pub use head::{Head, Headers};
pub use headers::{
    Change, NOT_ANSWERED, NOT_FORWARDED, RequestHeaders, answer_changes, for_everybody, forwarded,
    may_be_of_connection, server_timing,
};
pub use incoming_request::{BodyLength, IncomingRequest};
pub use origin_answer::{Form, NoAnswer, OriginHead, judge, lacks_database};
pub use origin_health::{CallerLocation, HEALTH_PATH, Origins, Pick, READINESS_PATH, Tried};
pub use read_cache::{
    ASKED_AT, AcceptedAge, CACHED_MAX_BYTES, CacheableRead, Freshness, Lead, Lookup, Moment, ReadCache, Turn, age_ms,
    is_kept, pauses,
};
pub use request_log::{Outcome, RequestLog};
