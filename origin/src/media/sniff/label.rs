//! Determines a file's media type from its first bytes ([`sniff`]), and from its label (the media type or file
//! extension that the client declares) or else its name. A label that contradicts the content is an error.

use super::families::{FAMILIES, Family, SYNONYMS, TEXTUAL_MEDIA, UNKNOWN, VERIFIABLE, lists};
use super::{ImageFormat, Sniffed, markup, sniff};
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::media::MediaKind;

/// The maximum length of a media type: RFC 6838 limits type and subtype to 127 bytes each.
const MIME_MAX_BYTES: usize = 255;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileType {
    /// The media type in lower case, without parameters.
    pub mime: String,
    pub sniffed: Option<Sniffed>,
}

impl FileType {
    pub fn image(&self) -> Option<ImageFormat> {
        self.sniffed.and_then(|sniffed| sniffed.image)
    }
}

/// Determines the file's type by its content; the label `declared` counts where the content leaves several types
/// possible. Without a label, the extension of `name` never turns a type served as a download into one served inline
/// (see [`may_be_shown`]).
pub fn judge(declared: Option<&str>, kind: MediaKind, name: &str, head: &[u8]) -> Result<FileType, Problem> {
    let sniffed = sniff(head);
    check_kind(kind, name, sniffed)?;
    // An extension may stand for several types: `ts` is TypeScript or an MPEG stream.
    let is_ambiguous = |label: &String| is_only_text(label, head) && !has_slash(declared);
    let label = declared.and_then(read_label).filter(|label| lists(VERIFIABLE, label) || !is_ambiguous(label));
    let label = label.as_deref();
    let mime = match (label, sniffed) {
        (None, found) => unlabelled(name, found, head),
        (Some(label), Some(found)) => {
            agree(label, found, head).ok_or_else(|| contradiction(name, label, &described(found)))?
        }
        (Some(label), None) if lists(VERIFIABLE, label) || is_only_text(label, head) => {
            return Err(contradiction(name, label, "not"));
        }
        (Some(label), None) => label.to_owned(),
    };
    Ok(FileType { mime: for_kind(mime, kind), sniffed })
}

fn has_slash(label: Option<&str>) -> bool {
    label.is_some_and(|label| label.contains('/'))
}

fn is_only_text(label: &str, head: &[u8]) -> bool {
    matches!(top(label), "image" | "audio" | "video" | "font") && !lists(TEXTUAL_MEDIA, label) && markup::is_text(head)
}

const SHOWN: [&str; 6] =
    ["application/json", "application/pdf", "text/csv", "text/markdown", "text/plain", "text/tab-separated-values"];

/// Returns whether a type is served inline, unless the request asks for a download. Other files are downloads.
pub fn may_be_shown(mime: &str) -> bool {
    let mime = canonical(mime);
    let is_shown = matches!(top(&mime), "image" | "audio" | "video") || SHOWN.contains(&mime.as_str());
    is_shown && !runs_in_browser(&mime)
}

/// Returns true also for SVG and other XML, and for messages such as MHTML that may contain HTML.
pub fn runs_in_browser(mime: &str) -> bool {
    let mime = canonical(mime);
    mime.ends_with("+xml")
        || matches!(
            mime.as_str(),
            "text/html"
                | "text/xml"
                | "text/xsl"
                | "text/javascript"
                | "text/vbscript"
                | "text/cache-manifest"
                | "application/xml-dtd"
                | "application/x-shockwave-flash"
                | "application/wasm"
                | "multipart/related"
                | "message/rfc822"
                | "multipart/x-mixed-replace"
        )
}

const SUPPORTED_IMAGES: &str = "An image is JPEG, PNG, GIF, WebP, BMP, TIFF, ICO or AVIF";

fn check_kind(kind: MediaKind, name: &str, sniffed: Option<Sniffed>) -> Result<(), Problem> {
    let fits = match (kind, sniffed) {
        (MediaKind::File, _) => true,
        (MediaKind::Image, found) => found.is_some_and(|found| found.image.is_some()),
        (_, None) => false,
        (_, Some(found)) => found.kind == kind || may_hold_audio_or_video(found.mime),
    };
    if fits {
        return Ok(());
    }
    let word = kind.as_str();
    let a = if word.starts_with(['a', 'i']) { "an" } else { "a" };
    if kind == MediaKind::Image
        && let Some(found) = sniffed
        && found.kind == MediaKind::Image
    {
        let message = format!("{} is {}, a format that is not supported as an image.", shown(name), described(found));
        return Err(invalid(message).with_hint(format!(
            "{SUPPORTED_IMAGES}; convert it, or upload it with the type \"file\", which has no thumbnail."
        )));
    }
    let is = sniffed.map_or_else(
        || format!("is no {word} that is known here"),
        |found| format!("is {}, not {a} {word}", described(found)),
    );
    let hint = match kind {
        MediaKind::Image => {
            format!("{SUPPORTED_IMAGES}; anything else goes with the type \"file\".")
        }
        _ => "Upload it with the type \"file\", or with the type that it is of.".to_owned(),
    };
    Err(invalid(format!("{} {is}.", shown(name))).with_hint(hint))
}

fn may_hold_audio_or_video(mime: &str) -> bool {
    matches!(
        mime,
        "video/mp4"
            | "audio/mp4"
            | "video/quicktime"
            | "video/x-m4v"
            | "video/3gpp"
            | "video/3gpp2"
            | "video/webm"
            | "video/x-matroska"
            | "video/ogg"
            | "audio/ogg"
            | "video/x-ms-asf"
    )
}

