//! Tests that truncated, corrupted and hostile files are refused quickly, in bounded memory, without a panic.

use super::samples::{Jpeg, encoded, gif, one_of_each, photo, pierced, with_chunk, with_segment};
use super::{ImageFault, examined};
use image::DynamicImage;
use shared::error::ErrorCode;
use std::io::Write;

#[test]
fn whole_files_are_accepted() {
    for (name, bytes) in one_of_each() {
        assert!(examined(&bytes).is_ok(), "{name}");
    }
}

#[test]
fn files_cut_anywhere_are_refused() {
    for (name, bytes) in one_of_each() {
        let step = (bytes.len() / 60).max(1);
        let near_the_end = (1..12).map(|less| bytes.len().saturating_sub(less));
        for length in (0..bytes.len()).step_by(step).chain(near_the_end) {
            let result = examined(&bytes[..length]);
            assert!(
                matches!(result, Err(ImageFault::Cut | ImageFault::Corrupt | ImageFault::Unsupported)),
                "{name} cut to {length} of {}: {result:?}",
                bytes.len()
            );
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn files_with_flipped_bits_never_panic() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    for (name, bytes) in one_of_each() {
        for _ in 0..30 {
            let mut broken = bytes.clone();
            // Half of the changes hit the header, which has sizes and offsets.
            let within = if random.below(2) == 0 { 400 } else { u64::MAX };
            for _ in 0..=random.below(4) {
                let at = random.below((broken.len() as u64).min(within)) as usize;
                broken[at] ^= 1 << random.below(8);
            }
            // A changed bit may turn the file into a variant that is not decoded, which has no thumbnail.
            if let Ok(Some(thumbnail)) = examined(&broken).map(|picture| picture.thumbnail) {
                assert!(thumbnail.width <= 256 && thumbnail.height <= 256, "{name}");
            }
        }
    }
}

#[test]
fn what_libjpeg_only_warns_of_is_no_fault() {
    let whole = Jpeg::default().encode(&photo(300, 200));
    let expected = examined(&whole).expect("a picture");
    let profile = |number: u8, count: u8| {
        let mut segment = b"ICC_PROFILE\0".to_vec();
        segment.extend([number, count]);
        segment.extend([7; 200]);
        segment
    };
    let with = |segments: &[(u8, Vec<u8>)]| {
        segments.iter().fold(whole.clone(), |jpeg, (marker, content)| with_segment(&jpeg, *marker, content))
    };
    let inserted = |at: usize, bytes: &[u8]| [&whole[..at], bytes, &whole[at..]].concat();
    let end = whole.len() - 2;
    let tables = whole.windows(2).position(|pair| pair == [0xFF, 0xDB]).expect("tables");
    for (name, bytes) in [
        ("a profile twice", with(&[(0xE2, profile(1, 1)), (0xE2, profile(1, 1))])),
        ("a profile without its second part", with(&[(0xE2, profile(1, 2))])),
        ("a profile's part 0", with(&[(0xE2, profile(0, 1))])),
        ("a profile's part beyond the last", with(&[(0xE2, profile(3, 2))])),
        ("bytes between segments", inserted(tables, b"stray")),
        ("zeros before the end", inserted(end, &[0; 13])),
        ("bytes before the end", inserted(end, b"not a part of any scan, whatever it is")),
        ("bytes behind the end", [&whole[..], b"MotionPhoto_Data and more"].concat()),
        ("a JFIF of a later version", with(&[(0xE0, b"JFIF\0\x09\x09\0\0\x01\0\x01\0\0".to_vec())])),
        ("a colour transform that Adobe never had", with(&[(0xEE, b"Adobe\0\x64\0\0\0\0\x07".to_vec())])),
    ] {
        let picture = examined(&bytes);
        assert_eq!(picture.ok().as_ref(), Some(&expected), "{name}");
    }
}

#[test]
fn a_jpeg_of_which_data_is_missing_or_unreadable_is_refused() {
    let whole = Jpeg::default().encode(&photo(300, 200));
    let middle = whole.len() / 2;
    // In the first file data is missing; in the second the end marker comes too early.
    let holed = [&whole[..middle], &whole[middle + 700..]].concat();
    let ended = [&whole[..middle], &[0xFF, 0xD9]].concat();
    for (name, bytes) in [("holed", holed), ("ended", ended)] {
        let result = examined(&bytes);
        assert!(matches!(result, Err(ImageFault::Cut | ImageFault::Corrupt)), "{name}: {result:?}");
    }
}

#[test]
fn claims_of_size_are_refused_from_the_header() {
    let mut jpeg = Jpeg::default().encode(&photo(64, 64));
    let frame = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame");
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xEA, 0x60, 0xEA, 0x60]);
    too_large(&jpeg, "jpeg");

    let mut bmp = encoded(&DynamicImage::ImageRgb8(photo(64, 64)), image::ImageFormat::Bmp);
    bmp[18..22].copy_from_slice(&60_000_u32.to_le_bytes());
    bmp[22..26].copy_from_slice(&60_000_u32.to_le_bytes());
    too_large(&bmp, "bmp");

    let gif = gif(&[pierced(8, 8)], (60_000, 60_000), (0, 0));
    too_large(&gif, "gif");

    // A PNG with an empty data chunk and valid checksums.
    let png = png_header(60_000, 60_000);
    too_large(&png, "png");
    too_large(&png_header(70_000, 10), "png");
}

