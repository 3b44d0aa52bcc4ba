//! A table as its `TABLE_MAP` describes it, with the optional metadata of `binlog_row_metadata`.

use crate::bytes::{Reader, bit};
use crate::{BrokenRule, Column, ColumnType, Error, EventType, TableMap};

/// Maximum number of columns of a table in MariaDB.
const COLUMNS_MAX: usize = 4_096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub id: u64,
    pub database: String,
    pub name: String,
    pub columns: Vec<Column>,
    /// Columns of the primary key, in its order; empty if the table has none, or if `binlog_row_metadata` is not `FULL`.
    pub primary_key: Vec<KeyPart>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPart {
    /// Index in [`Table::columns`].
    pub column: usize,
    /// Number of the column's first characters that are in the key; `None` for all.
    pub prefix: Option<u64>,
}

impl TableMap<'_> {
    pub fn columns_count(&self) -> usize {
        self.types.len()
    }

    /// Reads the columns.
    pub fn table(&self) -> Result<Table, Error> {
        let mut metadata = Reader::new(EventType::TABLE_MAP, self.offsets.0, self.metadata);
        if self.types.is_empty() || self.types.len() > COLUMNS_MAX {
            return Err(metadata.fail(BrokenRule::Format("a table has 1 to 4,096 columns")));
        }
        let mut columns = Vec::with_capacity(self.types.len());
        for (index, number) in self.types.iter().enumerate() {
            columns.push(Column {
                name: None,
                column_type: ColumnType::read(*number, &mut metadata)?,
                nullable: bit(self.nullable, index),
                unsigned: None,
                collation: None,
                members: None,
                geometry_type: None,
                visible: None,
            });
        }
        if !metadata.is_empty() {
            return Err(metadata.fail(BrokenRule::Format("the columns have more metadata than their types")));
        }
        let (database, name) = (self.database.to_owned(), self.table.to_owned());
        let mut table = Table { id: self.table_id, database, name, columns, primary_key: Vec::new() };
        let mut optional = Reader::new(EventType::TABLE_MAP, self.offsets.1, self.optional);
        while !optional.is_empty() {
            let kind = optional.u8("the kind of metadata")?;
            let length = optional.packed_length("the length of metadata")?;
            let offset = optional.offset();
            let field = optional.take(length, "metadata")?;
            table.describe(kind, Reader::new(EventType::TABLE_MAP, offset, field))?;
        }
        Ok(table)
    }
}

impl Table {
    /// Sets the fraction digits of a TIME, DATETIME or TIMESTAMP column in the format of MariaDB 5.3, by the schema. Returns
    /// `false` if the column has another type, or for more than 6 digits.
    pub fn set_fraction_digits(&mut self, column: usize, digits: u8) -> bool {
        self.columns.get_mut(column).is_some_and(|column| column.column_type.set_digits(digits))
    }

    /// Returns whether the log names the columns (`binlog_row_metadata=FULL`).
    pub fn has_names(&self) -> bool {
        self.columns.iter().all(|column| column.name.is_some())
    }

    fn describe(&mut self, kind: u8, mut field: Reader<'_>) -> Result<(), Error> {
        match kind {
            1 => self.set_bits(&mut field, ColumnType::is_numeric, |column, bit| column.unsigned = Some(bit)),
            2 => self.set_default_collation(&mut field, ColumnType::has_charset),
            3 => self.set_collations(&mut field, ColumnType::has_charset),
            4 => self.set_names(&mut field),
            5 => self.set_members(&mut field, |column| matches!(column, ColumnType::Set { .. })),
            6 => self.set_members(&mut field, |column| matches!(column, ColumnType::Enum { .. })),
            7 => self.set_geometry_types(&mut field),
            8 | 9 => self.set_primary_key(&mut field, kind == 9),
            10 => self.set_default_collation(&mut field, ColumnType::has_members),
            11 => self.set_collations(&mut field, ColumnType::has_members),
            12 => self.set_bits(&mut field, |_| true, |column, bit| column.visible = Some(bit)),
            // Later servers may add kinds; what this crate reads does not depend on them.
            _ => return Ok(()),
        }?;
        if field.is_empty() {
            Ok(())
        } else {
            Err(field.fail(BrokenRule::Format("metadata is of more columns than the table has")))
        }
    }

