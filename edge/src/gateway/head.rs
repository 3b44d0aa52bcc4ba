//! Heads of requests and answers as text, and what is changed in them.
//!
//! Lists come and go as text, one item a line, which no header can hold. Pure: who reads a head from the runtime, and
//! who changes it there, is the host's.

use super::call::split_url;
use shared::error::{ErrorCode, Problem};
use shared::request;

/// The head of a request or an answer: one piece of text, in lines.
#[derive(Debug, Default)]
pub struct Head {
    text: String,
    /// Where each line ends.
    ends: Vec<usize>,
    headers_at: usize,
}

impl Head {
    /// A request's: its method, its URL, "body" if it has one, then each header's name in lower case, and its value.
    #[must_use]
    pub fn of_request(text: String) -> Self {
        Self::parse(text, 3)
    }

    /// An answer's: its status, then its headers likewise.
    #[must_use]
    pub fn of_answer(text: String) -> Self {
        Self::parse(text, 1)
    }

    fn parse(text: String, headers_at: usize) -> Self {
        let mut ends = Vec::with_capacity(32);
        for (at, byte) in text.bytes().enumerate() {
            if byte == b'\n' {
                ends.push(at);
            }
        }
        ends.push(text.len());
        Self {
            text,
            ends,
            headers_at,
        }
    }

    fn start(&self, line: usize) -> usize {
        let before = line.checked_sub(1).and_then(|before| self.ends.get(before));
        before.map_or(0, |end| end + 1)
    }

    fn line(&self, number: usize) -> &str {
        let range = self.ends.get(number).map(|end| self.start(number)..*end);
        range
            .and_then(|range| self.text.get(range))
            .unwrap_or_default()
    }

    /// A request's method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.line(0)
    }

    /// A request's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        self.line(1)
    }

    /// Whether a request has a body, however long.
    #[must_use]
    pub fn has_body(&self) -> bool {
        !self.line(2).is_empty()
    }

    /// An answer's status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.line(0).parse().unwrap_or_default()
    }

    /// Whether all of it is ASCII: how other bytes come to be text, and text bytes, the runtime knows.
    #[must_use]
    pub fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }

    /// Checks a request's head for what no request may hold, and for what the origin's HTTP parser would refuse.
    ///
    /// # Errors
    /// Those of [`request::check_url`] and [`request::check_headers`]; `invalid_body` for a body with two ends.
    pub fn check(&self) -> Result<(), Problem> {
        let (path, query) = split_url(self.url());
        request::check_url(path, query)?;
        let headers = || self.headers();
        request::check_headers(|| headers().map(|(name, value)| (name, value.as_bytes())))?;
        let has_two_ends = self.has_body()
            && self.get("content-length").is_some()
            && self.get("transfer-encoding").is_some();
        if !has_two_ends {
            return Ok(());
        }
        // Whoever stands before or behind might see the other one (RFC 9112, 6.1).
        Err(Problem::new(
            ErrorCode::InvalidBody,
            "The request has both Content-Length and Transfer-Encoding.",
        )
        .with_hint("Send one of them."))
    }

    fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = (self.headers_at..self.ends.len()).step_by(2);
        names.map(|at| (self.line(at), self.line(at + 1)))
    }

    /// The value of a header, named in lower case; none for one that is not there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        // Asked some forty times a request: bytes, which need no look at where characters end.
        let (text, name) = (self.text.as_bytes(), name.as_bytes());
        let mut at = self.headers_at;
        while let Some(end) = self.ends.get(at) {
            let start = self.start(at);
            if end.wrapping_sub(start) == name.len() && text.get(start..*end) == Some(name) {
                return Some(self.line(at + 1));
            }
            at += 2;
        }
        None
    }
}

/// Changes to headers, in their order.
#[derive(Debug, Default)]
pub struct Changes {
    lines: String,
}

impl Changes {
    /// Gives a header this value only.
    pub fn set(&mut self, name: &str, value: &str) {
        self.push('=', name, value);
    }

    /// Gives a header this value too.
    pub fn append(&mut self, name: &str, value: &str) {
        self.push('+', name, value);
    }

    /// Takes a header away.
    pub fn delete(&mut self, name: &str) {
        self.push('-', name, "");
    }

    /// A line's end, which no header can hold, would make two changes of one.
    fn push(&mut self, what: char, name: &str, value: &str) {
        if name.contains('\n') || value.contains('\n') {
            return;
        }
        self.lines.reserve(name.len() + value.len() + 3);
        self.lines.push(what);
        self.lines.push_str(name);
        self.lines.push('\n');
        self.lines.push_str(value);
        self.lines.push('\n');
    }

    /// Each change is a line with what is done and a name, and one with the value.
    #[must_use]
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// The same, to be kept.
    #[must_use]
    pub fn into_lines(self) -> String {
        self.lines
    }

    /// Writes the headers of a head with these changes, of which none appends: a line with a name in lower case, and
    /// one with the value.
    pub fn write_changed(&self, head: &Head, out: &mut String) {
        let is_changed = |name: &str| self.each().any(|(_, changed, _)| changed == name);
        let kept = head.headers().filter(|(name, _)| !is_changed(name));
        let set = self.each().filter(|(what, ..)| *what != '-');
        for (name, value) in kept.chain(set.map(|(_, name, value)| (name, value))) {
            out.push('\n');
            out.push_str(name);
            out.push('\n');
            out.push_str(value);
        }
    }

    fn each(&self) -> impl Iterator<Item = (char, &str, &str)> {
        let mut lines = self.lines.split('\n');
        std::iter::from_fn(move || {
            let (name, value) = (lines.next()?, lines.next()?);
            let what = name.chars().next()?;
            Some((what, &name[1..], value))
        })
    }
}
