//! Reads numbers and parts from bytes, never beyond their end.

use crate::{BrokenRule, Error, EventType};

#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes` in the event.
    base: usize,
    event: EventType,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(event: EventType, base: usize, bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, base, event }
    }

    pub(crate) fn event(&self) -> EventType {
        self.event
    }

    pub(crate) fn offset(&self) -> usize {
        self.base.saturating_add(self.at)
    }

    pub(crate) fn fail(&self, rule: BrokenRule) -> Error {
        Error { event: self.event, offset: self.offset(), rule }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn take(&mut self, count: usize, part: &'static str) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(count);
        let taken =
            end.and_then(|end| self.bytes.get(self.at..end)).ok_or_else(|| self.fail(BrokenRule::EndsWithin(part)))?;
        self.at = self.at.saturating_add(count);
        Ok(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], Error> {
        let fault = self.fail(BrokenRule::EndsWithin(part));
        self.take(N, part)?.try_into().map_err(|_| fault)
    }

    pub(crate) fn u8(&mut self, part: &'static str) -> Result<u8, Error> {
        Ok(u8::from_le_bytes(self.array(part)?))
    }

    pub(crate) fn u16(&mut self, part: &'static str) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array(part)?))
    }

    pub(crate) fn u32(&mut self, part: &'static str) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array(part)?))
    }

    pub(crate) fn u64(&mut self, part: &'static str) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array(part)?))
    }

    /// Reads a little-endian number of up to 8 bytes.
    pub(crate) fn little(&mut self, count: usize, part: &'static str) -> Result<u64, Error> {
        Ok(little(self.take(count, part)?))
    }

    /// Reads a number in MySQL's length-encoded form: one byte up to 250, otherwise a byte that says how many follow.
    pub(crate) fn packed(&mut self, part: &'static str) -> Result<u64, Error> {
        match self.u8(part)? {
            short @ 0..=250 => Ok(u64::from(short)),
            252 => self.little(2, part),
            253 => self.little(3, part),
            254 => self.little(8, part),
            _ => Err(self.fail(BrokenRule::Format("a packed number begins with 251 or 255"))),
        }
    }

    /// Reads a packed number that is a length or an index. Fails if the number does not fit a `usize`.
    pub(crate) fn packed_length(&mut self, part: &'static str) -> Result<usize, Error> {
        let length = self.packed(part)?;
        usize::try_from(length).map_err(|_| self.fail(BrokenRule::EndsWithin(part)))
    }

    /// Reads a text of `count` bytes and the zero byte after it.
    pub(crate) fn terminated(&mut self, count: usize, part: &'static str) -> Result<&'a [u8], Error> {
        let text = self.take(count, part)?;
        if self.u8(part)? != 0 {
            return Err(self.fail(BrokenRule::Format("a name has no zero byte behind it")));
        }
        Ok(text)
    }
}

/// Decodes a little-endian number. Bytes beyond the eighth are ignored.
pub(crate) fn little(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Decodes a big-endian number. Of more than eight bytes, only the last eight count.
pub(crate) fn big(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns whether the bit of a column is set in a bitmap whose lowest bit is the first column.
pub(crate) fn bit(bitmap: &[u8], index: usize) -> bool {
    bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}
