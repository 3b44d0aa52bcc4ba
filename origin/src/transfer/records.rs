//! Splits a stream of CSV (RFC 4180) or of NDJSON into records, in bounded memory. An empty cell without quotes
//! is NULL, so each cell records whether it has quotes, which the crate `csv` doesn't tell.

use std::io::{self, Read};
use std::ops::Range;

use serde_json::value::RawValue;
use shared::limits::JSON_BODY_MAX_BYTES;
use shared::operation::write::line_breaks;

use super::input::Form;

/// The maximum length of a record: the limit of a request's body, less 512 KiB for the header row.
pub(super) const RECORD_MAX_BYTES: usize = JSON_BODY_MAX_BYTES - 512 * 1024;

const READ_BYTES: usize = 256 * 1024;

/// The length of the excerpt in the report of a record that is too long or has wrong quotes.
const EXCERPT_BYTES: usize = 1_000;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A cell's range in the text, with the quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellRange {
    range: Range<usize>,
    is_quoted: bool,
}

impl CellRange {
    pub(super) fn raw<'a>(&self, text: &'a str) -> &'a str {
        &text[self.range.clone()]
    }

    /// Returns the cell's value; `None` stands for NULL. `text` is the record's text.
    pub(super) fn value(&self, text: &str) -> Option<String> {
        let raw = self.raw(text);
        match self.is_quoted {
            true => Some(raw[1..raw.len() - 1].replace("\"\"", "\"")),
            false => (!raw.is_empty()).then(|| raw.to_owned()),
        }
    }

    pub(super) fn is_quoted(&self) -> bool {
        self.is_quoted
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordFault {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl RecordFault {
    fn body(message: impl Into<String>) -> Self {
        Self { code: "invalid_body", message: message.into() }
    }
}

#[derive(Debug)]
pub(super) struct FileRecord<'a> {
    /// The line at which the record begins, from 1.
    pub(super) line: u64,
    /// The text and, for CSV, the cells. If the record can't be read, the reason and the beginning of the text.
    pub(super) content: Result<(&'a str, &'a [CellRange]), (RecordFault, String)>,
}

#[derive(Debug)]
pub(super) struct FileRecords<R> {
    source: R,
    form: Form,
    buffer: Vec<u8>,
    begin: usize,
    is_ended: bool,
    line: u64,
    cells: Vec<CellRange>,
    /// The number of cells of a record; `None` for JSON, and before the header row was read.
    width: Option<usize>,
}

enum Scan {
    Record {
        length: usize,
        /// The offset of the next record in the unread bytes.
        next: usize,
    },
    Incomplete,
    Broken(RecordFault),
}

impl<R: Read> FileRecords<R> {
    pub(super) fn new(source: R, form: Form) -> Self {
        let buffer = Vec::new();
        Self { source, form, buffer, begin: 0, is_ended: false, line: 1, cells: Vec::new(), width: None }
    }

    /// Returns the next record. Skips empty lines, except in CSV with a single column, where an empty line is a NULL.
    pub(super) fn next(&mut self) -> io::Result<Option<FileRecord<'_>>> {
        loop {
            if self.begin == self.buffer.len() && !self.fill()? {
                return Ok(None);
            }
            let scan = match self.form {
                Form::Csv { delimiter } => self.scan_csv(delimiter),
                Form::NdJson => self.scan_line(),
            };
            let scan = match scan {
                // A broken record is reported only when its line was read to the end, so that it can be skipped.
                Scan::Broken(_) if self.first_line().is_none() => Scan::Incomplete,
                scan => scan,
            };
            let (length, next) = match scan {
                Scan::Record { length, next } => (length, next),
                Scan::Incomplete if self.buffer.len() - self.begin <= RECORD_MAX_BYTES => {
                    self.fill()?;
                    continue;
                }
                Scan::Incomplete => return self.too_long().map(Some),
                Scan::Broken(fault) => return Ok(Some(self.broken(fault))),
            };
            let (start, line) = (self.begin, self.line);
            self.begin += next;
            let bytes = &self.buffer[start..start + length];
            self.line += 1;
            if self.cells.iter().any(CellRange::is_quoted) {
                self.line += line_breaks(bytes) as u64;
            }
            let is_blank = match self.form {
                Form::Csv { .. } => length == 0 && self.width != Some(1),
                Form::NdJson => bytes.trim_ascii().is_empty(),
            };
            if is_blank {
                continue;
            }
            let content = self.check(start..start + length);
            return Ok(Some(FileRecord { line, content }));
        }
    }

    fn check(&mut self, range: Range<usize>) -> Result<(&str, &[CellRange]), (RecordFault, String)> {
        let bytes = &self.buffer[range];
        let lossy = || String::from_utf8_lossy(bytes).into_owned();
        if bytes.len() > RECORD_MAX_BYTES {
            return Err((too_long(), excerpt(bytes)));
        }
        let Ok(text) = simdutf8::basic::from_utf8(bytes) else {
            return Err((RecordFault::body("The line is not UTF-8."), lossy()));
        };
        match self.form {
            Form::Csv { .. } => {
                let width = *self.width.get_or_insert(self.cells.len());
                let found = self.cells.len();
                if found != width {
                    let message = format!("The line has {found} cells, but the header row has {width}.");
                    return Err((RecordFault::body(message), lossy()));
                }
                Ok((text, &self.cells))
            }
            Form::NdJson => {
                let text = text.trim_ascii();
                if let Err(error) = serde_json::from_str::<&RawValue>(text) {
                    let message = format!("The line is no JSON: {error}.");
                    return Err((RecordFault { code: "invalid_json", message }, lossy()));
                }
                match text.starts_with('{') {
                    true => Ok((text, &[])),
                    false => Err((RecordFault::body("The line must be a JSON object."), lossy())),
                }
            }
        }
    }

    fn fill(&mut self) -> io::Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        let is_first = self.line == 1 && self.begin == 0 && self.buffer.is_empty();
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        // A pipe may give more only much later. Reads on only while the buffer is shorter than a byte order mark.
        let mut end = before;
        loop {
            let count = self.source.read(&mut self.buffer[end..])?;
            end += count;
            self.is_ended = count == 0;
            if self.is_ended || end >= BYTE_ORDER_MARK.len() {
                break;
            }
        }
        self.buffer.truncate(end);
        if is_first && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.begin = BYTE_ORDER_MARK.len();
        }
        Ok(end > before)
    }

    fn scan_line(&self) -> Scan {
        match self.first_line() {
            Some((length, next)) => Scan::Record { length, next },
            None => Scan::Incomplete,
        }
    }

    fn first_line(&self) -> Option<(usize, usize)> {
        let bytes = &self.buffer[self.begin..];
        let end = match self.form {
            Form::Csv { .. } => memchr::memchr2(b'\r', b'\n', bytes),
            Form::NdJson => memchr::memchr(b'\n', bytes),
        };
        match end.map(|end| (end, &bytes[end..])) {
            Some((end, [b'\r', b'\n', ..])) => Some((end, end + 2)),
            Some((_, [b'\r'])) | None if !self.is_ended => None,
            Some((end, _)) => Some((end, end + 1)),
            None => Some((bytes.len(), bytes.len())),
        }
    }

    fn scan_csv(&mut self, delimiter: u8) -> Scan {
        let bytes = &self.buffer[self.begin..];
        self.cells.clear();
        let mut at = 0;
        loop {
            let start = at;
            let is_quoted = bytes.get(at) == Some(&b'"');
            if is_quoted {
                at += 1;
                loop {
                    match memchr::memchr(b'"', &bytes[at..]) {
                        Some(quote) => at += quote + 1,
                        None if self.is_ended => {
                            return Scan::Broken(RecordFault::body("The quotes of a cell are not closed."));
                        }
                        None => return Scan::Incomplete,
                    }
                    match bytes.get(at) {
                        Some(b'"') => at += 1,
                        None if !self.is_ended => return Scan::Incomplete,
                        _ => break,
                    }
                }
                if bytes.get(at).is_some_and(|&next| next != delimiter && !matches!(next, b'\r' | b'\n')) {
                    let message = "Text follows the closing quote of a cell; a quote inside must be doubled.";
                    return Scan::Broken(RecordFault::body(message));
                }
            } else {
                match memchr::memchr3(delimiter, b'\r', b'\n', &bytes[at..]) {
                    Some(end) => at += end,
                    None if self.is_ended => at = bytes.len(),
                    None => return Scan::Incomplete,
                }
            }
            self.cells.push(CellRange { range: start..at, is_quoted });
            match bytes.get(at) {
                Some(&next) if next == delimiter => at += 1,
                Some(b'\r') => match bytes.get(at + 1) {
                    None if !self.is_ended => return Scan::Incomplete,
                    Some(b'\n') => return Scan::Record { length: at, next: at + 2 },
                    _ => return Scan::Record { length: at, next: at + 1 },
                },
                Some(_) => return Scan::Record { length: at, next: at + 1 },
                None => return Scan::Record { length: at, next: at },
            }
        }
    }

    fn broken(&mut self, fault: RecordFault) -> FileRecord<'_> {
        let (length, next) = self.first_line().unwrap_or_default();
        let text = excerpt(self.buffer[self.begin..self.begin + length].trim_ascii_end());
        let line = self.line;
        self.begin += next;
        self.line += 1;
        FileRecord { line, content: Err((fault, text)) }
    }

    /// Returns the fault, and skips only the rest of the first line, since the quotes may not be closed.
    fn too_long(&mut self) -> io::Result<FileRecord<'_>> {
        let text = excerpt(&self.buffer[self.begin..]);
        let next = loop {
            if let Some((_, next)) = self.first_line() {
                break next;
            }
            // A CR at the end may be followed by its LF.
            self.begin = self.buffer.len() - usize::from(self.buffer.ends_with(b"\r"));
            self.fill()?;
        };
        self.begin += next;
        let line = self.line;
        self.line += 1;
        Ok(FileRecord { line, content: Err((too_long(), text)) })
    }
}

