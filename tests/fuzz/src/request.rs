//! A request as a text that people can read and a fuzzer can change: a line with method and target,
//! lines with headers, an empty line, the body. Headers and body may be missing.
//!
//! ```text
//! PUT /api/v1/crud/demo/posts/7
//! content-type: application/json
//!
//! {"title": "x"}
//! ```

use shared::request::RequestHead;

#[derive(Debug, Default)]
pub struct Request<'a> {
    head: RequestHead<'a>,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// Parses the text; `None` if its head is not UTF-8, which HTTP libraries refuse.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (line, mut rest) = split_line(bytes);
        let (method, target) = std::str::from_utf8(line).ok()?.split_once(' ')?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let mut head = RequestHead { method, path, query, ..RequestHead::default() };
        let mut body = rest;
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            (rest, body) = (after, after);
            if line.is_empty() {
                break;
            }
            let (name, value) = std::str::from_utf8(line).ok()?.split_once(": ")?;
            let header = match name {
                "content-type" => &mut head.content_type,
                "accept" => &mut head.accept,
                "idempotency-key" => &mut head.idempotency_key,
                "if-match" => &mut head.if_match,
                "if-none-match" => &mut head.if_none_match,
                _ => return None,
            };
            *header = Some(value);
        }
        Some(Self { head, body })
    }

    #[must_use]
    pub fn head(&self) -> RequestHead<'a> {
        self.head
    }

    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the number of bytes that the client must send.
    #[must_use]
    pub fn size(&self) -> usize {
        self.head.path.len() + self.head.query.map_or(0, str::len) + self.body.len()
    }
}

fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &[]),
    }
}
