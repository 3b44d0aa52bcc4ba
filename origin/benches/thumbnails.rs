//! Measures how long it takes to examine a picture and make its thumbnail, on one thread. `make bench-micro` runs it;
//! `make bench-thumbnails` measures the same in comparison with sharp.
#![allow(clippy::expect_used, reason = "what is measured here is known to be right")]

#[path = "material/pictures.rs"]
mod pictures;

use divan::{AllocProfiler, Bencher};
use origin::media::image::{Limits, examine};
use origin::media::sniff::ImageFormat;
use pictures::{jpeg, png};
use std::io::Write;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const SIZES: [(usize, usize); 3] = [(640, 480), (2048, 1536), (4000, 3000)];

fn main() {
    divan::main();
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
