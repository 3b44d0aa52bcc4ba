//! Decodes the first page of TIFF and BigTIFF files, strip by strip or tile by tile, with one row of tiles in memory.

use super::raster::{PixelLayout, Raster};
use super::shrink::{self, Shrinker};
use super::{Decode, Header, ImageFault, Limits, Scaling, Size, raster};
use ::image::metadata::Orientation;
use ::tiff::decoder::{Decoder, DecodingResult};
use ::tiff::tags::Tag;
use ::tiff::{ColorType, TiffError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

const JPEG: u16 = 7;

/// The memory for decoding a JPEG strip or tile, as a multiple of its samples.
const JPEG_COPIES: u64 = 6;

type TiffReader = Decoder<BufReader<File>>;

struct Samples {
    colours: ColorType,
    multiplied: bool,
    layout: PixelLayout,
}

pub(super) fn open(file: File, file_bytes: u64, limits: &Limits) -> Result<Header, ImageFault> {
    let mut inner = ::tiff::decoder::Limits::default();
    inner.decoding_buffer_size = limits.memory_bytes as usize;
    inner.intermediate_buffer_size = limits.memory_bytes as usize;
    inner.ifd_value_size = raster::ICC_MAX_BYTES;
    let again = file.try_clone()?;
    let mut decoder = match Decoder::new(BufReader::new(file)) {
        Ok(decoder) => decoder.with_limits(inner),
        Err(TiffError::UnsupportedError(_)) => {
            let size = first_size(&mut BufReader::new(again))?;
            return Ok(without_pixels(size, Orientation::NoTransforms));
        }
        Err(fault) => return Err(fault.into()),
    };
    let (width, height) = decoder.dimensions()?;
    let size = Size { width, height };
    check_length(&mut decoder, file_bytes)?;
    let samples = match samples(&mut decoder) {
        Ok(samples) => samples,
        Err(ImageFault::Unsupported) => {
            return Ok(without_pixels(size, orientation(&mut decoder)));
        }
        Err(fault) => return Err(fault),
    };
    Ok(Header {
        size,
        memory_bytes: memory_bytes(&mut decoder, &samples, size)?,
        decode: Decode::Pixels(Box::new(move |target| decode(decoder, &samples, target))),
    })
}

fn without_pixels(size: Size, orientation: Orientation) -> Header {
    Header { size, memory_bytes: 0, decode: Decode::Shown(size.turned(orientation)) }
}

fn first_size(file: &mut BufReader<File>) -> Result<Size, ImageFault> {
    let mut order = [0; 2];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut order)?;
    let number = |file: &mut BufReader<File>, bytes: usize| -> Result<u64, ImageFault> {
        let mut number = [0; 8];
        file.read_exact(&mut number[..bytes])?;
        Ok(match &order {
            b"II" => u64::from_le_bytes(number),
            _ => u64::from_be_bytes(number) >> (64 - 8 * bytes),
        })
    };
    // BigTIFF has version 43, a field for the width of offsets, and wider numbers than TIFF.
    let is_big = number(file, 2)? == 43;
    let (count_bytes, value_bytes) = if is_big { (8, 8) } else { (2, 4) };
    if is_big {
        number(file, 4)?;
    }
    let directory = number(file, value_bytes)?;
    file.seek(SeekFrom::Start(directory))?;
    let mut sides = [None; 2];
    for _ in 0..number(file, count_bytes)? {
        let (tag, kind) = (number(file, 2)?, number(file, 2)?);
        number(file, value_bytes)?;
        let bytes = if kind == 3 { 2 } else { value_bytes };
        let value = number(file, bytes)?;
        file.seek_relative((value_bytes - bytes) as i64)?;
        // Tags are sorted, and width (256) and height (257) come first.
        match tag {
            ..256 => {}
            256 | 257 => sides[tag as usize - 256] = u32::try_from(value).ok(),
            _ => break,
        }
    }
    match sides {
        [Some(width), Some(height)] => Ok(Size { width, height }),
        _ => Err(ImageFault::Corrupt),
    }
}

