//! The head of a request or an answer, as the host read it: names in lower case, and values.

use super::incoming_request::split_url;
use shared::error::{ErrorCode, Problem};
use shared::request;

/// The headers of a request or an answer: lines of a name, a comma and a value. No name holds a comma, and no value a line
/// end.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    text: String,
    /// Where each line, its name and the line itself end.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// Parses what the host read.
    #[must_use]
    pub fn parse(text: String) -> Self {
        let mut ends = Vec::with_capacity(32);
        let mut start = 0;
        for line in text.split('\n') {
            let end = start + line.len();
            if let Some(name) = line.find(',') {
                ends.push((start + name, end));
            }
            start = end + 1;
        }
        Self { text, ends }
    }

    /// Returns the names and values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(_, end)| end + 1));
        starts.zip(&self.ends).map(|(start, (name, end))| {
            let part = |range| self.text.get(range).unwrap_or_default();
            (part(start..*name), part(name + 1..*end))
        })
    }

    /// Returns the value of a header, named in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        // Some forty calls a request: bytes need no look at character boundaries.
        let (text, name) = (self.text.as_bytes(), name.as_bytes());
        let mut start = 0;
        for (name_end, end) in &self.ends {
            if name_end - start == name.len() && text.get(start..*name_end) == Some(name) {
                return self.text.get(name_end + 1..*end);
            }
            start = end + 1;
        }
        None
    }
}

impl<'a, 'b> FromIterator<(&'a str, &'b str)> for Headers {
    fn from_iter<T: IntoIterator<Item = (&'a str, &'b str)>>(pairs: T) -> Self {
        let lines: Vec<_> = pairs.into_iter().map(|(name, value)| [name, ",", value].concat()).collect();
        Self::parse(lines.join("\n"))
    }
}

/// A request's head.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The method, in upper case.
    pub method: String,
    /// The serialised URL.
    pub url: String,
    /// Whether there is a body, however long.
    pub has_body: bool,
    /// The headers.
    pub headers: Headers,
}

impl Head {
    /// Checks for what no request may hold, and for what the origin's HTTP parser would refuse.
    ///
    /// # Errors
    /// Those of [`request::check_url`] and [`request::check_headers`]; `invalid_body` for a body with both
    /// `Content-Length` and `Transfer-Encoding`.
    pub fn check(&self) -> Result<(), Problem> {
        let (path, query) = split_url(&self.url);
        request::check_url(path, query)?;
        let headers = || self.headers.iter();
        request::check_headers(|| headers().map(|(name, value)| (name, value.as_bytes())))?;
        let is_ambiguous = self.has_body
            && self.headers.get("content-length").is_some()
            && self.headers.get("transfer-encoding").is_some();
        if !is_ambiguous {
            return Ok(());
        }
        // Other servers on the way may obey the other header (RFC 9112, 6.1).
        Err(Problem::new(ErrorCode::InvalidBody, "The request has both Content-Length and Transfer-Encoding.")
            .with_hint("Send one of them."))
    }
}
