//! WebM and Matroska: `Segment/Info`, which holds ticks as a float and nanoseconds a tick.

use std::io::{Read, Seek, SeekFrom};

const SEGMENT: u32 = 0x1853_8067;
const INFO: u32 = 0x1549_A966;
const CLUSTER: u32 = 0x1F43_B675;
const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
const DURATION: u32 = 0x4489;

/// Elements that are walked over.
const ELEMENTS_MAX_COUNT: usize = 1024;

/// What a tick lasts if nothing is said: a millisecond.
const TICK_NANOSECONDS: u64 = 1_000_000;

struct Element {
    id: u32,
    /// Where the content begins.
    at: u64,
    /// Bytes of the content; those of a live stream are unknown.
    length: Option<u64>,
}

pub(super) fn seconds(reader: &mut (impl Read + Seek), bytes: u64) -> Option<f64> {
    let info = enter(reader, 0, bytes, SEGMENT)
        .and_then(|(start, end)| enter(reader, start, end, INFO))?;
    let (mut at, end) = info;
    let (mut nanoseconds, mut ticks) = (TICK_NANOSECONDS, None);
    for _ in 0..ELEMENTS_MAX_COUNT {
        if at >= end {
            break;
        }
        let element = element(reader, at)?;
        let length = element.length?;
        match element.id {
            TIMESTAMP_SCALE => nanoseconds = whole(reader, length)?,
            DURATION => ticks = float(reader, length),
            _ => {}
        }
        at = element.at.checked_add(length)?;
    }
    ticks
        .filter(|ticks| *ticks > 0.0)
        .map(|ticks| ticks * nanoseconds as f64 / 1e9)
}

/// Where the content of the first element of that kind begins and ends.
fn enter(reader: &mut (impl Read + Seek), from: u64, to: u64, id: u32) -> Option<(u64, u64)> {
    let mut at = from;
    for _ in 0..ELEMENTS_MAX_COUNT {
        if at >= to {
            return None;
        }
        let element = element(reader, at)?;
        let end = element
            .length
            .and_then(|length| element.at.checked_add(length))
            .map_or(to, |end| end.min(to));
        if element.id == id {
            return Some((element.at, end));
        }
        // What is said of the whole stands before its pictures.
        if element.id == CLUSTER {
            return None;
        }
        at = element.at.checked_add(element.length?)?;
    }
    None
}

fn element(reader: &mut (impl Read + Seek), at: u64) -> Option<Element> {
    reader.seek(SeekFrom::Start(at)).ok()?;
    let (id, id_bytes) = number(reader, 4)?;
    let (length, length_bytes) = number(reader, 8)?;
    // Without the bit that marks how many bytes it has; all other bits set mean that it is unknown.
    let mask = (1_u64 << (7 * length_bytes)) - 1;
    let length = length & mask;
    Some(Element {
        id: u32::try_from(id).ok()?,
        at: at + u64::from(id_bytes) + u64::from(length_bytes),
        length: (length != mask).then_some(length),
    })
}

/// A number of as many bytes as its first one says, and how many those are. The marker bit is left in.
fn number(reader: &mut impl Read, bytes_max: u32) -> Option<(u64, u32)> {
    let mut first = [0];
    reader.read_exact(&mut first).ok()?;
    let count = first[0].leading_zeros() + 1;
    if count > bytes_max {
        return None;
    }
    let mut value = u64::from(first[0]);
    for _ in 1..count {
        let mut next = [0];
        reader.read_exact(&mut next).ok()?;
        value = value << 8 | u64::from(next[0]);
    }
    Some((value, count))
}

fn whole(reader: &mut impl Read, length: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let from = 8_usize.checked_sub(usize::try_from(length).ok()?)?;
    reader.read_exact(&mut bytes[from..]).ok()?;
    Some(u64::from_be_bytes(bytes))
}

fn float(reader: &mut impl Read, length: u64) -> Option<f64> {
    match length {
        4 => {
            let mut bytes = [0; 4];
            reader.read_exact(&mut bytes).ok()?;
            Some(f64::from(f32::from_be_bytes(bytes)))
        }
        8 => {
            let mut bytes = [0; 8];
            reader.read_exact(&mut bytes).ok()?;
            Some(f64::from_be_bytes(bytes))
        }
        _ => None,
    }
}
