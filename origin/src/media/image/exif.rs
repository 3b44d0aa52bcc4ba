//! Reads an image's orientation, the only EXIF tag that thumbnails need.

use ::image::metadata::Orientation;

/// The maximum number of bytes of a PNG's EXIF data that are parsed. A segment of a JPEG is no longer than this; in
/// WebP, there is no such limit. The orientation is near the beginning, in the first directory.
pub(super) const EXIF_MAX_BYTES: usize = 64 * 1024;

/// Returns the orientation in EXIF data, or [`Orientation::NoTransforms`] if the orientation is missing or invalid.
pub(super) fn orientation(exif: &[u8]) -> Orientation {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_chunk(exif).unwrap_or(Orientation::NoTransforms)
}
