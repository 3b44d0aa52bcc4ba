//! Benchmarks of parsing the bodies of uploads, without storing anything. Run by `make bench-micro`.
//!
//! The aim is 1.5 GB/s of body on one core, so that hashing and storing dominate the cost of an upload.
#![allow(clippy::expect_used, reason = "what is measured here is known to be right")]
#![allow(missing_docs, reason = "a program, not an interface")]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use shared::upload::{Event, Parser, UploadLimits};

fn main() {
    divan::main();
}

const IMAGE_BYTES: usize = 64 * 1024 * 1024;
/// Approximate number of bytes that a connection delivers at once.
const PIECE_BYTES: usize = 64 * 1024;
const FORM: &str = "multipart/form-data; boundary=----WebKitFormBoundaryx8jO2oVc6SWP3Sad";

/// Returns pseudo-random bytes, as hard to compress as a picture's.
fn image() -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..IMAGE_BYTES / 8).flat_map(|_| next()).collect()
}

fn json(base64: &str) -> Vec<u8> {
    let head = r#"{"type":"image","media":[{"name":"a.png","base64":"data:image/png;base64,"#;
    [head, base64, r#""}]}"#].concat().into_bytes()
}

fn parse(bencher: Bencher<'_, '_>, content_type: Option<&str>, body: &[u8]) {
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let limits = UploadLimits::default();
        let mut parser = Parser::new(content_type, limits).expect("a type that is read");
        let mut size = 0;
        for piece in body.chunks(PIECE_BYTES) {
            let mut feed = parser.feed(piece);
            while let Some(event) = feed.next_event().expect("a sound body") {
                if let Event::Data(bytes) = black_box(event) {
                    size += bytes.len();
                }
            }
        }
        assert_eq!(size, IMAGE_BYTES);
        parser.finish().expect("a whole body")
    });
}

#[divan::bench(sample_count = 10)]
fn base64(bencher: Bencher<'_, '_>) {
    parse(bencher, None, &json(&STANDARD.encode(image())));
}

#[divan::bench(sample_count = 10)]
fn base64_in_the_other_alphabet(bencher: Bencher<'_, '_>) {
    parse(bencher, None, &json(&URL_SAFE.encode(image())));
}

#[divan::bench(sample_count = 10)]
fn base64_with_slashes_escaped(bencher: Bencher<'_, '_>) {
    let text = STANDARD.encode(image()).replace('/', "\\/");
    parse(bencher, None, &json(&text));
}

#[divan::bench(sample_count = 10)]
fn base64_in_lines(bencher: Bencher<'_, '_>) {
    let text = STANDARD.encode(image());
    let lines = text.as_bytes().chunks(76).map(String::from_utf8_lossy);
    let text = lines.collect::<Vec<_>>().join("\\r\\n");
    parse(bencher, None, &json(&text));
}

#[divan::bench(sample_count = 10)]
fn form(bencher: Bencher<'_, '_>) {
    let boundary = &FORM[FORM.find('=').map_or(0, |at| at + 1)..];
    let disposition = "\r\nContent-Disposition: form-data; name=";
    let mut body =
        format!("--{boundary}{disposition}type\r\n\r\nimage\r\n--{boundary}{disposition}f; filename=a\r\n\r\n")
            .into_bytes();
    body.extend_from_slice(&image());
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    parse(bencher, Some(FORM), &body);
}

/// Measures the decoder of the crate `base64` by itself, for comparison.
#[divan::bench(sample_count = 10)]
fn the_other_decoder_alone(bencher: Bencher<'_, '_>) {
    let text = STANDARD.encode(image());
    let mut decoded = vec![0; PIECE_BYTES];
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            let size = STANDARD.decode_slice(piece, &mut decoded).expect("base64");
            black_box(&decoded[..size]);
        }
    });
}
