//! Decompresses statements, rows and columns. In each, the first byte contains the algorithm and the number of bytes of
//! the length, which follows as a big-endian number.

use crate::bytes::{Reader, big};
use crate::{BrokenRule, Error, EventType};
use flate2::{Decompress, FlushDecompress, Status};
use std::borrow::Cow;

/// Maximum bytes that Deflate makes of one byte.
const RATIO_MAX: usize = 1_032;

/// Decompresses a statement or rows (`log_bin_compress`).
pub(crate) fn event(event: EventType, base: usize, stored: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    let mut reader = Reader::new(event, base, stored);
    let header = reader.u8("the head of compressed bytes")?;
    if header & 0xF8 != 0x80 {
        return Err(reader.fail(BrokenRule::Unsupported("an event that is not compressed by zlib")));
    }
    inflate(&mut reader, header, Decompress::new(true), limit)
}

/// Decompresses a value of a `COMPRESSED` column. MariaDB stores a short value uncompressed after a zero byte.
pub(crate) fn column(event: EventType, base: usize, stored: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, Error> {
    if stored.is_empty() {
        return Ok(Cow::Borrowed(stored));
    }
    let mut reader = Reader::new(event, base, stored);
    let header = reader.u8("the head of a compressed value")?;
    match header >> 4 {
        0 => Ok(Cow::Borrowed(reader.rest())),
        8 => inflate(&mut reader, header, Decompress::new(header & 8 == 0), limit).map(Cow::Owned),
        _ => Err(reader.fail(BrokenRule::Unsupported("a column that is not compressed by zlib"))),
    }
}

fn inflate(reader: &mut Reader<'_>, header: u8, mut zlib: Decompress, limit: usize) -> Result<Vec<u8>, Error> {
    let length_bytes = usize::from(header & 7);
    if !(1..=4).contains(&length_bytes) {
        return Err(reader.fail(BrokenRule::Format("a compressed length has 1 to 4 bytes")));
    }
    let bytes = big(reader.take(length_bytes, "a compressed length")?);
    let too_large = reader.fail(BrokenRule::TooLarge { bytes });
    let length = usize::try_from(bytes).map_err(|_| too_large)?;
    if length > limit {
        return Err(too_large);
    }
    let fault = reader.fail(BrokenRule::Format("compressed bytes are not what their length says"));
    let stored = reader.rest();
    if length > stored.len().saturating_mul(RATIO_MAX) {
        return Err(fault);
    }
    // Has room for one byte more, so that zlib sees the end of the stream even if it is a byte too long.
    let mut made = Vec::with_capacity(length.saturating_add(1));
    let status = zlib.decompress_vec(stored, &mut made, FlushDecompress::Finish).map_err(|_| fault)?;
    if status == Status::StreamEnd && made.len() == length { Ok(made) } else { Err(fault) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};

    /// Compresses bytes, with or without the head of zlib, behind this head byte and length.
    fn stored(head: u8, length: u8, has_zlib_head: bool, bytes: &[u8]) -> Vec<u8> {
        let mut stored = vec![head, length];
        let mut made = Vec::with_capacity(1_000);
        Compress::new(Compression::best(), has_zlib_head)
            .compress_vec(bytes, &mut made, FlushCompress::Finish)
            .unwrap();
        stored.extend(made);
        stored
    }

    #[test]
    fn columns_are_compressed_with_and_without_the_head_of_zlib() {
        let text = [7; 200];
        let read = |stored: &[u8]| column(EventType::WRITE_ROWS_V1, 0, stored, 200).map(Cow::into_owned);
        assert_eq!(read(&stored(0x81, 200, true, &text)).unwrap(), text);
        assert_eq!(read(&stored(0x89, 200, false, &text)).unwrap(), text);
        assert_eq!(read(&[0, 1, 2]).unwrap(), [1, 2]);
        assert_eq!(read(&[]).unwrap(), []);
        let rule = |stored: &[u8]| read(stored).unwrap_err().rule;
        assert_eq!(
            rule(&stored(0x91, 200, true, &text)),
            BrokenRule::Unsupported("a column that is not compressed by zlib")
        );
        assert_eq!(rule(&stored(0x80, 200, true, &text)), BrokenRule::Format("a compressed length has 1 to 4 bytes"));
        let other = BrokenRule::Format("compressed bytes are not what their length says");
        for length in [199, 100, 0] {
            assert_eq!(rule(&stored(0x81, length, true, &text)), other, "{length}");
        }
        let longer = stored(0x81, 200, true, &[7; 199]);
        assert_eq!(rule(&longer), other);
        let whole = stored(0x81, 200, true, &text);
        for missing in 1..=5 {
            assert_eq!(rule(&whole[..whole.len() - missing]), other, "without its last {missing} bytes");
        }
        assert_eq!(
            column(EventType::WRITE_ROWS_V1, 0, &whole, 199).unwrap_err().rule,
            BrokenRule::TooLarge { bytes: 200 }
        );
    }
}
