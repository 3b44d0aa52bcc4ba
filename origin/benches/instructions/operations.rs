//! The operations whose instructions are counted: small ones for each stage of a request.

use super::pictures::{jpeg, png};
use super::requests::{REQUESTS, joined, parse, plan, render, request, tables};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use origin::database::sample::{Prose, Sample, bound};
use origin::media::image::{Limits, examine};
use origin::media::sniff::ImageFormat;
use origin::query::plan::scope::Scope;
use shared::format::Format;
use shared::ident::ProjectName;
use shared::key::{Access, KeyClaims, KeySet, SigningKey, TokenCache, verify};
use shared::upload::{Event, Parser, UploadLimits};
use std::fs;
use std::hint::black_box;
use std::path::Path;
use uuid::Builder;

/// One operation: `prepare` returns the work, which is then run once uncounted, and `times` times counted.
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) times: u32,
    pub(crate) prepare: Prepare,
}

type Work = Box<dyn FnMut()>;
type Prepare = Box<dyn FnOnce() -> Work>;

pub(crate) fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    let mut add = |name: String, times: u32, prepare: Prepare| {
        all.push(Operation { name, times, prepare });
    };
    for (name, ..) in REQUESTS {
        add(format!("parse: {name}"), 100, Box::new(|| parsing(name)));
    }
    for (name, ..) in REQUESTS {
        add(format!("plan: {name}"), 100, Box::new(|| planning(name)));
    }
    for (name, ..) in REQUESTS {
        add(format!("render: {name}"), RENDERED, Box::new(|| rendering(name)));
    }
    let thousand = || inserting(1_000);
    add("altogether: a thousand inserts of five fields, bound".to_owned(), 10, Box::new(thousand));
    for format in [Format::Envelope, Format::NdJson, Format::Csv] {
        let prepare = move || encoding(Sample::posts(100, Prose::Plain), format);
        add(format!("encode: a hundred posts, {format:?}"), 10, Box::new(prepare));
    }
    let quoted = || encoding(Sample::posts(100, Prose::Quoted), Format::Envelope);
    add("encode: a hundred posts with much to escape".to_owned(), 10, Box::new(quoted));
    let numbers = || encoding(Sample::numbers(100), Format::Envelope);
    add("encode: a hundred rows of numbers".to_owned(), 10, Box::new(numbers));
    add("verify: a new token".to_owned(), 20, Box::new(verifying_anew));
    add("verify: a known token".to_owned(), 100, Box::new(verifying_again));
    add("upload: a MiB as base64".to_owned(), 1, Box::new(|| uploading(None, in_json())));
    add("upload: a MiB as a form".to_owned(), 1, Box::new(|| uploading(Some(FORM), in_form())));
    let photo = || shrinking(jpeg(PICTURE), ImageFormat::Jpeg);
    add("thumbnail: of a JPEG".to_owned(), 1, Box::new(photo));
    let drawing = || shrinking(png(PICTURE), ImageFormat::Png);
    add("thumbnail: of a PNG".to_owned(), 1, Box::new(drawing));
    all
}

/// How often rendering is run and counted. Each run consumes a prepared plan.
const RENDERED: u32 = 100;
const PICTURE: (usize, usize) = (640, 480);

fn parsing(name: &str) -> Work {
    let (target, body) = request(name);
    Box::new(move || drop(black_box(parse(black_box(target), black_box(body)))))
}

fn scope(name: &str) -> (&'static shared::operation::RecordOperation, &'static Scope<'static>) {
    let (target, body) = request(name);
    let operation = &*Box::leak(Box::new(parse(target, body)));
    let tables = &*Box::leak(Box::new(tables()));
    let joined = &*Box::leak(Box::new(joined(operation, tables)));
    let scope = Scope::joined(&tables[0], operation.joins(), joined).expect("sound joins");
    (operation, Box::leak(Box::new(scope)))
}

fn planning(name: &str) -> Work {
    let (operation, scope) = scope(name);
    Box::new(move || drop(black_box(plan(black_box(operation), scope))))
}

