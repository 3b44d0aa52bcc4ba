//! Rows of followed tables as JSON arrays with one cell for each column of the logged table, in the order of the log.
//! Numbers and times are as `SELECT` prints them. Binary strings are in base64, and so are texts in character sets that
//! only MariaDB can convert. If the log leaves columns out of a row, the array has a 1 after the last cell.

use super::LogError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use binlog::charset::{Charset, Utf8};
use binlog::{Cell, ColumnType, Image, RowData, Table, Value};
use shared::envelope::write_string;
use shared::operation::TablePath;
use std::io::Write as _;
use std::sync::Arc;

/// Maximum bytes of the decoded rows of one event. Compressed columns may be a thousand times as long as in the log.
const ROWS_MAX_BYTES: usize = 64 * 1024 * 1024;

/// A table as the log describes it. If its columns change, the reader makes a new `LoggedTable`.
#[derive(Debug, PartialEq, Eq)]
pub struct LoggedTable {
    pub path: TablePath,
    pub columns: Vec<LoggedColumn>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct LoggedColumn {
    pub name: Box<str>,
    /// The collation's number; `None` for types without one.
    pub collation: Option<u16>,
    pub encoding: CellEncoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellEncoding {
    Text,
    Base64,
}

#[derive(Debug)]
pub struct RowChange {
    pub before: Option<RowImage>,
    pub after: Option<RowImage>,
}

impl RowChange {
    pub fn images(&self) -> impl Iterator<Item = &RowImage> {
        self.before.iter().chain(&self.after)
    }

    pub fn bytes(&self) -> usize {
        self.images().map(|image| image.json.len() + size_of_val(&*image.ends) + size_of::<RowImage>()).sum()
    }
}

#[derive(Debug)]
pub struct RowImage {
    json: Box<str>,
    ends: Box<[u32]>,
    absent: Box<[u16]>,
}

impl RowImage {
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The JSON text of one cell.
    pub fn cell(&self, at: usize) -> &str {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        // A comma or the opening bracket stands before each cell.
        let start = at.checked_sub(1).map_or(0, end) + 1;
        self.json.get(start..end(at)).unwrap_or_default()
    }

    /// Whether the row lacks the column.
    pub fn lacks(&self, at: usize) -> bool {
        self.absent.contains(&index(at))
    }

    #[cfg(test)]
    pub fn of_one_cell(cell: Option<&str>) -> Self {
        let json = cell.map_or("[null,1]".to_owned(), |cell| format!("[{cell}]"));
        let end = cell.map_or(5, |cell| cell.len() as u32 + 1);
        Self { json: json.into(), ends: [end].into(), absent: cell.map_or([0].into(), |_| [].into()) }
    }

    /// Whether the row lacks generated columns: MariaDB may leave them out of the log even with
    /// `binlog_row_image=FULL`.
    pub fn is_incomplete(&self) -> bool {
        !self.absent.is_empty()
    }
}

impl LoggedTable {
    pub(super) fn new(path: &TablePath, table: &Table) -> Result<Arc<Self>, LogError> {
        let columns = table.columns.iter().map(|column| {
            let encoding = match (column.column_type, column.collation.map(Charset::of)) {
                (ColumnType::Geometry { .. }, _) | (_, Some(Charset::Binary | Charset::Other)) => CellEncoding::Base64,
                _ => CellEncoding::Text,
            };
            let name = column.name.as_deref().ok_or_else(|| LogError::Unavailable(NO_METADATA.into()))?;
            Ok::<_, LogError>(LoggedColumn { name: name.into(), collation: column.collation, encoding })
        });
        Ok(Arc::new(Self { path: path.clone(), columns: columns.collect::<Result<_, _>>()? }))
    }
}

pub(super) const NO_METADATA: &str = "Set binlog_row_metadata=FULL in MariaDB.";

/// Decodes the rows of one event.
pub(super) fn changes(data: &RowData<'_>, table: &Table, logged: &LoggedTable) -> Result<Vec<RowChange>, LogError> {
    let (mut changes, mut room) = (Vec::new(), ROWS_MAX_BYTES);
    let mut encode = |image: &Image<'_>, before: Option<&RowImage>| {
        let image = encode(image, before, logged, room)?;
        room = room.saturating_sub(image.json.len());
        Ok::<_, LogError>(image)
    };
    for change in data.changes(table)? {
        let change = change?;
        let before = change.before.as_ref().map(|image| encode(image, None)).transpose()?;
        // `binlog_row_image=FULL_NODUP` leaves unchanged columns out of the row after an update.
        let after = change.after.as_ref().map(|image| encode(image, before.as_ref())).transpose()?;
        changes.push(RowChange { before, after });
    }
    Ok(changes)
}

/// Fails with [`LogError::TooLong`] if the row would have more than `max_bytes`.
fn encode(
    image: &Image<'_>,
    before: Option<&RowImage>,
    logged: &LoggedTable,
    max_bytes: usize,
) -> Result<RowImage, LogError> {
    let mut out = Vec::with_capacity(logged.columns.len() * 16);
    let mut ends = Vec::with_capacity(logged.columns.len());
    let mut absent = Vec::new();
    for (at, (cell, column)) in image.cells().zip(&logged.columns).enumerate() {
        out.push(if at == 0 { b'[' } else { b',' });
        match cell? {
            Cell::Null => out.extend_from_slice(b"null"),
            Cell::Absent => match before.filter(|before| !before.absent.contains(&index(at))) {
                Some(before) => out.extend_from_slice(before.cell(at).as_bytes()),
                None => {
                    absent.push(index(at));
                    out.extend_from_slice(b"null");
                }
            },
            Cell::Value(value) => write_value(&value, column.encoding, max_bytes.saturating_sub(out.len()), &mut out)?,
        }
        if out.len() > max_bytes {
            return Err(LogError::TooLong);
        }
        ends.push(u32::try_from(out.len()).map_err(|_| LogError::Undecodable("a row of more than 4 GiB".into()))?);
    }
    if !absent.is_empty() {
        out.extend_from_slice(b",1");
    }
    out.push(b']');
    let json = String::from_utf8(out).map_err(|_| LogError::Undecodable("a text that is not UTF-8".into()))?;
    Ok(RowImage { json: json.into(), ends: ends.into(), absent: absent.into() })
}

fn index(at: usize) -> u16 {
    // MariaDB's tables have at most 4,096 columns.
    u16::try_from(at).unwrap_or(u16::MAX)
}

fn write_value(value: &Value<'_>, encoding: CellEncoding, max_bytes: usize, out: &mut Vec<u8>) -> Result<(), LogError> {
    match (value, encoding) {
        (Value::Signed(number), _) => write!(out, "{number}").map_err(unwritten)?,
        (Value::Unsigned(number), _) => write!(out, "{number}").map_err(unwritten)?,
        (Value::Bit(bit), _) => write!(out, "{bit}").map_err(unwritten)?,
        (Value::Geometry(bytes), _) => write_base64(bytes, out),
        (Value::Text(value), CellEncoding::Base64) => write_base64(&value.bytes(max_bytes)?, out),
        (Value::Enum(value), CellEncoding::Base64) => write_base64(value.member().ok_or_else(no_members)?, out),
        (Value::Set(value), CellEncoding::Base64) => {
            // All character sets that only MariaDB can convert have a comma as ASCII does.
            let members: Vec<_> = value.members().ok_or_else(no_members)?.collect();
            write_base64(&members.join(&b','), out);
        }
        (value, _) => match value.to_utf8(max_bytes)? {
            // A control character takes six bytes in JSON.
            Utf8::Text(value) if value.len() + 5 * value.bytes().filter(u8::is_ascii_control).count() > max_bytes => {
                return Err(LogError::TooLong);
            }
            Utf8::Text(value) => write_string(out, &value),
            Utf8::NeedsServer | Utf8::Binary => {
                return Err(LogError::Undecodable("a text that is not valid in its column's character set".into()));
            }
        },
    }
    Ok(())
}

fn no_members() -> LogError {
    LogError::Unavailable(NO_METADATA.into())
}

fn unwritten(_: std::io::Error) -> LogError {
    LogError::Undecodable("a number".into())
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}
