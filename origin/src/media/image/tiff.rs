//! TIFF and BigTIFF, strip by strip or tile by tile: of a large scan no more is held than one band of it.
//!
//! Of several pages the first one counts.

use super::raster::{Layout, Raster};
use super::shrink::{self, Shrinker};
use super::{Decode, Header, ImageFault, Size, Target, colour};
use ::image::metadata::Orientation;
use ::tiff::decoder::{Decoder, DecodingResult, Limits};
use ::tiff::tags::Tag;
use ::tiff::{ColorType, TiffError};
use std::fs::File;
use std::io::BufReader;

/// Bytes of one strip or tile, decoded; of a picture that is one strip, all of it: 100 megapixels of four
/// samples of 16 bits.
const CHUNK_MAX_BYTES: usize = 800_000_000;

type Reader = Decoder<BufReader<File>>;

/// What the samples of a pixel are.
struct Samples {
    colours: ColorType,
    /// Samples of a pixel as it is stored, those without a meaning included.
    stride: usize,
    /// Colours come multiplied with opacity.
    multiplied: bool,
    layout: Layout,
}

pub(super) fn open(file: File) -> Result<Header, ImageFault> {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = CHUNK_MAX_BYTES;
    limits.intermediate_buffer_size = CHUNK_MAX_BYTES;
    limits.ifd_value_size = colour::ICC_MAX_BYTES;
    let mut decoder = Decoder::new(BufReader::new(file))?.with_limits(limits);
    let (width, height) = decoder.dimensions()?;
    let size = Size { width, height };
    let samples = samples(&mut decoder)?;
    let (chunk_width, chunk_height) = decoder.chunk_dimensions();
    let chunk = u64::from(chunk_width.min(width)) * u64::from(chunk_height.min(height));
    let band = u64::from(width) * u64::from(chunk_height.min(height));
    let bytes = u64::from(samples.colours.bit_depth()).div_ceil(8) * samples.stride as u64;
    Ok(Header {
        size,
        // As it is compressed, decoded, of eight bits, and the band that it is put into.
        memory_bytes: chunk.saturating_mul(3 * bytes) + band * 4 + shrink::memory_bytes(size),
        decode: Decode::Pixels(Box::new(move |target| decode(decoder, &samples, target))),
    })
}

fn samples(decoder: &mut Reader) -> Result<Samples, ImageFault> {
    let colours = decoder.colortype()?;
    let stride = decoder
        .find_tag_unsigned::<u16>(Tag::SamplesPerPixel)?
        .unwrap_or(1);
    let planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration)?;
    if planar.is_some_and(|planar| planar != 1) && stride > 1 {
        return Err(ImageFault::Unsupported);
    }
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)?;
    let layout = match colours {
        ColorType::Gray(_) => Layout::Grey,
        ColorType::RGB(8 | 16 | 32) | ColorType::YCbCr(8) => Layout::Rgb,
        ColorType::RGBA(8 | 16 | 32)
        | ColorType::Multiband {
            bit_depth: 8 | 16,
            num_samples: 2,
        } => Layout::Rgba,
        ColorType::CMYK(8 | 16) => Layout::Cmyk,
        _ => return Err(ImageFault::Unsupported),
    };
    Ok(Samples {
        colours,
        stride: usize::from(stride),
        multiplied: extra.is_some_and(|extra| extra.first() == Some(&1)),
        layout,
    })
}

