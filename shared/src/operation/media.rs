//! Parses requests to the media library: list, describe, sign and delete. [`crate::upload`] parses uploads.

use super::options::{self, Options};
use super::read::Direction;
use super::window::Span;
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::json::{self, Value};
use crate::limits::{MEDIA_LIST_MAX_ITEMS, ORDER_MAX_STEPS, SIGNED_URL_MAX_SECONDS};
use crate::media::{FolderPath, MediaKind, MediaName};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MediaId(u64);

impl MediaId {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(id) if plain => Ok(Self(id)),
            _ => Err(Self::not_found(text)),
        }
    }

    fn not_found(text: &str) -> Problem {
        Problem::new(ErrorCode::MediaNotFound, format!("There is no file with the id {}.", shown(text)))
    }

    pub fn unknown(self) -> Problem {
        Self::not_found(&self.0.to_string())
    }

    pub fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for MediaId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

impl fmt::Display for MediaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum MediaCall {
    Upload,
    List(MediaList),
    Describe(MediaId),
    /// Create a signed URL, by which anybody may read the file, even if it is private.
    Sign(MediaId, SignedFor),
    Delete(MediaId),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediaList {
    pub folder: Option<FolderPath>,
    pub kind: Option<MediaKind>,
    pub name: Option<MediaName>,
    /// The fields to sort by, the most significant first; empty for descending ids.
    pub order: Vec<(MediaField, Direction)>,
    pub span: Span,
    pub count: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaField {
    /// Files uploaded later have greater ids; replacing a file keeps its id.
    Id,
    Name,
    Folder,
    Kind,
    Size,
    Mime,
    Width,
    Height,
    Private,
    CreatedAt,
}

impl MediaField {
    const ALL: [(&'static str, Self); 10] = [
        ("id", Self::Id),
        ("name", Self::Name),
        ("folder", Self::Folder),
        ("type", Self::Kind),
        ("size", Self::Size),
        ("mime", Self::Mime),
        ("width", Self::Width),
        ("height", Self::Height),
        ("private", Self::Private),
        ("createdAt", Self::CreatedAt),
    ];

    fn parse(name: &str) -> Result<Self, Problem> {
        let known = Self::ALL.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, field)| field).ok_or_else(|| {
            let names = Self::ALL.into_iter().map(|(name, _)| name);
            Problem::new(ErrorCode::UnknownField, format!("Files have no field {}.", shown(name))).with_hint(
                match crate::error::nearest(name, names.clone()) {
                    Some(near) => format!("Did you mean {}?", shown(near)),
                    None => format!("Fields: {}.", names.collect::<Vec<_>>().join(", ")),
                },
            )
        })
    }
}

const LIST_OPTIONS: [&str; 8] = ["folder", "type", "name", "limit", "page", "offset", "order", "count"];

impl MediaList {
    /// Options whose values are never parsed as JSON, since names may look like JSON.
    pub(super) const TEXTS: &[&str] = &["folder", "name"];

    pub(super) fn from_pairs(given: Options) -> Result<Self, Problem> {
        let mut list = Self::default();
        let (mut limit, mut page, mut offset) = (None, None, None);
        for (name, value) in given {
            match name.as_str() {
                "folder" => list.folder = Some(of_option(FolderPath::parse(text(&name, &value)?))?),
                "name" => list.name = Some(of_option(MediaName::parse(text(&name, &value)?))?),
                "type" => list.kind = Some(kind(&value)?),
                "order" => list.order = order(&value)?,
                "count" => list.count = options::flag("count", &value)?,
                "limit" => limit = Some(value),
                "page" => page = Some(value),
                "offset" => offset = Some(value),
                unknown => return Err(options::unknown(unknown, &LIST_OPTIONS)),
            }
        }
        list.span = Span::parse(limit.as_ref(), page.as_ref(), offset.as_ref())?;
        if list.span.limit.is_some_and(|limit| limit > MEDIA_LIST_MAX_ITEMS) {
            return Err(options::invalid(format!("The option limit is {MEDIA_LIST_MAX_ITEMS} at most."))
                .with_hint("Read further pages with page."));
        }
        Ok(list)
    }
}

fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, Problem> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(options::wrong(name, "a text", other)),
    }
}

fn of_option<T>(parsed: Result<T, Problem>) -> Result<T, Problem> {
    parsed.map_err(|problem| options::invalid(problem.message().to_owned()))
}

fn kind(value: &Value) -> Result<MediaKind, Problem> {
    let known = match value {
        Value::Text(word) => MediaKind::parse(word),
        _ => None,
    };
    known.ok_or_else(|| options::wrong("type", "image, video, audio or file", value))
}

