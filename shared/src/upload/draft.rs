//! An upload's form while the body, JSON or multipart, is being parsed.

use super::UploadLimits;
use super::form::{Existing, ParsedUpload, UploadItem, UploadShape, Visibility};
use super::label::Label;
use crate::error::{ErrorCode, Problem, nearest};
use crate::ident::shown;
use crate::media::{FolderPath, MediaKind, MediaName};
use std::collections::HashSet;

pub(super) struct Item {
    pub(super) name: MediaName,
    pub(super) label: Option<Label>,
    pub(super) is_always_file: bool,
    pub(super) private: Option<bool>,
    pub(super) private_folder: Option<bool>,
}

pub(super) struct Draft {
    limits: UploadLimits,
    kind: Option<MediaKind>,
    folder: Option<FolderPath>,
    update: Option<bool>,
    private: Option<bool>,
    items: Vec<Item>,
    names: HashSet<MediaName>,
}

impl Draft {
    pub(super) fn new(limits: UploadLimits) -> Self {
        Self { limits, kind: None, folder: None, update: None, private: None, items: Vec::new(), names: HashSet::new() }
    }

    pub(super) fn kind(&self) -> Option<MediaKind> {
        self.kind
    }

    pub(super) fn set_kind(&mut self, word: &str) -> Result<(), Problem> {
        self.kind = Some(MediaKind::parse(word).ok_or_else(|| {
            let words = MediaKind::ALL.map(MediaKind::as_str);
            invalid(format!("type must be image, video, audio or file, not {}.", shown(word)))
                .with_hint_if(nearest(word, words).map(|word| format!("Did you mean {word}?")))
        })?);
        Ok(())
    }

    pub(super) fn set_folder(&mut self, path: &str) -> Result<(), Problem> {
        self.folder = Some(FolderPath::parse(path)?);
        Ok(())
    }

    pub(super) fn set_update(&mut self, update: bool) {
        self.update = Some(update);
    }

    pub(super) fn set_private(&mut self, private: bool) {
        self.private = Some(private);
    }

    pub(super) fn next_place(&self) -> Result<usize, Problem> {
        let at = self.items.len();
        if at < self.limits.items {
            return Ok(at);
        }
        Err(invalid(format!("An upload has {} files at most.", self.limits.items))
            .with_hint("Send the others in further requests."))
    }
    pub(super) fn add(&mut self, item: Item) -> Result<(), Problem> {
        if !self.names.insert(item.name.clone()) {
            return Err(invalid(format!("Two files of the upload would be called {}.", shown(item.name.as_str())))
                .with_hint("Give each its own name, or upload to two folders in two requests."));
        }
        self.items.push(item);
        Ok(())
    }

    pub(super) fn finish(self, shape: Option<UploadShape>) -> Result<ParsedUpload, Problem> {
        let Some(shape) = shape.filter(|_| !self.items.is_empty()) else {
            return Err(invalid("The upload has no file: its media is empty.").with_hint(match shape {
                Some(UploadShape::Multipart) => "Add a part with a filename to the form.",
                _ => "Put at least one item into media: {\"name\": …, \"base64\": \"data:image/png;base64,…\"}.",
            }));
        };
        let Some(kind) = self.kind else {
            return Err(invalid("type is missing.").with_hint("Say image, video, audio or file."));
        };
        let items = self.items.into_iter().map(|item| UploadItem {
            name: item.name,
            label: item.label,
            kind: if item.is_always_file { MediaKind::File } else { kind },
            visibility: match (item.private_folder, item.private.or(self.private)) {
                (Some(true), _) => Visibility::PrivateFolder,
                (_, Some(true)) => Visibility::Private,
                (_, Some(false)) => Visibility::Public,
                (_, None) => Visibility::Undeclared,
            },
        });
        Ok(ParsedUpload {
            shape,
            kind,
            folder: self.folder.unwrap_or_default(),
            existing: if self.update == Some(true) { Existing::IsReplaced } else { Existing::Stays },
            items: items.collect(),
        })
    }
}

pub(super) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}

pub(super) fn at(place: &str, problem: &Problem) -> Problem {
    Problem::new(problem.code(), format!("{place}: {}", problem.message()))
        .with_hint_if(problem.hint().map(str::to_owned))
}
