//! A push parser for uploads as JSON: an object whose `media` is an object or a list of objects, each with short values
//! and one long text (the file). No unknown key is skipped, and the first byte that does not fit is refused. Keys may
//! come in any order; an item's keys tell its form.

mod content;
mod item;
mod key;

use super::draft::{self, Draft, invalid};
use super::form::{Given, ParsedUpload, UploadShape};
use super::label::Label;
use super::{UploadLimits, UploadStep};
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::json::lexer::{JsonToken, LexedText, Lexer};
use crate::limits::UPLOAD_TEXT_MAX_BYTES;
use content::{ContentDecoder, Head, Progress};
use item::Open;
use key::{BodyKey, Family, KeySet, Level, Wants};

#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonPlace {
    Body,
    KeyOrEnd,
    Key,
    KeyText,
    Colon(BodyKey),
    Value(BodyKey),
    Text(BodyKey),
    Content,
    ContentEnds,
    MemberEnds,
    ItemOrEnd,
    Item,
    ItemEnds,
    Done,
}

pub(super) struct JsonReader {
    lexer: Lexer,
    content: ContentDecoder,
    place: JsonPlace,
    level: Level,
    keys: KeySet,
    given: Given,
    shape: Option<UploadShape>,
    draft: Draft,
    item: Open,
    item_at: usize,
}

impl JsonReader {
    pub(super) fn new(limits: UploadLimits) -> Self {
        Self {
            lexer: Lexer::default(),
            content: ContentDecoder::new(),
            place: JsonPlace::Body,
            level: Level::Body,
            keys: KeySet::default(),
            given: Given::List,
            shape: None,
            draft: Draft::new(limits),
            item: Open::default(),
            item_at: 0,
        }
    }

    pub(super) fn decoded(&self) -> &[u8] {
        self.content.decoded()
    }

