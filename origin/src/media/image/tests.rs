//! Tests with files of every format, most of them made by encoders.

mod broken;
mod colours;
mod formats;
mod pool;
mod samples;
mod turned;
mod variants;

use super::{ImageFault, Limits, Picture, examine};
use crate::media::sniff::{ImageFormat, sniff};
use std::io::Write;

/// Validates an image as an upload does, with the format detected from its first bytes.
fn examined(bytes: &[u8]) -> Result<Picture, ImageFault> {
    let head = bytes.get(..4096).unwrap_or(bytes);
    let format = sniff(head).and_then(|sniffed| sniffed.image).ok_or(ImageFault::Unsupported)?;
    examined_as(bytes, format)
}

fn examined_as(bytes: &[u8], format: ImageFormat) -> Result<Picture, ImageFault> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(bytes)?;
    file.flush()?;
    examine(file.path(), format, &Limits::default())
}

fn shown(picture: &Picture) -> image::RgbaImage {
    let thumbnail = picture.thumbnail.as_ref().expect("a thumbnail");
    let image = match thumbnail.mime {
        "image/jpeg" => {
            let decoded = turbojpeg::decompress(&thumbnail.bytes, turbojpeg::PixelFormat::RGB).expect("a JPEG");
            let (width, height) = (decoded.width as u32, decoded.height as u32);
            image::DynamicImage::ImageRgb8(image::RgbImage::from_raw(width, height, decoded.pixels).expect("its size"))
                .into_rgba8()
        }
        "image/webp" => image::load_from_memory_with_format(&thumbnail.bytes, image::ImageFormat::WebP)
            .expect("a WebP")
            .into_rgba8(),
        other => panic!("a thumbnail is not {other}"),
    };
    assert_eq!(image.dimensions(), (thumbnail.width, thumbnail.height));
    image
}

/// Returns the mean difference of two pictures' samples, from 0 to 255.
fn difference(one: &image::RgbaImage, other: &image::RgbaImage) -> f64 {
    assert_eq!(one.dimensions(), other.dimensions());
    let total: u64 = one.as_raw().iter().zip(other.as_raw()).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    total as f64 / one.as_raw().len() as f64
}
