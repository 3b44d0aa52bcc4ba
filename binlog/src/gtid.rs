//! MariaDB's global transaction ids.

use crate::bytes::Reader;
use crate::{BrokenRule, Error};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gtid {
    pub domain: u32,
    pub server: u32,
    pub sequence: u64,
}

/// The beginning of a group of events: a transaction or a single statement. The header has the server's id.
#[derive(Debug, Clone, Copy)]
pub struct GtidEvent<'a> {
    pub sequence: u64,
    pub domain: u32,
    pub flags: u8,
    /// Equal for transactions that were committed together.
    pub commit_id: Option<u64>,
    pub xid: Option<Xid<'a>>,
    pub extra_flags: u8,
    /// Sequence number of the `ALTER` that this group commits or rolls back (`binlog_alter_two_phase`).
    pub alter_start: Option<u64>,
}

impl<'a> GtidEvent<'a> {
    /// Flag of a group of one `QUERY`, without an event for its commit.
    pub const STANDALONE: u8 = 1;
    const HAS_COMMIT_ID: u8 = 2;
    pub const TRANSACTIONAL: u8 = 4;
    pub const DDL: u8 = 32;
    pub const PREPARED_XA: u8 = 64;
    pub const COMPLETED_XA: u8 = 128;

    const MULTI_ENGINE: u8 = 1;
    /// Flag of a group that begins an `ALTER`; a later group commits it or rolls it back.
    pub const EXTRA_START_ALTER: u8 = 2;
    pub const EXTRA_COMMIT_ALTER: u8 = 4;
    pub const EXTRA_ROLLBACK_ALTER: u8 = 8;

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let part = "a GTID";
        let sequence = reader.u64(part)?;
        let domain = reader.u32(part)?;
        let flags = reader.u8(part)?;
        let commit_id = if flags & Self::HAS_COMMIT_ID != 0 { Some(reader.u64(part)?) } else { None };
        let xid = if flags & (Self::PREPARED_XA | Self::COMPLETED_XA) != 0 {
            let format = reader.u32(part)?;
            let (global, branch) = (reader.u8(part)?, reader.u8(part)?);
            let global = reader.take(usize::from(global), part)?;
            Some(Xid { format, global, branch: reader.take(usize::from(branch), part)? })
        } else {
            None
        };
        // Events of older servers end here; others are padded with zeros, which are no flags.
        let extra_flags = if reader.is_empty() { 0 } else { reader.u8(part)? };
        if extra_flags & Self::MULTI_ENGINE != 0 {
            reader.u8(part)?;
        }
        let ends_alter = extra_flags & (Self::EXTRA_COMMIT_ALTER | Self::EXTRA_ROLLBACK_ALTER) != 0;
        let alter_start = if ends_alter { Some(reader.u64(part)?) } else { None };
        Ok(Self { sequence, domain, flags, commit_id, xid, extra_flags, alter_start })
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The id of an XA transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid<'a> {
    pub format: u32,
    pub global: &'a [u8],
    pub branch: &'a [u8],
}

/// The last GTID of each domain and server before this log.
#[derive(Debug, Clone, Copy)]
pub struct GtidList<'a> {
    pub flags: u8,
    entries: &'a [u8],
}

impl<'a> GtidList<'a> {
    const ENTRY_BYTES: usize = 16;
    const COUNT_BITS: u32 = 28;

    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let head = reader.u32("a number")?;
        let flags = u8::try_from(head >> Self::COUNT_BITS).unwrap_or_default();
        let count = usize::try_from(head & ((1 << Self::COUNT_BITS) - 1)).unwrap_or(usize::MAX);
        let length =
            count.checked_mul(Self::ENTRY_BYTES).ok_or_else(|| reader.fail(BrokenRule::EndsWithin("a GTID")))?;
        Ok(Self { flags, entries: reader.take(length, "a GTID")? })
    }

    pub fn gtids(&self) -> Gtids<'a> {
        Gtids { entries: self.entries }
    }
}

#[derive(Debug, Clone)]
pub struct Gtids<'a> {
    entries: &'a [u8],
}

impl Iterator for Gtids<'_> {
    type Item = Gtid;

    fn next(&mut self) -> Option<Gtid> {
        let (domain, rest) = self.entries.split_first_chunk()?;
        let (server, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        self.entries = rest;
        Some(Gtid {
            domain: u32::from_le_bytes(*domain),
            server: u32::from_le_bytes(*server),
            sequence: u64::from_le_bytes(*sequence),
        })
    }
}
