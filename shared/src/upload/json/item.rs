//! One item of an upload's `media`: the keys that it must have, and the file that the item describes.

use super::content::ContentFault;
use super::key::{BodyKey, Family, KeySet, Level};
use super::{JsonPlace, JsonReader};
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::media::{MediaKind, MediaName};
use crate::upload::draft::{self, invalid};
use crate::upload::form::{Given, UploadShape};
use crate::upload::label::Label;
use crate::upload::name;

#[derive(Default)]
pub(super) struct Open {
    pub(super) keys: KeySet,
    pub(super) family: Option<Family>,
    pub(super) name: Option<String>,
    pub(super) label: Option<Label>,
    pub(super) private: Option<bool>,
    pub(super) private_folder: Option<bool>,
}

impl JsonReader {
    pub(super) fn check_family(&mut self, key: BodyKey, family: Family) -> Result<(), Problem> {
        match self.item.family {
            None => self.item.family = Some(family),
            Some(before) if before == family => {}
            Some(before) => {
                return Err(invalid(format!(
                    "{} does not go with the keys before it, which are of the form {before}.",
                    self.path(key)
                ))
                .with_hint(format!(
                    "An item is one of {}, {} and {}.",
                    Family::Named,
                    Family::Image,
                    Family::File
                )));
            }
        }
        let shape = match family {
            Family::Named => UploadShape::Named,
            Family::Image | Family::File => UploadShape::Typed(self.given),
        };
        if self.shape.is_some_and(|before| before != shape) {
            return Err(invalid(format!(
                "{} is of another shape than the items before it: one request can't mix {} with the others.",
                self.path(key),
                Family::Named
            ))
            .with_hint("Write all items in one way, or send two requests."));
        }
        self.shape = Some(shape);
        self.check_kind()
    }

    pub(super) fn check_kind(&self) -> Result<(), Problem> {
        match (self.shape, self.draft.kind()) {
            (Some(UploadShape::Typed(_)), Some(kind @ (MediaKind::Video | MediaKind::Audio))) => Err(invalid(format!(
                "type must be image or file for items like {} and {}, not {}.",
                Family::Image,
                Family::File,
                kind.as_str()
            ))
            .with_hint(format!("Use items like {} instead.", Family::Named))),
            _ => Ok(()),
        }
    }

    pub(super) fn open_item(&mut self) -> Result<JsonPlace, Problem> {
        self.item_at = self.draft.next_place()?;
        self.item = Open::default();
        Ok(JsonPlace::KeyOrEnd)
    }

    pub(super) fn close_item(&mut self) -> Result<(), Problem> {
        let item = std::mem::take(&mut self.item);
        let Some(family) = item.family else {
            return Err(invalid(format!("{} holds no file.", self.item_path()))
                .with_hint(format!("Write it as {}.", Family::Named)));
        };
        if let Some(missing) = family.keys().iter().find(|key| !item.keys.contains(**key)) {
            return Err(invalid(format!("{} is missing.", self.path(*missing)))
                .with_hint(format!("Write the item as {family}.")));
        }
        let given = item.name.unwrap_or_default();
        let name = match &item.label {
            None => MediaName::parse(&given),
            Some(label) => name::compose(&given, label),
        };
        let name = name.map_err(|problem| draft::at(&self.path(family.name()), &problem))?;
        self.draft.add(draft::Item {
            name,
            label: self.content.take_label().or(item.label),
            is_always_file: family == Family::File,
            private: item.private,
            private_folder: item.private_folder,
        })
    }

    pub(super) fn item_path(&self) -> String {
        match self.given {
            Given::One => "media".to_owned(),
            Given::List => format!("media[{}]", self.item_at),
        }
    }

    pub(super) fn path(&self, key: BodyKey) -> String {
        match self.level {
            Level::Body => key.as_str().to_owned(),
            Level::Item => format!("{}.{}", self.item_path(), key.as_str()),
        }
    }

    pub(super) fn refused(&self, fault: ContentFault) -> Problem {
        match fault {
            ContentFault::Json(problem) => problem,
            ContentFault::Media(said, at) => {
                let named = self.item.name.as_deref();
                let named = named.map_or(String::new(), |name| format!(" ({})", shown(name)));
                let place = at.map_or(String::new(), |at| format!(" (byte {at} of the body)"));
                Problem::new(ErrorCode::InvalidMedia, format!("{}{named} {said}{place}.", self.item_path()))
                    .with_hint("Send the file's bytes as base64, behind data:<type>;base64, as in a data URL.")
            }
        }
    }
}
