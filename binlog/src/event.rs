//! The bodies of events, by type.

use crate::bytes::Reader;
use crate::gtid::{GtidEvent, GtidList, Xid};
use crate::query::Query;
use crate::rows::{Rows, RowsKind};
use crate::{BrokenRule, Checksum, Error, EventType, Header, TableMap};

#[derive(Debug, Clone)]
pub struct Event<'a> {
    pub header: Header,
    pub body: Body<'a>,
}

#[derive(Debug, Clone)]
pub enum Body<'a> {
    FormatDescription(FormatDescription<'a>),
    Rotate(Rotate<'a>),
    Gtid(GtidEvent<'a>),
    GtidList(GtidList<'a>),
    Query(Query<'a>),
    /// The commit of a transaction, with the engines' number for it.
    Xid(u64),
    XaPrepare(XaPrepare<'a>),
    /// The statement that changed the rows in the next events.
    AnnotateRows(&'a [u8]),
    TableMap(TableMap<'a>),
    Rows(Rows<'a>),
    Heartbeat(Heartbeat<'a>),
    Incident(Incident<'a>),
    /// The oldest log file that recovery from a crash would need.
    BinlogCheckpoint(&'a [u8]),
    Stop,
    /// An event of another type, not decoded: it may change rows, unless [`Header::IGNORABLE`] is set.
    Unknown(EventType),
}

/// Reads the body after the header. `fixed` is the size of the type's fixed part, from the `FORMAT_DESCRIPTION`.
pub(crate) fn body(mut reader: Reader<'_>, fixed: Option<u8>) -> Result<Body<'_>, Error> {
    let event = reader.event();
    let expect = |bytes: u8| match fixed {
        Some(other) if other != bytes => {
            Err(reader.fail(BrokenRule::Unsupported("an event whose fixed part has another size than MariaDB's")))
        }
        _ => Ok(()),
    };
    if let Some(kind) = RowsKind::of(event) {
        expect(if Rows::has_extra(event) { 10 } else { 8 })?;
        return Rows::read(&mut reader, kind).map(Body::Rows);
    }
    Ok(match event {
        EventType::ROTATE => Body::Rotate(Rotate { position: reader.u64("a position")?, file: reader.rest() }),
        EventType::GTID => {
            expect(19)?;
            Body::Gtid(GtidEvent::read(&mut reader)?)
        }
        EventType::GTID_LIST => {
            expect(4)?;
            Body::GtidList(GtidList::read(&mut reader)?)
        }
        EventType::QUERY | EventType::QUERY_COMPRESSED => {
            expect(13)?;
            Body::Query(Query::read(&mut reader)?)
        }
        EventType::XID => Body::Xid(reader.u64("a number")?),
        EventType::XA_PREPARE => Body::XaPrepare(XaPrepare::read(&mut reader)?),
        EventType::ANNOTATE_ROWS => Body::AnnotateRows(reader.rest()),
        EventType::TABLE_MAP => {
            expect(8)?;
            Body::TableMap(TableMap::read(&mut reader)?)
        }
        EventType::HEARTBEAT => Body::Heartbeat(Heartbeat { file: reader.rest() }),
        EventType::INCIDENT => Body::Incident(Incident::read(&mut reader)?),
        EventType::BINLOG_CHECKPOINT => {
            let length = reader.u32("a length")?;
            Body::BinlogCheckpoint(reader.take(usize::try_from(length).unwrap_or(usize::MAX), "the name of a log")?)
        }
        EventType::STOP => Body::Stop,
        EventType::START_ENCRYPTION => return Err(reader.fail(BrokenRule::Encrypted)),
        other => Body::Unknown(other),
    })
}

#[derive(Debug, Clone)]
pub struct FormatDescription<'a> {
    /// The server's version, such as `10.11.8-MariaDB-log`.
    pub server_version: &'a [u8],
    /// When the log began, in seconds since 1970; 0 if the log does not begin here.
    pub created: u32,
    pub checksum: Checksum,
    pub(crate) fixed_bytes: &'a [u8],
}

impl<'a> FormatDescription<'a> {
    const VERSION: u16 = 4;
    const SERVER_VERSION_BYTES: usize = 50;
    /// Bytes of the algorithm's number and of the checksum, which is present even if other events have none.
    const TAIL_BYTES: usize = 5;

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        if reader.u16("the version of the log")? != Self::VERSION {
            return Err(reader.fail(BrokenRule::Unsupported("a log of another version than 4")));
        }
        let server = reader.take(Self::SERVER_VERSION_BYTES, "the server's version")?;
        let server_version = server.split(|byte| *byte == 0).next().unwrap_or_default();
        let created = reader.u32("a time")?;
        if usize::from(reader.u8("the size of headers")?) != Header::BYTES {
            return Err(reader.fail(BrokenRule::Unsupported("a log whose headers don't have 19 bytes")));
        }
        let rest = reader.rest();
        let tail = rest.len().checked_sub(Self::TAIL_BYTES).and_then(|at| rest.split_at_checked(at));
        let Some((fixed_bytes, [algorithm, ..])) = tail else {
            return Err(reader.fail(BrokenRule::EndsWithin("the sizes of fixed parts")));
        };
        let checksum = match algorithm {
            0 => Checksum::None,
            1 => Checksum::Crc32,
            _ => return Err(reader.fail(BrokenRule::Unsupported("a checksum other than CRC32"))),
        };
        Ok(Self { server_version, created, checksum, fixed_bytes })
    }
}

/// The log continues in another file.
#[derive(Debug, Clone, Copy)]
pub struct Rotate<'a> {
    pub position: u64,
    pub file: &'a [u8],
}

/// Sent when nothing was logged for a while. The header's `log_pos` is the stream's position.
#[derive(Debug, Clone, Copy)]
pub struct Heartbeat<'a> {
    pub file: &'a [u8],
}

/// A warning that changes may have been made that are not in the log.
#[derive(Debug, Clone, Copy)]
pub struct Incident<'a> {
    pub number: u16,
    pub message: &'a [u8],
}

impl<'a> Incident<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let number = reader.u16("a number")?;
        let length = usize::from(reader.u8("a length")?);
        Ok(Self { number, message: reader.take(length, "a message")? })
    }
}

/// The end of the first phase of an XA transaction, or of its only one.
#[derive(Debug, Clone, Copy)]
pub struct XaPrepare<'a> {
    pub one_phase: bool,
    pub xid: Xid<'a>,
}

impl<'a> XaPrepare<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let part = "an XID";
        let one_phase = reader.u8(part)? != 0;
        let format = reader.u32(part)?;
        let (global, branch) = (reader.u32(part)?, reader.u32(part)?);
        let mut id = |length| reader.take(usize::try_from(length).unwrap_or(usize::MAX), part);
        Ok(Self { one_phase, xid: Xid { format, global: id(global)?, branch: id(branch)? } })
    }
}
