//! The envelope of a success, written as bytes while its rows arrive: nothing is kept but the chunk
//! that is being filled.

/// What every success begins with.
const PREFIX: &[u8] = b"{\"success\":true,\"payload\":";

/// Whether the payload is a list of rows or one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `"payload":[{…},{…}]`
    Rows,
    /// `"payload":{…}`; exactly one row must be written.
    Row,
    /// `"payload":[[{…}],[{…}]]`: several result sets; only one set comes out as [`Shape::Rows`].
    Sets,
}

/// Names of the fields of a row, each escaped once: `{"id":` and `,"title":`.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// Prepares the keys of a row. An empty list makes rows `{}`.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys = Self::default();
        for name in names {
            keys.bytes
                .push(if keys.ends.is_empty() { b'{' } else { b',' });
            write_string(&mut keys.bytes, name);
            keys.bytes.push(b':');
            keys.ends.push(keys.bytes.len());
        }
        keys
    }

    fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// How many fields a row has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether rows have no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Writes an envelope row by row.
#[derive(Debug)]
pub struct Encoder {
    out: Vec<u8>,
    shape: Shape,
    rows: u64,
    rows_in_set: u64,
    sets: u64,
}

impl Encoder {
    /// Begins an envelope, with room for `capacity` bytes.
    #[must_use]
    pub fn begin(shape: Shape, capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.extend_from_slice(PREFIX);
        if shape != Shape::Row {
            out.push(b'[');
        }
        Self {
            out,
            shape,
            rows: 0,
            rows_in_set: 0,
            sets: 0,
        }
    }

    /// Begins the next result set of [`Shape::Sets`].
    pub fn next_set(&mut self) {
        if self.sets > 0 {
            self.out.extend_from_slice(b"],");
        }
        self.out.push(b'[');
        self.sets += 1;
        self.rows_in_set = 0;
    }

    /// Writes one row: `write` is called for each field's place and appends its JSON text.
    pub fn row(&mut self, keys: &Keys, write: impl FnMut(usize, &mut Vec<u8>)) {
        if self.rows_in_set > 0 {
            self.out.push(b',');
        }
        write_object(&mut self.out, keys, write);
        self.rows += 1;
        self.rows_in_set += 1;
    }

    /// Bytes waiting to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing waits to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Rows written so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes what is written so far and goes on in a new buffer of the same room.
    pub fn take(&mut self) -> Vec<u8> {
        let room = self.out.capacity();
        std::mem::replace(&mut self.out, Vec::with_capacity(room))
    }

    /// Result sets begun so far.
    #[must_use]
    pub fn sets(&self) -> u64 {
        self.sets
    }

    /// Ends the envelope and gives its last bytes. [`Shape::Sets`] with only one set becomes that
    /// set's rows, which needs all of its bytes: nothing may have been taken.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        if self.shape == Shape::Sets && self.sets == 1 && self.out.starts_with(PREFIX) {
            self.out.remove(PREFIX.len());
            self.shape = Shape::Rows;
        }
        let end: &[u8] = match (self.shape, self.sets) {
            (Shape::Row, _) => b"}",
            (Shape::Sets, 1..) => b"]]}",
            (Shape::Rows | Shape::Sets, _) => b"]}",
        };
        self.out.extend_from_slice(end);
        self.out
    }
}

/// A whole envelope around one JSON text.
#[must_use]
pub fn success(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 32);
    out.extend_from_slice(PREFIX);
    out.extend_from_slice(payload);
    out.push(b'}');
    out
}

/// Appends one row as an object: `write` is called for each field's place and appends its JSON text.
pub fn write_object(out: &mut Vec<u8>, keys: &Keys, mut write: impl FnMut(usize, &mut Vec<u8>)) {
    for at in 0..keys.len() {
        out.extend_from_slice(keys.get(at));
        write(at, out);
    }
    out.extend_from_slice(if keys.is_empty() { b"{}" } else { b"}" });
}

/// Appends a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape = ESCAPES[usize::from(*byte)];
        if escape == 0 {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        if escape == b'u' {
            const HEX: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(&[
                b'\\',
                b'u',
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        } else {
            out.extend_from_slice(&[b'\\', escape]);
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// For each byte: 0 if it stands for itself, `u` if it is written `\u00xx`, else the letter after `\`.
const ESCAPES: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = b'u';
        at += 1;
    }
    table[0x08] = b'b';
    table[0x09] = b't';
    table[0x0A] = b'n';
    table[0x0C] = b'f';
    table[0x0D] = b'r';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_rows_make_an_empty_list() {
        assert_eq!(
            text(Encoder::begin(Shape::Rows, 0).finish()),
            r#"{"success":true,"payload":[]}"#
        );
        assert_eq!(
            text(Encoder::begin(Shape::Sets, 0).finish()),
            r#"{"success":true,"payload":[]}"#
        );
    }

    #[test]
    fn rows_are_separated_also_across_chunks() {
        let keys = Keys::new(["id", "a\"b"]);
        let mut encoder = Encoder::begin(Shape::Rows, 16);
        let mut chunks = Vec::new();
        for row in 0..3 {
            encoder.row(&keys, |at, out| {
                out.extend_from_slice(format!("{}", row * 10 + at).as_bytes());
            });
            chunks.extend(encoder.take());
        }
        chunks.extend(encoder.finish());
        assert_eq!(
            text(chunks),
            r#"{"success":true,"payload":[{"id":0,"a\"b":1},{"id":10,"a\"b":11},{"id":20,"a\"b":21}]}"#
        );
    }

    #[test]
    fn result_sets_are_lists_in_a_list() {
        let keys = Keys::new(["a"]);
        let mut encoder = Encoder::begin(Shape::Sets, 0);
        encoder.next_set();
        encoder.row(&keys, |_, out| out.push(b'1'));
        encoder.row(&keys, |_, out| out.push(b'2'));
        encoder.next_set();
        assert_eq!(
            text(encoder.finish()),
            r#"{"success":true,"payload":[[{"a":1},{"a":2}],[]]}"#
        );
    }

    proptest! {
        #[test]
        fn strings_read_back_equal(string in ".*") {
            let mut out = Vec::new();
            write_string(&mut out, &string);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), string);
        }
    }
}
