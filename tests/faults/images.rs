//! Images of 100 megapixels and malicious images, in a process whose memory must stay small.

use crate::faults::{start, stop};
use crate::host::{Answer, Call, Host};
use crate::service::{Edge, Service};
use crate::streams::Process;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, Crc, write::ZlibEncoder};
use image::{ColorType, ImageEncoder as _, codecs::jpeg::JpegEncoder};
use reqwest::Method;
use serde_json::Value;
use shared::error::ErrorCode;

cases! {
    Own: [
        images_of_100_megapixels_are_decoded_or_refused_within_512_mb,
    ],
}

const PROCESS_MAX_BYTES: u64 = 512_000_000;
const SIDE: u32 = 10_000;
const PIXELS: u64 = 100_000_000;
const PADDED_BYTES: usize = 100 * 1024 * 1024;

use Outcome::{Refused, Thumbnail, TooComplex};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Thumbnail,
    Refused,
    TooComplex,
}

async fn images_of_100_megapixels_are_decoded_or_refused_within_512_mb(_: Host) {
    let mut padded = jpeg(ColorType::L8, 0xC0);
    padded.resize(PADDED_BYTES, 0);
    walk([
        ("baseline.jpg", jpeg(ColorType::L8, 0xC0), Thumbnail),
        ("padded.jpg", padded, Thumbnail),
        ("progressive.jpg", jpeg(ColorType::L8, 0xC2), Thumbnail),
        ("progressive-444.jpg", jpeg(ColorType::Rgb8, 0xC2), Refused),
    ])
    .await;
    walk([
        ("deep.png", png(16, 6, 0), Thumbnail),
        ("interlaced.png", png(8, 2, 1), Thumbnail),
        ("interlaced-alpha.png", png(8, 6, 1), Refused),
    ])
    .await;
    walk([("deep.tiff", tiff(9_990, 16, 4), Refused), ("plain.tiff", tiff(SIDE, 8, 3), Thumbnail)]).await;
    walk([
        ("runs.bmp", bmp(), Thumbnail),
        ("frame.gif", gif(), Thumbnail),
        ("lossless.webp", webp(), Refused),
        ("groups.webp", webp_with_65_536_groups(), TooComplex),
    ])
    .await;
}

/// Uploads the files one after the other to a new service.
async fn walk<const COUNT: usize>(files: [(&str, Vec<u8>, Outcome); COUNT]) {
    let service = start(Edge::Without, &[]).await;
    let process = Process::of(&service);
    for (name, file, expected) in files {
        let answer = upload(&service, name, &file).await;
        match expected {
            Thumbnail => {
                assert_eq!(answer.status, 204, "{name}: {answer}");
                let id = answer.header("selkie-media-id").expect("an id");
                let path = format!("/api/v1/media/{id}");
                let row = Call::new(&service.origin, Method::GET, &path).key(&service.full_key).send().await.payload();
                assert_eq!(row["height"], Value::from(SIDE), "{name}");
                assert!(row["thumbnailUrl"].is_string(), "{name}: {row}");
            }
            Refused | TooComplex => {
                let error = answer.refused(ErrorCode::InvalidMedia);
                let message = error["message"].as_str().unwrap_or_default();
                let cause = match expected {
                    TooComplex => "more complex than any image needs to be",
                    _ => "the maximum is 380 MB",
                };
                assert!(message.contains(cause), "{name}: {message}");
            }
        }
        let peak = process.peak();
        assert!(peak < PROCESS_MAX_BYTES, "{peak} bytes after {name}");
    }
    stop(service).await;
}

async fn upload(service: &Service, name: &str, bytes: &[u8]) -> Answer {
    let call = |method, path: &str| {
        Call::new(&service.origin, method, path).key(&service.full_key).header("tus-resumable", "1.0.0")
    };
    let metadata = format!("filename {},kind aW1hZ2U=", STANDARD.encode(name));
    let created = call(Method::POST, "/api/v1/media/tus")
        .header("upload-length", &bytes.len().to_string())
        .header("upload-metadata", &metadata)
        .send()
        .await;
    assert_eq!(created.status, 201, "{name}: {created}");
    let path = created.header("location").expect("a location").to_owned();
    call(Method::PATCH, &path)
        .header("upload-offset", "0")
        .header("content-type", "application/offset+octet-stream")
        .bytes(bytes)
        .send()
        .await
}

fn deflated_zeros(bytes: u64) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), bytes), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

