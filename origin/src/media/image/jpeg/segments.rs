//! Reads the structure of a JPEG file: the segments that decoding needs, and the memory that decoding takes.

use super::super::raster::orientation;
use super::super::{ImageFault, Size, raster};
use ::image::metadata::Orientation;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::ops::Range;

const SEGMENTS_MAX_COUNT: usize = 4096;

/// The maximum size of all tables and headers that are read. Encoders write a few KB.
const HEAD_MAX_BYTES: usize = 1024 * 1024;

/// The memory of a block of 64 coefficients of 16 bits.
const BLOCK_BYTES: u64 = 128;

pub(super) struct Segments {
    pub(super) size: Size,
    pub(super) precision: u8,
    pub(super) head: Vec<u8>,
    /// The bytes from the first scan's compressed data up to and including the end marker.
    pub(super) scans: Range<u64>,
    /// Memory that is kept until the last scan; 0 for a sequential image whose first scan has all components.
    pub(super) coefficient_bytes: u64,
    /// Whether the JPEG is lossless: then it can't be decoded at a fraction of its size.
    pub(super) lossless: bool,
    pub(super) adobe: bool,
    pub(super) exif: Option<Vec<u8>>,
    pub(super) icc: Option<Vec<u8>>,
}

impl Segments {
    pub(super) fn data_bytes(&self) -> u64 {
        self.head.len() as u64 + (self.scans.end - self.scans.start)
    }

    pub(super) fn orientation(&self) -> Orientation {
        self.exif.as_deref().map_or(Orientation::NoTransforms, orientation)
    }
}

pub(super) fn read(reader: &mut BufReader<File>) -> Result<Segments, ImageFault> {
    let mut tables = Vec::new();
    let mut frame = None;
    let (mut exif, mut profile) = (None, Profile::default());
    let (mut jfif, mut adobe) = (false, None);
    reader.read_exact(&mut [0; 2])?;
    for _ in 0..SEGMENTS_MAX_COUNT {
        let marker = next_marker(reader)?;
        match marker {
            0xD9 => return Err(ImageFault::Corrupt),
            // Markers without content (no length follows them).
            0x01 | 0xD0..=0xD8 => {}
            0xC0..=0xCF | 0xDA | 0xDB | 0xDD => {
                let content = segment(reader)?;
                append_segment(&mut tables, marker, &content);
                if tables.len() > HEAD_MAX_BYTES {
                    return Err(ImageFault::Corrupt);
                }
                if marker == 0xDA {
                    let frame: Frame = frame.ok_or(ImageFault::Corrupt)?;
                    let scans = scans(reader)?;
                    return Ok(Segments {
                        size: frame.size,
                        precision: frame.precision,
                        head: frame.head(jfif, adobe, &tables),
                        scans,
                        coefficient_bytes: frame.coefficient_bytes(&content),
                        lossless: frame.is_lossless(),
                        adobe: adobe.is_some(),
                        exif,
                        icc: profile.finish(),
                    });
                }
                // C4, C8 and CC are in the range of frame markers, but are not frames.
                if marker < 0xD0 && !matches!(marker, 0xC4 | 0xC8 | 0xCC) {
                    frame = Some(Frame::read(marker, &content)?);
                }
            }
            0xE0 => jfif |= segment(reader)?.starts_with(b"JFIF\0"),
            0xE1 => {
                let content = segment(reader)?;
                if exif.is_none() && content.starts_with(b"Exif\0") {
                    exif = Some(content);
                }
            }
            0xE2 => profile.add(&segment(reader)?),
            0xEE => {
                let content = segment(reader)?;
                if content.starts_with(b"Adobe") {
                    adobe = content.get(11).copied();
                }
            }
            _ => skip(reader)?,
        }
    }
    Err(ImageFault::Corrupt)
}

fn scans(reader: &mut BufReader<File>) -> Result<Range<u64>, ImageFault> {
    let start = reader.stream_position()?;
    loop {
        match next_marker(reader)? {
            0xD9 => return Ok(start..reader.stream_position()?),
            0x01 | 0xD0..=0xD8 => {}
            _ => skip(reader)?,
        }
    }
}

fn next_marker(reader: &mut BufReader<File>) -> Result<u8, ImageFault> {
    let mut byte = [0];
    loop {
        reader.skip_until(0xFF)?;
        loop {
            reader.read_exact(&mut byte)?;
            match byte[0] {
                0xFF => {}
                0 => break,
                marker => return Ok(marker),
            }
        }
    }
}

