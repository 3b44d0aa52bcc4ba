//! The body of a success, written as bytes while its rows arrive: nothing is kept but the chunk that is
//! being filled. Rows come out in the envelope, or bare as lines of JSON or of CSV.

mod keys;
mod text;

pub use keys::{Keys, Part};
pub use text::{write_csv, write_string};

use crate::format::Format;

/// What every success begins with.
const PREFIX: &[u8] = b"{\"success\":true,\"payload\":";

/// What the payload of an envelope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `"payload":[{…},{…}]`
    Rows,
    /// `"payload":{…}`; exactly one row must be written.
    Row,
    /// `"payload":[[{…}],[{…}]]`: several result sets; only one set comes out as [`Shape::Rows`].
    Sets,
}

/// What an envelope tells beside its payload. Rows without an envelope have no place for it: see
/// [`Format::has_trailer`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    /// `"count"`: how many records there are without paging.
    pub count: Option<u64>,
    /// `"next"`: where the page after this one begins.
    pub next: Option<String>,
}

/// Writes an answer row by row.
#[derive(Debug)]
pub struct Encoder {
    out: Vec<u8>,
    format: Format,
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
        Self::with(out, Format::Envelope, shape)
    }

    /// Begins an answer in any form. `keys` are those of all its rows; without an envelope, rows stand
    /// bare whatever the shape.
    #[must_use]
    pub fn begin_as(format: Format, shape: Shape, keys: &Keys, capacity: usize) -> Self {
        if format == Format::Envelope {
            return Self::begin(shape, capacity);
        }
        let mut out = Vec::with_capacity(capacity);
        if format == Format::Csv {
            keys.write_header(&mut out);
            out.extend_from_slice(b"\r\n");
        }
        Self::with(out, format, shape)
    }

    fn with(out: Vec<u8>, format: Format, shape: Shape) -> Self {
        Self { out, format, shape, rows: 0, rows_in_set: 0, sets: 0 }
    }

    /// The form of the answer, which decides how cells are written: as JSON, or as CSV.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
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

    /// Writes one row: `write` is called for each cell's place and appends its text in the answer's
    /// form (nothing for a NULL of CSV); `is_null` is asked whether the objects of the row are there.
    #[inline]
    pub fn row(&mut self, keys: &Keys, is_null: impl Fn(usize) -> bool, write: impl FnMut(usize, &mut Vec<u8>)) {
        match self.format {
            Format::Envelope => {
                if self.rows_in_set > 0 {
                    self.out.push(b',');
                }
                write_object(&mut self.out, keys, is_null, write);
            }
            Format::NdJson => {
                write_object(&mut self.out, keys, is_null, write);
                self.out.push(b'\n');
            }
            Format::Csv => write_line(&mut self.out, keys, write),
        }
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

    /// Ends the answer and gives its last bytes. [`Shape::Sets`] with only one set becomes that
    /// set's rows, which needs all of its bytes: nothing may have been taken.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.finish_with(&Trailer::default())
    }

    /// Ends the answer as [`Encoder::finish`] does, and tells `trailer` after the payload.
    #[must_use]
    pub fn finish_with(mut self, trailer: &Trailer) -> Vec<u8> {
        if !self.format.has_trailer() {
            return self.out;
        }
        if self.shape == Shape::Sets && self.sets == 1 && self.out.starts_with(PREFIX) {
            self.out.remove(PREFIX.len());
            self.shape = Shape::Rows;
        }
        let end: &[u8] = match (self.shape, self.sets) {
            (Shape::Row, _) => b"",
            (Shape::Sets, 1..) => b"]]",
            (Shape::Rows | Shape::Sets, _) => b"]",
        };
        self.out.extend_from_slice(end);
        end_with(&mut self.out, trailer);
        self.out
    }
}

/// What stands behind the payload, and the envelope's end.
fn end_with(out: &mut Vec<u8>, trailer: &Trailer) {
    if let Some(count) = trailer.count {
        out.extend_from_slice(b",\"count\":");
        out.extend_from_slice(count.to_string().as_bytes());
    }
    if let Some(next) = &trailer.next {
        out.extend_from_slice(b",\"next\":");
        write_string(out, next);
    }
    out.push(b'}');
}

/// Appends one row as a JSON object, as [`Encoder::row`] writes it. Nothing is asked of a flat row but
/// its cells.
#[inline]
pub fn write_object(
    out: &mut Vec<u8>,
    keys: &Keys,
    is_null: impl Fn(usize) -> bool,
    mut write: impl FnMut(usize, &mut Vec<u8>),
) {
    let mut next = 0;
    let mut cells = |out: &mut Vec<u8>, from: usize, to: usize| {
        for at in from..to {
            out.extend_from_slice(keys.get(at));
            write(at, out);
        }
    };
    for object in keys.objects() {
        let within = &object.cells;
        cells(out, next, within.start);
        next = within.end;
        out.extend_from_slice(&object.key);
        if is_null(object.presence) {
            out.extend_from_slice(b"null");
            continue;
        }
        cells(out, within.start, within.end);
        out.extend_from_slice(if within.is_empty() { b"{}" } else { b"}" });
    }
    cells(out, next, keys.len());
    let has_none = keys.is_empty() && keys.objects().is_empty();
    out.extend_from_slice(if has_none { b"{}" } else { b"}" });
}

/// One row as a line of CSV.
fn write_line(out: &mut Vec<u8>, keys: &Keys, mut write: impl FnMut(usize, &mut Vec<u8>)) {
    for at in 0..keys.len() {
        if at > 0 {
            out.push(b',');
        }
        write(at, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// A whole envelope around one JSON text.
#[must_use]
pub fn success(payload: &[u8]) -> Vec<u8> {
    success_with(payload, &Trailer::default())
}

/// A whole envelope around one JSON text, with `trailer` after it.
#[must_use]
pub fn success_with(payload: &[u8], trailer: &Trailer) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 32);
    out.extend_from_slice(PREFIX);
    out.extend_from_slice(payload);
    end_with(&mut out, trailer);
    out
}

#[cfg(test)]
mod tests;
