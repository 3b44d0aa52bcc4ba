//! Answers that the edge makes itself. The headers that every answer has (request id, timing, cross-origin) are added
//! where an answer leaves.

use super::headers::{Change, Headers};
use shared::cors::CorsOrigins;
use shared::error::Problem;
use shared::request_id::RequestId;
use shared::security;
use std::borrow::Cow;

/// Status, headers and body of an answer. The body of a cached answer is added by the host.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body, if the edge wrote it.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer of that status without a body, with the headers that the origin's answers have for security.
    #[must_use]
    pub fn new(status: u16) -> Self {
        let headers = security::HEADERS.map(|(name, value)| (name, Cow::Borrowed(value)));
        Self { status, headers: headers.into_iter().collect(), body: Vec::new() }
    }

    /// An answer of that status with no header at all.
    #[must_use]
    pub fn bare(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// An answer with a JSON body.
    #[must_use]
    pub fn json(status: u16, body: Vec<u8>) -> Self {
        let mut answer = Self::new(status).with("content-type", "application/json");
        answer.body = body;
        answer
    }

    /// The envelope of a problem.
    #[must_use]
    pub fn problem(problem: &Problem, request_id: &RequestId) -> Self {
        let answer = Self::json(problem.status(), problem.to_json(request_id.as_str()));
        let headers = problem.headers();
        headers.fold(answer, |answer, (name, value)| answer.with(name, value.into_owned()))
    }

    /// The answer to a browser's preflight.
    #[must_use]
    pub fn preflight(cors: &CorsOrigins) -> Self {
        let headers = cors.preflight_headers();
        headers.fold(Self::new(204), |answer, (name, value)| answer.with(name, value))
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds those of these headers that another answer has.
    #[must_use]
    pub fn with_those(self, from: &Headers, names: &[&'static str]) -> Self {
        let pairs = names.iter().filter_map(|name| Some((*name, from.get(name)?.to_owned())));
        pairs.fold(self, |answer, (name, value)| answer.with(name, value))
    }

    /// Changes its headers.
    pub fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            let (Change::Set(name, _) | Change::Append(name, _) | Change::Delete(name)) = &change;
            let name = *name;
            let at = self.headers.iter().position(|(known, _)| *known == name);
            let known = at.map(|at| self.headers.remove(at).1);
            match (change, known) {
                (Change::Set(_, value), _) | (Change::Append(_, value), None) => {
                    self.headers.push((name, value));
                }
                (Change::Append(_, value), Some(known)) => {
                    self.headers.push((name, format!("{known}, {value}").into()));
                }
                (Change::Delete(_), _) => {}
            }
        }
    }

    /// Returns a header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns the names and values of its headers.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_ref()))
    }
}
