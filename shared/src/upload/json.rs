//! A push parser for uploads as JSON: an object whose `media` is an object or a list of objects, each with short values
//! and one long text (the file). No unknown key is skipped, and the first byte that does not fit is refused. Keys may
//! come in any order; an item's keys tell its form.

mod content;
mod item;
mod key;

use super::draft::{self, Draft, invalid};
use super::form::{Given, ParsedUpload, Shape};
use super::label::Label;
use super::{Step, UploadLimits};
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::json::lexer::{Lexer, Text, Token};
use crate::limits::UPLOAD_TEXT_MAX_BYTES;
use content::{Content, Head, Progress};
use item::Open;
use key::{Family, Key, KeySet, Level, Wants};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Body,
    KeyOrEnd,
    Key,
    KeyText,
    Colon(Key),
    Value(Key),
    Text(Key),
    Content,
    ContentEnds,
    MemberEnds,
    ItemOrEnd,
    Item,
    ItemEnds,
    Done,
}

pub(super) struct Reader {
    lexer: Lexer,
    content: Content,
    place: Place,
    level: Level,
    keys: KeySet,
    given: Given,
    shape: Option<Shape>,
    draft: Draft,
    item: Open,
    item_at: usize,
}

impl Reader {
    pub(super) fn new(limits: UploadLimits) -> Self {
        Self {
            lexer: Lexer::default(),
            content: Content::new(),
            place: Place::Body,
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

    pub(super) fn step<'i>(&mut self, input: &mut &'i [u8]) -> Result<Step<'i>, Problem> {
        loop {
            match self.place {
                Place::KeyText => match self.lexer.text(input)? {
                    Text::Partial => return Ok(Step::NeedsInput),
                    Text::TooLong => return Err(too_long("A key")),
                    Text::Whole(key) => self.key(&key)?,
                },
                Place::Text(key) => match self.lexer.text(input)? {
                    Text::Partial => return Ok(Step::NeedsInput),
                    Text::TooLong => return Err(too_long(&self.path(key))),
                    Text::Whole(text) => {
                        self.text(key, text)?;
                        self.place = Place::MemberEnds;
                    }
                },
                Place::Content => match self.content.read(&mut self.lexer, input) {
                    Err(fault) => return Err(self.refused(fault)),
                    Ok(Progress::NeedsInput) => return Ok(Step::NeedsInput),
                    Ok(Progress::Full) => return Ok(Step::Decoded),
                    Ok(Progress::Ended) => {
                        self.place = Place::ContentEnds;
                        if !self.content.decoded().is_empty() {
                            return Ok(Step::Decoded);
                        }
                    }
                },
                Place::ContentEnds => {
                    self.place = Place::MemberEnds;
                    return Ok(Step::Ends);
                }
                _ => {
                    let Some(token) = self.lexer.token(input)? else {
                        return Ok(Step::NeedsInput);
                    };
                    if self.token(token)? {
                        return Ok(Step::Begins(self.item_at));
                    }
                }
            }
        }
    }

    fn token(&mut self, token: Token) -> Result<bool, Problem> {
        self.place = match (self.place, token) {
            (Place::Body, Token::OpenObject) => Place::KeyOrEnd,
            (Place::KeyOrEnd | Place::Key, Token::Quote) => Place::KeyText,
            (Place::KeyOrEnd | Place::MemberEnds, Token::CloseObject) => self.close()?,
            (Place::Colon(key), Token::Colon) => Place::Value(key),
            (Place::Value(key), token) if token.begins_value() => {
                self.place = self.value(key, token)?;
                return Ok(self.place == Place::Content);
            }
            (Place::MemberEnds, Token::Comma) => Place::Key,
            (Place::ItemOrEnd | Place::Item, Token::OpenObject) => self.open_item()?,
            (Place::ItemOrEnd | Place::ItemEnds, Token::CloseList) => {
                self.level = Level::Body;
                Place::MemberEnds
            }
            (Place::ItemEnds, Token::Comma) => Place::Item,
            (Place::Body, token) if token.begins_value() => {
                return Err(invalid(format!("The body must be one JSON object, not {}.", token.kind())));
            }
            (Place::ItemOrEnd | Place::Item, token) if token.begins_value() => {
                let at = self.draft.next_place()?;
                return Err(invalid(format!("media[{at}] must be an object, not {}.", token.kind())));
            }
            (place, token) => return Err(self.lexer.unexpected(token, wanted(place))),
        };
        Ok(false)
    }

