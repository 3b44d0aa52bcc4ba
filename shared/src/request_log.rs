//! What both hosts log of a request: never a value, a name that a caller chose, or a key.

use crate::error::{ErrorCode, Problem};
use crate::key::Principal;
use crate::policy::{Action, method_label};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// The log record of one request. A part is set when it becomes known; later values of it are ignored.
#[derive(Debug)]
pub struct RequestLog {
    method: &'static str,
    route: OnceLock<&'static str>,
    caller: OnceLock<Arc<Principal>>,
    code: OnceLock<ErrorCode>,
}

impl RequestLog {
    /// Begins the log of a request with this method.
    #[must_use]
    pub fn begin(method: &str) -> Self {
        Self { method: method_label(method), route: OnceLock::new(), caller: OnceLock::new(), code: OnceLock::new() }
    }

    /// Records the verified key that the request carries.
    pub fn caller(&self, principal: impl Into<Arc<Principal>>) -> &Principal {
        self.caller.get_or_init(|| principal.into())
    }

    /// Records the route of an action; none if the path has no route.
    pub fn action(&self, action: Option<Action>) {
        if let Some(action) = action {
            self.route(action.route());
        }
    }

    /// Records the route, one of few.
    pub fn route(&self, route: &'static str) {
        self.route.get_or_init(|| route);
    }

    /// Records the refusal of the host itself.
    pub fn refused(&self, problem: &Problem) {
        self.code.get_or_init(|| problem.code());
    }

    /// Returns the project of the verified key.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.caller.get().map(|caller| caller.project().as_str())
    }

    /// Returns the id of the verified key.
    #[must_use]
    pub fn key(&self) -> Option<Uuid> {
        self.caller.get().map(|caller| caller.key_id())
    }

    /// Returns the method, one of few.
    #[must_use]
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Returns the route, which also labels metrics; `none` without one.
    #[must_use]
    pub fn route_name(&self) -> &'static str {
        self.route.get().copied().unwrap_or("none")
    }

    /// Returns the code of the host's own refusal.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.code.get().map(|code| code.as_str())
    }
}
