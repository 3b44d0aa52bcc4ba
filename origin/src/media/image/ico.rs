//! Decodes the largest image of an icon file; if several are largest, the one with the most bits per pixel.

use super::{Header, ImageFault, codecs, png};
use ::image::codecs::ico::IcoDecoder;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};

/// The maximum size of a bitmap: 1,024 × 1,024 pixels of four bytes, and a mask.
const BITMAP_MAX_BYTES: u32 = 5 * 1024 * 1024;

const PNG_SIGNATURE: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

struct IconEntry {
    /// Width and height in pixels; the file stores 0 for 256.
    sides: [u8; 2],
    pixels: u32,
    bits: u16,
    bytes: u32,
    offset: u32,
}

pub(super) fn open(mut file: File, file_bytes: u64) -> Result<Header, ImageFault> {
    let entry = largest(&mut file, file_bytes)?;
    let at = SeekFrom::Start(u64::from(entry.offset));
    file.seek(at)?;
    let mut signature = [0; 8];
    file.read_exact(&mut signature)?;
    file.seek(at)?;
    if signature == PNG_SIGNATURE {
        return png::open(file);
    }
    if entry.bytes > BITMAP_MAX_BYTES {
        return Err(ImageFault::TooCostly);
    }
    let mut bitmap = vec![0; entry.bytes as usize];
    file.read_exact(&mut bitmap)?;
    resolve_mask(&mut bitmap);
    let icon = of_one(&entry, &bitmap);
    let icon_bytes = icon.len() as u64;
    codecs::header(IcoDecoder::new(Cursor::new(icon))?, icon_bytes)
}

fn largest(file: &mut File, file_bytes: u64) -> Result<IconEntry, ImageFault> {
    let mut head = [0; 6];
    file.read_exact(&mut head)?;
    let [.., low, high] = head;
    let mut entries = vec![0; usize::from(u16::from_le_bytes([low, high])) * 16];
    file.read_exact(&mut entries)?;
    let side = |length: u8| u32::from(length.wrapping_sub(1)) + 1;
    let mut largest: Option<IconEntry> = None;
    for entry in entries.as_chunks::<16>().0 {
        let [width, height, _, _, _, _, b0, b1, s0, s1, s2, s3, o0, o1, o2, o3] = *entry;
        let entry = IconEntry {
            sides: [width, height],
            pixels: side(width) * side(height),
            bits: u16::from_le_bytes([b0, b1]),
            bytes: u32::from_le_bytes([s0, s1, s2, s3]),
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
        };
        if u64::from(entry.offset) + u64::from(entry.bytes) > file_bytes {
            return Err(ImageFault::Cut);
        }
        if largest.as_ref().is_none_or(|other| (other.pixels, other.bits) < (entry.pixels, entry.bits)) {
            largest = Some(entry);
        }
    }
    largest.ok_or(ImageFault::Corrupt)
}

/// Removes the mask, or the opacity if it is 0 everywhere, as Windows and browsers do. The decoder would apply both.
fn resolve_mask(bitmap: &mut Vec<u8>) {
    let number = |at: usize| {
        let bytes = bitmap.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let (header, width, both_heights) = (number(0), number(4), number(8));
    // The lower 16 bits are the number of planes, the upper 16 are the bits a pixel.
    if number(12) >> 16 != 32 || number(16) != 0 {
        return;
    }
    let pixels = u64::from(width) * u64::from(both_heights / 2);
    let (start, end) = (u64::from(header), pixels.saturating_mul(4).saturating_add(u64::from(header)));
    let Some(colours) = bitmap.get_mut(start as usize..end as usize) else {
        return;
    };
    let mut opacities = colours.as_chunks_mut::<4>().0.iter_mut().map(|[.., a]| a);
    if opacities.any(|opacity| *opacity != 0) {
        bitmap.truncate(end as usize);
    } else {
        for [.., opacity] in colours.as_chunks_mut::<4>().0 {
            *opacity = 255;
        }
    }
}

/// Makes an icon file of one bitmap. Takes the size from the bitmap's header if possible: `entry` may have a wrong one.
fn of_one(entry: &IconEntry, bitmap: &[u8]) -> Vec<u8> {
    let mut icon = vec![0, 0, 1, 0, 1, 0];
    match *bitmap {
        // A header with sides of 32 bits, in which the height is that of the picture and the mask together.
        [40..=124, 0, 0, 0, w0, w1, w2, w3, h0, h1, h2, h3, ..] => {
            let width = u32::from_le_bytes([w0, w1, w2, w3]);
            let height = u32::from_le_bytes([h0, h1, h2, h3]) / 2;
            icon.extend([width, height].map(|side| u8::try_from(side).unwrap_or(0)));
        }
        _ => icon.extend(entry.sides),
    }
    icon.extend([0, 0, 1, 0, 32, 0]);
    icon.extend(entry.bytes.min(bitmap.len() as u32).to_le_bytes());
    icon.extend(22_u32.to_le_bytes());
    icon.extend(bitmap);
    icon
}
