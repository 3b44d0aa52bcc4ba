//! Parses a JSON upload with serde_json over the whole body: slow, but with few rules.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::json;
use serde_json::value::RawValue;
use shared::limits::{UPLOAD_LABEL_MAX_BYTES, UPLOAD_MAX_ITEMS};
use shared::media::{FolderPath, MediaKind, MediaName};
use shared::upload::{Existing, Given, Label, ParsedUpload, Parser, UploadLimits, UploadShape, Visibility};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, PartialEq)]
pub struct Expected {
    shape: UploadShape,
    kind: MediaKind,
    folder: String,
    existing: Existing,
    items: Vec<Item>,
}

#[derive(Debug, PartialEq)]
struct Item {
    name: String,
    label: Option<Label>,
    kind: MediaKind,
    visibility: Visibility,
    bytes: Vec<u8>,
}

impl Expected {
    #[must_use]
    pub fn of(form: &ParsedUpload, files: Vec<Vec<u8>>) -> Self {
        let items = form.items().iter().zip(files).map(|(item, bytes)| Item {
            name: item.name().to_string(),
            label: item.label().cloned(),
            kind: item.kind(),
            visibility: item.visibility(),
            bytes,
        });
        Self {
            shape: form.shape(),
            kind: form.kind(),
            folder: form.folder().to_string(),
            existing: form.existing(),
            items: items.collect(),
        }
    }
}

/// Parses a body; `None` if it must be refused.
#[must_use]
pub fn read(body: &[u8]) -> Option<Expected> {
    let text = std::str::from_utf8(body).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut keys = object(text, &["media", "folder", "type", "update", "private"])?;
    let kind = MediaKind::parse(&required(&mut keys, "type")?)?;
    let folder = optional::<String>(&mut keys, "folder")?.unwrap_or_default();
    let update = optional::<bool>(&mut keys, "update")?;
    let private = optional::<bool>(&mut keys, "private")?;
    let media = keys.remove("media")?;
    let (given, items): (_, Vec<&RawValue>) = match media.get().as_bytes().first()? {
        b'{' => (Given::One, vec![media]),
        _ => (Given::List, serde_json::from_str(media.get()).ok()?),
    };
    if items.is_empty() || items.len() > UPLOAD_MAX_ITEMS {
        return None;
    }
    let items = items.into_iter().map(|text| item(text.get(), kind, private));
    let items: Vec<(bool, Item)> = items.collect::<Option<_>>()?;
    let names: BTreeSet<_> = items.iter().map(|(_, item)| item.name.as_str()).collect();
    let typed = items.iter().filter(|(is_typed, _)| *is_typed).count();
    let shape = match typed {
        0 => UploadShape::Named,
        _ if typed == items.len() => UploadShape::Typed(given),
        _ => return None,
    };
    let is_odd = shape != UploadShape::Named && matches!(kind, MediaKind::Video | MediaKind::Audio);
    if names.len() < items.len() || is_odd {
        return None;
    }
    Some(Expected {
        shape,
        kind,
        folder: FolderPath::parse(&folder).ok()?.to_string(),
        existing: match update {
            Some(true) => Existing::IsReplaced,
            _ => Existing::Stays,
        },
        items: items.into_iter().map(|(_, item)| item).collect(),
    })
}

/// Returns an object's values by key; `None` if a key is unknown or occurs twice.
fn object<'a>(text: &'a str, known: &[&str]) -> Option<BTreeMap<String, &'a RawValue>> {
    struct Members<'a>(Vec<(String, &'a RawValue)>);
    impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct All;
            impl<'de> serde::de::Visitor<'de> for All {
                type Value = Vec<(String, &'de RawValue)>;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                    let mut members = Vec::new();
                    while let Some(member) = map.next_entry()? {
                        members.push(member);
                    }
                    Ok(members)
                }
            }
            deserializer.deserialize_map(All).map(Members)
        }
    }
    let Members(members) = serde_json::from_str(text).ok()?;
    let count = members.len();
    let keys: BTreeMap<_, _> = members.into_iter().collect();
    let are_sound = keys.len() == count && keys.keys().all(|key| known.contains(&key.as_str()));
    are_sound.then_some(keys)
}

