//! Decoded pixels with their size, layout and colour profile.

use super::Size;
use ::image::metadata::Orientation;

/// The bytes of one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Grey,
    Rgb,
    /// With opacity last, not premultiplied.
    Rgba,
    /// 255 is full ink.
    Cmyk,
}

impl Layout {
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
            Self::Rgba | Self::Cmyk => 4,
        }
    }
}

/// A decoded picture, usually shrunk already.
pub(super) struct Raster {
    pub(super) size: Size,
    /// The width and height of the part that is picture: pixels at the right and lower edge may cover less than others.
    pub(super) covered: (f64, f64),
    pub(super) layout: Layout,
    pub(super) pixels: Vec<u8>,
    pub(super) icc: Option<Vec<u8>>,
    pub(super) orientation: Orientation,
}
