//! The parts of a request's head that determine its operation and caller. Other modules interpret the values.

/// Stands for a value with other characters than visible ASCII, spaces and tabs. No valid value contains this text.
const NOT_TEXT: &str = "\u{fffd}";

/// A request's head. Header values with other characters than visible ASCII, spaces and tabs are replaced by U+FFFD.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    /// The URL's path, percent-encoded.
    pub path: &'a str,
    /// The URL's query, percent-encoded, without its `?`.
    pub query: Option<&'a str>,
    pub authorization: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub content_encoding: Option<&'a str>,
    pub accept: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    pub prefer: Option<&'a str>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub last_event_id: Option<&'a str>,
    pub tus: TusHeaders<'a>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct TusHeaders<'a> {
    pub(crate) resumable: Option<&'a str>,
    pub(crate) length: Option<&'a str>,
    pub(crate) offset: Option<&'a str>,
    pub(crate) metadata: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) unsupported: Option<&'static str>,
}

impl<'a> RequestHead<'a> {
    /// Reads a head. Header names must be in lower case, and values of repeated headers joined by `", "`.
    pub fn read(
        method: &'a str,
        path: &'a str,
        query: Option<&'a str>,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let mut head = Self { method, path, query, ..Self::default() };
        for (name, value) in headers {
            if let Some(field) = head.field(name) {
                *field = Some(text(value));
            }
        }
        head
    }

    fn field(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        Some(match name {
            "authorization" => &mut self.authorization,
            "content-type" => &mut self.content_type,
            "content-encoding" => &mut self.content_encoding,
            "accept" => &mut self.accept,
            "idempotency-key" => &mut self.idempotency_key,
            "prefer" => &mut self.prefer,
            "if-match" => &mut self.if_match,
            "if-none-match" => &mut self.if_none_match,
            "last-event-id" => &mut self.last_event_id,
            "tus-resumable" => &mut self.tus.resumable,
            "x-http-method-override" => &mut self.tus.method,
            _ => return self.tus.field(name.strip_prefix("upload-")?),
        })
    }
}

impl<'a> TusHeaders<'a> {
    /// Returns the field for the header `Upload-{name}`. Records a header of an unsupported tus extension.
    fn field(&mut self, name: &str) -> Option<&mut Option<&'a str>> {
        Some(match name {
            "length" => &mut self.length,
            "offset" => &mut self.offset,
            "metadata" => &mut self.metadata,
            _ => {
                const UNSUPPORTED: [&str; 3] = ["Upload-Defer-Length", "Upload-Concat", "Upload-Checksum"];
                let is_it = |known: &&str| known["Upload-".len()..].eq_ignore_ascii_case(name);
                self.unsupported = self.unsupported.or(UNSUPPORTED.into_iter().find(is_it));
                return None;
            }
        })
    }
}

fn text(value: &[u8]) -> &str {
    let is_text = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
    match str::from_utf8(value) {
        Ok(text) if value.iter().all(is_text) => text,
        _ => NOT_TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_from_the_headers_that_decide() {
        let headers = [
            ("accept", &b"text/csv"[..]),
            ("authorization", b"Bearer a.b.c"),
            ("content-encoding", b"gzip"),
            ("content-type", b"application/json"),
            ("cookie", b"a=b"),
            ("idempotency-key", b"k\t1"),
            ("if-match", b"\"a\""),
            ("if-none-match", b"*"),
            ("prefer", b"return=minimal"),
            ("tus-resumable", b"1.0.0"),
            ("upload-checksum", b"sha1 x"),
            ("upload-length", b"5"),
            ("upload-metadata", b"filename YQ=="),
            ("upload-offset", b"2"),
            ("upload-speed", b"9"),
            ("x-http-method-override", b"PATCH"),
        ];
        let head = RequestHead::read("POST", "/a", Some("b=c"), headers);
        assert_eq!((head.method, head.path, head.query), ("POST", "/a", Some("b=c")));
        for (field, expected) in [
            (head.authorization, "Bearer a.b.c"),
            (head.content_type, "application/json"),
            (head.content_encoding, "gzip"),
            (head.accept, "text/csv"),
            (head.idempotency_key, "k\t1"),
            (head.if_match, "\"a\""),
            (head.if_none_match, "*"),
            (head.prefer, "return=minimal"),
            (head.tus.resumable, "1.0.0"),
            (head.tus.length, "5"),
            (head.tus.offset, "2"),
            (head.tus.metadata, "filename YQ=="),
            (head.tus.method, "PATCH"),
            (head.tus.unsupported, "Upload-Checksum"),
        ] {
            assert_eq!(field, Some(expected));
        }
    }

    #[test]
    fn a_value_that_is_not_visible_ascii_is_no_option() {
        for value in [&b"caf\xc3\xa9"[..], b"\xff", b"a\x7f", b"a\0"] {
            let head = RequestHead::read("GET", "/", None, [("accept", value)]);
            assert_eq!(head.accept, Some(NOT_TEXT), "{value:?}");
        }
    }
}