fn tiff(width: u32, bits: u32, samples: u32) -> Vec<u8> {
    let row = u64::from(width) * u64::from(bits / 8 * samples);
    let data = deflated_zeros(row * u64::from(SIDE));
    let mut tags = vec![
        (256_u16, width),
        (257, SIDE),
        (258, bits),
        (259, 8),
        (262, 2),
        (273, 8),
        (277, samples),
        (278, SIDE),
        (279, data.len() as u32),
    ];
    if samples == 4 {
        tags.push((338, 2));
    }
    let mut file = b"II*\0".to_vec();
    file.extend((8 + data.len() as u32).to_le_bytes());
    file.extend(data);
    file.extend((tags.len() as u16).to_le_bytes());
    for (tag, value) in tags {
        file.extend(tag.to_le_bytes());
        // A TIFF tag's value: one number of 16 or 32 bits.
        let kind = if matches!(tag, 258..=262 | 277 | 338) { 3 } else { 4 };
        file.extend([kind, 0, 1, 0, 0, 0]);
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file
}

/// Returns a mid-grey JPEG: the tables of a small encoded JPEG, and a scan of equal blocks. A progressive JPEG has only
/// the mean of each block.
fn jpeg(colours: ColorType, frame_marker: u8) -> Vec<u8> {
    let mut small = Vec::new();
    let pixels = vec![128; 64 * usize::from(colours.bytes_per_pixel())];
    JpegEncoder::new(&mut small).write_image(&pixels, 8, 8, colours.into()).unwrap();
    let find = |marker| {
        let at = small.windows(2).position(|pair| pair == [0xFF, marker]);
        at.expect("a segment")
    };
    let (frame, scan) = (find(0xC0), find(0xDA));
    let end = scan + 2 + usize::from(small[scan + 3]);
    let mut file = small[..end].to_vec();
    file[frame + 1] = frame_marker;
    let side = (SIDE as u16).to_be_bytes();
    file[frame + 5..frame + 9].copy_from_slice(&[side[0], side[1], side[0], side[1]]);
    let blocks = PIXELS as usize / 64;
    if frame_marker == 0xC2 {
        // The spectral selection from 0 to 0: only the mean of each block, in two bits.
        file[end - 3..end - 1].copy_from_slice(&[0, 0]);
        file.extend(vec![0; blocks / 4]);
    } else {
        // Six bits per block: no difference to the last mean, and no other coefficient.
        file.extend([0b0010_1000, 0b1010_0010, 0b1000_1010].repeat(blocks / 4));
    }
    file.extend([0xFF, 0xD9]);
    file
}

fn png(depth: u8, colours: u8, interlace_method: u8) -> Vec<u8> {
    let samples = if colours == 6 { 4 } else { 3 };
    let row = |width: u64| width * u64::from(depth) / 8 * samples + 1;
    let side = u64::from(SIDE);
    let passes = if interlace_method == 1 {
        // The first pixel and step of each pass of an interlaced PNG, horizontally and vertically.
        vec![(0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2), (0, 1, 1, 2)]
    } else {
        vec![(0, 1, 0, 1)]
    };
    let bytes =
        passes.into_iter().map(|(x, across, y, down)| row((side - x).div_ceil(across)) * (side - y).div_ceil(down));
    let data = deflated_zeros(bytes.sum());
    let mut header = [SIDE.to_be_bytes(), SIDE.to_be_bytes()].concat();
    header.extend([depth, colours, 0, 0, interlace_method]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        file.extend((content.len() as u32).to_be_bytes());
        let start = file.len();
        file.extend(kind);
        file.extend(content);
        let mut sum = Crc::new();
        sum.update(&file[start..]);
        file.extend(sum.sum().to_be_bytes());
    }
    file
}

fn bmp() -> Vec<u8> {
    let (runs, rest) = (SIDE / 255, (SIDE % 255) as u8);
    let mut row = [255, 7].repeat(runs as usize);
    row.extend([rest, 7, 0, 0]);
    let mut data = row.repeat(SIDE as usize);
    data.extend([0, 1]);
    let offset = 14 + 40 + 1024;
    let mut file = b"BM".to_vec();
    file.extend((offset + data.len() as u32).to_le_bytes());
    file.extend([0; 4]);
    file.extend(offset.to_le_bytes());
    for number in [40, SIDE, SIDE] {
        file.extend(number.to_le_bytes());
    }
    // One plane, eight bits per pixel, run-length encoded.
    file.extend([1, 0, 8, 0, 1, 0, 0, 0]);
    file.resize(offset as usize, 0);
    file.extend(data);
    file
}

/// Returns a GIF of one colour: each code stands for one pixel more than the last one, until the table is full.
fn gif() -> Vec<u8> {
    const CLEAR: u64 = 4;
    const FIRST: u64 = 6;
    let (mut bits, mut held, mut data) = (0_u64, 0, Vec::new());
    let mut put = |code: u64, width: u32| {
        bits |= code << held;
        held += width;
        while held >= 8 {
            data.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    };
    let (mut left, mut width) = (PIXELS, 3);
    while left > 0 {
        put(CLEAR, width);
        width = 3;
        put(0, width);
        left -= 1;
        let mut run = 2;
        let mut next = FIRST;
        while next < 4_096 && run <= left {
            put(next, width);
            left -= run;
            run += 1;
            next += 1;
            if next == 1 << width && width < 12 {
                width += 1;
            }
        }
    }
    put(CLEAR + 1, width);
    put(0, 8);
    let side = (SIDE as u16).to_le_bytes();
    let sides = [side[0], side[1], side[0], side[1]];
    let mut file = b"GIF89a".to_vec();
    file.extend(sides);
    file.extend([0x80, 0, 0, 9, 9, 9, 0, 0, 0, 0x2C, 0, 0, 0, 0]);
    file.extend(sides);
    file.extend([0, 2]);
    for block in data.chunks(255) {
        file.push(block.len() as u8);
        file.extend(block);
    }
    file.extend([0, 0x3B]);
    file
}

/// Returns the header of a lossless WebP without pixels.
fn webp() -> Vec<u8> {
    let side = SIDE - 1;
    let mut content = vec![0x2F];
    content.extend((side | side << 14).to_le_bytes());
    content.resize(64, 0);
    webp_file(content)
}

/// Returns a lossless WebP of 8 × 4 pixels with 65,536 groups of Huffman codes, each with five tables of 1,024 entries.
fn webp_with_65_536_groups() -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let add = |bits: &mut Vec<bool>, value: u32, count: u32| {
        bits.extend((0..count).map(|bit| value >> bit & 1 == 1));
    };
    add(&mut bits, 0x2F, 8);
    add(&mut bits, 7, 14);
    add(&mut bits, 3, 14);
    // No alpha, version 0; no transform; no colour cache; groups for blocks of 4 × 4 pixels, without a colour cache.
    add(&mut bits, 0, 1 + 3 + 1 + 1);
    add(&mut bits, 1, 1);
    add(&mut bits, 0, 3 + 1);
    // The image of the groups has two pixels, for groups 0 and 65,535: green and red are 0 or 255, the rest is 0.
    for symbols in [2, 2, 1, 1, 1_u32] {
        add(&mut bits, 1, 1);
        add(&mut bits, symbols - 1, 1);
        add(&mut bits, 0, 1 + 1);
        add(&mut bits, 255, (symbols - 1) * 8);
    }
    add(&mut bits, 0b1100, 4);
    // 1,024 entries: code lengths 1 to 10, and 10 again. Lengths 1 to 6 are coded with 3 bits, others with 4.
    let mut table = Vec::new();
    add(&mut table, 0, 1);
    add(&mut table, 14 - 4, 4);
    for length in [0, 0, 0, 3, 3, 3, 3, 3, 0, 3, 4, 4, 4, 4] {
        add(&mut table, length, 3);
    }
    // At most 11 code lengths follow: `2 + 9`, in 4 bits.
    add(&mut table, 1, 1);
    add(&mut table, 1, 3);
    add(&mut table, 9, 4);
    for length in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10_u32] {
        let (code, count) = if length <= 6 { (length - 1, 3) } else { (0b1100 + length - 7, 4) };
        add(&mut table, code.reverse_bits() >> (32 - count), count);
    }
    let tables = std::iter::repeat_n(table.iter().copied(), 65_536 * 5);
    bits.extend(tables.flatten());
    bits.resize(bits.len().next_multiple_of(8) + 8 * 64, false);
    let bytes = bits.chunks(8).map(|byte| {
        let ones = byte.iter().rev();
        ones.fold(0, |all, bit| all << 1 | u8::from(*bit))
    });
    webp_file(bytes.collect())
}

fn webp_file(mut content: Vec<u8>) -> Vec<u8> {
    content.resize(content.len().next_multiple_of(2), 0);
    let mut file = b"RIFF".to_vec();
    file.extend((content.len() as u32 + 12).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend((content.len() as u32).to_le_bytes());
    file.extend(content);
    file
}
