//! Decodes JPEG with libjpeg-turbo, which can decode directly at a fraction of the size. [`segments`] reads the file's
//! structure first.

mod segments;

use super::raster::{PixelLayout, Raster};
use super::{Decode, Header, ImageFault, Limits, Scaling, Size};
use segments::Segments;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use turbojpeg::{Colorspace, Decompressor, Image, PixelFormat, ScalingFactor};

/// The maximum number of scans. Encoders write up to a dozen; thousands would take minutes of CPU time.
const SCANS_MAX: u32 = 100;

/// The maximum of pixels times scans: 100 megapixels in 25 scans.
const SCAN_PIXELS_MAX: u64 = 2_500_000_000;

const PRECISION_MAX_BITS: u8 = 8;

/// Memory for each pixel of the image's width, besides the decoded pixels.
const ROW_PIXEL_BYTES: u64 = 256;

pub(super) fn open(file: File, limits: &Limits) -> Result<Header, ImageFault> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let segments = segments::read(&mut reader)?;
    let size = segments.size;
    if segments.precision > PRECISION_MAX_BITS {
        return Ok(Header { size, memory_bytes: 0, decode: Decode::Shown(size.turned(segments.orientation())) });
    }
    let target = Scaling { from: size, to: size.within(limits.thumbnail_edge) };
    let scale = scale(&segments, target);
    let reduced = scale.scale(size.width as usize) * scale.scale(size.height as usize);
    let memory_bytes = segments.data_bytes()
        + reduced as u64 * 4
        + segments.coefficient_bytes
        + u64::from(size.width) * ROW_PIXEL_BYTES;
    let file = reader.into_inner();
    Ok(Header { size, memory_bytes, decode: Decode::Pixels(Box::new(move |target| decode(file, segments, target))) })
}

fn decode(mut file: File, segments: Segments, target: Scaling) -> Result<Raster, ImageFault> {
    let mut data = Vec::with_capacity(segments.data_bytes() as usize);
    data.extend_from_slice(&segments.head);
    file.seek(SeekFrom::Start(segments.scans.start))?;
    file.take(segments.scans.end - segments.scans.start).read_to_end(&mut data)?;
    let mut decoder = Decompressor::new().map_err(|_| ImageFault::TooCostly)?;
    let header = decoder.read_header(&data).map_err(|error| fault(&error))?;
    if (header.width, header.height) != (target.from.width as usize, target.from.height as usize) {
        return Err(ImageFault::Corrupt);
    }
    let scans = (SCAN_PIXELS_MAX / target.from.pixels().max(1)).min(u64::from(SCANS_MAX));
    decoder.set_scan_limit(scans as u32).map_err(|_| ImageFault::Unsupported)?;
    let scale = scale(&segments, target);
    decoder.set_scaling_factor(scale).map_err(|_| ImageFault::Unsupported)?;
    let (format, layout) = match header.colorspace {
        Colorspace::Gray => (PixelFormat::GRAY, PixelLayout::Grey),
        Colorspace::CMYK | Colorspace::YCCK => (PixelFormat::CMYK, PixelLayout::Cmyk),
        _ => (PixelFormat::RGB, PixelLayout::Rgb),
    };
    let (width, height) = (scale.scale(header.width), scale.scale(header.height));
    let mut pixels = vec![0; width * height * format.size()];
    let output = Image { pixels: pixels.as_mut_slice(), width, pitch: width * format.size(), height, format };
    match decoder.decompress(&data, output) {
        Err(error) if !is_harmless(&error) => return Err(fault(&error)),
        _ => {}
    }
    if layout == PixelLayout::Cmyk && segments.adobe {
        pixels.iter_mut().for_each(|ink| *ink = 255 - *ink);
    }
    let exact = |side: u32| f64::from(side) * scale.num() as f64 / scale.denom() as f64;
    Ok(Raster {
        size: Size { width: width as u32, height: height as u32 },
        covered: (exact(target.from.width), exact(target.from.height)),
        layout,
        pixels,
        orientation: segments.orientation(),
        icc: segments.icc,
    })
}

/// Returns a scale that gives at least 1.5 times the thumbnail's size: the final filter needs enough pixels.
fn scale(segments: &Segments, Scaling { from, to }: Scaling) -> ScalingFactor {
    if segments.lossless {
        return ScalingFactor::ONE;
    }
    [ScalingFactor::ONE_EIGHTH, ScalingFactor::ONE_QUARTER, ScalingFactor::ONE_HALF]
        .into_iter()
        .find(|scale| {
            2 * scale.scale(from.width as usize) >= 3 * to.width as usize
                && 2 * scale.scale(from.height as usize) >= 3 * to.height as usize
        })
        .unwrap_or(ScalingFactor::ONE)
}

/// Harmless warnings of libjpeg-turbo, which the Rust binding reports as errors. Other warnings mean damaged data.
const HARMLESS: [&str; 3] =
    ["extraneous bytes before marker", "Inconsistent progression sequence", "Invalid SOS parameters"];

fn is_harmless(error: &turbojpeg::Error) -> bool {
    let turbojpeg::Error::TurboJpegError(message) = error else {
        return false;
    };
    HARMLESS.iter().any(|words| message.contains(words))
}

fn fault(error: &turbojpeg::Error) -> ImageFault {
    let turbojpeg::Error::TurboJpegError(message) = error else {
        return ImageFault::Unsupported;
    };
    if message.contains("remature end") {
        ImageFault::Cut
    } else if message.contains("scans") || message.contains("emory") {
        ImageFault::TooCostly
    } else if message.contains("nsupported") || message.contains("precision") {
        ImageFault::Unsupported
    } else {
        ImageFault::Corrupt
    }
}
