//! The line that the edge logs of a request.

use shared::request_id::RequestId;
use shared::request_log::RequestLog;
use std::fmt::Write as _;

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

impl Outcome {
    /// Returns the log line, a JSON object with the names that the origin's has. Needs no escapes: no part of it is of the
    /// caller's making but the id, which has none.
    #[must_use]
    pub fn line(&self, id: &RequestId, log: &RequestLog) -> String {
        let mut line = String::with_capacity(256);
        let (method, route, status) = (log.method(), log.route_name(), self.status);
        // Writing to a string can't fail.
        let _ = write!(
            line,
            r#"{{"message":"request","id":"{id}","method":"{method}","route":"{route}","status":{status}"#
        );
        if let (Some(key), Some(project)) = (log.key(), log.project()) {
            let _ = write!(line, r#","key":"{key}","project":"{project}""#);
        }
        if let Some(code) = log.code() {
            let _ = write!(line, r#","code":"{code}""#);
        }
        if let Some(origin_ms) = self.origin_ms {
            let _ = write!(line, r#","upstream_ms":{}"#, origin_ms as u64);
        }
        let _ = write!(line, r#","total_ms":{}}}"#, self.total_ms as u64);
        line
    }
}
