//! Tests of formats and pixel layouts: the size, the thumbnail, and that the thumbnail shows the image.

use super::samples::{self, Jpeg, encoded, gif, photo, pierced, png, webp};
use super::{difference, examined, shown};
use image::{DynamicImage, ImageFormat, RgbaImage};
use turbojpeg::Subsamp;

fn expected(width: u32, height: u32, small: (u32, u32)) -> RgbaImage {
    DynamicImage::ImageRgb8(photo(width, height))
        .resize_exact(small.0, small.1, image::imageops::FilterType::Lanczos3)
        .into_rgba8()
}

fn shows_the_photo(bytes: &[u8], full: (u32, u32), small: (u32, u32), tolerance: f64) {
    let picture = examined(bytes).expect("a picture");
    assert_eq!((picture.width, picture.height), full);
    let thumbnail = picture.thumbnail.as_ref().expect("a thumbnail");
    assert_eq!(thumbnail.mime, "image/jpeg");
    assert_eq!((thumbnail.width, thumbnail.height), small);
    let off = difference(&shown(&picture), &expected(full.0, full.1, small));
    assert!(off < tolerance, "off by {off}");
}

#[test]
fn jpegs_of_every_kind_show_what_they_show() {
    let photo = photo(1000, 700);
    for progressive in [false, true] {
        for subsamp in [Subsamp::None, Subsamp::Sub2x2, Subsamp::Sub2x1, Subsamp::Sub4x1] {
            let bytes = Jpeg { progressive, subsamp }.encode(&photo);
            shows_the_photo(&bytes, (1000, 700), (256, 179), 3.0);
        }
    }
}

#[test]
fn formats_without_loss_show_what_they_show() {
    let photo = DynamicImage::ImageRgb8(photo(900, 1300));
    for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Tiff] {
        shows_the_photo(&encoded(&photo, format), (900, 1300), (177, 256), 3.0);
    }
    shows_the_photo(&webp(&photo, None, None), (900, 1300), (177, 256), 3.0);
}

#[test]
fn pngs_of_every_depth_are_read() {
    use png::{BitDepth, ColorType};
    let photo = DynamicImage::ImageRgb8(photo(600, 400));
    let wide = |samples: &[u16]| -> Vec<u8> { samples.iter().flat_map(|sample| sample.to_be_bytes()).collect() };
    let size = (600, 400);
    let files = [
        png(size, ColorType::Rgb, BitDepth::Sixteen, &wide(photo.to_rgb16().as_raw()), |_| {}),
        png(size, ColorType::Rgba, BitDepth::Sixteen, &wide(photo.to_rgba16().as_raw()), |_| {}),
        png(size, ColorType::Rgba, BitDepth::Eight, photo.to_rgba8().as_raw(), |_| {}),
    ];
    for bytes in files {
        shows_the_photo(&bytes, size, (256, 171), 3.0);
    }
    let grey = photo.to_luma8();
    let files = [
        png(size, ColorType::Grayscale, BitDepth::Eight, grey.as_raw(), |_| {}),
        png(size, ColorType::Grayscale, BitDepth::Sixteen, &wide(photo.to_luma16().as_raw()), |_| {}),
        png(size, ColorType::GrayscaleAlpha, BitDepth::Eight, photo.to_luma_alpha8().as_raw(), |_| {}),
        encoded(&DynamicImage::ImageLuma16(photo.to_luma16()), ImageFormat::Tiff),
        Jpeg { subsamp: Subsamp::Gray, ..Jpeg::default() }.encode_raw(
            grey.as_raw(),
            size,
            turbojpeg::PixelFormat::GRAY,
        ),
    ];
    let expected =
        DynamicImage::ImageLuma8(grey).resize_exact(256, 171, image::imageops::FilterType::Lanczos3).into_rgba8();
    for bytes in files {
        let picture = examined(&bytes).expect("a grey picture");
        assert_eq!(picture.thumbnail.as_ref().expect("one").mime, "image/jpeg");
        assert!(difference(&shown(&picture), &expected) < 3.0);
    }
}

