//! Reads a file into batches. The same file, options and mapping always give the same batches, so that a batch that is
//! sent again has the same bytes as before.

use std::io;
use std::ops::Range;

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use shared::format::Format;
use shared::limits::BATCH_MAX_CELLS;
use tokio::sync::mpsc;
use twox_hash::XxHash3_128;

use super::survey::Survey;
use crate::transfer::records::{CellRange, FileRecord, FileRecords};
use crate::transfer::refusals::{Reason, Reject};
use crate::transfer::{Form, MappedColumn};

/// The maximum size of a batch, except for a single larger row and for quotes added to the last row's cells.
const BATCH_MAX_BYTES: usize = 1024 * 1024;

const COMMA: u8 = b',';

#[derive(Clone, Debug)]
pub(super) struct FileLayout {
    form: Form,
    header: Vec<u8>,
    /// The field of each column; `None` leaves the column out.
    fields: Vec<Option<String>>,
}

#[derive(Debug)]
pub(super) struct Faulty {
    line: u64,
    reason: Reason,
    text: String,
}

impl Faulty {
    pub(super) fn reject(&self) -> Reject<'_> {
        Reject { line: self.line, reason: &self.reason, row: None, text: Some(&self.text) }
    }
}

#[derive(Debug)]
pub(super) struct RowBatch {
    pub(super) number: u64,
    /// Each row's line number in the file, and its range in `bytes`.
    rows: Vec<(u64, Range<usize>)>,
    /// The rows as CSV without the header row, or as NDJSON.
    bytes: Vec<u8>,
    pub(super) faults: Vec<Faulty>,
    faulty_bytes: usize,
    /// A hash of the rows and last line numbers of all batches up to and including this one.
    pub(super) hash: String,
    pub(super) last_line: u64,
}

impl RowBatch {
    fn new(number: u64) -> Self {
        let (rows, bytes, faults) = (Vec::new(), Vec::new(), Vec::new());
        Self { number, rows, bytes, faults, faulty_bytes: 0, hash: String::new(), last_line: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.rows.len()).collect()
    }
}

impl FileLayout {
    pub(super) fn new(form: Form, columns: &[MappedColumn]) -> Self {
        let fields: Vec<Option<String>> =
            columns.iter().map(|column| column.field.as_ref().map(|(name, _)| name.clone())).collect();
        let mut header = Vec::new();
        if form != Form::NdJson {
            for name in fields.iter().flatten() {
                if !header.is_empty() {
                    header.push(COMMA);
                }
                header.extend_from_slice(format!("\"{}\"", name.replace('"', "\"\"")).as_bytes());
            }
            end_row(&mut header);
        }
        Self { form, header, fields }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    pub(super) fn content_type(&self) -> &'static str {
        match self.form {
            Form::Csv { .. } => "text/csv",
            Form::NdJson => Format::NdJson.content_type(),
        }
    }

    pub(super) fn body(&self, batch: &RowBatch, rows: &[usize]) -> Vec<u8> {
        let mut body = self.header.clone();
        if rows.len() == batch.len() {
            body.extend_from_slice(&batch.bytes);
            return body;
        }
        for (_, range) in rows.iter().filter_map(|row| batch.rows.get(*row)) {
            body.extend_from_slice(&batch.bytes[range.clone()]);
        }
        body
    }

    pub(super) fn reject<'a>(&self, batch: &RowBatch, row: usize, reason: &'a Reason) -> Reject<'a> {
        let (line, range) = batch.rows.get(row).cloned().unwrap_or_default();
        let text = String::from_utf8_lossy(&batch.bytes[range]);
        let row = match self.form {
            Form::NdJson => serde_json::from_str::<Box<RawValue>>(text.trim_ascii()).ok(),
            Form::Csv { .. } => to_raw_value(&self.object(text.as_bytes())).ok(),
        };
        Reject { line, reason, row, text: None }
    }

    fn object(&self, row: &[u8]) -> RowObject {
        let mut records = FileRecords::new(row, Form::Csv { delimiter: COMMA });
        let Ok(Some(FileRecord { content: Ok((text, cells)), .. })) = records.next() else {
            return RowObject(Vec::new());
        };
        let names = self.fields.iter().flatten();
        RowObject(names.zip(cells).map(|(name, cell)| (name.clone(), cell.value(text))).collect())
    }

    fn push(&self, batch: &mut RowBatch, line: u64, text: &str, cells: &[CellRange]) {
        let begin = batch.bytes.len();
        match self.form {
            Form::NdJson => batch.bytes.extend_from_slice(text.as_bytes()),
            Form::Csv { .. } => {
                let kept = cells.iter().zip(&self.fields).filter(|(_, field)| field.is_some());
                for (nth, (cell, _)) in kept.enumerate() {
                    if nth > 0 {
                        batch.bytes.push(COMMA);
                    }
                    push_cell(&mut batch.bytes, cell.raw(text), cell.is_quoted());
                }
            }
        }
        end_row(&mut batch.bytes);
        batch.rows.push((line, begin..batch.bytes.len()));
    }
}

