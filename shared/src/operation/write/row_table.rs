//! Parses the rows of `batchData`, of CSV and of NDJSON. Objects with different keys become rows of the same fields.

use super::csv::{CsvRecord, CsvRecords};
use super::import::{Import, in_line};
use super::{body, field};
use crate::error::{ErrorCode, Faults, Problem};
use crate::format::Format;
use crate::ident::{FieldName, shown};
use crate::json::{self, RawParts, Value};
use crate::limits::{BATCH_MAX_CELLS, BATCH_MAX_ROWS, JSON_MEMBERS_MAX_COUNT};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// A row's values in the order of the fields; `None` where the row does not name the field.
pub(super) type FieldValues = Vec<Option<Value>>;

#[derive(Default)]
pub(super) struct RowTable {
    fields: Vec<FieldName>,
    columns: HashMap<Box<str>, usize>,
    rows: Vec<FieldValues>,
}

impl RowTable {
    pub(super) fn read(list: &str) -> Result<(Vec<FieldName>, Vec<FieldValues>), Problem> {
        let (mut table, mut faults) = (Self::default(), Faults::default());
        let mut parts = RawParts::inside(list);
        while let Some(first) = parts.first_byte() {
            let (at, whole) = (table.rows.len(), parts);
            table.check_room("batchData")?;
            let cells = match first {
                b'{' => {
                    parts.pass_bracket();
                    table.cells(&mut parts)?
                }
                _ => None,
            };
            match cells {
                Some(_) => parts.pass_bracket(),
                None => {
                    parts = whole;
                    let row = parts.next().unwrap_or_default();
                    faults.add(|| unreadable_row(&format!("batchData[{at}]"), row).with_row(at));
                    if faults.is_full() {
                        break;
                    }
                }
            }
            table.push(cells.unwrap_or_default(), "batchData")?;
        }
        faults.end()?;
        table.finish("batchData")
    }

    /// Parses NDJSON. Skips lines of white space.
    pub(super) fn lines(bytes: &[u8]) -> Result<(Vec<FieldName>, Vec<FieldValues>, Import), Problem> {
        let (mut table, mut import) = (Self::default(), Import::new(Format::NdJson));
        for (at, text) in json::check(bytes)?.split('\n').enumerate() {
            let (line, text) = (at + 1, text.trim_ascii());
            if text.is_empty() {
                continue;
            }
            table.check_room(BODY)?;
            let row = table.rows.len();
            let unreadable_row = || unreadable_row(&format!("Line {line}"), text).with_row(row);
            if serde_json::from_str::<&RawValue>(text).is_err() || !text.starts_with('{') {
                return Err(unreadable_row());
            }
            let cells = table.cells(&mut RawParts::inside(text));
            let cells = cells.map_err(|problem| in_line(line, &problem).with_row(row))?;
            table.push(cells.ok_or_else(unreadable_row)?, BODY)?;
            import.begin_row(line);
        }
        let (fields, rows) = table.finish(BODY)?;
        Ok((fields, rows, import))
    }

