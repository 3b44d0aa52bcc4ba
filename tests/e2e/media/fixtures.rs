//! Files to upload: generated pictures of several formats, and other small files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use std::io::Cursor;

pub(super) fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let pixels = RgbImage::from_fn(width, height, |x, y| {
        let part = |at: u32, of: u32| u8::try_from(at * 255 / of.max(1)).unwrap_or(255);
        Rgb([part(x, width), part(y, height), part(x + y, width + height)])
    });
    encode(&DynamicImage::from(pixels), format)
}

pub(super) fn transparent(width: u32, height: u32) -> Vec<u8> {
    let pixels = RgbaImage::from_fn(width, height, |x, _| {
        let alpha = if x < width / 2 { 0 } else { 255 };
        Rgba([200, 40, 40, alpha])
    });
    encode(&DynamicImage::from(pixels), ImageFormat::Png)
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format).expect("an encoded picture");
    bytes.into_inner()
}

pub(super) fn png() -> Vec<u8> {
    picture(40, 30, ImageFormat::Png)
}

pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the bytes as a data URL of type `mime`.
pub(super) fn data_url(mime: &str, bytes: &[u8]) -> String {
    format!("data:{mime};base64,{}", base64(bytes))
}

/// Returns a second of silence as WAV: 8,000 samples of 8 bits.
pub(super) fn wav() -> Vec<u8> {
    let mut bytes = b"RIFF".to_vec();
    bytes.extend(8_036_u32.to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    bytes.extend(16_u32.to_le_bytes());
    for half in [1_u16, 1] {
        bytes.extend(half.to_le_bytes());
    }
    for word in [8_000_u32, 8_000] {
        bytes.extend(word.to_le_bytes());
    }
    for half in [1_u16, 8] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(b"data");
    bytes.extend(8_000_u32.to_le_bytes());
    bytes.extend(std::iter::repeat_n(128, 8_000));
    bytes
}
