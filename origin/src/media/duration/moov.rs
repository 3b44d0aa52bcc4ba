//! MP4 and QuickTime: the movie header, `moov/mvhd`; of fragmented ones `moov/mvex/mehd`.

use crate::media::boxes::{BoxHead, HEAD_BYTES};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// Boxes of one level that are walked over.
const BOXES_MAX_COUNT: usize = 4096;

pub(super) fn seconds(reader: &mut (impl Read + Seek), bytes: u64) -> Option<f64> {
    let movie = find(reader, 0..bytes, b"moov")?;
    let header = find(reader, movie.clone(), b"mvhd")?;
    let (scale, ticks) = movie_header(&content(reader, header)?)?;
    let ticks = match ticks {
        0 => {
            let extends = find(reader, movie, b"mvex")?;
            let header = find(reader, extends, b"mehd")?;
            fragments_header(&content(reader, header)?)?
        }
        ticks => ticks,
    };
    (scale > 0 && ticks > 0).then(|| ticks as f64 / f64::from(scale))
}

/// Ticks a second, and ticks; none if they are unknown.
fn movie_header(content: &[u8]) -> Option<(u32, u64)> {
    let (version, rest) = content.split_first()?;
    // Flags, times of creation and modification.
    let long = *version == 1;
    let rest = rest.get(if long { 3 + 16 } else { 3 + 8 }..)?;
    let scale = u32::from_be_bytes(*rest.first_chunk()?);
    let rest = rest.get(4..)?;
    let ticks = if long {
        u64::from_be_bytes(*rest.first_chunk()?)
    } else {
        u64::from(u32::from_be_bytes(*rest.first_chunk()?))
    };
    let unknown = if long { u64::MAX } else { u64::from(u32::MAX) };
    Some((scale, if ticks == unknown { 0 } else { ticks }))
}

fn fragments_header(content: &[u8]) -> Option<u64> {
    let (version, rest) = content.split_first()?;
    let rest = rest.get(3..)?;
    Some(match version {
        1 => u64::from_be_bytes(*rest.first_chunk()?),
        _ => u64::from(u32::from_be_bytes(*rest.first_chunk()?)),
    })
}

/// Where the content of the first box of a kind is.
fn find(reader: &mut (impl Read + Seek), within: Range<u64>, kind: &[u8; 4]) -> Option<Range<u64>> {
    let mut at = within.start;
    for _ in 0..BOXES_MAX_COUNT {
        let left = within.end.checked_sub(at).filter(|left| *left > 0)?;
        let mut head = [0; HEAD_BYTES];
        let taken = head.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        reader.seek(SeekFrom::Start(at)).ok()?;
        reader.read_exact(&mut head[..taken]).ok()?;
        let found = BoxHead::read(&head[..taken], left).ok()?;
        if found.kind == *kind {
            return Some(at + found.start..at + found.length);
        }
        at += found.length;
    }
    None
}

/// The first bytes of a box's content: all that a header has.
fn content(reader: &mut (impl Read + Seek), place: Range<u64>) -> Option<Vec<u8>> {
    const HEADER_MAX_BYTES: u64 = 128;
    reader.seek(SeekFrom::Start(place.start)).ok()?;
    let mut content = Vec::new();
    reader
        .take((place.end - place.start).min(HEADER_MAX_BYTES))
        .read_to_end(&mut content)
        .ok()?;
    Some(content)
}
