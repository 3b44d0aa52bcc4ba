//! Formats the edge's log line of a request.

use super::incoming_request::IncomingRequest;
use shared::request_log::RequestLog;
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub status: u16,
    /// Milliseconds from the request's head to the response's head.
    pub total_ms: f64,
    /// Milliseconds of waiting for an origin; `None` for a response from the edge alone or from its cache.
    pub origin_ms: Option<f64>,
}

impl Outcome {
    /// Returns the log line: a JSON object. Nothing is escaped, since the request id is the only text that callers
    /// choose, and its characters need no escaping.
    #[must_use]
    pub fn line(&self, request: &IncomingRequest, log: &RequestLog) -> String {
        let mut line = String::with_capacity(256);
        let (id, method, route, status) = (&request.request_id, log.method(), log.route_name(), self.status);
        // Writing to a string can't fail.
        let _ = write!(
            line,
            r#"{{"message":"request","id":"{id}","method":"{method}","route":"{route}","status":{status}"#
        );
        if let (Some(key), Some(project)) = (log.key(), log.project()) {
            let _ = write!(line, r#","key":"{key}","project":"{project}""#);
        }
        if let Some(code) = log.code() {
            let _ = write!(line, r#","code":"{}""#, code.as_str());
        }
        if let Some(span) = &request.trace {
            let _ = write!(line, r#","trace":"{}","span":"{}""#, span.trace(), span.id());
        }
        if let Some(origin_ms) = self.origin_ms {
            let _ = write!(line, r#","upstream_ms":{}"#, origin_ms as u64);
        }
        let _ = write!(line, r#","total_ms":{}}}"#, self.total_ms as u64);
        line
    }
}