    pub(super) fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<UploadStep<'i>, Problem> {
        loop {
            match self.place {
                JsonPlace::KeyText => match self.lexer.text(input)? {
                    LexedText::Partial => return Ok(UploadStep::NeedsInput),
                    LexedText::TooLong => return Err(too_long("A key")),
                    LexedText::Whole(key) => self.key(&key)?,
                },
                JsonPlace::Text(key) => match self.lexer.text(input)? {
                    LexedText::Partial => return Ok(UploadStep::NeedsInput),
                    LexedText::TooLong => return Err(too_long(&self.path(key))),
                    LexedText::Whole(text) => {
                        self.text(key, text)?;
                        self.place = JsonPlace::MemberEnds;
                    }
                },
                JsonPlace::Content => match self.content.read(&mut self.lexer, input) {
                    Err(fault) => return Err(self.refused(fault)),
                    Ok(Progress::NeedsInput) => return Ok(UploadStep::NeedsInput),
                    Ok(Progress::Full) => return Ok(UploadStep::Decoded),
                    Ok(Progress::Ended) => {
                        self.place = JsonPlace::ContentEnds;
                        if !self.content.decoded().is_empty() {
                            return Ok(UploadStep::Decoded);
                        }
                    }
                },
                JsonPlace::ContentEnds => {
                    self.place = JsonPlace::MemberEnds;
                    return Ok(UploadStep::Ends);
                }
                _ => {
                    let Some(token) = self.lexer.token(input)? else {
                        return Ok(UploadStep::NeedsInput);
                    };
                    if self.token(token)? {
                        return Ok(UploadStep::Begins(self.item_at));
                    }
                }
            }
        }
    }

    fn token(&mut self, token: JsonToken) -> Result<bool, Problem> {
        self.place = match (self.place, token) {
            (JsonPlace::Body, JsonToken::OpenObject) => JsonPlace::KeyOrEnd,
            (JsonPlace::KeyOrEnd | JsonPlace::Key, JsonToken::Quote) => JsonPlace::KeyText,
            (JsonPlace::KeyOrEnd | JsonPlace::MemberEnds, JsonToken::CloseObject) => self.close()?,
            (JsonPlace::Colon(key), JsonToken::Colon) => JsonPlace::Value(key),
            (JsonPlace::Value(key), token) if token.begins_value() => {
                self.place = self.value(key, token)?;
                return Ok(self.place == JsonPlace::Content);
            }
            (JsonPlace::MemberEnds, JsonToken::Comma) => JsonPlace::Key,
            (JsonPlace::ItemOrEnd | JsonPlace::Item, JsonToken::OpenObject) => self.open_item()?,
            (JsonPlace::ItemOrEnd | JsonPlace::ItemEnds, JsonToken::CloseList) => {
                self.level = Level::Body;
                JsonPlace::MemberEnds
            }
            (JsonPlace::ItemEnds, JsonToken::Comma) => JsonPlace::Item,
            (JsonPlace::Body, token) if token.begins_value() => {
                return Err(invalid(format!("The body must be one JSON object, not {}.", token.kind())));
            }
            (JsonPlace::ItemOrEnd | JsonPlace::Item, token) if token.begins_value() => {
                let at = self.draft.next_place()?;
                return Err(invalid(format!("media[{at}] must be an object, not {}.", token.kind())));
            }
            (place, token) => return Err(self.lexer.unexpected(token, wanted(place))),
        };
        Ok(false)
    }

    fn key(&mut self, text: &str) -> Result<(), Problem> {
        let Some(key) = BodyKey::parse(self.level, text) else {
            return Err(invalid(format!(
                "{} is no key of {}.",
                shown(text),
                match self.level {
                    Level::Body => "an upload".to_owned(),
                    Level::Item => self.item_path(),
                }
            ))
            .with_hint(BodyKey::hint(self.level, text)));
        };
        let keys = match self.level {
            Level::Body => &mut self.keys,
            Level::Item => &mut self.item.keys,
        };
        if !keys.insert(key) {
            return Err(invalid(format!("{} is repeated.", self.path(key))));
        }
        if let Some(family) = key.family() {
            self.check_family(key, family)?;
        }
        self.place = JsonPlace::Colon(key);
        Ok(())
    }

    fn value(&mut self, key: BodyKey, token: JsonToken) -> Result<JsonPlace, Problem> {
        Ok(match (key.wants(), token) {
            (Wants::Items, JsonToken::OpenList) => {
                self.given = Given::List;
                self.level = Level::Item;
                JsonPlace::ItemOrEnd
            }
            (Wants::Items, JsonToken::OpenObject) => {
                self.given = Given::One;
                self.level = Level::Item;
                self.open_item()?
            }
            (Wants::Text | Wants::TextIfAny, JsonToken::Quote) => JsonPlace::Text(key),
            (Wants::FlagIfAny, JsonToken::True | JsonToken::False) => {
                self.flag(key, token);
                JsonPlace::MemberEnds
            }
            (Wants::TextIfAny | Wants::FlagIfAny, JsonToken::Null) => JsonPlace::MemberEnds,
            (Wants::Content, JsonToken::Quote) => {
                let head = match self.item.family {
                    Some(Family::Named) => Head::Required,
                    _ => Head::Optional,
                };
                self.content.restart(head);
                JsonPlace::Content
            }
            (wants, token) => {
                return Err(invalid(format!("{} must be {wants}, not {}.", self.path(key), token.kind())));
            }
        })
    }

    fn flag(&mut self, key: BodyKey, token: JsonToken) {
        let flag = token == JsonToken::True;
        match (self.level, key) {
            (Level::Body, BodyKey::Update) => self.draft.set_update(flag),
            (Level::Body, _) => self.draft.set_private(flag),
            (Level::Item, BodyKey::PrivateFolder) => self.item.private_folder = Some(flag),
            (Level::Item, _) => self.item.private = Some(flag),
        }
    }

    fn text(&mut self, key: BodyKey, text: String) -> Result<(), Problem> {
        match key {
            BodyKey::Folder => self.draft.set_folder(&text),
            BodyKey::Type => {
                self.draft.set_kind(&text)?;
                self.check_kind()
            }
            BodyKey::ImageType | BodyKey::FileType => {
                let label = Label::parse(&text);
                self.item.label = Some(label.map_err(|problem| draft::at(&self.path(key), &problem))?);
                Ok(())
            }
            _ => {
                self.item.name = Some(text);
                Ok(())
            }
        }
    }

    fn close(&mut self) -> Result<JsonPlace, Problem> {
        if self.level == Level::Body {
            return Ok(JsonPlace::Done);
        }
        self.close_item()?;
        Ok(match self.given {
            Given::List => JsonPlace::ItemEnds,
            Given::One => {
                self.level = Level::Body;
                JsonPlace::MemberEnds
            }
        })
    }

    pub(super) fn finish(self) -> Result<ParsedUpload, Problem> {
        match self.place {
            _ if self.lexer.is_within_token() => Err(self.lexer.ended_early()),
            JsonPlace::Done => self.draft.finish(self.shape),
            JsonPlace::Body if !self.lexer.has_begun() => {
                Err(Problem::new(ErrorCode::InvalidJson, "The body is empty.")
                    .with_hint("Send a JSON object, or multipart/form-data."))
            }
            _ => Err(self.lexer.ended_early()),
        }
    }
}

fn too_long(place: &str) -> Problem {
    invalid(format!("{place} is longer than {UPLOAD_TEXT_MAX_BYTES} bytes."))
}

fn wanted(place: JsonPlace) -> &'static str {
    match place {
        JsonPlace::Body => "an object",
        JsonPlace::KeyOrEnd => "a key or }",
        JsonPlace::Key | JsonPlace::KeyText => "a key",
        JsonPlace::Colon(_) => "a colon",
        JsonPlace::Value(_) | JsonPlace::Text(_) | JsonPlace::Content | JsonPlace::ContentEnds => "a value",
        JsonPlace::MemberEnds => "a comma or }",
        JsonPlace::ItemOrEnd => "an object or ]",
        JsonPlace::Item => "an object",
        JsonPlace::ItemEnds => "a comma or ]",
        JsonPlace::Done => "the end",
    }
}
