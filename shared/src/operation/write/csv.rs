//! Splits CSV (RFC 4180) into records and cells. Lines end with CRLF, LF or CR. In a cell that does not begin with a
//! quote, a quote is an ordinary character.

use super::body;
use crate::error::Problem;
use crate::limits::JSON_MEMBERS_MAX_COUNT;
use std::borrow::Cow;

/// `None` for an empty cell without quotes, which stands for NULL.
pub(super) type CsvCell<'a> = Option<Cow<'a, str>>;

#[derive(Debug)]
pub(super) struct CsvRecords<'a> {
    rest: &'a str,
    line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvRecord<'a> {
    pub(super) line: usize,
    pub(super) cells: Vec<CsvCell<'a>>,
}

impl<'a> CsvRecords<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// Returns the next record. Fails for a broken quoted cell, or for more than [`JSON_MEMBERS_MAX_COUNT`] cells.
    pub(super) fn next(&mut self) -> Result<Option<CsvRecord<'a>>, Problem> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let line = self.line;
        let mut cells = Vec::new();
        loop {
            if cells.len() == JSON_MEMBERS_MAX_COUNT {
                return Err(body(format!("Line {line} has more than {JSON_MEMBERS_MAX_COUNT} cells.")));
            }
            cells.push(match self.rest.strip_prefix('"') {
                Some(rest) => Some(self.quoted(rest)?),
                None => self.bare(),
            });
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            self.line += 1;
            let rest = self.rest;
            self.rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix(['\r', '\n'])).unwrap_or_default();
            return Ok(Some(CsvRecord { line, cells }));
        }
    }

    fn bare(&mut self) -> CsvCell<'a> {
        let end = memchr::memchr3(b',', b'\r', b'\n', self.rest.as_bytes()).unwrap_or(self.rest.len());
        let (cell, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!cell.is_empty()).then_some(Cow::Borrowed(cell))
    }

    fn quoted(&mut self, text: &'a str) -> Result<Cow<'a, str>, Problem> {
        let begins = self.line;
        let (mut cell, mut rest) = (Cow::Borrowed(""), text);
        loop {
            let Some(end) = memchr::memchr(b'"', rest.as_bytes()) else {
                return Err(body(format!("The quotes of a cell in line {begins} are not closed.")));
            };
            self.line += line_breaks(&rest.as_bytes()[..end]);
            let behind = &rest[end + 1..];
            if let Some(next) = behind.strip_prefix('"') {
                // A doubled quote stands for one quote.
                cell.to_mut().push_str(&rest[..=end]);
                rest = next;
                continue;
            }
            match cell.is_empty() {
                true => cell = Cow::Borrowed(&rest[..end]),
                false => cell.to_mut().push_str(&rest[..end]),
            }
            if !(behind.is_empty() || behind.starts_with([',', '\r', '\n'])) {
                return Err(body(format!("Text follows the closing quote of a cell in line {}.", self.line))
                    .with_hint("Double each quote inside of a quoted cell."));
            }
            self.rest = behind;
            return Ok(cell);
        }
    }
}

/// Counts line breaks: CRLF, LF or CR.
pub fn line_breaks(text: &[u8]) -> usize {
    let count = |(count, before): (usize, u8), byte: &u8| {
        let is_break = *byte == b'\r' || (*byte == b'\n' && before != b'\r');
        (count + usize::from(is_break), *byte)
    };
    text.iter().fold((0, 0), count).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::write_csv;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<CsvRecord<'_>>, Problem> {
        let mut records = CsvRecords::new(text);
        let mut all = Vec::new();
        while let Some(record) = records.next()? {
            all.push(record);
        }
        Ok(all)
    }

    #[test]
    fn records_end_with_their_line_unless_quotes_are_open() {
        let cell = |text| Some(Cow::Borrowed(text));
        for (text, expected) in [
            ("", vec![]),
            ("a", vec![(1, vec![cell("a")])]),
            ("a,b\r\nc,\"\"\n", vec![(1, vec![cell("a"), cell("b")]), (2, vec![cell("c"), cell("")])]),
            ("a\rb\n\nc", vec![(1, vec![cell("a")]), (2, vec![cell("b")]), (3, vec![None]), (4, vec![cell("c")])]),
            ("\"x\ny\"\"\",\nz", vec![(1, vec![cell("x\ny\""), None]), (3, vec![cell("z")])]),
            ("\"x\ry\r\n\"\"\r\"\rz", vec![(1, vec![cell("x\ry\r\n\"\r")]), (5, vec![cell("z")])]),
            (" \"a\" ,5\" pipe", vec![(1, vec![cell(" \"a\" "), cell("5\" pipe")])]),
            ("\"\"\"\"\"\",ü", vec![(1, vec![cell("\"\""), cell("ü")])]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(line, cells)| CsvRecord { line, cells }).collect();
            assert_eq!(read(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn quotes_that_can_not_be_meant_are_refused_with_their_line() {
        for (text, part) in
            [("a\n\"b", "line 2 are not closed"), ("\"a\n\nb\"c", "a cell in line 3"), ("\"a\" ,b", "a cell in line 1")]
        {
            assert!(read(text).unwrap_err().message().contains(part), "{text:?}");
        }
        assert!(read(&",".repeat(JSON_MEMBERS_MAX_COUNT)).is_err());
    }

    proptest! {
        #[test]
        fn cells_read_back_equal(rows in prop::collection::vec(prop::collection::vec(prop::option::of("[a,\"\r\n é]{0,6}"), 2..4), 0..4)) {
            let mut text = Vec::new();
            for row in &rows {
                for (at, cell) in row.iter().enumerate() {
                    if at > 0 {
                        text.push(b',');
                    }
                    cell.iter().for_each(|cell| write_csv(&mut text, cell));
                }
                text.extend_from_slice(b"\r\n");
            }
            let text = String::from_utf8(text).unwrap();
            let read: Vec<_> = read(&text).unwrap().into_iter().map(|record| record.cells).collect();
            let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| cell.as_deref().map(Cow::from)).collect()).collect();
            prop_assert_eq!(read, rows);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a,\"\r\n é]{0,30}") {
            let _ = read(&text);
        }
    }
}
