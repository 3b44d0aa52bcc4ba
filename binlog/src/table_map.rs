//! The event that names a table and describes its columns, for the rows in the next events. `table` reads the columns.

use crate::bytes::Reader;
use crate::{BrokenRule, Error};

#[derive(Debug, Clone, Copy)]
pub struct TableMap<'a> {
    /// The number by which events with rows name the table. It changes with the table's definition and at a restart.
    pub table_id: u64,
    pub flags: u16,
    pub database: &'a str,
    pub table: &'a str,
    pub(crate) types: &'a [u8],
    pub(crate) metadata: &'a [u8],
    pub(crate) nullable: &'a [u8],
    pub(crate) optional: &'a [u8],
    /// Offsets of `metadata` and `optional` in the event.
    pub(crate) offsets: (usize, usize),
}

impl<'a> TableMap<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let table_id = reader.little(6, "the number of a table")?;
        let flags = reader.u16("the flags")?;
        let database = name(reader)?;
        let table = name(reader)?;
        let count = reader.packed_length("the number of columns")?;
        let types = reader.take(count, "the types of columns")?;
        let length = reader.packed_length("the metadata of columns")?;
        let metadata_offset = reader.offset();
        let metadata = reader.take(length, "the metadata of columns")?;
        let nullable = reader.take(count.div_ceil(8), "the bits of nullable columns")?;
        let offsets = (metadata_offset, reader.offset());
        Ok(Self { table_id, flags, database, table, types, metadata, nullable, optional: reader.rest(), offsets })
    }
}

fn name<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Error> {
    let length = usize::from(reader.u8("the length of a name")?);
    let name = reader.terminated(length, "a name")?;
    std::str::from_utf8(name).map_err(|_| reader.fail(BrokenRule::Format("a name is not UTF-8")))
}