fn decode(mut decoder: Reader, samples: &Samples, target: Target) -> Result<Raster, ImageFault> {
    let Size { width, height } = target.from;
    let (chunk_width, chunk_height) = decoder.chunk_dimensions();
    if chunk_width == 0 || chunk_height == 0 {
        return Err(ImageFault::Corrupt);
    }
    let across = width.div_ceil(chunk_width);
    let line = width as usize * samples.layout.bytes();
    let mut shrinker = Shrinker::new(target, samples.layout);
    let mut band = Vec::new();
    for row in 0..height.div_ceil(chunk_height) {
        let rows = chunk_height.min(height - row * chunk_height) as usize;
        band.clear();
        band.resize(line * rows, 0);
        for column in 0..across {
            let index = row * across + column;
            let (chunk_width_here, chunk_rows) = decoder.chunk_data_dimensions(index);
            let bytes = eight_bits(
                decoder.read_chunk(index)?,
                samples,
                chunk_width_here as usize,
            )?;
            let from = (column * chunk_width) as usize * samples.layout.bytes();
            let lines = bytes.chunks_exact(chunk_width_here as usize * samples.stride);
            if lines.len() < rows || (chunk_rows as usize) < rows {
                return Err(ImageFault::Corrupt);
            }
            for (pixels, line) in lines.zip(band.chunks_exact_mut(line)) {
                let line = line.get_mut(from..).ok_or(ImageFault::Corrupt)?;
                samples.arrange(pixels, line);
            }
        }
        band.chunks_exact(line)
            .try_for_each(|row| shrinker.push(row))?;
    }
    let orientation = decoder
        .find_tag_unsigned::<u8>(Tag::Orientation)
        .ok()
        .flatten()
        .and_then(Orientation::from_exif)
        .unwrap_or(Orientation::NoTransforms);
    let icc = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    shrinker.finish(icc, orientation)
}

/// Samples of any depth as bytes. Those of less than a byte come packed, each row from a byte of its own.
fn eight_bits(
    chunk: DecodingResult,
    samples: &Samples,
    width: usize,
) -> Result<Vec<u8>, ImageFault> {
    let depth = usize::from(samples.colours.bit_depth());
    Ok(match chunk {
        DecodingResult::U8(bytes) if depth == 8 => bytes,
        DecodingResult::U8(packed) if matches!(depth, 1 | 2 | 4) => {
            let row = width * samples.stride;
            let most = (1_u8 << depth) - 1;
            packed
                .chunks_exact((row * depth).div_ceil(8).max(1))
                .flat_map(|line| {
                    line.iter()
                        .flat_map(|byte| {
                            (0..8 / depth)
                                .map(move |place| byte >> (8 - depth * (place + 1)) & most)
                        })
                        .take(row)
                })
                .map(|sample| sample * (255 / most))
                .collect()
        }
        DecodingResult::U16(words) => words.iter().map(|word| (word >> 8) as u8).collect(),
        DecodingResult::U32(words) => words.iter().map(|word| (word >> 24) as u8).collect(),
        DecodingResult::F32(lights) => lights
            .iter()
            .map(|light| (light.clamp(0.0, 1.0) * 255.0).round() as u8)
            .collect(),
        _ => return Err(ImageFault::Unsupported),
    })
}

impl Samples {
    /// Brings a row of samples into the layout.
    fn arrange(&self, pixels: &[u8], line: &mut [u8]) {
        let pixels = pixels.chunks_exact(self.stride);
        let line = line.chunks_exact_mut(self.layout.bytes());
        for (from, to) in pixels.zip(line) {
            match (self.colours, from) {
                (ColorType::YCbCr(_), [light, blue, red, ..]) => {
                    to.copy_from_slice(&rgb(*light, *blue, *red));
                }
                (ColorType::Multiband { .. }, [grey, opacity, ..]) => {
                    to.copy_from_slice(&[*grey, *grey, *grey, *opacity]);
                }
                _ => {
                    let count = to.len().min(from.len());
                    to[..count].copy_from_slice(&from[..count]);
                }
            }
            if let ([red, green, blue, opacity], Layout::Rgba, true) =
                (&mut *to, self.layout, self.multiplied)
                && *opacity > 0
            {
                for colour in [red, green, blue] {
                    let plain = u32::from(*colour) * 255 / u32::from(*opacity);
                    *colour = plain.min(255) as u8;
                }
            }
        }
    }
}

/// As JPEG has it (ITU-R BT.601, all 256 values).
fn rgb(light: u8, blue: u8, red: u8) -> [u8; 3] {
    let (light, blue, red) = (
        f32::from(light),
        f32::from(blue) - 128.0,
        f32::from(red) - 128.0,
    );
    [
        light + 1.402 * red,
        light - 0.344_136 * blue - 0.714_136 * red,
        light + 1.772 * blue,
    ]
    .map(|sample| sample.round().clamp(0.0, 255.0) as u8)
}

impl From<TiffError> for ImageFault {
    fn from(error: TiffError) -> Self {
        match error {
            TiffError::IoError(error) => error.into(),
            TiffError::UnsupportedError(_) => Self::Unsupported,
            TiffError::LimitsExceeded => Self::TooCostly,
            _ => Self::Corrupt,
        }
    }
}
