//! Detects a file's media type from its first bytes, with the crate `infer` for uncommon types. [`label`] compares the
//! result with the type that the client declares.

mod containers;
mod families;
mod label;
mod markup;
#[cfg(test)]
mod tests;

pub use label::{FileType, judge, may_be_shown, runs_in_browser};

pub(super) use families::UNKNOWN;
pub(super) use label::canonical;

use shared::media::MediaKind;

pub const HEAD_MAX_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    Jpeg,
    Png,
    Gif,
    WebP,
    Bmp,
    Tiff,
    Ico,
    Avif,
}

impl ImageFormat {
    pub const ALL: [Self; 8] =
        [Self::Jpeg, Self::Png, Self::Gif, Self::WebP, Self::Bmp, Self::Tiff, Self::Ico, Self::Avif];

    pub const fn mime(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
            Self::Bmp => "image/bmp",
            Self::Tiff => "image/tiff",
            Self::Ico => "image/x-icon",
            Self::Avif => "image/avif",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sniffed {
    pub mime: &'static str,
    pub kind: MediaKind,
    /// `None` if the file is not accepted for uploads of the type `image`.
    pub image: Option<ImageFormat>,
}

impl Sniffed {
    const fn of(mime: &'static str, kind: MediaKind) -> Self {
        Self { mime, kind, image: None }
    }

    const fn picture(format: ImageFormat) -> Self {
        Self { mime: format.mime(), kind: MediaKind::Image, image: Some(format) }
    }
}

/// The signatures that [`foreign`] does not detect, or names differently.
const SIGNATURES: &[(&[u8], Sniffed)] = &[
    (b"\xFF\xD8\xFF", Sniffed::picture(ImageFormat::Jpeg)),
    (b"\x89PNG\r\n\x1A\n", Sniffed::picture(ImageFormat::Png)),
    (b"GIF87a", Sniffed::picture(ImageFormat::Gif)),
    (b"GIF89a", Sniffed::picture(ImageFormat::Gif)),
    (b"II*\0", Sniffed::picture(ImageFormat::Tiff)),
    (b"MM\0*", Sniffed::picture(ImageFormat::Tiff)),
    (b"II+\0", Sniffed::picture(ImageFormat::Tiff)),
    (b"MM\0+", Sniffed::picture(ImageFormat::Tiff)),
    (b"\0\0\0\x0CjP  \r\n\x87\n", Sniffed::of("image/jp2", MediaKind::Image)),
    (b"\0\0\0\x0CJXL \r\n\x87\n", Sniffed::of("image/jxl", MediaKind::Image)),
    (
        b"\x30\x26\xB2\x75\x8E\x66\xCF\x11\xA6\xD9\x00\xAA\x00\x62\xCE\x6C",
        Sniffed::of("video/x-ms-asf", MediaKind::Video),
    ),
    (b"ID3", Sniffed::of("audio/mpeg", MediaKind::Audio)),
    (b"fLaC", Sniffed::of("audio/flac", MediaKind::Audio)),
    (b"#!AMR", Sniffed::of("audio/amr", MediaKind::Audio)),
    (b"%PDF-", Sniffed::of("application/pdf", MediaKind::File)),
    (b"{\\rtf", Sniffed::of("application/rtf", MediaKind::File)),
    (b"PK\x03\x04", Sniffed::of("application/zip", MediaKind::File)),
    (b"PK\x05\x06", Sniffed::of("application/zip", MediaKind::File)),
    (b"PK\x07\x08", Sniffed::of("application/zip", MediaKind::File)),
    (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", Sniffed::of("application/x-ole-storage", MediaKind::File)),
];

/// Returns the detected type; `None` if no known format matches, as for plain text.
pub fn sniff(head: &[u8]) -> Option<Sniffed> {
    let head = head.get(..HEAD_MAX_BYTES).unwrap_or(head);
    SIGNATURES
        .iter()
        .find(|(signature, _)| head.starts_with(signature))
        .map(|(_, sniffed)| *sniffed)
        .or_else(|| containers::sniff(head))
        .or_else(|| markup::sniff(head))
        .or_else(|| short_signature(head))
        .or_else(|| foreign(head))
}

/// Detects formats with short signatures by further fields of their headers.
fn short_signature(head: &[u8]) -> Option<Sniffed> {
    if is_bitmap(head) {
        return Some(Sniffed::picture(ImageFormat::Bmp));
    }
    if is_icon(head) {
        return Some(Sniffed::picture(ImageFormat::Ico));
    }
    if is_transport_stream(head) {
        return Some(Sniffed::of("video/mp2t", MediaKind::Video));
    }
    match *head {
        // The sync word, then the layer, which is 0 in ADTS (the framing of AAC).
        [0xFF, second, ..] if second & 0xF6 == 0xF0 => Some(Sniffed::of("audio/aac", MediaKind::Audio)),
        [0xFF, second, third, ..] if is_mpeg_audio(second, third) => Some(Sniffed::of("audio/mpeg", MediaKind::Audio)),
        _ => None,
    }
}

fn is_bitmap(head: &[u8]) -> bool {
    // The DIB header at offset 14 begins with its length, which identifies its version.
    head.starts_with(b"BM") && matches!(head.get(14..18), Some([12 | 16 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0]))
}

fn is_icon(head: &[u8]) -> bool {
    // Type 1, at least one entry, and the first entry's reserved byte.
    matches!(*head, [0, 0, 1, 0, low, high, _, _, _, 0, ..] if low != 0 || high != 0)
}

fn is_transport_stream(head: &[u8]) -> bool {
    const PACKET: usize = 188;
    head.len() > 2 * PACKET && head.iter().step_by(PACKET).all(|byte| *byte == 0x47)
}

/// Returns whether this is a header of MPEG audio. Headers with a free bit rate are not detected.
fn is_mpeg_audio(second: u8, third: u8) -> bool {
    let (version, layer) = (second >> 3 & 3, second >> 1 & 3);
    let (bitrate, sampling) = (third >> 4, third >> 2 & 3);
    second >> 5 == 7 && version != 1 && matches!(layer, 1 | 2) && !matches!(bitrate, 0 | 15) && sampling != 3
}

/// Detects a type with `infer`. `None` for text, since a text may begin with a two-byte signature such as `MZ`.
fn foreign(head: &[u8]) -> Option<Sniffed> {
    if markup::is_text(head) {
        return None;
    }
    let found = infer::get(head)?;
    let kind = match found.matcher_type() {
        infer::MatcherType::Image => MediaKind::Image,
        infer::MatcherType::Video => MediaKind::Video,
        infer::MatcherType::Audio => MediaKind::Audio,
        _ => MediaKind::File,
    };
    match found.mime_type() {
        // `short_signature` has checked these formats more strictly.
        "image/bmp" | "image/vnd.microsoft.icon" | "audio/mpeg" | "audio/aac" => None,
        mime => Some(Sniffed::of(mime, kind)),
    }
}
