//! Decoded pixels with their size, layout and colour profile, and their conversion from that profile to sRGB.

use super::Size;
use ::image::metadata::Orientation;
use moxcms::{ColorProfile, DataColorSpace, TransformOptions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PixelLayout {
    Grey,
    Rgb,
    /// The colours are not premultiplied with opacity.
    Rgba,
    /// A sample of 255 means full ink.
    Cmyk,
}

impl PixelLayout {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

pub(super) struct Raster {
    pub(super) size: Size,
    /// The size of the image in pixels of the raster. After shrinking, the image may cover only a part of the last
    /// column and row.
    pub(super) covered: (f64, f64),
    pub(super) layout: PixelLayout,
    pub(super) pixels: Vec<u8>,
    pub(super) icc: Option<Vec<u8>>,
    pub(super) orientation: Orientation,
}

/// The limit for EXIF in a PNG. A segment of a JPEG is no longer. The orientation is near the beginning.
pub(super) const EXIF_MAX_BYTES: usize = 64 * 1024;

/// Returns the orientation, the only EXIF tag that thumbnails need.
pub(super) fn orientation(exif: &[u8]) -> Orientation {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_chunk(exif).unwrap_or(Orientation::NoTransforms)
}

/// The maximum size of an ICC profile, except in a PNG. Profiles of printers have 1 to 2 MB.
pub(super) const ICC_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Converts pixels to sRGB, and CMYK to RGB. As in browsers, an ICC profile is ignored if it is invalid or is for
/// another colour space than that of the pixels.
pub(super) fn to_srgb(layout: PixelLayout, pixels: Vec<u8>, icc: Option<&[u8]>) -> (PixelLayout, Vec<u8>) {
    match icc.and_then(|icc| converted(layout, &pixels, icc)) {
        Some(done) => done,
        None if layout == PixelLayout::Cmyk => (PixelLayout::Rgb, plain_inks(&pixels)),
        None => (layout, pixels),
    }
}

fn converted(layout: PixelLayout, pixels: &[u8], icc: &[u8]) -> Option<(PixelLayout, Vec<u8>)> {
    let profile = ColorProfile::new_from_slice(icc).ok()?;
    let (space, from, to, result) = match layout {
        PixelLayout::Grey => (DataColorSpace::Gray, moxcms::Layout::Gray, moxcms::Layout::Rgb, PixelLayout::Rgb),
        PixelLayout::Rgb => (DataColorSpace::Rgb, moxcms::Layout::Rgb, moxcms::Layout::Rgb, PixelLayout::Rgb),
        PixelLayout::Rgba => (DataColorSpace::Rgb, moxcms::Layout::Rgba, moxcms::Layout::Rgba, PixelLayout::Rgba),
        PixelLayout::Cmyk => (DataColorSpace::Cmyk, moxcms::Layout::Rgba, moxcms::Layout::Rgb, PixelLayout::Rgb),
    };
    if profile.color_space != space {
        return None;
    }
    let options = TransformOptions { allow_use_cicp_transfer: true, ..TransformOptions::default() };
    let transform = profile.create_transform_8bit(from, &ColorProfile::new_srgb(), to, options).ok()?;
    let count = pixels.len() / layout.bytes();
    let mut converted = vec![0; count * result.bytes()];
    transform.transform(pixels, &mut converted).ok()?;
    Some((result, converted))
}

fn plain_inks(pixels: &[u8]) -> Vec<u8> {
    let mut light = Vec::with_capacity(pixels.len() / 4 * 3);
    for [cyan, magenta, yellow, black] in pixels.as_chunks::<4>().0 {
        for ink in [cyan, magenta, yellow] {
            let product = u32::from(255 - ink) * u32::from(255 - black);
            light.push(((product + 127) / 255) as u8);
        }
    }
    light
}