fn too_long() -> RecordFault {
    let message = format!("The line has more than {RECORD_MAX_BYTES} bytes, or its quotes are not closed.");
    RecordFault { code: "body_too_large", message }
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Form = Form::Csv { delimiter: b',' };

    /// A source that gives one byte at a time.
    struct Bytewise<'a>(&'a [u8]);

    impl Read for Bytewise<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let (first, rest) = self.0.split_at(self.0.len().min(1).min(into.len()));
            into[..first.len()].copy_from_slice(first);
            self.0 = rest;
            Ok(first.len())
        }
    }

    /// Returns each record as `line:value|value`, with `~` for NULL and `!` before the code of a fault.
    fn read(text: &[u8], form: Form) -> Vec<String> {
        let mut records = FileRecords::new(Bytewise(text), form);
        let mut all = Vec::new();
        while let Some(FileRecord { line, content }) = records.next().unwrap() {
            all.push(match content {
                Ok((text, [])) => format!("{line}:{text}"),
                Ok((text, cells)) => {
                    let cells: Vec<_> =
                        cells.iter().map(|cell| cell.value(text).unwrap_or_else(|| "~".to_owned())).collect();
                    format!("{line}:{}", cells.join("|"))
                }
                Err((fault, text)) => format!("{line}:!{} {text}", fault.code),
            });
        }
        all
    }

    #[test]
    fn csv_is_split_into_cells_with_the_line_of_each_record() {
        for (text, expected) in [
            (&b""[..], vec![]),
            (b"\xEF\xBB\xBFa,b\r\n1,\"\"\r\n\r\n,2", vec!["1:a|b", "2:1|", "4:~|2"]),
            (b"a,b\n\"x\ny\",\"say \"\"hi\"\"\"\nz,5\" pipe", vec!["1:a|b", "2:x\ny|say \"hi\"", "4:z|5\" pipe"]),
            (b"a\n\n1\r2", vec!["1:a", "2:~", "3:1", "4:2"]),
            (b"a,b\n1\n2,3,4\n5,6", vec!["1:a|b", "2:!invalid_body 1", "3:!invalid_body 2,3,4", "4:5|6"]),
            (b"a,b\n\"1\" ,2\n3,4", vec!["1:a|b", "2:!invalid_body \"1\" ,2", "3:3|4"]),
            (b"a,b\n\"1,2\n3,4", vec!["1:a|b", "2:!invalid_body \"1,2", "3:3|4"]),
            (b"a,b\r\"1\" ,2\r3,4", vec!["1:a|b", "2:!invalid_body \"1\" ,2", "3:3|4"]),
            (b"a,b\r\n\"1\" ,2\r\n3,4", vec!["1:a|b", "2:!invalid_body \"1\" ,2", "3:3|4"]),
            (b"a,b\r\"1,2\r3,4", vec!["1:a|b", "2:!invalid_body \"1,2", "3:3|4"]),
            (b"a,b\r\"x\ry\r\nz\",2\r3,4", vec!["1:a|b", "2:x\ry\r\nz|2", "5:3|4"]),
            (b"a,b\n\xff,2\n3,4", vec!["1:a|b", "2:!invalid_body \u{fffd},2", "3:3|4"]),
        ] {
            assert_eq!(read(text, COMMA), expected, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(read(b"a;b\n1,5;2", Form::Csv { delimiter: b';' }), ["1:a|b", "2:1,5|2"]);
    }

    #[test]
    fn lines_of_json_are_checked() {
        let text = b"{\"a\":1}\n\n [1]\n{\"a\":\n  {\"b\":2} ";
        let expected = ["1:{\"a\":1}", "3:!invalid_body  [1]", "4:!invalid_json {\"a\":", "5:{\"b\":2}"];
        assert_eq!(read(text, Form::NdJson), expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_and_dropped() {
        for line_break in ["\n", "\r", "\r\n"] {
            let long = "x".repeat(2 * RECORD_MAX_BYTES + READ_BYTES);
            let text = ["a,b", &long, "1,2", ""].join(line_break);
            let mut records = FileRecords::new(text.as_bytes(), COMMA);
            assert!(records.next().unwrap().unwrap().content.is_ok());
            let (fault, _) = records.next().unwrap().unwrap().content.unwrap_err();
            assert_eq!(fault.code, "body_too_large");
            assert_eq!(records.next().unwrap().unwrap().line, 3);
            assert!(records.next().unwrap().is_none());
            assert!(records.buffer.capacity() < 4 * RECORD_MAX_BYTES, "{}", records.buffer.capacity());
        }
    }
}
