//! Tests of type detection, with the first bytes of files of every format and with labels.

use super::{HEAD_MAX_BYTES, ImageFormat, judge, runs_in_browser, sniff};
use shared::error::ErrorCode;
use shared::media::MediaKind;

fn mime(head: &[u8]) -> Option<&'static str> {
    sniff(head).map(|sniffed| sniffed.mime)
}

fn ftyp(brands: &[&[u8; 4]]) -> Vec<u8> {
    let mut head = (16 + 4 * (brands.len() as u32 - 1)).to_be_bytes().to_vec();
    head.extend(b"ftyp");
    head.extend(brands[0]);
    head.extend([0; 4]);
    head.extend(brands[1..].iter().flat_map(|brand| brand.iter()));
    head.extend(b"\0\0\0\x08free");
    head
}

fn utf16(text: &str, mark: bool, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let text = if mark { format!("\u{FEFF}{text}") } else { text.to_owned() };
    text.encode_utf16().flat_map(to_bytes).collect()
}

#[test]
fn pictures_are_known_by_their_first_bytes() {
    let mut bitmap = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bitmap.extend([0; 40]);
    for (head, format) in [
        (b"\xFF\xD8\xFF\xE0\0\x10JFIF".as_slice(), ImageFormat::Jpeg),
        (b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", ImageFormat::Png),
        (b"GIF87a\x01\0\x01\0", ImageFormat::Gif),
        (b"GIF89a\x01\0\x01\0", ImageFormat::Gif),
        (b"RIFF\x10\0\0\0WEBPVP8 ", ImageFormat::WebP),
        (&bitmap, ImageFormat::Bmp),
        (b"II*\0\x08\0\0\0", ImageFormat::Tiff),
        (b"MM\0*\0\0\0\x08", ImageFormat::Tiff),
        (b"II+\0\x08\0\0\0", ImageFormat::Tiff),
        (b"MM\0+\0\x08\0\0", ImageFormat::Tiff),
        (b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0", ImageFormat::Ico),
        (&ftyp(&[b"avif", b"mif1"]), ImageFormat::Avif),
        (&ftyp(&[b"mif1", b"miaf", b"avif"]), ImageFormat::Avif),
        (&ftyp(&[b"avis", b"msf1"]), ImageFormat::Avif),
    ] {
        let found = sniff(head).unwrap_or_else(|| panic!("{format:?}"));
        assert_eq!(found.image, Some(format));
        assert_eq!(found.mime, format.mime());
    }
    assert_eq!(mime(&ftyp(&[b"heic", b"mif1"])), Some("image/heic"));
    assert_eq!(mime(&ftyp(&[b"mif1", b"heic"])), Some("image/heic"));
    assert_eq!(mime(&ftyp(&[b"mif1"])), Some("image/heif"));
}

#[test]
fn sound_and_pictures_that_move_are_known() {
    let mut stream = vec![0_u8; 188 * 4];
    stream.iter_mut().step_by(188).for_each(|byte| *byte = 0x47);
    let matroska = |kind: &str| {
        let mut head = b"\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\xF7\x81\x01\x42\x82".to_vec();
        head.push(0x80 | kind.len() as u8);
        head.extend(kind.as_bytes());
        head
    };
    let ogg = |codec: &[u8]| {
        let mut head = b"OggS\0\x02".to_vec();
        head.extend([0; 20]);
        head.extend([1, codec.len() as u8]);
        head.extend(codec);
        head
    };
    for (head, expected) in [
        (ftyp(&[b"isom", b"mp41"]), "video/mp4"),
        (ftyp(&[b"qt  "]), "video/quicktime"),
        (b"\0\0\0\x20moov\0\0\0\x18mvhd".to_vec(), "video/quicktime"),
        (ftyp(&[b"M4V ", b"mp42"]), "video/x-m4v"),
        (ftyp(&[b"M4A ", b"mp42"]), "audio/mp4"),
        (ftyp(&[b"3gp5"]), "video/3gpp"),
        (matroska("webm"), "video/webm"),
        (matroska("matroska"), "video/x-matroska"),
        (ogg(b"\x01vorbis"), "audio/ogg"),
        (ogg(b"OpusHead"), "audio/ogg"),
        (ogg(b"\x80theora"), "video/ogg"),
        (b"RIFF\x10\0\0\0AVI LIST".to_vec(), "video/x-msvideo"),
        (b"RIFF\x10\0\0\0WAVEfmt ".to_vec(), "audio/wav"),
        (b"FORM\0\0\0\x10AIFFCOMM".to_vec(), "audio/aiff"),
        (stream, "video/mp2t"),
        (b"\0\0\x01\xBA\x44\0".to_vec(), "video/mpeg"),
        (b"ID3\x04\0\0".to_vec(), "audio/mpeg"),
        (b"\xFF\xFB\x90\x64\0".to_vec(), "audio/mpeg"),
        (b"\xFF\xF3\x40\xC0\0".to_vec(), "audio/mpeg"),
        (b"\xFF\xF1\x50\x80\0".to_vec(), "audio/aac"),
        (b"fLaC\0\0\0\x22".to_vec(), "audio/flac"),
        (b"MThd\0\0\0\x06\0\x01".to_vec(), "audio/midi"),
        (b"FLV\x01\x05".to_vec(), "video/x-flv"),
    ] {
        assert_eq!(mime(&head), Some(expected));
    }
}

#[test]
fn text_that_a_browser_would_run_is_known_however_it_hides() {
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>"#;
    for (text, expected) in [
        (svg.to_owned(), "image/svg+xml"),
        (format!("\u{FEFF}\n\t {svg}"), "image/svg+xml"),
        (format!("<?xml version=\"1.0\"?>\n<!-- a > b -->{svg}"), "image/svg+xml"),
        (format!("<?xml version='1.0'?><!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' 'x'>{svg}"), "image/svg+xml"),
        ("<?xml version='1.0'?><!DOCTYPE x [<!ENTITY a 'b>'>]><svg:svg xmlns:svg='s'/>".to_owned(), "image/svg+xml"),
        ("<!DOCTYPE html><p>".to_owned(), "text/html"),
        ("  <!doctype HTML>".to_owned(), "text/html"),
        ("<HTML><BODY>".to_owned(), "text/html"),
        ("<!-- x --><!-- y -->\n<ScRiPt src=x>".to_owned(), "text/html"),
        ("<iframe src=x>".to_owned(), "text/html"),
        (format!("<!--{}", "x".repeat(5000)), "text/html"),
        ("<?xml version='1.0'?><html xmlns='h'>".to_owned(), "application/xhtml+xml"),
        ("<?xml version='1.0'?><note/>".to_owned(), "text/xml"),
        ("<?XML version='1.0'?><?xml-stylesheet href='x'?><note/>".to_owned(), "text/xml"),
    ] {
        let found = sniff(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found.mime, expected, "{text}");
        assert_eq!(found.kind, MediaKind::File);
        assert!(runs_in_browser(found.mime));
        for mark in [true, false] {
            if mark || text.starts_with('<') {
                for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
                    assert_eq!(mime(&utf16(&text, mark, to_bytes)), Some(expected), "{text}");
                }
            }
        }
    }
    for text in ["plain", "a < b", "<3", "<tag-of-mine/>", "# Title\n<p>", ""] {
        assert_eq!(mime(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn texts_are_not_taken_for_programs_or_pictures() {
    for text in ["BMW 320d, sold", "MZ is a country", "PK,price\n1,2", "%!x", "ID;name\n", "Rar", "7z\n"] {
        assert_eq!(mime(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_first_bytes_of_a_polyglot_decide() {
    let mut picture = b"GIF89a".to_vec();
    picture.extend(b"/*<html><script>alert(1)</script>*/=1;");
    assert_eq!(mime(&picture), Some("image/gif"));
    let mut archive = b"\x89PNG\r\n\x1A\n".to_vec();
    archive.extend(b"PK\x03\x04");
    assert_eq!(mime(&archive), Some("image/png"));
}

#[test]
fn no_bytes_panic() {
    use proptest::prelude::*;
    let starts = prop::sample::select(vec![
        b"".to_vec(),
        b"\0\0\0\x14ftyp".to_vec(),
        b"\x1A\x45\xDF\xA3".to_vec(),
        b"OggS\0".to_vec(),
        b"RIFF".to_vec(),
        b"<?xml".to_vec(),
        b"<!doctype".to_vec(),
        b"\xFF\xFE".to_vec(),
        b"\xFF".to_vec(),
    ]);
    proptest!(|(start in starts, rest in prop::collection::vec(any::<u8>(), 0..200))| {
        let mut head = start;
        head.extend(rest);
        let _ = sniff(&head);
        let _ = judge(Some("image/png"), MediaKind::File, "a.png", &head);
    });
    assert!(sniff(&vec![0x47; HEAD_MAX_BYTES * 2]).is_some());
}

const JPEG: &[u8] = b"\xFF\xD8\xFF\xE0\0\x10JFIF\0";
const PNG: &[u8] = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0";
const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0";
const SVG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg'/>";

/// A test case: label, upload type, file name, first bytes, and the expected media type.
type Labelled<'c> = (Option<&'c str>, MediaKind, &'c str, &'c [u8], &'c str);

fn judged(cases: &[Labelled<'_>]) {
    for (label, kind, name, head, expected) in cases {
        let verdict = judge(*label, *kind, name, head).unwrap_or_else(|problem| panic!("{label:?} {problem:?}"));
        assert_eq!(verdict.mime, *expected, "{label:?} {name}");
    }
}

#[test]
fn labels_of_pictures_and_sound_that_agree_are_kept_under_one_spelling() {
    use MediaKind::{Audio, File, Image, Video};
    let mp4 = ftyp(&[b"isom"]);
    let webm = b"\x1A\x45\xDF\xA3\x9F\x42\x82\x84webm";
    let long = Some("IMAGE/JPEG; charset=binary");
    let unknown = Some("application/octet-stream");
    judged(&[
        (Some("image/jpg"), Image, "a", JPEG, "image/jpeg"),
        (long, Image, "a", JPEG, "image/jpeg"),
        (Some("jpg"), Image, "a", JPEG, "image/jpeg"),
        (Some(".PNG"), File, "a", PNG, "image/png"),
        (None, Image, "a.gif", PNG, "image/png"),
        (unknown, Image, "a", PNG, "image/png"),
        (Some("nonsense"), File, "a", PNG, "image/png"),
        (Some("audio/mp3"), Audio, "a", b"ID3\x04", "audio/mpeg"),
        (Some("video/quicktime"), Video, "a", &mp4, "video/quicktime"),
        (Some("audio/x-m4a"), Audio, "a", &mp4, "audio/x-m4a"),
        (None, Audio, "a", &mp4, "audio/mp4"),
        (None, Audio, "a", webm, "audio/webm"),
    ]);
}

#[test]
fn labels_of_files_that_agree_or_that_nothing_contradicts_are_kept() {
    use MediaKind::File;
    const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    const XML: &[u8] = b"<?xml version='1.0'?><a/>";
    const UNKNOWN: &str = "application/octet-stream";
    let (rss, epub, foo) = ("application/rss+xml", "application/epub+zip", "application/x-foo");
    let notes = b"<h1>Title</h1>\n\ntext";
    judged(&[
        (Some("application/xml"), File, "a", XML, "text/xml"),
        (Some(rss), File, "a", XML, rss),
        (Some("image/svg+xml"), File, "a", SVG, "image/svg+xml"),
        (Some(DOCX), File, "a", ZIP, DOCX),
        (Some("docx"), File, "a", ZIP, DOCX),
        (Some(epub), File, "a", ZIP, epub),
        (Some("text/csv"), File, "a", b"a,b\n1,2\n", "text/csv"),
        (Some("text/markdown"), File, "a", notes, "text/markdown"),
        (Some(foo), File, "a", b"\x01\x02foo", foo),
        (None, File, "a.csv", b"a,b\n", "text/csv"),
        (None, File, "a.JS", b"let a", "text/javascript"),
        (None, File, "a.json", b"{}", "application/json"),
        (None, File, "a.png", b"not one", "text/plain"),
        (None, File, "a.txt", b"\0\x01\x02", UNKNOWN),
        (None, File, "a.txt", b"plain", "text/plain"),
        (None, File, "a", b"", UNKNOWN),
        (Some("text/html\r\nX: y"), File, "a", b"x", "text/plain"),
    ]);
}

#[test]
fn labels_that_no_signature_knows_count() {
    use MediaKind::File;
    const GZIP: &[u8] = b"\x1F\x8B\x08\0";
    let (ppm, tga, exr) = ("image/x-portable-pixmap", "image/x-tga", "image/x-exr");
    let (hdr, pcx, m3u) = ("image/vnd.radiance", "image/x-pcx", "audio/x-mpegurl");
    judged(&[
        (Some(ppm), File, "a.ppm", b"P6\n2 2\n255\n\0\x01\x02", ppm),
        (Some(ppm), File, "a.ppm", b"P3\n2 2\n255\n0 1 2", ppm),
        (Some(tga), File, "a.tga", b"\0\0\x02\0\0\0\0\0", tga),
        (Some("tga"), File, "a.tga", b"\0\0\x02\0\0\0\0\0", tga),
        (Some(exr), File, "a.exr", b"\x76\x2F\x31\x01\x02\0\0\0", exr),
        (Some(hdr), File, "a.hdr", b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n", hdr),
        (Some(pcx), File, "a.pcx", b"\x0A\x05\x01\x08", pcx),
        (Some(m3u), File, "a.m3u", b"#EXTM3U\na.mp3\n", m3u),
        (Some("image/svg+xml"), File, "a.svgz", GZIP, "application/gzip"),
        (Some("svgz"), File, "a.svgz", GZIP, "application/gzip"),
        (None, File, "a.svgz", GZIP, "application/gzip"),
    ]);
}

#[test]
fn a_name_is_no_label_and_never_has_a_browser_show_a_file() {
    use MediaKind::File;
    const CODE: &[u8] = b"export const a: number = 1;\n";
    const BYTES: &[u8] = b"\0\x01\x02\x03";
    const HTML: &[u8] = b"<!doctype html><script>alert(1)</script>";
    const UNKNOWN: &str = "application/octet-stream";
    judged(&[
        (None, File, "a.ts", CODE, "text/plain"),
        (Some("ts"), File, "a.ts", CODE, "text/plain"),
        (None, File, "notes.jpg", b"milk, eggs", "text/plain"),
        (None, File, "notes.pdf", b"milk, eggs", "text/plain"),
        (None, File, "a.ts", BYTES, UNKNOWN),
        (None, File, "a.tga", BYTES, UNKNOWN),
        (None, File, "a.mp4", BYTES, UNKNOWN),
        (None, File, "a.m3u", BYTES, UNKNOWN),
        (None, File, "a.pdf", BYTES, UNKNOWN),
        (None, File, "a.json", BYTES, UNKNOWN),
        (None, File, "a.txt", HTML, "text/html"),
        (None, File, "a.md", HTML, "text/html"),
        (None, File, "a.json", HTML, "text/html"),
        (None, File, "a.tga", HTML, "text/html"),
        (None, File, "a.txt", SVG, "image/svg+xml"),
        (None, File, "a.png", ZIP, "application/zip"),
        (None, File, "a.json", ZIP, "application/zip"),
        // An extension may refine the type, but never turns a download into a type that is shown inline.
        (None, File, "a.jar", ZIP, "application/java-archive"),
        (None, File, "a.m4a", &ftyp(&[b"isom"]), "audio/m4a"),
        (None, File, "a.html", CODE, "text/html"),
        (None, File, "a.wasm", BYTES, "application/wasm"),
    ]);
    for kind in [MediaKind::Image, MediaKind::Video] {
        assert!(judge(None, kind, "a.ts", CODE).is_err());
    }
}

#[test]
fn a_picture_that_is_not_supported_is_named_with_what_is() {
    let refused = judge(None, MediaKind::Image, "a.heic", &ftyp(&[b"heic", b"mif1"]));
    let refused = refused.unwrap_err();
    assert!(refused.message().contains("is HEIC"), "{refused:?}");
    let hint = refused.hint().unwrap();
    assert!(hint.contains("JPEG") && hint.contains("\"file\""), "{hint}");
}

#[test]
fn labels_that_the_bytes_contradict_are_refused() {
    use MediaKind::{Audio, File, Image, Video};
    for (label, kind, head) in [
        (Some("image/png"), File, JPEG),
        (Some("image/png"), Image, JPEG),
        (Some("image/png"), File, b"plain text".as_slice()),
        (Some("png"), File, b"plain text"),
        (Some("application/pdf"), File, ZIP),
        (Some("application/pdf"), File, b""),
        (Some("text/plain"), File, PNG),
        (Some("audio/mpeg"), File, PNG),
        (Some("image/x-unheard-of"), File, ZIP),
        (Some("video/mp2t"), File, b"export const a = 1;"),
        (Some("image/png"), File, SVG),
        (Some("video/mp4"), Video, b"ID3\x04"),
        (None, Image, b"plain text"),
        (None, Image, SVG),
        (Some("image/svg+xml"), Image, SVG),
        (Some("image/svg+xml"), Image, PNG),
        (Some("image/svg+xml"), File, PNG),
        (None, Image, ZIP),
        (None, Image, b""),
        (None, Video, JPEG),
        (None, Audio, b"RIFF\x10\0\0\0AVI LIST"),
        (None, Video, b"fLaC\0"),
    ] {
        let problem = judge(label, kind, "holiday.png", head).expect_err("a contradiction");
        assert_eq!(problem.code(), ErrorCode::InvalidMedia);
        assert!(problem.message().contains("holiday.png"), "{problem:?}");
        assert!(problem.hint().is_some());
    }
}

#[test]
fn what_runs_in_a_browser_is_named() {
    for mime in [
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "application/xhtml+xml",
        "image/svg+xml",
        "application/xml",
        "text/xml",
        "application/atom+xml",
        "text/javascript",
        "application/javascript",
    ] {
        assert!(runs_in_browser(mime), "{mime}");
    }
    for mime in ["application/pdf", "image/png", "text/plain", "text/csv", "application/json", "video/mp4"] {
        assert!(!runs_in_browser(mime), "{mime}");
    }
}