#[test]
fn a_palette_and_its_transparent_colours_are_resolved() {
    use png::{BitDepth, ColorType};
    // Four quarters of two bits a pixel: red, green, blue, and a transparent colour.
    let row = |left: u8, right: u8| {
        let mut row = vec![left * 0b0101_0101; 10];
        row.extend(vec![right * 0b0101_0101; 10]);
        row
    };
    let pixels: Vec<u8> = (0..80).flat_map(|y| if y < 40 { row(0, 1) } else { row(2, 3) }).collect();
    let bytes = png((80, 80), ColorType::Indexed, BitDepth::Two, &pixels, |encoder| {
        encoder.set_palette(vec![250, 10, 10, 10, 250, 10, 10, 10, 250, 9, 9, 9]);
        encoder.set_trns(vec![255, 255, 255, 0]);
    });
    let picture = examined(&bytes).expect("a picture");
    assert_eq!(picture.thumbnail.as_ref().expect("one").mime, "image/webp");
    let shown = shown(&picture);
    let near = |x, y, [r, g, b]: [u8; 3]| {
        let [red, green, blue, opacity] = shown.get_pixel(x, y).0;
        opacity == 255 && red.abs_diff(r) < 12 && green.abs_diff(g) < 12 && blue.abs_diff(b) < 12
    };
    assert!(near(10, 10, [250, 10, 10]));
    assert!(near(70, 10, [10, 250, 10]));
    assert!(near(10, 70, [10, 10, 250]));
    assert_eq!(shown.get_pixel(70, 70).0[3], 0);
}

#[test]
fn an_interlaced_png_shows_the_same() {
    // The plain file is the reference for the interlaced one, which has the seven passes of Adam7.
    let photo = DynamicImage::ImageRgb8(photo(90, 70));
    let plain = examined(&encoded(&photo, ImageFormat::Png)).expect("a picture");
    let interlaced = include_bytes!("../../../../tests/fixtures/interlaced.png");
    let picture = examined(interlaced).expect("a picture");
    assert_eq!((picture.width, picture.height), (90, 70));
    assert!(difference(&shown(&picture), &shown(&plain)) < 1.0);
}

#[test]
fn transparency_makes_a_webp_and_none_a_jpeg() {
    let pierced = DynamicImage::ImageRgba8(pierced(500, 500));
    let files = [
        encoded(&pierced, ImageFormat::Png),
        webp(&pierced, None, None),
        encoded(&pierced, ImageFormat::Tiff),
        gif(&[pierced.to_rgba8()], (500, 500), (0, 0)),
    ];
    for bytes in files {
        let picture = examined(&bytes).expect("a picture");
        let shown = shown(&picture);
        assert_eq!(picture.thumbnail.expect("one").mime, "image/webp");
        assert_eq!(shown.get_pixel(128, 128).0[3], 0);
        assert_eq!(shown.get_pixel(5, 5).0[3], 255);
    }
    let opaque = DynamicImage::ImageRgb8(photo(500, 500)).into_rgba8();
    let bytes = encoded(&DynamicImage::ImageRgba8(opaque), ImageFormat::Png);
    assert_eq!(examined(&bytes).expect("one").thumbnail.expect("one").mime, "image/jpeg");
}

#[test]
fn what_shines_through_does_not_stain_the_edges() {
    // White stripes between transparent stripes that are black underneath, all finer than the thumbnail's pixels.
    let striped = RgbaImage::from_fn(1024, 1024, |x, _| image::Rgba(if x % 3 == 0 { [0, 0, 0, 0] } else { [255; 4] }));
    let bytes = encoded(&DynamicImage::ImageRgba8(striped), ImageFormat::Png);
    let shown = shown(&examined(&bytes).expect("a picture"));
    for pixel in shown.pixels() {
        assert!(pixel.0[..3].iter().all(|sample| *sample > 245), "{pixel:?}");
        assert!(pixel.0[3].abs_diff(170) < 40, "{pixel:?}");
    }
}

