//! Decodes all that a binary log has: nothing panics, errors are within the log, and memory is bounded.

use crate::MEMORY;
use binlog::{Body, Cell, Checksum, Decoder, Error, Event, Header, Image, Table, Value};

const MAGIC_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4;
/// Index of an event's size in its header, and of the number of the checksum's algorithm before the end of the first event.
const SIZE_AT: std::ops::Range<usize> = 9..13;
const ALGORITHM_BEFORE_END: usize = CHECKSUM_BYTES + 1;

const DECOMPRESSED_MAX_BYTES: usize = 64 * 1024;
/// Of the whole log: rows of few bytes can have many columns that are absent.
const ROWS_MAX_COUNT: usize = 200;
/// For each byte of an event: a byte can be a column's type or an empty member of an ENUM, in a vector that grows.
const MEMORY_FACTOR: usize = 300;
/// Rows that were decompressed, and a text of them that was too, in UTF-8.
const MEMORY_BASE_BYTES: usize = 8 * DECOMPRESSED_MAX_BYTES;

const LOGS: [&[u8]; 5] = [
    include_bytes!("../../../binlog/tests/data/rows-10.11.binlog"),
    include_bytes!("../../../binlog/tests/data/rows-11.8.binlog"),
    include_bytes!("../../../binlog/tests/data/compressed.binlog"),
    include_bytes!("../../../binlog/tests/data/partial.binlog"),
    include_bytes!("../../../binlog/tests/data/old-times.binlog"),
];

/// Returns the events of logs that MariaDB wrote, without checksums, so that changed events are decoded.
///
/// # Panics
/// A log is broken.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    LOGS.map(|log| {
        let (mut seed, mut rest) = (Vec::new(), &log[MAGIC_BYTES..]);
        let checksum = Decoder::new(Checksum::None).read(&rest[..size(rest)]).map(|event| match event.body {
            Body::FormatDescription(format) => format.checksum,
            other => panic!("{other:?}"),
        });
        let has_checksum = checksum == Ok(Checksum::Crc32);
        while !rest.is_empty() {
            let (event, after) = rest.split_at(size(rest));
            let mut event = event.to_vec();
            if seed.is_empty() {
                let algorithm = event.len() - ALGORITHM_BEFORE_END;
                event[algorithm] = 0;
            } else if has_checksum {
                event.truncate(event.len() - CHECKSUM_BYTES);
            }
            set_size(&mut event);
            seed.extend(event);
            rest = after;
        }
        seed
    })
    .to_vec()
}

/// Returns the events of logs as MariaDB wrote them.
#[must_use]
pub fn written() -> Vec<&'static [u8]> {
    LOGS.map(|log| &log[MAGIC_BYTES..]).to_vec()
}

fn size(events: &[u8]) -> usize {
    let size = Header::read(events).map_or(0, |header| usize::try_from(header.size).unwrap_or(usize::MAX));
    size.clamp(Header::BYTES.min(events.len()), events.len())
}

fn set_size(event: &mut [u8]) {
    let size = u32::try_from(event.len()).expect("a small event");
    if let Some(bytes) = event.get_mut(SIZE_AT) {
        bytes.copy_from_slice(&size.to_le_bytes());
    }
}

/// Decodes `bytes` as events, of the sizes in their headers as far as the bytes go.
///
/// # Panics
/// An invariant does not hold.
pub fn log(bytes: &[u8]) {
    let (mut reading, mut rest) = (Reading::new(), bytes);
    while !rest.is_empty() {
        let (event, after) = rest.split_at(size(rest));
        reading.event(event);
        rest = after;
    }
}

/// Decodes the events of a log, and before each of them all its beginnings.
///
/// # Panics
/// An invariant does not hold.
pub fn cut_log(bytes: &[u8]) {
    let (mut reading, mut rest) = (Reading::new(), bytes);
    while !rest.is_empty() {
        let (event, after) = rest.split_at(size(rest));
        for end in 0..event.len() {
            reading.clone().event(&event[..end]);
        }
        reading.event(event);
        rest = after;
    }
}

#[derive(Clone)]
struct Reading {
    decoder: Decoder,
    table: Option<Table>,
    rows_count: usize,
}

impl Reading {
    fn new() -> Self {
        Self { decoder: Decoder::new(Checksum::None), table: None, rows_count: 0 }
    }

    /// Decodes an event, whatever size its header tells.
    fn event(&mut self, bytes: &[u8]) {
        let mut event = bytes.to_vec();
        set_size(&mut event);
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let read = self.decoder.read(&event).and_then(|read| {
            let table = std::mem::take(&mut self.table);
            self.table = whole(&read, table, &mut self.rows_count)?;
            Ok(())
        });
        let taken = MEMORY.peak_usage().saturating_sub(before);
        assert!(taken <= MEMORY_BASE_BYTES + MEMORY_FACTOR * event.len(), "{taken} bytes for {} bytes", event.len());
        if let Err(fault) = read {
            assert!(fault.offset <= event.len().max(DECOMPRESSED_MAX_BYTES), "{fault}");
            assert!(!fault.to_string().is_empty());
        }
    }
}

/// Decodes all of an event. Returns the table of the rows behind it.
fn whole(event: &Event<'_>, table: Option<Table>, rows_count: &mut usize) -> Result<Option<Table>, Error> {
    match &event.body {
        Body::TableMap(map) => {
            let mut read = map.table()?;
            for column in 0..read.columns.len() {
                read.set_fraction_digits(column, u8::try_from(column % 8).unwrap_or_default());
            }
            return Ok(Some(read));
        }
        Body::Rows(rows) => {
            if let Some(table) = &table {
                let data = rows.data(DECOMPRESSED_MAX_BYTES)?;
                for change in data.changes(table)? {
                    let change = change?;
                    *rows_count += 1;
                    if *rows_count > ROWS_MAX_COUNT {
                        break;
                    }
                    change.before.iter().chain(&change.after).try_for_each(image)?;
                }
            }
        }
        Body::Query(query) => {
            let _ = query.collation();
            query.statement(DECOMPRESSED_MAX_BYTES)?;
        }
        Body::GtidList(list) => {
            list.gtids().count();
        }
        _ => {}
    }
    Ok(table)
}

fn image(image: &Image<'_>) -> Result<(), Error> {
    for cell in image.cells() {
        let Cell::Value(value) = cell? else { continue };
        // A value that needs the schema or the server, or is too large, is no reason to stop.
        let _ = value.to_utf8(DECOMPRESSED_MAX_BYTES);
        if let Value::Text(text) = value {
            let _ = text.bytes(DECOMPRESSED_MAX_BYTES);
        }
    }
    Ok(())
}
