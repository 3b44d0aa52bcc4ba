//! The file type that a caller declares, which may be wrong.

use crate::error::{ErrorCode, Problem};
use crate::ident::shown;

/// Maximum bytes of a media type: RFC 6838 allows 127 characters on either side of the slash.
const MIME_MAX_BYTES: usize = 255;

/// Maximum bytes of an extension. None in use is longer.
const EXTENSION_MAX_BYTES: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// A media type in lower case, without parameters: `image/png`.
    Mime(Box<str>),
    /// An extension in lower case, without its dot: `png`.
    Extension(Box<str>),
}

impl Label {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Mime(text) | Self::Extension(text) => text,
        }
    }

    pub(super) fn mime(text: &str) -> Option<Self> {
        let essence = text.split(';').next().unwrap_or_default().trim();
        let (kind, subtype) = essence.split_once('/')?;
        let is_sound = |name: &str| is_token(name) && name.starts_with(|first: char| first.is_ascii_alphanumeric());
        (is_sound(kind) && is_sound(subtype) && essence.len() <= MIME_MAX_BYTES)
            .then(|| Self::Mime(essence.to_ascii_lowercase().into()))
    }

    /// Parses the text between `data:` and the comma of a data URL. The error is the end of a message.
    pub(super) fn data_url(head: &str) -> Result<Self, &'static str> {
        let (label, last) = head.rsplit_once(';').unwrap_or((head, ""));
        if !last.trim().eq_ignore_ascii_case("base64") {
            return Err("has a data URL that is not base64");
        }
        Self::mime(label).ok_or("has a data URL without a type such as image/png")
    }

    /// Parses an extension, with or without its dot, or a media type. Fails with `invalid_body` for other text.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        let label = if text.contains('/') {
            Self::mime(text)
        } else {
            let extension = text.strip_prefix('.').unwrap_or(text);
            let is_sound = extension.len() <= EXTENSION_MAX_BYTES
                && extension.split('.').all(|part| !part.is_empty() && part.chars().all(char::is_alphanumeric));
            is_sound.then(|| Self::Extension(extension.to_lowercase().into()))
        };
        label.ok_or_else(|| {
            Problem::new(ErrorCode::InvalidBody, format!("{} is no type of a file.", shown(text)))
                .with_hint("Give an extension such as jpg, or a media type such as image/jpeg.")
        })
    }

    /// Returns the type's usual extension; `None` for an unknown subtype that is long or has punctuation.
    pub(super) fn extension(&self) -> Option<&str> {
        match self {
            Self::Extension(extension) => Some(extension),
            Self::Mime(mime) => {
                let known = EXTENSIONS.iter().find(|(known, _)| *known == &**mime);
                known.map(|(_, extension)| *extension).or_else(|| {
                    let (_, subtype) = mime.split_once('/')?;
                    let bare = subtype.strip_prefix("x-").unwrap_or(subtype);
                    let is_plain = bare.len() <= 5 && bare.bytes().all(|byte| byte.is_ascii_alphanumeric());
                    is_plain.then_some(bare)
                })
            }
        }
    }
}

/// Media types whose usual extension is not their subtype.
const EXTENSIONS: [(&str, &str); 24] = [
    ("image/jpeg", "jpg"),
    ("image/pjpeg", "jpg"),
    ("image/svg+xml", "svg"),
    ("image/x-icon", "ico"),
    ("image/vnd.microsoft.icon", "ico"),
    ("image/x-ms-bmp", "bmp"),
    ("video/quicktime", "mov"),
    ("video/x-matroska", "mkv"),
    ("video/x-msvideo", "avi"),
    ("audio/mpeg", "mp3"),
    ("audio/mp4", "m4a"),
    ("audio/vnd.wave", "wav"),
    ("text/plain", "txt"),
    ("text/javascript", "js"),
    ("text/markdown", "md"),
    ("text/calendar", "ics"),
    ("application/javascript", "js"),
    ("application/gzip", "gz"),
    ("application/msword", "doc"),
    ("application/vnd.ms-excel", "xls"),
    ("application/vnd.ms-powerpoint", "ppt"),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
];

/// Returns whether the text is a token by RFC 9110.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
