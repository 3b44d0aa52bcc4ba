//! Reads and encodes the records that are related to a batch of at most [`INCLUDE_BATCH_MAX_RECORDS`] records.

use super::{bind, decoders, value, values};
use crate::database::connection::Connection;
use crate::database::error::DbError;
use crate::database::json::Decoder;
use crate::query::catalog::Layout;
use crate::query::catalog::relations::RelationKind;
use crate::query::plan::Param;
use crate::query::plan::include::{Batch, Included};
use crate::query::sql;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use mysql_async::{Row, Value};
use shared::envelope::write_object;
use shared::limits::{INCLUDE_BATCH_MAX_RECORDS, INCLUDE_MAX_BYTES};
use std::collections::HashMap;
use std::ops::Range;

type Keys = HashMap<Vec<u8>, usize>;

#[derive(Debug)]
pub(in crate::database) struct Members {
    kind: RelationKind,
    /// Maps each row to its index in `groups`: rows with equal keys share a group. `None` if a column of the key is
    /// NULL.
    groups_of_rows: Vec<Option<usize>>,
    groups: Groups,
}

impl Members {
    pub(in crate::database) fn write(&self, row: usize, out: &mut Vec<u8>) {
        let json = self.groups_of_rows[row].map_or(&[][..], |group| self.groups.json(group));
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

#[derive(Debug, Default)]
struct Groups {
    /// The records as JSON. Most rows arrive group by group, so that a new record extends the last group.
    json: Vec<u8>,
    ranges: Vec<Range<usize>>,
    counts: Vec<u64>,
}

impl Groups {
    fn new(keys: usize) -> Self {
        Self { json: Vec::new(), ranges: vec![0..0; keys], counts: vec![0; keys] }
    }

    fn json(&self, group: usize) -> &[u8] {
        &self.json[self.ranges[group].clone()]
    }

    fn append(&mut self, group: usize, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let range = self.ranges[group].clone();
        let start = match range.end == self.json.len() {
            true if range.is_empty() => range.end,
            true => range.start,
            // Another group was written after this one, so this group is copied to the end first.
            false => {
                let start = self.json.len();
                self.json.extend_from_within(range.clone());
                start
            }
        };
        if !range.is_empty() {
            self.json.push(b',');
        }
        let before = self.json.len();
        write(&mut self.json);
        self.ranges[group] = start..self.json.len();
        self.json.len() - before
    }

    fn clear(&mut self, group: usize) {
        self.ranges[group] = 0..0;
        self.counts[group] = 0;
    }
}

pub(in crate::database) async fn members(
    connection: &mut Connection,
    includes: &[Included],
    rows: &[Row],
) -> Result<Vec<Members>, DbError> {
    let mut reader = RelatedReader { connection, bytes_left: INCLUDE_MAX_BYTES };
    reader.all(includes, rows).await
}

struct RelatedReader<'a> {
    connection: &'a mut Connection,
    bytes_left: usize,
}

impl RelatedReader<'_> {
    /// Reads all includes of a batch. The future is boxed, because nested includes recurse.
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
        let mut known: Keys = HashMap::with_capacity(rows.len());
        let mut keys: Vec<Vec<Param>> = Vec::new();
        let mut groups_of_rows = Vec::with_capacity(rows.len());
        let mut bytes = Vec::new();
        for row in rows {
            let cells = included.parent_cells();
            if cells.iter().any(|at| *value(row, *at) == Value::NULL) {
                groups_of_rows.push(None);
                continue;
            }
            write_key(&mut bytes, row, cells);
            let group = known.get(bytes.as_slice()).copied().unwrap_or_else(|| {
                keys.push(values(row, cells));
                known.insert(bytes.clone(), keys.len() - 1);
                keys.len() - 1
            });
            groups_of_rows.push(Some(group));
        }
        let mut groups = Groups::new(keys.len());
        let all: Vec<usize> = (0..keys.len()).collect();
        let mut cut = Vec::new();
        for wanted in all.chunks(included.keys_max(included.batch())) {
            cut.extend(self.read(included, included.batch(), (&keys, wanted, &known), &mut groups).await?);
        }
        for wanted in cut.chunks(included.keys_max(Batch::Union)) {
            self.read(included, Batch::Union, (&keys, wanted, &known), &mut groups).await?;
        }
        Ok(Members { kind: included.kind(), groups_of_rows, groups })
    }

    /// Reads one include. Returns the indexes of the keys whose records the LIMIT of the statement may have cut off,
    /// and clears their groups: the caller reads those keys again.
    async fn read(
        &mut self,
        included: &Included,
        batch: Batch,
        (keys, wanted, known): (&[Vec<Param>], &[usize], &Keys),
        groups: &mut Groups,
    ) -> Result<Vec<usize>, DbError> {
        let wanted_keys: Vec<&[Param]> = wanted.iter().map(|at| keys[*at].as_slice()).collect();
        let (text, params) = sql::included(included, batch, &wanted_keys).into_parts();
        let mut result = self.connection.run(&text, bind(params)).await?;
        let columns = result.columns().unwrap_or_default();
        let layout = included.select().layout();
        let decoders = decoders(Some(&layout.kinds), &columns);
        let alone = CellWriter { decoders: &decoders, members: &[] };
        let key_cell = columns.len().saturating_sub(1);
        let mut bytes = Vec::new();
        let mut group_of = |row: &Row| match (batch, value(row, key_cell)) {
            (Batch::List, _) => {
                write_key(&mut bytes, row, &[key_cell]);
                known.get(bytes.as_slice()).copied()
            }
            (Batch::Union, Value::Int(at)) => wanted.get(usize::try_from(*at).ok()?).copied(),
            (Batch::Union, Value::UInt(at)) => wanted.get(usize::try_from(*at).ok()?).copied(),
            (Batch::Union, _) => None,
        };
        let limit = match included.kind() {
            RelationKind::One => 1,
            RelationKind::Many => included.limit().unwrap_or(u64::MAX),
        };
        let mut rows = Vec::new();
        let (mut count, mut last) = (0, None);
        while let Some(row) = result.next().await? {
            count += 1;
            last = group_of(&row);
            let Some(group) = last.filter(|group| groups.counts[*group] < limit) else {
                continue;
            };
            groups.counts[group] += 1;
            let kept = if included.includes().is_empty() {
                groups.append(group, |out| alone.append(out, layout, &row, 0))
            } else {
                let kept = size(&row);
                rows.push((group, row));
                kept
            };
            self.bytes_left = self.bytes_left.checked_sub(kept).ok_or(DbError::IncludeTooLarge)?;
        }
        result.drop_result().await?;
        let mut cut = Vec::new();
        if batch == Batch::List && included.list_limit(wanted.len()).is_some_and(|limit| count >= limit) {
            let is_cut = |group: &usize| {
                let count = groups.counts[*group];
                count < limit && (count == 0 || last == Some(*group))
            };
            cut = wanted.iter().copied().filter(is_cut).collect();
            rows.retain(|(group, _)| !cut.contains(group));
            cut.iter().for_each(|group| groups.clear(*group));
        }
        let (groups_of_rows, rows): (Vec<usize>, Vec<Row>) = rows.into_iter().unzip();
        let parts = rows.chunks(INCLUDE_BATCH_MAX_RECORDS).zip(groups_of_rows.chunks(INCLUDE_BATCH_MAX_RECORDS));
        for (part, groups_of_part) in parts {
            let members = self.all(included.includes(), part).await?;
            let cells = CellWriter { members: &members, ..alone };
            for (at, (row, group)) in part.iter().zip(groups_of_part).enumerate() {
                let written = groups.append(*group, |out| cells.append(out, layout, row, at));
                self.bytes_left = self.bytes_left.checked_sub(written).ok_or(DbError::IncludeTooLarge)?;
            }
        }
        Ok(cut)
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::database) struct CellWriter<'a> {
    pub(in crate::database) decoders: &'a [Decoder],
    pub(in crate::database) members: &'a [Members],
}

