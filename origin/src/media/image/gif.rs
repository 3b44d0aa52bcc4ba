//! Decodes the first frame of a GIF onto the GIF's canvas, and checks that all other frames are complete.

use super::raster::{PixelLayout, Raster};
use super::shrink::{self, Shrinker};
use super::{Decode, Header, ImageFault, Scaling, Size};
use ::gif::{ColorOutput, DecodeOptions, Decoder, MemoryLimit};
use ::image::metadata::Orientation;
use shared::limits::IMAGE_MAX_PIXELS;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::num::NonZeroU64;

/// The maximum size of a frame, at one byte per pixel. The format itself allows 4 GB.
const FRAME_MAX_BYTES: u64 = IMAGE_MAX_PIXELS;

pub(super) fn open(file: File) -> Result<Header, ImageFault> {
    let again = file.try_clone()?;
    let mut decoder = options().read_info(BufReader::new(file))?;
    let frame = decoder.next_frame_info()?.ok_or(ImageFault::Cut)?;
    let frame_pixels = u64::from(frame.width) * u64::from(frame.height);
    let size = Size { width: u32::from(decoder.width()), height: u32::from(decoder.height()) };
    Ok(Header {
        size,
        memory_bytes: frame_pixels * 2 + shrink::memory_bytes(size),
        decode: Decode::Pixels(Box::new(move |target| decode(decoder, again, target))),
    })
}

fn options() -> DecodeOptions {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    if let Some(bytes) = NonZeroU64::new(FRAME_MAX_BYTES) {
        options.set_memory_limit(MemoryLimit::Bytes(bytes));
    }
    options
}

fn decode(mut decoder: Decoder<BufReader<File>>, file: File, target: Scaling) -> Result<Raster, ImageFault> {
    let frame = decoder.current_frame_info().ok_or(ImageFault::Cut)?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (width, height) = (usize::from(frame.width), usize::from(frame.height));
    let transparent = frame.transparent;
    if width == 0 || height == 0 || (width * height) as u64 > FRAME_MAX_BYTES {
        return Err(ImageFault::TooCostly);
    }
    let mut indices = vec![0; width * height];
    decoder.read_into_buffer(&mut indices)?;
    let palette = colours(decoder.palette()?, transparent);
    let screen = target.from;
    let mut shrinker = Shrinker::new(target, PixelLayout::Rgba);
    let mut row = vec![[0_u8; 4]; screen.width as usize];
    for y in 0..screen.height as usize {
        row.fill([0; 4]);
        let line = y.checked_sub(top).and_then(|line| indices.chunks_exact(width).nth(line));
        let covered = row.get_mut(left..).unwrap_or_default();
        for (pixel, index) in covered.iter_mut().zip(line.unwrap_or_default()) {
            *pixel = palette[usize::from(*index)];
        }
        shrinker.push(row.as_flattened())?;
    }
    check_frames(file)?;
    shrinker.finish(None, Orientation::NoTransforms)
}

fn colours(palette: &[u8], transparent: Option<u8>) -> [[u8; 4]; 256] {
    let mut colours = [[0; 4]; 256];
    for (colour, rgb) in colours.iter_mut().zip(palette.as_chunks::<3>().0) {
        *colour = [rgb[0], rgb[1], rgb[2], 255];
    }
    if let Some(index) = transparent {
        colours[usize::from(index)] = [0; 4];
    }
    colours
}

fn check_frames(mut file: File) -> Result<(), ImageFault> {
    file.seek(SeekFrom::Start(0))?;
    let mut options = options();
    options.skip_frame_decoding(true);
    let mut decoder = options.read_info(BufReader::new(file))?;
    while decoder.next_frame_info()?.is_some() {}
    Ok(())
}
