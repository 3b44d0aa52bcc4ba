//! Formats the edge's log line of a request, and limits the log lines of requests without a valid key.

use super::incoming_request::IncomingRequest;
use shared::limits::{EDGE_REFUSAL_LINES_MAX_COUNT, EDGE_REFUSAL_LINES_MS};
use shared::request_log::RequestLog;
use std::cell::Cell;
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug)]
pub struct RequestOutcome {
    pub status: u16,
    /// Milliseconds from the request's head to the response's head.
    pub total_ms: f64,
    /// Milliseconds of waiting for an origin; `None` for a response from the edge alone or from its cache.
    pub origin_ms: Option<f64>,
}

impl RequestOutcome {
    /// Returns the log line, a JSON object. Escapes nothing: the only text from callers is the request id, whose
    /// characters need no escaping. `unlogged` is the number of earlier requests without a line.
    pub fn line(&self, request: &IncomingRequest, log: &RequestLog, unlogged: u32) -> String {
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
        if unlogged > 0 {
            let _ = write!(line, r#","unlogged":{unlogged}"#);
        }
        let _ = write!(line, r#","total_ms":{}}}"#, self.total_ms as u64);
        line
    }

    /// Returns whether the edge itself refused the request's key or token.
    fn is_of_key(&self) -> bool {
        self.status == 401 && self.origin_ms.is_none()
    }
}

/// Limits the log lines of requests whose key or token the edge refuses, per period of [`EDGE_REFUSAL_LINES_MS`].
#[derive(Debug, Default)]
pub struct RefusalLines {
    /// When the period began, in ms since 1970.
    began: Cell<u64>,
    requests: Cell<u32>,
}

impl RefusalLines {
    /// Returns `None` if the request gets no log line at `now` (in ms since 1970); otherwise the number of requests
    /// without a line in a period that has just ended.
    pub fn admits(&self, outcome: &RequestOutcome, now: u64) -> Option<u32> {
        if !outcome.is_of_key() {
            return Some(0);
        }
        let requests = self.requests.get();
        if now >= self.began.get() + EDGE_REFUSAL_LINES_MS {
            self.began.set(now);
            self.requests.set(1);
            return Some(requests.saturating_sub(EDGE_REFUSAL_LINES_MAX_COUNT));
        }
        self.requests.set(requests.saturating_add(1));
        (requests < EDGE_REFUSAL_LINES_MAX_COUNT).then_some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_requests_refused_for_their_key_a_hundred_get_a_line_and_the_others_are_counted() {
        const NOW: u64 = 1_800_000_000_000;
        let lines = RefusalLines::default();
        let outcome = |status, origin_ms| RequestOutcome { status, total_ms: 0.0, origin_ms };
        let refused = |now| lines.admits(&outcome(401, None), now);
        let logged = (0..1_000).filter(|ms| refused(NOW + ms) == Some(0)).count();
        assert_eq!(logged, EDGE_REFUSAL_LINES_MAX_COUNT as usize);
        for other in [outcome(200, None), outcome(403, None), outcome(401, Some(1.0))] {
            assert_eq!(lines.admits(&other, NOW), Some(0));
        }
        let next = NOW + EDGE_REFUSAL_LINES_MS;
        assert_eq!([refused(next - 1), refused(next), refused(next)], [None, Some(901), Some(0)]);
    }
}
