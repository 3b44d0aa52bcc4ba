//! WebP, BMP and ICO, through the decoders of `image`, which hold a picture whole.

use super::raster::{Layout, Raster};
use super::shrink::{self, Shrinker};
use super::{Decode, Header, ImageFault, Limits, Size, Target, colour, exif, png};
use ::image::codecs::{bmp::BmpDecoder, ico::IcoDecoder, webp::WebPDecoder};
use ::image::metadata::Orientation;
use ::image::{ColorType, DynamicImage, ImageDecoder};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// Bytes of a pixel in memory: decoded, and while its colours become eight bits each.
const PIXEL_MAX_BYTES: u64 = 24;

pub(super) fn open_webp(mut file: File, bytes: u64, limits: &Limits) -> Result<Header, ImageFault> {
    // The container says how long it is, so that a cut animation is known without decoding it.
    let mut riff = [0; 8];
    file.read_exact(&mut riff)?;
    let [_, _, _, _, length @ ..] = riff;
    if u64::from(u32::from_le_bytes(length)) + 8 > bytes {
        return Err(ImageFault::Cut);
    }
    file.seek(SeekFrom::Start(0))?;
    header(WebPDecoder::new(BufReader::new(file))?, limits)
}

pub(super) fn open_bmp(file: File, limits: &Limits) -> Result<Header, ImageFault> {
    header(BmpDecoder::new(BufReader::new(file))?, limits)
}

pub(super) fn open_ico(mut file: File, bytes: u64, limits: &Limits) -> Result<Header, ImageFault> {
    // The largest icon is decoded; of the others it is seen that they are there.
    let mut head = [0; 6];
    file.read_exact(&mut head)?;
    let [.., low, high] = head;
    let mut entries = vec![0; usize::from(u16::from_le_bytes([low, high])) * 16];
    file.read_exact(&mut entries)?;
    let mut largest = (0, 0);
    for entry in entries.as_chunks::<16>().0 {
        let [width, height, .., s0, s1, s2, s3, o0, o1, o2, o3] = *entry;
        let begin = u64::from(u32::from_le_bytes([o0, o1, o2, o3]));
        if begin + u64::from(u32::from_le_bytes([s0, s1, s2, s3])) > bytes {
            return Err(ImageFault::Cut);
        }
        // 0 stands for 256.
        let side = |length: u8| u32::from(length.wrapping_sub(1)) + 1;
        largest = largest.max((side(width) * side(height), begin));
    }
    // One that is a PNG is read as such: the decoder of icons takes none without transparency.
    file.seek(SeekFrom::Start(largest.1))?;
    let mut signature = [0; 8];
    file.read_exact(&mut signature)?;
    if signature == *b"\x89PNG\r\n\x1a\n" {
        file.seek(SeekFrom::Start(largest.1))?;
        return png::open(file);
    }
    file.seek(SeekFrom::Start(0))?;
    header(IcoDecoder::new(BufReader::new(file))?, limits)
}

fn header<D: ImageDecoder + 'static>(
    mut decoder: D,
    limits: &Limits,
) -> Result<Header, ImageFault> {
    let (width, height) = decoder.dimensions();
    let size = Size { width, height };
    if size.pixels() <= limits.pixels {
        let mut inner = ::image::Limits::no_limits();
        inner.max_alloc = Some(size.pixels() * PIXEL_MAX_BYTES + (64 << 20));
        decoder.set_limits(inner)?;
    }
    // As it is decoded, and as it is arranged.
    let bytes = decoder.total_bytes().saturating_mul(2);
    Ok(Header {
        size,
        memory_bytes: bytes + size.pixels() * 4 + shrink::memory_bytes(size),
        decode: Decode::Pixels(Box::new(move |target| decode(decoder, target))),
    })
}

fn decode<D: ImageDecoder>(mut decoder: D, target: Target) -> Result<Raster, ImageFault> {
    let icc = decoder
        .icc_profile()?
        .filter(|profile| profile.len() <= colour::ICC_MAX_BYTES);
    let orientation = decoder
        .exif_metadata()?
        .map_or(Orientation::NoTransforms, |exif| exif::orientation(&exif));
    let layout = match decoder.color_type() {
        ColorType::L8 => Layout::Grey,
        ColorType::Rgb8 => Layout::Rgb,
        _ => Layout::Rgba,
    };
    let image = DynamicImage::from_decoder(decoder)?;
    let pixels = match layout {
        Layout::Grey => image.into_luma8().into_raw(),
        Layout::Rgb => image.into_rgb8().into_raw(),
        Layout::Rgba | Layout::Cmyk => image.into_rgba8().into_raw(),
    };
    let mut shrinker = Shrinker::new(target, layout);
    let line = target.from.width as usize * layout.bytes();
    pixels
        .chunks_exact(line)
        .try_for_each(|row| shrinker.push(row))?;
    shrinker.finish(icc, orientation)
}
