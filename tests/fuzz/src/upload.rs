//! The invariants that must hold for any body of an upload:
//!
//! ```text
//! bytes     → a JSON or multipart body ┐
//! structure → writer, then edits       ┴→ Parser, in any pieces → the same; as serde_json over the whole says
//! ```
//!
//! The sizes of the pieces change nothing; a refusal has a clear error; memory does not grow with the body.

pub mod reference;
pub mod writer;

use crate::MEMORY;
use crate::check::is_clear;
use arbitrary::{Arbitrary, Unstructured};
use reference::Expected;
use shared::error::Problem;
use shared::limits::{UPLOAD_CHUNK_BYTES, UPLOAD_PART_HEAD_MAX_BYTES};
use shared::upload::{Event, ParsedUpload, Parser, UploadLimits};
use writer::{Body, Edit, FORM_TYPE};

/// The form of a parsed body, and the bytes of its files in order.
pub type Read = Result<(ParsedUpload, Vec<Vec<u8>>), Problem>;

/// Maximum bytes that a parser may allocate: its chunk, the head of a part or a text (up to three times while it grows
/// or is unescaped), the collected base64, and its own fields.
const MEMORY_BASE_BYTES: usize = UPLOAD_CHUNK_BYTES + 3 * UPLOAD_PART_HEAD_MAX_BYTES + 32 * 1024;
/// Maximum further bytes for each file: its name, twice, and its label.
const MEMORY_ITEM_BYTES: usize = 4 * 1024;

/// Maximum size of a body that is also pushed byte by byte.
const BYTEWISE_MAX_BYTES: usize = 4_000;

/// Number of ways in which the fuzzer's bytes become a body.
const WAYS: u8 = 4;

/// Checks the invariants for any body: the first byte says how it is made, the next eight how it is cut into pieces.
///
/// # Panics
/// An invariant does not hold.
pub fn upload(bytes: &[u8]) {
    let Some((&[way, ref seed @ ..], rest)) = bytes.split_first_chunk::<9>() else {
        return;
    };
    let seed = u64::from_le_bytes(*seed);
    match way % WAYS {
        0 => agrees(rest, seed),
        1 => {
            drop(holds(Some(FORM_TYPE), rest, seed));
        }
        way => {
            let mut choices = Unstructured::new(rest);
            let Ok(body) = Body::arbitrary(&mut choices) else {
                return;
            };
            written(&body, way == 2, seed);
            let edits = Vec::<Edit>::arbitrary(&mut choices).unwrap_or_default();
            if way == 2 {
                agrees(&Edit::apply_all(&edits, body.json()), seed);
            } else {
                let form = Edit::apply_all(&edits, body.form());
                drop(holds(Some(FORM_TYPE), &form, seed));
            }
        }
    }
}

fn written(body: &Body, is_json: bool, seed: u64) {
    let (kind, text) = if is_json { (None, body.json()) } else { (Some(FORM_TYPE), body.form()) };
    let read = holds(kind, &text, seed);
    let said = || String::from_utf8_lossy(&text[..text.len().min(2_000)]).into_owned();
    let (form, files) = read.unwrap_or_else(|problem| panic!("{problem} in {}", said()));
    assert_eq!(form.folder().as_str(), body.folder());
    let meant: Vec<_> = body.files().collect();
    assert_eq!(files.len(), meant.len());
    for ((item, file), (name, bytes)) in form.items().iter().zip(&files).zip(meant) {
        assert_eq!(item.name().as_str(), name);
        assert!(*file == bytes, "other bytes in {name}, of {}", said());
    }
}

/// Checks that a JSON body is parsed to the same as by serde_json.
fn agrees(body: &[u8], seed: u64) {
    let read = holds(None, body, seed);
    match (read, reference::read(body)) {
        (Err(_), None) => {}
        (Ok((form, files)), Some(expected)) => assert_eq!(Expected::of(&form, files), expected),
        (Err(problem), Some(_)) => assert!(
            // The reference parser doesn't check how long an escaped text was before it was unescaped.
            problem.message().contains("is longer than 2048 bytes"),
            "{problem}, but the reference reads it: {}",
            String::from_utf8_lossy(body)
        ),
        (Ok(_), None) => panic!("the reference refuses {}", String::from_utf8_lossy(body)),
    }
}

fn holds(content_type: Option<&str>, body: &[u8], seed: u64) -> Read {
    let whole = read(content_type, [body]);
    assert_eq!(whole, read(content_type, pieces(body, seed)), "in pieces");
    if body.len() <= BYTEWISE_MAX_BYTES {
        assert_eq!(whole, read(content_type, body.chunks(1)), "byte by byte");
    }
    let items = match &whole {
        Ok((form, _)) => form.items().len(),
        Err(problem) => {
            is_clear(problem);
            UploadLimits::default().items
        }
    };
    let taken = memory(content_type, body, seed);
    let bound = MEMORY_BASE_BYTES + MEMORY_ITEM_BYTES * items;
    assert!(taken <= bound, "{taken} bytes for {items} items");
    whole
}

fn read<'a>(content_type: Option<&str>, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut parser = Parser::new(content_type, UploadLimits::default())?;
    let (mut files, mut is_open): (Vec<Vec<u8>>, bool) = (Vec::new(), false);
    for piece in pieces {
        let mut feed = parser.feed(piece);
        while let Some(event) = feed.next_event()? {
            match event {
                Event::ItemBegins(at) => {
                    assert!(at == files.len() && !is_open);
                    files.push(Vec::new());
                    is_open = true;
                }
                Event::Data(bytes) => {
                    assert!(is_open && !bytes.is_empty());
                    if let Some(file) = files.last_mut() {
                        file.extend_from_slice(bytes);
                    }
                }
                Event::ItemEnds => {
                    assert!(is_open && files.last().is_some_and(|file| !file.is_empty()));
                    is_open = false;
                }
            }
        }
    }
    let form = parser.finish()?;
    assert!(form.items().len() == files.len() && !is_open);
    Ok((form, files))
}

fn memory(content_type: Option<&str>, body: &[u8], seed: u64) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    if let Ok(mut parser) = Parser::new(content_type, UploadLimits::default()) {
        for piece in pieces(body, seed) {
            let mut feed = parser.feed(piece);
            while let Ok(Some(_)) = feed.next_event() {}
        }
        drop(parser.finish());
    }
    MEMORY.peak_usage().saturating_sub(before)
}

fn pieces(mut body: &[u8], mut seed: u64) -> impl Iterator<Item = &[u8]> {
    let bits = seed % 17;
    std::iter::from_fn(move || {
        if body.is_empty() {
            return None;
        }
        // Knuth's linear congruential generator, whose high bits are random enough.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let size = usize::try_from((seed >> 33) % (1 << bits)).unwrap_or(0) + 1;
        let (piece, rest) = body.split_at(size.min(body.len()));
        body = rest;
        Some(piece)
    })
}
