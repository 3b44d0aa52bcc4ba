//! Pictures that compress about as well as photographs.

use turbojpeg::{Compressor, Image, PixelFormat};

fn pixels((width, height): (usize, usize)) -> Vec<u8> {
    (0..width * height)
        .flat_map(|at| {
            let (x, y) = (at % width, at / width);
            let grain = ((x * 31) ^ (y * 57)) % 23;
            [x * 200 / width + grain, y * 200 / height + grain, 90 + grain].map(|light| light as u8)
        })
        .collect()
}

pub(crate) fn jpeg(size: (usize, usize)) -> Vec<u8> {
    let mut encoder = Compressor::new().expect("an encoder");
    encoder.set_quality(90).expect("a quality");
    encoder.set_subsamp(turbojpeg::Subsamp::Sub2x2).expect("a subsampling");
    encoder
        .compress_to_vec(Image {
            pixels: pixels(size).as_slice(),
            width: size.0,
            pitch: size.0 * 3,
            height: size.1,
            format: PixelFormat::RGB,
        })
        .expect("a JPEG")
}

pub(crate) fn png(size: (usize, usize)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0 as u32, size.1 as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().expect("a header").write_image_data(&pixels(size)).expect("pixels");
    bytes
}
