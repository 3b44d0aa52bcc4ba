//! Responses that the edge builds itself. The common headers (request id, timing, CORS) are added later.

use super::headers::{HeaderChange, Headers};
use shared::cors::CorsOrigins;
use shared::error::Problem;
use shared::request_id::RequestId;
use shared::security;
use std::borrow::Cow;

/// A response that the edge builds. A body that is a stream is added later, by `host::headers::answer`.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body; empty if the response has none or its body is a stream.
    pub body: Vec<u8>,
}

impl Answer {
    /// Creates a response without a body, with the same security headers as the origin's responses.
    pub fn new(status: u16) -> Self {
        let headers = security::HEADERS.map(|(name, value)| (name, Cow::Borrowed(value)));
        Self { status, headers: headers.into_iter().collect(), body: Vec::new() }
    }

    /// Creates a response without headers or body.
    pub fn bare(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn json(status: u16, body: Vec<u8>) -> Self {
        let mut answer = Self::new(status).with("content-type", "application/json");
        answer.body = body;
        answer
    }

    pub fn problem(problem: &Problem, request_id: &RequestId) -> Self {
        let answer = Self::json(problem.status(), problem.to_json(request_id.as_str()));
        let headers = problem.headers();
        headers.fold(answer, |answer, (name, value)| answer.with(name, value.into_owned()))
    }

    pub fn preflight(cors: &CorsOrigins) -> Self {
        let headers = cors.preflight_headers();
        headers.fold(Self::new(204), |answer, (name, value)| answer.with(name, value))
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Copies the headers with these names from `from`, if present.
    pub fn with_those(self, from: &Headers, names: &[&'static str]) -> Self {
        let pairs = names.iter().filter_map(|name| Some((*name, from.get(name)?.to_owned())));
        pairs.fold(self, |answer, (name, value)| answer.with(name, value))
    }

    pub fn apply(&mut self, changes: Vec<HeaderChange>) {
        for change in changes {
            let (HeaderChange::Set(name, _) | HeaderChange::Append(name, _) | HeaderChange::Delete(name)) = &change;
            let name = *name;
            let at = self.headers.iter().position(|(known, _)| *known == name);
            let known = at.map(|at| self.headers.remove(at).1);
            match (change, known) {
                (HeaderChange::Set(_, value), _) | (HeaderChange::Append(_, value), None) => {
                    self.headers.push((name, value));
                }
                (HeaderChange::Append(_, value), Some(known)) => {
                    self.headers.push((name, format!("{known}, {value}").into()));
                }
                (HeaderChange::Delete(_), _) => {}
            }
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find_map(|(known, value)| (known == name).then_some(value))
    }

    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_ref()))
    }
}