fn too_large(bytes: &[u8], name: &str) {
    let result = examined(bytes);
    assert!(matches!(result, Err(ImageFault::TooLarge { .. } | ImageFault::TooCostly)), "{name}: {result:?}");
}

fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    {
        let mut writer = encoder.write_header().expect("a header");
        writer.write_chunk(png::chunk::IDAT, &[0x78, 0x9C, 0x03, 0x00]).expect("a chunk");
    }
    bytes
}

#[test]
fn a_png_that_inflates_to_more_than_it_says_is_refused_without_inflating_it() {
    // 64 MB of zeros after a picture of 16 × 16 pixels.
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1024 {
        deflated.write_all(&[0; 65_536]).expect("deflated");
    }
    let data = deflated.finish().expect("deflated");
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 16, 16);
    encoder.set_color(png::ColorType::Grayscale);
    {
        let mut writer = encoder.write_header().expect("a header");
        writer.write_chunk(png::chunk::IDAT, &data).expect("a chunk");
    }
    // Decoders ignore data after the last row. This tests that decoding ends and needs no memory for such data.
    let result = examined(&bytes);
    assert!(result.is_ok_and(|picture| picture.width == 16));
    // A profile that inflates to a huge size.
    let plain = encoded(&DynamicImage::ImageRgb8(photo(16, 16)), image::ImageFormat::Png);
    let mut profile = b"bomb\0\0".to_vec();
    profile.extend(&data);
    let picture = examined(&with_chunk(&plain, b"iCCP", &profile));
    assert!(matches!(picture, Ok(_) | Err(ImageFault::TooCostly | ImageFault::Corrupt)));
}

#[test]
fn a_tiff_of_absurd_strips_is_refused() {
    // Values near the maximum of 32 bits, then tags that claim to have as many values.
    let tiff = encoded(&DynamicImage::ImageRgb8(photo(64, 64)), image::ImageFormat::Tiff);
    for tag in [256_u16, 257, 273, 279] {
        let mut broken = tiff.clone();
        let at = broken.windows(2).rposition(|bytes| bytes == tag.to_le_bytes()).expect("the tag");
        broken[at + 2..at + 4].copy_from_slice(&4_u16.to_le_bytes());
        broken[at + 4..at + 8].copy_from_slice(&1_u32.to_le_bytes());
        broken[at + 8..at + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(examined(&broken).is_err(), "tag {tag}");
        broken[at + 4..at + 8].copy_from_slice(&u32::MAX.to_le_bytes());
        broken[at + 8..at + 12].copy_from_slice(&8_u32.to_le_bytes());
        assert!(examined(&broken).is_err(), "tag {tag} without end");
    }
}

#[test]
fn a_jpeg_of_thousands_of_scans_is_refused() {
    let jpeg = Jpeg { progressive: true, ..Jpeg::default() }.encode(&photo(300, 200));
    let scans: Vec<usize> =
        jpeg.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, 0xDA]).map(|(at, _)| at).collect();
    // The last scan repeated: it refines coefficients that are already complete.
    let (last, end) = (*scans.last().expect("a scan"), jpeg.len() - 2);
    let mut bomb = jpeg[..end].to_vec();
    for _ in 0..5_000 {
        bomb.extend(&jpeg[last..last + 14]);
    }
    bomb.extend([0xFF, 0xD9]);
    let result = examined(&bomb);
    assert!(matches!(result, Err(ImageFault::TooCostly | ImageFault::Corrupt | ImageFault::Cut)), "{result:?}");
}

#[test]
fn an_avif_is_measured_and_a_cut_one_refused() {
    let avif = include_bytes!("../../../../tests/fixtures/picture.avif");
    let picture = examined(avif).expect("a picture");
    assert_eq!((picture.width, picture.height, picture.thumbnail), (48, 32, None));
    for length in (40..avif.len()).step_by(7) {
        assert!(examined(&avif[..length]).is_err(), "cut to {length}");
    }
}

#[test]
fn a_fault_names_the_file_and_what_is_wrong_with_it() {
    let jpeg = Jpeg::default().encode(&photo(300, 200));
    let fault = examined(&jpeg[..jpeg.len() / 2]).expect_err("a fault");
    let problem = fault.problem("broken.jpg");
    assert_eq!(problem.message(), "The image \"broken.jpg\" can't be decoded: it is cut short.");
    assert_eq!(problem.code(), ErrorCode::InvalidMedia);
    assert!(problem.hint().is_some());
    let busy = ImageFault::Overloaded.problem("a.jpg");
    assert_eq!(busy.code(), ErrorCode::Overloaded);
}
