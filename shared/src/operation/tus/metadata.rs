//! Parses `Upload-Metadata`: name, folder, type and visibility of the file. Clients use different keys for name and
//! type.

use crate::error::{ErrorCode, Problem, nearest};
use crate::ident::shown;
use crate::limits::TUS_METADATA_MAX_BYTES;
use crate::media::{FolderPath, MediaKind, MediaName};
use crate::upload::{Existing, Label, Visibility, flag};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The image formats that the origin checks: without a declared kind, such a file is an image.
const PICTURES: [&str; 11] = [
    "image/jpeg",
    "image/png",
    "image/apng",
    "image/gif",
    "image/webp",
    "image/bmp",
    "image/x-ms-bmp",
    "image/tiff",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "image/avif",
];

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TusFile {
    pub name: MediaName,
    pub folder: FolderPath,
    pub kind: MediaKind,
    pub label: Option<Label>,
    pub existing: Existing,
    pub visibility: Visibility,
}

impl TusFile {
    pub fn from_metadata(header: &str) -> Result<Self, Problem> {
        let pairs = Pairs::read(header)?;
        let Some(name) = pairs.text(&["filename", "name"])? else {
            return Err(invalid("The Upload-Metadata has no filename.")
                .with_hint("Add the key filename with the file's name in base64."));
        };
        let said = pairs.text(&["type"])?;
        let kind = said.as_deref().and_then(MediaKind::parse);
        let label = match pairs.text(&["filetype"])? {
            None if kind.is_none() => said,
            label => label,
        };
        let label = label.map(|label| Label::parse(&label)).transpose()?;
        let kind = match pairs.text(&["kind"])? {
            Some(word) => parse_kind(&word)?,
            None => kind.unwrap_or_else(|| usual_kind(label.as_ref())),
        };
        Ok(Self {
            name: MediaName::parse(&name)?,
            folder: FolderPath::parse(&pairs.text(&["folder"])?.unwrap_or_default())?,
            kind,
            label,
            existing: if pairs.switch("update")? == Some(true) { Existing::IsReplaced } else { Existing::Stays },
            visibility: match (pairs.switch("privateFolder")?, pairs.switch("private")?) {
                (Some(true), _) => Visibility::PrivateFolder,
                (_, Some(true)) => Visibility::Private,
                (_, Some(false)) => Visibility::Public,
                (_, None) => Visibility::Undeclared,
            },
        })
    }
}

/// Returns the header with another folder. `header` must be valid. Fails with `invalid_body` if the result is too long.
pub(super) fn with_folder(header: &str, folder: &FolderPath) -> Result<String, Problem> {
    let is_kept = |pair: &&str| !pair.is_empty() && pair.split(' ').next() != Some("folder");
    let mut pairs: Vec<_> = header.split(',').map(|pair| pair.trim_matches(' ')).filter(is_kept).collect();
    let folder = format!("folder {}", STANDARD.encode(folder.as_str()));
    pairs.push(&folder);
    let header = pairs.join(",");
    Pairs::read(&header)?;
    Ok(header)
}

struct Pairs<'a>(Vec<(&'a str, Vec<u8>)>);

impl<'a> Pairs<'a> {
    fn read(header: &'a str) -> Result<Self, Problem> {
        if header.len() > TUS_METADATA_MAX_BYTES {
            return Err(invalid(format!(
                "The Upload-Metadata has {} bytes; {TUS_METADATA_MAX_BYTES} are read.",
                header.len()
            )));
        }
        let mut pairs: Vec<(&str, Vec<u8>)> = Vec::new();
        // An empty header has no pairs; an empty pair between commas is an error.
        for pair in header.split(',').filter(|_| !header.trim().is_empty()) {
            let pair = pair.trim_matches(' ');
            let (key, value) = pair.split_once(' ').unwrap_or((pair, ""));
            if key.is_empty() || !key.is_ascii() {
                return Err(invalid("The Upload-Metadata has a pair without a key.")
                    .with_hint("Write: key1 base64value1,key2 base64value2"));
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(invalid(format!("The Upload-Metadata has the key {} twice.", shown(key))));
            }
            let value = STANDARD
                .decode(value)
                .map_err(|_| invalid(format!("The value of {} in the Upload-Metadata is not base64.", shown(key))))?;
            pairs.push((key, value));
        }
        Ok(Self(pairs))
    }

    fn text(&self, keys: &[&str]) -> Result<Option<String>, Problem> {
        let value = |key: &&str| {
            let found = self.0.iter().find(|(known, _)| known == key);
            found.filter(|(_, value)| !value.is_empty())
        };
        let Some((key, value)) = keys.iter().find_map(value) else {
            return Ok(None);
        };
        let text = String::from_utf8(value.clone())
            .map_err(|_| invalid(format!("The value of {key} in the Upload-Metadata is not UTF-8.")))?;
        Ok(Some(text))
    }

    /// Returns a key's boolean; a key without a value is true. `None` for a missing key.
    fn switch(&self, key: &str) -> Result<Option<bool>, Problem> {
        let found = self.0.iter().find(|(known, _)| *known == key);
        let word = match found {
            None => return Ok(None),
            Some((_, value)) if value.is_empty() => return Ok(Some(true)),
            Some((_, value)) => std::str::from_utf8(value).ok(),
        };
        word.and_then(flag)
            .map(Some)
            .ok_or_else(|| invalid(format!("The value of {key} in the Upload-Metadata must be true or false.")))
    }
}

fn parse_kind(word: &str) -> Result<MediaKind, Problem> {
    MediaKind::parse(word).ok_or_else(|| {
        let words = MediaKind::ALL.map(MediaKind::as_str);
        invalid(format!("kind must be image, video, audio or file, not {}.", shown(word)))
            .with_hint_if(nearest(word, words).map(|word| format!("Did you mean {word}?")))
    })
}

fn usual_kind(label: Option<&Label>) -> MediaKind {
    let Some(Label::Mime(mime)) = label else {
        return MediaKind::File;
    };
    match mime.split_once('/') {
        Some(("video", _)) => MediaKind::Video,
        Some(("audio", _)) => MediaKind::Audio,
        _ if PICTURES.contains(&&**mime) => MediaKind::Image,
        _ => MediaKind::File,
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}