    fn key(&mut self, text: &str) -> Result<(), Problem> {
        let Some(key) = Key::parse(self.level, text) else {
            return Err(invalid(format!(
                "{} is no key of {}.",
                shown(text),
                match self.level {
                    Level::Body => "an upload".to_owned(),
                    Level::Item => self.item_path(),
                }
            ))
            .with_hint(Key::hint(self.level, text)));
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
        self.place = Place::Colon(key);
        Ok(())
    }

    fn value(&mut self, key: Key, token: Token) -> Result<Place, Problem> {
        Ok(match (key.wants(), token) {
            (Wants::Items, Token::OpenList) => {
                self.given = Given::List;
                self.level = Level::Item;
                Place::ItemOrEnd
            }
            (Wants::Items, Token::OpenObject) => {
                self.given = Given::One;
                self.level = Level::Item;
                self.open_item()?
            }
            (Wants::Text | Wants::TextIfAny, Token::Quote) => Place::Text(key),
            (Wants::FlagIfAny, Token::True | Token::False) => {
                self.flag(key, token);
                Place::MemberEnds
            }
            (Wants::TextIfAny | Wants::FlagIfAny, Token::Null) => Place::MemberEnds,
            (Wants::Content, Token::Quote) => {
                let head = match self.item.family {
                    Some(Family::Named) => Head::Required,
                    _ => Head::Optional,
                };
                self.content.restart(head);
                Place::Content
            }
            (wants, token) => {
                return Err(invalid(format!("{} must be {wants}, not {}.", self.path(key), token.kind())));
            }
        })
    }

    fn flag(&mut self, key: Key, token: Token) {
        let flag = token == Token::True;
        match (self.level, key) {
            (Level::Body, Key::Update) => self.draft.set_update(flag),
            (Level::Body, _) => self.draft.set_private(flag),
            (Level::Item, Key::PrivateFolder) => self.item.private_folder = Some(flag),
            (Level::Item, _) => self.item.private = Some(flag),
        }
    }

    fn text(&mut self, key: Key, text: String) -> Result<(), Problem> {
        match key {
            Key::Folder => self.draft.set_folder(&text),
            Key::Type => {
                self.draft.set_kind(&text)?;
                self.check_kind()
            }
            Key::ImageType | Key::FileType => {
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

    fn close(&mut self) -> Result<Place, Problem> {
        if self.level == Level::Body {
            return Ok(Place::Done);
        }
        self.close_item()?;
        Ok(match self.given {
            Given::List => Place::ItemEnds,
            Given::One => {
                self.level = Level::Body;
                Place::MemberEnds
            }
        })
    }

    pub(super) fn finish(self) -> Result<ParsedUpload, Problem> {
        match self.place {
            _ if self.lexer.is_within_token() => Err(self.lexer.ended_early()),
            Place::Done => self.draft.finish(self.shape),
            Place::Body if !self.lexer.has_begun() => Err(Problem::new(ErrorCode::InvalidJson, "The body is empty.")
                .with_hint("Send a JSON object, or multipart/form-data.")),
            _ => Err(self.lexer.ended_early()),
        }
    }
}

fn too_long(place: &str) -> Problem {
    invalid(format!("{place} is longer than {UPLOAD_TEXT_MAX_BYTES} bytes."))
}

fn wanted(place: Place) -> &'static str {
    match place {
        Place::Body => "an object",
        Place::KeyOrEnd => "a key or }",
        Place::Key | Place::KeyText => "a key",
        Place::Colon(_) => "a colon",
        Place::Value(_) | Place::Text(_) | Place::Content | Place::ContentEnds => "a value",
        Place::MemberEnds => "a comma or }",
        Place::ItemOrEnd => "an object or ]",
        Place::Item => "an object",
        Place::ItemEnds => "a comma or ]",
        Place::Done => "the end",
    }
}