fn memory_bytes(decoder: &mut TiffReader, samples: &Samples, size: Size) -> Result<u64, ImageFault> {
    let (chunk_width, chunk_height) = decoder.chunk_dimensions();
    let rows = u64::from(chunk_height.min(size.height));
    let pixels = u64::from(chunk_width.min(size.width)) * rows;
    let bits = u64::from(samples.colours.bit_depth()) * u64::from(samples.colours.num_samples());
    let jpeg = decoder.find_tag_unsigned::<u16>(Tag::Compression)? == Some(JPEG);
    let decoded = match jpeg {
        // The JPEG decoder has the data, all coefficients, and another copy of the pixels.
        true => (pixels * bits / 8).saturating_mul(JPEG_COPIES),
        false => (pixels * bits).div_ceil(8),
    };
    let band = match chunk_width < size.width {
        true => u64::from(size.width) * rows * samples.layout.bytes() as u64,
        false => 0,
    };
    Ok(decoded
        .saturating_add(band)
        .saturating_add(u64::from(size.width) * 16)
        .saturating_add(shrink::memory_bytes(size)))
}

fn check_length(decoder: &mut TiffReader, file_bytes: u64) -> Result<(), ImageFault> {
    for (offsets, lengths) in [(Tag::StripOffsets, Tag::StripByteCounts), (Tag::TileOffsets, Tag::TileByteCounts)] {
        let offsets = decoder.find_tag_unsigned_vec::<u64>(offsets)?;
        let lengths = decoder.find_tag_unsigned_vec::<u64>(lengths)?;
        let (offsets, lengths) = (offsets.unwrap_or_default(), lengths.unwrap_or_default());
        let mut ends = offsets.iter().zip(&lengths).map(|(at, bytes)| at.saturating_add(*bytes));
        if ends.any(|end| end > file_bytes) {
            return Err(ImageFault::Cut);
        }
    }
    Ok(())
}

/// Returns the layout of the samples. Refuses variants that the decoder misreads, such as a reversed bit order.
fn samples(decoder: &mut TiffReader) -> Result<Samples, ImageFault> {
    let colours = decoder.colortype()?;
    let mut tag = |tag, default| -> Result<u16, ImageFault> { Ok(decoder.find_tag_unsigned(tag)?.unwrap_or(default)) };
    let stored = tag(Tag::SamplesPerPixel, 1)?;
    let is_read = tag(Tag::FillOrder, 1)? == 1
        && (tag(Tag::PlanarConfiguration, 1)? == 1 || stored == 1)
        && (tag(Tag::Predictor, 1)? == 1 || stored == colours.num_samples());
    if !is_read {
        return Err(ImageFault::Unsupported);
    }
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)?;
    let layout = match colours {
        ColorType::Gray(1 | 2 | 4 | 8 | 16 | 32) => PixelLayout::Grey,
        ColorType::RGB(8 | 16 | 32) | ColorType::YCbCr(8) => PixelLayout::Rgb,
        ColorType::RGBA(8 | 16 | 32) | ColorType::Multiband { bit_depth: 8 | 16, num_samples: 2 } => PixelLayout::Rgba,
        ColorType::CMYK(8 | 16) => PixelLayout::Cmyk,
        _ => return Err(ImageFault::Unsupported),
    };
    Ok(Samples { colours, multiplied: extra.is_some_and(|extra| extra.first() == Some(&1)), layout })
}

fn orientation(decoder: &mut TiffReader) -> Orientation {
    decoder
        .find_tag_unsigned::<u8>(Tag::Orientation)
        .ok()
        .flatten()
        .and_then(Orientation::from_exif)
        .unwrap_or(Orientation::NoTransforms)
}

