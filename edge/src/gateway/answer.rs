//! Answers that the edge gives by itself. The headers that every answer has (request id, timing,
//! cross-origin) are added where it leaves.

use shared::cors::CorsOrigins;
use shared::error::Problem;
use shared::request_id::RequestId;
use std::borrow::Cow;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(&'static str, Cow<'static, str>)>,
    body: Vec<u8>,
}

impl Answer {
    /// An answer with a JSON body.
    #[must_use]
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        let headers = vec![("content-type", Cow::Borrowed("application/json"))];
        Self {
            status,
            headers,
            body,
        }
    }

    /// The envelope of a problem.
    #[must_use]
    pub fn problem(problem: &Problem, request_id: &RequestId) -> Self {
        let mut answer = Self::json(problem.status(), problem.to_json(request_id.as_str()));
        answer.headers.extend(
            problem
                .headers()
                .map(|(name, value)| (name, value.into_owned().into())),
        );
        answer
    }

    /// The answer to a browser's preflight.
    #[must_use]
    pub fn preflight(cors: &CorsOrigins) -> Self {
        let headers = cors
            .preflight_headers()
            .map(|(name, value)| (name, value.into()))
            .collect();
        Self {
            status: 204,
            headers,
            body: Vec::new(),
        }
    }

    /// The same with a header more.
    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Headers of this answer alone.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers
            .iter()
            .map(|(name, value)| (*name, value.as_ref()))
    }

    /// The body, empty for a 204.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}
