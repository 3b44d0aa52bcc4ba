//! Reads events from the log file of a server, from where the last read ended.

use binlog::{Body, Change, Checksum, Decoder, Event, Header, Table};
use std::collections::BTreeSet;
use std::path::Path;

/// The bytes before the first event of a file.
const MAGIC: [u8; 4] = [0xFE, b'b', b'i', b'n'];
pub(crate) const DECOMPRESSED_MAX_BYTES: usize = 1 << 24;

pub(crate) struct LogFile {
    decoder: Decoder,
    read: usize,
    /// Numbers of the types of events.
    pub(crate) seen: BTreeSet<u8>,
}

impl LogFile {
    pub(crate) fn new() -> Self {
        Self { decoder: Decoder::new(Checksum::None), read: MAGIC.len(), seen: BTreeSet::new() }
    }

    /// Calls `event` for each event since the last call.
    pub(crate) fn each(&mut self, path: &Path, mut event: impl FnMut(Event<'_>)) {
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes.starts_with(&MAGIC), "{}", path.display());
        while let Some(rest) = bytes.get(self.read..).filter(|rest| !rest.is_empty()) {
            let size = Header::read(rest).unwrap().size as usize;
            let decoded = self.decoder.read(&rest[..size]);
            let decoded = decoded.unwrap_or_else(|fault| panic!("{fault}: {:?}", &rest[..size]));
            self.seen.insert(decoded.header.event_type.0);
            event(decoded);
            self.read += size;
        }
    }

    /// Calls `change` for each changed row since the last call. `described` may add to a table what the log does not tell.
    pub(crate) fn each_change(
        &mut self,
        path: &Path,
        described: impl Fn(&mut Table),
        mut change: impl FnMut(&Table, Change<'_>),
    ) {
        let mut table = None;
        self.each(path, |event| match event.body {
            Body::TableMap(map) => {
                let mut read = map.table().unwrap_or_else(|fault| panic!("{fault}: {map:?}"));
                described(&mut read);
                table = Some(read);
            }
            Body::Rows(rows) => {
                let table = table.as_ref().expect("a TABLE_MAP before rows");
                let data = rows.data(DECOMPRESSED_MAX_BYTES).unwrap();
                for decoded in data.changes(table).unwrap() {
                    change(table, decoded.unwrap_or_else(|fault| panic!("{fault}: {table:?}")));
                }
            }
            _ => {}
        });
    }
}
