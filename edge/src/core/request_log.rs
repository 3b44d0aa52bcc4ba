//! What is known of a request, for its log line and its counters: never a value, a name that a caller chose, or a key.

use shared::error::{ErrorCode, Problem};
use shared::key::Principal;
use shared::policy::{Action, method_label};
use shared::request_id::RequestId;
use std::fmt::Write as _;
use uuid::Uuid;

/// What is known of one request so far.
#[derive(Debug)]
pub struct RequestLog {
    method: &'static str,
    route: &'static str,
    caller: Option<Principal>,
    code: Option<ErrorCode>,
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The HTTP status.
    pub status: u16,
    /// Milliseconds from its head to the head of its answer.
    pub total_ms: f64,
    /// Of these, the wait for the origin, if it was asked.
    pub origin_ms: Option<f64>,
}

impl RequestLog {
    /// A request of that method.
    #[must_use]
    pub fn begin(method: &str) -> Self {
        Self { method: method_label(method), route: "none", caller: None, code: None }
    }

    /// Records whose key the request carries, verified.
    pub(super) fn caller(&mut self, principal: Principal) -> &Principal {
        self.caller.insert(principal)
    }

    pub(super) fn action(&mut self, action: Option<Action>) {
        self.route = action.map_or(self.route, Action::route);
    }

    pub(super) fn route(&mut self, route: &'static str) {
        self.route = route;
    }

    /// Records that the edge itself refused the request, or did not believe the origin's answer.
    pub fn refused(&mut self, problem: &Problem) {
        self.code = Some(problem.code());
    }

    /// Its project, if the key was verified.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.caller.as_ref().map(|caller| caller.project().as_str())
    }

    /// The id of its key, if that was verified.
    #[must_use]
    pub fn key(&self) -> Option<Uuid> {
        self.caller.as_ref().map(Principal::key_id)
    }

    /// Its method, one of few.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// What was asked for, as in the origin's log and metrics.
    #[must_use]
    pub fn route_name(&self) -> &'static str {
        self.route
    }

    /// The code of the edge's own refusal.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.code.map(ErrorCode::as_str)
    }

    /// The log line, a JSON object with the names that the origin's has. Needs no escapes: no part of it
    /// is of the caller's making but the id, which has none.
    #[must_use]
    pub fn line(&self, id: &RequestId, outcome: &Outcome) -> String {
        let mut line = String::with_capacity(256);
        let (method, route, status) = (self.method, self.route, outcome.status);
        // Writing to a string can't fail.
        let _ = write!(
            line,
            r#"{{"message":"request","id":"{id}","method":"{method}","route":"{route}","status":{status}"#
        );
        if let Some(caller) = &self.caller {
            let (key, project) = (caller.key_id(), caller.project().as_str());
            let _ = write!(line, r#","key":"{key}","project":"{project}""#);
        }
        if let Some(code) = self.code() {
            let _ = write!(line, r#","code":"{code}""#);
        }
        if let Some(origin_ms) = outcome.origin_ms {
            let _ = write!(line, r#","upstream_ms":{}"#, origin_ms as u64);
        }
        let _ = write!(line, r#","total_ms":{}}}"#, outcome.total_ms as u64);
        line
    }
}