#[test]
fn the_first_frame_of_an_animation_is_shown_on_its_screen() {
    let red = RgbaImage::from_pixel(40, 20, image::Rgba([255, 0, 0, 255]));
    let blue = RgbaImage::from_pixel(40, 20, image::Rgba([0, 0, 255, 255]));
    let picture = examined(&gif(&[red, blue], (100, 60), (30, 25))).expect("a GIF");
    assert_eq!((picture.width, picture.height), (100, 60));
    let shown = shown(&picture);
    assert_eq!(shown.dimensions(), (100, 60));
    let [r, g, b, a] = shown.get_pixel(50, 35).0;
    assert!(r > 235 && g < 20 && b < 20 && a == 255);
    assert_eq!(shown.get_pixel(10, 10).0[3], 0);
    assert_eq!(shown.get_pixel(80, 55).0[3], 0);
}

#[test]
fn a_thumbnail_keeps_proportions_and_is_never_larger() {
    for (full, small) in [
        ((1, 1), (1, 1)),
        ((256, 256), (256, 256)),
        ((257, 256), (256, 255)),
        ((100, 50), (100, 50)),
        ((5000, 3), (256, 1)),
        ((3, 5000), (1, 256)),
        ((512, 511), (256, 256)),
        ((2000, 1000), (256, 128)),
    ] {
        let photo = photo(full.0, full.1);
        for bytes in
            [Jpeg::default().encode(&photo), encoded(&DynamicImage::ImageRgb8(photo.clone()), ImageFormat::Png)]
        {
            let picture = examined(&bytes).expect("a picture");
            let thumbnail = picture.thumbnail.as_ref().expect("a thumbnail");
            assert_eq!((picture.width, picture.height), full);
            assert_eq!((thumbnail.width, thumbnail.height), small, "{full:?}");
        }
    }
}

#[test]
fn the_largest_of_an_icons_pictures_is_taken() {
    let bytes = encoded(&DynamicImage::ImageRgba8(samples::pierced(64, 48)), ImageFormat::Ico);
    let picture = examined(&bytes).expect("an icon");
    assert_eq!((picture.width, picture.height), (64, 48));
    assert_eq!(picture.thumbnail.expect("one").mime, "image/webp");
}

#[test]
fn an_animated_webp_shows_its_first_frame() {
    let first = pierced(300, 200);
    let second = DynamicImage::ImageRgb8(photo(300, 200)).rotate180().into_rgba8();
    let bytes = samples::animated_webp([&first, &second]);
    let picture = examined(&bytes).expect("a picture");
    let shown = shown(&picture);
    assert_eq!(picture.thumbnail.expect("one").mime, "image/webp");
    assert_eq!(shown.get_pixel(128, 85).0[3], 0);
    assert_eq!(shown.get_pixel(3, 3).0[3], 255);
}

#[test]
fn tiffs_of_every_compression_and_pixel_show_the_same() {
    let photo = DynamicImage::ImageRgb8(photo(640, 480));
    let expected = expected(640, 480, (256, 192));
    use tiff::encoder::Compression;
    let files = [
        samples::tiff(&photo.to_rgb8(), Compression::Uncompressed),
        samples::tiff(&photo.to_rgb8(), Compression::Lzw),
        samples::tiff(&photo.to_rgb8(), Compression::Packbits),
        encoded(&DynamicImage::ImageRgb16(photo.to_rgb16()), ImageFormat::Tiff),
        encoded(&DynamicImage::ImageRgb32F(photo.to_rgb32f()), ImageFormat::Tiff),
        include_bytes!("../../../../tests/fixtures/tiled-ycbcr.tiff").to_vec(),
    ];
    for (number, bytes) in files.iter().enumerate() {
        let off = difference(&shown(&examined(bytes).expect("a picture")), &expected);
        assert!(off < 3.0, "file {number} is off by {off}");
    }
}