    fn set_bits(
        &mut self,
        field: &mut Reader<'_>,
        of: fn(ColumnType) -> bool,
        set: fn(&mut Column, bool),
    ) -> Result<(), Error> {
        let bits = field.rest();
        for (index, column) in self.columns.iter_mut().filter(|column| of(column.column_type)).enumerate() {
            let byte = bits.get(index / 8).ok_or_else(|| field.fail(BrokenRule::EndsWithin("bits of columns")))?;
            set(column, byte << (index % 8) & 0x80 != 0);
        }
        Ok(())
    }

    fn set_default_collation(&mut self, field: &mut Reader<'_>, of: fn(ColumnType) -> bool) -> Result<(), Error> {
        let default = collation(field)?;
        let mut columns: Vec<&mut Column> = self.columns.iter_mut().filter(|column| of(column.column_type)).collect();
        for column in &mut columns {
            column.collation = Some(default);
        }
        while !field.is_empty() {
            let index = field.packed_length("the index of a column")?;
            let other = collation(field)?;
            let column = columns.get_mut(index).ok_or_else(|| field.fail(OUTSIDE))?;
            column.collation = Some(other);
        }
        Ok(())
    }

    fn set_collations(&mut self, field: &mut Reader<'_>, of: fn(ColumnType) -> bool) -> Result<(), Error> {
        for column in self.columns.iter_mut().filter(|column| of(column.column_type)) {
            column.collation = Some(collation(field)?);
        }
        Ok(())
    }

    fn set_names(&mut self, field: &mut Reader<'_>) -> Result<(), Error> {
        for column in &mut self.columns {
            let length = field.packed_length("the name of a column")?;
            let name = field.take(length, "the name of a column")?;
            let name = std::str::from_utf8(name).map_err(|_| field.fail(BrokenRule::Format("a name is not UTF-8")))?;
            column.name = Some(name.to_owned());
        }
        Ok(())
    }

    fn set_members(&mut self, field: &mut Reader<'_>, of: fn(ColumnType) -> bool) -> Result<(), Error> {
        for column in self.columns.iter_mut().filter(|column| of(column.column_type)) {
            let count = field.packed_length("the number of members")?;
            let mut members = Vec::new();
            for _ in 0..count {
                let length = field.packed_length("a member")?;
                members.push(field.take(length, "a member")?.into());
            }
            column.members = Some(members.into());
        }
        Ok(())
    }

    fn set_geometry_types(&mut self, field: &mut Reader<'_>) -> Result<(), Error> {
        let is_geometry = |column: &&mut Column| matches!(column.column_type, ColumnType::Geometry { .. });
        for column in self.columns.iter_mut().filter(is_geometry) {
            column.geometry_type = Some(field.packed("the type of a geometry")?);
        }
        Ok(())
    }

    fn set_primary_key(&mut self, field: &mut Reader<'_>, has_prefixes: bool) -> Result<(), Error> {
        self.primary_key.clear();
        while !field.is_empty() {
            let column = field.packed_length("the primary key")?;
            let prefix = if has_prefixes { field.packed("the primary key")? } else { 0 };
            if column >= self.columns.len() || self.primary_key.len() >= self.columns.len() {
                return Err(field.fail(OUTSIDE));
            }
            self.primary_key.push(KeyPart { column, prefix: Some(prefix).filter(|prefix| *prefix != 0) });
        }
        Ok(())
    }
}

const OUTSIDE: BrokenRule = BrokenRule::Format("metadata is of a column that the table does not have");

fn collation(field: &mut Reader<'_>) -> Result<u16, Error> {
    let number = field.packed("a collation")?;
    u16::try_from(number).map_err(|_| field.fail(BrokenRule::Format("the number of a collation is more than 65,535")))
}
