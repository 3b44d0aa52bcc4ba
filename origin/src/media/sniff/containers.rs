//! Detects the media type of container files (ISO media, Matroska, Ogg, RIFF, AIFF) from their headers.

use super::{ImageFormat, Sniffed};
use shared::media::MediaKind;

pub(super) fn sniff(head: &[u8]) -> Option<Sniffed> {
    match head {
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(brands(head)),
        // Old QuickTime files without a brand.
        [_, _, _, _, b'm', b'o', b'o', b'v', ..]
        | [_, _, _, _, b'm', b'd', b'a', b't', ..]
        | [_, _, _, _, b'w', b'i', b'd', b'e', ..] => Some(Sniffed::of("video/quicktime", MediaKind::Video)),
        [0x1A, 0x45, 0xDF, 0xA3, ..] => ebml(head),
        [b'O', b'g', b'g', b'S', 0, ..] => Some(ogg(head)),
        [b'R', b'I', b'F', b'F', _, _, _, _, form @ ..] => riff(form),
        [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', b'F' | b'C', ..] => {
            Some(Sniffed::of("audio/aiff", MediaKind::Audio))
        }
        _ => None,
    }
}

/// Detects ISO media by brands. An unknown major brand is `video/mp4`, unless it is a generic brand of images.
fn brands(head: &[u8]) -> Sniffed {
    let size = head.first_chunk().map_or(0, |size| u32::from_be_bytes(*size) as usize);
    let end = size.clamp(12, 256).min(head.len());
    let brands = head.get(8..end).unwrap_or_default();
    let (major, others) = brands.split_at(brands.len().min(4));
    by_brand(major)
        // `mif1`, `msf1` and `miaf` only say that the file is an image; the compatible brands say the format.
        .or_else(|| {
            let still = matches!(major, b"mif1" | b"msf1" | b"miaf");
            let inner = others
                .get(4..)
                .unwrap_or_default()
                .chunks_exact(4)
                .find_map(by_brand)
                .filter(|found| found.kind == MediaKind::Image);
            still.then(|| inner.unwrap_or(Sniffed::of("image/heif", MediaKind::Image)))
        })
        .unwrap_or(Sniffed::of("video/mp4", MediaKind::Video))
}

fn by_brand(brand: &[u8]) -> Option<Sniffed> {
    Some(match brand {
        b"avif" | b"avis" => Sniffed::picture(ImageFormat::Avif),
        b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"hevm" | b"hevs" => {
            Sniffed::of("image/heic", MediaKind::Image)
        }
        b"crx " => Sniffed::of("image/x-canon-cr3", MediaKind::Image),
        b"qt  " => Sniffed::of("video/quicktime", MediaKind::Video),
        b"M4A " | b"M4B " | b"M4P " | b"F4A " | b"F4B " => Sniffed::of("audio/mp4", MediaKind::Audio),
        b"M4V " | b"M4VH" | b"M4VP" => Sniffed::of("video/x-m4v", MediaKind::Video),
        [b'3', b'g', b'p', _] => Sniffed::of("video/3gpp", MediaKind::Video),
        [b'3', b'g', b'2', _] => Sniffed::of("video/3gpp2", MediaKind::Video),
        _ => return None,
    })
}

fn ebml(head: &[u8]) -> Option<Sniffed> {
    let header = head.get(..64).unwrap_or(head);
    let at = header.windows(2).position(|id| id == [0x42, 0x82])?;
    let text = header.get(at + 3..)?;
    if text.starts_with(b"webm") {
        Some(Sniffed::of("video/webm", MediaKind::Video))
    } else if text.starts_with(b"matroska") {
        Some(Sniffed::of("video/x-matroska", MediaKind::Video))
    } else {
        None
    }
}

fn ogg(head: &[u8]) -> Sniffed {
    const VIDEO: [&[u8]; 3] = [b"\x80theora", b"BBCD\0", b"\x01video\0\0\0"];
    let moving = VIDEO.iter().any(|mark| head.windows(mark.len()).any(|bytes| bytes == *mark));
    if moving { Sniffed::of("video/ogg", MediaKind::Video) } else { Sniffed::of("audio/ogg", MediaKind::Audio) }
}

fn riff(form: &[u8]) -> Option<Sniffed> {
    Some(match form.first_chunk()? {
        b"WEBP" => Sniffed::picture(ImageFormat::WebP),
        b"WAVE" => Sniffed::of("audio/wav", MediaKind::Audio),
        b"AVI " => Sniffed::of("video/x-msvideo", MediaKind::Video),
        _ => return None,
    })
}
