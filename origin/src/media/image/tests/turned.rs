//! Tests that all eight orientations are applied in JPEG, PNG, WebP and TIFF.

use super::samples::{Jpeg, encoded, exif, photo, webp, with_chunk, with_segment};
use super::{difference, examined, shown};
use image::metadata::Orientation;
use image::{DynamicImage, ImageFormat, RgbaImage};

fn upright(orientation: u8) -> RgbaImage {
    let mut image = DynamicImage::ImageRgb8(photo(120, 80));
    image.apply_orientation(Orientation::from_exif(orientation).expect("an orientation"));
    image.into_rgba8()
}

fn check(bytes: &[u8], orientation: u8) {
    let picture = examined(bytes).expect("a picture");
    let expected = upright(orientation);
    assert_eq!((picture.width, picture.height), expected.dimensions());
    let off = difference(&shown(&picture), &expected);
    assert!(off < 4.0, "orientation {orientation} is off by {off}");
}

#[test]
fn all_eight_orientations_are_applied() {
    let photo = photo(120, 80);
    let plain = DynamicImage::ImageRgb8(photo.clone());
    let jpeg = Jpeg::default().encode(&photo);
    let png = encoded(&plain, ImageFormat::Png);
    for orientation in 1..=8 {
        let mut block = b"Exif\0\0".to_vec();
        block.extend(exif(orientation));
        check(&with_segment(&jpeg, 0xE1, &block), orientation);
        check(&with_chunk(&png, b"eXIf", &exif(orientation)), orientation);
        check(&webp(&plain, Some(exif(orientation)), None), orientation);
        check(&webp(&plain, Some(block.clone()), None), orientation);
        check(&tiff(&photo, orientation), orientation);
    }
}

#[test]
fn a_jpeg_that_can_not_be_decoded_is_turned_too() {
    let mut block = b"Exif\0\0".to_vec();
    block.extend(exif(6));
    let mut jpeg = with_segment(&Jpeg::default().encode(&photo(120, 80)), 0xE1, &block);
    let frame = jpeg.windows(2).position(|bytes| bytes == [0xFF, 0xC0]).expect("a frame");
    assert_eq!(std::mem::replace(&mut jpeg[frame + 4], 12), 8, "the bits of a sample");
    let picture = examined(&jpeg).expect("a picture");
    assert_eq!((picture.width, picture.height, picture.thumbnail), (80, 120, None));
}

#[test]
fn an_orientation_that_is_none_is_none() {
    let jpeg = Jpeg::default().encode(&photo(120, 80));
    for wrong in [0, 9, 255] {
        let mut block = b"Exif\0\0".to_vec();
        block.extend(exif(wrong));
        check(&with_segment(&jpeg, 0xE1, &block), 1);
    }
    check(&with_segment(&jpeg, 0xE1, b"Exif\0\0MM\0*\xFF\xFF\xFF\xFF"), 1);
}

#[test]
fn a_thumbnail_holds_no_metadata() {
    let mut block = b"Exif\0\0".to_vec();
    block.extend(exif(6));
    block.extend(b"47.1234 north, 8.1234 east");
    let jpeg = with_segment(&Jpeg::default().encode(&photo(900, 600)), 0xE1, &block);
    let thumbnail = examined(&jpeg).expect("one").thumbnail.expect("one");
    for word in [b"Exif".as_slice(), b"north", b"ICC_PROFILE"] {
        assert!(!thumbnail.bytes.windows(word.len()).any(|bytes| bytes == word));
    }
}

/// Builds a TIFF of one strip by hand, since the encoder can't write an orientation.
fn tiff(image: &image::RgbImage, orientation: u8) -> Vec<u8> {
    let pixels = image.as_raw();
    let mut bytes = b"II*\0".to_vec();
    bytes.extend((8 + pixels.len() as u32).to_le_bytes());
    bytes.extend(pixels);
    let entries: [(u16, u16, u32, u32); 10] = [
        (256, 4, 1, image.width()),
        (257, 4, 1, image.height()),
        // Three numbers don't fit into a directory entry, so they follow the directory.
        (258, 3, 3, 8 + pixels.len() as u32 + 2 + 10 * 12 + 4),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 8),
        (274, 3, 1, u32::from(orientation)),
        (277, 3, 1, 3),
        (278, 4, 1, image.height()),
        (279, 4, 1, pixels.len() as u32),
    ];
    bytes.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend([0; 4]);
    bytes.extend([8, 0, 8, 0, 8, 0]);
    bytes
}