fn rendering(name: &str) -> Work {
    let (operation, scope) = scope(name);
    let mut plans: Vec<_> = (0..=RENDERED).map(|_| plan(operation, scope)).collect();
    Box::new(move || {
        let plan = plans.pop().expect("one for each time");
        drop(black_box(render(plan, scope)));
    })
}

fn inserting(rows: usize) -> Work {
    let row = r#"{"title":"A title of usual length","body":"Some words, as many as fit on a line of text.","views":0,"price":"12.50","created_at":"2026-11-20T08:36:16Z"}"#;
    let body = format!("{{\"batchData\":[{}]}}", vec![row; rows].join(","));
    let tables = tables();
    Box::new(move || {
        let operation = parse("POST /api/v1/crud/demo/posts", black_box(&body));
        let scope = Scope::of(&tables[0]);
        let statements = render(plan(&operation, &scope), &scope);
        drop(black_box(statements.into_iter().map(bound).collect::<Vec<_>>()));
    })
}

fn encoding(sample: Sample, format: Format) -> Work {
    Box::new(move || {
        black_box(black_box(&sample).encode(format));
    })
}

const NOW: u64 = 1_790_000_000;

fn key() -> (KeySet, String) {
    let signing = SigningKey::from_seed("k1", &[7; 32]);
    let project = ProjectName::parse("default").expect("a name");
    let id = Builder::from_unix_timestamp_millis(NOW * 1000, &[1; 10]).into_uuid();
    let claims = KeyClaims::new(id, &project, Access::Full, NOW, None);
    let keys = KeySet::new(vec![signing.public()]).expect("a key");
    (keys, format!("Bearer {}", signing.sign(&claims).expect("a token")))
}

fn verifying_anew() -> Work {
    let (keys, header) = key();
    Box::new(move || {
        drop(black_box(verify(Some(black_box(&header)), &keys, NOW).expect("our key")));
    })
}

fn verifying_again() -> Work {
    let (keys, header) = key();
    let mut known = TokenCache::new(keys, 10);
    Box::new(move || {
        drop(black_box(known.verify(Some(black_box(&header)), NOW).expect("our key")));
    })
}

const FILE_BYTES: usize = 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;
const FORM: &str = "multipart/form-data; boundary=----WebKitFormBoundaryx8jO2oVc6SWP3Sad";

/// Returns bytes without long runs, like those of a compressed file.
fn file() -> Vec<u8> {
    let byte = |at: usize| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8;
    (0..FILE_BYTES).map(byte).collect()
}

fn in_json() -> Vec<u8> {
    let head = r#"{"type":"image","media":[{"name":"a.png","base64":"data:image/png;base64,"#;
    [head, &STANDARD.encode(file()), r#""}]}"#].concat().into_bytes()
}

fn in_form() -> Vec<u8> {
    let (_, boundary) = FORM.split_once('=').expect("a boundary");
    let part = format!("--{boundary}\r\nContent-Disposition: form-data; name=");
    let head = format!("{part}type\r\n\r\nimage\r\n{part}f; filename=a\r\n\r\n");
    let tail = format!("\r\n--{boundary}--\r\n");
    [head.as_bytes(), &file(), tail.as_bytes()].concat()
}

fn uploading(content_type: Option<&'static str>, body: Vec<u8>) -> Work {
    Box::new(move || {
        let mut parser = Parser::new(content_type, UploadLimits::default()).expect("a type that is read");
        for piece in body.chunks(PIECE_BYTES) {
            let mut feed = parser.feed(piece);
            while let Some(event) = feed.next_event().expect("a sound body") {
                if let Event::Data(bytes) = event {
                    black_box(bytes);
                }
            }
        }
        parser.finish().expect("a whole body");
    })
}

fn shrinking(bytes: Vec<u8>, format: ImageFormat) -> Work {
    // A relative path: each operation runs in a temporary directory of its own.
    let file = Path::new("picture");
    fs::write(file, bytes).expect("written");
    Box::new(move || {
        black_box(examine(file, format, &Limits::default()).expect("a picture"));
    })
}
