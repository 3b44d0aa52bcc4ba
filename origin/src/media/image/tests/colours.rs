//! Tests that colours with an ICC profile and CMYK colours are converted to sRGB.

use super::samples::{Jpeg, encoded, photo, png, webp, with_segment};
use super::{difference, examined, shown};
use image::{DynamicImage, RgbaImage};
use moxcms::ColorProfile;
use turbojpeg::{PixelFormat, Subsamp};

/// Returns an ICC profile with exchanged primaries, so that a test fails if the profile is ignored.
fn swapped() -> Vec<u8> {
    let mut profile = ColorProfile::new_srgb();
    let (red, green, blue) = (profile.red_colorant, profile.green_colorant, profile.blue_colorant);
    profile.green_colorant = red;
    profile.red_colorant = blue;
    profile.blue_colorant = green;
    profile.cicp = None;
    profile.encode().expect("a profile")
}

fn swap(image: &RgbaImage) -> RgbaImage {
    let mut swapped = image.clone();
    for pixel in swapped.pixels_mut() {
        let [red, green, blue, opacity] = pixel.0;
        pixel.0 = [green, blue, red, opacity];
    }
    swapped
}

fn icc_segment(jpeg: &[u8], profile: &[u8]) -> Vec<u8> {
    // The profile is split into two parts, stored in reverse order.
    let (first, second) = profile.split_at(profile.len() / 2);
    let part = |number: u8, content: &[u8]| {
        let mut segment = b"ICC_PROFILE\0".to_vec();
        segment.extend([number, 2]);
        segment.extend(content);
        segment
    };
    let jpeg = with_segment(jpeg, 0xE2, &part(1, first));
    with_segment(&jpeg, 0xE2, &part(2, second))
}

#[test]
fn a_profile_changes_the_colours_in_every_format_that_has_it() {
    let photo = photo(200, 150);
    let plain = DynamicImage::ImageRgb8(photo.clone());
    let profile = swapped();
    let expected = swap(&plain.to_rgba8());
    let files = [
        icc_segment(&Jpeg { subsamp: Subsamp::None, ..Jpeg::default() }.encode(&photo), &profile),
        webp(&plain, None, Some(profile.clone())),
        {
            // The `png` crate writes a profile only from `Info`.
            let mut info = png::Info::with_size(200, 150);
            info.color_type = png::ColorType::Rgb;
            info.bit_depth = png::BitDepth::Eight;
            info.icc_profile = Some(profile.clone().into());
            let mut bytes = Vec::new();
            let mut writer =
                png::Encoder::with_info(&mut bytes, info).expect("an encoder").write_header().expect("a header");
            writer.write_image_data(photo.as_raw()).expect("pixels");
            writer.finish().expect("an end");
            bytes
        },
    ];
    for (number, bytes) in files.iter().enumerate() {
        let off = difference(&shown(&examined(bytes).expect("a picture")), &expected);
        assert!(off < 6.0, "file {number} is off by {off}");
    }
}

#[test]
fn a_wide_gamut_is_brought_into_srgb() {
    let colour = |pixel: [u8; 3]| {
        let image = image::RgbImage::from_pixel(64, 64, image::Rgb(pixel));
        let profile = ColorProfile::new_display_p3().encode().expect("a profile");
        let jpeg = Jpeg { subsamp: Subsamp::None, ..Jpeg::default() }.encode(&image);
        let shown = shown(&examined(&icc_segment(&jpeg, &profile)).expect("a picture"));
        shown.get_pixel(32, 32).0
    };
    // The expected values are from CSS Color 4's conversion of `color(display-p3 …)` to sRGB.
    let [red, green, blue, _] = colour([180, 120, 60]);
    assert!(red.abs_diff(188) < 4 && green.abs_diff(118) < 4 && blue.abs_diff(47) < 5, "{red} {green} {blue}");
    let [red, green, blue, _] = colour([128, 128, 128]);
    assert!(red.abs_diff(128) < 3 && green.abs_diff(128) < 3 && blue.abs_diff(128) < 3);
}

#[test]
fn a_profile_that_is_none_or_of_other_colours_counts_for_nothing() {
    let photo = photo(200, 150);
    let jpeg = Jpeg::default().encode(&photo);
    let plain = shown(&examined(&jpeg).expect("a picture"));
    let grey = ColorProfile::new_gray_with_gamma(2.2).encode().expect("a profile");
    for wrong in [grey, b"no profile".to_vec(), vec![0; 128], vec![0xFF; 60_000]] {
        let picture = examined(&icc_segment(&jpeg, &wrong)).expect("a picture");
        assert!(difference(&shown(&picture), &plain) < 0.01);
    }
}

#[test]
fn a_profile_of_greys_is_applied() {
    let image = image::GrayImage::from_pixel(64, 64, image::Luma([128]));
    let profile = ColorProfile::new_gray_with_gamma(1.0).encode().expect("a profile");
    let jpeg =
        Jpeg { subsamp: Subsamp::Gray, ..Jpeg::default() }.encode_raw(image.as_raw(), (64, 64), PixelFormat::GRAY);
    let shown = shown(&examined(&icc_segment(&jpeg, &profile)).expect("a picture"));
    // Half of the light corresponds to the value 188 in sRGB.
    assert!(shown.get_pixel(30, 30).0[0].abs_diff(188) < 4);
}

#[test]
fn inks_become_light_whichever_way_they_are_stored() {
    // Three patches: pure cyan, half black, no ink.
    let patch = |x: u32| match x / 80 {
        0 => [255, 0, 0, 0],
        1 => [0, 0, 0, 128],
        _ => [0, 0, 0, 0_u8],
    };
    let inks: Vec<u8> = (0..60).flat_map(|_| (0..240).flat_map(patch)).collect();
    let light: Vec<u8> = inks.iter().map(|ink| 255 - ink).collect();
    let jpeg = Jpeg { subsamp: Subsamp::None, ..Jpeg::default() };
    // The encoder writes Adobe's marker, which means that CMYK is stored inverted.
    let adobe = jpeg.encode_raw(&light, (240, 60), PixelFormat::CMYK);
    assert!(adobe.windows(5).any(|word| word == b"Adobe"));
    let shown = shown(&examined(&adobe).expect("a picture"));
    let near = |x: u32, expected: [u8; 3]| {
        let pixel = shown.get_pixel(x, 30).0;
        pixel.iter().zip(expected).all(|(one, other)| one.abs_diff(other) < 8)
    };
    assert!(near(40, [0, 255, 255]), "{:?}", shown.get_pixel(40, 30));
    assert!(near(120, [127, 127, 127]), "{:?}", shown.get_pixel(120, 30));
    assert!(near(200, [255, 255, 255]), "{:?}", shown.get_pixel(200, 30));
}

#[test]
fn a_png_that_says_it_is_srgb_keeps_its_colours() {
    let photo = photo(200, 150);
    let plain = DynamicImage::ImageRgb8(photo.clone());
    let bytes = png((200, 150), png::ColorType::Rgb, png::BitDepth::Eight, photo.as_raw(), |encoder| {
        encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    });
    let one = shown(&examined(&bytes).expect("a picture"));
    let other = shown(&examined(&encoded(&plain, image::ImageFormat::Png)).expect("a picture"));
    assert!(difference(&one, &other) < 0.01);
}
