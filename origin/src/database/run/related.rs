//! Reads the records that are related to others, for a few hundred of them at a time, and encodes them.

use super::{bind, decoders, value, values};
use crate::database::connection::Connection;
use crate::database::error::DbError;
use crate::database::json::Decoder;
use crate::query::catalog::Layout;
use crate::query::catalog::relations::RelationKind;
use crate::query::plan::Param;
use crate::query::plan::include::Included;
use crate::query::sql;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use mysql_async::{Row, Value};
use shared::envelope::write_object;
use shared::format::Format;
use shared::limits::INCLUDE_MAX_BYTES;
use std::collections::HashMap;

/// The records that one relation adds to each of several rows.
#[derive(Debug)]
pub(in crate::database) struct Members {
    kind: RelationKind,
    /// For each row, the index of its group in `json`, whose JSON may be empty; `None` if the key of the row is NULL.
    groups: Vec<Option<usize>>,
    /// The JSON objects of each group, separated by commas.
    json: Vec<Vec<u8>>,
}

impl Members {
    /// Writes the value of the relation's member in the row with this index: a list of objects for a relation to many
    /// records, an object or null for a relation to one.
    pub(in crate::database) fn write(&self, row: usize, out: &mut Vec<u8>) {
        let json = self.groups[row].map_or(&[][..], |group| &self.json[group]);
        match self.kind {
            RelationKind::Many => {
                out.push(b'[');
                out.extend_from_slice(json);
                out.push(b']');
            }
            RelationKind::One if json.is_empty() => out.extend_from_slice(b"null"),
            RelationKind::One => out.extend_from_slice(json),
        }
    }
}

/// Reads and encodes the records that are related to `rows`, for each of `includes`.
///
/// # Errors
/// [`DbError::IncludeTooLarge`] if they take more than [`INCLUDE_MAX_BYTES`]; errors of MariaDB or the connection.
pub(in crate::database) async fn members(
    connection: &mut Connection,
    includes: &[Included],
    rows: &[Row],
    format: Format,
) -> Result<Vec<Members>, DbError> {
    let mut reader = Reader { connection, format, bytes_left: INCLUDE_MAX_BYTES };
    reader.all(includes, rows).await
}

struct Reader<'a> {
    connection: &'a mut Connection,
    format: Format,
    bytes_left: usize,
}