fn order(value: &Value) -> Result<Vec<(MediaField, Direction)>, Problem> {
    let steps = super::read::order::orders(value)?;
    debug_assert!(steps.len() <= ORDER_MAX_STEPS);
    steps.iter().map(|step| Ok((MediaField::parse(step.field.field().as_str())?, step.direction))).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedFor {
    seconds: u64,
}

impl SignedFor {
    pub(super) fn from_body(body: &[u8]) -> Result<Self, Problem> {
        let mut seconds = None;
        for (name, value) in json::body_members(body)? {
            if name != "expiresIn" {
                return Err(invalid_body(format!("There is no key {} here.", shown(&name)))
                    .with_hint("Use {\"expiresIn\": seconds}."));
            }
            seconds = Some(Self::seconds_of(&value)?);
        }
        match seconds {
            Some(seconds) => Ok(Self { seconds }),
            None => {
                Err(invalid_body("The body has no expiresIn.".to_owned()).with_hint("Use {\"expiresIn\": seconds}."))
            }
        }
    }

    fn seconds_of(value: &Value) -> Result<u64, Problem> {
        let seconds = options::whole_number("expiresIn", value).ok();
        seconds.and_then(|seconds| Self::new(seconds).ok()).map(|valid| valid.seconds).ok_or_else(|| {
            invalid_body(format!("expiresIn must be a whole number of seconds from 1 to {SIGNED_URL_MAX_SECONDS}."))
        })
    }

    pub fn new(seconds: u64) -> Result<Self, Problem> {
        if (1..=SIGNED_URL_MAX_SECONDS).contains(&seconds) {
            return Ok(Self { seconds });
        }
        Err(invalid_body(format!("A URL is signed for 1 to {SIGNED_URL_MAX_SECONDS} seconds.")))
    }

    pub fn seconds(self) -> u64 {
        self.seconds
    }
}

fn invalid_body(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{BodyUse, Operation, parse_head};
    use crate::policy::Action;
    use crate::request::RequestHead;

    fn call(method: &str, path: &str, query: &str, body: &str) -> Result<MediaCall, Problem> {
        let pending = parse_head(&RequestHead {
            method,
            path: &format!("/api/v1/media{path}"),
            query: Some(query),
            ..RequestHead::default()
        })?;
        match pending.finish(body.as_bytes())? {
            Operation::Media(call) => Ok(call),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_list_takes_its_options() {
        let query = "folder=/a/b/&type=image&name=x.png&limit=5&page=3&count=true\
                     &order={\"field\":\"size\",\"strategy\":\"desc\"}";
        let MediaCall::List(list) = call("GET", "", query, "").unwrap() else {
            panic!("no list");
        };
        assert_eq!(list.folder.unwrap().as_str(), "a/b");
        assert_eq!(list.kind, Some(MediaKind::Image));
        assert_eq!(list.name.unwrap().as_str(), "x.png");
        assert_eq!((list.span.limit, list.span.offset), (Some(5), 10));
        assert_eq!(list.order, [(MediaField::Size, Direction::Descending)]);
        assert!(list.count);
        for (query, folder, name) in [
            ("folder=[2024] photos", Some("[2024] photos"), None),
            ("name=%22x%22", None, Some("\"x\"")),
            ("folder={a}/[b&name=[1]", Some("{a}/[b"), Some("[1]")),
            ("folder=1e3&name=null", Some("1e3"), Some("null")),
        ] {
            let MediaCall::List(list) = call("GET", "", query, "").unwrap() else {
                panic!("no list");
            };
            let found = (list.folder.as_ref(), list.name.as_ref());
            let found = (found.0.map(FolderPath::as_str), found.1.map(MediaName::as_str));
            assert_eq!(found, (folder, name), "{query}");
        }
        let all = call("GET", "", "folder=", "").unwrap();
        let root = MediaList { folder: Some(FolderPath::root()), ..MediaList::default() };
        assert_eq!(all, MediaCall::List(root));
    }

    #[test]
    fn files_are_addressed_by_number() {
        assert_eq!(call("GET", "/7", "", "").unwrap(), MediaCall::Describe(MediaId(7)));
        assert_eq!(call("DELETE", "/7", "", "").unwrap(), MediaCall::Delete(MediaId(7)));
    }

    #[test]
    fn a_url_is_signed_for_a_second_to_a_week() {
        let signed = call("POST", "/7/sign", "", r#"{"expiresIn": 604800}"#).unwrap();
        let week = SignedFor { seconds: 604_800 };
        assert_eq!((signed, week.seconds()), (MediaCall::Sign(MediaId(7), week), 604_800));
    }

    #[test]
    fn an_upload_is_known_by_its_head_and_comes_as_json_or_as_a_form() {
        let pending = |content_type| {
            parse_head(&RequestHead { method: "POST", path: "/api/v1/media", content_type, ..RequestHead::default() })
                .unwrap()
        };
        for content_type in [None, Some("application/json"), Some("multipart/form-data; boundary=x")] {
            let upload = pending(content_type);
            assert_eq!((upload.action(), upload.body()), (Action::Upload, BodyUse::Upload));
            assert!(upload.check_body_type().is_ok());
        }
        let refused = pending(Some("image/png")).check_body_type().unwrap_err();
        assert_eq!(refused.code(), ErrorCode::UnsupportedMediaType);
        assert!(refused.hint().unwrap().contains("multipart/form-data"));
    }
}