/// Returns the type on which label and content agree; `None` if `label` contradicts `found`.
fn agree(label: &str, found: Sniffed, head: &[u8]) -> Option<String> {
    let bytes = canonical(found.mime);
    if label == bytes || label == UNKNOWN {
        return Some(bytes);
    }
    if let Some(shared) = family(&bytes)
        && family(label) == Some(shared)
    {
        // The brands in a HEIF file already say the exact type, so the label is not needed.
        let telling = matches!(shared, Family::Heif);
        return Some(if telling { bytes } else { label.to_owned() });
    }
    if lists(VERIFIABLE, label) {
        return None;
    }
    // A compressed SVG is gzip by its bytes, so an SVG label does not contradict them.
    if bytes == "application/gzip" && matches!(label, "image/svg+xml" | "image/svg+xml-compressed") {
        return Some(bytes);
    }
    if family(label) == Some(Family::Markup) && !markup::is_text(head) {
        return None;
    }
    let senses = |mime: &str| matches!(top(mime), "image" | "audio" | "video" | "font").then(|| top(mime).to_owned());
    if senses(label).is_some_and(|sense| sense != top(&bytes)) {
        return None;
    }
    if family(&bytes) == Some(Family::Markup) {
        // Other text, such as a template, may begin with markup, so only the label tells its type.
        return Some(label.to_owned());
    }
    if is_textual(label) {
        // A text may begin with the signature of another format, but binary content and PDF contradict a text label.
        let text = markup::is_text(head) && bytes != "application/pdf";
        return text.then(|| label.to_owned());
    }
    // Only the label distinguishes formats that use the same container, such as ZIP.
    let built_on = matches!(family(&bytes), Some(Family::Zip | Family::Gzip | Family::Ole));
    Some(if built_on { label.to_owned() } else { bytes })
}

fn family(mime: &str) -> Option<Family> {
    FAMILIES
        .iter()
        .find(|(_, members)| lists(members, mime))
        .map(|(family, _)| *family)
        .or_else(|| mime.ends_with("+xml").then_some(Family::Markup))
        .or_else(|| mime.ends_with("+zip").then_some(Family::Zip))
        .or_else(|| mime.ends_with("+gzip").then_some(Family::Gzip))
}

fn top(mime: &str) -> &str {
    mime.split_once('/').map_or(mime, |(top, _)| top)
}

fn is_textual(mime: &str) -> bool {
    mime.starts_with("text/")
        || mime.ends_with("+json")
        || matches!(
            mime,
            "application/json"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/toml"
                | "application/sql"
                | "application/x-sh"
                | "application/x-httpd-php"
        )
}

fn for_kind(mime: String, kind: MediaKind) -> String {
    match (kind, mime.as_str()) {
        (MediaKind::Audio, "video/mp4") => "audio/mp4".to_owned(),
        (MediaKind::Audio, "video/webm") => "audio/webm".to_owned(),
        (MediaKind::Audio, "video/ogg") => "audio/ogg".to_owned(),
        (MediaKind::Audio, "video/x-matroska") => "audio/x-matroska".to_owned(),
        (MediaKind::Audio, "video/x-ms-asf") => "audio/x-ms-wma".to_owned(),
        (MediaKind::Video, "audio/mp4") => "video/mp4".to_owned(),
        (MediaKind::Video, "audio/ogg") => "video/ogg".to_owned(),
        _ => mime,
    }
}

fn read_label(declared: &str) -> Option<String> {
    let text = declared.split(';').next().unwrap_or_default().trim();
    if !text.contains('/') {
        let ending = text.strip_prefix('.').unwrap_or(text);
        return mime_guess::from_ext(ending).first_raw().map(canonical);
    }
    let (top, sub) = text.split_once('/')?;
    let token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    (text.len() <= MIME_MAX_BYTES && token(top) && token(sub)).then(|| canonical(text))
}

pub(in crate::media) fn canonical(mime: &str) -> String {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    SYNONYMS.iter().find(|(_, synonyms)| lists(synonyms, &mime)).map_or(mime, |(name, _)| (*name).to_owned())
}

fn unlabelled(name: &str, found: Option<Sniffed>, head: &[u8]) -> String {
    let is_text = !head.is_empty() && markup::is_text(head);
    let bytes = match found {
        Some(found) => found.mime,
        None if is_text => "text/plain",
        None => UNKNOWN,
    };
    name.rsplit_once('.')
        .and_then(|(_, ending)| mime_guess::from_ext(ending).first_raw())
        .map(canonical)
        .and_then(|named| match found {
            Some(found) => agree(&named, found, head),
            None if is_text => is_textual(&named).then_some(named),
            None => (!lists(VERIFIABLE, &named) && !is_textual(&named)).then_some(named),
        })
        .filter(|named| may_be_shown(bytes) || !may_be_shown(named))
        .unwrap_or_else(|| canonical(bytes))
}

fn described(found: Sniffed) -> String {
    let name = match found.mime {
        "image/jpeg" => "JPEG",
        "image/png" => "PNG",
        "image/gif" => "GIF",
        "image/webp" => "WebP",
        "image/heic" => "HEIC",
        "image/heif" => "HEIF",
        "image/jxl" => "JPEG XL",
        "image/jp2" => "JPEG 2000",
        "image/vnd.adobe.photoshop" => "a Photoshop file",
        "image/svg+xml" => "SVG",
        "text/html" => "HTML",
        "text/xml" => "XML",
        "application/pdf" => "PDF",
        mime => return mime.to_owned(),
    };
    name.to_owned()
}

fn contradiction(name: &str, label: &str, is: &str) -> Problem {
    let label = shown(label);
    invalid(format!(
        "{} is labelled {label}, but its first bytes are {is}{}.",
        shown(name),
        if is == "not" { " of that type" } else { "" },
    ))
    .with_hint("Label it as what it is, or leave the label out.")
}

fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidMedia, message)
}
