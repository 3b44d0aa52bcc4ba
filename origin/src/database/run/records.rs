//! Decodes the records in the rows that a write returns.

use super::{NULL, decoders, value};
use crate::database::json::Decoder;
use crate::query::sql::Returned;
use mysql_async::{Column, Row, Value};
use shared::envelope::write_object;

pub(super) struct Records {
    returned: Returned,
    decoders: Vec<Decoder>,
    start: usize,
}

impl Records {
    /// `columns` end with those of the record, then the column of [`Returned::is_ruled`] if that is set.
    pub(super) fn new(returned: Returned, columns: &[Column]) -> Self {
        let kinds = &returned.layout.kinds;
        let start = columns.len().saturating_sub(kinds.len() + usize::from(returned.is_ruled));
        let decoders = decoders(Some(kinds), &columns[start..]);
        Self { returned, decoders, start }
    }

    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn json(&self, row: &Row) -> Vec<u8> {
        let cell = |at: usize| value(row, self.start + at);
        let Returned { layout, is_ruled } = &self.returned;
        if *is_ruled && *cell(layout.kinds.len()) != Value::Int(1) {
            return NULL.to_vec();
        }
        let mut out = Vec::new();
        let is_null = |at| *cell(at) == Value::NULL;
        write_object(&mut out, &layout.keys, is_null, |at, out| self.decoders[at].write(cell(at), out));
        out
    }
}