fn decode(mut decoder: TiffReader, samples: &Samples, target: Scaling) -> Result<Raster, ImageFault> {
    let Size { width, height } = target.from;
    let (chunk_width, chunk_height) = decoder.chunk_dimensions();
    if chunk_width == 0 || chunk_height == 0 {
        return Err(ImageFault::Corrupt);
    }
    let across = width.div_ceil(chunk_width);
    let line = width as usize * samples.layout.bytes();
    let mut shrinker = Shrinker::new(target, samples.layout);
    let mut band = Vec::new();
    let mut row_of_pixels = vec![0; line];
    for row in 0..height.div_ceil(chunk_height) {
        let rows = chunk_height.min(height - row * chunk_height) as usize;
        if across > 1 {
            band.resize(line * rows, 0);
        }
        for column in 0..across {
            let index = row * across + column;
            let chunk = decoder.read_chunk(index)?;
            let (pixels, chunk_rows) = decoder.chunk_data_dimensions(index);
            if (chunk_rows as usize) < rows {
                return Err(ImageFault::Corrupt);
            }
            let count = pixels as usize * usize::from(samples.colours.num_samples());
            let from = (column * chunk_width) as usize * samples.layout.bytes();
            for number in 0..rows {
                let bytes = eight_bits(&chunk, samples.colours.bit_depth(), count, number)?;
                if across > 1 {
                    let to = band.get_mut(line * number + from..line * (number + 1));
                    samples.arrange(&bytes, to.ok_or(ImageFault::Corrupt)?);
                } else {
                    samples.arrange(&bytes, &mut row_of_pixels);
                    shrinker.push(&row_of_pixels)?;
                }
            }
        }
        band.chunks_exact(line).try_for_each(|row| shrinker.push(row))?;
    }
    let orientation = orientation(&mut decoder);
    let icc = decoder.get_tag_u8_vec(Tag::IccProfile).ok();
    shrinker.finish(icc, orientation)
}

/// Returns a row with one byte per sample. Smaller samples are packed in the file; each row begins with a new byte.
fn eight_bits(chunk: &DecodingResult, depth: u8, count: usize, row: usize) -> Result<Cow<'_, [u8]>, ImageFault> {
    fn part<T>(samples: &[T], count: usize, row: usize) -> Result<&[T], ImageFault> {
        let part = samples.get(count * row..count * (row + 1));
        part.ok_or(ImageFault::Corrupt)
    }
    Ok(match (chunk, depth) {
        (DecodingResult::U8(bytes), 8) => part(bytes, count, row)?.into(),
        (DecodingResult::U8(packed), 1 | 2 | 4) => {
            let depth = usize::from(depth);
            let most = (1_u8 << depth) - 1;
            part(packed, (count * depth).div_ceil(8), row)?
                .iter()
                .flat_map(|byte| (0..8 / depth).map(move |place| byte >> (8 - depth * (place + 1)) & most))
                .take(count)
                .map(|sample| sample * (255 / most))
                .collect()
        }
        (DecodingResult::U16(words), _) => {
            let words = part(words, count, row)?;
            words.iter().map(|word| (word >> 8) as u8).collect()
        }
        (DecodingResult::U32(words), _) => {
            let words = part(words, count, row)?;
            words.iter().map(|word| (word >> 24) as u8).collect()
        }
        (DecodingResult::F32(lights), _) => {
            let lights = part(lights, count, row)?;
            lights.iter().map(|light| (light.clamp(0.0, 1.0) * 255.0).round() as u8).collect()
        }
        _ => return Err(ImageFault::Unsupported),
    })
}

impl Samples {
    fn arrange(&self, pixels: &[u8], line: &mut [u8]) {
        let pixels = pixels.chunks_exact(usize::from(self.colours.num_samples()));
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
            if let ([red, green, blue, opacity], PixelLayout::Rgba, true) = (&mut *to, self.layout, self.multiplied)
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

/// Converts YCbCr as JPEG defines it (ITU-R BT.601, full range).
fn rgb(light: u8, blue: u8, red: u8) -> [u8; 3] {
    let (light, blue, red) = (f32::from(light), f32::from(blue) - 128.0, f32::from(red) - 128.0);
    [light + 1.402 * red, light - 0.344_136 * blue - 0.714_136 * red, light + 1.772 * blue]
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
