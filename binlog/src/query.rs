//! A logged statement: `BEGIN`, `COMMIT`, DDL, and changes of sessions that log statements.

use crate::bytes::Reader;
use crate::{Error, EventType, compressed};
use std::borrow::Cow;

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub thread: u32,
    /// Seconds.
    pub exec_time: u32,
    /// The server's error number; not 0 if a statement failed after it had changed something.
    pub error_code: u16,
    /// The session's database; empty if it had none.
    pub database: &'a [u8],
    status: &'a [u8],
    stored: &'a [u8],
    event: EventType,
    offset: usize,
}

impl<'a> Query<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let part = "the fixed part";
        let (thread, exec_time) = (reader.u32(part)?, reader.u32(part)?);
        let database_length = usize::from(reader.u8(part)?);
        let error_code = reader.u16(part)?;
        let status_length = usize::from(reader.u16(part)?);
        let status = reader.take(status_length, "the session's variables")?;
        let database = reader.terminated(database_length, "the name of a database")?;
        let offset = reader.offset();
        Ok(Self {
            thread,
            exec_time,
            error_code,
            database,
            status,
            stored: reader.rest(),
            event: reader.event(),
            offset,
        })
    }

    /// Returns the statement, in the character set of [`Self::collation`]. Decompresses to at most `limit` bytes.
    pub fn statement(&self, limit: usize) -> Result<Cow<'a, [u8]>, Error> {
        if self.event == EventType::QUERY_COMPRESSED {
            return compressed::event(self.event, self.offset, self.stored, limit).map(Cow::Owned);
        }
        Ok(Cow::Borrowed(self.stored))
    }

    /// Returns the number of the session's `collation` in which the statement was sent.
    pub fn collation(&self) -> Option<u16> {
        let [low, high, ..] = self.variable(4)? else {
            return None;
        };
        Some(u16::from_le_bytes([*low, *high]))
    }

    /// Returns the bits of the session's `sql_mode`.
    pub fn sql_mode(&self) -> Option<u64> {
        Some(u64::from_le_bytes(self.variable(1)?.try_into().ok()?))
    }

    fn variable(&self, wanted: u8) -> Option<&'a [u8]> {
        let mut reader = Reader::new(self.event, 0, self.status);
        let part = "a variable";
        loop {
            let code = reader.u8(part).ok()?;
            // The variables up to the character set. Others end the search.
            let length = match code {
                0 | 3 => 4,
                1 | 129 => 8,
                2 => usize::from(reader.u8(part).ok()?) + 1,
                4 => 6,
                6 => usize::from(reader.u8(part).ok()?),
                128 => 3,
                131 => usize::from(reader.u8(part).ok()?) * 4,
                _ => return None,
            };
            let value = reader.take(length, part).ok()?;
            if code == wanted {
                return Some(value);
            }
        }
    }
}