impl Reader<'_> {
    /// Reads and encodes the related records of each include. Returns a boxed future, because nested includes recurse.
    fn all<'f>(
        &'f mut self,
        includes: &'f [Included],
        rows: &'f [Row],
    ) -> BoxFuture<'f, Result<Vec<Members>, DbError>> {
        async move {
            let mut all = Vec::with_capacity(includes.len());
            for included in includes {
                all.push(self.one(included, rows).await?);
            }
            Ok(all)
        }
        .boxed()
    }

    async fn one(&mut self, included: &Included, rows: &[Row]) -> Result<Members, DbError> {
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut keys: Vec<Vec<Param>> = Vec::new();
        let mut groups = Vec::with_capacity(rows.len());
        for row in rows {
            let cells = included.parent_cells();
            let is_null = cells.iter().any(|at| *value(row, *at) == Value::NULL);
            groups.push((!is_null).then(|| {
                *known.entry(bytes_of(row, cells)).or_insert_with(|| {
                    keys.push(values(row, cells));
                    keys.len() - 1
                })
            }));
        }
        let mut json = vec![Vec::new(); keys.len()];
        for (number, keys) in keys.chunks(included.keys_max()).enumerate() {
            let first = number * included.keys_max();
            self.read(included, keys, first, &known, &mut json).await?;
        }
        Ok(Members { kind: included.kind(), groups, json })
    }

    /// Reads the related records of some keys, and appends each to the JSON of its key; `first` is the index in `json`
    /// of the first of `keys`.
    async fn read(
        &mut self,
        included: &Included,
        keys: &[Vec<Param>],
        first: usize,
        known: &HashMap<Vec<u8>, usize>,
        json: &mut [Vec<u8>],
    ) -> Result<(), DbError> {
        let (text, params) = sql::included(included, keys).into_parts();
        let mut result = self.connection.run(&text, bind(params)).await?;
        let columns = result.columns().unwrap_or_default();
        let layout = included.select().layout();
        let decoders = decoders(Some(&layout.kinds), &columns);
        let format = self.format;
        let alone = CellWriter { decoders: &decoders, members: &[], format };
        let key_cell = columns.len().saturating_sub(1);
        let group_of = |row: &Row| match (included.returns_keys(), value(row, key_cell)) {
            (true, _) => known.get(&bytes_of(row, &[key_cell])).copied(),
            (false, Value::Int(at)) => usize::try_from(*at).ok().map(|at| first + at),
            (false, Value::UInt(at)) => usize::try_from(*at).ok().map(|at| first + at),
            (false, _) => None,
        };
        let is_one = included.kind() == RelationKind::One;
        let mut rows = Vec::new();
        while let Some(row) = result.next().await? {
            let Some(group) = group_of(&row).filter(|group| *group < json.len()) else {
                continue;
            };
            if !included.includes().is_empty() {
                self.bytes_left = self.bytes_left.checked_sub(size(&row)).ok_or(DbError::IncludeTooLarge)?;
                rows.push((group, row));
            } else if !is_one || json[group].is_empty() {
                let written = alone.append(&mut json[group], layout, &row, 0);
                self.bytes_left = self.bytes_left.checked_sub(written).ok_or(DbError::IncludeTooLarge)?;
            }
        }
        result.drop_result().await?;
        if rows.is_empty() {
            return Ok(());
        }
        let (groups, rows): (Vec<usize>, Vec<Row>) = rows.into_iter().unzip();
        let mut at = 0;
        for part in rows.chunks(shared::limits::INCLUDE_BATCH_MAX_RECORDS) {
            let members = self.all(included.includes(), part).await?;
            let cells = CellWriter { members: &members, ..alone };
            for (within, row) in part.iter().enumerate() {
                let group = groups[at];
                at += 1;
                if is_one && !json[group].is_empty() {
                    continue;
                }
                let written = cells.append(&mut json[group], layout, row, within);
                self.bytes_left = self.bytes_left.checked_sub(written).ok_or(DbError::IncludeTooLarge)?;
            }
        }
        Ok(())
    }
}

/// Writes the cells of rows: their columns, then their related records.
#[derive(Clone, Copy, Debug)]
pub(in crate::database) struct CellWriter<'a> {
    pub(in crate::database) decoders: &'a [Decoder],
    pub(in crate::database) members: &'a [Members],
    pub(in crate::database) format: Format,
}

impl CellWriter<'_> {
    /// Writes the cell with index `cell` of a row that has `count` cells. `at` is the row's index in each of the members.
    pub(in crate::database) fn write(
        &self,
        (row, at): (&Row, usize),
        (cell, count): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        let own = count - self.members.len();
        match (cell.checked_sub(own), self.format) {
            (Some(member), _) => self.members[member].write(at, out),
            (None, Format::NdJson) => self.decoders[cell].write_in_line(value(row, cell), out),
            (None, _) => self.decoders[cell].write(value(row, cell), out),
        }
    }

    /// Appends a row as a JSON object, after a comma if it is not the first. Returns the number of bytes appended.
    pub(in crate::database) fn append(&self, out: &mut Vec<u8>, layout: &Layout, row: &Row, at: usize) -> usize {
        let before = out.len();
        if before > 0 {
            out.push(b',');
        }
        let keys = &layout.keys;
        let is_null = |cell| *value(row, cell) == Value::NULL;
        write_object(out, keys, is_null, |cell, out| self.write((row, at), (cell, keys.len()), out));
        out.len() - before
    }
}

/// Returns the approximate memory of a row.
pub(in crate::database) fn size(row: &Row) -> usize {
    let text = |at: usize| match value(row, at) {
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    (0..row.len()).map(|at| size_of::<Value>() + text(at)).sum()
}

/// Returns bytes that are equal for equal keys, whether the driver returns an integer as signed or as unsigned.
fn bytes_of(row: &Row, cells: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    for at in cells {
        let (kind, bytes) = match value(row, *at) {
            Value::Int(number) => (b'i', i128::from(*number).to_be_bytes().to_vec()),
            Value::UInt(number) => (b'i', i128::from(*number).to_be_bytes().to_vec()),
            Value::Bytes(bytes) => (b'b', bytes.clone()),
            other => (b'o', format!("{other:?}").into_bytes()),
        };
        out.push(kind);
        out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        out.extend_from_slice(&bytes);
    }
    out
}
