//! Decodes PNG row by row, with memory for a few rows only; an interlaced image is decoded as a whole.

use super::raster::{EXIF_MAX_BYTES, PixelLayout, orientation};
use super::shrink::{self, Shrinker};
use super::{Decode, Header, ImageFault, Scaling, Size};
use ::image::metadata::Orientation;
use ::png::{ColorType, Decoder, Limits, Reader, Transformations};
use std::fs::File;
use std::io::BufReader;

/// The maximum size of all chunks that the decoder keeps, including a decompressed ICC profile.
const CHUNKS_MAX_BYTES: usize = 8 * 1024 * 1024;

pub(super) fn open(file: File) -> Result<Header, ImageFault> {
    let mut decoder =
        Decoder::new_with_limits(BufReader::with_capacity(64 * 1024, file), Limits { bytes: CHUNKS_MAX_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let reader = decoder.read_info()?;
    let info = reader.info();
    let size = Size { width: info.width, height: info.height };
    let pixels_bytes = match info.interlaced {
        true => reader.output_buffer_size().ok_or(ImageFault::TooCostly)? as u64,
        false => u64::from(size.width) * 32,
    };
    Ok(Header {
        size,
        memory_bytes: pixels_bytes + CHUNKS_MAX_BYTES as u64 + shrink::memory_bytes(size),
        decode: Decode::Pixels(Box::new(move |target| decode(reader, target))),
    })
}

fn decode(mut reader: Reader<BufReader<File>>, target: Scaling) -> Result<super::Raster, ImageFault> {
    let (colours, _) = reader.output_color_type();
    let layout = match colours {
        ColorType::Grayscale => PixelLayout::Grey,
        ColorType::Rgb => PixelLayout::Rgb,
        ColorType::GrayscaleAlpha | ColorType::Rgba => PixelLayout::Rgba,
        ColorType::Indexed => return Err(ImageFault::Corrupt),
    };
    let mut shrinker = Shrinker::new(target, layout);
    let mut widened = Vec::new();
    let mut push = |row: &[u8]| {
        if colours == ColorType::GrayscaleAlpha {
            widened.clear();
            for [grey, opacity] in row.as_chunks::<2>().0 {
                widened.extend([*grey, *grey, *grey, *opacity]);
            }
            shrinker.push(&widened)
        } else {
            shrinker.push(row)
        }
    };
    let line = reader.output_line_size(target.from.width).ok_or(ImageFault::TooCostly)?;
    if reader.info().interlaced {
        let bytes = reader.output_buffer_size().ok_or(ImageFault::TooCostly)?;
        let mut whole = vec![0; bytes];
        reader.next_frame(&mut whole)?;
        whole.chunks_exact(line).try_for_each(&mut push)?;
    } else {
        let mut row = vec![0; line];
        for _ in 0..target.from.height {
            reader.read_row(&mut row)?.ok_or(ImageFault::Cut)?;
            push(&row)?;
        }
    }
    // Metadata may follow the pixels. Further frames are checked without being decoded.
    reader.finish()?;
    let info = reader.info();
    // An image that declares sRGB needs no profile.
    let icc = match info.srgb {
        Some(_) => None,
        None => info.icc_profile.as_deref().map(<[u8]>::to_vec),
    };
    let orientation = info
        .exif_metadata
        .as_deref()
        .and_then(|exif| exif.get(..EXIF_MAX_BYTES.min(exif.len())))
        .map_or(Orientation::NoTransforms, orientation);
    shrinker.finish(icc, orientation)
}