impl CellWriter<'_> {
    pub(in crate::database) fn write(
        &self,
        (row, at): (&Row, usize),
        (cell, count): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        let own = count - self.members.len();
        match cell.checked_sub(own) {
            Some(member) => self.members[member].write(at, out),
            None => self.decoders[cell].write(value(row, cell), out),
        }
    }

    pub(in crate::database) fn append(&self, out: &mut Vec<u8>, layout: &Layout, row: &Row, at: usize) {
        let keys = &layout.keys;
        let is_null = |cell| *value(row, cell) == Value::NULL;
        write_object(out, keys, is_null, |cell, out| self.write((row, at), (cell, keys.len()), out));
    }
}

/// Returns the approximate memory in bytes.
pub(in crate::database) fn size(row: &Row) -> usize {
    let text = |at: usize| match value(row, at) {
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    (0..row.len()).map(|at| size_of::<Value>() + text(at)).sum()
}

/// Writes the cells so that equal bytes mean equal values. An integer has the same bytes whether the driver returned it
/// as signed or as unsigned.
fn write_key(out: &mut Vec<u8>, row: &Row, cells: &[usize]) {
    out.clear();
    for at in cells {
        match value(row, *at) {
            Value::Int(number) => write_part(out, b'i', &i128::from(*number).to_be_bytes()),
            Value::UInt(number) => write_part(out, b'i', &i128::from(*number).to_be_bytes()),
            Value::Bytes(bytes) => write_part(out, b'b', bytes),
            other => write_part(out, b'o', format!("{other:?}").as_bytes()),
        }
    }
}

/// Appends the part with its kind and length, so that no two lists of parts have the same bytes.
fn write_part(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}
