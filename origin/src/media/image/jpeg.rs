//! JPEG, through libjpeg-turbo, which decodes at a fraction of the size.
//!
//! Its header is read here, segment by segment, since size, orientation, profile and memory are wanted
//! before the whole file is in memory.

use super::raster::{Layout, Raster};
use super::{Decode, Header, ImageFault, Size, Target, colour, exif};
use ::image::metadata::Orientation;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use turbojpeg::{Decompressor, Image, PixelFormat, ScalingFactor};

/// Scans of one picture: encoders make up to a dozen. Each walks over all coefficients, so that a file of
/// a few KB with thousands of them would keep a processor busy for minutes.
const SCANS_MAX: u32 = 100;

/// Pixels times scans: what 100 megapixels in 25 scans take.
const SCAN_PIXELS_MAX: u64 = 2_500_000_000;

/// Segments before the picture: more are no metadata.
const SEGMENTS_MAX: usize = 4096;

/// What stands before the picture's data.
struct Segments {
    size: Size,
    components: u8,
    /// All coefficients are held until the last scan has come.
    buffered: bool,
    /// Colours are stored as light, also those of inks.
    adobe: bool,
    exif: Option<Vec<u8>>,
    icc: Option<Vec<u8>>,
}

pub(super) fn open(file: File, bytes: u64) -> Result<Header, ImageFault> {
    let mut reader = BufReader::new(file);
    let segments = read_segments(&mut reader)?;
    let size = segments.size;
    // The file itself, the result at up to full size, and all coefficients of two bytes if there
    // are several scans.
    let samples = size.pixels() * u64::from(segments.components);
    let coefficients = if segments.buffered { samples * 2 } else { 0 };
    let memory_bytes = bytes + reduced_bytes(size) + coefficients + u64::from(size.width) * 256;
    let file = reader.into_inner();
    Ok(Header {
        size,
        memory_bytes,
        decode: Decode::Pixels(Box::new(move |target| decode(file, segments, target))),
    })
}

/// Bytes of the reduced picture: on each side under four times a thumbnail's, or its own.
fn reduced_bytes(size: Size) -> u64 {
    size.pixels().min(1 << 22) * 4 + size.pixels() / 16
}

fn decode(mut file: File, segments: Segments, target: Target) -> Result<Raster, ImageFault> {
    file.seek(SeekFrom::Start(0))?;
    let mut data = Vec::new();
    file.read_to_end(&mut data)?;
    let mut decoder = Decompressor::new().map_err(|_| ImageFault::TooCostly)?;
    let header = decoder.read_header(&data).map_err(|error| fault(&error))?;
    if (header.width, header.height) != (target.from.width as usize, target.from.height as usize) {
        return Err(ImageFault::Corrupt);
    }
    let scans = (SCAN_PIXELS_MAX / target.from.pixels().max(1)).min(u64::from(SCANS_MAX));
    decoder
        .set_scan_limit(scans as u32)
        .map_err(|_| ImageFault::Unsupported)?;
    let scale = if header.is_lossless {
        ScalingFactor::ONE
    } else {
        scale(target)
    };
    decoder
        .set_scaling_factor(scale)
        .map_err(|_| ImageFault::Unsupported)?;
    let (format, layout) = match header.colorspace {
        turbojpeg::Colorspace::Gray => (PixelFormat::GRAY, Layout::Grey),
        turbojpeg::Colorspace::CMYK | turbojpeg::Colorspace::YCCK => {
            (PixelFormat::CMYK, Layout::Cmyk)
        }
        _ => (PixelFormat::RGB, Layout::Rgb),
    };
    let (width, height) = (scale.scale(header.width), scale.scale(header.height));
    let mut pixels = vec![0; width * height * format.size()];
    let mut attempt = |data: &[u8]| {
        let output = Image {
            pixels: pixels.as_mut_slice(),
            width,
            pitch: width * format.size(),
            height,
            format,
        };
        decoder.decompress(data, output)
    };
    if let Err(error) = attempt(&data) {
        let whole = without_padding(&data, &error).ok_or_else(|| fault(&error))?;
        attempt(&whole).map_err(|error| fault(&error))?;
    }
    if layout == Layout::Cmyk && segments.adobe {
        pixels.iter_mut().for_each(|ink| *ink = 255 - *ink);
    }
    let exact = |side: u32| f64::from(side) * scale.num() as f64 / scale.denom() as f64;
    Ok(Raster {
        size: Size {
            width: width as u32,
            height: height as u32,
        },
        covered: (exact(target.from.width), exact(target.from.height)),
        layout,
        pixels,
        icc: segments.icc,
        orientation: segments
            .exif
            .map_or(Orientation::NoTransforms, |exif| exif::orientation(&exif)),
    })
}

/// The smallest of the scales that libjpeg-turbo has quick code for that leaves half as much again as the
/// thumbnail has, for a good filter to work with.
fn scale(Target { from, to }: Target) -> ScalingFactor {
    [
        ScalingFactor::ONE_EIGHTH,
        ScalingFactor::ONE_QUARTER,
        ScalingFactor::ONE_HALF,
    ]
    .into_iter()
    .find(|scale| {
        2 * scale.scale(from.width as usize) >= 3 * to.width as usize
            && 2 * scale.scale(from.height as usize) >= 3 * to.height as usize
    })
    .unwrap_or(ScalingFactor::ONE)
}

