//! Reads the beginning of a file, or all of it, to find its form, its columns and the types of their values.

use std::io::{self, Cursor, Read};

use serde_json::value::RawValue;
use shared::ident::shown;
use shared::json::body_members;

use crate::transfer::column_type::{Values, ValuesRead};
use crate::transfer::columns::{FileColumn, check_header};
use crate::transfer::records::{FileRecord, FileRecords};
use crate::transfer::{Form, Input, MappedColumn, TransferError};

const SAMPLE_MAX_ROWS: u64 = 1_000;
const SAMPLE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of columns, which is InnoDB's limit.
const COLUMNS_MAX_COUNT: usize = 1_017;

pub(super) struct Survey {
    pub(super) form: Form,
    pub(super) columns: Vec<FileColumn>,
    /// The number of rows, without lines that can't be read as rows.
    pub(super) rows: u64,
    pub(super) is_whole: bool,
    pub(super) source: Box<dyn Read + Send>,
}

/// A reader that keeps all bytes that it returns, so that they can be read again.
struct Kept<R> {
    source: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        self.bytes.extend_from_slice(&into[..count]);
        Ok(count)
    }
}

impl Survey {
    /// Reads the file; blocks. Standard input must be a [`ValuesRead::Sample`], since it can't be read twice.
    pub(super) fn of(input: &Input, form: Option<Form>, extent: ValuesRead) -> Result<Self, TransferError> {
        let failed = |error: io::Error| input.unreadable(&error, None);
        let mut source = input.open()?;
        let mut first = Vec::new();
        source.by_ref().take(512).read_to_end(&mut first).map_err(failed)?;
        if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
            let message = format!("{} is UTF-16, not UTF-8", input.name());
            return Err(TransferError::usage(message, "convert it: iconv -f UTF-16 -t UTF-8"));
        }
        let begins = |byte: u8| first.trim_ascii_start().first() == Some(&byte);
        let form = form.or_else(|| input.form()).unwrap_or(if begins(b'{') {
            Form::NdJson
        } else {
            Form::Csv { delimiter: b',' }
        });
        let whole = Cursor::new(first).chain(source);
        let mut survey = Self { form, columns: Vec::new(), rows: 0, is_whole: false, source: Box::new(io::empty()) };
        match extent {
            ValuesRead::Whole => {
                survey.look(FileRecords::new(whole, form), extent, input)?;
                survey.source = input.open()?;
            }
            ValuesRead::Sample => {
                let mut kept = Kept { source: whole, bytes: Vec::new() };
                survey.look(FileRecords::new(&mut kept, form), extent, input)?;
                survey.source = Box::new(Cursor::new(kept.bytes).chain(kept.source));
            }
        }
        if survey.columns.is_empty() {
            let message = format!("{} is empty", input.name());
            return Err(TransferError::usage(message, "the first row of CSV names the fields"));
        }
        Ok(survey)
    }

    fn look<R: Read>(
        &mut self,
        mut records: FileRecords<R>,
        extent: ValuesRead,
        input: &Input,
    ) -> Result<(), TransferError> {
        let failed = |error: io::Error| input.unreadable(&error, None);
        if let Form::Csv { delimiter } = self.form {
            let Some(header) = records.next().map_err(failed)? else { return Ok(()) };
            let (text, cells) = header.content.map_err(|(fault, _)| {
                let message = format!("the header row can't be read: {}", fault.message.trim_end_matches('.'));
                TransferError::usage(message, "the first row of CSV must name the fields, in UTF-8")
            })?;
            let names = cells.iter().map(|cell| cell.value(text).unwrap_or_default());
            let names: Vec<String> = names.map(|name| name.trim_end_matches(' ').to_owned()).collect();
            check_header(&names, delimiter)?;
            self.columns = names.into_iter().map(|name| FileColumn { name, values: Values::default() }).collect();
        }
        let mut bytes = 0;
        while extent == ValuesRead::Whole || (self.rows < SAMPLE_MAX_ROWS && bytes < SAMPLE_MAX_BYTES) {
            let Some(FileRecord { content, .. }) = records.next().map_err(failed)? else {
                self.is_whole = true;
                break;
            };
            let Ok((text, cells)) = content else { continue };
            self.rows += 1;
            bytes += text.len();
            for (column, cell) in self.columns.iter_mut().zip(cells) {
                match cell.value(text) {
                    Some(value) => column.values.add_text(&value),
                    None => column.values.add_null(),
                }
            }
            if self.form == Form::NdJson {
                self.add_object(text)?;
            }
        }
        Ok(())
    }

    fn add_object(&mut self, text: &str) -> Result<(), TransferError> {
        let Ok(members) = body_members::<&RawValue>(text.as_bytes()) else { return Ok(()) };
        for (nth, (name, value)) in members.iter().enumerate() {
            let at = match self.columns.get(nth) {
                Some(column) if column.name == *name => nth,
                _ => match self.columns.iter().position(|column| column.name == *name) {
                    Some(at) => at,
                    None if self.columns.len() == COLUMNS_MAX_COUNT => {
                        let message = format!("the objects have more than {COLUMNS_MAX_COUNT} different keys");
                        return Err(TransferError::usage(message, "a table has at most so many fields"));
                    }
                    None => {
                        let mut values = Values::default();
                        if self.rows > 1 {
                            values.add_null();
                        }
                        self.columns.push(FileColumn { name: name.clone().into_owned(), values });
                        self.columns.len() - 1
                    }
                },
            };
            if let Some(column) = self.columns.get_mut(at) {
                column.values.add_json(value);
            }
        }
        Ok(())
    }

    /// Checks that the keys of JSON objects, which are sent unchanged, equal the names of the fields.
    pub(super) fn check_mapping(&self, columns: &[MappedColumn]) -> Result<(), TransferError> {
        if self.form != Form::NdJson {
            return Ok(());
        }
        let is_same = |column: &&MappedColumn| column.field.as_ref().is_some_and(|(name, _)| *name == column.column);
        match columns.iter().find(|column| !is_same(column)) {
            None => Ok(()),
            Some(MappedColumn { column, field: None, .. }) => {
                let message = format!("the field {} can't be written, or is left out by --map", shown(column));
                Err(TransferError::usage(message, "NDJSON is sent as it is: leave the key out of the file"))
            }
            Some(MappedColumn { column, field: Some((name, _)), .. }) => {
                let message = format!("the key {} is not the name of the field {}", shown(column), shown(name));
                Err(TransferError::usage(message, "NDJSON is sent as it is: rename the key in the file"))
            }
        }
    }
}
