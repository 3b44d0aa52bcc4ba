//! Sample pictures, and encoders for variants that the crate `image` can't write.

use image::{DynamicImage, ExtendedColorType, ImageEncoder, RgbImage, RgbaImage};
use std::io::Cursor;
use turbojpeg::{Compressor, PixelFormat, Subsamp};

pub(super) fn photo(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (u, v) = (f64::from(x) / f64::from(width), f64::from(y) / f64::from(height));
        let hill = if (u - 0.3).powi(2) + (v - 0.4).powi(2) < 0.04 { 70.0 } else { 0.0 };
        let wave = ((u * 23.0).sin() * (v * 17.0).cos()) * 25.0;
        let grain = f64::from((x.wrapping_mul(31) ^ y.wrapping_mul(57)) % 7);
        let sample = |base: f64| (base + hill + wave + grain).clamp(0.0, 255.0) as u8;
        image::Rgb([sample(200.0 * u), sample(180.0 * v), sample(120.0 * (1.0 - u) + 40.0 * v)])
    })
}

pub(super) fn pierced(width: u32, height: u32) -> RgbaImage {
    let photo = DynamicImage::ImageRgb8(photo(width, height)).into_rgba8();
    RgbaImage::from_fn(width, height, |x, y| {
        let (u, v) = (f64::from(x) / f64::from(width) - 0.5, f64::from(y) / f64::from(height) - 0.5);
        let mut pixel = *photo.get_pixel(x, y);
        if u * u + v * v < 0.06 {
            pixel.0[3] = 0;
        }
        pixel
    })
}

pub(super) struct Jpeg {
    pub(super) progressive: bool,
    pub(super) subsamp: Subsamp,
}

impl Default for Jpeg {
    fn default() -> Self {
        Self { progressive: false, subsamp: Subsamp::Sub2x2 }
    }
}

impl Jpeg {
    pub(super) fn encode(&self, image: &RgbImage) -> Vec<u8> {
        self.encode_raw(image.as_raw(), image.dimensions(), PixelFormat::RGB)
    }

    pub(super) fn encode_raw(&self, pixels: &[u8], (width, height): (u32, u32), format: PixelFormat) -> Vec<u8> {
        let mut encoder = Compressor::new().expect("an encoder");
        encoder.set_quality(92).expect("a quality");
        encoder.set_subsamp(self.subsamp).expect("a subsampling");
        encoder.set_progressive(self.progressive).expect("a mode");
        if format == PixelFormat::CMYK {
            encoder.set_colorspace(turbojpeg::Colorspace::YCCK).expect("a colour space");
        }
        encoder
            .compress_to_vec(turbojpeg::Image {
                pixels,
                width: width as usize,
                pitch: width as usize * format.size(),
                height: height as usize,
                format,
            })
            .expect("a JPEG")
    }
}

/// Inserts a segment after the first marker of a JPEG.
pub(super) fn with_segment(jpeg: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).expect("a segment");
    let mut made = jpeg[..2].to_vec();
    made.extend([0xFF, marker]);
    made.extend(length.to_be_bytes());
    made.extend(content);
    made.extend(&jpeg[2..]);
    made
}

/// Returns EXIF data with an orientation only, as PNG and WebP store it.
pub(super) fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"MM\0*\0\0\0\x08\0\x01".to_vec();
    block.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]);
    block.extend([0; 4]);
    block
}

pub(super) fn encoded(image: &DynamicImage, format: image::ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("encoded");
    bytes.into_inner()
}

