//! Measures how fast rows from the driver become bytes of a response. `make bench-micro` runs it.
//!
//! The aim is 400 MB/s per core.
#![allow(missing_docs, reason = "a program, not an interface")]

use divan::Bencher;
use divan::counter::BytesCount;
use origin::database::sample::{Prose, Sample};
use shared::format::Format;
use twox_hash::XxHash3_128;

fn main() {
    divan::main();
}

const ROWS: u32 = 2_000;
const FORMATS: [Format; 3] = [Format::Envelope, Format::NdJson, Format::Csv];

fn encode(bencher: Bencher<'_, '_>, sample: &Sample, format: Format) {
    bencher.counter(BytesCount::new(sample.encode(format))).bench_local(|| divan::black_box(sample).encode(format));
}

#[divan::bench(args = FORMATS)]
fn posts(bencher: Bencher<'_, '_>, format: Format) {
    encode(bencher, &Sample::posts(ROWS, Prose::Plain), format);
}

#[divan::bench(args = FORMATS)]
fn posts_in_other_scripts(bencher: Bencher<'_, '_>, format: Format) {
    encode(bencher, &Sample::posts(ROWS, Prose::Unicode), format);
}

#[divan::bench(args = FORMATS)]
fn posts_with_much_to_escape(bencher: Bencher<'_, '_>, format: Format) {
    encode(bencher, &Sample::posts(ROWS, Prose::Quoted), format);
}

#[divan::bench(args = [100, 700, 10_000])]
fn tag(bencher: Bencher<'_, '_>, bytes: usize) {
    let body: Vec<u8> = (0..=255).cycle().take(bytes).collect();
    bencher
        .counter(BytesCount::new(bytes))
        .bench_local(|| format!("\"{:032x}\"", XxHash3_128::oneshot(divan::black_box(&body))));
}

#[divan::bench(args = FORMATS)]
fn numbers(bencher: Bencher<'_, '_>, format: Format) {
    encode(bencher, &Sample::numbers(ROWS), format);
}