    /// Parses CSV. The first record names the fields. An empty cell without quotes is null.
    pub(super) fn csv(bytes: &[u8]) -> Result<(Vec<FieldName>, Vec<FieldValues>, Import), Problem> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = std::str::from_utf8(bytes)
            .map_err(|fault| body(format!("The body is not UTF-8: byte {} is broken.", fault.valid_up_to())))?;
        let (mut table, mut import) = (Self::default(), Import::new(Format::Csv));
        let mut records = CsvRecords::new(text);
        let Some(header) = records.next()? else {
            return Err(body("The body has no header row, which names the fields.".to_owned()));
        };
        for name in header.cells {
            // No column's name ends with a blank.
            let name = name.as_deref().unwrap_or_default().trim_end_matches(' ');
            table.fields.push(field(name)?);
            if table.columns.insert(name.into(), table.fields.len() - 1).is_some() {
                return Err(body(format!("The header row names {} more than once.", shown(name))));
            }
        }
        let width = table.fields.len();
        while let Some(CsvRecord { line, cells }) =
            records.next().map_err(|problem| problem.with_row(table.rows.len()))?
        {
            // An empty line is skipped, unless records have only one cell.
            if width > 1 && matches!(cells[..], [None]) {
                continue;
            }
            table.check_room(BODY)?;
            if cells.len() != width {
                let message = format!("Line {line} has {} cells, but the header row has {width}.", cells.len());
                return Err(body(message)
                    .with_row(table.rows.len())
                    .with_hint("Quote each cell that contains a comma, a quote or a line break."));
            }
            let value =
                |cell: Option<_>| cell.map_or(Value::Null, |text: std::borrow::Cow<'_, str>| Value::Text(text.into()));
            table.push(cells.into_iter().map(|cell| Some(value(cell))).collect(), BODY)?;
            import.begin_row(line);
        }
        let (fields, rows) = table.finish(BODY)?;
        Ok((fields, rows, import))
    }

    fn check_room(&self, source: &str) -> Result<(), Problem> {
        if self.rows.len() < BATCH_MAX_ROWS {
            return Ok(());
        }
        Err(body(format!("{source} has more than {BATCH_MAX_ROWS} rows, the maximum per request.")))
    }

    /// Parses a row; `None` if the object repeats a key, has too many keys, or has a string with an invalid escape.
    fn cells(&mut self, members: &mut RawParts<'_>) -> Result<Option<FieldValues>, Problem> {
        let mut cells = vec![None; self.fields.len()];
        let mut nth = 0;
        while let (Some(name), Some(value)) = (members.next(), members.next()) {
            let (Ok(name), Ok(value)) = (json::string(name), Value::of(value)) else {
                return Ok(None);
            };
            // Fast path: most rows name the same fields in the same order.
            let is_expected = (self.fields.get(nth)).is_some_and(|field| field.as_str() == name);
            let known = if is_expected { Some(nth) } else { self.columns.get(&*name).copied() };
            let column = match known {
                Some(column) => column,
                None => {
                    self.fields.push(field(&name)?);
                    self.columns.insert(name.into(), self.fields.len() - 1);
                    cells.push(None);
                    self.fields.len() - 1
                }
            };
            nth += 1;
            if cells[column].replace(value).is_some() || nth > JSON_MEMBERS_MAX_COUNT {
                return Ok(None);
            }
        }
        Ok(Some(cells))
    }

    fn push(&mut self, cells: FieldValues, source: &str) -> Result<(), Problem> {
        self.rows.push(cells);
        if self.rows.len() * self.fields.len() > BATCH_MAX_CELLS {
            return Err(body(format!(
                "{source} has more than {BATCH_MAX_CELLS} cells: its rows, times the {} fields that they name.",
                self.fields.len()
            ))
            .with_hint("Send the records in several requests."));
        }
        Ok(())
    }

    fn finish(mut self, source: &str) -> Result<(Vec<FieldName>, Vec<FieldValues>), Problem> {
        if self.rows.is_empty() {
            return Err(body(match source {
                BODY => "The body has no record.".to_owned(),
                source => format!("{source} is empty."),
            }));
        }
        let width = self.fields.len();
        for row in &mut self.rows {
            row.resize(width, None);
        }
        Ok((self.fields, self.rows))
    }
}

const BODY: &str = "The body";

fn unreadable_row(name: &str, text: &str) -> Problem {
    match (json::value(text), json::members(text)) {
        (Ok(Value::Object(_)), Err(fault)) => body(format!("{name} can't be read: {fault}.")),
        (Ok(other), _) => body(format!("{name} must be an object, not {}.", other.kind())),
        (Err(fault), _) if fault.is_data() => body(format!("{name} can't be read: {fault}.")),
        (Err(fault), _) => Problem::new(ErrorCode::InvalidJson, format!("{name} is not valid JSON: {fault}.")),
    }
}
