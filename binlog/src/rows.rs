//! The rows that a statement changed, decoded one by one when they are asked for.

use crate::bytes::{Reader, bit};
use crate::{BrokenRule, Error, EventType, Table, Value, compressed, value};
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowsKind {
    Insert,
    Update,
    Delete,
}

impl RowsKind {
    /// Returns the kind of rows in an event of this type; `None` if such an event has no rows.
    pub fn of(event: EventType) -> Option<Self> {
        match event.0 {
            23 | 30 | 166 | 169 => Some(Self::Insert),
            24 | 31 | 167 | 170 => Some(Self::Update),
            25 | 32 | 168 | 171 => Some(Self::Delete),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    pub kind: RowsKind,
    pub table_id: u64,
    pub flags: u16,
    columns_count: usize,
    /// Bitmaps of the columns that are in each row's first image and, for an update, in its second.
    present: [&'a [u8]; 2],
    stored: &'a [u8],
    event: EventType,
    offset: usize,
}

impl<'a> Rows<'a> {
    /// Flag of the last rows of a statement, after which table ids may be reused.
    pub const STATEMENT_END: u16 = 1;

    /// Returns whether the fixed part ends with the length of additional data (version 2).
    pub(crate) fn has_extra(event: EventType) -> bool {
        matches!(event.0, 30..=32 | 169..=171)
    }

    pub(crate) fn read(reader: &mut Reader<'a>, kind: RowsKind) -> Result<Self, Error> {
        let event = reader.event();
        let table_id = reader.little(6, "the number of a table")?;
        let flags = reader.u16("the flags")?;
        if Self::has_extra(event) {
            // The length counts its own two bytes.
            let length = usize::from(reader.u16("the length of more data")?);
            let length =
                length.checked_sub(2).ok_or_else(|| reader.fail(BrokenRule::Format("the length is less than 2")))?;
            reader.take(length, "more data")?;
        }
        let columns_count = reader.packed_length("the number of columns")?;
        let bitmap = "the bits of columns";
        let first = reader.take(columns_count.div_ceil(8), bitmap)?;
        let second =
            if kind == RowsKind::Update { reader.take(columns_count.div_ceil(8), bitmap)? } else { Default::default() };
        let offset = reader.offset();
        Ok(Self {
            kind,
            table_id,
            flags,
            columns_count,
            present: [first, second],
            stored: reader.rest(),
            event,
            offset,
        })
    }

    /// Returns the rows, decompressed if they were compressed, to at most `limit` bytes.
    pub fn data(&self, limit: usize) -> Result<RowData<'a>, Error> {
        if matches!(self.event.0, 166..=171) {
            let made = compressed::event(self.event, self.offset, self.stored, limit)?;
            return Ok(RowData { rows: *self, bytes: Cow::Owned(made), offset: 0 });
        }
        Ok(RowData { rows: *self, bytes: Cow::Borrowed(self.stored), offset: self.offset })
    }
}

#[derive(Debug, Clone)]
pub struct RowData<'a> {
    rows: Rows<'a>,
    bytes: Cow<'a, [u8]>,
    offset: usize,
}

impl RowData<'_> {
    /// Returns the changed rows. `table` must come from the `TABLE_MAP` before them.
    pub fn changes<'t>(&'t self, table: &'t Table) -> Result<Changes<'t>, Error> {
        let reader = Reader::new(self.rows.event, self.offset, &self.bytes);
        if table.id != self.rows.table_id || table.columns.len() != self.rows.columns_count {
            return Err(reader.fail(BrokenRule::Format("the rows are of another table than the TABLE_MAP")));
        }
        Ok(Changes { kind: self.rows.kind, present: self.rows.present, table, reader, failed: false })
    }
}

/// One changed row.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// `None` for an insert.
    pub before: Option<Image<'a>>,
    /// `None` for a delete. In an update, an absent column has not changed, unless it is generated.
    pub after: Option<Image<'a>>,
}

/// Iterates over changed rows, and ends after an error.
#[derive(Debug, Clone)]
pub struct Changes<'a> {
    kind: RowsKind,
    present: [&'a [u8]; 2],
    table: &'a Table,
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> Iterator for Changes<'a> {
    type Item = Result<Change<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.is_empty() {
            return None;
        }
        let change = self.change();
        self.failed = change.is_err();
        Some(change)
    }
}

impl<'a> Changes<'a> {
    fn change(&mut self) -> Result<Change<'a>, Error> {
        let [first, second] = self.present;
        let begin = self.reader.offset();
        let image = self.image(first)?;
        let change = match self.kind {
            RowsKind::Insert => Change { before: None, after: Some(image) },
            RowsKind::Update => Change { before: Some(image), after: Some(self.image(second)?) },
            RowsKind::Delete => Change { before: Some(image), after: None },
        };
        if self.reader.offset() == begin {
            return Err(self.reader.fail(BrokenRule::Unsupported("a row without columns")));
        }
        Ok(change)
    }

    fn image(&mut self, present: &'a [u8]) -> Result<Image<'a>, Error> {
        let is_present = |index: &usize| bit(present, *index);
        let count = (0..self.table.columns.len()).filter(is_present).count();
        let nulls = self.reader.take(count.div_ceil(8), "the bits of NULL")?;
        let cells = self.reader.clone();
        let all = self.table.columns.iter().enumerate().filter(|(index, _)| is_present(index));
        for (position, (_, column)) in all.enumerate() {
            if !bit(nulls, position) {
                column.column_type.take(&mut self.reader)?;
            }
        }
        Ok(Image { table: self.table, present, nulls, cells })
    }
}

/// A row before or after its change.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    table: &'a Table,
    present: &'a [u8],
    nulls: &'a [u8],
    cells: Reader<'a>,
}

#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// The image does not have the column: `binlog_row_image` is not `FULL`, or the column is generated.
    Absent,
    Null,
    Value(Value<'a>),
}

impl<'a> Image<'a> {
    /// Returns a cell for each column of the table, in order.
    pub fn cells(&self) -> Cells<'a> {
        Cells { image: self.clone(), column: 0, position: 0 }
    }
}

#[derive(Debug, Clone)]
pub struct Cells<'a> {
    image: Image<'a>,
    column: usize,
    /// Index among the columns that are present.
    position: usize,
}

impl<'a> Iterator for Cells<'a> {
    type Item = Result<Cell<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let column = self.image.table.columns.get(self.column)?;
        self.column += 1;
        if !bit(self.image.present, self.column - 1) {
            return Some(Ok(Cell::Absent));
        }
        self.position += 1;
        if bit(self.image.nulls, self.position - 1) {
            return Some(Ok(Cell::Null));
        }
        Some(value::read(column, &mut self.image.cells).map(Cell::Value))
    }
}