/// Inserts a chunk after the header chunk of a PNG.
pub(super) fn with_chunk(png: &[u8], kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    const HEADER_END: usize = 8 + 25;
    let mut made = png[..HEADER_END].to_vec();
    made.extend((content.len() as u32).to_be_bytes());
    let mut chunk = kind.to_vec();
    chunk.extend(content);
    made.extend(&chunk);
    made.extend(crc32(&chunk).to_be_bytes());
    made.extend(&png[HEADER_END..]);
    made
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

pub(super) fn png(
    (width, height): (u32, u32),
    colour: png::ColorType,
    depth: png::BitDepth,
    pixels: &[u8],
    more: impl FnOnce(&mut png::Encoder<'_, &mut Vec<u8>>),
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    more(&mut encoder);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(pixels).expect("pixels");
    writer.finish().expect("an end");
    bytes
}

/// Encodes a GIF of frames at the position `at`, with 6 × 6 × 6 colours and the transparent palette index 255.
pub(super) fn gif(frames: &[RgbaImage], screen: (u16, u16), at: (u16, u16)) -> Vec<u8> {
    let palette: Vec<u8> = (0..216_u16)
        .flat_map(|index| [index / 36, index / 6 % 6, index % 6].map(|step| (step * 51) as u8))
        .chain([0; 120])
        .collect();
    let mut bytes = Vec::new();
    {
        let mut encoder = gif::Encoder::new(&mut bytes, screen.0, screen.1, &palette).expect("a header");
        for image in frames {
            let indices: Vec<u8> = image
                .pixels()
                .map(|pixel| {
                    let [red, green, blue, opacity] = pixel.0;
                    let step = |sample: u8| (u16::from(sample) + 25) / 51;
                    if opacity == 0 { 255 } else { (step(red) * 36 + step(green) * 6 + step(blue)) as u8 }
                })
                .collect();
            let frame = gif::Frame {
                left: at.0,
                top: at.1,
                width: image.width() as u16,
                height: image.height() as u16,
                transparent: Some(255),
                buffer: indices.into(),
                ..gif::Frame::default()
            };
            encoder.write_frame(&frame).expect("a frame");
        }
    }
    bytes
}

pub(super) fn webp(image: &DynamicImage, exif: Option<Vec<u8>>, icc: Option<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut bytes);
    if let Some(exif) = exif {
        encoder.set_exif_metadata(exif).expect("EXIF");
    }
    if let Some(icc) = icc {
        encoder.set_icc_profile(icc).expect("a profile");
    }
    let (colour, pixels) = match image {
        DynamicImage::ImageRgba8(image) => (ExtendedColorType::Rgba8, image.as_raw()),
        DynamicImage::ImageRgb8(image) => (ExtendedColorType::Rgb8, image.as_raw()),
        other => panic!("not written here: {other:?}"),
    };
    encoder.write_image(pixels, image.width(), image.height(), colour).expect("a WebP");
    bytes
}

pub(super) fn tiff(image: &RgbImage, compression: tiff::encoder::Compression) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    tiff::encoder::TiffEncoder::new(&mut bytes)
        .expect("an encoder")
        .with_compression(compression)
        .write_image::<tiff::encoder::colortype::RGB8>(image.width(), image.height(), image.as_raw())
        .expect("a TIFF");
    bytes.into_inner()
}

pub(super) fn animated_webp(frames: [&RgbaImage; 2]) -> Vec<u8> {
    let (width, height) = frames[0].dimensions();
    let mut encoder = webpx::AnimationEncoder::new(width, height).expect("an encoder");
    encoder.set_lossless(true);
    for (number, frame) in frames.iter().enumerate() {
        let added = encoder.add_frame_rgba(frame.as_raw(), number as i32 * 100);
        added.expect("a frame");
    }
    encoder.finish(200).expect("an animation")
}

/// Returns valid files of all formats except AVIF, some formats in several variants, each with a name.
pub(super) fn one_of_each() -> Vec<(&'static str, Vec<u8>)> {
    let photo = photo(300, 200);
    let plain = DynamicImage::ImageRgb8(photo.clone());
    let pierced = pierced(300, 200);
    let (first, second) = (self::pierced(64, 48), plain.crop_imm(9, 9, 64, 48).into_rgba8());
    let icon = DynamicImage::ImageRgba8(self::pierced(64, 48));
    vec![
        ("jpeg", Jpeg::default().encode(&photo)),
        ("progressive jpeg", Jpeg { progressive: true, ..Jpeg::default() }.encode(&photo)),
        ("png", encoded(&plain, image::ImageFormat::Png)),
        ("gif", gif(&[pierced.clone(), pierced], (300, 200), (0, 0))),
        ("webp", webp(&plain, None, None)),
        (
            "lossy webp",
            webpx::Encoder::new_rgb(photo.as_raw(), 300, 200).quality(80.0).encode(webpx::Unstoppable).expect("a WebP"),
        ),
        ("bmp", encoded(&plain, image::ImageFormat::Bmp)),
        ("tiff", encoded(&plain, image::ImageFormat::Tiff)),
        ("lzw tiff", tiff(&photo, tiff::encoder::Compression::Lzw)),
        ("deflated tiff", tiff(&photo, tiff::encoder::Compression::Deflate(Default::default()))),
        ("animated webp", animated_webp([&first, &second])),
        ("ico", encoded(&icon, image::ImageFormat::Ico)),
    ]
}
