//! The data of a request that edge and origin log: no values of records, no names except the project's, and only the
//! ids of API keys and users.

use crate::error::{ErrorCode, Problem};
use crate::key::{Principal, TokenDigest, UserIdentity};
use crate::policy::{Action, method_label};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserCaller {
    Verified(UserIdentity),
    Unverified(TokenDigest),
}

/// The facts about a request that its log line tells. Each part is recorded once; later values are ignored.
#[derive(Debug)]
pub struct RequestLog {
    method: &'static str,
    route: OnceLock<&'static str>,
    caller: OnceLock<Arc<Principal>>,
    user: OnceLock<UserCaller>,
    code: OnceLock<ErrorCode>,
}

impl RequestLog {
    pub fn begin(method: &str) -> Self {
        Self {
            method: method_label(method),
            route: OnceLock::new(),
            caller: OnceLock::new(),
            user: OnceLock::new(),
            code: OnceLock::new(),
        }
    }

    /// Records the caller unless one is recorded, and returns the recorded one. At the edge, users go to
    /// [`RequestLog::user`].
    pub fn caller(&self, principal: impl Into<Arc<Principal>>) -> &Principal {
        self.caller.get_or_init(|| principal.into())
    }

    pub fn user(&self, caller: UserCaller) {
        self.user.get_or_init(|| caller);
    }

    /// Returns whose rate limit applies: the id of the key or a token's subject, or the digest of an unverified token.
    pub fn rate_limited_as(&self) -> Option<String> {
        let user = || {
            self.user.get().map(|caller| match caller {
                UserCaller::Verified(user) => user.subject.to_string(),
                UserCaller::Unverified(token) => token.to_string(),
            })
        };
        self.key().map(|id| id.to_string()).or_else(user)
    }

    pub fn action(&self, action: Option<Action>) {
        if let Some(action) = action {
            self.route(action.route());
        }
    }

    /// Returns whether the route is that of this action.
    pub fn is_of(&self, action: Action) -> bool {
        self.route_name() == action.route()
    }

    pub fn route(&self, route: &'static str) {
        self.route.get_or_init(|| route);
    }

    pub fn refused(&self, problem: &Problem) {
        self.failed(problem.code());
    }

    pub fn failed(&self, code: ErrorCode) {
        self.code.get_or_init(|| code);
    }

    pub fn project(&self) -> Option<&str> {
        self.caller.get().map(|caller| caller.project().as_str())
    }

    pub fn token(&self) -> Option<UserCaller> {
        self.user.get().copied()
    }

    /// Returns the id of the API key or, at the origin, of the user.
    pub fn key(&self) -> Option<Uuid> {
        self.caller.get().map(|caller| caller.key_id())
    }

    /// Returns the method as a label of bounded cardinality.
    pub fn method(&self) -> &'static str {
        self.method
    }

    /// Returns the route, which also labels metrics; `none` without a route.
    pub fn route_name(&self) -> &'static str {
        self.route.get().copied().unwrap_or("none")
    }

    pub fn code(&self) -> Option<ErrorCode> {
        self.code.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ident::ProjectName;
    use crate::key::{Access, KeyClaims, KeySet, SigningKey, verify};

    fn told(log: &RequestLog) -> (&str, &str, Option<&str>, Option<Uuid>, Option<ErrorCode>) {
        (log.method(), log.route_name(), log.project(), log.key(), log.code())
    }

    #[test]
    fn a_log_tells_what_was_recorded_first() {
        let log = RequestLog::begin("BREW");
        log.action(None);
        assert_eq!(told(&log), ("OTHER", "none", None, None, None));
        let (signing, id) = (SigningKey::from_seed("k1", &[7; 32]), Uuid::from_u128(0x7000_8000_0000_0000_0001));
        let claims = KeyClaims::new(id, &ProjectName::parse("shop").unwrap(), Access::Read, 1, None);
        let keys = KeySet::new(vec![signing.public()]).unwrap();
        log.caller(verify(Some(&signing.sign(&claims).unwrap()), &keys, 1).unwrap());
        log.action(Some(Action::Sql));
        log.route("/later");
        log.refused(&Problem::new(ErrorCode::SqlError, "first"));
        log.refused(&Problem::new(ErrorCode::Internal, "later"));
        assert_eq!(told(&log), ("OTHER", "/api/v1/sql", Some("shop"), Some(id), Some(ErrorCode::SqlError)));
    }
}
