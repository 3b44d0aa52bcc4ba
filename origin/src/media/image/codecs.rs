//! Decodes WebP, BMP and bitmaps in icons with the crate `image`, which needs memory for the whole image.

use super::raster::{PixelLayout, Raster, orientation};
use super::shrink::{self, Shrinker};
use super::{Decode, Header, ImageFault, Limits, Scaling, Size, raster};
use ::image::codecs::{bmp::BmpDecoder, webp::WebPDecoder};
use ::image::metadata::Orientation;
use ::image::{ColorType, ImageDecoder};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};

pub(super) fn open_webp(mut file: File, bytes: u64, limits: &Limits) -> Result<Header, ImageFault> {
    let mut head = [0; 21];
    file.read_exact(&mut head)?;
    let [_, _, _, _, l0, l1, l2, l3, _, _, _, _, kind @ .., _, _, _, _, flags] = head;
    // The container header has the file's length, so a truncated file is found without decoding, even in the later
    // frames of an animation.
    if u64::from(u32::from_le_bytes([l0, l1, l2, l3])) + 8 > bytes {
        return Err(ImageFault::Cut);
    }
    file.seek(SeekFrom::Start(0))?;
    let file = MemoryGuard::new(file, limits.memory_bytes);
    let decoder = WebPDecoder::new(BufReader::new(file))?;
    let (width, height) = decoder.dimensions();
    let pixels = Size { width, height }.pixels();
    // The memory in half bytes per pixel. Lossy: three planes. Lossless: four samples and transforms. With opacity:
    // lossy and lossless together. Animated: the canvas too.
    let (animated, transparent) = (flags & 0x02 != 0, flags & 0x10 != 0);
    let halves = match &kind {
        b"VP8 " => 3,
        b"VP8X" if animated => 28,
        b"VP8X" if transparent => 13,
        _ => 10,
    };
    header(decoder, pixels * halves / 2 + bytes)
}

pub(super) fn open_bmp(file: File) -> Result<Header, ImageFault> {
    header(BmpDecoder::new(BufReader::new(file))?, 0)
}

pub(super) fn header<D: ImageDecoder + 'static>(decoder: D, working_bytes: u64) -> Result<Header, ImageFault> {
    let (width, height) = decoder.dimensions();
    let size = Size { width, height };
    Ok(Header {
        size,
        memory_bytes: decoder.total_bytes().saturating_add(working_bytes).saturating_add(shrink::memory_bytes(size)),
        decode: Decode::Pixels(Box::new(move |target| decode(decoder, target))),
    })
}

fn decode<D: ImageDecoder>(mut decoder: D, target: Scaling) -> Result<Raster, ImageFault> {
    let icc = decoder.icc_profile()?.filter(|profile| profile.len() <= raster::ICC_MAX_BYTES);
    let orientation = decoder.exif_metadata()?.map_or(Orientation::NoTransforms, |exif| orientation(&exif));
    let layout = match decoder.color_type() {
        ColorType::L8 => PixelLayout::Grey,
        ColorType::Rgb8 => PixelLayout::Rgb,
        ColorType::Rgba8 => PixelLayout::Rgba,
        _ => return Err(ImageFault::Unsupported),
    };
    let mut pixels = vec![0; decoder.total_bytes() as usize];
    decoder.read_image(&mut pixels)?;
    let mut shrinker = Shrinker::new(target, layout);
    let line = target.from.width as usize * layout.bytes();
    pixels.chunks_exact(line).try_for_each(|row| shrinker.push(row))?;
    shrinker.finish(icc, orientation)
}

/// A reader that fails once decoding takes too much memory: a lossless WebP of 4 MB may have 65,536 groups of Huffman
/// tables of 20 KB each. Measures the whole process, since allocations can't be counted by thread.
struct MemoryGuard<R> {
    inner: R,
    resident_max_bytes: Option<u64>,
}

impl<R> MemoryGuard<R> {
    fn new(inner: R, growth_bytes: u64) -> Self {
        Self { inner, resident_max_bytes: resident_bytes().map(|bytes| bytes + growth_bytes) }
    }
}

impl<R: Read> Read for MemoryGuard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (Some(max), Some(now)) = (self.resident_max_bytes, resident_bytes())
            && now > max
        {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.inner.read(buffer)
    }
}

impl<R: Seek> Seek for MemoryGuard<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

fn resident_bytes() -> Option<u64> {
    let sizes = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = sizes.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