fn length(reader: &mut BufReader<File>) -> Result<u16, ImageFault> {
    let mut length = [0; 2];
    reader.read_exact(&mut length)?;
    u16::from_be_bytes(length).checked_sub(2).ok_or(ImageFault::Corrupt)
}

fn segment(reader: &mut BufReader<File>) -> Result<Vec<u8>, ImageFault> {
    let mut content = vec![0; usize::from(length(reader)?)];
    reader.read_exact(&mut content)?;
    Ok(content)
}

fn skip(reader: &mut BufReader<File>) -> Result<(), ImageFault> {
    let length = length(reader)?;
    Ok(reader.seek_relative(i64::from(length))?)
}

/// Appends a segment. `content` must be shorter than 65,534 bytes.
fn append_segment(to: &mut Vec<u8>, marker: u8, content: &[u8]) {
    to.extend([0xFF, marker]);
    to.extend((content.len() as u16 + 2).to_be_bytes());
    to.extend(content);
}

struct Frame {
    marker: u8,
    precision: u8,
    size: Size,
    /// Horizontal and vertical sampling factors, from 1 to 4.
    components: Vec<(u8, u8)>,
}

impl Frame {
    fn read(marker: u8, content: &[u8]) -> Result<Self, ImageFault> {
        let [precision, h0, h1, w0, w1, _, components @ ..] = content else {
            return Err(ImageFault::Corrupt);
        };
        let components: Vec<_> =
            components.as_chunks::<3>().0.iter().map(|[_, factors, _]| (factors >> 4, factors & 15)).collect();
        let in_range = |factor| (1..=4).contains(&factor);
        if components.is_empty() || !components.iter().all(|(across, down)| in_range(*across) && in_range(*down)) {
            return Err(ImageFault::Corrupt);
        }
        Ok(Self {
            marker,
            precision: *precision,
            size: Size {
                width: u32::from(u16::from_be_bytes([*w0, *w1])),
                height: u32::from(u16::from_be_bytes([*h0, *h1])),
            },
            components,
        })
    }

    fn is_lossless(&self) -> bool {
        matches!(self.marker, 0xC3 | 0xC7 | 0xCB | 0xCF)
    }

    fn coefficient_bytes(&self, first_scan: &[u8]) -> u64 {
        let is_progressive = matches!(self.marker, 0xC2 | 0xC6 | 0xCA | 0xCE);
        let in_first_scan = first_scan.first().copied().map_or(0, usize::from);
        if !is_progressive && in_first_scan >= self.components.len() {
            return 0;
        }
        let largest = |factor: fn(&(u8, u8)) -> u8| {
            let largest = self.components.iter().map(factor).max();
            u32::from(largest.unwrap_or(1))
        };
        let units_across = self.size.width.div_ceil(8 * largest(|factors| factors.0));
        let units_down = self.size.height.div_ceil(8 * largest(|factors| factors.1));
        let blocks = self.components.iter().map(|(across, down)| u64::from(across * down));
        u64::from(units_across) * u64::from(units_down) * blocks.sum::<u64>() * BLOCK_BYTES
    }

    /// Returns the head of the file, with JFIF and Adobe segments of its own, so that libjpeg doesn't misread them.
    fn head(&self, jfif: bool, adobe: Option<u8>, tables: &[u8]) -> Vec<u8> {
        let mut head = vec![0xFF, 0xD8];
        if jfif {
            append_segment(&mut head, 0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
        }
        if let Some(transform) = adobe {
            let transform = match (transform, self.components.len()) {
                (0, _) => 0,
                (_, 4) => 2,
                _ => 1,
            };
            append_segment(&mut head, 0xEE, &[b'A', b'd', b'o', b'b', b'e', 0, 100, 0, 0, 0, 0, transform]);
        }
        head.extend(tables);
        head
    }
}

#[derive(Default)]
struct Profile {
    parts: BTreeMap<u8, Vec<u8>>,
    bytes: usize,
}

impl Profile {
    /// Adds a part of the profile, unless the profile would then exceed [`raster::ICC_MAX_BYTES`].
    fn add(&mut self, content: &[u8]) {
        let Some([number, _count, part @ ..]) = content.strip_prefix(b"ICC_PROFILE\0") else {
            return;
        };
        if self.bytes + part.len() <= raster::ICC_MAX_BYTES && !self.parts.contains_key(number) {
            self.bytes += part.len();
            self.parts.insert(*number, part.to_vec());
        }
    }

    fn finish(self) -> Option<Vec<u8>> {
        (!self.parts.is_empty()).then(|| self.parts.into_values().flatten().collect())
    }
}
