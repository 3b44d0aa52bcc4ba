//! Encodes the body of a successful response row by row: as JSON `{"success":true,"payload":…}` (the envelope), or
//! without an envelope as NDJSON or CSV. Buffers only the current chunk.

mod keys;
mod text;

pub use keys::{ColumnLabels, Label};
pub use text::{write_csv, write_string};

use crate::format::Format;

const PREFIX: &[u8] = b"{\"success\":true,\"payload\":";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Rows,
    /// Exactly one row must be written.
    Row,
    /// Result sets. A single one is written like [`Shape::Rows`], unless [`Encoder::take`] was called before the end.
    Sets,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailer {
    pub count: Option<u64>,
    /// The response has fewer records than requested, because of the role's `maxRows` or the setting `max_rows`.
    pub limited: bool,
    pub next: Option<String>,
    /// Further records follow, but there is no cursor of the next page.
    pub more: bool,
    /// The indexes of a batch's operations whose lists were cut.
    pub cut: Vec<usize>,
}

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
    pub fn begin(shape: Shape, capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.extend_from_slice(PREFIX);
        if shape != Shape::Row {
            out.push(b'[');
        }
        Self::with(out, Format::Envelope, shape)
    }

    /// Begins a response in any format. CSV gets a header row of `keys`; formats without an envelope ignore `shape`.
    pub fn begin_as(format: Format, shape: Shape, keys: &ColumnLabels, capacity: usize) -> Self {
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

    pub fn format(&self) -> Format {
        self.format
    }

    pub fn next_set(&mut self) {
        if self.sets > 0 {
            self.out.extend_from_slice(b"],");
        }
        self.out.push(b'[');
        self.sets += 1;
        self.rows_in_set = 0;
    }

    /// Appends a row. `write` appends the text of the cell at an index (nothing for a NULL in CSV). In JSON, a nested
    /// object is `null` if `is_null` is true for its cell `presence`.
    #[inline]
    pub fn row(
        &mut self,
        keys: &ColumnLabels,
        is_null: impl Fn(usize) -> bool,
        write: impl FnMut(usize, &mut Vec<u8>),
    ) {
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

    pub fn len(&self) -> usize {
        self.out.len()
    }

    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn take(&mut self) -> Vec<u8> {
        let room = self.out.capacity();
        std::mem::replace(&mut self.out, Vec::with_capacity(room))
    }

    pub fn result_set_count(&self) -> u64 {
        self.sets
    }

    /// Returns the rest of the body. A single set becomes [`Shape::Rows`], unless [`Encoder::take`] was called before.
    pub fn finish(self) -> Vec<u8> {
        self.finish_with(&Trailer::default())
    }

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

fn end_with(out: &mut Vec<u8>, trailer: &Trailer) {
    if let Some(count) = trailer.count {
        out.extend_from_slice(b",\"count\":");
        out.extend_from_slice(count.to_string().as_bytes());
    }
    if trailer.limited {
        out.extend_from_slice(b",\"limited\":true");
    }
    if let Some(next) = &trailer.next {
        out.extend_from_slice(b",\"next\":");
        write_string(out, next);
    }
    if trailer.more {
        out.extend_from_slice(b",\"more\":true");
    }
    if !trailer.cut.is_empty() {
        let operations: Vec<_> = trailer.cut.iter().map(usize::to_string).collect();
        out.extend_from_slice(format!(",\"cut\":[{}]", operations.join(",")).as_bytes());
    }
    out.push(b'}');
}

#[inline]
pub fn write_object(
    out: &mut Vec<u8>,
    keys: &ColumnLabels,
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

fn write_line(out: &mut Vec<u8>, keys: &ColumnLabels, mut write: impl FnMut(usize, &mut Vec<u8>)) {
    for at in 0..keys.len() {
        if at > 0 {
            out.push(b',');
        }
        write(at, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Returns a whole successful response. `payload` must be JSON.
pub fn success(payload: &[u8]) -> Vec<u8> {
    success_with(payload, &Trailer::default())
}

pub fn success_with(payload: &[u8], trailer: &Trailer) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 32);
    out.extend_from_slice(PREFIX);
    out.extend_from_slice(payload);
    end_with(&mut out, trailer);
    out
}

#[cfg(test)]
mod tests;
