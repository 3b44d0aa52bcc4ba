//! How a picture is to be turned: the one thing of its metadata that counts here.

use ::image::metadata::Orientation;

/// Bytes of EXIF that are looked at. The tag is in the first directory, at the beginning.
pub(super) const EXIF_MAX_BYTES: usize = 64 * 1024;

/// The orientation in a block of EXIF, which begins with TIFF's byte order; none, if there is none.
pub(super) fn orientation(exif: &[u8]) -> Orientation {
    let exif = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    Orientation::from_exif_chunk(exif).unwrap_or(Orientation::NoTransforms)
}