fn required(keys: &mut BTreeMap<String, &RawValue>, key: &str) -> Option<String> {
    serde_json::from_str(keys.remove(key)?.get()).ok()
}

/// Reads a key that may be missing or null; the outer `None` means a value of another type.
fn optional<T: serde::de::DeserializeOwned>(keys: &mut BTreeMap<String, &RawValue>, key: &str) -> Option<Option<T>> {
    let text = keys.remove(key).map_or("null", RawValue::get);
    serde_json::from_str(text).ok()
}

fn item(text: &str, kind: MediaKind, private: Option<bool>) -> Option<(bool, Item)> {
    for (name, file_type, base64) in [
        ("name", None, "base64"),
        ("imageName", Some("imageType"), "imageBase64"),
        ("fileName", Some("fileType"), "fileBase64"),
    ] {
        let mut known = vec![name, base64, "private", "privateFolder"];
        known.extend(file_type);
        let Some(mut keys) = object(text, &known) else {
            continue;
        };
        let content = required(&mut keys, base64)?;
        let (mime, bytes) = decoded(&content, file_type.is_none())?;
        let given = required(&mut keys, name)?;
        let (name, label) = match file_type {
            None => (MediaName::parse(&given).ok()?.to_string(), None),
            Some(key) => composed(&given, &required(&mut keys, key)?)?,
        };
        let own = optional::<bool>(&mut keys, "private")?;
        let visibility = match (optional::<bool>(&mut keys, "privateFolder")?, own.or(private)) {
            (Some(true), _) => Visibility::PrivateFolder,
            (_, Some(true)) => Visibility::Private,
            (_, Some(false)) => Visibility::Public,
            (_, None) => Visibility::Undeclared,
        };
        let item = Item {
            name,
            label: mime.map(|mime| Label::Mime(mime.into())).or(label),
            kind: if base64 == "fileBase64" { MediaKind::File } else { kind },
            visibility,
            bytes,
        };
        return Some((file_type.is_some(), item));
    }
    None
}

/// Returns the name and media type that the parser builds from a name and a type in the second shape of an upload;
/// `None` if it refuses them.
fn composed(name: &str, kind: &str) -> Option<(String, Option<Label>)> {
    let body = json!({"type": "file", "media": {"fileName": name, "fileType": kind, "fileBase64": "YQ=="}});
    let body = body.to_string();
    let mut parser = Parser::new(None, UploadLimits::default()).ok()?;
    let mut feed = parser.feed(body.as_bytes());
    while feed.next_event().ok()?.is_some() {}
    let form = parser.finish().ok()?;
    let item = form.items().first()?;
    Some((item.name().to_string(), item.label().cloned()))
}

/// Returns the media type of a data URL, if it has one, and the decoded bytes; `None` if the content is invalid.
fn decoded(content: &str, must_be_url: bool) -> Option<(Option<String>, Vec<u8>)> {
    let is_url = content.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if must_be_url && !is_url {
        return None;
    }
    let (mime, text) = if is_url {
        let (head, text) = content.split_once(',')?;
        (Some(mime(head)?), text)
    } else {
        (None, content)
    };
    let text: String = text
        .chars()
        .filter(|c| !" \r\n\t".contains(*c))
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    let padding = if text.contains('=') { DecodePaddingMode::RequireCanonical } else { DecodePaddingMode::RequireNone };
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding);
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(text).ok()?;
    (!bytes.is_empty()).then_some((mime, bytes))
}

/// Returns the media type in a data URL's head, such as `data:image/png;name=x;base64`; `None` if the head is invalid.
fn mime(head: &str) -> Option<String> {
    let is_plain = head.len() <= UPLOAD_LABEL_MAX_BYTES && head.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let mut parts: Vec<&str> = head[5..].split(';').collect();
    let last = parts.pop()?.trim();
    if !is_plain || parts.is_empty() || !last.eq_ignore_ascii_case("base64") {
        return None;
    }
    let mime = parts[0].trim().to_ascii_lowercase();
    let (kind, subtype) = mime.split_once('/')?;
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    (is_name(kind) && is_name(subtype) && mime.len() <= 255).then_some(mime)
}
