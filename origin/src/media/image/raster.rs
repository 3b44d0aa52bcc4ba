//! Decoded pixels with their size, layout and colour profile.

use super::Size;
use ::image::metadata::Orientation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PixelLayout {
    Grey,
    Rgb,
    /// Colours are not premultiplied with opacity.
    Rgba,
    /// 255 is full ink.
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

/// Limits PNG: a segment of a JPEG is no longer than this. The orientation is near the beginning.
pub(super) const EXIF_MAX_BYTES: usize = 64 * 1024;

/// The only EXIF tag that thumbnails need.
pub(super) fn orientation(exif: &[u8]) -> Orientation {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_chunk(exif).unwrap_or(Orientation::NoTransforms)
}
