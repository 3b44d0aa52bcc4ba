//! Texts and binary strings.

use crate::charset::{self, BINARY_COLLATION, Utf8};
use crate::{Error, compressed};
use std::borrow::Cow;

#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    pub(crate) stored: &'a [u8],
    pub(crate) collation: Option<u16>,
    /// Width of a CHAR or BINARY column, in bytes.
    pub(crate) width: Option<u16>,
    pub(crate) is_compressed: bool,
    /// The error for a text of unknown collation, and the place of all other errors.
    pub(crate) at: Error,
}

impl<'a> Text<'a> {
    /// Returns the number of the collation; `None` if `binlog_row_metadata` lacks it.
    pub fn collation(&self) -> Option<u16> {
        self.collation
    }

    /// Returns whether this is a BINARY, VARBINARY, BLOB, UUID, INET4, INET6 or VECTOR.
    pub fn is_binary(&self) -> Result<bool, Error> {
        Ok(self.collation.ok_or(self.at)? == BINARY_COLLATION)
    }

    /// Returns the bytes in the text's own character set, decompressed to at most `limit` bytes. Copies only compressed
    /// values, and a BINARY whose trailing zeros are not in the log.
    pub fn bytes(&self, limit: usize) -> Result<Cow<'a, [u8]>, Error> {
        if self.is_compressed {
            return compressed::column(self.at.event, self.at.offset, self.stored, limit);
        }
        match self.width.map(usize::from) {
            Some(width) if self.stored.len() < width && self.is_binary()? => {
                let mut whole = self.stored.to_vec();
                whole.resize(width, 0);
                Ok(Cow::Owned(whole))
            }
            _ => Ok(Cow::Borrowed(self.stored)),
        }
    }

    /// Returns the text in UTF-8, decompressed to at most `limit` bytes.
    pub fn to_utf8(&self, limit: usize) -> Result<Utf8<'a>, Error> {
        let collation = self.collation.ok_or(self.at)?;
        Ok(match self.bytes(limit)? {
            Cow::Borrowed(bytes) => charset::to_utf8(collation, bytes),
            Cow::Owned(bytes) => charset::to_utf8(collation, &bytes).into_owned(),
        })
    }
}
