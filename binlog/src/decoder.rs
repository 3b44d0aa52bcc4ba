//! Reads one event: its header, its checksum and the body, whose form depends on the type.

use crate::bytes::Reader;
use crate::event::{self, Body, Event, FormatDescription};
use crate::{BrokenRule, Error, EventType};
use flate2::Crc;

const CHECKSUM_BYTES: usize = 4;
/// Flag in the header of a log that was not closed. The server sets it after it has computed the checksum.
const IN_USE: u16 = 1;
const FLAGS_OFFSET: usize = 17;

/// Whether events end with a CRC32 (`binlog_checksum`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    None,
    Crc32,
}

/// The first 19 bytes of every event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970, UTC; 0 in events that the server generates for a stream.
    pub timestamp: u32,
    pub event_type: EventType,
    pub server_id: u32,
    /// Bytes of the whole event.
    pub size: u32,
    /// End of the event in its file; 0 in events of a transaction since MariaDB 11.4.
    pub log_pos: u32,
    pub flags: u16,
}

impl Header {
    pub const BYTES: usize = 19;
    /// Flag of an event that was generated for a stream and is not in the file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// Flag of an event that readers may ignore if they don't know its type.
    pub const IGNORABLE: u16 = 0x80;

    /// Reads the header from the beginning of `bytes`, which need not be a whole event.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let event_type = EventType(bytes.get(4).copied().unwrap_or_default());
        let mut reader = Reader::new(event_type, 0, bytes);
        let header = "the header";
        let timestamp = reader.u32(header)?;
        reader.u8(header)?;
        Ok(Self {
            timestamp,
            event_type,
            server_id: reader.u32(header)?,
            size: reader.u32(header)?,
            log_pos: reader.u32(header)?,
            flags: reader.u16(header)?,
        })
    }
}

/// Decodes events, by what the last `FORMAT_DESCRIPTION` says about the events after it.
#[derive(Debug, Clone)]
pub struct Decoder {
    checksum: Checksum,
    /// Size of the fixed part after the header, by event type minus one; empty before the first `FORMAT_DESCRIPTION`.
    fixed: Box<[u8]>,
}

impl Decoder {
    /// `checksum` applies until the first `FORMAT_DESCRIPTION`. In a connection's stream, which begins with a `ROTATE`,
    /// it must be the `@master_binlog_checksum` that was requested. A file begins with its `FORMAT_DESCRIPTION`.
    pub fn new(checksum: Checksum) -> Self {
        Self { checksum, fixed: Box::default() }
    }

    /// Reads one whole event.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Event<'a>, Error> {
        let header = Header::read(bytes)?;
        let fail = |offset, rule| Error { event: header.event_type, offset, rule };
        if usize::try_from(header.size).ok() != Some(bytes.len()) {
            return Err(fail(9, BrokenRule::Format("the size in the header is not the size of the event")));
        }
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            return self.read_format(header, bytes);
        }
        let bytes = match self.checksum {
            Checksum::None => bytes,
            Checksum::Crc32 => verified(header, bytes)?,
        };
        let body = bytes.get(Header::BYTES..).unwrap_or_default();
        let fixed = usize::from(header.event_type.0).checked_sub(1).and_then(|index| self.fixed.get(index)).copied();
        let body = event::body(Reader::new(header.event_type, Header::BYTES, body), fixed)?;
        Ok(Event { header, body })
    }

    fn read_format<'a>(&mut self, header: Header, bytes: &'a [u8]) -> Result<Event<'a>, Error> {
        let body = bytes.get(Header::BYTES..).unwrap_or_default();
        let format = FormatDescription::read(&mut Reader::new(header.event_type, Header::BYTES, body))?;
        if format.checksum == Checksum::Crc32 {
            verified(header, bytes)?;
        }
        self.checksum = format.checksum;
        self.fixed = format.fixed_bytes.into();
        Ok(Event { header, body: Body::FormatDescription(format) })
    }

    /// Returns the id of the table whose rows an event contains. Needs only the event's first 25 bytes.
    pub fn rows_of_table(prefix: &[u8]) -> Option<u64> {
        let header = Header::read(prefix).ok()?;
        crate::RowsKind::of(header.event_type)?;
        prefix.get(Header::BYTES..Header::BYTES + 6).map(crate::bytes::little)
    }
}

/// Verifies the checksum, and returns the event without it.
fn verified(header: Header, bytes: &[u8]) -> Result<&[u8], Error> {
    let at = bytes.len().saturating_sub(CHECKSUM_BYTES);
    let fail = |rule| Error { event: header.event_type, offset: at, rule };
    let (covered, stored) =
        bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(fail(BrokenRule::EndsWithin("the checksum")))?;
    let mut crc = Crc::new();
    match covered.split_at_checked(FLAGS_OFFSET) {
        Some((before, [_, _, after @ ..])) if header.event_type == EventType::FORMAT_DESCRIPTION => {
            crc.update(before);
            crc.update(&(header.flags & !IN_USE).to_le_bytes());
            crc.update(after);
        }
        _ => crc.update(covered),
    }
    if crc.sum() != u32::from_le_bytes(*stored) {
        return Err(fail(BrokenRule::Checksum));
    }
    if covered.len() < Header::BYTES {
        return Err(fail(BrokenRule::EndsWithin("the header")));
    }
    Ok(covered)
}
