//! What it costs to examine a picture and make its thumbnail, on one thread. `make bench-micro` runs it;
//! `make bench-thumbnails` measures the same beside sharp.
#![allow(
    clippy::expect_used,
    reason = "what is measured here is known to be right"
)]

use divan::{AllocProfiler, Bencher};
use origin::media::image::{Limits, examine};
use origin::media::sniff::ImageFormat;
use std::io::Write;
use turbojpeg::{Compressor, Image, PixelFormat};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const SIZES: [(usize, usize); 3] = [(640, 480), (2048, 1536), (4000, 3000)];

fn main() {
    divan::main();
}

/// Slopes with some grain.
fn pixels((width, height): (usize, usize)) -> Vec<u8> {
    (0..width * height)
        .flat_map(|at| {
            let (x, y) = (at % width, at / width);
            let grain = ((x * 31) ^ (y * 57)) % 23;
            [
                x * 200 / width + grain,
                y * 200 / height + grain,
                90 + grain,
            ]
            .map(|light| light as u8)
        })
        .collect()
}

fn jpeg(size: (usize, usize)) -> Vec<u8> {
    let mut encoder = Compressor::new().expect("an encoder");
    encoder.set_quality(90).expect("a quality");
    encoder
        .set_subsamp(turbojpeg::Subsamp::Sub2x2)
        .expect("a subsampling");
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

fn png(size: (usize, usize)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.0 as u32, size.1 as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder
        .write_header()
        .expect("a header")
        .write_image_data(&pixels(size))
        .expect("pixels");
    bytes
}

fn measure(bencher: Bencher<'_, '_>, bytes: &[u8], format: ImageFormat) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    bencher.bench_local(|| examine(file.path(), format, &Limits::default()).expect("a picture"));
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn of_a_jpeg(bencher: Bencher<'_, '_>, size: (usize, usize)) {
    measure(bencher, &jpeg(size), ImageFormat::Jpeg);
}

#[divan::bench(args = SIZES, sample_count = 20)]
fn of_a_png(bencher: Bencher<'_, '_>, size: (usize, usize)) {
    measure(bencher, &png(size), ImageFormat::Png);
}
