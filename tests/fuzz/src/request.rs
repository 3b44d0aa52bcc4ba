//! A request as a text that people can read and a fuzzer can bend: a line with method and target, lines with
//! headers, an empty line, the body. What is missing is left out.
//!
//! ```text
//! PUT /api/v1/crud/demo/posts/7
//! content-type: application/json
//!
//! {"title": "x"}
//! ```

use shared::operation::RequestHead;

/// A request as both hosts receive it.
#[derive(Debug, Default)]
pub struct Request<'a> {
    method: &'a str,
    path: &'a str,
    query: Option<&'a str>,
    content_type: Option<&'a str>,
    idempotency_key: Option<&'a str>,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the text; `None` if its head is no UTF-8, which no HTTP library would let pass.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (line, mut rest) = split_line(bytes);
        let (method, target) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let mut request = Self {
            method,
            path,
            query,
            ..Self::default()
        };
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            rest = after;
            if line.is_empty() {
                request.body = rest;
                break;
            }
            match std::str::from_utf8(line).ok()?.split_once(": ") {
                Some(("content-type", value)) => request.content_type = Some(value),
                Some(("idempotency-key", value)) => request.idempotency_key = Some(value),
                _ => return None,
            }
        }
        Some(request)
    }

    /// What is known of it before its body.
    #[must_use]
    pub fn head(&self) -> RequestHead<'a> {
        RequestHead {
            method: self.method,
            path: self.path,
            query: self.query,
            content_type: self.content_type,
            idempotency_key: self.idempotency_key,
        }
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Bytes that its sender had to send.
    #[must_use]
    pub fn size(&self) -> usize {
        self.path.len() + self.query.map_or(0, str::len) + self.body.len()
    }
}

fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
