//! Reads an image's orientation, the only EXIF tag that thumbnails need.

use ::image::metadata::Orientation;

/// Limits PNG: a segment of a JPEG is no longer than this. The orientation is near the beginning.
pub(super) const EXIF_MAX_BYTES: usize = 64 * 1024;

pub(super) fn orientation(exif: &[u8]) -> Orientation {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_chunk(exif).unwrap_or(Orientation::NoTransforms)
}