struct RowObject(Vec<(String, Option<String>)>);

impl Serialize for RowObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Appends a cell. A cell without quotes gets quotes if it contains a comma, as with another delimiter.
fn push_cell(bytes: &mut Vec<u8>, raw: &str, is_quoted: bool) {
    let needs_quotes = !is_quoted && memchr::memchr(COMMA, raw.as_bytes()).is_some();
    if needs_quotes {
        bytes.push(b'"');
        bytes.extend_from_slice(raw.replace('"', "\"\"").as_bytes());
        bytes.push(b'"');
    } else {
        bytes.extend_from_slice(raw.as_bytes());
    }
}

fn end_row(bytes: &mut Vec<u8>) {
    bytes.push(b'\n');
}

/// Reads batches of `batch_rows` rows, or of fewer rows within [`BATCH_MAX_BYTES`], and sends them. Blocks.
pub(super) fn read(
    survey: Survey,
    layout: &FileLayout,
    batch_rows: usize,
    batches: &mpsc::Sender<RowBatch>,
) -> io::Result<()> {
    let mut records = FileRecords::new(survey.source, layout.form);
    if layout.form != Form::NdJson {
        records.next()?;
    }
    let batch_rows = batch_rows.min(BATCH_MAX_CELLS / layout.fields.len().max(1)).max(1);
    let (mut hasher, mut batch) = (XxHash3_128::new(), RowBatch::new(0));
    let mut send = |batch: RowBatch| {
        hasher.write(&batch.bytes);
        hasher.write(&batch.last_line.to_le_bytes());
        let hash = format!("{:032x}", hasher.finish_128());
        batches.blocking_send(RowBatch { hash, ..batch }).is_ok()
    };
    while let Some(FileRecord { line, content }) = records.next()? {
        let length = content.as_ref().map_or_else(|(_, text)| text.len(), |(text, _)| text.len());
        let batch_bytes = batch.bytes.len() + batch.faulty_bytes;
        let is_full = batch_bytes + length > BATCH_MAX_BYTES && batch_bytes > 0;
        if is_full || batch.rows.len() + batch.faults.len() == batch_rows {
            let number = batch.number + 1;
            if !send(std::mem::replace(&mut batch, RowBatch::new(number))) {
                return Ok(());
            }
        }
        match content {
            Ok((text, cells)) => layout.push(&mut batch, line, text, cells),
            Err((fault, text)) => {
                batch.faulty_bytes += length;
                batch.faults.push(Faulty { line, reason: fault.into(), text });
            }
        }
        batch.last_line = line;
    }
    if batch.last_line > 0 {
        send(batch);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_can_not_be_read_fill_a_batch_too() {
        let wrong = format!("[\"{}\"]\n", "x".repeat(BATCH_MAX_BYTES / 2));
        let text = ["{}\n{}\n", &wrong, &wrong, &wrong, "{}\n"].concat();
        let source = Box::new(io::Cursor::new(text));
        let survey = Survey { form: Form::NdJson, columns: Vec::new(), rows: 0, is_whole: false, source };
        let (sender, mut batches) = mpsc::channel(10);
        read(survey, &FileLayout::new(Form::NdJson, &[]), 1_000, &sender).unwrap();
        let lengths = std::iter::from_fn(|| batches.try_recv().ok()).map(|batch| (batch.len(), batch.faults.len()));
        assert_eq!(lengths.collect::<Vec<_>>(), [(2, 1), (0, 1), (1, 1)]);
    }
}