/// libjpeg-turbo's warnings come as errors here, and are: it goes on where a picture is broken, with grey or
/// garbage. By their words, since it gives no numbers.
fn fault(error: &turbojpeg::Error) -> ImageFault {
    let turbojpeg::Error::TurboJpegError(message) = error else {
        return ImageFault::Unsupported;
    };
    if message.contains("remature end") || message.contains("EOI") {
        ImageFault::Cut
    } else if message.contains("scans") || message.contains("emory") {
        ImageFault::TooCostly
    } else if message.contains("nsupported") || message.contains("precision") {
        ImageFault::Unsupported
    } else {
        ImageFault::Corrupt
    }
}

/// Cameras and editors pad pictures before their end mark, with one byte over and over; what else stands there
/// is data that should have been read. libjpeg-turbo tells only of its last warning, which may hide others: so
/// the padding is taken out, to see whether the picture is whole without.
fn without_padding(data: &[u8], error: &turbojpeg::Error) -> Option<Vec<u8>> {
    let turbojpeg::Error::TurboJpegError(message) = error else {
        return None;
    };
    let (before, rest) = message.split_once(" extraneous bytes before marker ")?;
    if !rest.starts_with("0xd9") {
        return None;
    }
    let count: usize = before.rsplit(' ').next()?.parse().ok()?;
    let end = end_mark(data)?;
    let start = end.checked_sub(count)?;
    let padding = data.get(start..end)?;
    if padding.iter().any(|byte| *byte != padding[0]) {
        return None;
    }
    let mut whole = data.get(..start)?.to_vec();
    whole.extend([0xFF, 0xD9]);
    Some(whole)
}

/// Where the picture's own end mark is; a preview in the metadata and pictures behind it have theirs.
fn end_mark(data: &[u8]) -> Option<usize> {
    let mut at = 2;
    let mut scanned = false;
    while let [0xFF, marker, rest @ ..] = data.get(at..)? {
        match marker {
            0xD9 if scanned => return Some(at),
            0xFF => at += 1,
            _ => {
                at += 2 + usize::from(u16::from_be_bytes(*rest.first_chunk()?));
                if *marker == 0xDA {
                    scanned = true;
                    at += data.get(at..)?.windows(2).position(|pair| {
                        pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7 | 0xFF)
                    })?;
                }
            }
        }
    }
    None
}

fn read_segments(reader: &mut BufReader<File>) -> Result<Segments, ImageFault> {
    let mut found = Segments {
        size: Size {
            width: 0,
            height: 0,
        },
        components: 0,
        buffered: false,
        adobe: false,
        exif: None,
        icc: None,
    };
    let mut profile = Profile::default();
    let mut start = [0; 2];
    reader.read_exact(&mut start)?;
    for _ in 0..SEGMENTS_MAX {
        let marker = next_marker(reader)?;
        // Marks without content.
        if matches!(marker, 0x01 | 0xD0..=0xD8) {
            continue;
        }
        if marker == 0xD9 {
            return Err(ImageFault::Corrupt);
        }
        let mut length = [0; 2];
        reader.read_exact(&mut length)?;
        let length = u16::from_be_bytes(length)
            .checked_sub(2)
            .ok_or(ImageFault::Corrupt)?;
        match marker {
            0xDA if found.components > 0 => {
                let scan = segment(reader, length)?;
                found.buffered |= scan.first().is_some_and(|held| *held < found.components);
                found.icc = profile.finish();
                return Ok(found);
            }
            0xDA => return Err(ImageFault::Corrupt),
            // Frame headers; among their numbers are three of other things.
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let frame = segment(reader, length)?;
                let [_, high, low, wide, narrow, components, ..] = *frame else {
                    return Err(ImageFault::Corrupt);
                };
                found.size = Size {
                    width: u32::from(u16::from_be_bytes([wide, narrow])),
                    height: u32::from(u16::from_be_bytes([high, low])),
                };
                found.components = components;
                found.buffered = matches!(marker, 0xC2 | 0xC6 | 0xCA | 0xCE);
            }
            0xE1 | 0xE2 | 0xEE => {
                let content = segment(reader, length)?;
                if content.starts_with(b"Exif\0") && found.exif.is_none() {
                    found.exif = Some(content);
                } else if let Some(part) = content.strip_prefix(b"ICC_PROFILE\0") {
                    profile.add(part);
                } else if marker == 0xEE && content.starts_with(b"Adobe") {
                    found.adobe = true;
                }
            }
            _ => reader.seek_relative(i64::from(length))?,
        }
    }
    Err(ImageFault::Corrupt)
}

/// The byte behind the next `FF`; what lies between segments is passed over, as libjpeg does.
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

fn segment(reader: &mut BufReader<File>, length: u16) -> Result<Vec<u8>, ImageFault> {
    let mut content = vec![0; usize::from(length)];
    reader.read_exact(&mut content)?;
    Ok(content)
}

/// A profile comes in numbered parts.
#[derive(Default)]
struct Profile {
    parts: Vec<(u8, Vec<u8>)>,
    bytes: usize,
}

impl Profile {
    fn add(&mut self, part: &[u8]) {
        if let [number, _count, content @ ..] = part {
            self.bytes += content.len();
            if self.bytes <= colour::ICC_MAX_BYTES {
                self.parts.push((*number, content.to_vec()));
            }
        }
    }

    fn finish(mut self) -> Option<Vec<u8>> {
        self.parts.sort_by_key(|(number, _)| *number);
        (!self.parts.is_empty())
            .then(|| self.parts.into_iter().flat_map(|(_, part)| part).collect())
    }
}
