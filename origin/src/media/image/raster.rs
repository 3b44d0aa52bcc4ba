//! Pixels in memory, and what is known about them.

use super::Size;
use ::image::metadata::Orientation;

/// What one pixel's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One byte.
    Grey,
    /// Three.
    Rgb,
    /// Four, the last one opacity; colours are not multiplied with it.
    Rgba,
    /// Four, 255 being all ink.
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

/// A decoded picture, often smaller already than its file says.
pub(super) struct Raster {
    pub(super) size: Size,
    /// The part of it that is picture: a cell at the right or lower edge may hold less than others.
    pub(super) covered: (f64, f64),
    pub(super) layout: Layout,
    pub(super) pixels: Vec<u8>,
    /// The profile of its colours.
    pub(super) icc: Option<Vec<u8>>,
    /// How it is to be turned.
    pub(super) orientation: Orientation,
}
